"""Convert NestedArrays to the elements that a consumer expects: another dtype, int64 offsets, date32."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from arrayhub._core.descriptor import CPU, Device, is_host_readable
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import RangeRefusal, TypeRefusal
from arrayhub._core.tree import kind_of
from arrayhub.array import casting
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    cover_missing,
    field_facts,
    make,
    nested_of,
    part,
    unpack_bits,
    valid_mask,
)
from arrayhub.nested.matrix import index_columns
from arrayhub.nested.opaque import can_decode, decode
from arrayhub.nested.to_device import child_nodes, in_rows, offsets_on_host, rebuild, trim


def change(x: NestedArray, dtype: Any, device: Any, built: bool = False) -> NestedArray:
    """Return an array whose numbers have the type `dtype`, on `device`. Return `x` itself if nothing changes.

    `built` is true for an array that was built from Python values, whose integers must be in the range of `dtype`.
    """
    if dtype is not None:
        x = nested_of(_cast(x, requested_dtype(dtype), built))
    return x if device is None or x.device == Device(device) else x.to_device(device)


def _cast(node: Any, dtype: np.dtype[Any], built: bool = False) -> Any:
    """Cast the numbers of a node at any depth, except the index of a pandas frame. See `change`.

    Raise TypeError if the elements are not numbers or times.
    """
    if not isinstance(node, NestedArray):
        if dtype.names is not None or (casting.rank(node.dtype) is None and node.dtype.kind not in "mM"):
            raise _cast_error(node.dtype, dtype)
        if satisfies(node.dtype, dtype):
            return node
        checks = built and node.dtype.kind in "iu" and casting.rank(dtype) is not None
        return casting.cast_checked(node, dtype, "dtype") if checks else casting.cast(node, dtype)
    if kind_of(node).opaque and can_decode(node):
        node = decode(node, "dtype")
    kind = kind_of(node)
    if kind.packed:
        return node if dtype == np.bool_ else _cast(with_byte_booleans(node), dtype, built)
    if not (kind.chunks or kind.fields or kind.lists or (kind.numbers and node.meaning is None)):
        raise _cast_error(element_type(node), dtype)
    if node.extension is not None and not kind.chunks and node.extension[0] != "arrow.fixed_shape_tensor":
        raise _cast_error(node.extension, dtype)
    casts = kind.numbers and node.content.dtype.kind == "f" and not satisfies(node.content.dtype, dtype)
    if casts and is_host_readable(node.content) and node.null_count:
        node = rebuild(node, partial(clear_missing, valid=valid_mask(node)))
    old = child_nodes(node)
    skipped = index_columns(node) if kind.fields else []
    names = node.field_names if kind.fields else [None] * len(old)
    new = [child if name in skipped else _cast(child, dtype, built) for name, child in zip(names, old, strict=True)]
    if all(child is same for child, same in zip(new, old, strict=True)):
        return node
    parts = iter(new)
    return rebuild(node, lambda _: next(parts))


def with_byte_booleans(node: Any) -> Any:
    """Return booleans, and lists of booleans, with one byte for each boolean. Return other nodes unchanged."""
    if not isinstance(node, NestedArray) or not (kind_of(node).packed or kind_of(node).lists):
        return node
    if kind_of(node).lists:
        return rebuild(node, with_byte_booleans)
    facts = field_facts(node) | {"validity": node.validity, "bit": node.validity_offset}
    return make("flat", len(node), content=unpack_bits(node), **facts)


def _cast_error(type_: Any, dtype: np.dtype[Any]) -> TypeRefusal:
    return TypeRefusal("dtype", f"x has elements of {type_}, and dtype is {dtype}", "numbers, and times without a zone")


def with_wide_offsets(x: NestedArray) -> NestedArray:
    """Return lists with int64 offsets that start at 0, and only the referenced part of the content."""
    rows = trim(x)
    if x.offsets.dtype == np.int64 and x.offsets.size and offsets_on_host(part(x, 0, 0))[0] == 0:
        return rebuild(rows, offsets=x.offsets)
    wide = asarray(as_numpy(rows.offsets).astype(np.int64))
    return rebuild(rows, offsets=wide if x.offsets.device == CPU else wide.to_device(x.offsets.device))


def element_type(node: NestedArray) -> str:
    """Return the type of the elements of a node, without the length and the mark of missing elements."""
    return str(node.type).partition(" * ")[2].removeprefix("?")


def clear_missing(values: Any, valid: Any) -> Any:
    """Return a copy of floats in which missing elements are 0, so that NumPy does not warn about them in a cast."""
    made = as_numpy(values, copy=True)
    made[~valid] = 0
    return asarray(made)


def with_days(node: Any, convert: Callable[[Any], Any] | None = None) -> Any:
    """Convert ``datetime64[D]`` (8 bytes) to Arrow's date32 (4 bytes) in host memory. NaT becomes missing.

    Raise OverflowError if a date exceeds the range of date32. `convert` is another function for the arrays of days.
    """
    if not isinstance(node, NestedArray):
        return (convert or _days)(node) if is_days(node) else node
    if kind_of(node).numbers and is_days(node.content):
        return cover_missing(with_days(node.content, convert), node.validity, node.validity_offset)
    return rebuild(node, partial(with_days, convert=convert)) if kind_of(node).over_nodes else node


def is_days(array: Any) -> bool:
    """Return whether a dense array consists of ``datetime64[D]``."""
    return array.dtype.kind == "M" and np.datetime_data(array.dtype) == ("D", 1)


def _days(array: Any) -> NestedArray:
    """Convert ``datetime64[D]`` to a date32 node. Dimensions after the first become regular nodes."""
    numbers = np.ascontiguousarray(as_numpy(array).reshape(-1), "M8[D]").view(np.int64)
    valid = numbers != np.iinfo(np.int64).min
    numbers = np.where(valid, numbers, 0)
    beyond = numbers[numbers != numbers.astype(np.int32)]
    if len(beyond):
        raise RangeRefusal(
            "Arrow",
            f"day {beyond[0]} since 1970 does not fit in the four bytes of date32. Convert the days first, by"
            " x.astype('M8[s]')",
        )
    node = make("flat", len(numbers), content=asarray(numbers.astype(np.int32)), meaning="tdD", mask=valid)
    return in_rows(node, array.shape)
