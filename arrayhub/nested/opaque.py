"""Convert the elements of opaque nodes: list views, run-end encoded arrays, unions, decimals, intervals and null.

An opaque node consists of the buffers and children of Arrow's layout, which other modules pass through. If a caller
asks for the elements of decimals, intervals and unions, pyarrow converts the node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal, TypeRefusal, missing_library_error, show
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import layout_of, type_name
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    check,
    column_name,
    cover_missing,
    field_facts,
    from_arrow,
    make,
    nested_of,
    part,
    rename_column,
    unpack_bitmap,
    unwrap_flat,
    valid_mask,
)
from arrayhub.nested.from_python import offsets_of
from arrayhub.nested.take import find_runs, take, take_rows
from arrayhub.nested.to_device import rebuild

# Why `decode` rejects the elements of an opaque type, and the call to use instead, by the start of the format.
_REFUSALS = {
    "d:": ("NumPy cannot represent Arrow's decimals", "arrayhub.as_arrow(x).cast('float64')"),
    "+u": ("the elements have several types; use x.children, which have one type each", "x.to_list()"),
    "ti": ("NumPy does not have Arrow's intervals", "x.to_list()"),
}
# Why exports copy
LIST_VIEWS = "list views are converted to lists"
RUNS = "the value of each run is repeated for its elements"


def is_null_type(node: NestedArray) -> bool:
    """Return whether a node has Arrow's type null."""
    return kind_of(node).opaque and node.meaning == "n"


def is_list_view(node: NestedArray) -> bool:
    """Return whether a node consists of list views."""
    return kind_of(node).opaque and str(node.meaning).startswith("+v")


def is_run_end(node: NestedArray) -> bool:
    """Return whether a node is run-end encoded."""
    return kind_of(node).opaque and node.meaning == "+r"


def can_decode(node: NestedArray) -> bool:
    """Return whether `decode` converts the elements of an opaque node."""
    return str(node.meaning)[:2] not in _REFUSALS


def make_rows(starts: Any, sizes: Any, content: Any, copy: bool | None = False) -> NestedArray:
    """Return lists of ``content[starts[i] : starts[i] + sizes[i]]``.

    Rows that are adjacent and in order become lists. Other rows become list views. `starts` and `sizes` are ndarrays of
    one type, int32 or int64.
    """
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    first = (starts - offsets[:-1])[sizes != 0]
    if (sizes >= 0).all() and (first == first[:1]).all():
        offsets += first[0] if len(first) else 0
        dtype = starts.dtype if offsets[-1] <= np.iinfo(starts.dtype).max else np.int64
        return make("list", len(starts), offsets=asarray(offsets.astype(dtype)), content=content, copy=copy)
    return make_list_views(asarray(starts), asarray(sizes), content, copy)


def make_list_views(starts: Any, sizes: Any, content: Any, copy: bool | None = False) -> NestedArray:
    """Return list views, see `make_rows`. `starts` and `sizes` are USMArrays of one type, int32 or int64."""
    text = "+vl" if starts.itemsize == 4 else "+vL"
    return make(
        "opaque", len(starts), meaning=text, buffers=(starts, sizes), parts=(content,), names=("item",), copy=copy
    )


def as_list_views(rows: NestedArray, like: NestedArray) -> NestedArray:
    """Convert lists to list views with the offset type of `like`, or int64 if the offsets require it."""
    ends = as_numpy(rows.offsets)
    dtype = np.int32 if like.meaning == "+vl" and ends[-1] < 2**31 else np.int64
    views = make_list_views(asarray(ends[:-1].astype(dtype)), asarray(np.diff(ends).astype(dtype)), rows.content)
    facts: dict[str, Any] = {"validity": rows.validity, "bit": rows.validity_offset, "names": like.field_names}
    return rebuild(views, **(facts | field_facts(like)))


