"""Missing values: boolean masks, filled copies, and the argument ``missing=`` of the ``as_*`` functions."""

import datetime
import numbers
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.descriptor import CPU
from arrayhub._core.errors import TypeRefusal, ValueRefusal, relabel, show
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import may_be_nat
from arrayhub.array import casting
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import is_frame
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.libraries.known import derived_from
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    cover_missing,
    field_facts,
    from_string_dtype,
    import_any,
    is_on_host,
    make,
    nested_of,
    part,
    to_string_dtype,
    unpack_bits,
    unwrap_flat,
)
from arrayhub.nested.asnested import refuse_storage
from arrayhub.nested.concatenate import as_views, concatenate, content_of_rows, gather_rows, select
from arrayhub.nested.conform import element_type
from arrayhub.nested.export.shared import single_chunk
from arrayhub.nested.from_python import characters, from_python, offsets_of
from arrayhub.nested.matrix import columns_of_frame, dense_column, fields_of, index_columns, matrix
from arrayhub.nested.opaque import (
    as_list_views,
    decode,
    fill,
    has_bitmap,
    is_list_view,
    is_null_type,
    is_run_end,
    make_rows,
    null_mask,
)
from arrayhub.nested.to_device import child_nodes, identity, offsets_on_host, rebuild

_NAN = object()  # marker for ``missing="nan"``, which fills with NaN or NaT, depending on the type
_NUMBERS_AND_TIMES = (numbers.Number, datetime.date, datetime.time, datetime.timedelta)
# The accepted value for messages, by NumPy's dtype kind, or by the start of Arrow's format of a logical type.
_ACCEPTED = {
    "b": "True or False",
    **dict.fromkeys("iu", "an integer"),
    **dict.fromkeys("fc", "a number"),
    "M": "a datetime without a time zone",
    "m": "a timedelta",
    "td": "a date, or a datetime without a time zone",
    "ts": "a datetime with a time zone",
    "tt": "a datetime.time without a time zone",
}
_NUMPY_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}  # by Arrow's unit letter


# ------------------------------------------------------------------------------------------------------------- masks


def is_null(x: NestedArray) -> Any:
    """Return a mask of the missing elements. See `NestedArray.is_null`."""
    masks = list(map(_null_mask, x.chunks))
    mask = asarray(masks[0] if len(masks) == 1 else np.concatenate(masks))
    return mask if is_on_host(x) else mask.to_device(x.device)


def _null_mask(node: NestedArray) -> Any:
    """Return a new ndarray that is True for missing elements. A bitmap on a device is copied to the host."""
    if kind_of(node).opaque and not has_bitmap(node):
        return null_mask(node)
    if kind_of(node).indices:
        return _null_mask_of_categories(node)
    nat = _nat(node)
    if nat is not None and nat.ndim > 1:  # the elements are rows; a NaT does not make its row missing
        nat = None
    missing = _null_mask_of_bitmap(node)
    return missing if nat is None else missing | nat


def _null_mask_of_bitmap(node: NestedArray) -> Any:
    if node.validity is None:
        return np.zeros(len(node), bool)
    bits = np.unpackbits(as_numpy(node.validity.to_host()), bitorder="little")
    return bits[node.validity_offset : node.validity_offset + len(node)] == 0


def _nat(node: NestedArray) -> Any:
    """Return a mask of NumPy's NaT with the shape of the content, or None if the node does not contain NaT.

    Memory that the host cannot read is not searched.
    """
    if not kind_of(node).numbers or node.meaning is not None:
        return None
    content = node.content
    if not may_be_nat(content) or not is_on_host(content):
        return None
    nat = np.isnat(as_numpy(content))
    return nat if nat.any() else None


def _null_mask_of_categories(node: NestedArray) -> Any:
    """Return the mask of categories. An element is missing if its index or its category is missing."""
    mask, categories = _null_mask_of_bitmap(node), _null_mask(nested_of(node.content))
    if categories.any():
        node = node.to_host()
        check(node)
        mask |= categories[np.where(mask, 0, as_numpy(node.indices))]  # a missing index may have any value
    return mask


def without_validity(node: Any) -> Any:
    """Remove the validity bitmaps of a node and its descendants. Return an array if the result is dense.

    Opaque nodes are decoded. Elements of type null become NaN, as for ``missing="nan"``.
    """
    if not isinstance(node, NestedArray):
        return node
    node = decode(node, "missing") if kind_of(node).opaque else node
    kind = kind_of(node)
    bare = rebuild(node, without_validity if kind.over_nodes else identity, validity=None,
                   bit=node.validity_offset if kind.packed else 0)  # fmt: skip
    return unwrap_flat(bare)


