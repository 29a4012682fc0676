"""Copy the columns of a table to a matrix."""

import json
from typing import Any

import numpy as np

from arrayhub._core.errors import RangeRefusal, Refusal, TypeRefusal, form_of, reason_of, show
from arrayhub._core.tree import kind_of
from arrayhub.array import casting
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, asarray, import_unadvised
from arrayhub.nested.array import NestedArray, cover_missing, nested_of


def from_table(table: Any, dtype: Any = None) -> Any:
    """Copy the columns of a record without missing rows, or of a ``pandas.DataFrame``, to a matrix. See `matrix`."""
    return matrix(columns_of(table), len(table), "to_dense" if isinstance(table, NestedArray) else "asarray", dtype)


def columns_of(table: Any) -> list[tuple[Any, Any]]:
    """Return the names and columns of a record or a ``pandas.DataFrame``. The index of a DataFrame is omitted.

    If a record is missing, all its fields are missing in the result. The columns of a DataFrame are Series, because
    pandas' Arrow export converts NaN to null.
    """
    if not isinstance(table, NestedArray):
        return [(name, table.iloc[:, k]) for k, name in enumerate(table.columns)]
    index = index_columns(table)
    names_and_fields = [pair for pair in zip(table.field_names, table.children, strict=True) if pair[0] not in index]
    if table.validity is None or table.null_count == 0:
        return names_and_fields
    return [(name, cover_missing(field, table.validity, table.validity_offset)) for name, field in names_and_fields]


def index_columns(node: NestedArray) -> list[Any]:
    """Return the names of the fields that contain the index of a pandas frame, according to pandas' Arrow metadata."""
    try:
        columns = json.loads(node.metadata[b"pandas"])["index_columns"]
    except (KeyError, RecursionError, TypeError, ValueError):
        return []
    return columns if isinstance(columns, list) else []


def matrix(columns: list[tuple[Any, Any]], length: int, call: str, dtype: Any = None) -> Any:
    """Return a copy of columns as a matrix of shape ``(length, number of columns)``, in Fortran order.

    In this order, which pandas and polars also use, each column is copied at once, and `like` shares the columns. The
    columns are cast to `dtype`, if it is given, and to NumPy's common type otherwise. Raise TypeError without a common
    type, and OverflowError if it would round an integer or cannot hold a time. Errors name the column.
    """
    dense = []
    for name, column in columns:
        try:
            array = _dense_column(column)
        except (BufferError, TypeError, ValueError) as error:
            raise _error_of_column(error, call, name) from error
        dense.append((name, array if dtype is None else casting.cast(array, dtype)))
    common = _common_type(dense, call) if dense else np.dtype(dtype or np.float64)
    made = np.empty((length, len(dense)), common, order="F")
    for k, (name, column) in enumerate(dense):
        values = as_numpy(column)
        why = why_lost(values, common)
        if why:
            refusal = _error_of_column(RangeRefusal("", why), call, name)
            is_complete = common.kind not in "mM" and call != "missing"  # whether `dtype` is all that is missing
            refusal.call = f"arrayhub.asarray(x, dtype='{common}')" if is_complete else ""
            raise refusal
        made[:, k] = values
    return asarray(made)


def _dense_column(column: Any) -> Any:
    """Return a field or a pandas Series as a dense array of one number per row."""
    own = isinstance(column, (NestedArray, USMArray))
    node = nested_of(column if own else import_unadvised(column, copy=None))
    if any(kind_of(chunk).characters for chunk in node.chunks):
        raise Refusal("", "elements are strings", "numbers, or times in all columns")
    dense = node.to_dense(copy=None)
    if dense.ndim != 1:
        raise Refusal("", f"rows have shape {dense.shape[1:]}", "single numbers")
    if casting.rank(dense.dtype) is None and dense.dtype.kind not in "mM":
        raise Refusal("", f"elements are of dtype {dense.dtype}", "numbers, or times in all columns")
    return dense


def _error_of_column(error: BaseException, call: str, name: Any) -> Any:
    """Return the same error about a column, without its call."""
    made, column = form_of(error), f"column {show(name)}"
    if not isinstance(made, Refusal):
        return type(made)(f"{call}: {column}: {reason_of(error)}")
    return type(made)(call, f"{column}: {made.reason}", made.accepted)


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
        has_times = column.dtype.kind in "mM" or dtype.kind in "mM"
        try:
            common = None if has_times and column.dtype.kind != dtype.kind else np.promote_types(dtype, column.dtype)
        except TypeError:
            common = None
        if common is None:
            why = f"elements are of dtype {column.dtype}, and the preceding columns have the common type {dtype}"
            raise _error_of_column(TypeRefusal("", why, "columns with a common type in NumPy"), call, name)
        dtype = common
    return dtype
