"""Determine the datashape of a NestedArray.

`arrayhub.datashape.parse` parses all datashapes. awkward parses all except those with raw bytes, Arrow's logical types
or extension types.
"""

from collections.abc import Callable, Iterable
from typing import Any

from arrayhub._core.tree import kind_of, per_kind
from arrayhub.inspection.datashape.types import (
    VAR,
    Bytes,
    Categorical,
    Dimension,
    Extension,
    Logical,
    Number,
    Option,
    RunEnd,
    String,
    Structure,
    Type,
    Union,
    type_of,
)
from arrayhub.nested.array import NestedArray
from arrayhub.nested.logical_types import decimal_type


def nested_type(x: NestedArray) -> Type:
    """Return the type of an array."""
    return Dimension(len(x), _element(x))


def _element(node: Any) -> Type:
    """Return the type of one element of a node."""
    if not isinstance(node, NestedArray):
        array_type = type_of(node)
        return array_type.inner if isinstance(array_type, Dimension) else array_type
    inner = _INNER[node.kind](node)
    if kind_of(node).chunks:
        return inner
    if node.extension is not None and node.extension[0] not in _CONVERTED:
        inner = Extension(node.extension[0], inner)
    return inner if node.validity is None or _none_missing(node) else Option(inner)


_CONVERTED = ("arrow.bool8", "arrow.fixed_shape_tensor")  # imported as booleans and as a dense array


def _number(node: NestedArray) -> Type:
    """Return the type of a flat node: its logical type, or the type of its numbers."""
    return _element(node.content) if node.meaning is None else _logical(node.meaning)


def _logical(meaning: str) -> Type:
    """Return the type of the Arrow format `meaning`: a date, time of day, timestamp, decimal or interval."""
    if meaning[:2] == "d:":
        name, precision, scale = decimal_type(meaning)
        return Logical(name, f"{precision}, {scale}")
    if meaning[:2] == "ti":
        return Logical("interval", _INTERVALS[meaning])
    if meaning[:2] == "td":
        return Logical("date32" if meaning == "tdD" else "date64")
    unit = _UNITS[meaning[2]]
    if meaning[:2] == "tt":
        return Logical("time32" if unit in ("s", "ms") else "time64", unit)
    return Logical("timestamp", unit, meaning[4:])


_INTERVALS = {"tiM": "M", "tiD": "D", "tin": "MDn"}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}  # by Arrow's unit letter


def _none_missing(node: NestedArray) -> bool:
    """Return whether no element is missing. If the bitmap is in device memory, return False without reading it."""
    try:
        return node.null_count == 0
    except BufferError:
        return False


def _merged(types: list[Type]) -> Type:
    """Return the common element type of chunks. It is an `Option` if the type of any chunk is an `Option`."""
    first = types[0]
    if len(types) == 1 or (len(set(map(type, types))) > 1 and not any(isinstance(one, Option) for one in types)):
        return first
    if any(isinstance(one, Option) for one in types):
        return Option(_merged(_distinct(one.inner if isinstance(one, Option) else one for one in types)))
    if isinstance(first, Dimension):
        return Dimension(first.length, _merged(_distinct(one.inner for one in types)))  # type: ignore[attr-defined]
    if isinstance(first, Structure):
        columns = zip(*(one.fields for one in types), strict=True)  # type: ignore[attr-defined]
        return Structure(tuple((column[0][0], _merged(_distinct(inner for _, inner in column))) for column in columns))
    if isinstance(first, Extension):
        return Extension(first.name, _merged(_distinct(one.inner for one in types)))  # type: ignore[attr-defined]
    if isinstance(first, Categorical):
        return Categorical(_merged(_distinct(one.inner for one in types)))  # type: ignore[attr-defined]
    return first


def _distinct(types: Iterable[Type]) -> list[Type]:
    return list(dict.fromkeys(types))


_INNER: dict[str, Callable[[NestedArray], Type]] = per_kind(
    flat=_number,
    bits=lambda node: Number("bool"),
    list=lambda node: Dimension(VAR, _element(node.content)),
    list_view=lambda node: Dimension(VAR, _element(node.content)),
    regular=lambda node: Dimension(node.width, _element(node.content)),
    string=lambda node: String(),
    bytes=lambda node: Bytes(),
    string_view=lambda node: String(),
    bytes_view=lambda node: Bytes(),
    record=lambda node: Structure(
        tuple((name, _element(field)) for name, field in zip(node.field_names, node.children, strict=True))
    ),
    categorical=lambda node: Categorical(_element(node.content)),
    union=lambda node: Union(tuple(map(_element, node.children))),
    chunked=lambda node: _merged(list(dict.fromkeys(map(_element, node.chunks)))),
    decimal=_number,
    interval=_number,
    run_end=lambda node: RunEnd(_element(node.content)),
    null=lambda node: Logical("null"),
)