def _dense_mask(node: Any) -> Any:
    """Return a mask with the shape of a node that `to_dense` accepts, or None if no element is missing."""
    node = nested_of(node)
    node = decode(node, "missing") if kind_of(node).opaque else node
    kind = kind_of(node)
    if kind.numbers:
        return _mask_of_numbers(node)
    if kind.fields:
        return _mask_of_fields(node)
    own = _null_mask(node) if node.validity is not None else None
    if kind.packed:
        return own
    content = content_of_rows(node)
    inner = _dense_mask(content)
    if inner is not None:
        width = len(content) // max(len(node), 1)
        inner = inner.reshape(len(node), width, *inner.shape[1:])
    if own is None:
        return inner
    return own if inner is None else inner | own.reshape(-1, *[1] * (inner.ndim - 1))


def _mask_of_fields(node: NestedArray) -> Any:
    """Return a mask of the matrix that `to_dense` makes of a record, or None if no element is missing."""
    masks = [_dense_mask(field) for _, field in fields_of(node)]
    if all(mask is None for mask in masks):
        return None
    return np.stack([np.zeros(len(node), bool) if mask is None else mask for mask in masks], axis=1)


def _mask_of_numbers(node: NestedArray) -> Any:
    """Return a mask with the shape of the content of a flat node, or None if no element is missing."""
    nat = _nat(node)
    if node.validity is None:
        return nat
    rows = _null_mask(node).reshape(-1, *[1] * (node.content.ndim - 1))
    return np.broadcast_to(rows, node.content.shape) if nat is None else rows | nat


def values_and_mask(x: NestedArray, copy: Copy) -> tuple[Any, Any]:
    """Return the values of a node as a dense array, and a mask of the same shape that is True for missing elements.

    Missing elements have the values that the producer left in the memory. Raises as `NestedArray.to_dense` does.
    """
    x = single_chunk(x, copy, "missing")
    values = nested_of(without_validity(x)).to_dense(copy=copy)
    mask = _dense_mask(x) if values.size else None  # the mask of empty rows lacks the lengths of inner dimensions
    if mask is None:
        return values, np.zeros(values.shape, bool)
    return values, np.array(np.broadcast_to(mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim)), values.shape))


# ------------------------------------------------------------------------------------------------------------ filling


def fill_null(x: NestedArray, value: Any) -> Any:
    """Replace missing elements. See `NestedArray.fill_null`."""
    if value is None:
        raise TypeRefusal(
            "fill_null", "value is None, which is a missing value; accepted: a number, a string or a time"
        )
    return _dense_or_node(_filled_chunks(x, value))


def _filled_chunks(x: NestedArray, value: Any) -> Any:
    """Return an array with missing elements replaced by `value`.

    Chunks of numbers are always concatenated, so that the result can be dense. Other chunks are concatenated only if an
    element is missing.
    """
    _check_value(x, value, "x")
    kind, missing = kind_of(x.chunks[0]), has_missing(x)
    if missing or kind.numbers or kind.packed:
        x = single_chunk(x, True, "missing")
    if kind_of(x).chunks:
        return x
    return _fill_node(x.to_host() if missing else x, value, "x")


def _check_value(node: Any, value: Any, name: str) -> None:
    """Raise TypeError if `value` cannot replace numbers or times of a node, even if no element is missing.

    For records, raise ValueError if `value` is a dict with unknown field names. Other values for records are not
    checked, because a value need not fit all fields.
    """
    node = nested_of(node).chunks[0]
    kind = kind_of(node)
    if kind.fields:
        _check_names(node, value)
    elif kind.numbers or kind.packed:
        _check_element(node, value, name)
    elif is_list_view(node) or is_run_end(node):
        _check_value(decode(part(node, 0, 0), "fill_null"), value, name)
    elif kind.lists and not isinstance(value, (list, tuple, np.ndarray)):
        _check_value(node.content, value, f"{name}.content")


def _check_names(record: NestedArray, value: Any) -> None:
    names = record.field_names
    for key in _unknown_keys(value, names):
        raise ValueRefusal("fill_null", f"value names the field {show(key)}; accepted: {', '.join(names)}")


