"""Concatenate chunks of a NestedArray, and rows of its content."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from arrayhub._core.tree import kind_of
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested import opaque
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
from arrayhub.nested.to_device import moved, offsets_on_host, to_host


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
    if kind_of(nodes[0]).views:
        return as_views(_joined_in_order([with_offsets(node) for node in nodes]))
    return _joined_in_order(nodes)


def _copy(array: Any) -> Any:
    return array.copy()


def as_views(node: NestedArray) -> NestedArray:
    """Convert strings to string views, unless the int32 offsets of views cannot address the characters."""
    return with_views(node) if node.content.nbytes < 2**31 else node


def _joined_in_order(nodes: list[Any]) -> Any:
    nodes = [with_offsets(node) if kind_of(node).views else node for node in nodes]
    nodes = _with_equal_kinds(nodes)
    kinds = {(node.kind, node.width, node.meaning) for node in nodes}
    if len(kinds) != 1:
        types = ", ".join(sorted(str(node.type) for node in nodes))
        raise TypeError(f"asnested: the chunks have several types: {types}")
    first, length = nodes[0], sum(map(len, nodes))
    for node in nodes:
        check(node)
    if kind_of(first).opaque:
        return opaque.concatenate(nodes) if len(nodes) > 1 else moved(first, _copy, lambda node: _joined([node]))
    mask = np.concatenate([valid_mask(node) for node in nodes]) if any(map(_may_miss, nodes)) else None
    facts: dict[str, Any] = {
        "validity": None if mask is None or mask.all() else bitmap_of(mask),
        "meaning": first.meaning,
        **field_facts(first),
    }
    kind = kind_of(first)
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
    return _joined_categories(nodes, length, facts)


def _may_miss(node: NestedArray) -> bool:
    return node.validity is not None


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


def content_of_rows(node: NestedArray) -> Any:
    """Return the elements of all rows of lists, in the order of the rows."""
    if kind_of(node).width:
        return node.content
    offsets = offsets_on_host(node)
    return part(node.content, int(offsets[0]), int(offsets[-1]))


def gather_rows(content: Any, starts: Any, sizes: Any) -> Any:
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
