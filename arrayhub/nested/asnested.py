"""asnested: import a nested object with the importer for its type."""

import datetime
import sys
from collections.abc import Iterator
from itertools import accumulate, repeat
from typing import Any

import numpy as np

from arrayhub._core.copying import VIEW, Copy, check_copy, forbidden, view_or_copy
from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import (
    PASSES_ON,
    Refusal,
    TypeRefusal,
    ValueRefusal,
    first_line,
    name_of_type,
    needed,
    reason_of,
    relabel,
    root_of,
    show,
)
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import is_frame
from arrayhub.convert.functions import (
    as_numpy,
    call_completing,
    call_traced,
    import_unadvised,
    is_traced,
    objects_of,
    refuse_bytes,
)
from arrayhub.convert.labels import check_labels, get_names, label_kind, shape_of
from arrayhub.convert.names import NESTED, sparse_library
from arrayhub.convert.target import array_of
from arrayhub.libraries.known import derived_from
from arrayhub.libraries.numpy import VALUES
from arrayhub.libraries.wrappers import known
from arrayhub.nested.array import (
    NestedArray,
    column_name,
    from_arrow,
    import_dense,
    make,
    nested_of,
    one_chunk,
    rename_column,
    unwrap_flat,
)
from arrayhub.nested.concatenate import concatenate
from arrayhub.nested.conform import change
from arrayhub.nested.from_awkward import from_awkward, is_awkward
from arrayhub.nested.from_numpy import from_numpy
from arrayhub.nested.from_python import from_python
from arrayhub.nested.from_torch import from_torch, is_jagged
from arrayhub.nested.matrix import from_table
from arrayhub.nested.opaque import has_bitmap, is_list_view
from arrayhub.nested.to_device import child_nodes, map_arrays, rebuild, walk

_is_multi_index = derived_from("pandas", "MultiIndex")
_is_extension_array = derived_from("pandas.api.extensions", "ExtensionArray")
is_arrow_scalar = derived_from("pyarrow", "Scalar")