def _unknown_keys(value: Any, names: Iterable[str]) -> list[Any]:
    """Return the keys of the dict `value` that are not in `names`. If `value` is not a dict, return an empty list."""
    return [key for key in value if key not in names] if isinstance(value, dict) else []


def _check_element(node: NestedArray, value: Any, name: str) -> None:
    """Raise TypeError unless `value` is a single number or time or, for fixed-size bytes, bytes of this size.

    The range of the dtype is not checked.
    """
    if value is _NAN or (isinstance(value, bytes) and len(value) == _bytes_length(node)):
        return
    if np.ndim(value) != 0 or isinstance(value, str):
        raise _misfit(node, value, name)
    if not isinstance(value, _NUMBERS_AND_TIMES) and np.asarray(value).dtype.kind not in "biufcmMV":
        raise _misfit(node, value, name)
    zoned = _has_zone(node)
    if zoned is not None and isinstance(value, datetime.date) and value == value and _is_aware(value) != zoned:
        raise _misfit(node, value, name)


def _bytes_length(node: NestedArray) -> int | None:
    """Return the length of fixed-size bytes, such as Arrow's binary(n), or None for other elements."""
    dtype = node.content.dtype
    return dtype.itemsize if dtype.kind == "V" and not dtype.names and casting.rank(dtype) is None else None


def _has_zone(node: NestedArray) -> bool | None:
    """Return whether times have a time zone, or None if the elements are not times or dates."""
    if node.meaning is None:
        return False if node.content.dtype.kind == "M" else None
    return {"ts": True, "td": False}.get(node.meaning[:2])


def _is_aware(value: Any) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _misfit(node: NestedArray, value: Any, name: str) -> TypeError:
    """Return the error for a value that cannot be an element of a node of numbers, times or characters."""
    kind = kind_of(node)
    if kind.characters:
        return _unsuitable(node, value, name, "a str, such as ''" if kind.utf8 else "bytes, such as b''")
    length = None if kind.packed else _bytes_length(node)
    if length is not None:
        return _unsuitable(node, value, name, f"bytes of length {length}")
    by = "b" if kind.packed else node.content.dtype.kind if node.meaning is None else node.meaning[:2]
    accepted = _ACCEPTED.get(by, "a value of this type")
    if by not in ("ts", "tt") and (isinstance(value, str) or value != value):
        accepted += ". 'mask' and 'nan' are values of missing=, as in arrayhub.as_numpy(x, missing='nan')"
    return _unsuitable(node, value, name, accepted)


def _unsuitable(node: NestedArray, value: Any, name: str, accepted: str) -> TypeError:
    why = f"{name} has elements of {element_type(node)}, and value is {_shown(value)}"
    return TypeRefusal("fill_null", why, accepted)


def _shown(value: Any) -> str:
    return "'nan'" if value is _NAN else show(value)


def _dense_or_node(node: Any) -> Any:
    """Convert a node to a dense array. Return the node if it contains records or cannot be converted."""
    if not isinstance(node, NestedArray) or _has_records(node):
        return node
    try:
        return node.to_dense(copy=None)
    except (BufferError, ValueError):
        return node


def _has_records(node: Any) -> bool:
    if not isinstance(node, NestedArray):
        return False
    node = node.chunks[0]
    kind = kind_of(node)
    return kind.fields or any(map(_has_records, child_nodes(node)))


def has_missing(node: Any) -> bool:
    """Return whether an element of a node or of one of its descendants is missing."""
    node = nested_of(node)
    kind = kind_of(node)
    if kind.chunks:
        return any(map(has_missing, node.chunks))
    if kind.numbers:
        if node.validity is not None and not is_on_host(node.validity):
            return bool(_null_mask_of_bitmap(node).any())
        return node.null_count > 0 or _nat(node) is not None
    if (node.validity is not None or kind.opaque) and _null_mask(node).any():
        return True
    return any(map(has_missing, node.children if kind.named else (node.content,)))


def has_numbers(x: NestedArray) -> bool:
    """Return whether a column, or each column of records, consists of numbers, booleans or times."""
    node = x.chunks[0]
    parts = [nested_of(part).chunks[0] for part in (node.children if kind_of(node).fields else (node,))]
    return all(kind_of(part).numbers or kind_of(part).packed for part in parts)


