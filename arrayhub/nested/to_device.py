"""Walk through the arrays of a NestedArray, and copy NestedArrays to another device.

Only elements that the array references are copied. For a slice, the content of rows outside the slice is not copied.
The children of opaque nodes, such as the values of runs, are copied in full.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import Refusal
from arrayhub._core.tree import kind_of
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    extend_array,
    facts_of,
    is_on_host,
    make,
    part,
    unwrap_flat,
    valid_mask,
    with_offsets,
)
from arrayhub.runtimes.sycl import named_queue


def to_host(x: NestedArray) -> NestedArray:
    """Return `x` in memory that the host can read. See `NestedArray.to_host`."""
    return x if is_on_host(x) else map_arrays(compact(x), lambda array: array.to_host())


def to_device(x: NestedArray, device: Any) -> NestedArray:
    """Return `x` on a device. See `NestedArray.to_device`."""
    target = device if isinstance(device, Device) else Device(device)
    if target == x.device and named_queue(device) is None:
        return x
    return to_host(x) if target == CPU else map_arrays(compact(x), lambda array: array.to_device(device))


def device_error(x: Any, library: str) -> Refusal:
    return Refusal(library, f"the memory is on {x.device}, which {library} cannot read", call="x.to_host()")


def on_host(x: Any, library: str) -> Any:
    """Return `x`, or raise Refusal if the host cannot read its memory."""
    if not is_on_host(x):
        raise device_error(x, library)
    return x


def rebuild(node: NestedArray, change: Callable[[Any], Any] = lambda part: part, **others: Any) -> NestedArray:
    """Return a new node with `change` applied to the content of `node`, or to each of its children or chunks.

    `others` are new values of other parts, such as ``offsets``. The new node shares all remaining parts.
    """
    if kind_of(node).chunks:
        return make("chunked", len(node), parts=tuple(map(change, node.chunks)))
    facts = facts_of(node)
    if kind_of(node).named:
        facts["parts"] = tuple(map(change, node.children))
    else:
        facts["content"] = change(node.content)
    return make(node.kind, len(node), **(facts | others))


def in_rows(node: NestedArray, shape: tuple[int, ...]) -> NestedArray:
    """Give a one-dimensional node a shape. Dimensions after the first become regular nodes."""
    for axis in range(len(shape) - 1, 0, -1):
        node = make("regular", math.prod(shape[:axis]), width=shape[axis], content=unwrap_flat(node))
    return node


def child_nodes(node: NestedArray) -> tuple[Any, ...]:
    """Return the chunks, fields, children or content of a node. Each is a USMArray or a NestedArray."""
    kind = kind_of(node)
    if kind.chunks or kind.named:
        return node.chunks if kind.chunks else node.children
    return (node.content,)


def walk(node: Any) -> list[Any]:
    """Return a node and all nodes and arrays below that contain its elements."""
    found = [node]
    for child in child_nodes(node) if isinstance(node, NestedArray) else ():
        found += walk(child)
    return found


def find_reason(array: Any, why: Callable[[Any], str]) -> str:
    """Return the first reason, other than "", that `why` returns for a node or an array of its elements, or ""."""
    return next(filter(None, map(why, walk(array))), "")


def map_arrays(node: Any, change: Callable[[Any], Any], build: Callable[..., Any] = make) -> Any:
    """Apply `change` to each array of a node and of the nodes below. Pass the kind, length and parts to `build`."""
    if not isinstance(node, NestedArray):
        return change(node)
    facts = facts_of(node)
    for name, fact in facts.items():
        if name in ("buffers", "parts"):
            made = []  # not a generator, whose arguments CPython 3.11 leaks if it cannot allocate the closure
            for part in fact:
                made.append(map_arrays(part, change, build))
            facts[name] = tuple(made)
        elif isinstance(fact, (NestedArray, USMArray)):
            facts[name] = map_arrays(fact, change, build)
    return build(node.kind, len(node), **facts)


def compact(node: Any, views: Callable[[NestedArray], NestedArray] | None = None) -> Any:
    """Return a node whose arrays consist of the referenced elements, and whose offsets and bitmaps start at 0.

    `views` converts string views. If `views` is None, string views become strings with offsets.
    """
    if not isinstance(node, NestedArray):
        return node
    kind = kind_of(node)
    if kind.views:
        return compact(with_offsets(node)) if views is None else views(node)
    node = trim(node) if kind.ends else node
    bitmap: dict[str, Any] = {}
    if not (kind.chunks or kind.packed) and node.validity is not None and node.validity_offset:
        bitmap = {"validity": bitmap_of(valid_mask(node)), "bit": 0}
    return rebuild(node, lambda part: compact(part, views), **bitmap)


def offsets_on_host(node: NestedArray) -> Any:
    """Return the offsets of a node as an ndarray. If the array of offsets is empty, return a single 0."""
    offsets = as_numpy(node.offsets.to_host())
    return offsets if len(offsets) else np.zeros(1, offsets.dtype)


def trim(node: NestedArray) -> NestedArray:
    """Return validated lists or strings with offsets on the host from 0 on, and the referenced part of the content."""
    offsets = offsets_on_host(node)
    start, stop = int(offsets[0]), int(offsets[-1])
    content = node.content
    if kind_of(node).characters and content.size < stop:  # an import from a device does not know the size
        content = extend_array(content, stop)
    check(make(node.kind, len(node), offsets=asarray(offsets), content=content))
    from_zero = offsets if start == 0 else offsets - offsets.dtype.type(start)
    return rebuild(node, lambda _: part(content, start, stop), offsets=asarray(from_zero))
