"""Determine the datashape of a NestedArray.

`arrayhub.datashape.parse` parses all datashapes. awkward parses all except those with raw bytes, Arrow's logical types
or extension types.
"""

from collections.abc import Callable, Iterable
from typing import Any

from arrayhub._core.tree import kind_of, per_kind
from arrayhub.inspection.datashape import (
    VAR,
    Dimension,
    Element,
    Record,
    Type,
    is_option,
    make_option,
    spell_name,
    spell_zone,
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
        inner = Element("extension", (spell_name(node.extension[0]), inner))
    return inner if node.validity is None or _none_missing(node) else make_option(inner)


_CONVERTED = ("arrow.bool8", "arrow.fixed_shape_tensor")  # imported as booleans and as a dense array


def _number(node: NestedArray) -> Type:
    """Return the type of a flat node: its logical type, or the type of its numbers."""
    return _element(node.content) if node.meaning is None else _logical(node.meaning)


def _opaque(node: NestedArray) -> Type:
    """Return the type of an opaque node."""
    meaning = str(node.meaning)
    if meaning == "n":
        return Element("null")
    if meaning == "+r":
        return Element("run_end", (_element(node.children[1]),))
    if meaning[:2] == "+u":
        return Element("union", tuple(map(_element, node.children)))
    if meaning[:2] == "+v":
        return Dimension(VAR, _element(node.children[0]))
    if meaning[:2] == "ti":
        return Element("interval", (_INTERVALS[meaning],))
    name, precision, scale = decimal_type(meaning)
    return Element(name, (precision, scale))


def _logical(meaning: str) -> Type:
    """Return the type of the Arrow format `meaning`: a date, time of day or timestamp."""
    if meaning[:2] == "td":
        return Element("date32" if meaning == "tdD" else "date64")
    unit = _UNITS[meaning[2]]
    if meaning[:2] == "tt":
        return Element("time32" if unit in ("s", "ms") else "time64", (unit,))
    return Element("timestamp", (unit, spell_zone(meaning[4:])))


_INTERVALS = {"tiM": "M", "tiD": "D", "tin": "MDn"}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}  # by Arrow's unit letter


def _none_missing(node: NestedArray) -> bool:
    """Return whether no element is missing. If the bitmap is in device memory, return False without reading it."""
    try:
        return node.null_count == 0
    except BufferError:
        return False


def _merge_types(types: list[Type]) -> Type:
    """Return the common element type of chunks. It is an option if the type of any chunk is an option."""
    first = types[0]
    if len(types) == 1:
        return first
    if any(map(is_option, types)):
        required = _distinct(one.inner if is_option(one) else one for one in types)  # type: ignore[attr-defined]
        return make_option(_merge_types(required))
    if len({getattr(one, "name", type(one)) for one in types}) > 1:
        return first
    if isinstance(first, Dimension):
        return Dimension(first.length, _merge_types(_distinct(one.inner for one in types)))  # type: ignore[attr-defined]
    if isinstance(first, Record):
        columns = zip(*(one.fields for one in types), strict=True)  # type: ignore[attr-defined]
        return Record(
            tuple((column[0][0], _merge_types(_distinct(inner for _, inner in column))) for column in columns)
        )
    if isinstance(first, Element) and first.name in ("extension", "categorical"):
        inner = _merge_types(_distinct(one.inner for one in types))  # type: ignore[attr-defined]
        return Element(first.name, (*first.arguments[:-1], inner))
    return first


def _distinct(types: Iterable[Type]) -> list[Type]:
    return list(dict.fromkeys(types))


_INNER: dict[str, Callable[[NestedArray], Type]] = per_kind(
    flat=_number,
    bits=lambda node: Element("bool"),
    list=lambda node: Dimension(VAR, _element(node.content)),
    regular=lambda node: Dimension(node.width, _element(node.content)),
    string=lambda node: Element("string"),
    bytes=lambda node: Element("bytes"),
    string_view=lambda node: Element("string"),
    bytes_view=lambda node: Element("bytes"),
    record=lambda node: Record(
        tuple((name, _element(field)) for name, field in zip(node.field_names, node.children, strict=True))
    ),
    categorical=lambda node: Element("categorical", (_element(node.content),)),
    chunked=lambda node: _merge_types(list(dict.fromkeys(map(_element, node.chunks)))),
    opaque=_opaque,
)