def _fill_node(node: Any, value: Any, name: str) -> Any:
    """Return an array with missing elements at every depth replaced by `value`. `name` is the node's name in errors.

    The array keeps the node's names, metadata and extension types. A flat node without these becomes a USMArray.
    """
    node = nested_of(node)
    filled = nested_of(_filled_by_kind(node, value, name))
    facts = field_facts(node)
    if filled.kind != node.kind and not kind_of(node).packed:
        facts["field"] = None  # an extension type requires its storage type
    return unwrap_flat(rebuild(filled, identity, **facts))


def _filled_by_kind(node: NestedArray, value: Any, name: str) -> Any:
    kind = kind_of(node)
    if kind.fields:
        return _filled_record(node, value, name)
    if kind.numbers:
        mask = _mask_of_numbers(node)
        return _filled_numbers(node, np.zeros(len(node), bool) if mask is None else mask, value, name)
    mask = _null_mask(node)
    if kind.packed:
        return _filled_numbers(nested_of(unpack_bits(node)), mask, value, name)
    if kind.characters:
        return _filled_characters(node, mask, value, name)
    if kind.opaque:
        return _filled_opaque(node, mask, value, name)
    if kind.indices:
        return _filled_categories(node, mask, value, name)
    if isinstance(value, (list, tuple, np.ndarray)):
        return _filled_rows(node, mask, value, name)
    if mask.any():
        if not kind.width:
            raise ValueRefusal(
                "fill_null",
                f"row {int(mask.argmax())} of {name} is missing, and value is {_shown(value)}; accepted: a"
                " list for missing rows, such as []",
            )
        node = make("regular", len(node), width=node.width,
                    content=cover_missing(node.content, bitmap_of(~np.repeat(mask, node.width)), 0))  # fmt: skip
    return rebuild(node, lambda content: _fill_node(content, value, f"{name}.content"), validity=None, bit=0)


def _filled_opaque(node: NestedArray, mask: Any, value: Any, name: str) -> Any:
    if is_null_type(node):
        return decode(node, "fill_null").content if value is _NAN else from_python([value] * len(node))
    if is_run_end(node):
        ends, values = node.children
        return rebuild(node, identity, parts=(ends, _fill_node(values, value, name)))
    if is_list_view(node):
        return as_list_views(_fill_node(decode(node, "fill_null"), value, name), node)
    if not mask.any() and not has_missing(node):
        return node
    if str(node.meaning).startswith("+u"):
        raise TypeRefusal(
            "fill_null",
            f"{name} has elements of several types, {element_type(node)}; accepted: elements of one type."
            " Fill its children one by one, as in x.children[0].fill_null(value)",
        )
    if value is _NAN:
        raise _unsuitable(node, value, name, "a value of this type")
    return fill(node, value, "fill_null")


def _as_floats(content: Any, mask: Any, name: str) -> Any:
    """Convert bools and integers to float64, for ``missing="nan"``. Return other elements unchanged.

    Raise OverflowError if float64 cannot represent an integer that is not missing.
    """
    rank = casting.rank(content.dtype)
    if rank not in (0, 1):
        return content
    if content.dtype.kind in "iu":
        lost = casting.find_rounded(as_numpy(content)[~mask], np.dtype(np.float64))
        if lost is not None:
            raise OverflowError(
                f"fill_null: {name} has the integer {lost}, which float64 would round; accepted: integers that float64"
                " represents. Pass missing='mask', or a value, which keeps the integers"
            )
    return casting.cast(content, np.dtype(np.float64))


def _filled_numbers(node: NestedArray, mask: Any, value: Any, name: str) -> Any:
    content = node.content
    if value is _NAN and node.meaning == "tdD":  # date32 does not have a NaT
        days = as_numpy(content).astype("M8[D]")
        days[mask] = np.datetime64("NaT", "D")
        return asarray(days)
    if value is _NAN and node.meaning is None:
        content = _as_floats(content, mask, name)
    if mask.any():
        if content is node.content:
            content = content.copy()
        numbers = as_numpy(content)
        number = np.asarray(_fitting(value, numbers.dtype, node, name), numbers.dtype)
        np.putmask(numbers, mask, number)  # faster than numbers[mask] = number
    return content if node.meaning is None else make(
        node.kind, len(node), content=content, meaning=node.meaning)  # fmt: skip


