"""Concatenate chunks of a NestedArray."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested import opaque
from arrayhub.nested.array import (
    NestedArray,
    array_like,
    bitmap_of,
    check,
    facts_of,
    field_facts,
    is_on_host,
    make,
    nested_of,
    one_chunk,
    part,
    unpack_bits,
    valid_mask,
    with_offsets,
    with_views,
)
from arrayhub.nested.from_python import offsets_of
from arrayhub.nested.take import take
from arrayhub.nested.to_device import compact, map_arrays, offsets_on_host, to_host


def concatenate(chunks: Sequence[NestedArray]) -> NestedArray:
    """Concatenate all chunks of arrays of one type in host memory. Only referenced elements are copied.

    Raise TypeError if the chunks have several types.
    """
    return nested_of(_join_nodes([to_host(chunk) for array in chunks for chunk in array.chunks]))


def _join_nodes(nodes: Sequence[Any]) -> Any:
    """Concatenate nodes of one type. The result has the kind and offset type of the first node if the offsets fit."""
    nodes = [nested_of(node) for node in nodes]
    has_views = kind_of(nodes[0]).views
    nodes = [with_offsets(node) if kind_of(node).views else node for node in nodes]
    if any(kind_of(node).width for node in nodes):
        nodes = list(map(as_regular, nodes))
    if len({(node.kind, node.width, node.meaning) for node in nodes}) != 1:
        types = ", ".join(sorted(str(node.type) for node in nodes))
        raise TypeError(f"asnested: the chunks have several types: {types}")
    for node in nodes:
        check(node)
    first, kind = nodes[0], kind_of(nodes[0])
    if kind.opaque:
        if len(nodes) > 1:
            return opaque.concatenate(nodes)
        return map_arrays(compact(first, lambda node: as_views(with_offsets(node))), USMArray.copy)
    mask = np.concatenate(list(map(valid_mask, nodes)))
    facts: dict[str, Any] = {"validity": None, "bit": 0, "mask": mask}
    if kind.numbers:
        contents = [node.content for node in nodes]
        content = array_like(np.ascontiguousarray(np.concatenate(list(map(as_numpy, contents)))), *contents)
        facts["content"] = content
        if mask.all() and first.meaning is None and not any(field_facts(first).values()):
            return content
    elif kind.packed:
        facts["content"] = bitmap_of(np.concatenate([as_numpy(unpack_bits(node)) for node in nodes]))
    elif kind.ends:
        facts |= _joined_rows(nodes)
    elif kind.width:
        facts["content"] = _join_nodes([content_of_rows(node) for node in nodes])
    elif kind.fields:
        facts["parts"] = tuple(map(_join_nodes, zip(*(node.children for node in nodes), strict=True)))
    else:
        facts |= _joined_categories(nodes)
    joined = make(first.kind, len(mask), **(facts_of(first) | facts))
    return as_views(joined) if has_views else joined


def as_views(node: NestedArray) -> NestedArray:
    """Convert strings to string views, unless the int32 offsets of views cannot address the characters."""
    return with_views(node) if node.content.nbytes < 2**31 else node


def as_regular(node: NestedArray) -> NestedArray:
    """Convert rows of numbers to a regular node. Return other nodes unchanged.

    A chunk without missing rows can store fixed-length rows as a multidimensional array of numbers instead.
    """
    if not kind_of(node).numbers or node.content.ndim == 1:
        return node
    length, width, *rest = node.content.shape
    rows = array_like(np.reshape(as_numpy(node.content), (length * width, *rest)), node.content)
    return make("regular", length, width=width, content=rows, validity=node.validity, bit=node.validity_offset,
                **field_facts(node))  # fmt: skip


def _joined_rows(nodes: list[NestedArray]) -> dict[str, Any]:
    sizes, parts = [], []
    for node in nodes:
        offsets = offsets_on_host(node)
        sizes.append(offsets[1:] - offsets[:-1])  # faster than numpy.diff for short arrays
        parts.append(part(node.content, int(offsets[0]), int(offsets[-1])))
    return {"offsets": offsets_of(np.concatenate(sizes), nodes[0].offsets.dtype), "content": _join_nodes(parts)}


def _joined_categories(nodes: list[NestedArray]) -> dict[str, Any]:
    """Concatenate the dictionaries of the chunks without repeating a category, and convert the indices accordingly.

    The indices become int64 if the last index into the new dictionary exceeds the range of their type.
    """
    dictionaries = {id(node.content): node.content for node in nodes}
    content = _join_nodes(list(dictionaries.values()))
    starts = dict(zip(dictionaries, np.cumsum([0, *map(len, dictionaries.values())]).tolist(), strict=False))
    known: dict[Any, int] = {}
    keys = _keys_of_categories(nested_of(content), len(dictionaries) == 1)
    new = np.array([known.setdefault(key, len(known)) for key in keys] + [0])  # 0 for missing elements
    if len(known) < len(keys):
        content = take(content, np.unique(new[:-1], return_index=True)[1])
    old = [
        np.where(valid_mask(node), as_numpy(node.indices).astype(np.int64) + starts[id(node.content)], -1)
        for node in nodes
    ]
    dtype = nodes[0].indices.dtype
    fits = len(known) - 1 <= np.iinfo(dtype).max
    return {"indices": asarray(new[np.concatenate(old)].astype(dtype if fits else np.int64)), "content": content}


def _keys_of_categories(node: NestedArray, alone: bool) -> list[Any]:
    """Return a key for each category. Keys of equal categories are equal.

    The categories of the only dictionary, and lists, records and other nested categories, are not compared.
    """
    kind = kind_of(node)
    if alone or not (kind.characters or kind.numbers or kind.packed):
        return list(range(len(node)))
    return list(map(repr, node.to_list()))  # in contrast to the values, the texts of 0.0 and -0.0 differ


def content_of_rows(node: NestedArray) -> Any:
    """Return the elements of all rows of lists, in the order of the rows."""
    if kind_of(node).width:
        return part(node.content, 0, len(node) * node.width)
    offsets = offsets_on_host(node)
    return part(node.content, int(offsets[0]), int(offsets[-1]))


def single_chunk(x: NestedArray, copy: Any, library: str, obj: Any = None) -> NestedArray:
    """Return a chunked array as one array. Two or more chunks with elements require a copy.

    Return other arrays unchanged. If `obj` is a stream, the error also states that this call has read the stream.
    """
    one = one_chunk(x)
    if one is not None:
        return one
    if not copy and copy is not None:
        read = "; this call has read the stream x, so create the stream again first" if unread(obj) else ""
        raise Refusal(library, f"the array has {len(x.chunks)} chunks", f"one{read}")
    return concatenate([x]) if library in _HOST_ONLY else copied_chunk(x)


_HOST_ONLY = ("numpy", "awkward", "missing")  # exports whose copies are in host memory


def copied_chunk(x: NestedArray) -> NestedArray:
    """Return a copy of the elements that `x` references, in one chunk on the same device."""
    joined = concatenate([x])
    return joined if is_on_host(x) else joined.to_device(x.device)
