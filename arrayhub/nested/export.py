"""Export NestedArrays to pyarrow, polars, pandas, awkward, torch and NumPy."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from arrayhub._core import tracing
from arrayhub._core.copying import Copy, CopyForbidden, forbidden, if_needed, wanted
from arrayhub._core.errors import PACKED_BOOLEANS, first_line, needed, unreadable, wider_dtype
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of, per_kind
from arrayhub.adapters.arrow import extension_schema, packs_booleans, strided, type_name, unread
from arrayhub.array import casting
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import are_complete_records, pandas_frame, without_index
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.convert.functions import as_torch
from arrayhub.convert.names import sparse_library
from arrayhub.nested.array import (
    NestedArray,
    check,
    check_names,
    is_on_host,
    nested_of,
    one_chunk,
    to_string_dtype,
    unpacked,
    unwrapped,
    valid_mask,
    with_offsets,
)
from arrayhub.nested.asnested import arrow_loses_structure, asnested, is_column, name_of
from arrayhub.nested.concatenate import concatenate, in_order, is_in_order
from arrayhub.nested.conform import child_nodes, for_pandas, for_polars, with_days
from arrayhub.nested.from_torch import as_jagged
from arrayhub.nested.runs import decoded
from arrayhub.nested.to_device import offsets_on_host, type_codes


def _imported(obj: Any, copy: Copy, call: str) -> Any:
    """Import an object as a NestedArray, or as a USMArray if it is dense. ``copy=True`` copies to one host chunk."""
    if wanted(copy, call) and not issubclass(type(obj), NestedArray):
        return unwrapped(asnested(obj, copy=True))
    array = obj if issubclass(type(obj), NestedArray) else dense_or_nested(obj, copy)
    return concatenate([array]) if copy else array


def single_chunk(x: NestedArray, copy: Any, library: str, obj: Any = None) -> NestedArray:
    """Return a chunked array as one array. Two or more chunks with elements require a copy.

    Return other arrays unchanged. If `obj` is a stream, the error also states that this call has read the stream.
    """
    one = one_chunk(x)
    if one is not None:
        return one
    if not copy:
        read = ". This call has read the stream x; create the stream again first" if unread(obj) else ""
        raise BufferError(
            f"{library}: the array has {len(x.chunks)} chunks; accepted: one. Pass copy=True, which concatenates"
            f" them{read}"
        )
    return concatenate([x]) if library in _HOST_ONLY else _copied(x)


def _copied(x: NestedArray) -> NestedArray:
    """Return a copy of the elements that `x` references, in one chunk on the same device."""
    joined = concatenate([x])
    return joined if is_on_host(x) else joined.to_device(x.device)


def _export(call: str, emit: Callable[[Any, bool], Any], obj: Any, copy: Copy, extension: bool = False) -> Any:
    """Import `obj`, and return ``emit(array, copied)`` for the imported array.

    If tracing is active, the export is reported under the name `call`.
    """
    try:
        if not tracing.is_active():
            return _exported(obj, call, emit, copy, extension)[0]
        return tracing.traced_export(call, _with_size, obj, None, call, emit, copy, extension)
    except TypeError:
        if sparse_library(obj) is None:
            raise
    return hooks.give_sparse(obj, call.removeprefix("as_"))  # raises the error for libraries without sparse arrays


def _with_size(obj: Any, call: str, emit: Callable[[Any, bool], Any], copy: Copy, extension: bool) -> tuple[Any, int]:
    """Return the result of `emit`, and the size of the array in bytes."""
    result, array = _exported(obj, call, emit, copy, extension)
    return result, hooks.nested_nbytes(nested_of(array))


def _exported(obj: Any, call: str, emit: Callable[[Any, bool], Any], copy: Copy, extension: bool) -> tuple[Any, Any]:
    """Return the result of `emit`, and the imported array. `obj` is imported only once, because it may be a stream."""
    if not if_needed(copy):
        copied = bool(wanted(copy, call))
        array = _imported(obj, copy, call)
        if copy is False and call != "as_awkward":  # `_to_awkward` itself raises an error instead of copying
            _check_copies(array, call, extension, obj)
        return emit(array, copied), array
    array = obj if issubclass(type(obj), NestedArray) else dense_or_nested(obj, "if_needed")
    try:
        return emit(array, False), array
    except BufferError:
        pass
    array = _imported(array, True, call)
    return emit(array, True), array


def _check_copies(array: Any, call: str, extension: bool, obj: Any) -> None:
    """Raise BufferError if the export copies even without ``copy=True``."""
    library = call.removeprefix("as_")
    why = why_always_copied(array, library, obj, extension)
    if why:
        other = "arrayhub.as_arrow(x)"
        if why == PACKED_BOOLEANS:
            other = "arrayhub.as_arrow(x, extension=True), which shares the bytes as arrow.bool8"
        raise BufferError(f"{call}: copy is False, and {why}. Omit copy= to permit this copy, or call {other}")


def why_always_copied(array: Any, library: str, obj: Any, extension: bool = False) -> str:
    """Return why the export of `array`, imported from `obj`, copies without ``copy=True``, or "" if it does not.

    The export copies booleans of one byte each, and the parts that `as_awkward` documents. For pandas, the export also
    copies string views and list views that are out of order. For polars, the export also copies runs, list views that
    are out of order, and times in some units.
    """
    if library == "awkward":
        return _why_awkward_copies(array, obj)
    if library not in ("arrow", "polars", "pandas"):
        return ""
    why = _why_copied_for_pandas(array) if library == "pandas" else ""
    if why:
        return why
    parts: Sequence[Any] = [array]
    if library == "pandas" and not has_arrow_types(obj):  # dense parts keep NumPy's types, so booleans are shared
        parts = array.children if isinstance(array, NestedArray) and kind_of(array).fields else parts
        parts = [part for part in parts if isinstance(part, NestedArray)]
    if not (extension and not isinstance(array, NestedArray)) and any(map(packs_booleans, parts)):
        return PACKED_BOOLEANS
    return _why_copied_for_polars(array) if library == "polars" else ""


def _why_awkward_copies(array: Any, obj: Any) -> str:
    try:
        _to_awkward(array, False, obj, copy=False)
    except CopyForbidden as error:
        return error.why
    except BufferError:  # the export raises it
        pass
    return ""


def _why_copied_for_pandas(array: Any) -> str:
    """Return why `as_pandas` copies string views or list views at any depth of `array`, or "" if it does not."""
    if not isinstance(array, NestedArray):
        return ""
    if kind_of(array).views:
        return "string views are copied, because most functions of pandas do not support string views"
    if kind_of(array).sizes and not is_in_order(array):
        return _OUT_OF_ORDER
    return next(filter(None, map(_why_copied_for_pandas, child_nodes(array))), "")


def _why_copied_for_polars(array: Any) -> str:
    """Return why `as_polars` copies values at any depth of `array`, or "" if it shares the values."""
    if not isinstance(array, NestedArray):
        return _SECONDS if array.dtype.kind in "mM" and np.datetime_data(array.dtype) == ("s", 1) else ""
    if array.meaning is not None and array.meaning.startswith("tt") and array.meaning != "ttn":
        return "polars has times of day only in nanoseconds, and converts other times of day"
    if kind_of(array).runs:
        return "the value of each run is repeated for its elements"
    if kind_of(array).indices and not kind_of(nested_of(array.content)).characters:
        return "polars has categories of strings only, and replaces each index by its value"
    if kind_of(array).sizes and not is_in_order(array):
        return _OUT_OF_ORDER
    return next(filter(None, map(_why_copied_for_polars, child_nodes(array))), "")


_SECONDS = "polars does not have times in seconds, and converts them to milliseconds"
_OUT_OF_ORDER = "the rows of list views that are out of order are copied"


def dense_or_nested(obj: Any, copy: Copy) -> Any:
    """Import an object as a NestedArray, or as a USMArray if the object is dense."""
    return unwrapped(asnested(obj, copy=copy))


_HOST_ONLY = ("numpy", "awkward", "missing")  # exports whose copies are in host memory


def _is_chunked(array: Any) -> bool:
    return isinstance(array, NestedArray) and kind_of(array).chunks


def as_arrow(obj: Any, /, *, copy: Copy = None, extension: bool = False, missing: Any = None) -> Any:
    """Return a ``pyarrow.Array`` that shares the memory of `obj`, or a ``pyarrow.ChunkedArray`` of the same chunks.

    A dense array is exported with the type that ``pyarrow.array`` infers from its dtype. Each dimension after the first
    becomes a fixed-size list. Booleans are copied, because Arrow stores eight booleans in a byte.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {None, True, False, "if_needed"}, optional
        True: copy to host memory, and convert ``datetime64[D]`` to date32. "if_needed": share the memory if possible,
        otherwise copy. None: copy booleans, and share all other memory or raise BufferError. False: share the memory,
        or raise BufferError.
    extension : bool, default: False
        Whether a dense array becomes an array of Arrow's canonical extension types, which share its memory:
        ``arrow.bool8`` for booleans, and ``arrow.fixed_shape_tensor`` for several dimensions. A tensor keeps the names
        and the order of the dimensions in memory. Nested arrays always keep their own extension types.
    missing : value, optional
        Replaces missing values, in a copy. None keeps missing values.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        Tables and records become structs. ``arrayhub.convert(x, pyarrow.Table)`` returns a table instead. Chunks are
        shared individually, and ``copy=True`` concatenates the chunks.

    Raises
    ------
    BufferError
        Arrow cannot represent the type, pyarrow does not support the device, or a copy is needed and `copy` does not
        permit it.
    TypeError
        `obj` is not an array, or `missing` has another type than the elements.
    OverflowError
        `missing` is out of the range of the element type.
    ImportError
        pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow
    >>> arrayhub.as_arrow(np.array([1, 2])).to_pylist()
    [1, 2]
    >>> print(arrayhub.as_arrow(np.array([True, False])).type)
    bool
    >>> print(arrayhub.as_arrow(np.array([True, False]), extension=True).type)
    extension<arrow.bool8>
    """
    if missing is not None:
        return hooks.with_value(obj, partial(as_arrow, extension=extension), missing, copy, "arrow")
    needed("pyarrow", "to create its arrays")
    return _export("as_arrow", partial(_to_arrow, extension=extension), obj, copy, extension)


def _to_arrow(array: Any, copied: bool, extension: bool = False) -> Any:
    """Return a ``pyarrow.Array`` or ``pyarrow.ChunkedArray``. In copies, ``datetime64[D]`` becomes date32."""
    pyarrow = needed("pyarrow", "to create its arrays")
    array = with_days(array) if copied else array
    if _is_chunked(array):
        return chunks_to_arrow(array)
    if extension and not isinstance(array, NestedArray):
        _need_arrow(array, extension)
        array = _WithExtension(array)
    elif is_on_host(array):
        _need_arrow(array)
        import_capsules = getattr(pyarrow.Array, "_import_from_c_capsule", None)  # private, but faster
        return pyarrow.array(array) if import_capsules is None else import_capsules(*array.__arrow_c_array__())
    try:
        return pyarrow.array(array)
    except (pyarrow.ArrowException, KeyError) as error:
        raise _device_error(array, "pyarrow") from error


class _WithExtension:
    """Arrow producer that exports a dense array with extension types."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.device = array.device

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        return self._array.__arrow_c_device_array__(extension_schema(self._array), **keywords)


