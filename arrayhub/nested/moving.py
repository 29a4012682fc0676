"""NestedArrays elsewhere or in another form: on another device, as one of several chunks, longer offsets, as views.

What is moved is what the array reaches and no more: rows of a slice, not the content that they lie in. Each buffer is
one copy.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arrayhub._core.device import CPU, Device
from arrayhub.conversion import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    covered,
    is_on_host,
    make,
    nested_of,
    part,
    register,
    sized,
    unpacked,
    valid_mask,
)
from arrayhub.nested.strings import with_offsets, with_views
from arrayhub.runtimes.sycl import named_queue

_BY_OFFSETS = ("list", "string", "bytes")
_VIEWS = ("string_view", "bytes_view")


# ------------------------------------------------------------------------------------------------------------- devices


def to_host(x: NestedArray) -> NestedArray:
    """Return `x` where the host can read it; see `NestedArray.to_host`."""
    return x if is_on_host(x) else moved(x, lambda array: array.to_host())


def to_device(x: NestedArray, device: Any) -> NestedArray:
    """Return `x` on a device; see `NestedArray.to_device`."""
    target = device if isinstance(device, Device) else Device(device)
    if target == x.device and named_queue(device) is None:
        return x
    return to_host(x) if target == CPU else moved(x, lambda array: array.to_device(device))


def moved(node: Any, move: Callable[[Any], Any]) -> Any:
    """Return what a node reaches, each of its arrays moved once."""
    if not isinstance(node, NestedArray):
        return move(node)
    if node.kind in _VIEWS:
        return moved(with_offsets(node), move)
    validity, bit = _from_the_first_bit(node)
    facts: dict[str, Any] = {"width": node.width, "meaning": node.meaning, "bit": bit}
    if validity is not None:
        facts["validity"] = move(validity)
    if node.kind in _BY_OFFSETS:
        facts |= _moved_rows(node, move)
    elif node.kind == "list_view":
        facts |= _moved_list_views(node, move)
    elif node.kind == "record":
        facts |= {
            "names": tuple(node.fields),
            "parts": tuple(moved(field, move) for field in node.fields.values()),
        }
    else:
        facts["content"] = moved(node.content, move)
        if node.kind == "categorical":
            facts["indices"] = move(node.indices)
    return make(node.kind, len(node), **facts)


def _from_the_first_bit(node: NestedArray) -> tuple[Any, int]:
    """A bitmap that starts with a byte: of what lies elsewhere afterwards, nothing is in front."""
    first = node.validity_offset
    if node.validity is None or first == 0 or node.kind == "bits":
        return node.validity, first
    bits = np.unpackbits(_numbers(node.validity), bitorder="little")[first : first + len(node)]
    return bitmap_of(bits), 0


def _numbers(array: Any) -> Any:
    return as_numpy(array.to_host())


def _moved_rows(node: NestedArray, move: Callable[[Any], Any]) -> dict[str, Any]:
    """Offsets that start at 0, and the content from the first to the last."""
    offsets = _numbers(node.offsets)
    start, stop = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    content = node.content
    if node.kind != "list" and content.size < stop:  # characters, whose number only the offsets knew
        content = sized(content, stop)
    on_host = make(node.kind, len(offsets) - 1, offsets=asarray(offsets), content=content) if len(offsets) else None
    if on_host is not None:
        check(on_host)
    from_zero = offsets if start == 0 else offsets - offsets.dtype.type(start)  # on the host by now, whose copy will do
    return {"offsets": move(asarray(from_zero)), "content": moved(part(content, start, stop), move)}


def _moved_list_views(node: NestedArray, move: Callable[[Any], Any]) -> dict[str, Any]:
    starts, sizes = _numbers(node.offsets), _numbers(node.sizes)
    check(make("list_view", len(node), offsets=asarray(starts), sizes=asarray(sizes), content=node.content))
    used = sizes > 0
    start = int(starts[used].min()) if used.any() else 0
    stop = int((starts + sizes)[used].max()) if used.any() else 0
    firsts = np.where(used, starts - starts.dtype.type(start), 0).astype(starts.dtype)
    return {
        "offsets": move(asarray(firsts)),
        "sizes": move(asarray(sizes)),
        "content": moved(part(node.content, start, stop), move),
    }


# ------------------------------------------------------------------------------------------------------- another form


def with_wide_offsets(x: NestedArray) -> NestedArray:
    """Return lists with offsets of eight bytes that start at 0, on the same content."""
    offsets = _numbers(x.offsets)
    start, stop = int(offsets[0]), int(offsets[-1])
    check(x if is_on_host(x.offsets) else make("list", len(x), offsets=asarray(offsets), content=x.content))
    wide = x.offsets
    if start != 0 or offsets.dtype != np.int64:
        wide = asarray(offsets.astype(np.int64) - start)
        if x.offsets.device != CPU:
            wide = wide.to_device(x.offsets.device)
    return make("list", len(x), offsets=wide, content=part(x.content, start, stop), validity=x.validity,
                bit=x.validity_offset)  # fmt: skip


def conform(node: Any, described: tuple[str, list[Any]]) -> Any:
    """Return a node as near to a requested type as can be had without a copy of its content.

    Lists and strings get offsets of eight bytes, strings become views, where that is asked for. All else stays.
    """
    text, children = described
    if not isinstance(node, NestedArray):
        return node
    if text in ("+L", "U", "Z") and node.kind in _BY_OFFSETS and node.offsets.itemsize == 4:
        wide = asarray(_numbers(node.offsets).astype(np.int64))
        node = make(node.kind, len(node), offsets=wide, content=node.content, validity=node.validity,
                    bit=node.validity_offset)  # fmt: skip
    elif text in ("vu", "vz") and node.kind in ("string", "bytes"):
        node = with_views(node)
    if node.kind == "list" and children:
        content = conform(node.content, children[0])
        node = make("list", len(node), offsets=node.offsets, content=content, validity=node.validity,
                    bit=node.validity_offset)  # fmt: skip
    elif node.kind == "record" and len(children) == len(node.fields):
        parts = tuple(conform(field, child) for field, child in zip(node.fields.values(), children, strict=True))
        node = make("record", len(node), names=tuple(node.fields), parts=parts, validity=node.validity,
                    bit=node.validity_offset)  # fmt: skip
    return node


def as_polars_has_it(node: Any) -> Any:
    """Return a node with what polars shares: offsets of eight bytes, and strings by views into the same characters."""
    if not isinstance(node, NestedArray):
        return node
    facts: dict[str, Any] = {"validity": node.validity, "bit": node.validity_offset}
    if node.kind in ("string", "bytes"):
        return with_views(node)
    if node.kind == "list":
        check(node)
        wide = node.offsets if node.offsets.itemsize == 8 else asarray(_numbers(node.offsets).astype(np.int64))
        return make("list", len(node), offsets=wide, content=as_polars_has_it(node.content), **facts)
    if node.kind == "list_view":
        return as_polars_has_it(_in_order(node))
    if node.kind == "record":
        parts = tuple(as_polars_has_it(field) for field in node.fields.values())
        return make("record", len(node), names=tuple(node.fields), parts=parts, **facts)
    return node


def with_days(node: Any) -> Any:
    """Return what `concatenate` gives with Arrow's days of four bytes in place of NumPy's of eight; NaT is missing.

    Raises
    ------
    BufferError
        A day lies beyond four bytes.
    """
    if not isinstance(node, NestedArray):
        return _days(node) if _is_of_days(node) else node
    facts: dict[str, Any] = {"validity": node.validity, "bit": node.validity_offset}
    if node.kind == "flat" and _is_of_days(node.content):
        return covered(_days(node.content), node.validity, node.validity_offset)
    if node.kind == "list":
        return make("list", len(node), offsets=node.offsets, content=with_days(node.content), **facts)
    if node.kind == "regular":
        return make("regular", len(node), width=node.width, content=with_days(node.content), **facts)
    if node.kind == "record":
        parts = tuple(with_days(field) for field in node.fields.values())
        return make("record", len(node), names=tuple(node.fields), parts=parts, **facts)
    if node.kind == "categorical":
        facts |= {"meaning": node.meaning, "indices": node.indices}
        return make("categorical", len(node), content=with_days(node.content), **facts)
    return node


def _is_of_days(array: Any) -> bool:
    return array.dtype.kind == "M" and np.datetime_data(array.dtype) == ("D", 1)


def _days(array: Any) -> NestedArray:
    """Days of eight bytes as nodes of four, the dimensions after the first as rows of one length."""
    numbers = np.ascontiguousarray(as_numpy(array).reshape(-1), "M8[D]").view(np.int64)
    there = numbers != np.iinfo(np.int64).min
    numbers = np.where(there, numbers, 0)
    beyond = numbers[numbers != numbers.astype(np.int32)]
    if len(beyond):
        raise BufferError(
            f"Arrow: day {beyond[0]} since 1970 is beyond the four bytes of date32. Convert them first, by"
            " x.astype('M8[s]')"
        )
    validity = None if there.all() else bitmap_of(there)
    node = make("flat", len(numbers), content=asarray(numbers.astype(np.int32)), meaning="tdD", validity=validity)
    for axis in range(array.ndim - 1, 0, -1):
        node = make("regular", math.prod(array.shape[:axis]), width=array.shape[axis], content=node)
    return node


# ---------------------------------------------------------------------------------------------------------- one of many


def concatenate(chunks: Sequence[NestedArray]) -> NestedArray:
    """Return the elements of several arrays of one type as one, a copy in host memory, of what they reach.

    Raises
    ------
    TypeError
        The chunks are of several types.
    """
    return nested_of(_joined([to_host(chunk) for chunk in chunks]))


def _joined(nodes: list[Any]) -> Any:
    nodes = [nested_of(node) for node in nodes]
    nodes = [_in_order(node) if node.kind == "list_view" else node for node in nodes]
    nodes = [with_offsets(node) if node.kind in _VIEWS else node for node in nodes]
    nodes = _of_one_form(nodes)
    kinds = {(node.kind, node.width, node.meaning) for node in nodes}
    if len(kinds) != 1:
        raise TypeError(f"asnested: chunks of several types, {', '.join(sorted(str(node.type) for node in nodes))}")
    first, length = nodes[0], sum(map(len, nodes))
    for node in nodes:
        check(node)
    mask = np.concatenate([valid_mask(node) for node in nodes])
    facts: dict[str, Any] = {"validity": None if mask.all() else bitmap_of(mask), "meaning": first.meaning}
    if first.kind == "flat":
        content = asarray(np.ascontiguousarray(np.concatenate([as_numpy(node.content) for node in nodes])))
        return content if facts["validity"] is None and first.meaning is None else make("flat", length, content=content,
                                                                                       **facts)  # fmt: skip
    if first.kind == "bits":
        bits = np.concatenate([as_numpy(unpacked(node)) for node in nodes])
        return make("bits", length, content=bitmap_of(bits), **facts)
    if first.kind in _BY_OFFSETS:
        return make(first.kind, length, **_joined_rows(nodes), **facts)
    if first.kind == "regular":
        return make("regular", length, width=first.width, content=_joined([node.content for node in nodes]), **facts)
    if first.kind == "record":
        columns = zip(*(node.fields.values() for node in nodes), strict=True)
        return make(
            "record", length, names=tuple(first.fields), parts=tuple(_joined(list(c)) for c in columns), **facts
        )
    return _joined_categories(nodes, length, facts)


def _of_one_form(nodes: list[NestedArray]) -> list[NestedArray]:
    """Rows of one length are dimensions of numbers where none is missing, and regular nodes elsewhere."""
    if all(node.kind != "regular" for node in nodes):
        return nodes
    return [_regular(node) if node.kind == "flat" and node.content.ndim > 1 else node for node in nodes]


def _regular(node: NestedArray) -> NestedArray:
    length, width, *rest = node.content.shape
    rows = asarray(np.reshape(as_numpy(node.content), (length * width, *rest)))
    return make("regular", length, width=width, content=rows, validity=node.validity, bit=node.validity_offset)


def _joined_rows(nodes: list[NestedArray]) -> dict[str, Any]:
    ends, parts, total = [np.zeros(1, np.int64)], [], 0
    for node in nodes:
        offsets = as_numpy(node.offsets).astype(np.int64)
        ends.append(offsets[1:] - offsets[0] + total)
        parts.append(part(node.content, int(offsets[0]), int(offsets[-1])))
        total += int(offsets[-1] - offsets[0])
    wide = np.concatenate(ends)
    narrow = nodes[0].offsets.itemsize == 4 and total < 2**31
    return {"offsets": asarray(wide.astype(np.int32) if narrow else wide), "content": _joined(parts)}


def _joined_categories(nodes: list[NestedArray], length: int, facts: dict[str, Any]) -> NestedArray:
    """Chunks may have dictionaries of their own: they are put one after another."""
    indices, start = [], 0
    for node in nodes:
        indices.append(as_numpy(node.indices).astype(np.int64) + start)
        start += len(node.content)
    content = _joined([node.content for node in nodes])
    return make("categorical", length, indices=asarray(np.concatenate(indices)), content=content, **facts)


def _in_order(node: NestedArray) -> NestedArray:
    """Return list_views as lists one after another: a copy of the content, unless they lie so already."""
    check(node)
    starts, sizes = as_numpy(node.offsets).astype(np.int64), as_numpy(node.sizes).astype(np.int64)
    ends = np.zeros(len(node) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    first = int(starts[0]) if len(node) else 0
    if (starts - first == ends[:-1]).all():
        content, ends = node.content, ends + first
    else:
        rows = [part(node.content, start, start + size) for start, size in zip(starts, sizes, strict=True) if size]
        content = _joined(rows) if rows else part(node.content, 0, 0)
    return make("list", len(node), offsets=asarray(ends), content=content, validity=node.validity,
                bit=node.validity_offset)  # fmt: skip


in_order = _in_order
register(to_host=to_host, to_device=to_device, conform=conform)
