"""NestedArrays in the form that a consumer has: longer offsets, strings by views, days of four bytes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.device import CPU
from arrayhub._core.kinds import kind_of
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    check_names,
    covered,
    is_on_host,
    make,
    part,
    with_views,
)
from arrayhub.nested.concatenate import in_order
from arrayhub.nested.to_device import offsets_on_host


def over(node: NestedArray, change: Callable[[Any], Any], **others: Any) -> NestedArray:
    """Return a node over what `change` makes of its content, or of each of its fields in turn.

    All else stays, but what `others` names: ``offsets``, say.
    """
    facts: dict[str, Any] = {
        "validity": node.validity,
        "bit": node.validity_offset,
        "width": node.width,
        "meaning": node.meaning,
    }
    facts |= {name: getattr(node, name) for name in kind_of(node).structure}
    if kind_of(node).fields:
        facts |= {"names": node.field_names, "parts": tuple(map(change, node.children))}
    else:
        facts["content"] = change(node.content)
    return make(node.kind, len(node), **(facts | others))


def _same(content: Any) -> Any:
    return content


def _wide(offsets: Any) -> Any:
    return offsets if offsets.itemsize == 8 else asarray(as_numpy(offsets).astype(np.int64))


def with_wide_offsets(x: NestedArray) -> NestedArray:
    """Return lists with offsets of eight bytes that start at 0, on the same content."""
    offsets = offsets_on_host(x)
    start, stop = int(offsets[0]), int(offsets[-1])
    check(x if is_on_host(x.offsets) else make("list", len(x), offsets=asarray(offsets), content=x.content))
    wide = x.offsets
    if start != 0 or offsets.dtype != np.int64 or not wide.size:
        wide = asarray(offsets.astype(np.int64) - start)
        if x.offsets.device != CPU:
            wide = wide.to_device(x.offsets.device)
    return over(x, lambda content: part(content, start, stop), offsets=wide)


def conform(node: Any, described: tuple[str, list[Any]]) -> Any:
    """Return a node as near to a requested type as can be had without a copy of its content.

    Lists and strings get offsets of eight bytes, strings become views, where that is asked for. All else stays.
    """
    text, children = described
    if not isinstance(node, NestedArray):
        return node
    kind = kind_of(node)
    if text in ("+L", "U", "Z") and kind.ends:
        node = over(node, _same, offsets=_wide(node.offsets))
    elif text in ("vu", "vz") and kind.characters:
        return with_views(node)
    if kind.over_nodes and len(children) == (len(node.children) if kind.fields else 1):
        asked = iter(children)
        return over(node, lambda content: conform(content, next(asked)))
    return node


def as_polars_has_it(node: Any) -> Any:
    """Return a node with what polars shares: offsets of eight bytes, and strings by views into the same characters.

    Rows of one length have bits of what is missing that start with a byte: polars ends with a panic, which is no
    Exception, where an array of them has both bits and an offset.

    Raises
    ------
    BufferError
        Rows of a fixed length of 0, by which polars divides, or records with fields of one name.
    """
    if not isinstance(node, NestedArray):
        return _of_some_width(node, node.shape[1:])
    kind = kind_of(node)
    if kind.numbers:
        _of_some_width(node, node.content.shape[1:])
        return over(node, _same) if node.validity_offset and node.content.ndim > 1 else node
    if kind.fields:
        check_names(node, "polars", error=BufferError)  # inside lists polars accepts equal names, and then loses fields
    if kind.width:
        _of_some_width(node, (node.width,))
    if kind.characters:
        return with_views(node)
    if kind.sizes:
        return as_polars_has_it(in_order(node))
    if kind.ends:
        check(node)
        return over(node, as_polars_has_it, offsets=_wide(node.offsets))
    return over(node, as_polars_has_it) if kind.width or kind.fields else node


def _of_some_width(node: Any, widths: tuple[int, ...]) -> Any:
    if len(node) and 0 in widths:
        raise BufferError(
            "polars: it takes in no rows of a fixed length of 0; take arrayhub.as_arrow(x), or rows of any length, as"
            " arrayhub.as_polars(arrayhub.as_arrow(x).cast(pyarrow.list_(pyarrow.float64()))) gives of numbers"
        )
    return node


def with_days(node: Any) -> Any:
    """Return a node on the host with Arrow's days of four bytes in place of NumPy's of eight; NaT is missing.

    Raises
    ------
    BufferError
        A day lies beyond four bytes.
    """
    if not isinstance(node, NestedArray):
        return _days(node) if _is_of_days(node) else node
    if kind_of(node).numbers and _is_of_days(node.content):
        return covered(_days(node.content), node.validity, node.validity_offset)
    return over(node, with_days) if kind_of(node).over_nodes else node


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