def chunks_to_arrow(x: NestedArray, type: Any = None) -> Any:
    """Return a ``pyarrow.ChunkedArray`` that shares the chunks of `x`, for ``NestedArray.__arrow_array__``."""
    pyarrow = needed("pyarrow", "to create its arrays")
    if not is_on_host(x):
        raise _device_error(x, "pyarrow")
    try:
        column = pyarrow.chunked_array(x)
    except pyarrow.ArrowException as error:
        raise BufferError(f"pyarrow: {first_line(error)}") from error
    return column if type is None else column.cast(type)


def _need_arrow(array: Any, extension: bool = False) -> None:
    """Raise BufferError if an array cannot be exported to Arrow, or if a strided array would be copied."""
    why = None
    try:
        array.__arrow_c_schema__  # noqa: B018
    except AttributeError as error:
        why = str(error).removeprefix("__arrow_c_schema__: ")
    if why is None and not isinstance(array, NestedArray):
        why = strided(array, extension)
    if why is not None:
        raise BufferError(f"Arrow: {why}{', or pass copy=True' if 'byte strides' in why else ''}")


def _device_error(x: Any, library: str) -> BufferError:
    return BufferError(unreadable(library, x.device, library, "call x.to_host(), or pass copy=True"))


def _on_host(x: Any, library: str) -> Any:
    if not is_on_host(x):
        raise _device_error(x, library)
    return x


