"""Return the datashape of a NestedArray, in the language that `arrayhub.parse_type` and awkward parse."""

from collections.abc import Callable
from typing import Any

from arrayhub._core.kinds import per_kind
from arrayhub.inspection.datashape.types import (
    STRIDED,
    VAR,
    Bytes,
    Categorical,
    Dimension,
    Number,
    Option,
    String,
    Structure,
    Type,
    type_of,
)
from arrayhub.nested.array import NestedArray


def nested_type(x: NestedArray, symbolic: bool = False) -> Type:
    """Return the type of an array. `symbolic` has the meaning that it has in `arrayhub.datashape`."""
    return Dimension(STRIDED if symbolic else len(x), _element(x))


def _element(node: Any) -> Type:
    """Return the type of one element of a node."""
    if not isinstance(node, NestedArray):
        array_type = type_of(node)
        return array_type.inner if isinstance(array_type, Dimension) else array_type
    inner = _INNER[node.kind](node)
    return inner if node.validity is None or _none_missing(node) else Option(inner)


def _none_missing(node: NestedArray) -> bool:
    """Return whether all elements are known to be valid. A bitmap on a device is not copied to find out."""
    try:
        return node.null_count == 0
    except BufferError:
        return False


_INNER: dict[str, Callable[[NestedArray], Type]] = per_kind(
    flat=lambda node: _element(node.content),
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
)
