"""Pickles, copies and sizes of NestedArrays.

A pickle contains ``arrayhub._unpickle_nested(state)``. ``state`` is a dict with the kind, the length and the parts of a
node. A part is the state of another node, or a USMArray, which has its own ``__reduce__``. A buffer that several nodes
share is pickled once. In host memory, only the bytes of a buffer that the array references are pickled. In device
memory, buffers are pickled in full.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any

from arrayhub._core.tree import KIND_NAMES, kind_of, row_named
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import NestedArray, is_on_host, make, nested_of, with_offsets
from arrayhub.nested.concatenate import as_views
from arrayhub.nested.to_device import compact, map_arrays
from arrayhub.transport.codec import restore_state, state_error

_ARRAYS = ("validity", "offsets", "indices")


def reduce(x: NestedArray) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the argument that restore an array, for ``NestedArray.__reduce__``."""
    return _unpickle_nested, (map_arrays(_compact(x), _once(lambda array: array), _state),)


def _compact(node: Any) -> Any:
    """Return a node whose buffers contain only referenced elements. Nodes on a device are returned unchanged."""
    return compact(node, _compact_views) if is_on_host(node) else node


def _compact_views(node: NestedArray) -> NestedArray:
    """Return a copy of string views whose buffers contain only the referenced part. Immutable views stay immutable."""
    views = as_views(with_offsets(node))
    is_fixed = node.access == "immutable"
    return map_arrays(views, lambda x: asarray(as_numpy(x).tobytes()).reshape(x.shape)) if is_fixed else views


def _state(kind: str, length: int, **facts: Any) -> dict[str, Any]:
    """Return the state of a node, for `map_arrays`."""
    return {"kind": kind, "length": length, **facts}


def _once(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that calls `change` once for all views of the same elements, and then returns its result."""
    seen: dict[Any, Any] = {}

    def change_once(array: Any) -> Any:
        key: Any = id(array)
        if array.size:
            key = (array.ptr, array.shape, array.byte_strides, array.dtype, array.access, array.device)
        if key not in seen:
            seen[key] = change(array)
        return seen[key]

    return change_once


def _unpickle_nested(state: Any) -> NestedArray:
    """Restore the array of a pickle. Offsets, views and indices are validated on first use, as after an import.

    Raises
    ------
    pickle.UnpicklingError
        The parts are inconsistent.
    """
    return restore_state("NestedArray", lambda found: nested_of(_restore_node(found)), state)


_unpickle_nested.__module__ = "arrayhub"  # pickles name this module, so the function can move


def _restore_node(state: Any) -> Any:
    if isinstance(state, USMArray):
        return state
    facts = dict(state)
    kind, length = facts.pop("kind"), facts.pop("length")
    if kind not in KIND_NAMES or type(length) is not int or length < 0:
        raise state_error("kind and length", (kind, length), "the name of a kind, and a length of 0 or more")
    row = row_named(kind)
    for name in ("content", "parts", "buffers"):
        if name in facts:
            facts[name] = _restore_node(facts[name]) if name == "content" else tuple(map(_restore_node, facts[name]))
    for name in _ARRAYS:
        if not isinstance(facts.get(name), USMArray if name in row.structure else (USMArray, type(None))):
            raise state_error(name, facts.get(name), "an array")
    _check_lengths(kind, row, length, facts)
    return make(kind, length, **facts)


def _check_lengths(kind: str, row: Any, length: int, facts: dict[str, Any]) -> None:
    """Raise UnpicklingError unless each part has the number of elements that the node's length requires."""
    content: Any = facts.get("content")
    parts: Any = facts.get("parts", ())
    if row.chunks:
        chunked = [isinstance(part, NestedArray) and not kind_of(part).chunks for part in parts]
        if not chunked or not all(chunked) or sum(map(len, parts)) != length:
            raise state_error("chunks", parts, f"arrays with {length} elements in total")
        return
    if row.opaque:
        return  # `make` compares the buffers and children with the layout of the format
    if row.fields:
        names = facts.get("names")
        if type(names) is not tuple or len(names) != len(parts) or any(len(part) < length for part in parts):
            raise state_error("fields", names, f"names, and arrays of {length} elements")
        return
    flat = row.numbers or row.packed or row.characters
    accepted = (isinstance(content, USMArray) and content.ndim > 0) or (not flat and isinstance(content, NestedArray))
    if not accepted:
        raise state_error("content", content, "an array of one or more dimensions")
    if row.views and not (content.ndim == 2 and content.shape[1] == 16 and content.itemsize == 1):
        raise state_error("views", content, "16 bytes for each element")
    if any(not isinstance(part, USMArray) or part.ndim != 1 or part.itemsize != 1 for part in parts):
        raise state_error("buffers", parts, "one-dimensional arrays of bytes")
    if row.ends and row.characters and not (content.ndim == 1 and content.itemsize == 1):
        raise state_error("characters", content, "a one-dimensional array of bytes")
    if (row.numbers or row.views) and len(content) != length:
        raise state_error("content", content, f"{length} elements")
    if row.width and not (type(facts.get("width")) is int and 0 <= facts["width"] * length <= len(content)):
        raise state_error("width", facts.get("width"), f"rows within the {len(content)} elements of the content")
    for name in row.structure:
        needed = length + 1 if name == "offsets" and length else length
        if facts[name].ndim != 1 or len(facts[name]) < needed:
            raise state_error(name, facts[name], f"{needed} elements in one dimension")
    if row.indices and facts["indices"].dtype.kind not in "iu":
        raise state_error("indices", facts["indices"], "integers")


def deep_copy(x: NestedArray, memo: dict[int, Any]) -> NestedArray:
    """Return an array with copies of the bytes that `x` references, in memory of the same kind."""
    copied: NestedArray = map_arrays(_compact(x), _once(functools.partial(copy.deepcopy, memo=memo)))
    return copied


def nbytes(x: NestedArray) -> int:
    """Return the total size of the arrays of a node in bytes. An array that several nodes share is counted once."""
    arrays: set[tuple[int, int]] = set()
    map_arrays(x, lambda array: arrays.add((array.ptr, array.nbytes)), _state)
    return sum(size for _, size in arrays)