def as_polars(obj: Any, /, *, copy: Copy = None, missing: Any = None) -> Any:
    """Return a ``polars.Series`` that shares the memory of `obj`, or a ``polars.DataFrame`` of records.

    Numbers and characters are shared. int32 offsets are converted to int64, and a 16-byte view is created for each
    string, because polars' layout requires both. polars' own conversion would also copy the characters. List views that
    are out of order, run-end encoded arrays and categories that are not strings are copied. The name of a Series of
    pandas or polars is kept, even if `asnested` imported the Series. Like ``polars.from_pandas``, this function drops
    the index of a pandas DataFrame.

    If some records are missing, the result is a Series, because a DataFrame cannot represent missing rows. Ordered
    categories become an ``Enum``, unless a category is missing or repeated, or the categories of two chunks differ.
    Inside lists, and inside records of a Series, ordered categories stay a ``Categorical``.

    An array of two dimensions becomes a Series of rows. ``polars.DataFrame(arrayhub.as_numpy(x))`` and
    ``arrayhub.like(x, frame)`` return a DataFrame of its columns.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {None, True, False, "if_needed"}, optional
        As in `as_arrow`.
    missing : value, optional
        Replaces missing values, in a copy. None keeps missing values.

    Returns
    -------
    polars.Series or polars.DataFrame
        A DataFrame for records and tables, and a Series for other data.

    Raises
    ------
    BufferError
        polars does not support the element type or the device, or a copy is needed and `copy` does not permit it.
    TypeError
        `obj` is not an array, or `missing` has another type than the elements.
    OverflowError
        `missing` is out of the range of the element type.
    ImportError
        polars is not installed.

    Examples
    --------
    >>> import polars
    >>> arrayhub.as_polars(np.array([1, 2])).to_list()
    [1, 2]
    """
    polars = needed("polars", "to create its arrays")
    name = name_of(obj)
    if missing is None:
        made = _export("as_polars", _to_polars, without_index(obj), copy)
    else:
        made = hooks.with_value(without_index(obj), as_polars, missing, copy, "polars")
    return made.rename(str(name)) if name is not None and isinstance(made, polars.Series) else made


