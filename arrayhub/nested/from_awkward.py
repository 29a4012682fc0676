"""awkward arrays, which speak no protocol: a walk of the layout, whose leaves and offsets are views."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub.conversion import asarray
from arrayhub.nested.array import NestedArray, bitmap_of, covered, make, nested_of, part


def is_awkward(obj: Any) -> bool:
    """Say whether `obj` is an ``awkward.Array``, without importing awkward."""
    awkward = sys.modules.get("awkward")
    return awkward is not None and isinstance(obj, awkward.Array)


def from_awkward(obj: Any) -> NestedArray:
    """Return an awkward array as a NestedArray on the same memory.

    Bits of missing values are shared where they are laid out as Arrow's; masks of bytes and indices become new bits.

    Raises
    ------
    BufferError
        A union, or another node that has no form here.
    """
    return nested_of(_walk(obj.layout))


def _walk(layout: Any) -> Any:
    """A node's array: a USMArray where it is dense."""
    way = _WAYS.get(type(layout).__name__)
    if way is None:
        raise BufferError(
            f"asnested: an awkward {type(layout).__name__} has no form here; accepted: {', '.join(_WAYS)}. Take"
            " awkward.to_packed(x), or one of its fields"
        )
    return way(layout)


def _index(index: Any) -> Any:
    data = index.data
    return asarray(data if data.dtype != np.uint32 else data.astype(np.int64))


def _list(layout: Any) -> Any:
    kind = {"string": "string", "bytestring": "bytes"}.get(layout.parameter("__array__"), "list")
    content = asarray(layout.content.data) if kind != "list" else _walk(layout.content)
    return make(kind, len(layout), offsets=_index(layout.offsets), content=content)


def _list_array(layout: Any) -> Any:
    if layout.parameter("__array__") in ("string", "bytestring"):
        return _walk(layout.to_ListOffsetArray64(True))
    starts, stops = layout.starts.data, layout.stops.data
    sizes = asarray((stops[: len(starts)] - starts).astype(starts.dtype))
    return make("list_view", len(layout), offsets=asarray(starts), sizes=sizes, content=_walk(layout.content))


def _regular(layout: Any) -> Any:
    if layout.parameter("__array__") in ("string", "bytestring"):
        return _walk(layout.to_ListOffsetArray64(True))
    content, size = _walk(layout.content), layout.size
    content = part(content, 0, len(layout) * size)
    if not isinstance(content, NestedArray) and content.flags.c_contiguous:
        return content.reshape(len(layout), size, *content.shape[1:])
    return make("regular", len(layout), width=size, content=content)


def _record(layout: Any) -> Any:
    parts = tuple(part(_walk(content), 0, len(layout)) for content in layout.contents)
    return make("record", len(layout), names=tuple(layout.fields), parts=parts)


def _with_bits(content: Any, length: int, validity: Any) -> Any:
    """`content` with a bitmap; what is missing in either is missing."""
    return covered(part(content, 0, length), validity, 0)


def _bit_masked(layout: Any) -> Any:
    if not layout.valid_when or not layout.lsb_order:
        return _by_mask(layout)
    return _with_bits(_walk(layout.content), len(layout), asarray(layout.mask.data.view(np.uint8)))


def _by_mask(layout: Any) -> Any:
    valid = ~np.asarray(layout.mask_as_bool(valid_when=False)[: len(layout)])
    return _with_bits(_walk(layout.content), len(layout), None if valid.all() else bitmap_of(valid))


def _option(layout: Any) -> Any:
    """By an index, -1 where it is missing: awkward puts the elements in order first, a copy unless they are."""
    index = layout.index.data
    if layout.parameter("__array__") == "categorical":
        return _categorical(layout)
    valid = index >= 0
    if valid.all() and len(index) and (np.diff(index) == 1).all():
        return part(_walk(layout.content), int(index[0]), int(index[-1]) + 1)
    if not len(layout.content):
        return make("flat", len(layout), content=asarray(np.zeros(len(layout))), validity=bitmap_of(valid))
    filled = sys.modules["awkward"].contents.IndexedArray(type(layout.index)(np.where(valid, index, 0)), layout.content)
    return _with_bits(_walk(filled.project()), len(layout), None if valid.all() else bitmap_of(valid))


def _indexed(layout: Any) -> Any:
    if layout.parameter("__array__") == "categorical":
        return _categorical(layout)
    return _walk(layout.project())


def _categorical(layout: Any) -> Any:
    index = layout.index.data
    valid = index >= 0
    validity = None if valid.all() else bitmap_of(valid)
    return make("categorical", len(layout), indices=asarray(index), content=_walk(layout.content), validity=validity)


_WAYS: dict[str, Callable[[Any], Any]] = {
    "BitMaskedArray": _bit_masked,
    "ByteMaskedArray": _by_mask,
    "EmptyArray": lambda layout: asarray(np.zeros(0)),
    "IndexedArray": _indexed,
    "IndexedOptionArray": _option,
    "ListArray": _list_array,
    "ListOffsetArray": _list,
    "NumpyArray": lambda layout: asarray(layout.data),
    "RecordArray": _record,
    "RegularArray": _regular,
    "UnmaskedArray": lambda layout: _walk(layout.content),
}
