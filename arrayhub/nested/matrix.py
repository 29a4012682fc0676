"""Copy the columns of a table to a matrix."""

import json
from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON, RangeRefusal, Refusal, TypeRefusal, form_of, reason_of, show
from arrayhub._core.tree import kind_of
from arrayhub.array import casting
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import NestedArray, cover_missing, nested_of, unwrap_flat


def from_record(node: NestedArray, dtype: Any = None) -> Any:
    """Copy the fields of a record to the columns of a matrix, as `dtype` if it is given.

    The index of a pandas DataFrame is omitted. No row of the record may be missing. Errors name the field.
    """
    columns = [(name, dense_column(name, field, "to_dense", dtype)) for name, field in fields_of(node)]
    return matrix(columns, len(node), "to_dense")


def fields_of(node: NestedArray) -> list[tuple[str, Any]]:
    """Return the names and arrays of the fields of a record. The index of a pandas DataFrame is omitted.

    If a record is missing, all its fields are missing in the result.
    """
    index = index_columns(node)
    names_and_fields = [pair for pair in zip(node.field_names, node.children, strict=True) if pair[0] not in index]
    if node.validity is None or node.null_count == 0:
        return names_and_fields
    return [(name, cover_missing(field, node.validity, node.validity_offset)) for name, field in names_and_fields]


def index_columns(node: NestedArray) -> list[Any]:
    """Return the names of the fields that contain the index of a pandas frame, according to pandas' Arrow metadata."""
    try:
        columns = json.loads(node.metadata[b"pandas"])["index_columns"]
    except (KeyError, RecursionError, TypeError, ValueError):
        return []
    return columns if isinstance(columns, list) else []


def columns_of_frame(frame: Any) -> list[tuple[Any, Any]]:
    """Return the names and the Series of a ``pandas.DataFrame``."""
    return [(name, frame.iloc[:, k]) for k, name in enumerate(frame.columns)]


def from_frame(frame: Any, dtype: Any = None) -> Any:
    """Return a matrix of the columns of a ``pandas.DataFrame`` without its index, like `from_record`.
    The columns are not imported through Arrow, because pandas' Arrow export converts NaN to null.
    """
    columns = []
    for name, series in columns_of_frame(frame):
        try:
            column = asarray(series, copy=None)
        except PASSES_ON:
            raise
        except (BufferError, TypeError, ValueError) as error:
            raise _error_of_column(error, "asarray", name) from error
        columns.append((name, _check_column(name, column, "asarray", dtype)))
    return matrix(columns, len(frame), "asarray")


def dense_column(name: Any, field: Any, call: str, dtype: Any = None) -> Any:
    """Return a field as a dense array of one number per row, cast to `dtype` if it is given. Errors name the field."""
    node = nested_of(field)
    if any(kind_of(chunk).characters for chunk in node.chunks):
        raise _column_error(Refusal, call, name, "elements are strings", "numbers, or times in all columns")
    try:
        column = node.to_dense(copy=None)
    except (BufferError, ValueError) as error:
        raise _error_of_column(error, call, name) from None
    return _check_column(name, column, call, dtype)


def _check_column(name: Any, column: Any, call: str, dtype: Any) -> Any:
    if column.ndim != 1:
        raise _column_error(Refusal, call, name, f"rows have shape {column.shape[1:]}", "single numbers")
    if casting.rank(column.dtype) is None and column.dtype.kind not in "mM":
        raise _column_error(
            Refusal, call, name, f"elements are of dtype {column.dtype}", "numbers, or times in all columns"
        )
    return column if dtype is None else casting.cast(column, dtype)


def _error_of_column(error: BaseException, call: str, name: Any) -> Exception:
    made = form_of(error)
    fields = (made.reason, made.accepted) if isinstance(made, Refusal) else (reason_of(error),)
    return _column_error(type(made), call, name, *fields)


def _column_error(kind: type[Exception], call: str, name: Any, why: str, accepted: str = "") -> Any:
    if not issubclass(kind, Refusal):
        return kind(f"{call}: column {show(name)}: {why}")
    return kind(call, f"column {show(name)}: {why}", accepted)


def matrix(columns: list[tuple[Any, Any]], length: int, call: str) -> Any:
    """Return a copy of columns in NumPy's common type, of shape ``(length, number of columns)``, in Fortran order.

    In this order, which pandas and polars also use, each column is copied at once, and `like` shares the columns.
    Raise TypeError without a common type, and OverflowError if it would round an integer or cannot hold a time.
    """
    dtype = _common_type(columns, call) if columns else np.dtype(np.float64)
    made = np.empty((length, len(columns)), dtype, order="F")
    for k, (name, column) in enumerate(columns):
        values = as_numpy(unwrap_flat(nested_of(column)))
        why = why_lost(values, dtype)
        if why:
            refusal = _column_error(RangeRefusal, call, name, why)
            refusal.call = "" if dtype.kind in "mM" else f"arrayhub.asarray(x, dtype='{dtype}')"
            raise refusal
        made[:, k] = values
    return asarray(made)


def why_lost(values: Any, dtype: Any) -> str:
    """Return why the common type `dtype` cannot represent all values of a column, or "" if it can."""
    if values.dtype.kind in "iu" and dtype.kind in "fc":
        lost = casting.find_rounded(values, dtype)
        if lost is not None:
            return f"{lost} would be rounded to the common type {dtype}; accepted: integers that {dtype} represents"
    elif dtype.kind in "mM" and values.dtype != dtype and not casting.keeps_times(values, dtype):
        return f"a time exceeds the range of the common type {dtype}; accepted: times that {dtype} represents"
    return ""


def _common_type(columns: list[tuple[Any, Any]], call: str) -> Any:
    _, first = columns[0]
    dtype = first.dtype.newbyteorder("=") if first.dtype.kind in "iufc" else first.dtype
    for name, column in columns[1:]:
        if (column.dtype.kind in "mM" or dtype.kind in "mM") and column.dtype.kind != dtype.kind:
            common = None
        else:
            try:
                common = np.promote_types(dtype, column.dtype)
            except TypeError:
                common = None
        if common is None:
            why = f"elements are of dtype {column.dtype}, and the preceding columns have the common type {dtype}"
            raise _column_error(TypeRefusal, call, name, why, "columns with a common type in NumPy")
        dtype = common
    return dtype