def _to_polars(array: Any, copied: bool) -> Any:
    """Return a ``polars.Series`` with the chunks of `array`, or a ``polars.DataFrame`` of records."""
    polars = needed("polars", "to create its arrays")
    array = _on_host(with_days(array) if copied else array, "polars")
    _need_arrow(array)
    try:
        series = polars.Series(for_polars(array))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        raise _polars_error(array, error) from error
    if series.dtype != polars.Struct or series.null_count():
        return _with_order(polars, series, nested_of(array))
    frame = series.struct.unnest()
    if polars.Categorical not in frame.dtypes:
        return frame
    columns = zip(frame.get_columns(), array.fields.values(), strict=True)
    return frame.with_columns([_with_order(polars, column, nested_of(field)) for column, field in columns])


def _with_order(polars: Any, series: Any, x: NestedArray) -> Any:
    """Return a column of ordered categories as an Enum in the same order. Return other columns unchanged.

    A column is also returned unchanged if a category is missing or repeated, or if the categories of two chunks differ.
    """
    chunks = x.chunks
    if series.dtype != polars.Categorical or not all(kind_of(c).indices and c.meaning == "ordered" for c in chunks):
        return series
    categories = nested_of(chunks[0].content).to_list()
    if None in categories or len(set(categories)) < len(categories):
        return series
    if any(nested_of(chunk.content).to_list() != categories for chunk in chunks[1:]):
        return series
    return series.cast(polars.Enum(categories))


def _polars_error(array: Any, error: BaseException) -> BufferError:
    """Return a BufferError for an error or a panic in polars."""
    message, zones = first_line(error), list(_zones(array, "x"))
    if zones and "time zone" in message:
        name, unit, _zone = next((part for part in zones if repr(part[2]) in message), zones[0])
        return BufferError(
            f"polars: the time zone of {name} is unknown to polars ({message}); accepted: names of the IANA time zone"
            f" database. Convert to UTC, as in arrayhub.as_polars(arrayhub.as_arrow({name}).cast(pyarrow.timestamp("
            f"{unit!r}, 'UTC'))), or use arrayhub.as_arrow(x)"
        )
    return BufferError(f"polars: the array was rejected ({message}). Use arrayhub.as_arrow(x), and convert the result")


