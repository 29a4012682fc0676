"""Export to pandas: `as_pandas`."""

import json
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import PACKED_BOOLEANS, needed, relabel, show
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import packs_booleans
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import are_complete_records, columns_of_objects, pandas_frame, without_index
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.convert.target import is_dense
from arrayhub.libraries.dtypes import cast_times
from arrayhub.libraries.known import ROWS
from arrayhub.nested.array import NestedArray, export, unwrap_flat, with_offsets
from arrayhub.nested.asnested import arrow_loses_structure, as_series, is_column, name_of
from arrayhub.nested.export.arrow import as_arrow, to_arrow
from arrayhub.nested.export.arrow import check as check_arrow
from arrayhub.nested.missing import check_labels
from arrayhub.nested.opaque import LIST_VIEWS, decode, is_list_view
from arrayhub.nested.to_device import find_reason, on_host, rebuild, trim

if TYPE_CHECKING:
    import pandas as pd


def as_pandas(
    obj: Any, /, *, copy: Copy = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> "pd.Series | pd.DataFrame":
    """Return a ``pandas.Series`` that shares the memory of `obj`, or a ``pandas.DataFrame`` of records or of a matrix.

    The type of `obj` determines the result and the types of its columns:

    - A Series or a DataFrame of pandas is returned unchanged, or copied if `copy` is True. An Index or an
      ExtensionArray becomes a Series on the same memory.
    - Dense arrays, such as those of NumPy or torch, get the types of ``pandas.Series(numpy_array)``. NaN means missing.
      Each column of a matrix of Python objects, strings or masked elements gets the type of its elements.
    - Arrow columns and tables, such as those of pyarrow or polars, and NestedArrays get Arrow types
      (``pandas.ArrowDtype``).
    - Data without a NumPy type, such as strings, lists and integers with missing values, also gets Arrow types.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {False, None, True}, optional
        As in `as_arrow`. Times in other units than seconds, milliseconds, microseconds and nanoseconds require a copy,
        because pandas does not support other units. String views, as in polars, are copied to strings with offsets at
        any depth, and list views are converted to lists.
    dtype, device, missing : optional
        As in `as_arrow`.

    Returns
    -------
    pandas.Series or pandas.DataFrame
        If some records are missing, the result is a Series, because a DataFrame cannot represent missing rows. The name
        of a Series of pandas or polars is kept, even if `asnested` imported the Series. The index of a table is
        restored from the pandas metadata in the table's schema.

    Raises
    ------
    BufferError, TypeError, ValueError, OverflowError
        As in `as_arrow`.
    ImportError
        pandas is not installed.

    Examples
    --------
    >>> import pandas
    >>> arrayhub.as_pandas(np.array([1.5, np.nan])).isna().tolist()
    [False, True]
    >>> arrayhub.as_pandas(np.eye(2)).shape
    (2, 2)
    """
    pandas = needed("pandas", "to create its arrays")
    if hasattr(type(obj), "ndim") and obj.ndim == 2 and (columns := columns_of_objects(obj)):
        copy = None if copy is False else copy  # a strided column is encoded, as booleans and strings are
        parts = [as_pandas(x, copy=copy, dtype=dtype, device=device, missing=missing) for x in columns]
        return pandas_frame(parts, range(len(parts)))
    dense = is_dense(obj)
    name = None if dense else name_of(obj)
    column = obj if dense else as_series(obj)
    is_own = missing is None and isinstance(column, (pandas.Series, pandas.DataFrame))
    if is_own and (device is None or Device(device) == CPU):
        is_cast = dtype is not None and not np.all(column.dtypes == requested_dtype(dtype))
        column = _cast(pandas, column, dtype) if is_cast else column
        return _copy(pandas, column) if check_copy(copy, "as_pandas") else column
    if missing is not None and isinstance(obj, pandas.DataFrame):
        return _convert_columns(obj, missing, copy=copy, dtype=dtype, device=device)
    made = export("pandas", pandas, _to_pandas, obj, copy, dtype, device, missing, ("Series",))
    if missing is not None and isinstance(obj, pandas.Series):
        made.index = obj.index
    if name is not None and isinstance(made, pandas.Series):
        made.name = name
    return made


def _convert_columns(frame: Any, missing: Any, **options: Any) -> Any:
    """Return a DataFrame whose columns were converted one by one. A dict `missing` has the values of some columns."""
    check_labels(missing, frame.columns.tolist())
    made = frame.copy(deep=False)
    for k, label in enumerate(frame.columns):
        value = missing.get(label) if isinstance(missing, dict) else missing
        try:
            made.isetitem(k, as_pandas(frame.iloc[:, k], missing=value, **options))
        except (BufferError, OverflowError, TypeError, ValueError) as error:
            argument = "dtype" if missing is None else "missing"
            refusal = relabel(error, f"{argument}: column {show(label)}")
            raise hooks.advice.complete_refusal(refusal, frame, "pandas", missing=missing, **options) from error
    return made


def _copy(pandas: Any, column: Any) -> Any:
    """Return a copy of a Series or a DataFrame. ``Series.copy`` shares memory of Arrow, which `as_arrow` copies."""
    made = column.copy()
    if column.ndim == 1 and isinstance(column.array, pandas.arrays.ArrowExtensionArray):
        values = column.dtype.__from_arrow__(as_arrow(column, copy=True))
        return column._constructor(values, made.index, copy=False).__finalize__(column)
    for k, dtype in enumerate(column.dtypes if column.ndim == 2 else ()):
        if isinstance(dtype, (pandas.ArrowDtype, pandas.StringDtype)):
            made.isetitem(k, _copy(pandas, column.iloc[:, k]))
    return made


def _cast(pandas: Any, column: Any, dtype: Any) -> Any:
    """Return a Series, or a DataFrame of columns, with elements cast as by `as_numpy`. Missing elements remain missing.

    ``Series.astype`` raises an error for missing elements and for fractions, and parses text.
    """
    if column.ndim == 2:
        return _convert_columns(column, None, dtype=dtype)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcmM":
        made = as_pandas(column.to_numpy(), dtype=dtype)
    else:
        made = export("pandas", pandas, _to_pandas, without_index(column), None, dtype, None, None)
    made.index, made.name = column.index, column.name
    return made


def has_arrow_types(obj: Any) -> bool:
    """Return whether `as_pandas` converts all columns of an object to Arrow types."""
    return not is_dense(obj) and is_column(obj) and not arrow_loses_structure(type(obj))


def _to_pandas(pandas: Any, array: Any, copied: bool, obj: Any) -> Any:
    """Convert an array that was imported from `obj` to a Series or a DataFrame."""
    if has_arrow_types(obj):
        return _with_arrow_types(pandas, array, copied)
    if isinstance(array, NestedArray) and are_complete_records(array):
        return pandas_frame([_column(pandas, field, copied, 1) for field in array.children], array.field_names)
    return _column(pandas, array, copied, 2)


def _column(pandas: Any, array: Any, copied: bool, max_ndim: int) -> Any:
    """Return a Series or a DataFrame, with Arrow types unless the array is dense and pandas supports its dtype.

    If `max_ndim` is 1, the result is a Series, also for records.
    """
    array = unwrap_flat(array) if isinstance(array, NestedArray) else array
    kind = array.dtype.kind if isinstance(array, USMArray) else "O"
    if kind not in "biufcmM" or array.ndim > max_ndim:
        if max_ndim == 1:
            return _arrow_series(pandas, to_arrow(needed("pyarrow", "to create its arrays"), for_pandas(array), copied))
        return _with_arrow_types(pandas, array, copied)
    values = dense_as_numpy(on_host(array, "pandas"))
    values = cast_times(values, copied, "pandas") if kind in "mM" else values
    return (pandas.Series if values.ndim == 1 else pandas.DataFrame)(values, copy=False)


def _with_arrow_types(pandas: Any, array: Any, copied: bool) -> Any:
    """Return a Series of an Arrow type. Records become a DataFrame, with the index from the pandas metadata."""
    pyarrow = needed("pyarrow", "to create its arrays")
    metadata = array.metadata if isinstance(array, NestedArray) else None
    array = to_arrow(pyarrow, for_pandas(array), copied)
    if pyarrow.types.is_struct(array.type) and not array.null_count:
        if metadata and b"pandas" in metadata:
            schema = pyarrow.schema(list(array.type), _with_text_labels(metadata))
            return pyarrow.Table.from_arrays(array.flatten(), schema=schema).to_pandas(types_mapper=pandas.ArrowDtype)
        if not array.type.num_fields:
            return pandas.DataFrame(index=pandas.RangeIndex(len(array)))  # without columns, the index sets the length
        return pandas_frame(map(_arrow_series, repeat(pandas), array.flatten()), [field.name for field in array.type])
    return _arrow_series(pandas, array)


# Types of column labels that pyarrow 26 does not restore. It restores False as True, and raises errors for others.
_NOT_RESTORED = ("bool", "categorical", "date", "interval", "period", "time", "timedelta64")


def _with_text_labels(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the metadata of a schema in which labels of columns are texts if pyarrow does not restore their type."""
    facts = json.loads(metadata[b"pandas"])
    levels = facts.get("column_indexes", []) if isinstance(facts, dict) else []
    lost = [level for level in levels if isinstance(level, dict) and level.get("pandas_type") in _NOT_RESTORED]
    for level in lost:
        level.update(pandas_type="unicode", numpy_type="object", metadata=None)
    return {**metadata, b"pandas": json.dumps(facts).encode()} if lost else metadata


def _arrow_series(pandas: Any, array: Any) -> Any:
    return pandas.Series(pandas.arrays.ArrowExtensionArray(array))


def for_pandas(node: Any) -> Any:
    """Convert string views to strings with offsets, and list views to lists, at any depth.

    The characters are copied, and the rows of list views that are out of order.

    pandas 3.1 and pyarrow 26 raise an error for string views in ``str.upper``, ``sort_values`` and ``Series.take``, and
    for string views in lists or list views in ``print`` and ``Series.to_numpy``.
    """
    if not find_reason(node, _why_views_are_copied):
        return node
    kind = kind_of(node)
    if kind.views:
        return with_offsets(node)
    if is_list_view(node):
        return for_pandas(decode(node, "pandas"))
    node = trim(node) if kind.ends else node
    return rebuild(node, for_pandas)


def _why_views_are_copied(node: Any) -> str:
    """Return why `as_pandas` copies a node if it consists of string views or list views, otherwise ""."""
    if not isinstance(node, NestedArray):
        return ""
    if kind_of(node).views:
        return "string views are copied, because most functions of pandas do not support string views"
    return LIST_VIEWS if kind_of(node).opaque and is_list_view(node) else ""


def check(array: Any, copied: bool, obj: Any) -> None:
    """Raise the error of `as_pandas` for an array, or for its copy on the host, without converting it."""
    if not copied:
        on_host(array, "pandas")
    if has_arrow_types(obj):
        check_arrow(array, copied, obj)
        return
    records = isinstance(array, NestedArray) and are_complete_records(array)
    for column in array.children if records else (array,):
        column = unwrap_flat(column) if isinstance(column, NestedArray) else column
        dense = isinstance(column, USMArray) and column.dtype.kind in "biufcmM" and column.ndim <= (1 if records else 2)
        if not dense:
            check_arrow(column, copied, obj)
        elif isinstance(column, USMArray):
            ROWS["numpy"].check_export(column, copied)
            cast_times(np.empty(0, column.dtype), copied, "pandas")


def why_copied(array: Any, obj: Any) -> str:
    """Return why `as_pandas` copies `array`, imported from `obj`, without ``copy=True``, or "" if it does not."""
    why = find_reason(array, _why_views_are_copied)
    if why:
        return why
    parts: Sequence[Any] = [array]
    if not has_arrow_types(obj):  # dense parts keep NumPy's types, so booleans are shared
        parts = array.children if isinstance(array, NestedArray) and kind_of(array).fields else parts
        parts = [part for part in parts if isinstance(part, NestedArray)]
    return PACKED_BOOLEANS if any(map(packs_booleans, parts)) else ""
