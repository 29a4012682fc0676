"""Export to awkward, without pyarrow: `as_awkward`."""

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import RangeRefusal, Refusal, needed
from arrayhub._core.tree import kind_of, per_kind, union_codes
from arrayhub.adapters.arrow import metadata_of_node, type_name
from arrayhub.array import casting
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import without_index
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.nested.array import (
    NestedArray,
    check_names,
    export,
    nested_of,
    unpack_bits,
    unwrap_flat,
    valid_mask,
    with_offsets,
)
from arrayhub.nested.array import check as check_offsets
from arrayhub.nested.concatenate import content_of_rows, single_chunk
from arrayhub.nested.from_awkward import CHARACTERS
from arrayhub.nested.logical_types import AWKWARD_RECORD, AWKWARD_TUPLE
from arrayhub.nested.opaque import RUNS, decode, is_null_type, is_run_end
from arrayhub.nested.to_device import find_reason, offsets_on_host, on_host, walk

if TYPE_CHECKING:
    import awkward as ak


def as_awkward(
    obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> "ak.Array":
    """Return an ``awkward.Array`` that shares the memory of `obj`, without using pyarrow.

    The index of a pandas DataFrame is not exported. Numbers, offsets, characters and validity bitmaps are shared. The
    following parts are encoded for awkward whatever `copy` says:

    - string views, packed booleans and run-end encoded arrays;
    - indices of categories, unless they are int64 and no element is missing;
    - type codes of unions, unless the code of each child is its position;
    - children of a union that awkward merges because their types have a common type, such as integers and floats. If
      awkward would round an integer, OverflowError is raised;
    - date32, which is converted to ``datetime64[D]``.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy, dtype, device, missing : optional
        As in `as_arrow`.

    Returns
    -------
    awkward.Array
        On the host. Records become records, and the columns of a table become their fields.

    Raises
    ------
    BufferError, TypeError, ValueError, OverflowError
        As in `as_arrow`. OverflowError is also raised if awkward would round an integer of a union.
    ImportError
        awkward is not installed.

    Examples
    --------
    >>> import awkward
    >>> arrayhub.as_awkward(arrayhub.asnested([[1], [2, 3]]))
    <Array [[1], [2, 3]] type='2 * var * int64'>
    """
    awkward = needed("awkward", "to create its arrays")
    obj = without_index(obj)
    if copy and dtype is None and device is None and missing is None and isinstance(obj, awkward.Array):
        check_copy(copy, "as_awkward")
        return awkward.copy(obj)
    return export("awkward", awkward, _to_awkward, obj, copy, dtype, device, missing, ("Array",))


def _to_awkward(awkward: Any, array: Any, copied: bool, obj: Any) -> Any:
    """Convert an array that was imported from `obj` to an ``awkward.Array``."""
    check(array, copied, obj)
    if isinstance(array, NestedArray) and kind_of(array).chunks:
        array = single_chunk(array, copied, "awkward", obj)
    return awkward.Array(_layout(awkward, array))


def check(array: Any, copied: bool, obj: Any) -> None:
    """Raise the error of `as_awkward` for an array, or for its copy on the host, from its types."""
    if not copied:
        on_host(array, "awkward")
        if isinstance(array, NestedArray) and kind_of(array).chunks:
            single_chunk(array, False, "awkward", obj)
    for node in walk(array):
        _check_node(node, copied)


def _check_node(node: Any, copied: bool) -> None:
    if not isinstance(node, NestedArray):
        dtype = node.dtype
        fixed = _is_bytes(dtype)
        if fixed and not copied and not node.flags["C"]:
            reason = f"elements of dtype {dtype} have byte strides {node.byte_strides}"
            raise Refusal("awkward", reason, "contiguous elements")
        if not fixed and (node.typenum >= FIRST_OWN_TYPENUM or dtype.kind not in "biufcmM" or not dtype.isnative):
            accepted = "NumPy's own numbers, booleans and times in native order"
            raise Refusal("awkward", f"dtype {dtype} is not supported", accepted)
        return
    kind = kind_of(node)
    if (kind.numbers and node.meaning not in (None, "tdm", "tdD")) or (
        kind.opaque and str(node.meaning)[:2] in ("d:", "ti")
    ):
        reason = f"{type_name(str(node.meaning))} is not supported"
        raise Refusal("awkward", reason, "numbers, booleans, dates, and times without a zone")
    if kind.fields:
        check_names(node, "awkward", error=Refusal)  # awkward accepts equal names, but its to_list loses fields
    if _is_union(node) and len(node.children) < 2:  # awkward requires two children
        raise Refusal("awkward", f"a union of {len(node.children)} types is not supported", "two or more")


def why_copied(array: Any, obj: Any) -> str:
    """Return why `as_awkward` copies a part of `array` without ``copy=True``, or "" if it does not."""
    return find_reason(array, _why_node_is_copied)


def _why_node_is_copied(node: Any) -> str:
    """Return why `as_awkward` copies the arrays of a node, or "" if it shares them."""
    if not isinstance(node, NestedArray):
        return ""
    kind = kind_of(node)
    if kind.numbers and node.meaning == "tdD":
        return "Arrow's dates of 4 bytes are converted to NumPy's dates of 8 bytes"
    if kind.packed:
        return "packed booleans are converted to one byte each"
    if kind.views:
        return "string views are converted to strings with offsets"
    if is_run_end(node):
        return RUNS
    if kind.indices and node.indices.dtype != np.int64:
        return f"the indices of categories are converted from {node.indices.dtype} to int64"
    if kind.indices and node.null_count:
        return "the indices of missing categories are replaced by -1"
    if _is_union(node) and _codes(node) != list(range(len(node.children))):
        return f"the type codes {_codes(node)} are converted to the positions of the children"
    if _is_union(node) and len({_merged_as(child) for child in node.children}) < len(node.children):
        return "awkward merges children of a union whose types have a common type"
    return ""


def _is_union(node: NestedArray) -> bool:
    return kind_of(node).opaque and str(node.meaning).startswith("+u")


def _codes(union: NestedArray) -> list[int]:
    """Return the type code of each child of a union."""
    return union_codes(str(union.meaning), len(union.children))


def _merged_as(node: Any) -> str:
    """Return the group of types of a child of a union. awkward merges children of the same group."""
    node = unwrap_flat(node) if isinstance(node, NestedArray) else node
    if isinstance(node, USMArray):
        return "numbers" if node.dtype.kind in "biufc" else str(node.dtype)
    kind = kind_of(node)
    if kind.packed or kind.numbers:
        return "numbers" if node.meaning is None else node.meaning
    return "text" if kind.utf8 else "bytes" if kind.characters else "lists" if kind.lists else node.kind


def _is_bytes(dtype: np.dtype[Any]) -> bool:
    """Return whether the elements are bytes of a fixed length, one or more."""
    return dtype.type is np.void and dtype.names is None and dtype.itemsize > 0


def _numbers(awkward: Any, x: Any) -> Any:
    return _fixed_bytes(awkward, x) if _is_bytes(x.dtype) else awkward.contents.NumpyArray(dense_as_numpy(x))


def _fixed_bytes(awkward: Any, x: Any) -> Any:
    """Return fixed-size byte strings in the layout that ``awkward.from_arrow`` creates."""
    flat = dense_as_numpy(x.reshape(-1)).view(np.uint8)
    characters = awkward.contents.NumpyArray(flat, parameters={"__array__": "byte"})
    layout = awkward.contents.RegularArray(
        characters, x.itemsize, zeros_length=x.size, parameters={"__array__": "bytestring"}
    )
    for axis in range(x.ndim - 1, 0, -1):
        layout = awkward.contents.RegularArray(layout, x.shape[axis], zeros_length=math.prod(x.shape[:axis]))
    return layout


def _layout(awkward: Any, node: Any) -> Any:
    """Return the layout of a node for which `check` raises no error."""
    if not isinstance(node, NestedArray):
        return _numbers(awkward, node)
    check_offsets(node)  # awkward does not validate offsets and indices
    layout = _LAYOUTS[node.kind](awkward, node)
    if node.validity is None or node.null_count == 0 or kind_of(node).indices:
        return layout
    if node.validity_offset:
        mask = np.packbits(valid_mask(node), bitorder="little")
    else:
        mask = dense_as_numpy(node.validity)
    return awkward.contents.BitMaskedArray(awkward.index.IndexU8(mask), layout, True, len(node), True)


def _flat(awkward: Any, node: NestedArray) -> Any:
    if node.meaning is None or node.meaning == "tdm":
        layout, name = _numbers(awkward, node.content), metadata_of_node(node).get(b"awkward.array", b"").decode()
        return layout.copy(parameters={"__array__": name}) if name in CHARACTERS else layout
    return awkward.contents.NumpyArray(dense_as_numpy(node.content).astype("M8[D]"))


def _index(awkward: Any, numbers: Any) -> Any:
    return awkward.index.Index64(numbers) if numbers.dtype == np.int64 else awkward.index.Index32(numbers)


def _list(awkward: Any, node: NestedArray) -> Any:
    return awkward.contents.ListOffsetArray(_index(awkward, offsets_on_host(node)), _layout(awkward, node.content))


def _list_view(awkward: Any, node: NestedArray) -> Any:
    starts, sizes = map(dense_as_numpy, node.buffers)
    rows = _layout(awkward, node.children[0])
    return awkward.contents.ListArray(_index(awkward, starts), _index(awkward, starts + sizes), rows)


def _text(awkward: Any, node: NestedArray) -> Any:
    if kind_of(node).views:
        node = with_offsets(node)
    of_each, of_all = ("char", "string") if kind_of(node).utf8 else ("byte", "bytestring")
    characters = awkward.contents.NumpyArray(dense_as_numpy(node.content), parameters={"__array__": of_each})
    offsets = _index(awkward, offsets_on_host(node))
    return awkward.contents.ListOffsetArray(offsets, characters, parameters={"__array__": of_all})


def _regular(awkward: Any, node: NestedArray) -> Any:
    return awkward.contents.RegularArray(_layout(awkward, node.content), node.width, zeros_length=len(node))


def _record(awkward: Any, node: NestedArray) -> Any:
    columns = [_layout(awkward, field) for field in node.children]
    meaning = node.meaning or ""
    parameters = json.loads(meaning.partition(":")[2]) if meaning.startswith((AWKWARD_TUPLE, AWKWARD_RECORD)) else None
    names = None if meaning.startswith(AWKWARD_TUPLE) else list(node.field_names)
    return awkward.contents.RecordArray(columns, names, length=len(node), parameters=parameters)


def _categorical(awkward: Any, node: NestedArray) -> Any:
    indices = dense_as_numpy(node.indices)
    if indices.dtype != np.int64:
        indices = indices.astype(np.int64)  # unsigned integers cannot represent the index -1 of a missing element
    parameters = {"__array__": "categorical"}
    content = _layout(awkward, node.content)
    if not content.is_option and (node.validity is None or node.null_count == 0):
        return awkward.contents.IndexedArray(awkward.index.Index64(indices), content, parameters=parameters)
    indices = np.where(valid_mask(node), indices, -1)
    if content.is_option:
        exists = content.mask_as_bool(valid_when=True)
        indices = np.append(np.where(exists, np.cumsum(exists) - 1, -1), -1)[indices]
        content = awkward.drop_none(content, axis=0, highlevel=False)
    return awkward.contents.IndexedOptionArray(awkward.index.Index64(indices), content, parameters=parameters)


def _opaque(awkward: Any, node: NestedArray) -> Any:
    if _is_union(node):
        return _union(awkward, node)
    if is_null_type(node):
        return _nulls(awkward, node)
    if is_run_end(node):
        return _layout(awkward, decode(node, "awkward"))
    return _list_view(awkward, node)


def _nulls(awkward: Any, node: NestedArray) -> Any:
    if not len(node):
        return awkward.contents.EmptyArray()
    index = awkward.index.Index64(np.full(len(node), -1, np.int64))
    return awkward.contents.IndexedOptionArray(index, awkward.contents.EmptyArray())


def _union(awkward: Any, node: NestedArray) -> Any:
    """Return a UnionArray. awkward requires an index, and tags equal to the positions of the children."""
    tags, *offsets = map(dense_as_numpy, node.buffers)
    codes = _codes(node)
    if codes != list(range(len(codes))):
        positions = np.zeros(128, np.int8)
        positions[codes] = np.arange(len(codes))
        tags = positions[tags]
    index = offsets[0] if offsets else np.arange(len(node), dtype=np.int64)
    contents = [_layout(awkward, child) for child in node.children]
    union = awkward.contents.UnionArray.simplified(awkward.index.Index8(tags), _index(awkward, index), contents)
    if len(getattr(union, "contents", ())) != len(contents):
        _check_merged([(nested_of(child), index[tags == k]) for k, child in enumerate(node.children)])
    return union


def _check_merged(nodes: list[tuple[NestedArray, Any]]) -> None:
    """Raise OverflowError if awkward rounds integers when it merges nodes, each given with the indices of its elements.

    awkward merges numbers to NumPy's common type, lists by their content, and records by their fields.
    """
    numbers = [(dense_as_numpy(x.content), valid_mask(x), i) for x, i in nodes if kind_of(x).numbers and not x.meaning]
    numbers = [(values, valid, indices) for values, valid, indices in numbers if values.dtype.kind in "iuf"]
    common = np.result_type(*(values.dtype for values, _, _ in numbers)) if numbers else np.dtype(np.int64)
    for values, valid, indices in numbers if common.kind == "f" else ():
        lost = casting.find_rounded(values[indices][valid[indices]], common)
        if lost is not None:
            raise RangeRefusal(
                "awkward",
                f"{lost} would be rounded, because awkward merges children of a union whose types have a common type",
                f"integers that {common} represents",
                "arrayhub.asnested(x).to_list()",
            )
    contents = [content_of_rows(x) for x, _ in nodes if kind_of(x).lists and not kind_of(x).characters]
    records = [x for x, _ in nodes if kind_of(x).fields]
    names = records[0].field_names if records else ()
    columns = [[x.fields[name] for x in records if name in x.field_names] for name in names]
    for merged in (contents, *columns):
        if len(merged) > 1:
            _check_merged([(nested_of(column), slice(None)) for column in merged])


_LAYOUTS = per_kind(
    flat=_flat,
    bits=lambda awkward, node: _numbers(awkward, unpack_bits(node)),
    list=_list,
    regular=_regular,
    string=_text,
    bytes=_text,
    string_view=_text,
    bytes_view=_text,
    record=_record,
    categorical=_categorical,
    chunked=None,  # `_to_awkward` passes the only chunk with elements
    opaque=_opaque,
)