def _zones(node: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield (expression, unit, zone) for each node of times with a time zone. `path` is the expression for `node`."""
    if not isinstance(node, NestedArray):
        return
    node = node.chunks[0]
    if kind_of(node).fields:
        for name, field in zip(node.field_names, node.children, strict=True):
            yield from _zones(field, f"{path}[{name!r}]")
        return
    if kind_of(node).types:
        for k, child in enumerate(node.children):
            yield from _zones(child, f"{path}.children[{k}]")
        return
    if node.meaning is not None and node.meaning[:2] == "ts" and node.meaning[4:]:
        yield path, np.datetime_data(node.content.dtype)[0], node.meaning[4:]
    yield from _zones(node.content, f"{path}.content")


def as_pandas(obj: Any, /, *, copy: Copy = None, missing: Any = None) -> Any:
    """Return a ``pandas.Series`` that shares the memory of `obj`, or a ``pandas.DataFrame`` of records or of a matrix.

    The type of `obj` determines the result and the types of its columns:

    - A Series or a DataFrame of pandas is returned unchanged, or copied if `copy` is True. An Index or an
      ExtensionArray becomes a Series on the same memory.
    - Dense arrays, such as those of NumPy or torch, get the types of ``pandas.Series(numpy_array)``. NaN means missing.
    - Arrow columns and tables, such as those of pyarrow or polars, and NestedArrays get Arrow types
      (``pandas.ArrowDtype``).
    - Data without a NumPy type, such as strings, lists and integers with missing values, also gets Arrow types.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {None, True, False, "if_needed"}, optional
        As in `as_arrow`. Times in other units than seconds, milliseconds, microseconds and nanoseconds require a copy,
        because pandas does not support other units. String views, as in polars, are copied to strings with offsets at
        any depth, and list views to lists if their rows are out of order. False raises BufferError for these copies.
    missing : value, optional
        Replaces missing values, in a copy. None keeps missing values.

    Returns
    -------
    pandas.Series or pandas.DataFrame
        If some records are missing, the result is a Series, because a DataFrame cannot represent missing rows. The name
        of a Series of pandas or polars is kept, even if `asnested` imported the Series. The index of a table is
        restored from the pandas metadata in the table's schema.

    Raises
    ------
    BufferError
        pandas does not support the element type or the device, or a copy is needed and `copy` does not permit it.
    TypeError
        `obj` is not an array, or `missing` has another type than the elements.
    OverflowError
        `missing` is out of the range of the element type.
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
    name = name_of(obj)
    if missing is not None:
        made = hooks.with_value(without_index(obj), as_pandas, missing, copy, "pandas")
        if isinstance(obj, (pandas.Series, pandas.DataFrame)):
            made.index = obj.index
        if isinstance(obj, pandas.DataFrame):
            made.columns = obj.columns
    else:
        column = _of_pandas(pandas, obj)
        if column is not None:
            return column.copy() if wanted(copy, "as_pandas") else column
        made = _export("as_pandas", partial(_to_pandas, obj=obj), obj, copy)
    if name is not None and isinstance(made, pandas.Series):
        made.name = name
    return made


def _of_pandas(pandas: Any, obj: Any) -> Any:
    """Return a pandas object as a Series or a DataFrame on the same memory, or None for other objects."""
    cls = type(obj)
    if issubclass(cls, (pandas.Series, pandas.DataFrame)):
        return obj
    if issubclass(cls, (pandas.Index, pandas.api.extensions.ExtensionArray)) and not issubclass(cls, pandas.MultiIndex):
        return pandas.Series(obj, copy=False)
    return None


def has_arrow_types(obj: Any) -> bool:
    """Return whether `as_pandas` converts all columns of an object to Arrow types."""
    return is_column(obj) and not issubclass(type(obj), USMArray) and not arrow_loses_structure(obj)


def _to_pandas(array: Any, copied: bool, obj: Any) -> Any:
    """Convert an array that was imported from `obj` to a Series or a DataFrame."""
    pandas = needed("pandas", "to create its arrays")
    if has_arrow_types(obj):
        return _with_arrow_types(pandas, array, copied)
    if are_complete_records(array):
        return pandas_frame([_column(pandas, field, copied, 1) for field in array.children], array.field_names)
    return _column(pandas, array, copied, 2)


def _column(pandas: Any, array: Any, copied: bool, max_ndim: int) -> Any:
    """Return a Series or a DataFrame, with Arrow types unless the array is dense and pandas supports its dtype.

    If `max_ndim` is 1, the result is a Series, also for records.
    """
    array = unwrapped(array) if isinstance(array, NestedArray) else array
    if not isinstance(array, USMArray) or array.dtype.kind not in "biufcmM" or array.ndim > max_ndim:
        if max_ndim == 1:
            return _arrow_series(pandas, _to_arrow(for_pandas(array), copied))
        return _with_arrow_types(pandas, array, copied)
    values = dense_as_numpy(_on_host(array, "pandas"))
    made = (pandas.Series if values.ndim == 1 else pandas.DataFrame)(values, copy=False)
    dtype = made.dtypes if made.ndim == 1 else next(iter(made.dtypes), values.dtype)
    if not copied and dtype != values.dtype:
        raise BufferError(
            f"pandas: elements of {values.dtype} are not supported; pass copy=True, which casts to {dtype}"
        )
    return made


def _with_arrow_types(pandas: Any, array: Any, copied: bool) -> Any:
    """Return a Series of an Arrow type. Records become a DataFrame, with the index from the pandas metadata."""
    pyarrow = needed("pyarrow", "to create its arrays")
    metadata = array.metadata if isinstance(array, NestedArray) else None
    array = _to_arrow(for_pandas(array), copied)
    if pyarrow.types.is_struct(array.type) and not array.null_count:
        if metadata and b"pandas" in metadata:
            table = pyarrow.Table.from_arrays(array.flatten(), schema=pyarrow.schema(list(array.type), metadata))
            return table.to_pandas(types_mapper=pandas.ArrowDtype)
        if not array.type.num_fields:
            return pandas.DataFrame(index=pandas.RangeIndex(len(array)))  # without columns, the index sets the length
        return pandas_frame(map(_arrow_series, repeat(pandas), array.flatten()), [field.name for field in array.type])
    return _arrow_series(pandas, array)


def _arrow_series(pandas: Any, array: Any) -> Any:
    return pandas.Series(pandas.arrays.ArrowExtensionArray(array))


def as_awkward(obj: Any, /, *, copy: Copy = None, missing: Any = None) -> Any:
    """Return an ``awkward.Array`` that shares the memory of `obj`, without using pyarrow.

    The index of a pandas DataFrame is not exported. Numbers, offsets, characters and validity bitmaps are shared. The
    following parts are copied, and raise BufferError with ``copy=False``:

    - string views, packed booleans and run-end encoded arrays;
    - list views, unless their rows are adjacent and in order;
    - indices of categories, unless they are int64 and no element is missing;
    - type codes of unions, unless the code of each child is its position;
    - children of a union that awkward merges because their types have a common type, such as integers and floats. If
      awkward would round an integer, OverflowError is raised;
    - date32, which is converted to ``datetime64[D]``.

    Some arrays that awkward requires are created even with ``copy=False``: the offsets of list views, the index of
    sparse unions, and validity bitmaps that start at a byte boundary.

    Parameters
    ----------
    obj : object
        Any object that `asnested` accepts, including dense arrays.
    copy : {None, True, False, "if_needed"}, optional
        As in `as_arrow`.
    missing : value, optional
        Replaces missing values, in a copy. None keeps missing values.

    Returns
    -------
    awkward.Array
        On the host. Records become records, and the columns of a table become their fields.

    Raises
    ------
    BufferError
        awkward does not support the element type or the device, or a copy is needed and `copy` does not permit it.
    TypeError
        `obj` is not an array, or `missing` has another type than the elements.
    OverflowError
        `missing` is out of the range of the element type.
    ImportError
        awkward is not installed.

    Examples
    --------
    >>> import awkward
    >>> arrayhub.as_awkward(arrayhub.asnested([[1], [2, 3]]))
    <Array [[1], [2, 3]] type='2 * var * int64'>
    """
    needed("awkward", "to create its arrays")
    obj = without_index(obj)
    if missing is not None:
        return hooks.with_value(obj, as_awkward, missing, copy, "awkward")
    return _export("as_awkward", partial(_to_awkward, obj=obj, copy=copy), obj, copy)


def _to_awkward(array: Any, copied: bool, obj: Any, copy: Copy) -> Any:
    """Convert an array that was imported from `obj` to an ``awkward.Array``."""
    awkward = needed("awkward", "to create its arrays")
    array = _on_host(array, "awkward")
    if _is_chunked(array):
        array = single_chunk(array, copied, "awkward", obj)
    return awkward.Array(_layout(awkward, array, copy))


def _numbers(awkward: Any, x: Any) -> Any:
    array = dense_as_numpy(x)
    if array.dtype.type is np.void and array.dtype.names is None and array.dtype.itemsize:
        return _fixed_bytes(awkward, x)
    try:
        return awkward.contents.NumpyArray(array)
    except TypeError as error:
        raise BufferError(
            f"awkward: dtype {array.dtype} is not supported; accepted: NumPy's own numbers, booleans and times."
            f" {_instead_of(array.dtype)}"
        ) from error


def _instead_of(dtype: np.dtype[Any]) -> str:
    """Return the advice for elements, possibly of a field, that awkward does not support."""
    if not dtype.isnative:
        return "Pass copy=True, which converts the elements into native byte order"
    wider = wider_dtype(dtype)
    if wider is None:
        return "Use arrayhub.asnested(x)"
    return f"Convert the elements first. For dense data, use arrayhub.asarray(x, dtype={wider!r})"


def _fixed_bytes(awkward: Any, x: Any) -> Any:
    """Return fixed-size byte strings in the layout that ``awkward.from_arrow`` creates."""
    if not x.flags["C"]:
        raise BufferError(
            f"awkward: elements of dtype {x.dtype} have byte strides {x.byte_strides}; accepted: contiguous elements."
            " Pass copy=True"
        )
    flat = dense_as_numpy(x.reshape(-1)).view(np.uint8)
    characters = awkward.contents.NumpyArray(flat, parameters={"__array__": "byte"})
    layout = awkward.contents.RegularArray(
        characters, x.itemsize, zeros_length=x.size, parameters={"__array__": "bytestring"}
    )
    for axis in range(x.ndim - 1, 0, -1):
        layout = awkward.contents.RegularArray(layout, x.shape[axis], zeros_length=math.prod(x.shape[:axis]))
    return layout


def _layout(awkward: Any, node: Any, copy: Copy) -> Any:
    """Return the layout of a node. For ``copy=False``, raise BufferError if a part of the node must be copied."""
    if not isinstance(node, NestedArray):
        return _numbers(awkward, node)
    check(node)  # awkward does not validate offsets and indices
    layout = _LAYOUTS[node.kind](awkward, node, copy)
    if node.validity is None or node.null_count == 0 or kind_of(node).indices:
        return layout
    if node.validity_offset:
        mask = np.packbits(valid_mask(node), bitorder="little")
    else:
        mask = dense_as_numpy(node.validity)
    index = awkward.index.IndexU8(mask)
    return awkward.contents.BitMaskedArray(index, layout, True, len(node), True)


def _flat(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    if node.meaning is None or node.meaning == "tdm":
        return _numbers(awkward, node.content)
    if node.meaning != "tdD":
        raise BufferError(
            f"awkward: {type_name(node.meaning)} is not supported; accepted: numbers, booleans, dates, and times"
            " without a zone. Use arrayhub.asnested(x).content, which holds the values without this type, or"
            " arrayhub.asnested(x).to_list()"
        )
    forbidden(copy, "as_awkward", "Arrow's dates of 4 bytes are converted to NumPy's dates of 8 bytes")
    days = dense_as_numpy(node.content).astype("M8[D]")
    return awkward.contents.NumpyArray(days)


def _bits(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    forbidden(copy, "as_awkward", "packed booleans are converted to one byte each")
    return _numbers(awkward, unpacked(node))


def _offsets(awkward: Any, node: NestedArray) -> Any:
    numbers = offsets_on_host(node)
    return awkward.index.Index64(numbers) if numbers.dtype == np.int64 else awkward.index.Index32(numbers)


def _list(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    return awkward.contents.ListOffsetArray(_offsets(awkward, node), _layout(awkward, node.content, copy))


def _list_view(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    lists = in_order(node)
    if lists.content is not node.content and len(lists.content):
        forbidden(copy, "as_awkward", _OUT_OF_ORDER)
    return _list(awkward, lists, copy)


def _text(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    if kind_of(node).views:
        forbidden(copy, "as_awkward", "string views are converted to strings with offsets")
        node = with_offsets(node)
    text = kind_of(node).utf8
    characters = awkward.contents.NumpyArray(
        dense_as_numpy(node.content), parameters={"__array__": "char" if text else "byte"}
    )
    return awkward.contents.ListOffsetArray(
        _offsets(awkward, node), characters, parameters={"__array__": "string" if text else "bytestring"}
    )


def _regular(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    return awkward.contents.RegularArray(_layout(awkward, node.content, copy), node.width, zeros_length=len(node))


def _record(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    check_names(node, "awkward", error=BufferError)  # awkward accepts equal names, but its to_list loses fields
    columns = [_layout(awkward, field, copy) for field in node.children]
    return awkward.contents.RecordArray(columns, list(node.field_names), length=len(node))


def _categorical(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    indices = dense_as_numpy(node.indices)
    if indices.dtype != np.int64:
        forbidden(copy, "as_awkward", f"the indices of categories are converted from {indices.dtype} to int64")
        indices = indices.astype(np.int64)  # unsigned integers cannot represent the index -1 of a missing element
    parameters = {"__array__": "categorical"}
    content = _layout(awkward, node.content, copy)
    if node.validity is None or node.null_count == 0:
        return awkward.contents.IndexedArray(awkward.index.Index64(indices), content, parameters=parameters)
    forbidden(copy, "as_awkward", "the indices of missing categories are replaced by -1")
    indices = np.where(valid_mask(node), indices, -1)
    return awkward.contents.IndexedOptionArray(awkward.index.Index64(indices), content, parameters=parameters)


def _nulls(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    index = awkward.index.Index64(np.full(len(node), -1, np.int64))
    return awkward.contents.IndexedOptionArray(index, awkward.contents.EmptyArray())


def _runs(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    forbidden(copy, "as_awkward", "the value of each run is repeated for its elements")
    return _layout(awkward, decoded(node, "awkward"), copy)


def _union(awkward: Any, node: NestedArray, copy: Copy) -> Any:
    """Return a UnionArray. awkward requires an index, and tags equal to the positions of the children."""
    codes = dense_as_numpy(node.type_codes)
    tags = codes
    if type_codes(node) != list(range(len(node.children))):
        forbidden(
            copy, "as_awkward", f"the type codes {type_codes(node)} are converted to the positions of the children"
        )
        positions = np.zeros(128, np.int8)
        positions[type_codes(node)] = np.arange(len(node.children))
        tags = positions[codes]
    index = dense_as_numpy(node.offsets) if node.offsets is not None else np.arange(len(node), dtype=np.int64)
    contents = [_layout(awkward, child, copy) for child in node.children]
    if len(contents) < 2:  # awkward requires two children
        raise BufferError(
            f"awkward: a union of {len(contents)} types is not supported; accepted: two or more. Use x.children"
        )
    of_awkward = awkward.index.Index32 if index.dtype == np.int32 else awkward.index.Index64
    union = awkward.contents.UnionArray.simplified(awkward.index.Index8(tags), of_awkward(index), contents)
    if len(getattr(union, "contents", ())) != len(contents):
        forbidden(copy, "as_awkward", "awkward merges children of a union whose types have a common type")
        for k, child in enumerate(node.children):
            _check_merged(child, index[tags == k], str(union.form.type))
    return union


def _check_merged(child: Any, places: Any, merged: str) -> None:
    """Raise OverflowError if awkward rounded integers to the type `merged` when it merged the children of a union.

    `places` contains the places of the union's elements in `child`. Of lists and records, all integers are checked.
    """
    if isinstance(child, NestedArray) and not kind_of(child).numbers:
        for part in child_nodes(child):
            _check_merged(part, slice(None), merged)
        return
    numbers = dense_as_numpy(nested_of(child).content)
    if numbers.dtype.kind in "iu" and not re.search(rf"\b{numbers.dtype.name}\b", merged):
        lost = casting.rounded(numbers[places], np.dtype(np.float64))
        if lost is not None:
            raise OverflowError(
                f"awkward: {lost} would be rounded, because awkward merges children of a union whose types have a"
                " common type; accepted: integers that float64 represents. Use arrayhub.asnested(x).to_list()"
            )


_LAYOUTS = per_kind(
    flat=_flat,
    bits=_bits,
    list=_list,
    list_view=_list_view,
    regular=_regular,
    string=_text,
    bytes=_text,
    string_view=_text,
    bytes_view=_text,
    record=_record,
    categorical=_categorical,
    union=_union,
    chunked=lambda awkward, node, copy: _layout(awkward, single_chunk(node, False, "awkward"), copy),
    decimal=_flat,
    interval=_flat,
    run_end=_runs,
    null=_nulls,
)


def _as_numpy(x: NestedArray, copy: bool | None) -> Any:
    """Return an ndarray of numbers, records or strings (StringDType), for `arrayhub.as_numpy`."""
    return _ndarray(single_chunk(x, copy, "numpy"), copy, "x")


def _ndarray(x: NestedArray, copy: bool | None, name: str) -> Any:
    """Return the ndarray of a node. `name` is the node's name in errors, such as ``x`` or ``x['field']``."""
    kind = kind_of(x)
    if kind.fields:
        check_names(x, "numpy", f"arrayhub.as_numpy({name}.children[0], copy=True), one field", BufferError)
    x = x.to_host() if copy else x
    if x.null_count and not (kind.utf8 or kind.indices):
        numbers = f"arrayhub.as_numpy({name}, missing='mask'), " if kind.numbers or kind.packed else ""
        parts = f"{name}[field] for each field, " if kind.fields else numbers
        raise BufferError(
            f"numpy: {x.null_count} of {len(x)} elements of {name} {'is' if x.null_count == 1 else 'are'} missing,"
            f" which NumPy cannot represent. Use {parts}{name}.fill_null(value) or {name}.to_list()"
        )
    if kind.utf8:
        _need_copy(copy, "strings become NumPy's StringDType, which stores them in its own arena")
        return to_string_dtype(x)
    if kind.fields:
        _need_copy(copy, "the fields are separate arrays, and NumPy stores the fields of a record side by side")
        columns = {key: _field(nested_of(field), f"{name}[{key!r}]") for key, field in x.fields.items()}
        dtype = [(key, column.dtype, column.shape[1:]) for key, column in columns.items()]
        records = np.empty(len(x), dtype)
        for key, column in columns.items():
            records[key] = column
        return records
    return dense_as_numpy(dense_for(x, copy, "numpy", name), copy=copy)


def dense_for(x: NestedArray, copy: bool | None, library: str, name: str = "x") -> Any:
    """Convert a node to a dense array for a library. `name` is the node's name in errors.

    Raises
    ------
    ValueError, BufferError
        As `NestedArray.to_dense`.
    """
    x = single_chunk(x, copy, library)
    _check_logical(x, library)
    try:
        return x.to_dense(copy=True if copy else None)
    except (BufferError, ValueError) as error:
        why = str(error).removeprefix("to_dense: ").replace("call to_dense(copy=True)", "pass copy=True")
        prefix = "" if name == "x" else f"{name}: "
        advice = f". Use {name}.to_list(), or arrayhub.as_awkward({name})" if "equal lengths" in why else ""
        why = why.replace("x.", f"{name}.") if "several types" in why else why
        if "categories" in why:
            why = "the elements are categories"
            advice = f". Use arrayhub.as_{library}({name}.indices, copy=True) for the codes, or {name}.to_list()"
        if "missing" in why:
            advice = f" or arrayhub.as_{library}({name}, missing=value)"
        raise type(error)(f"{library}: {prefix}{why}{advice}") from None


def _check_logical(x: NestedArray, library: str) -> None:
    """Raise BufferError for Arrow's logical types unless the library is NumPy, which supports some of them."""
    if library != "numpy" and kind_of(x).numbers and x.meaning is not None:
        raise BufferError(
            f"{library}: {type_name(x.meaning)} is not supported. Use arrayhub.asnested(x).content, which holds the"
            " values without this type"
        )


def _field(field: NestedArray, name: str) -> Any:
    """Return the column of a record field, which may itself be a record."""
    if kind_of(field).utf8:
        raise BufferError(
            f"numpy: {name} has strings of variable length, which NumPy's records do not support. Convert the fields"
            f" one by one, as in arrayhub.as_numpy({name}, copy=True)"
        )
    return _ndarray(field, True, name)


def for_array_method(x: NestedArray, dtype: Any, copy: bool | None) -> Any:
    """Return the ndarray for ``NestedArray.__array__``.

    A BufferError is raised as a TypeError, as ``cupy.ndarray.__array__`` does for memory that NumPy cannot read.
    """
    try:
        array = _as_numpy(x, True if copy else None)
    except BufferError as error:
        raise TypeError(str(error).replace("pass copy=True", "call arrayhub.as_numpy(x, copy=True)")) from error
    return array if dtype is None else array.astype(dtype, copy=False)


def _need_copy(copy: bool | None, why: str) -> None:
    if not wanted(copy, "as_numpy"):
        raise BufferError(f"numpy: {why}; pass copy=True")


def _as_torch(x: NestedArray, copy: bool | None, allow_readonly: bool = False) -> Any:
    """Return a plain tensor of numbers, or a jagged tensor of lists of variable length.

    If `copy` is true, records and lists of fixed length also become a plain tensor.
    """
    x = single_chunk(x, copy, "torch")
    kind = kind_of(x)
    if kind.numbers and x.null_count == 0:
        _check_logical(x, "torch")
        return as_torch(x.content, copy=copy, allow_readonly=allow_readonly)
    if kind.indices or kind.runs or (not x.null_count and (kind.packed or (copy and (kind.fields or kind.width)))):
        return as_torch(dense_for(x, copy, "torch"), copy=copy, allow_readonly=allow_readonly)
    x = _copied(x) if copy else x  # a copy of list views is in order
    if kind.sizes and isinstance(x.content, USMArray) and is_on_host(x) and not x.null_count:
        if not is_in_order(x):
            raise BufferError("torch: the rows of the list views are out of order; pass copy=True, which orders them")
        x = in_order(x)
    return as_jagged(x, copy, allow_readonly)


# Export functions by the library's name in `convert`. The arrays of the libraries in NESTED_CONSUMERS can be nested.
DENSE_CONSUMERS = {"numpy": _as_numpy, "torch": _as_torch}
NESTED_CONSUMERS = {"arrow": as_arrow, "polars": as_polars, "pandas": as_pandas, "awkward": as_awkward}
