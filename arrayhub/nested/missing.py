"""Missing values: boolean masks, filled copies, and the argument ``missing=`` of the ``as_*`` functions."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import RangeRefusal, TypeRefusal, ValueRefusal, relabel, show
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import may_be_nat, unread
from arrayhub.array import casting
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import is_frame
from arrayhub.convert.functions import as_numpy, asarray, import_unadvised, refuse_bytes
from arrayhub.convert.labels import label_kind
from arrayhub.convert.target import array_of, is_dense
from arrayhub.libraries.numpy import VALUES
from arrayhub.nested.array import (
    NestedArray,
    bitmap_of,
    check,
    cover_missing,
    field_facts,
    fill_rows,
    import_any,
    is_on_host,
    make,
    nested_of,
    part,
    unpack_bits,
    unwrap_flat,
    valid_mask,
)
from arrayhub.nested.asnested import change_imported, has_variable_length, refuse_storage
from arrayhub.nested.concatenate import concatenate, single_chunk
from arrayhub.nested.conform import clear_missing, element_type
from arrayhub.nested.elements import NAN, ROWS, build, check_number, convert_number, misfit, show_value
from arrayhub.nested.from_python import from_python, offsets_of
from arrayhub.nested.matrix import columns_of, index_columns, matrix
from arrayhub.nested.opaque import (
    as_list_views,
    decode,
    fill,
    has_bitmap,
    is_list_view,
    is_null_type,
    is_run_end,
    null_mask,
)
from arrayhub.nested.take import spans_of, take
from arrayhub.nested.to_device import child_nodes, rebuild, trim, walk

# ------------------------------------------------------------------------------------------------------------- masks


def is_null(x: NestedArray) -> Any:
    """Return a mask of the missing elements. See `NestedArray.is_null`."""
    masks = list(map(_null_mask, x.chunks))
    mask = asarray(masks[0] if len(masks) == 1 else np.concatenate(masks))
    return mask if is_on_host(x) else mask.to_device(x.device)


def _null_mask(node: NestedArray) -> Any:
    """Return a new ndarray that is True for missing elements. A bitmap on a device is copied to the host."""
    kind = kind_of(node)
    if kind.opaque and not has_bitmap(node):
        return null_mask(node)
    missing = ~valid_mask(node)
    if kind.indices and (unknown := _null_mask(nested_of(node.content))).any():  # missing categories
        node = node.to_host()
        check(node)
        missing |= unknown[np.where(missing, 0, as_numpy(node.indices))]  # a missing index may have any value
    nat = _nat(node)
    return missing if nat is None or nat.ndim > 1 else missing | nat  # a NaT does not make its row missing


def _nat(node: NestedArray) -> Any:
    """Return a mask of NumPy's NaT with the shape of the content, or None if the node does not contain NaT.

    Memory that the host cannot read is not searched.
    """
    if not kind_of(node).numbers or node.meaning is not None:
        return None
    if not may_be_nat(node.content) or not is_on_host(node.content):
        return None
    nat = np.isnat(as_numpy(node.content))
    return nat if nat.any() else None


def _mask_of_numbers(node: NestedArray) -> Any:
    """Return a mask with the shape of the content of a flat node, or of packed booleans."""
    if kind_of(node).packed:
        return _null_mask(node)
    nat, shape = _nat(node), node.content.shape
    rows = (~valid_mask(node)).reshape(-1, *[1] * (len(shape) - 1))
    if nat is not None:
        return rows | nat
    return rows if rows.shape == shape else np.array(np.broadcast_to(rows, shape))


def has_missing(node: Any) -> bool:
    """Return whether an element of a node or of one of its descendants is missing."""
    node = nested_of(node)
    kind = kind_of(node)
    if kind.numbers:
        is_counted = node.validity is None or is_on_host(node.validity)
        return (node.null_count > 0 if is_counted else not valid_mask(node).all()) or _nat(node) is not None
    if not kind.chunks and (node.validity is not None or kind.opaque) and _null_mask(node).any():
        return True
    return any(map(has_missing, child_nodes(node)))


def has_numbers(x: NestedArray) -> bool:
    """Return whether a column, or each column of records, consists of numbers, booleans or times."""
    node = x.chunks[0]
    parts = [nested_of(part).chunks[0] for part in (node.children if kind_of(node).fields else (node,))]
    return all(kind_of(part).numbers or kind_of(part).packed for part in parts)


def _without_bitmap(node: NestedArray) -> NestedArray:
    """Return a node with the same elements that does not mark any as missing."""
    return rebuild(node, validity=None, bit=node.validity_offset if kind_of(node).packed else 0)


def _push_down(node: NestedArray) -> NestedArray:
    """Return lists or records without a bitmap, with missing elements in missing rows and fields in missing records."""
    if node.validity is None or valid_mask(node).all():
        return _without_bitmap(node)
    if kind_of(node).fields:
        return rebuild(node, lambda field: unwrap_flat(cover_missing(field, node.validity, node.validity_offset)),
                       validity=None, bit=0)  # fmt: skip
    rows = trim(node) if kind_of(node).ends else node
    bitmap = bitmap_of(np.repeat(valid_mask(node), spans_of(node)[1]))
    return rebuild(rows, lambda content: unwrap_flat(cover_missing(content, bitmap, 0)), validity=None, bit=0)


def _split(node: Any) -> tuple[Any, Any]:
    """Return a node without bitmaps, and a node of the same structure with True in place of missing numbers.

    Opaque nodes are decoded. Elements of type null become NaN, as for ``missing="nan"``.
    """
    node = nested_of(node)
    node = decode(node, "missing") if kind_of(node).opaque else node
    kind = kind_of(node)
    if kind.numbers or kind.packed:
        return unwrap_flat(_without_bitmap(node)), asarray(_mask_of_numbers(node))
    if not (kind.lists or kind.fields):  # `to_dense` refuses strings and categories
        return _without_bitmap(node), asarray(_null_mask(node))
    node = _push_down(node)
    parts = list(map(_split, child_nodes(node)))
    values, masks = (map(itemgetter(k), parts) for k in range(2))
    return rebuild(node, lambda _: next(values)), rebuild(node, lambda _: next(masks))


def values_and_mask(x: NestedArray, copy: Copy) -> tuple[Any, Any]:
    """Return the values of a node as a dense array, and a mask of the same shape that is True for missing elements.

    Missing elements have the values that the producer left in the memory. Raises as `NestedArray.to_dense` does.
    """
    values, mask = _split(single_chunk(x, copy, "missing"))
    return nested_of(values).to_dense(copy=copy), nested_of(mask).to_dense(copy=None)


# ------------------------------------------------------------------------------------------------------------ filling


def fill_null(x: NestedArray, value: Any) -> Any:
    """Replace missing elements. See `NestedArray.fill_null`."""
    if value is None:
        raise TypeRefusal("fill_null", "the value None stands for missing elements", "a number, a string or a time")
    filled = _fill_chunks(x, value)
    return filled if has_variable_length(nested_of(filled).chunks[0]) else _dense_or_node(filled)


def _fill_chunks(x: NestedArray, value: Any) -> Any:
    """Return an array of one chunk with missing elements replaced by `value`, or `x` itself if nothing changes."""
    _check_value(x, value, "x")
    missing = has_missing(x)
    if not (missing or value is NAN):
        return x
    return _fill_node(single_chunk(x.to_host() if missing else x, True, "missing"), value, "x")


def _check_value(node: Any, value: Any, name: str) -> None:
    """Raise TypeError if `value` cannot replace numbers or times of a node, even if no element is missing.

    For records, raise ValueError if `value` is a dict with unknown field names. Other values for records are not
    checked, because a value need not fit all fields.
    """
    node = nested_of(node).chunks[0]
    kind = kind_of(node)
    if kind.fields:
        for key in _unknown_keys(value, node.field_names):
            raise ValueRefusal("fill_null", f"value names the field {show(key)}", ", ".join(node.field_names))
    elif kind.numbers or kind.packed:
        check_number(node, value, name)
    elif is_list_view(node) or is_run_end(node):
        _check_value(decode(part(node, 0, 0), "fill_null"), value, name)
    elif kind.lists and not isinstance(value, ROWS):
        _check_value(node.content, value, f"{name}.content")


def _unknown_keys(value: Any, names: Iterable[str]) -> list[Any]:
    """Return the keys of the dict `value` that are not in `names`. If `value` is not a dict, return an empty list."""
    return [key for key in value if key not in names] if isinstance(value, dict) else []


def _dense_or_node(node: Any) -> Any:
    """Convert a node to a dense array. Return the node if it contains records or cannot be converted."""
    is_nested = isinstance(node, NestedArray)
    if not is_nested or any(isinstance(below, NestedArray) and kind_of(below).fields for below in walk(node)):
        return node
    try:
        return node.to_dense(copy=None)
    except (BufferError, ValueError):
        return node


def _fill_node(node: Any, value: Any, name: str) -> Any:
    """Return an array with missing elements at every depth replaced by `value`. `name` is the node's name in errors.

    The array keeps the node's names, metadata and extension types. A flat node without these becomes a USMArray.
    """
    node = nested_of(node)
    kind = kind_of(node)
    if kind.numbers or kind.packed:
        filled = _fill_numbers(node, value, name)
    elif kind.fields:
        filled = _fill_record(node, value, name)
    elif kind.lists and not isinstance(value, ROWS):
        filled = _fill_elements(node, value, name)
    elif kind.opaque:
        filled = _fill_opaque(node, value, name)
    else:
        filled = _fill_by_copy(node, value, name)
    filled, facts = nested_of(filled), field_facts(node)
    if filled.kind != node.kind and not kind.packed:
        facts["field"] = None  # an extension type requires its storage type
    return unwrap_flat(rebuild(filled, **facts))


def _fill_numbers(node: NestedArray, value: Any, name: str) -> Any:
    if kind_of(node).numbers and value is not NAN and _nat(node) is None:
        filled = fill_rows(node, convert_number(value, node, name)) if node.null_count else node.content
        return make("flat", len(node), content=filled, meaning=node.meaning)
    mask = _mask_of_numbers(node)
    if kind_of(node).packed:
        node = nested_of(unpack_bits(node))
    if value is NAN:
        node = nested_of(_with_nan(node, mask, name))
    content = node.content
    if mask.any() and not (value is NAN and np.isnan(as_numpy(content)[mask]).all()):
        content = content.copy()
        numbers = as_numpy(content)
        np.putmask(numbers, mask, convert_number(value, node, name))  # faster than numbers[mask] = number
    return make("flat", len(node), content=content, meaning=node.meaning)


def _with_nan(node: NestedArray, mask: Any, name: str) -> Any:
    """Return bools and integers as float64, and date32 as NumPy's days, for ``missing="nan"``.

    Raise OverflowError if float64 cannot represent an integer that is not missing. Other elements are unchanged.
    """
    content = node.content
    if node.meaning == "tdD":
        return asarray(as_numpy(content).astype("M8[D]"))
    if node.meaning is not None or casting.rank(content.dtype) not in (0, 1):
        return node
    if content.dtype.kind in "iu":
        lost = casting.find_rounded(as_numpy(content)[~mask], np.dtype(np.float64))
        if lost is not None:
            accepted = "integers that float64 represents. Pass missing='mask', or a value, which keeps the integers"
            raise RangeRefusal("fill_null", f"{name} has the integer {lost}, which float64 would round", accepted)
    return casting.cast(content, np.dtype(np.float64))


def _fill_record(node: NestedArray, value: Any, name: str) -> Any:
    """Fill all fields of a record, or only the fields that a dict names. Elements of missing records are filled, too.

    The result does not have missing records. Fields that the dict does not name keep their missing elements, and so
    does the index of a pandas DataFrame unless the dict names it.
    """
    _check_value(node, value, name)
    names, index = node.field_names, index_columns(node)
    values = value if isinstance(value, dict) else {key: value for key in names if key not in index}
    record = _push_down(node)
    fields = [
        _fill_node(field, values[key], f"{name}[{key!r}]") if key in values else field
        for key, field in zip(names, record.children, strict=True)
    ]
    return rebuild(record, parts=tuple(fields))


def _fill_elements(node: NestedArray, value: Any, name: str) -> Any:
    """Fill the elements of lists, and of missing rows of a fixed length."""
    if kind_of(node).width:
        node = _push_down(node)
    missing = _null_mask(node)
    if missing.any():
        reason = f"row {int(missing.argmax())} of {name} is missing, and value is {show_value(value)}"
        raise ValueRefusal("fill_null", reason, "a list for missing rows, such as []")
    return rebuild(node, lambda content: _fill_node(content, value, f"{name}.content"), validity=None, bit=0)


def _fill_opaque(node: NestedArray, value: Any, name: str) -> Any:
    """Fill the values of runs and the rows of list views. pyarrow fills decimals and intervals."""
    if is_null_type(node):
        return decode(node, "fill_null").content if value is NAN else from_python([value] * len(node))
    if is_run_end(node):
        ends, values = node.children
        return rebuild(node, parts=(ends, _fill_node(values, value, name)))
    if is_list_view(node):
        return as_list_views(_fill_node(decode(node, "fill_null"), value, name), node)
    if not has_missing(node):
        return node
    if not has_bitmap(node):
        accepted = "elements of one type. Fill its children one by one, as in x.children[0].fill_null(value)"
        raise TypeRefusal("fill_null", f"{name} has elements of several types, {element_type(node)}", accepted)
    if value is NAN:
        raise misfit(node, value, name)
    return fill(node, value)


def _fill_by_copy(node: NestedArray, value: Any, name: str) -> Any:
    """Replace missing strings, rows or categories by one element, which is built from `value`."""
    missing, kind = _null_mask(node), kind_of(node)
    if kind.indices:
        node = _fill_categories(node, missing, value, name)
    if kind.width and missing.any() and len(value) != node.width:
        content = part(node.content, 0, len(node) * node.width)
        node = make("list", len(node), offsets=offsets_of(spans_of(node)[1]), content=content)
    if missing.any() or kind.characters:
        element = build([value], node, name)
    if not missing.any():
        return _without_bitmap(node)
    if kind_of(node).ends and not len(value) and not spans_of(node)[1][missing].any():  # the content does not change
        return _without_bitmap(node)
    return take(concatenate([node, element]), np.where(missing, len(node), np.arange(len(node))))


def _fill_categories(node: NestedArray, missing: Any, value: Any, name: str) -> NestedArray:
    """Remove the missing categories, to which only missing elements refer, and fill the elements of categories."""
    content, indices = nested_of(node.content), as_numpy(node.indices)
    valid = ~_null_mask(content)
    if not valid.all():
        indices = np.where(missing, 0, (np.cumsum(valid) - 1)[np.where(missing, 0, indices)]).astype(indices.dtype)
        content = take(content, np.flatnonzero(valid))
    filled = _fill_node(content, value, f"{name}.content") if has_missing(content) else _without_bitmap(content)
    return rebuild(node, lambda _: unwrap_flat(filled), indices=asarray(indices))


# ----------------------------------------------------------------------------------------------------- missing=


def check_replacement(missing: Any, dtype: Any) -> None:
    """Raise ValueError for "mask" in a dict, and for "nan" if `dtype` is a type of integers or booleans."""
    words = missing.values() if isinstance(missing, dict) else (missing,)
    if not _is(missing, "mask") and any(_is(word, "mask") for word in words):
        raise ValueRefusal("missing", "the dict has 'mask', which is for all columns", "'nan' or a value for a column")
    if dtype is not None and any(_is(word, "nan") for word in words) and casting.rank(requested_dtype(dtype)) in (0, 1):
        raise ValueRefusal("missing", f"{requested_dtype(dtype)} does not have NaN", "a value, or a dtype of floats")


def resolve_missing(obj: Any, missing: Any, dtype: Any = None, keeps_lists: bool = False) -> tuple[Any, Any]:
    """Return `obj` as an array without missing values, and its mask for ``missing="mask"``, otherwise None.

    Both arrays are USMArrays on the device of `obj`. The first is a NestedArray if it is not dense. The values are
    shared if nothing has to change. Columns of a table are cast to `dtype`, if it is given, and to their common type
    otherwise. If `keeps_lists` is true, lists of variable length remain a NestedArray, even if their lengths are equal.
    """
    obj = _with_mask(obj)
    if _is_scalar(obj):
        # `asarray` rejects masks, and a NestedArray has at least one dimension.
        one = obj if issubclass(type(obj), np.ma.MaskedArray) else import_unadvised(obj, copy=None)
        values, mask = resolve_missing(one.reshape(1), missing, dtype)
        return values.reshape(()), None if mask is None else mask.reshape(())
    if is_frame(obj):
        return _matrix_and_mask(columns_of(obj), len(obj), missing, dtype)
    column = _import_column(obj, dtype)
    refuse_storage(obj, column)
    keeps_lists = keeps_lists and not issubclass(type(obj), VALUES) and has_variable_length(column.chunks[0])
    column = single_chunk(column, True, "missing", obj)
    is_view = dtype is None and is_dense(obj) and not isinstance(obj, np.ma.MaskedArray) and array_of(obj) is not None
    if kind_of(column).fields and (not is_view or _is(missing, "mask", "nan") or has_missing(column)):
        return _matrix_and_mask(columns_of(column), len(column), missing, dtype)
    values, mask = _fill_or_mask(column, missing, dtype)
    if is_view and values is column:
        return obj, None
    arrays = [values if keeps_lists else _dense_or_node(values)] if mask is None else [values, mask]
    if not is_on_host(column):
        arrays = [array.to_device(column.device) if is_on_host(array) else array for array in arrays]
    return arrays[0], None if mask is None else arrays[1]


def _import_column(obj: Any, dtype: Any) -> NestedArray:
    """Import an object, with numbers of the type `dtype`, which has to represent the value for missing elements.

    Text and times are cast after the missing elements are replaced, because a number cannot be NaT.
    """
    column = nested_of(import_any(obj, None))
    if dtype is None or any(isinstance(node, USMArray) and node.dtype.kind in "mM" for node in walk(column)):
        return column
    refuse_bytes(obj, dtype)
    try:
        return change_imported(column, obj, dtype, None)
    except TypeRefusal:
        return column


def _with_mask(obj: Any) -> Any:
    """Return a masked array for an array of xarray or pandas with NaN, which ``isnull`` of the library calls missing.

    Return one for booleans of pandas, too, which pyarrow would encode. Return other objects unchanged, such as floats
    of pandas, whose NaN pyarrow calls missing, and memory of a device.
    """
    characters = {"coords": "efdgFDG", "dims": "efdgFDG", "series": "?gFDG", "index": "?gFDG"}
    accepted = characters.get(str(label_kind(type(obj))), "")
    if not accepted or getattr(obj.dtype, "char", " ") not in accepted:
        return obj
    try:
        values = as_numpy(obj)
    except (BufferError, TypeError):
        return obj
    is_missing = np.isnan(values)
    return np.ma.MaskedArray(values, is_missing) if is_missing.any() or values.dtype == bool else obj


def _fill_or_mask(column: NestedArray, missing: Any, dtype: Any, subject: str = "") -> tuple[Any, Any]:
    """Return a column with a value in place of missing elements, and None. For "mask", return `values_and_mask`.

    For "nan" and a `dtype` of numbers, NaT becomes NaN. Errors are about `subject`, or about the argument ``missing``.
    """
    try:
        if _is(missing, "mask"):
            return values_and_mask(column, None)
        filled = _fill_chunks(column, NAN if _is(missing, "nan") else missing)
    except (BufferError, TypeError, ValueError, OverflowError) as error:
        raise relabel(error, subject or ("missing='mask'" if _is(missing, "mask") else "missing")) from None
    to_numbers = _is(missing, "nan") and dtype is not None and casting.rank(requested_dtype(dtype)) is not None
    return _nat_to_nan(filled) if to_numbers else filled, None


def _nat_to_nan(node: Any) -> Any:
    """Return times, or lists of times, as float64 with NaN if one is NaT. Return other elements unchanged."""
    node = nested_of(node)
    if kind_of(node).lists:
        return rebuild(node, _nat_to_nan)
    is_time = kind_of(node).numbers and node.content.dtype.kind in "mM" and is_on_host(node.content)
    nat = np.isnat(as_numpy(node.content)) if is_time else np.False_
    return asarray(np.where(nat, np.nan, as_numpy(node.content).astype(float))) if nat.any() else unwrap_flat(node)


def replace_missing(obj: Any, missing: Any, copy: Copy, library: str, dtype: Any = None) -> tuple[Any, Copy]:
    """Fill missing values for a library of columns. Return the array, and the argument `copy` for it.

    Raises
    ------
    ValueError
        `missing` is "mask", or it is "nan" and the library is not xarray, which cannot represent missing values.
    """
    check_replacement(missing, dtype)
    if library == "xarray" and _is(missing, "mask"):
        raise ValueRefusal("missing", "'mask' creates two arrays, and xarray has one", "'nan' or a value")
    if library != "xarray" and _is(missing, "mask", "nan"):
        raise ValueRefusal(
            "missing",
            f"{show(missing)} is for libraries of dense arrays, and {library} represents missing values itself",
            "a value, or None, which keeps missing values",
        )
    if library == "xarray" and _is_scalar(obj):
        return resolve_missing(obj, missing, dtype)[0], copy
    column = _import_column(_with_mask(obj), dtype)
    filled, _ = _fill_or_mask(column, missing, dtype)
    copy = None if copy is False and is_on_host(filled) else copy
    is_built = issubclass(type(obj), (*VALUES, np.ma.MaskedArray)) or unread(obj) is not None
    return obj if filled is column and dtype is None and not is_built else unwrap_flat(nested_of(filled)), copy


def check_labels(missing: Any, labels: list[Any]) -> None:
    """Raise ValueError if the dict `missing` has a key that is not the label of a column."""
    for key in _unknown_keys(missing, labels):
        raise ValueRefusal("missing", f"the dict names the column {show(key)}", ", ".join(map(show, labels)))


def _matrix_and_mask(columns: list[tuple[Any, Any]], length: int, missing: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the columns of a table as a matrix, and its mask or None. `missing` may be a dict of values by name."""
    check_labels(missing, [name for name, _ in columns])
    values, masks = [], []
    for name, column in columns:
        value = missing.get(name) if isinstance(missing, dict) else missing
        node = _column(column, value, dtype)
        subject = f"missing: column {show(name)}"
        filled, mask = (node, None) if value is None else _fill_or_mask(node, value, dtype, subject)
        if mask is not None:
            masks.append((name, mask))
            if dtype is not None and isinstance(filled, USMArray) and filled.dtype.kind == "f":
                filled = clear_missing(filled, ~as_numpy(mask))
        values.append((name, filled))
    mask = matrix(masks, length, "missing", np.dtype(bool)) if _is(missing, "mask") else None
    return matrix(values, length, "missing", dtype), mask


def _is(missing: Any, *words: str) -> bool:
    return isinstance(missing, str) and missing in words


def _column(column: Any, value: Any, dtype: Any) -> NestedArray:
    """Import a field or a pandas Series as a NestedArray, to fill missing elements with `value`. See `_import_column`.

    As in pandas, NaN and NaT of a Series are missing. If `value` is None, NaN and NaT are kept.
    """
    if issubclass(type(column), (NestedArray, USMArray)):
        return nested_of(column)
    if value is None:
        try:
            return nested_of(import_unadvised(column, copy=None))
        except (BufferError, TypeError):
            pass
    node = _import_column(_with_mask(column), dtype)
    refuse_storage(column, node)
    return node


def _is_scalar(obj: Any) -> bool:
    """Return whether an object is a number or a 0-d array. Arrays of NumPy must contain numbers, times or objects."""
    if issubclass(type(obj), (bool, int, float, complex)):
        return True
    if not hasattr(type(obj), "ndim") or obj.ndim != 0:
        return False
    if not issubclass(type(obj), (np.ndarray, np.generic, USMArray)):
        return True
    return casting.rank(obj.dtype) is not None or obj.dtype.kind in "mMO"
