"""Concatenate chunks of a NestedArray, and convert list views to lists."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal
from arrayhub._core.tree import kind_of
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    array_like,
    bitmap_of,
    check,
    field_facts,
    make,
    nested_of,
    part,
    unpacked,
    valid_mask,
    with_offsets,
    with_views,
)
from arrayhub.nested.to_device import offsets_on_host, reached_runs, to_host, type_codes


def concatenate(chunks: Sequence[NestedArray]) -> NestedArray:
    """Concatenate all chunks of arrays of one type in host memory. Only referenced elements are copied.

    Raises
    ------
    TypeError
        The chunks have several types.
    """
    return nested_of(_joined([to_host(chunk) for array in chunks for chunk in array.chunks]))


def _joined(nodes: list[Any]) -> Any:
    """Concatenate nodes of one type. The result has the kind and offset type of the first node if the offsets fit."""
    nodes = [nested_of(node) for node in nodes]
    kind = kind_of(nodes[0])
    if kind.sizes:
        return as_list_views(_joined_in_order([in_order(node) for node in nodes]), nodes[0].offsets.dtype)
    if kind.views:
        return as_views(_joined_in_order([with_offsets(node) for node in nodes]))
    return _joined_in_order(nodes)


def as_views(node: NestedArray) -> NestedArray:
    """Convert strings to string views, unless the int32 offsets of views cannot address the characters."""
    return with_views(node) if node.content.nbytes < 2**31 else node


def as_list_views(node: NestedArray, dtype: Any) -> NestedArray:
    """Convert lists to list views with offsets of `dtype`, or of int64 if the offsets do not fit `dtype`."""
    offsets = as_numpy(node.offsets)
    offsets = offsets if offsets[-1] > np.iinfo(dtype).max else offsets.astype(dtype)
    starts, sizes = asarray(offsets[:-1]), asarray(np.diff(offsets))
    return make("list_view", len(node), offsets=starts, sizes=sizes, content=node.content, validity=node.validity,
                bit=node.validity_offset, **field_facts(node))  # fmt: skip


def _joined_in_order(nodes: list[Any]) -> Any:
    nodes = [in_order(node) if kind_of(node).sizes else node for node in nodes]
    nodes = [with_offsets(node) if kind_of(node).views else node for node in nodes]
    nodes = _with_equal_kinds(nodes)
    kinds = {(node.kind, node.width, node.meaning) for node in nodes}
    if len(kinds) != 1:
        types = ", ".join(sorted(str(node.type) for node in nodes))
        raise TypeError(f"asnested: the chunks have several types: {types}")
    first, length = nodes[0], sum(map(len, nodes))
    for node in nodes:
        check(node)
    mask = np.concatenate([valid_mask(node) for node in nodes]) if any(map(_may_miss, nodes)) else None
    facts: dict[str, Any] = {
        "validity": None if mask is None or mask.all() else bitmap_of(mask),
        "meaning": first.meaning,
        **field_facts(first),
    }
    kind = kind_of(first)
    if kind.all_missing:
        return make("null", length, **field_facts(first))
    if kind.runs:
        return _joined_runs(nodes, length)
    if kind.numbers:
        contents = [node.content for node in nodes]
        content = array_like(np.ascontiguousarray(np.concatenate(list(map(as_numpy, contents)))), *contents)
        if facts["validity"] is None and first.meaning is None and not any(field_facts(first).values()):
            return content
        return make(first.kind, length, content=content, **facts)
    if kind.packed:
        bits = np.concatenate([as_numpy(unpacked(node)) for node in nodes])
        return make("bits", length, content=bitmap_of(bits), **facts)
    if kind.ends:
        return make(first.kind, length, **_joined_rows(nodes), **facts)
    if kind.width:
        return make("regular", length, width=first.width, content=_joined([node.content for node in nodes]), **facts)
    if kind.fields:
        columns = zip(*(node.children for node in nodes), strict=True)
        return make("record", length, names=first.field_names, parts=tuple(_joined(list(c)) for c in columns), **facts)
    if kind.types:
        return _joined_unions(nodes, length, first)
    return _joined_categories(nodes, length, facts)


def _may_miss(node: NestedArray) -> bool:
    return node.validity is not None


def _joined_runs(nodes: list[NestedArray], length: int) -> NestedArray:
    """Concatenate runs. The run ends become int64 if `length` exceeds the range of their type."""
    ends, values, start = [], [], 0
    for node in nodes:
        own, content = reached_runs(node)
        ends.append(own.astype(np.int64) + start)
        values.append(content)
        start += len(node)
    dtype = nodes[0].run_ends.dtype
    run_ends = np.concatenate(ends).astype(dtype if length <= np.iinfo(dtype).max else np.int64)
    return make("run_end", length, run_ends=asarray(run_ends), content=_joined(values), **field_facts(nodes[0]))


def _joined_unions(nodes: list[NestedArray], length: int, first: NestedArray) -> NestedArray:
    """Concatenate the children of unions, and shift the offsets of dense unions accordingly."""
    codes = np.concatenate([as_numpy(node.type_codes) for node in nodes])
    offsets = None
    if first.offsets is not None:
        shifted = []
        starts = dict.fromkeys(type_codes(first), 0)
        for node in nodes:
            own, places = as_numpy(node.type_codes), as_numpy(node.offsets).astype(np.int64)
            for code, child in zip(type_codes(first), node.children, strict=True):
                places[own == code] += starts[code]
                starts[code] += len(child)
            shifted.append(places)
        if max(starts.values(), default=0) > np.iinfo(np.int32).max:
            raise Refusal(
                "asnested",
                "the children of the unions have 2**31 elements or more in total; accepted: fewer, because"
                " the offsets of Arrow's unions are int32",
            )
        offsets = asarray(np.concatenate(shifted).astype(np.int32))
    parts = tuple(_joined(list(children)) for children in zip(*(node.children for node in nodes), strict=True))
    return make("union", length, type_codes=asarray(codes), offsets=offsets, parts=parts, names=first.field_names,
                meaning=first.meaning, **field_facts(first))  # fmt: skip


def _with_equal_kinds(nodes: list[NestedArray]) -> list[NestedArray]:
    """Convert chunks of fixed-length rows to regular nodes if any chunk is a regular node.

    A chunk without missing rows can store fixed-length rows as a multidimensional array of numbers instead.
    """
    if not any(kind_of(node).width for node in nodes):
        return nodes
    return [_regular(node) if kind_of(node).numbers and node.content.ndim > 1 else node for node in nodes]


def _regular(node: NestedArray) -> NestedArray:
    length, width, *rest = node.content.shape
    rows = array_like(np.reshape(as_numpy(node.content), (length * width, *rest)), node.content)
    facts = field_facts(node)
    items = facts.pop("child_fields") or ()
    if items[1:]:
        rows = make("flat", length * width, content=rows, child_fields=items[1:])
    return make("regular", length, width=width, content=rows, validity=node.validity, bit=node.validity_offset,
                child_fields=items[:1] or None, **facts)  # fmt: skip


def _joined_rows(nodes: list[NestedArray]) -> dict[str, Any]:
    ends, parts, total = [np.zeros(1, np.int64)], [], 0
    for node in nodes:
        offsets = offsets_on_host(node).astype(np.int64)
        ends.append(offsets[1:] - offsets[0] + total)
        parts.append(part(node.content, int(offsets[0]), int(offsets[-1])))
        total += int(offsets[-1] - offsets[0])
    wide = np.concatenate(ends)
    narrow = nodes[0].offsets.itemsize == 4 and total < 2**31
    return {"offsets": asarray(wide.astype(np.int32) if narrow else wide), "content": _joined(parts)}


def _joined_categories(nodes: list[NestedArray], length: int, facts: dict[str, Any]) -> NestedArray:
    """Concatenate the dictionaries of the chunks without repeating a category, and convert the indices accordingly.

    If all dictionaries are equal, the result has this dictionary. The indices become int64 if the last index into the
    new dictionary exceeds the range of their type.
    """
    encodings: list[tuple[Any, ...]] = []
    contents: dict[tuple[Any, ...], Any] = {}
    distinct: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # so that equal encodings are kept only once
    for k, node in enumerate(nodes):
        same = k and node.content is nodes[k - 1].content
        encoding = encodings[-1] if same else _encoding(node.content)
        encodings.append(distinct.setdefault(encoding, encoding))
        contents.setdefault(encodings[-1], node.content)
    content, positions = _unified(contents)
    indices = [
        positions[encoding][np.where(valid_mask(node), as_numpy(node.indices).astype(np.int64), -1)]
        for encoding, node in zip(encodings, nodes, strict=True)
    ]
    dtype = nodes[0].indices.dtype
    fits = len(content) - 1 <= np.iinfo(dtype).max
    joined = np.concatenate(indices).astype(dtype if fits else np.int64)
    return make("categorical", length, indices=asarray(joined), content=content, **facts)


def _encoding(content: Any) -> tuple[Any, ...]:
    """Return a hashable encoding of a dictionary.

    It consists of the type and the offsets of the categories, their bytes, and a mask of valid ones. For lists, records
    and other nested categories, which are not compared, it is the identity of the dictionary.
    """
    node = nested_of(content)
    check(node)
    kind, valid = kind_of(node), valid_mask(node)
    if kind.characters:
        node = with_offsets(node) if kind.views else node
        offsets = offsets_on_host(node).astype(np.int64)
        data = as_numpy(part(node.content, int(offsets[0]), int(offsets[-1]))).tobytes()
        return (kind.utf8, node.meaning), (offsets - offsets[0]).tobytes(), data, valid.tobytes()
    if kind.numbers or kind.packed:
        values = as_numpy(unpacked(node) if kind.packed else node.content)
        offsets = np.arange(len(node) + 1) * (values.nbytes // max(len(node), 1))
        return (values.dtype.str, node.meaning), offsets.tobytes(), values.tobytes(), valid.tobytes()
    return (id(content),)


def _unified(contents: dict[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """Concatenate distinct dictionaries, the values of `contents`, and omit repeated categories.

    Return the new dictionary, and for each encoding an array of the new index of each category. The last element of
    this array is 0, for the index -1 of missing elements.
    """
    parts, positions, total = [], {}, 0
    known: dict[Any, int] = {}  # the new index of each category, by its type and bytes
    for encoding, content in contents.items():
        if len(contents) == 1 or len(encoding) == 1:
            own = np.arange(total, total + len(content))
        else:
            categories = [(encoding[0], category) for category in _categories(*encoding[1:])]
            for category in categories:
                known.setdefault(category, len(known))
            own = np.array([known[category] for category in categories], np.int64)
        added, new = np.unique(own, return_index=True)
        new = new[added >= total]  # the first place of each category that the previous dictionaries do not contain
        cuts = [0, *(np.flatnonzero(np.diff(new) != 1) + 1).tolist(), len(new)]
        parts += [part(content, int(new[start]), int(new[stop - 1]) + 1) for start, stop in pairwise(cuts) if len(new)]
        positions[encoding] = np.append(own, 0)
        total += len(new)
    return _joined(parts or [part(next(iter(contents.values())), 0, 0)]), positions


def _categories(offsets: bytes, data: bytes, valid: bytes) -> list[bytes | None]:
    """Return the bytes of each category of an encoded dictionary, or None for a missing category."""
    ends = np.frombuffer(offsets, np.int64).tolist()
    return [data[a:b] if is_valid else None for (a, b), is_valid in zip(pairwise(ends), valid, strict=True)]


def is_in_order(node: NestedArray) -> bool:
    """Return whether the rows of list views are adjacent and in order. Empty rows may start anywhere."""
    return _start_if_adjacent(*_rows(node)) is not None


def _start_if_adjacent(starts: Any, sizes: Any, ends: Any) -> int | None:
    """Return the start of the first row that has elements, or None if these rows are not adjacent and in order."""
    firsts = (starts - ends[:-1])[sizes > 0]
    if not len(firsts):
        return 0
    return int(firsts[0]) if (firsts == firsts[0]).all() else None


def _rows(node: NestedArray) -> tuple[Any, Any, Any]:
    """Return the starts and sizes of the rows of list views, and the offsets that contiguous rows would have."""
    starts, sizes = (as_numpy(array.to_host()).astype(np.int64) for array in (node.offsets, node.sizes))
    ends = np.zeros(len(node) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return starts, sizes, ends


def in_order(node: NestedArray) -> NestedArray:
    """Convert list views to lists. The content is copied unless the rows are adjacent and in order."""
    check(node)
    starts, sizes, ends = _rows(node)
    start = _start_if_adjacent(starts, sizes, ends)
    if start is not None:
        content, ends = node.content, ends + start
    else:
        content = _in_rows(node.content, starts[sizes > 0], sizes[sizes > 0])
    return make("list", len(node), offsets=asarray(ends), content=content, validity=node.validity,
                bit=node.validity_offset, **field_facts(node))  # fmt: skip


def content_of_rows(node: NestedArray) -> Any:
    """Return the elements of all rows of lists, in the order of the rows."""
    if kind_of(node).width:
        return node.content
    node = in_order(node) if kind_of(node).sizes else node
    offsets = offsets_on_host(node)
    return part(node.content, int(offsets[0]), int(offsets[-1]))


def _in_rows(content: Any, starts: Any, sizes: Any) -> Any:
    """Return the elements of rows, none of them empty, one row after another."""
    stops = starts + sizes
    first = np.flatnonzero(np.append(True, starts[1:] != stops[:-1]))  # rows that do not follow the row before them
    last = np.append(first[1:], len(starts)) - 1
    if isinstance(content, USMArray):
        lengths = stops[last] - starts[first]
        ends = np.cumsum(lengths)
        rows = np.arange(ends[-1]) + np.repeat(starts[first] - ends + lengths, lengths)
        return array_like(as_numpy(content)[rows], content)
    return _joined([part(content, a, b) for a, b in zip(starts[first].tolist(), stops[last].tolist(), strict=True)])