def _fitting(value: Any, dtype: Any, node: NestedArray, name: str) -> Any:
    """Convert a value to the element type of a node, or raise TypeError, ValueError or OverflowError."""
    _check_element(node, value, name)
    if node.meaning is not None:
        return _count_of(value, dtype, node, name)
    if value is _NAN:
        value = np.array("NaT", dtype)[()] if dtype.kind in "mM" else np.nan  # NumPy 2.5 deprecates NaT without a unit
    if isinstance(value, bytes):
        value = np.void(bytes(value))  # NumPy strips NUL from the end of bytes
    return _cast(value, dtype, node, name)


def _cast(value: Any, dtype: Any, node: NestedArray, name: str) -> Any:
    call = f"fill_null: {name} has elements of {element_type(node)}"
    exact = value
    if isinstance(value, (datetime.datetime, datetime.timedelta)) and value == value:
        # NumPy drops the nanoseconds of pandas values.
        exact = casting.ticks([value], "M8" if isinstance(value, datetime.datetime) else "m8", call)[0]
    try:
        return casting.as_ndarray(casting.validate_value(exact, dtype, call), dtype)
    except TypeError:
        raise _misfit(node, value, name) from None


def _count_of(value: Any, dtype: Any, node: NestedArray, name: str) -> Any:
    """Return the number that represents a date, a time of day or a time with a zone in the Arrow format of a node."""
    meaning = str(node.meaning)
    if meaning == "tdD" and isinstance(value, (datetime.date, np.datetime64)) and value == value:
        days = _cast(value, np.dtype("M8[D]"), node, name).astype(np.int64)
        return _cast(days, dtype, node, name)
    if dtype.kind == "M" and value is _NAN:
        return np.array("NaT", dtype)
    if (dtype.kind == "M" or meaning[:2] == "ts") and isinstance(value, (datetime.date, np.datetime64)):
        if isinstance(value, datetime.datetime) and _is_aware(value):
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        if dtype.kind == "M":
            return _cast(value, dtype, node, name)
        return _cast(value, np.dtype(f"M8[{_NUMPY_UNITS[meaning[2]]}]"), node, name).astype(dtype)
    if meaning[:2] == "tt" and isinstance(value, datetime.time) and value.tzinfo is None:
        since_midnight = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
        return _cast(since_midnight, np.dtype(f"m8[{_NUMPY_UNITS[meaning[2]]}]"), node, name).astype(dtype)
    raise _misfit(node, value, name)


def _check_characters(node: NestedArray, value: Any, name: str) -> None:
    if not isinstance(value, str if kind_of(node).utf8 else bytes):
        raise _misfit(node, value, name)


def _filled_characters(node: NestedArray, mask: Any, value: Any, name: str) -> Any:
    _check_characters(node, value, name)
    if not mask.any():
        return without_validity(node)
    if kind_of(node).utf8:
        strings = to_string_dtype(node)
        strings[mask] = value
        filled = from_string_dtype(strings)
    else:
        filled = characters("bytes", [value if item is None else item for item in node.to_list()])
    if kind_of(node).views:
        return as_views(filled)
    dtype = np.promote_types(filled.offsets.dtype, node.offsets.dtype)
    return rebuild(filled, identity, offsets=asarray(as_numpy(filled.offsets).astype(dtype)))


def _filled_categories(node: NestedArray, mask: Any, value: Any, name: str) -> Any:
    """Replace missing elements by the category `value`, and remove missing categories."""
    content, indices = nested_of(node.content), as_numpy(node.indices)
    valid = ~_null_mask(content)
    if not valid.all():
        indices = np.where(mask, 0, (np.cumsum(valid) - 1)[np.where(mask, 0, indices)]).astype(indices.dtype)
        content = select(content, valid)
    if mask.any():
        indices = indices.copy()
        indices[mask] = _index_of(value, content.to_list(), name)
    if has_missing(content):
        filled = _fill_node(content, value, f"{name}.content")
    elif kind_of(content).opaque:
        filled = rebuild(content, identity, validity=None, bit=0)
    else:
        filled = without_validity(content)
    return make("categorical", len(node), indices=asarray(indices), content=filled, meaning=node.meaning)


def _index_of(value: Any, categories: list[Any], name: str) -> int:
    if value not in categories:
        such = f", such as {show(categories[:3])}" if categories else ", which does not have categories"
        raise ValueRefusal("fill_null", f"value is {_shown(value)}; accepted: a category of {name}{such}")
    return categories.index(value)


