"""Import awkward arrays from their layout, because awkward exports Arrow data only if pyarrow is installed."""

import json
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.copying import forbidden
from arrayhub._core.errors import Refusal
from arrayhub.convert.functions import asarray, import_unadvised
from arrayhub.libraries.known import derived_from
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    cover_missing,
    make,
    nested_of,
    part,
    unwrap_flat,
    without_gaps,
)
from arrayhub.nested.logical_types import AWKWARD_RECORD, AWKWARD_TUPLE
from arrayhub.nested.opaque import make_rows

# Metadata of Arrow's schema for the characters of awkward that are not part of a string: one pair of lengths and bytes.
CHARACTERS = {name: struct.pack("=ii13si4s", 1, 13, b"awkward.array", 4, name.encode()) for name in ("char", "byte")}
_NULLABLE = 2  # ARROW_FLAG_NULLABLE

_is_array = derived_from("awkward", "Array")


def is_awkward(obj: Any) -> bool:
    """Return whether `obj` is an ``awkward.Array``, without importing awkward."""
    return _is_array(type(obj))


def from_awkward(obj: Any, copy: bool | None = False) -> NestedArray:
    """Import an awkward array as a NestedArray that shares its memory.

    A validity bitmap is shared if it has Arrow's layout. Byte masks and option indices are converted to a new bitmap.
    Elements are copied if an index reorders them. Strings are copied unless they have offsets, as in a ListOffsetArray.
    For VIEW, raise BufferError instead.
    """
    return nested_of(_walk(obj.layout, copy))


def _walk(layout: Any, copy: bool | None) -> Any:
    """Import a node as a USMArray if the node is dense, else as a NestedArray."""
    name, purpose = type(layout).__name__, layout.parameter("__array__")
    if purpose == "categorical":
        return _categorical(layout, copy)
    if purpose in ("string", "bytestring") and name != "ListOffsetArray":
        forbidden(copy, "asnested", f"the strings of an awkward {name} are copied, to store them in order")
        return _list(layout.to_ListOffsetArray64(True), copy)
    importer = _IMPORTERS.get(name)
    if importer is None:
        raise Refusal(
            "asnested",
            f"awkward.contents.{name} is not supported; accepted: {', '.join(_IMPORTERS)}."
            " Pass a part of the array, such as the field x['name'] of records",
        )
    return importer(layout, copy)


def _numbers(layout: Any, copy: bool | None) -> Any:
    """Import numbers. Characters outside of a string are bytes, which metadata marks for `as_awkward`."""
    array, mark = import_unadvised(layout.data), CHARACTERS.get(layout.parameter("__array__"))
    return array if mark is None else make("flat", len(array), content=array, field=(_NULLABLE, mark))


def _index(index: Any) -> Any:
    """Return an awkward index as int32 or int64, the types of offsets. An index of uint32 is copied."""
    data = index.data
    return asarray(data if data.dtype != np.uint32 else data.astype(np.int64))


def _list(layout: Any, copy: bool | None) -> Any:
    text = {"string": "string", "bytestring": "bytes"}.get(layout.parameter("__array__"))
    content = import_unadvised(layout.content.data) if text else _walk(layout.content, copy)
    return make(text or "list", len(layout), offsets=_index(layout.offsets), content=content, copy=copy)


def _list_array(layout: Any, copy: bool | None) -> Any:
    starts = np.asarray(_index(layout.starts))
    sizes = np.asarray(layout.stops.data[: len(starts)]).astype(starts.dtype) - starts
    if (sizes == 0).any():  # awkward allows any start for a row without elements
        starts = np.where(sizes == 0, starts.dtype.type(0), starts)
    return make_rows(starts, sizes, _walk(layout.content, copy), copy)


def _regular(layout: Any, copy: bool | None) -> Any:
    content, size = _walk(layout.content, copy), layout.size
    content = part(content, 0, len(layout) * size)
    if not isinstance(content, NestedArray) and content.flags.c_contiguous:
        return content.reshape(len(layout), size, *content.shape[1:])
    return make("regular", len(layout), width=size, content=content)


def _record(layout: Any, copy: bool | None) -> Any:
    parts = tuple(part(_walk(content, copy), 0, len(layout)) for content in layout.contents)
    meaning = None
    if layout.is_tuple or layout.parameters:
        meaning = f"{AWKWARD_TUPLE if layout.is_tuple else AWKWARD_RECORD}{json.dumps(layout.parameters)}"
    return make("record", len(layout), names=tuple(layout.fields), parts=parts, meaning=meaning)