def to_pyarrow(node: Any, call: str) -> Any:
    """Return a node in host memory as a ``pyarrow.Array``.

    Raise Refusal if pyarrow is missing, or lacks the type of the array or of its children.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise Refusal(call, f"{missing_library_error('pyarrow', 'to convert the elements', error)}") from error
    try:
        return pyarrow.array(node)
    except (pyarrow.ArrowException, KeyError) as error:
        raise Refusal(call, f"pyarrow does not support elements of {type_name(str(node.meaning))}") from error


def decode(node: NestedArray, call: str) -> NestedArray:
    """Convert list views to lists, runs to their elements, and null to missing floats, in host memory.

    Errors start with `call`, a function or a library.

    Raises
    ------
    Refusal
        The elements are decimals, intervals, or of several types.
    """
    text = str(node.meaning)
    if text == "n":
        return make("flat", len(node), content=asarray(np.full(len(node), np.nan)), mask=np.zeros(len(node), bool))
    if not can_decode(node):
        raise Refusal(call, _REFUSALS[text[:2]][0], call=_REFUSALS[text[:2]][1])
    node = node.to_host()
    check(node)
    if text == "+r":
        plain = take(*find_runs(node))
    else:
        starts, sizes = map(as_numpy, node.buffers)
        sizes = np.where(valid_mask(node), sizes, 0)
        plain = make_rows(starts, sizes, node.children[0])
        if is_list_view(plain):  # the rows are not in order
            rows = take_rows(node.children[0], starts.astype(np.int64), sizes.astype(np.int64))
            offsets = offsets_of(sizes, starts.dtype)
            plain = make("list", len(node), offsets=offsets, content=unwrap_flat(nested_of(rows)))
        plain = rebuild(plain, validity=node.validity, bit=node.validity_offset)
    if kind_of(plain).opaque and can_decode(plain):  # runs of list views, runs or nulls
        plain = decode(plain, call)
    return rename_column(plain, column_name(node))


def cover(node: NestedArray, validity: Any, bit: int) -> NestedArray:
    """Mark elements of a union or of runs as missing, for `cover_missing`. Return an array of type null unchanged."""
    if is_null_type(node):
        return node
    if is_run_end(node):
        return cover_missing(decode(node, "NestedArray"), validity, bit)
    valid = unpack_bitmap(validity, bit, len(node))
    indices = make("flat", len(node), content=asarray(np.arange(len(node))), mask=valid)
    union, places = (to_pyarrow(part, "NestedArray") for part in (node.to_host(), indices))
    return nested_of(from_arrow(union.take(places)))


def null_mask(node: NestedArray) -> Any:
    """Return a new ndarray that is True for missing elements of a node without a bitmap: a union, runs or null."""
    if is_null_type(node):
        return np.ones(len(node), bool)
    node = node.to_host()
    check(node)
    if is_run_end(node):
        values, runs = find_runs(node)
        return as_numpy(values.is_null())[runs]
    return to_pyarrow(node, "is_null").is_null().to_numpy(zero_copy_only=False)


def has_bitmap(node: NestedArray) -> bool:
    """Return whether Arrow's layout of an opaque node has a validity bitmap."""
    return bool(layout_of(str(node.meaning))[0])


def to_list(node: NestedArray) -> list[Any]:
    """Convert the elements of a validated node to Python objects."""
    if is_run_end(node):  # without `decode`, which would convert the value of a run once for each element
        values, runs = find_runs(node.to_host())
        items = values.to_list()
        return [items[run] for run in runs.tolist()]
    return decode(node, "to_list").to_list() if can_decode(node) else list(to_pyarrow(node, "to_list").to_pylist())


def element(node: NestedArray, i: int) -> Any:
    """Return an element of a validated node, as `NestedArray.__getitem__` does."""
    one = part(node, i, i + 1)
    return decode(one, "x[i]")[0] if can_decode(node) else to_list(one)[0]


def concatenate(nodes: Sequence[NestedArray]) -> NestedArray:
    """Concatenate nodes of one type by pyarrow. Raise TypeError if pyarrow cannot concatenate them."""
    arrays = [to_pyarrow(node, "asnested") for node in nodes]
    import pyarrow

    try:
        joined = nested_of(from_arrow(pyarrow.concat_arrays(arrays)))
    except pyarrow.ArrowException as error:
        raise TypeError(f"asnested: pyarrow cannot concatenate the chunks: {error}") from error
    return rebuild(joined, **field_facts(nodes[0]))


def fill(node: NestedArray, value: Any) -> NestedArray:
    """Replace missing elements of decimals and intervals by pyarrow, or raise Refusal if pyarrow cannot."""
    array = to_pyarrow(node, "fill_null")
    import pyarrow

    try:
        filled = array.fill_null(value)
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        reason = f"pyarrow cannot replace missing elements of {type_name(str(node.meaning))} by {show(value)}"
        raise TypeRefusal("fill_null", reason) from error
    return rebuild(nested_of(from_arrow(filled)), **field_facts(node))
