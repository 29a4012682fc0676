"""Copy NestedArrays to another device.

Only elements that the array references are copied. For a slice, the content of rows outside the slice is not copied.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.tree import kind_of
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    field_facts,
    is_on_host,
    make,
    part,
    sized,
    with_offsets,
)
from arrayhub.runtimes.sycl import named_queue


def to_host(x: NestedArray) -> NestedArray:
    """Return `x` in memory that the host can read. See `NestedArray.to_host`."""
    return x if is_on_host(x) else moved(x, lambda array: array.to_host())


def to_device(x: NestedArray, device: Any) -> NestedArray:
    """Return `x` on a device. See `NestedArray.to_device`."""
    target = device if isinstance(device, Device) else Device(device)
    if target == x.device and named_queue(device) is None:
        return x
    return to_host(x) if target == CPU else moved(x, lambda array: array.to_device(device))


def moved(node: Any, move: Callable[[Any], Any], views: Callable[[NestedArray], NestedArray] | None = None) -> Any:
    """Apply `move` to the referenced part of each array of a node, and return a node of the results.

    `views` converts string views. If `views` is None, string views become strings with offsets.
    """
    if not isinstance(node, NestedArray):
        return move(node)
    kind = kind_of(node)
    if kind.chunks:
        return make("chunked", len(node), parts=_moved_parts(node.chunks, move, views))
    if kind.views:
        return moved(with_offsets(node), move) if views is None else views(node)
    validity, bit = _aligned_bitmap(node)
    facts: dict[str, Any] = {"width": node.width, "meaning": node.meaning, "bit": bit, **field_facts(node)}
    if validity is not None:
        facts["validity"] = move(validity)
    if kind.ends:
        facts |= _moved_rows(node, move, views)
    elif kind.sizes:
        facts |= _moved_list_views(node, move, views)
    elif kind.all_missing:
        pass
    elif kind.runs:
        ends, values = reached_runs(node)
        facts |= {"run_ends": move(asarray(ends)), "content": moved(values, move, views)}
    elif kind.types:
        facts |= _moved_union(node, move, views)
    elif kind.fields:
        facts |= {"names": node.field_names, "parts": _moved_parts(node.children, move, views)}
    else:
        facts["content"] = moved(node.content, move, views)
        if kind.indices:
            facts["indices"] = move(node.indices)
    return make(node.kind, len(node), **facts)


def _moved_parts(nodes: tuple[Any, ...], move: Callable[[Any], Any], views: Any) -> tuple[Any, ...]:
    # Not a generator, because CPython 3.11 leaks the arguments of a generator if it cannot allocate the closure.
    parts = []
    for node in nodes:
        parts.append(moved(node, move, views))
    return tuple(parts)


def _aligned_bitmap(node: NestedArray) -> tuple[Any, int]:
    """Return a bitmap that starts at a byte boundary, and its bit offset, which is 0 unless the content is packed."""
    first = node.validity_offset
    if node.validity is None or first == 0 or kind_of(node).packed:
        return node.validity, first
    bits = np.unpackbits(_numbers(node.validity), bitorder="little")[first : first + len(node)]
    return bitmap_of(bits), 0


def _numbers(array: Any) -> Any:
    return as_numpy(array.to_host())


def offsets_on_host(node: NestedArray) -> Any:
    """Return the offsets of a node as an ndarray. If the array of offsets is empty, return a single 0."""
    offsets = _numbers(node.offsets)
    return offsets if len(offsets) else np.zeros(1, offsets.dtype)


def _moved_rows(node: NestedArray, move: Callable[[Any], Any], views: Any) -> dict[str, Any]:
    """Move the content from the first to the last row, and the offsets, which are shifted to start at 0."""
    offsets = offsets_on_host(node)
    start, stop = int(offsets[0]), int(offsets[-1])
    content = node.content
    if kind_of(node).characters and content.size < stop:  # an import from a device does not know the size; see `sized`
        content = sized(content, stop)
    check(make(node.kind, len(node), offsets=asarray(offsets), content=content))
    from_zero = offsets if start == 0 else offsets - offsets.dtype.type(start)
    return {"offsets": move(asarray(from_zero)), "content": moved(part(content, start, stop), move, views)}


def _moved_union(node: NestedArray, move: Callable[[Any], Any], views: Any) -> dict[str, Any]:
    """Move the type codes, the referenced part of each child, and the offsets, which are shifted accordingly."""
    facts: dict[str, Any] = {"names": node.field_names, "type_codes": move(node.type_codes)}
    children = node.children
    if node.offsets is not None:
        codes, offsets = _numbers(node.type_codes), _numbers(node.offsets).copy()
        check(make("union", len(node), type_codes=asarray(codes), offsets=asarray(offsets), parts=children,
                   names=node.field_names, meaning=node.meaning))  # fmt: skip
        children = tuple(
            _reached(child, offsets, codes == code) for code, child in zip(type_codes(node), children, strict=True)
        )
        facts["offsets"] = move(asarray(offsets))
    parts = []
    for child in children:
        parts.append(moved(child, move, views))
    return facts | {"parts": tuple(parts)}


def _reached(child: Any, offsets: Any, rows: Any) -> Any:
    """Return the part of a union's child that `rows` reference. Shift the offsets of `rows` in place to start at 0."""
    if not rows.any():
        return part(child, 0, 0)
    first, last = int(offsets[rows].min()), int(offsets[rows].max())
    offsets[rows] -= first
    return part(child, first, last + 1)


def reached_runs(node: NestedArray) -> tuple[Any, Any]:
    """Return the ends and the values of the runs that a node references. Ends are relative to the first element."""
    ends = _numbers(node.run_ends)
    check(make("run_end", len(node), run_ends=asarray(ends), content=node.content, skip=node.run_offset))
    if not len(node):
        return ends[:0], part(node.content, 0, 0)
    ends, skip = ends.astype(np.int64), node.run_offset
    first, last = (int(np.searchsorted(ends, skip + k, side="right")) for k in (0, len(node) - 1))
    inside = np.minimum(ends[first : last + 1] - skip, len(node))
    return inside.astype(node.run_ends.dtype), part(node.content, first, last + 1)


def type_codes(node: NestedArray) -> list[int]:
    """Return the type code of each child of a union, from a format such as ``+ud:0,5``."""
    listed = node.meaning[4:] if node.meaning is not None else ""
    return [int(code) for code in listed.split(",")] if listed else []


def _moved_list_views(node: NestedArray, move: Callable[[Any], Any], views: Any) -> dict[str, Any]:
    starts, sizes = _numbers(node.offsets), _numbers(node.sizes)
    check(make("list_view", len(node), offsets=asarray(starts), sizes=asarray(sizes), content=node.content))
    used = sizes > 0
    start = int(starts[used].min()) if used.any() else 0
    stop = int((starts + sizes)[used].max()) if used.any() else 0
    firsts = np.where(used, starts - starts.dtype.type(start), 0).astype(starts.dtype)
    return {
        "offsets": move(asarray(firsts)),
        "sizes": move(asarray(sizes)),
        "content": moved(part(node.content, start, stop), move, views),
    }