def _with_bits(content: Any, length: int, validity: Any) -> Any:
    """Add a bitmap to `content`. An element is missing if `content` or the bitmap marks it as missing."""
    return cover_missing(part(content, 0, length), validity, 0)


def _bit_masked(layout: Any, copy: bool | None) -> Any:
    if not layout.valid_when or not layout.lsb_order:
        return _by_mask(layout, copy)
    bits = without_gaps(asarray(np.asarray(layout.mask.data).view(np.uint8)), "validity bits", copy)
    return _with_bits(_walk(layout.content, copy), len(layout), bits)


def _nulls(layout: Any, copy: bool | None) -> Any:
    return make("opaque", len(layout), meaning="n")


def _by_mask(layout: Any, copy: bool | None) -> Any:
    valid = ~np.asarray(layout.mask_as_bool(valid_when=False)[: len(layout)])
    return _with_bits(_walk(layout.content, copy), len(layout), None if valid.all() else bitmap_of(valid))


def _option(layout: Any, copy: bool | None) -> Any:
    """Import an IndexedOptionArray, whose index is negative for missing elements.

    The elements are shared if the index is consecutive and no element is missing.
    """
    index = layout.index.data
    if type(layout.content).__name__ == "EmptyArray":
        return _nulls(layout, copy)
    spans_all = len(index) > 0 and index[0] >= 0 and int(index[-1]) - int(index[0]) == len(index) - 1
    if spans_all and (index[1:] > index[:-1]).all():
        return part(_walk(layout.content, copy), int(index[0]), int(index[-1]) + 1)
    forbidden(copy, "asnested", "an awkward index requires a copy of the elements in the order of the index")
    valid = index >= 0
    content = layout.content if len(layout.content) else _filler(layout.content)
    filled = sys.modules["awkward"].contents.IndexedArray(type(layout.index)(np.where(valid, index, 0)), content)
    return _with_bits(_walk(filled.project(), None), len(layout), None if valid.all() else bitmap_of(valid))


def _filler(content: Any) -> Any:
    """Return a content of one zero element in place of an empty content. Missing elements refer to this element."""
    try:
        return content.form.length_one_array(highlevel=False)
    except TypeError:  # the type of a field is unknown
        return sys.modules["awkward"].from_iter([None], highlevel=False)


def _import_indexed(layout: Any, copy: bool | None) -> Any:
    forbidden(copy, "asnested", "an awkward index requires a copy of the elements in the order of the index")
    return _walk(layout.project(), None)


def _categorical(layout: Any, copy: bool | None) -> Any:
    index, content = layout.index.data, _walk(layout.content, copy)
    return make("categorical", len(layout), indices=asarray(index), content=content, mask=index >= 0, copy=copy)


def _union(layout: Any, copy: bool | None) -> Any:
    """Import a UnionArray as a dense union. The index (int32, uint32 or int64) becomes int32 offsets.

    In Arrow, the offsets of each child must not decrease. If they decrease, the elements of the child are copied.
    """
    tags, index = layout.tags.data[: len(layout)], layout.index.data[: len(layout)]
    if index.dtype != np.int32:
        forbidden(copy, "asnested", "the index of an awkward union becomes offsets of int32")
        index = index.astype(np.int32)
    contents = []
    for k, content in enumerate(layout.contents):
        chosen = tags == k
        offsets = index[chosen]
        decreases = (offsets[1:] < offsets[:-1]).any()
        if decreases and offsets.min() >= 0 and offsets.max() < len(content):  # other offsets are rejected on first use
            forbidden(copy, "asnested", "the elements of an awkward union are copied in the order of its index")
            content = layout.project(k)
            index = index.copy()
            index[chosen] = np.arange(len(offsets))
        contents.append(nested_of(_walk(content, copy)))
    codes = ",".join(map(str, range(len(contents))))
    names = tuple(map(str, range(len(contents))))
    return make("opaque", len(layout), meaning=f"+ud:{codes}", buffers=(asarray(tags), asarray(index)), copy=copy,
                parts=tuple(map(unwrap_flat, contents)), names=names)  # fmt: skip


_IMPORTERS: dict[str, Callable[[Any, bool | None], Any]] = {
    "BitMaskedArray": _bit_masked,
    "ByteMaskedArray": _by_mask,
    "EmptyArray": _nulls,
    "IndexedArray": _import_indexed,
    "IndexedOptionArray": _option,
    "ListArray": _list_array,
    "ListOffsetArray": _list,
    "NumpyArray": _numbers,
    "RecordArray": _record,
    "RegularArray": _regular,
    "UnionArray": _union,
    "UnmaskedArray": lambda layout, copy: _walk(layout.content, copy),
}
