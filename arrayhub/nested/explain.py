"""`debug_repr` and `check` for nested data."""

import sys
from collections.abc import Iterator
from typing import Any

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import PASSES_ON, InterfaceError, first_line
from arrayhub._core.tree import kind_of
from arrayhub.inspection.printout import count_references, head_lines, part_lines
from arrayhub.inspection.texts import attempt
from arrayhub.nested.array import NestedArray, check
from arrayhub.nested.asnested import asnested
from arrayhub.nested.from_awkward import is_awkward

_PARTS = ("validity", "offsets", "indices", "content")


def view_of(obj: Any) -> NestedArray | None:
    """Import `obj` as a NestedArray without a copy, or return None."""
    view: NestedArray | None = attempt(asnested, obj, copy=VIEW)[0]
    return view


# ------------------------------------------------------------------------------------------------------- debug_repr


def lines_of(x: NestedArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a node and its parts, without the first and the last."""
    yield from head_lines(x, refcount, [f"  type: {x.type}"])
    yield f"  {x.kind} arrmeta"
    yield f"   size: {len(x)}"
    if x.meaning is not None:
        yield f"   meaning: {x.meaning}"
    if x.validity_offset:
        yield f"   validity offset: {x.validity_offset}"
    yield " data:"
    parts = dict(parts_of(x))
    for name in list(parts):
        array = parts.pop(name)  # now only the node and this variable refer to the array
        refcount = count_references(sys.getrefcount(array))
        if isinstance(array, NestedArray):
            yield f"  {name}:"
            yield from (f"  {line}" for line in lines_of(array, refcount))
        else:
            yield from part_lines(name, array)


def parts_of(x: NestedArray) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array of each part of a node.

    The children of an opaque node are named ``children[k]``. The fields of a record are also named ``children[k]`` if
    two fields have the same name, or if a field is named ``validity``, like the record's bitmap.
    """
    if kind_of(x).chunks:
        for k, chunk in enumerate(x.chunks):
            yield f"chunks[{k}]", chunk
        return
    if kind_of(x).named:
        names = x.field_names
        if kind_of(x).opaque or len({*names, "validity"}) != len(names) + 1:
            names = tuple(f"children[{k}]" for k in range(len(names)))
        yield from zip(names, x.children, strict=True)
    for name in _PARTS:
        array = getattr(x, name, None)
        if array is not None:
            yield name, array
    for k, buffer in enumerate(getattr(x, "buffers", ())):
        yield f"buffers[{k}]", buffer


# ------------------------------------------------------------------------------------------------------------ check


def find_faults(obj: Any, texts: list[str]) -> list[str] | None:
    """Check the offsets, views, indices and strings of nested data. Return `texts` and the first fault of each node.

    `texts` contains messages about the object's interfaces. For a NestedArray, `texts` is omitted, because the
    interfaces report the same faults as this function. An awkward array is copied for the check if `asnested` cannot
    view it. Return None for all other objects that `asnested` cannot view.
    """
    if issubclass(type(obj), NestedArray):
        return list(_faults(obj, "x"))
    x = view_of(obj)
    if x is None and is_awkward(obj):
        try:
            x = asnested(obj)
        except PASSES_ON:
            raise
        except ValueError as error:  # awkward detects an index out of range when it reorders the elements
            return [*texts, f"x: {first_line(error)}"]
        except Exception:
            return None
    return None if x is None else [*texts, *_faults(x, "x")]


def _faults(x: Any, path: str) -> Iterator[str]:
    if not isinstance(x, NestedArray):
        return
    try:
        if not kind_of(x).chunks:
            check(x)
        if kind_of(x).utf8:
            x.to_list()
    except InterfaceError as error:
        yield f"{path}: {error}"
    for name, array in parts_of(x):
        named = kind_of(x).fields and name in x.field_names
        yield from _faults(array, f"{path}[{name!r}]" if named else f"{path}.{name}")