def _filled_rows(node: NestedArray, mask: Any, row: Any, name: str) -> Any:
    """Return lists with missing rows replaced by `row`. If `row` is empty, the result can share the content."""
    kind = kind_of(node)
    if not mask.any():
        return rebuild(node, identity, validity=None, bit=0)
    if kind.width:
        starts = np.arange(len(node), dtype=np.int64) * node.width
        sizes = np.full(len(node), node.width, np.int64)
    else:
        offsets = offsets_on_host(node).astype(np.int64)
        starts, sizes = offsets[:-1].copy(), np.diff(offsets)
    content = node.content
    if len(row):
        starts[mask] = len(content)
        content = unwrap_flat(concatenate([nested_of(content), _of_type(row, content, f"{name}.content")]))
    sizes[mask] = len(row)
    lists = make_rows(starts, sizes, content)
    if kind_of(lists).opaque:
        content = gather_rows(content, starts[sizes > 0], sizes[sizes > 0])
        lists = make("list", len(node), offsets=asarray(np.append(0, np.cumsum(sizes))), content=content)
    if not kind.width:
        return _lists_like(node, as_numpy(lists.offsets), lists.content)
    if len(row) != node.width:
        return lists
    start = int(as_numpy(lists.offsets)[0])
    rows = part(lists.content, start, start + len(node) * node.width)
    return make("regular", len(node), width=node.width, content=rows)


def _of_type(values: Sequence[Any], node: Any, name: str) -> NestedArray:
    """Convert Python values to an array that `concatenate` can append to a node.

    Raise an error if a value does not fit the type of the node. None does not fit. Opaque nodes are not supported.
    """
    node = nested_of(node)
    kind, length = kind_of(node), len(values)
    if not length:
        return nested_of(part(node, 0, 0))
    if is_list_view(node):
        return as_list_views(_rows_of_type(values, decode(part(node, 0, 0), "fill_null"), name), node)
    if kind.lists or (kind.numbers and node.content.ndim > 1):
        return _rows_of_type(values, node, name)
    if kind.numbers:
        dtype = node.content.dtype
        numbers = np.array([_fitting(value, dtype, node, name) for value in values], dtype)
        return make(node.kind, length, content=asarray(numbers), meaning=node.meaning)
    if kind.packed:
        bits = np.array([_fitting(value, np.dtype(bool), node, name) for value in values])
        return make("bits", length, content=bitmap_of(bits))
    if kind.characters:
        for value in values:
            _check_characters(node, value, name)
        return from_python(list(values))
    if kind.indices:
        categories = nested_of(node.content).to_list()
        indices = np.array([_index_of(value, categories, name) for value in values], node.indices.dtype)
        return make("categorical", length, indices=asarray(indices), content=node.content, meaning=node.meaning)
    if not kind.fields:
        raise _unsuitable(node, values[0], name, "rows without elements, such as []")
    for value in values:
        if not isinstance(value, dict) or set(value) != set(node.field_names):
            keys = ", ".join(map(show, node.field_names))
            raise _unsuitable(node, value, name, f"a dict with a value for each field: {keys}")
    fields = zip(node.field_names, node.children, strict=True)
    columns = [_of_type([value[key] for value in values], field, f"{name}[{key!r}]") for key, field in fields]
    return make("record", length, names=node.field_names, parts=tuple(map(unwrap_flat, columns)), meaning=node.meaning)


def _rows_of_type(values: Sequence[Any], node: NestedArray, name: str) -> NestedArray:
    """Convert Python lists to an array that `concatenate` can append to a node of lists."""
    kind, width, content = kind_of(node), node.width, node.content
    if kind.numbers:  # rows of one length, stored as an array of several dimensions
        width, content = content.shape[1], asarray(np.empty((0, *content.shape[2:]), content.dtype))
    fixed = kind.width or kind.numbers
    for value in values:
        if not isinstance(value, (list, tuple, np.ndarray)) or (fixed and len(value) != width):
            raise _unsuitable(node, value, name, f"a list of {width} elements" if fixed else "a list")
    elements = unwrap_flat(_of_type(list(chain.from_iterable(values)), content, f"{name}.content"))
    if fixed:
        return make("regular", len(values), width=width, content=elements)
    offsets = as_numpy(offsets_of(list(map(len, values))))
    return _lists_like(node, offsets, elements)


def _lists_like(node: NestedArray, ends: Any, content: Any) -> NestedArray:
    """Return lists with the offset type of a node. The offsets become int64 if they do not fit the type.

    Lists keep the logical type of the node, such as that of a map, unless their offsets become int64.
    """
    fits = ends[-1] <= np.iinfo(node.offsets.dtype).max
    offsets = asarray(ends.astype(node.offsets.dtype if fits else np.int64))
    return make("list", len(ends) - 1, offsets=offsets, content=content, meaning=node.meaning if fits else None)


