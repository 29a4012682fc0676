"""Convert NestedArrays to the layout that a consumer expects: int64 offsets, string views, date32."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import RangeRefusal, Refusal, TypeRefusal
from arrayhub._core.tree import kind_of
from arrayhub.array import casting
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check_names,
    cover_missing,
    field_facts,
    make,
    nested_of,
    part,
    unpack_bits,
    wide_lists,
    with_views,
)
from arrayhub.nested.logical_types import decimal_type
from arrayhub.nested.matrix import index_columns
from arrayhub.nested.opaque import can_decode, decode, is_list_view, is_run_end
from arrayhub.nested.to_device import child_nodes, identity, in_rows, offsets_on_host, rebuild, trim, walk


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
        if casting.rank(node.dtype) is None and node.dtype.kind not in "mM":
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
        raise _cast_error(node.type, dtype)
    if node.extension is not None and not kind.chunks and node.extension[0] != "arrow.fixed_shape_tensor":
        raise _cast_error(node.extension, dtype)
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
    return TypeRefusal("dtype", f"the elements are of type {type_}, and dtype is {dtype}", "numbers and times")


def with_wide_offsets(x: NestedArray) -> NestedArray:
    """Return lists with int64 offsets that start at 0, and only the referenced part of the content."""
    rows = trim(x)
    if x.offsets.dtype == np.int64 and x.offsets.size and offsets_on_host(part(x, 0, 0))[0] == 0:
        return rebuild(rows, identity, offsets=x.offsets)
    wide = asarray(as_numpy(rows.offsets).astype(np.int64))
    return rebuild(rows, identity, offsets=wide if x.offsets.device == CPU else wide.to_device(x.offsets.device))


def check_for_polars(array: Any) -> None:
    """Check an array for `for_polars`, from its types.

    Raises
    ------
    BufferError
        Rows have the fixed length 0, two fields of a record have the same name, or polars does not support the type:
        unions, intervals and some decimals.
    """
    for node in walk(array):
        if not isinstance(node, NestedArray):
            if node.dtype.type is np.void and node.dtype.itemsize == 0:  # polars panics
                raise Refusal("polars", "elements of 0 bytes are not supported", "bytes of a length of 1 or more")
            _check_widths(node, node.shape[1:])
            continue
        kind = kind_of(node)
        if kind.opaque:
            _check_opaque(node)
        if kind.fields:
            check_names(node, "polars", error=Refusal)  # polars keeps one of several fields of a name inside lists
        if kind.width:
            _check_widths(node, (node.width,))


def for_polars(node: Any) -> Any:
    """Convert a node to the layout that polars imports without a copy: int64 offsets, and string views.

    List views and run-end encoded arrays are decoded. The validity bitmap of
    fixed-length rows is copied so that it starts at a byte boundary, because polars panics if an array of fixed-length
    rows has both a bitmap and an offset. The panic raises PanicException, which ``except Exception`` does not catch.
    `check_for_polars` must have accepted the node.
    """
    if not isinstance(node, NestedArray):
        return node
    kind = kind_of(node)
    if kind.numbers:
        return rebuild(node, identity) if node.validity_offset and node.content.ndim > 1 else node
    if kind.characters:
        return with_views(node)
    if kind.opaque:
        return for_polars(decode(node, "polars")) if is_list_view(node) or is_run_end(node) else node
    if kind.ends and node.meaning is None:
        return wide_lists(node, for_polars(node.content))
    if kind.ends:  # polars 2.1 imports a map as its Map type, and converts the int32 offsets itself
        return rebuild(node, for_polars)
    return rebuild(node, for_polars) if kind.width or kind.fields or kind.chunks else node


def _check_opaque(node: NestedArray) -> None:
    """Raise BufferError for unions, intervals and decimals that polars does not support."""
    meaning = str(node.meaning)
    if meaning[:2] == "+u":
        raise Refusal("polars", f"unions such as {element_type(node)} are not supported")
    if meaning[:2] == "ti":
        raise Refusal("polars", f"Arrow's {element_type(node)} is not supported", call="arrayhub.as_arrow(x)")
    if meaning[:2] == "d:":
        name, precision, scale = decimal_type(meaning)
        if name == "decimal256" or scale < 0 or precision > 38:
            raise Refusal(
                "polars",
                f"Arrow's {element_type(node)} is not supported",
                "up to 38 digits, and a scale of 0 or more",
                "arrayhub.as_polars(arrayhub.as_arrow(x).cast('float64'))",
            )


def element_type(node: NestedArray) -> str:
    """Return the type of the elements of a node, without the length and the mark of missing elements."""
    return str(node.type).partition(" * ")[2].removeprefix("?")


def _check_widths(node: Any, widths: tuple[int, ...]) -> Any:
    if len(node) and 0 in widths:
        raise Refusal(
            "polars",
            "rows of fixed length 0 are not supported",
            "rows of variable length",
            "arrayhub.as_polars(arrayhub.asnested(x).to_list())",
        )
    return node


def with_days(node: Any, convert: Callable[[Any], Any] | None = None) -> Any:
    """Convert ``datetime64[D]`` (8 bytes) to Arrow's date32 (4 bytes) in host memory. NaT becomes missing.

    Raise OverflowError if a date exceeds the range of date32. `convert` is another function for the arrays of days.
    """
    if not isinstance(node, NestedArray):
        return (convert or _days)(node) if is_days(node) else node
    if kind_of(node).numbers and is_days(node.content):
        return cover_missing(with_days(node.content, convert), node.validity, node.validity_offset)
    return rebuild(node, partial(with_days, convert=convert)) if kind_of(node).over_nodes else node


def with_seconds(node: Any) -> Any:
    """Return a view in which ``datetime64[D]`` are seconds, for checks of types, because Arrow lacks such days."""
    return with_days(node, lambda days: days.view("M8[s]"))


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
    validity = None if valid.all() else bitmap_of(valid)
    node = make("flat", len(numbers), content=asarray(numbers.astype(np.int32)), meaning="tdD", validity=validity)
    return in_rows(node, array.shape)
