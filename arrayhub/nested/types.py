"""Determine the datashape of a NestedArray.

`arrayhub.datashape.parse` parses all datashapes. awkward parses all except those with raw bytes, Arrow's logical types
or extension types.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from arrayhub._core.tree import kind_of, per_kind
from arrayhub.inspection.datashape import (
    VAR,
    Dimension,
    Element,
    Record,
    Type,
    make_option,
    spell_name,
    spell_zone,
    type_of,
)
from arrayhub.nested.array import NestedArray, is_on_host, nested_of
from arrayhub.nested.logical_types import NUMPY_UNITS, decimal_type
from arrayhub.nested.to_device import child_nodes


def nested_type(x: NestedArray) -> Type:
    """Return the type of an array."""
    return Dimension(len(x), _element([x]))


def _element(parts: Iterable[Any]) -> Type:
    """Return the type of one element of nodes of one type. It is an option if an element of any node may be missing."""
    chunks = [chunk for part in parts for chunk in nested_of(part).chunks]
    # A chunk without missing rows can store fixed-length rows as an array of several dimensions.
    first = next((chunk for chunk in chunks if kind_of(chunk).width), chunks[0])
    nodes = [node for node in chunks if node.kind == first.kind and len(child_nodes(node)) == len(child_nodes(first))]
    inner = _INNER[first.kind](nodes)
    if first.extension is not None and first.extension[0] not in _CONVERTED:
        inner = Element("extension", (spell_name(first.extension[0]), inner))
    # A bitmap in device memory is not read: elements may be missing.
    is_complete = all(x.validity is None or (is_on_host(x.validity) and not x.null_count) for x in chunks)
    return inner if is_complete else make_option(inner)


def _children(nodes: Sequence[NestedArray]) -> list[Type]:
    """Return the types of the children of nodes of one type."""
    return list(map(_element, zip(*map(child_nodes, nodes), strict=True)))


_CONVERTED = ("arrow.bool8", "arrow.fixed_shape_tensor")  # imported as booleans and as a dense array


def _number(nodes: Sequence[NestedArray]) -> Type:
    """Return the type of flat nodes: their logical type, or the type of their numbers."""
    first = nodes[0]
    if first.meaning is not None:
        return _logical(first.meaning)
    array_type = type_of(first.content)
    return array_type.inner if isinstance(array_type, Dimension) else array_type


def _opaque(nodes: Sequence[NestedArray]) -> Type:
    """Return the type of opaque nodes."""
    meaning = str(nodes[0].meaning)
    if meaning == "n":
        return Element("null")
    if meaning == "+r":
        return Element("run_end", (_children(nodes)[1],))
    if meaning[:2] == "+u":
        return Element("union", tuple(_children(nodes)))
    if meaning[:2] == "+v":
        return Dimension(VAR, _children(nodes)[0])
    if meaning[:2] == "ti":
        return Element("interval", (_INTERVALS[meaning],))
    name, precision, scale = decimal_type(meaning)
    return Element(name, (precision, scale))


def _logical(meaning: str) -> Type:
    """Return the type of the Arrow format `meaning`: a date, time of day or timestamp."""
    if meaning[:2] == "td":
        return Element("date32" if meaning == "tdD" else "date64")
    unit = NUMPY_UNITS[meaning[2]]
    if meaning[:2] == "tt":
        return Element("time32" if unit in ("s", "ms") else "time64", (unit,))
    return Element("timestamp", (unit, spell_zone(meaning[4:])))


_INTERVALS = {"tiM": "M", "tiD": "D", "tin": "MDn"}


_INNER: dict[str, Callable[[Sequence[NestedArray]], Type]] = per_kind(
    flat=_number,
    bits=lambda nodes: Element("bool"),
    list=lambda nodes: Dimension(VAR, _children(nodes)[0]),
    regular=lambda nodes: Dimension(nodes[0].width, _children(nodes)[0]),
    string=lambda nodes: Element("string"),
    bytes=lambda nodes: Element("bytes"),
    string_view=lambda nodes: Element("string"),
    bytes_view=lambda nodes: Element("bytes"),
    record=lambda nodes: Record(tuple(zip(nodes[0].field_names, _children(nodes), strict=True))),
    categorical=lambda nodes: Element("categorical", (_children(nodes)[0],)),
    chunked=lambda nodes: _element(nodes),
    opaque=_opaque,
)