def asnested(
    obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> NestedArray:
    """Import nested data (lists, strings, missing values, records). The values are shared if possible.

    Parameters
    ----------
    obj : object
        An object with Arrow's methods (pyarrow, polars, pandas, nanoarrow, arro3, duckdb, ...), an awkward array, a
        jagged torch tensor, a NumPy array of records, strings or masked values, a NestedArray, or any object that
        `asarray` accepts. Python lists of numbers, strings, times, None, lists, arrays and dicts are copied, and so are
        NumPy's strings. A dict of columns of any library becomes records.
    copy : {False, None, True}, optional
        False: share the memory, or raise BufferError. Values that a NestedArray cannot share, such as Python lists and
        NumPy strings, are encoded. None: also copy dense arrays that `asarray` cannot share. True: copy to host memory,
        and concatenate chunks.
    dtype, device, missing : optional
        As in `arrayhub.convert`. Numbers at any depth are cast to `dtype`.

    Returns
    -------
    NestedArray
        An array of kind ``"chunked"`` if the object has several chunks, unless `copy` is True.

    Raises
    ------
    TypeError
        The elements have different types, such as numbers and strings, or a type that arrays do not support.
    ValueError
        A string in a list contains surrogates, or the labels of two columns of a dict differ.
    OverflowError
        A time in a list does not fit in the 64 bits of its unit.
    InterfaceError
        `obj` describes its memory incorrectly.
    BufferError
        A NestedArray cannot represent the object, or a copy is needed and `copy` does not permit it. The message names
        the call to make instead.

    Examples
    --------
    >>> x = arrayhub.asnested([[1], [2, 3], None])
    >>> print(x.type)
    3 * option[var * int64]
    >>> x.to_list()
    [[1], [2, 3], None]
    >>> x.null_count
    1
    """
    if is_traced():
        options = {"copy": copy, "dtype": dtype, "device": device, "missing": missing}
        return call_traced("asnested", obj, asnested, **options)
    return call_completing(import_nested, obj, NESTED, copy=copy, dtype=dtype, device=device, missing=missing)


def import_nested(
    obj: Any, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> NestedArray:
    """Implement `asnested`. The call of a refusal is that of the importer, and may not work."""
    if missing is not None:
        obj, copy = hooks.nested.replace_missing(obj, missing, copy, "arrayhub", dtype)
    changes = dtype is not None or device is not None
    copy = None if changes and copy is False else check_copy(copy, "asnested")
    dense = None if copy else import_dense(obj, copy)
    x = nested_of(import_node(obj, copy) if dense is None else dense)
    return change_imported(x, obj, dtype, device) if changes else x


def change_imported(x: NestedArray, obj: Any, dtype: Any, device: Any) -> NestedArray:
    """Return an array that was imported from `obj` with other elements, or on another device. See `change`."""
    if dtype is not None:
        refuse_bytes(obj, dtype)
    if issubclass(type(obj), dict):
        columns = zip(x.children, obj.values(), strict=True)
        fields = [unwrap_flat(change_imported(nested_of(field), column, dtype, device)) for field, column in columns]
        return make("record", len(x), names=x.field_names, parts=tuple(fields))
    own = obj.dtype if dtype is not None and issubclass(type(obj), np.ndarray) else None
    if own is not None and (own.kind in "SU" or (own.names is not None and own == requested_dtype(dtype))):
        x, dtype = import_nested(import_unadvised(obj, dtype=dtype)), None  # NumPy casts text
    return change(x, dtype, device, issubclass(type(obj), VALUES))


def import_node(obj: Any, copy: bool | None) -> NestedArray:
    """Import an object that `import_dense` does not import, or for ``copy=True`` any object, as a NestedArray."""
    imported = None if arrow_loses_structure(type(obj)) else _by_arrow(obj, copy)
    if imported is None:
        imported = view_or_copy(_without_arrow, obj) if copy is None else _without_arrow(obj, copy)
    name = name_of(obj)
    if name is not None and column_name(imported) is None:
        imported = rename_column(imported, name)
    return concatenate([imported]) if copy else imported


def name_of(obj: Any) -> Any:
    """Return the name of a NestedArray, a pandas or polars Series, or a pandas Index. Return None for other objects."""
    if issubclass(type(obj), NestedArray):
        return column_name(obj)
    return get_names(obj) if label_kind(type(obj)) in ("series", "index", "name") else None


def is_column(obj: Any) -> bool:
    """Return whether the type of an object has a method that exports Arrow columns."""
    return any(hasattr(type(obj), name) for name in ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__"))


def dense_copy(obj: Any, keeps_lists: bool = False, dtype: Any = None) -> tuple[USMArray, bool] | None:
    """Convert a table, an Arrow object or an awkward array to a dense array. Copy the elements if necessary.

    Return the array, and whether it is a copy of columns or chunks. Return None for other objects, and for a single
    column that is not dense, for example because it contains strings, ragged lists or missing values. If `keeps_lists`
    is true, also return None for lists of variable length whose lengths are equal. The columns of a table are cast to
    `dtype`, if it is given, and to their common type otherwise. Errors of tables name the column.
    """
    if is_frame(obj):
        try:
            return from_table(obj, dtype), True
        except Refusal as error:
            error.call = error.call or _nested_import_of(obj)
            raise
    is_masked = issubclass(type(obj), np.ma.MaskedArray)  # whose mask may hide nothing
    is_dict = issubclass(type(obj), dict) and sparse_library(obj) is None  # SciPy's dok_array is a dict
    is_other = any(known(obj) for known in (is_column, is_awkward, is_pandas, is_jagged))
    if not (is_masked or is_dict or is_other or is_arrow_scalar(type(obj))):
        return None
    try:
        column = import_nested(obj, copy=None if is_dict else False)
        refuse_storage(obj, column)
        if keeps_lists and has_variable_length(column.chunks[0]):
            return None
        if not kind_of(column.chunks[0]).fields:
            decoded = kind_of(column.chunks[0]).opaque  # to a copy of the elements
            return column.to_dense(copy=None), decoded or one_chunk(column) is None
    except (BufferError, TypeError, ValueError) as error:
        # For several chunks, the error of `asarray` would suggest copy=True, which the caller has already passed.
        if issubclass(type(obj), NestedArray) and one_chunk(obj) is None:
            raise Refusal(name_of_type(type(obj)), reason_of(error), call="x.to_list()") from None
        return None
    try:
        return column.to_dense(copy=True) if dtype is None else from_table(concatenate([column]), dtype), True
    except (BufferError, TypeError, ValueError) as error:
        made = relabel(error, name_of_type(type(obj)))
        if isinstance(made, Refusal):
            made.call = getattr(error, "call", "") or _nested_import_of(obj)
        raise made from None


def _nested_import_of(obj: Any) -> str:
    """Return the call that imports a table, or "" if it is a NestedArray or `asnested` refuses it."""
    own = issubclass(type(obj), NestedArray)
    return "" if own or hooks.advice.import_source(obj).array is None else "arrayhub.asnested(x)"


def has_variable_length(node: NestedArray) -> bool:
    """Return whether the type of a node is a list of variable length, at any depth of lists."""
    kind = kind_of(node)
    if not kind.lists:
        return is_list_view(node)
    return not kind.width or has_variable_length(nested_of(node.content))


def refuse_storage(obj: Any, x: NestedArray) -> None:
    """Raise the error of `asarray` for pandas data whose stored numbers are not the values, such as periods."""
    first = x.chunks[0]
    if not known(type(obj)).asked and kind_of(first).numbers and first.extension is not None:
        import_unadvised(obj)


def nested_or_none(obj: Any, copy: Copy) -> NestedArray | None:
    """Import an object that `asarray` rejects, for a library of dense arrays. Return None if `asnested` rejects it too.

    For the following objects, return None, so that the caller raises the error of `asarray`:

    - streams, which can be read only once;
    - tables, because a dense copy of a table is a matrix;
    - numbers, decimals, intervals and categories, because the error of `asarray` names the call to make, for example
      for missing values.
    """
    if unread(obj) is not None:
        return None
    try:
        # For copy=False, pyarrow copies Python objects of pandas, which VIEW refuses.
        x = import_nested(obj, copy=VIEW if copy is False and is_pandas(obj) else None if copy else copy)
    except PASSES_ON:
        raise
    except Exception:
        return None
    first = x.chunks[0]
    kind = kind_of(first)
    numeric = kind.numbers or (kind.opaque and has_bitmap(first) and not is_list_view(first))
    return None if kind.fields or numeric or kind.indices else x


def find_arrays(obj: Any) -> list[Any]:
    """Return the arrays that an object consists of, or an empty list if the object cannot be imported."""
    arrays: list[Any] = []
    try:
        obj = obj.detach() if getattr(obj, "requires_grad", False) else obj
        array, sparse = array_of(obj), hooks.sparse.import_or_none(obj)
        if array is not None or sparse is not None:
            return [array] if sparse is None else [sparse.data, *sparse.structure]
        map_arrays(import_nested(obj), arrays.append, lambda *_parts, **_facts: None)
    except PASSES_ON:
        raise
    except Exception:
        return []
    return arrays


def arrow_loses_structure(cls: type) -> bool:
    """Return whether the instances of a type are arrays whose Arrow export loses structure.

    An ``xarray.DataArray`` exports a table that lacks all dimensions without coordinates. A ``PIL.Image`` exports a
    flat sequence of padded pixels. Other objects with ``__array_interface__`` are assumed to lose dimensions, too.
    """
    if hasattr(cls, "__array_interface__") and not issubclass(cls, (USMArray, NestedArray)):
        return True
    return label_kind(cls) == "coords"


def _by_arrow(obj: Any, copy: bool | None) -> NestedArray | None:
    """Import an Arrow producer. Return None for other objects.

    An Index or an ExtensionArray of pandas is imported as a Series. If the producer calls pyarrow and pyarrow fails,
    import the object with `asarray` if it is one-dimensional and dense, else raise BufferError.
    """
    obj = as_series(obj)
    try:
        column = from_arrow(obj)
    except PASSES_ON:
        raise
    except Exception as error:
        if is_frame(obj) and not obj.columns.is_unique:
            repeated = obj.columns[obj.columns.duplicated()][0]
            raise Refusal(
                "asnested",
                f"{name_of_type(type(obj))} has several columns named {show(repeated)}, which pandas"
                " does not export to Arrow; accepted: different names. Use x.set_axis(range(x.shape[1]), axis=1)",
            ) from error
        if isinstance(error, Refusal) or not (is_pandas(obj) or root_of(type(error)) == "pyarrow"):
            raise  # pyarrow also raises the errors of Python's own conversions
        array = array_of(obj)
        if array is not None and array.ndim == 1:  # not a DataFrame, which would lose its column names
            return nested_of(array)
        raise Refusal(
            "asnested",
            f"pyarrow cannot convert {name_of_type(type(obj))}: {first_line(error)}; accepted: columns of one"
            " Arrow type. Pass the columns of a frame one by one, x.to_numpy() of a sparse column, or x.tolist() of a"
            " column with values of one kind",
        ) from error
    return column if column is None or not is_pandas(obj) else correct_import(obj, column, copy)


def correct_import(obj: Any, x: NestedArray, copy: bool | None) -> NestedArray:
    """Return `x`, the import of a Series or a frame by pyarrow, with the columns that `_correct_column` returns."""
    if kind_of(x).chunks:
        starts = accumulate(map(len, x.chunks), initial=0)
        rows = [obj.iloc[k : k + len(chunk)] for k, chunk in zip(starts, x.chunks, strict=False)]
        return make("chunked", len(x), parts=tuple(map(correct_import, rows, x.chunks, repeat(copy))))
    if not is_frame(obj):
        return nested_of(_correct_column(obj, x, copy))
    levels = map(obj.index.get_level_values, range(obj.index.nlevels))
    columns = [column for _, column in obj.items()]
    # pyarrow exports the levels of the index after the columns, and only the bounds of a RangeIndex.
    columns += [sys.modules["pandas"].Series(level, copy=False) for level in levels if not hasattr(level, "step")]
    parts = list(x.children)
    for k, (column, part) in enumerate(zip(columns, parts, strict=True)):
        try:
            parts[k] = _correct_column(column, part, None if obj.index.nlevels > 1 and k >= obj.shape[1] else copy)
        except (OverflowError, TypeError, ValueError) as error:
            raise relabel(error, f"asnested: column {show(column.name)}") from error
    return rebuild(x, parts=tuple(parts))


def _correct_column(column: Any, part: Any, copy: bool | None) -> Any:
    """Return the import of a Series by pyarrow without a loss: with its own memory, or the times of its Python objects.

    pyarrow copies elements with gaps between them. Raise Refusal if `copy` is False and neither memory can be shared,
    and for VIEW also if pyarrow encodes booleans, strings and Python objects.
    """
    is_of_objects = column.dtype == object
    values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
    values = getattr(values, "codes", getattr(values, "asi8", values))  # of categories, and of times
    if copy is not VIEW and not is_of_objects and (copy or getattr(values, "flags", {"C": False})["C"]):
        return part
    x = nested_of(part)
    kind = kind_of(x)
    if is_of_objects:
        part = unwrap_flat(_import_times(column, x)) if _holds_times(x) else part
    elif kind.numbers:
        array = array_of(column)
        if array is not None and array.dtype == x.content.dtype:
            return part if array.flags["C"] else unwrap_flat(rebuild(x, content=array))
    is_of_arrow = hasattr(column.dtype, "pyarrow_dtype")
    is_encoded = is_of_objects or kind.packed or kind.characters or is_of_arrow
    if copy is not VIEW and (copy is not False or is_encoded):
        return part
    is_copied = len(column) > 0 and (is_of_objects or (kind.packed and not is_of_arrow))
    again = None if is_copied else from_arrow(column)
    if again is None or not (_is_shared(x.indices, again.indices) if kind.indices else _is_shared(x, again)):
        reason = f"pyarrow copies the column {show(column.name)} of dtype {column.dtype}"
        raise Refusal("asnested", reason, "contiguous elements, or copy=None", "arrayhub.asnested(x, copy=None)")
    return part


def _holds_times(node: Any) -> bool:
    """Return whether the elements of a node, at any depth of lists and records, are dates, times or durations."""
    if not isinstance(node, NestedArray):
        return bool(node.dtype.kind in "mM")
    kind = kind_of(node)
    if kind.lists or kind.fields:
        return any(map(_holds_times, child_nodes(node)))
    return kind.numbers and (node.content.dtype.kind in "mM" or (node.meaning or "").startswith("t"))


def _import_times(column: Any, x: NestedArray) -> NestedArray:
    """Import times in a Series of Python objects, whose import by pyarrow is `x`, without a loss.

    pyarrow drops nanoseconds of Timestamps and Timedeltas, drops the time of datetimes among dates, and interprets
    datetimes without a time zone as UTC if others have one. `from_python` raises an error for the latter two.
    """
    values = column.tolist()
    is_time = any(issubclass(cls, (datetime.datetime, datetime.timedelta)) for cls in set(map(type, values)))
    return from_python(_mark_missing(values)) if is_time or _has_nanoseconds(values) else x


def _has_nanoseconds(value: Any) -> bool:
    """Return whether a value, at any depth of lists and dicts, is a Timestamp or Timedelta with nanoseconds."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(_has_nanoseconds, value.values() if isinstance(value, dict) else value))
    found = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
    return bool(found) and value == value  # not NaT


def _mark_missing(value: Any) -> Any:
    """Replace NaN by None in lists and dicts, at any depth, because NaN is missing in pandas."""
    if isinstance(value, dict):
        return {key: _mark_missing(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_mark_missing, value))
    return None if isinstance(value, float) and value != value else value


def is_pandas(obj: Any) -> bool:
    """Return whether an object is a Series, DataFrame, Index or ExtensionArray of pandas."""
    return label_kind(type(obj)) in ("series", "frame", "index") or _is_extension_array(type(obj))


def as_series(obj: Any) -> Any:
    """Return an Index or an ExtensionArray of pandas as a Series on the same memory, and other objects unchanged."""
    cls = type(obj)
    is_values = (label_kind(cls) == "index" and not _is_multi_index(cls)) or _is_extension_array(cls)
    return sys.modules["pandas"].Series(obj, copy=False) if is_values else obj


def _is_shared(x: Any, again: Any) -> bool:
    """Return whether two nodes have the same values in memory. pyarrow creates the validity bitmaps of pandas data."""
    return all(a.ptr == b.ptr or not a.size for a, b in zip(_value_arrays(x), _value_arrays(again), strict=True))


def _value_arrays(x: Any) -> Iterator[USMArray]:
    """Yield the arrays of a node and of the nodes below, except bitmaps, offsets and indices."""
    for node in walk(x):
        yield from (node,) if isinstance(node, USMArray) else getattr(node, "buffers", ())


def _without_arrow(obj: Any, copy: bool | None) -> NestedArray:
    cls = type(obj)  # not isinstance, because __class__ may be overridden
    if issubclass(cls, (list, tuple)):
        forbidden(copy, "asnested", "Python lists do not have memory to view")
        return from_python(obj)
    if issubclass(cls, dict) and sparse_library(obj) is None:  # SciPy's dok_array is a dict
        return _from_columns(obj, copy)
    if issubclass(cls, np.ndarray):
        return from_numpy(obj, copy)
    objects = objects_of(obj)
    if objects is not None:  # of xarray, where NaN among strings is missing
        return from_numpy(np.where(obj.notnull().data, objects, None), copy)
    if is_awkward(obj):
        return from_awkward(obj, copy)
    if is_jagged(obj):
        return from_torch(obj, copy)
    if is_arrow_scalar(cls):  # pyarrow exports arrays, not scalars
        forbidden(copy, "asnested", "pyarrow.Scalar does not export its memory, so its value is copied")
        return import_nested(sys.modules["pyarrow"].repeat(obj, 1))
    if hasattr(cls, "__arrow_array__") and sys.modules.get("pyarrow") is not None:
        forbidden(copy, "asnested", "pyarrow calls __arrow_array__, which may copy")
        pyarrow = needed("pyarrow", "to convert the array")  # waits if another thread is still importing pyarrow
        return import_nested(pyarrow.array(obj))
    if issubclass(cls, VALUES):
        forbidden(copy, "asnested", "values do not have memory to view")
    array = import_unadvised(obj, copy=False if copy is VIEW else copy)
    if array.ndim == 0:
        reason = f"{show(array)} has 0 dimensions"
        raise TypeRefusal("asnested", reason, "one or more", "arrayhub.asnested(arrayhub.asarray(x).reshape(-1))")
    if (array.dtype.kind in "SU" or array.dtype.names is not None) and is_host_readable(array):
        return from_numpy(as_numpy(array), copy)
    return nested_of(array)


def _from_columns(columns: dict[Any, Any], copy: Copy) -> NestedArray:
    """Import a dict of columns, which have one length, as records that share the columns. Errors name the column."""
    columns_with_labels = [(name, x) for name, x in columns.items() if label_kind(type(x)) and len(shape_of(x)) == 1]
    labelled = [(f"column {show(name)}", x, False) for name, x in columns_with_labels]
    for argument in labelled:
        check_labels("asnested", [labelled[0], argument])
    parts: list[NestedArray] = []
    for name, column in columns.items():
        if not isinstance(name, str):
            raise TypeRefusal("asnested", f"the dict has the key {show(name)}", "names of columns, of type str")
        try:
            x = import_nested(column, copy=copy)
            one = one_chunk(x)
            if one is None:
                if copy in (False, VIEW):
                    raise Refusal("asnested", f"the column has {len(x.chunks)} chunks", "one. Pass copy=None")
                one = concatenate([x])
        except (BufferError, TypeError, ValueError, OverflowError) as error:
            raise relabel(error, f"asnested: column {show(name)}") from error
        if parts and len(one) != len(parts[0]):
            first = f"column {show(next(iter(columns)))} has {len(parts[0])}"
            reason = f"column {show(name)} has {len(one)} elements, and {first}"
            raise ValueRefusal("asnested", reason, "columns of one length")
        parts.append(one)
    fields = tuple(unwrap_flat(rename_column(part, None)) for part in parts)
    return make("record", len(parts[0]) if parts else 0, names=tuple(columns), parts=fields)