def _filled_record(node: NestedArray, value: Any, name: str) -> Any:
    """Fill all fields of a record, or only the fields that a dict names. Elements of missing records are filled, too.

    The result does not have missing records. Fields that the dict does not name keep their missing elements, and so
    does the index of a pandas DataFrame unless the dict names it.
    """
    _check_names(node, value)
    names, fields, index = node.field_names, [], index_columns(node)
    values = value if isinstance(value, dict) else {key: value for key in names if key not in index}
    for key, field in zip(names, node.children, strict=True):
        if node.validity is not None:
            field = unwrap_flat(cover_missing(field, node.validity, node.validity_offset))
        fields.append(_fill_node(field, values[key], f"{name}[{key!r}]") if key in values else field)
    return make("record", len(node), names=names, parts=tuple(fields), meaning=node.meaning)


# ----------------------------------------------------------------------------------------------------- missing=


def resolve_missing(obj: Any, missing: Any, masked: bool, dtype: Any = None) -> tuple[Any, Any]:
    """Return `obj` as an array without missing values, and its mask for ``missing="mask"``, otherwise None.

    Both arrays are USMArrays on the device of `obj`. The first is a NestedArray if it is not dense. The values are
    shared if nothing has to change. If `masked` is true, a NestedArray of records stays an array of records. Columns of
    a table are cast to `dtype`, if it is given, and to their common type otherwise.
    """
    obj = _with_mask(obj)
    if _is_scalar(obj):
        values, mask = resolve_missing(_one_element(obj), missing, masked)
        return values.reshape(()), None if mask is None else mask.reshape(())
    if is_frame(obj):
        return _matrix_and_mask(columns_of_frame(obj), len(obj), missing, dtype)
    column = nested_of(import_any(obj, None))
    refuse_storage(obj, column)
    column = single_chunk(column, True, "missing", obj)
    if kind_of(column).fields and not (masked and issubclass(type(obj), NestedArray)):
        return _matrix_and_mask(fields_of(column), len(column), missing, dtype)
    if _is(missing, "mask"):
        try:
            values, mask = values_and_mask(column, None)
        except (BufferError, ValueError) as error:
            raise relabel(error, "missing='mask'") from None
        mask = asarray(mask)
        return values, mask if column.device == CPU or is_on_host(column) else mask.to_device(column.device)
    filled = _dense_or_node(_filled_column(column, _NAN if _is(missing, "nan") else missing))
    if not is_on_host(column) and is_on_host(filled):
        filled = filled.to_device(column.device)
    return filled, None


def _with_mask(obj: Any) -> Any:
    """Return a masked array for an array of xarray with NaN, which ``isnull`` of xarray calls missing, as pandas does.

    Return other objects unchanged, and arrays in memory that the host cannot read.
    """
    if not _is_of_xarray(type(obj)) or getattr(obj.dtype, "kind", "") not in "fc":
        return obj
    try:
        values = as_numpy(obj)
    except (BufferError, TypeError):
        return obj
    is_missing = np.isnan(values)
    return np.ma.MaskedArray(values, is_missing) if is_missing.any() else obj


_is_of_xarray = derived_from("xarray", "DataArray", "Variable")


def _filled_column(column: NestedArray, value: Any) -> Any:
    """Return a column with `value` in place of missing elements."""
    try:
        if value is _NAN or has_missing(column) or kind_of(column).chunks:
            return _filled_chunks(column, value)
        _check_value(column, value, "x")
        return column
    except (TypeError, ValueError, OverflowError) as error:
        raise relabel(error, "missing") from None


def with_value(obj: Any, export: Callable[..., Any], missing: Any, copy: Copy) -> Any:
    """Fill missing values of a column, or of each column of a table, and export the result as dense arrays.

    Raise ValueError if `missing` is "mask".
    """
    if _is(missing, "mask"):
        raise ValueError("missing: 'mask' creates two arrays for each column; accepted by xarray: 'nan' or a value")
    if _is_scalar(obj):
        return export(resolve_missing(obj, missing, False)[0], copy=copy)
    filled, copy = _fill_object(obj, _NAN if _is(missing, "nan") else missing, copy)
    return export(filled, copy=copy)


