"""Take elements of a NestedArray by their indices, as ``pyarrow.Array.take`` does, without pyarrow."""

from typing import Any

import numpy as np

from arrayhub._core.tree import kind_of, union_codes
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    array_like,
    bitmap_of,
    check,
    facts_of,
    gather_rows,
    make,
    nested_of,
    part,
    unpack_bits,
    valid_mask,
)
from arrayhub.nested.from_python import offsets_of
from arrayhub.nested.to_device import offsets_on_host


def take(node: Any, rows: Any) -> Any:
    """Return a copy of the elements of a node or an array in host memory at the indices `rows`, an ndarray.

    The result has the type of `node`, but its offsets become int64 if they do not fit in int32. Such lists lose their
    logical type, for example that of a map.
    """
    if not isinstance(node, NestedArray):
        return array_like(as_numpy(node)[rows], node)
    check(node)
    kind, facts = kind_of(node), facts_of(node)
    facts["bit"] = 0
    if node.validity is not None:
        facts |= {"validity": None, "mask": valid_mask(node)[rows]}
    if kind.packed:
        facts["content"] = bitmap_of(as_numpy(unpack_bits(node))[rows])
    elif kind.numbers or kind.views:
        facts["content"] = take(node.content, rows)
    elif kind.indices:
        facts["indices"] = take(node.indices, rows)
    elif kind.fields:
        facts["parts"] = tuple(take(field, rows) for field in node.children)
    elif kind.opaque:
        facts |= _take_opaque(node, rows)
    else:
        starts, sizes = (spans[rows] for spans in spans_of(node))
        facts["content"] = take_rows(node.content, starts, sizes)
        if kind.ends:
            facts["offsets"] = offsets_of(sizes, node.offsets.dtype)
            facts["meaning"] = node.meaning if facts["offsets"].dtype == node.offsets.dtype else None
    return make(node.kind, len(rows), **facts)


def _take_opaque(node: NestedArray, rows: Any) -> dict[str, Any]:
    """Return the buffers and children of elements of an opaque node, see `take`."""
    meaning, children = str(node.meaning), node.children
    if meaning == "+r":  # one run for each element
        values, runs = find_runs(node)
        ends = np.arange(1, len(rows) + 1)
        dtype = children[0].dtype if len(rows) <= np.iinfo(children[0].dtype).max else np.dtype(np.int64)
        return {"parts": (asarray(ends.astype(dtype)), take(values, runs[rows])), "skip": 0}
    buffers = [as_numpy(buffer)[rows] for buffer in node.buffers]
    if meaning[:3] == "+us":
        children = tuple(take(child, rows) for child in children)
    if meaning[:3] == "+ud":  # the offsets of a child must not decrease
        types, offsets = buffers
        for k, code in enumerate(union_codes(meaning, len(children))):
            chosen = types == code
            children = (*children[:k], take(children[k], offsets[chosen]), *children[k + 1 :])
            offsets[chosen] = np.arange(np.count_nonzero(chosen))
    return {"parts": children, "buffers": tuple(map(asarray, buffers))}


def spans_of(node: NestedArray) -> tuple[Any, Any]:
    """Return the start in the content, and the length, of each row or string, as int64."""
    if kind_of(node).width:
        return np.arange(len(node)) * node.width, np.full(len(node), node.width)
    offsets = offsets_on_host(node).astype(np.int64)
    return offsets[:-1].copy(), np.diff(offsets)


def take_rows(content: Any, starts: Any, sizes: Any) -> Any:
    """Return a copy of the elements of rows of a content, one row after another. `starts` and `sizes` are int64."""
    if not isinstance(content, NestedArray):
        return array_like(gather_rows(np.ascontiguousarray(as_numpy(content)), starts, sizes), content)
    ends = np.cumsum(sizes)
    indices = np.repeat(starts - ends + sizes, sizes)
    indices += np.arange(len(indices))
    return take(content, indices)


def find_runs(node: NestedArray) -> tuple[NestedArray, Any]:
    """Return the values of the runs, and for each element the index of its run."""
    ends, values = node.children
    runs = np.searchsorted(as_numpy(ends).astype(np.int64), node.run_offset + np.arange(len(node)), side="right")
    runs = np.minimum(runs, len(ends) - 1)  # the producer may change the run ends after their validation
    return nested_of(part(values, 0, len(ends))), runs