def replace_missing(obj: Any, missing: Any, copy: Copy, library: str) -> tuple[Any, Copy]:
    """Fill missing values for a library that can represent them. Return the array, and the argument `copy` for it.

    For "pandas", the columns of a DataFrame are named by strings in the result, and the caller restores the labels.

    Raises
    ------
    ValueError
        `missing` is "mask" or "nan".
    """
    if _is(missing, "mask") or _is(missing, "nan"):
        raise ValueError(
            f"missing: {show(missing)} is for libraries of dense arrays, and {library} represents missing values"
            " itself; accepted: a value, or None, which keeps missing values"
        )
    if library == "pandas" and is_frame(obj):
        obj, missing = _with_names(obj, missing)
    return _fill_object(obj, missing, copy)


def _fill_object(obj: Any, value: Any, copy: Copy) -> tuple[Any, Copy]:
    filled = _filled_column(nested_of(import_any(_with_mask(obj), None)), value)
    return unwrap_flat(nested_of(filled)), None if copy is False and is_on_host(filled) else copy


def _with_names(frame: Any, missing: Any) -> tuple[Any, Any]:
    """Return a frame whose columns are named by unique strings, and `missing`.

    If `missing` is a dict, its keys become these names.
    """
    labels = frame.columns.tolist()
    _check_labels(missing, labels)
    names = list(map(str, labels))
    if len(set(names)) < len(names):
        names = list(map(str, range(len(names))))
    if isinstance(missing, dict):
        missing = {name: missing[label] for name, label in zip(names, labels, strict=True) if label in missing}
    frame = frame.copy(deep=False)
    frame.columns = names
    return frame, missing


def _check_labels(missing: Any, labels: list[Any]) -> None:
    """Raise ValueError if the dict `missing` has a key that is not the label of a column."""
    for key in _unknown_keys(missing, labels):
        raise ValueError(f"missing: the dict names the column {show(key)}; accepted: {', '.join(map(show, labels))}")


def _matrix_and_mask(columns: list[tuple[Any, Any]], length: int, missing: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the columns of a table as a matrix, and its mask or None. `missing` may be a dict of values by name."""
    _check_labels(missing, [name for name, _ in columns])
    values, masks = [], []
    for name, column in columns:
        value = missing.get(name) if isinstance(missing, dict) else missing
        node = _column(column, value)
        try:
            if _is(missing, "mask"):
                dense, mask = values_and_mask(node, None)
                values.append((name, dense_column(name, dense, "missing", dtype)))
                masks.append((name, asarray(mask)))
                continue
            filled = node if value is None else fill_null(node, _NAN if _is(value, "nan") else value)
        except (BufferError, TypeError, ValueError, OverflowError) as error:
            raise relabel(error, f"missing: column {show(name)}") from None
        values.append((name, dense_column(name, filled, "missing", dtype)))
    return matrix(values, length, "missing"), matrix(masks, length, "missing") if masks else None


def _is(missing: Any, word: str) -> bool:
    return isinstance(missing, str) and missing == word


def _column(column: Any, value: Any) -> NestedArray:
    """Import a field or a pandas Series as a NestedArray, to fill missing elements with `value`.

    As in pandas, NaN and NaT of a Series are missing. If `value` is None, NaN and NaT are kept.
    """
    if issubclass(type(column), (NestedArray, USMArray)):
        return nested_of(column)
    if value is None:
        try:
            return nested_of(asarray(column, copy=None))
        except (BufferError, TypeError):
            pass
    node = nested_of(import_any(column, None))
    refuse_storage(column, node)
    return node


def _is_scalar(obj: Any) -> bool:
    """Return whether an object is a number or a 0-d array. Arrays of NumPy must contain numbers or times."""
    if issubclass(type(obj), (bool, int, float, complex)):
        return True
    if getattr(obj, "ndim", None) != 0:
        return False
    if not issubclass(type(obj), (np.ndarray, np.generic, USMArray)):
        return True
    return casting.rank(obj.dtype) is not None or obj.dtype.kind in "mM"


def _one_element(obj: Any) -> Any:
    """Return a 0-d array as an array of one element, because a NestedArray has at least one dimension."""
    if issubclass(type(obj), np.ma.MaskedArray):  # `asarray` rejects masks
        return np.ma.MaskedArray(obj.data.reshape(1), np.ma.getmaskarray(obj).reshape(1))
    return asarray(obj, copy=None).reshape(1)
