"""Conversion to a class of a library: tables, columns and labelled arrays, for ``convert(x, Class)``."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import Refusal, name_of_type, root_of
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import kind_of
from arrayhub.convert.functions import as_numpy, convert, convert_to_library
from arrayhub.convert.labels import cache_by_type, label_kind
from arrayhub.convert.names import get_exporter, library_name

Options = dict[str, Any]  # the arguments copy, dtype, device and missing of `convert`
Make = Callable[[Any, Options], Any]


def to_class(
    obj: Any, cls: type, copy: Copy, dtype: Any = None, device: Any = None, missing: Any = None, readonly: bool = False
) -> Any:
    """Return `obj` as an instance of `cls`, a type of a library. The other arguments are those of `convert`.

    A table has one column per column of a matrix, one per field of records, or one column for a 1-d array.

    Raises
    ------
    ValueError
        `cls` is not a type of a library.
    TypeError
        The elements, the shape or the chunks of `obj` do not fit `cls`.
    """
    options = {"copy": check_copy(copy, "convert"), "dtype": dtype, "device": device, "missing": missing}
    if issubclass(type(obj), cls) and not any(value is not None and value is not False for value in options.values()):
        return obj
    library, make = library_name(cls), maker_of(cls)
    if make is not None:
        made = make(obj, options)
    elif library == "arrow" and cls.__name__ in ("FixedShapeTensorArray", "Bool8Array"):
        made = get_exporter(library)(obj, extension=True, **options)
    else:
        made = convert_to_library(obj, library, copy, dtype, device, missing, readonly)
    made = made if isinstance(made, cls) else _as_instance(made, library, cls, copy)
    if not isinstance(made, cls):
        raise TypeError(
            f"convert: to is {name_of_type(cls)}, and the array is a {name_of_type(type(made))} of this library;"
            f" accepted: an array that this type can hold. Pass {library!r} as the library"
        )
    return made


def _as_instance(made: Any, library: str, cls: Any, copy: Copy) -> Any:
    """Return an array of a library as an instance of `cls`, or unchanged if this is not possible.

    Raise Refusal if only a copy is an instance, and `copy` is False.
    """
    if isinstance(made, np.ndarray) and issubclass(cls, np.ndarray):
        return made.view(cls)
    if library == "scipy" and cls.__name__[:3] in ("bsr", "coo", "csc", "csr"):
        kind = cls.__name__[:3]
        if made.format == kind or copy is not False:
            return cls(made.asformat(kind))
        if made.ndim == 2:  # SciPy converts some arrays of other dimensions to coo only
            call = _call_with_copy(f"scipy.sparse.{cls.__name__}")
            raise Refusal("convert", f"the format is {made.format}", kind, call)
        return made
    if library == "torch":
        torch = sys.modules["torch"]
        if cls is torch.nn.Parameter:
            return cls(made, requires_grad=made.is_floating_point() or made.is_complex())
        return made.as_subclass(cls) if issubclass(cls, torch.Tensor) and not made.is_nested else made
    if library == "arrow" and type(made).__name__ == "ChunkedArray":
        if made.num_chunks == 1:
            return made.chunk(0)
        if made.num_chunks == 0 or copy is not False:
            return made.combine_chunks()
        if isinstance(made.chunk(0), cls):
            reason = f"the array has {made.num_chunks} chunks"
            raise Refusal("convert", reason, "one chunk", _call_with_copy(f"pyarrow.{cls.__name__}"))
    return made


def _call_with_copy(name: str) -> str:
    """Return the call that converts a copy to a class. `name` is the name of the class with its module."""
    return f"arrayhub.convert(x, {name}, copy=True)"


@cache_by_type
def maker_of(cls: type) -> Make | None:
    """Return the function of `_MAKERS` for a type or its first base class with an entry. Return None without one."""
    keys = [(root_of(base), base.__name__) for base in cls.__mro__]
    return next((_MAKERS[key] for key in keys if key in _MAKERS), None)


def _is_matrix(obj: Any) -> bool:
    """Return whether an object is a two-dimensional array without names of columns."""
    return len(getattr(obj, "shape", ())) == 2 and not hasattr(obj, "columns") and not hasattr(obj, "schema")


def columns_of_objects(obj: Any) -> list[Any]:
    """Return the columns of a 2-d array of NumPy that is not dense, and an empty list for other objects."""
    masked = issubclass(type(obj), np.ma.MaskedArray)
    if not issubclass(type(obj), np.ndarray) or obj.ndim != 2 or not (masked or obj.dtype.kind in "OSUT"):
        return []
    return list((obj if masked else np.asarray(obj)).T)  # the columns of numpy.matrix are 2-d


# -------------------------------------------------------------------------------------------------------------- pandas


def pandas_frame(columns: Iterable[Any], names: Any) -> Any:
    """Return a pandas DataFrame that shares the columns. Names may repeat, unlike the keys of a dict."""
    frame = sys.modules["pandas"].DataFrame(dict(enumerate(columns)), copy=False)
    frame.columns = names
    return frame


def are_complete_records(array: Any) -> bool:
    """Return whether a NestedArray consists of records with fields, without missing records."""
    return bool(kind_of(array).fields and array.field_names and not array.null_count)


def is_frame(obj: Any) -> bool:
    """Return whether an object is a ``pandas.DataFrame``."""
    return label_kind(type(obj)) == "frame"


def without_index(obj: Any) -> Any:
    """Replace the index of a pandas DataFrame with the default index, which is not exported.

    Return objects other than a pandas DataFrame unchanged.
    """
    return obj.reset_index(drop=True) if is_frame(obj) else obj


def with_index_columns(obj: Any) -> Any:
    """Convert the named levels of a pandas DataFrame's index to columns, for libraries without an index.

    Drop the unnamed levels. Return objects other than a pandas DataFrame unchanged.
    """
    if not is_frame(obj):
        return obj
    unnamed = [level for level, name in enumerate(obj.index.names) if name is None]
    return obj.reset_index(unnamed, drop=True).reset_index() if len(unnamed) < obj.index.nlevels else without_index(obj)


def _make_frame(obj: Any, options: Options) -> Any:
    made = convert(obj, "pandas", **options)
    return made if is_frame(made) else made.to_frame()


def _make_index(obj: Any, options: Options) -> Any:
    made = convert(obj, "pandas", **options)
    if is_frame(made):
        return made
    try:
        return sys.modules["pandas"].Index(made.array, name=made.name, copy=False)
    except NotImplementedError as error:
        raise Refusal("pandas.Index", f"elements of {made.dtype} are not supported ({error})") from error


def with_arrow_type(made: Any, model: Any, copy: Copy) -> Any:
    """Return a Series or an Index of pandas with Arrow's type if `model` has an Arrow type, otherwise `made`.

    NaN in NumPy's memory remains a number.
    """
    pandas = sys.modules["pandas"]
    arrow = pandas.ArrowDtype
    if not isinstance(getattr(model, "dtype", None), arrow) or made.ndim != 1 or isinstance(made.dtype, arrow):
        return made
    values = made.to_numpy() if getattr(made.dtype, "char", "") in "efd" else made
    column = pandas.arrays.ArrowExtensionArray(convert(values, "arrow", copy=False if copy is False else None))
    make = pandas.Index if label_kind(type(made)) == "index" else partial(pandas.Series, index=made.index)
    return make(column, name=made.name)


def with_types_of(made: Any, model: Any) -> Any:
    """Return pandas data with columns of pandas' own types where the columns of `model` have such types.

    Arrow's types are kept for columns that do not correspond to the type of the model's column, and for integers and
    booleans with missing values.
    """
    if made.ndim == 1:
        return _column_with_type_of(made, model if getattr(model, "ndim", 0) == 1 else None)
    known = list(model.columns) if getattr(model, "ndim", 0) == 2 else []
    columns = [
        _column_with_type_of(made.iloc[:, k], model[name] if known.count(name) == 1 else None)
        for k, name in enumerate(made.columns)
    ]
    frame = pandas_frame(columns, made.columns)
    frame.index = made.index
    return frame


def _column_with_type_of(column: Any, model: Any) -> Any:
    pandas = sys.modules["pandas"]
    if not isinstance(column.dtype, pandas.ArrowDtype) or isinstance(getattr(model, "dtype", None), pandas.ArrowDtype):
        return column
    types, of_arrow = sys.modules["pyarrow"].types, column.dtype.pyarrow_dtype
    dtype = getattr(model, "dtype", column.dtype.numpy_dtype)
    if isinstance(dtype, pandas.CategoricalDtype):
        fits = types.is_dictionary(of_arrow)
    elif isinstance(dtype, pandas.StringDtype):
        fits = types.is_string(of_arrow) or types.is_large_string(of_arrow)
    else:
        kind = column.dtype.numpy_dtype.kind
        fits = kind in "fmM" or (kind in "biu" and not column.array.isna().any())
        fits = fits and getattr(of_arrow, "tz", None) is None
    if not fits:
        return column
    made = column.array.__arrow_array__().to_pandas()
    made.index, made.name = column.index, column.name
    return made


# ------------------------------------------------------------------------------------------------- polars and pyarrow


@contextmanager
def _refusals_of(obj: Any, library: str) -> Iterator[None]:
    """Give refusals of a part of `obj`, or of its import, the call that works for `obj`."""
    try:
        yield
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        raise hooks.advice.complete_refusal(error, obj, library)  # noqa: B904


def _columns_of(library: str, obj: Any, options: Options, name: str) -> list[Any]:
    """Return the columns of a 2-d array for the class `name` of a library that requires contiguous memory."""
    copy = options["copy"]
    if columns := columns_of_objects(obj):  # strided columns are encoded, as in `as_pandas`
        return [convert(column, library, **{**options, "copy": copy or None}) for column in columns]
    array = hooks.functions.asarray(obj, **{**options, "copy": None if copy is True else copy})
    if copy is False and not array[:, :1].flags["C"]:
        with _refusals_of(obj, library):
            convert(array[:0, 0], library, copy=True)  # raises the error for elements that no copy makes suitable
        reason = f"the columns of the array, whose shape is {array.shape}, are not contiguous"
        accepted = "contiguous columns, as in Fortran order"
        raise Refusal(name.partition(".")[0], reason, accepted, _call_with_copy(name))
    with _refusals_of(obj, library):
        return [convert(array[:, k], library, copy=copy) for k in range(array.shape[1])]


def _make_polars_frame(obj: Any, options: Options, name: str = "DataFrame") -> Any:
    if _is_matrix(obj):
        columns = _columns_of("polars", obj, options, f"polars.{name}")
        frame = sys.modules["polars"].DataFrame
        columns = [column.to_struct() if isinstance(column, frame) else column for column in columns]  # records
        return frame([column.alias(f"column_{k}") for k, column in enumerate(columns)])
    made = convert(obj, "polars", **options)
    return made.to_frame(made.name or "column_0") if isinstance(made, sys.modules["polars"].Series) else made


def _make_lazy_frame(obj: Any, options: Options) -> Any:
    return _make_polars_frame(obj, options, "LazyFrame").lazy()


def _make_chunked(obj: Any, options: Options) -> Any:
    made = convert(obj, "arrow", **options)
    pyarrow = sys.modules["pyarrow"]
    return made if isinstance(made, pyarrow.ChunkedArray) else pyarrow.chunked_array([made], type=made.type)


def _make_tensor(obj: Any, options: Options) -> Any:
    values = as_numpy(obj, **options)
    pyarrow = sys.modules["pyarrow"]
    try:
        return pyarrow.Tensor.from_numpy(values)
    except pyarrow.ArrowException as error:
        if options["copy"] is None:  # of negative strides
            return _make_tensor(obj, {**options, "copy": True})
        raise BufferError(f"pyarrow.Tensor: elements of {values.dtype!r} are not supported ({error})") from error


def _make_arrow_table(name: str, obj: Any, options: Options) -> Any:
    """Create a ``pyarrow.Table`` or a ``pyarrow.RecordBatch``, as `name` specifies."""
    pyarrow = sys.modules["pyarrow"]
    if is_frame(obj) and not obj.columns.is_unique:  # pandas does not export such a frame to Arrow
        names = list(map(str, obj.columns))
        made = _make_arrow_table(name, *_number_columns(obj, options))
        return made.rename_columns([*names, *made.schema.names[len(names) :]])  # the index follows
    if _is_matrix(obj):
        columns = _columns_of("arrow", obj, options, f"pyarrow.{name}")
        return getattr(pyarrow, name).from_arrays(columns, names=list(map(str, range(len(columns)))))
    with _refusals_of(obj, "arrow"):
        without_copy = {**options, "copy": None if options["copy"] is True else options["copy"]}
        column = hooks.nested.import_nested(obj, **without_copy)
        joins = name == "RecordBatch" and options["copy"] is None and len(column.chunks) > 1
        made = convert(column, "arrow", copy=True if joins else options["copy"])
    chunks = made.chunks if isinstance(made, pyarrow.ChunkedArray) else [made]
    if not pyarrow.types.is_struct(made.type):
        label = str(hooks.nested_array.column_name(column) or "0")  # the name of a Series
        chunks = [pyarrow.StructArray.from_arrays([chunk], names=[label]) for chunk in chunks]
    batches = [pyarrow.RecordBatch.from_struct_array(x).replace_schema_metadata(column.metadata) for x in chunks]
    if name == "Table":
        return pyarrow.Table.from_batches(batches)
    if len(batches) > 1:
        reason = f"a RecordBatch has one chunk, and the array has {len(batches)}"
        raise Refusal("pyarrow", reason, "pyarrow.Table, or a copy", _call_with_copy("pyarrow.RecordBatch"))
    return batches[0]


def _number_columns(frame: Any, options: Options) -> tuple[Any, Options]:
    """Return a DataFrame with numbers in place of the names of its columns, and the options for these names."""
    numbers = list(map(str, range(frame.shape[1])))
    missing = options["missing"]
    if isinstance(missing, dict):
        unknown = {name: value for name, value in missing.items() if name not in frame.columns}
        pairs = zip(numbers, frame.columns, strict=True)
        missing = {number: missing[name] for number, name in pairs if name in missing} | unknown
    return frame.set_axis(numbers, axis=1), {**options, "missing": missing}


# -------------------------------------------------------------------------------------------------------- the classes


def _make_usm_ndarray(obj: Any, options: Options) -> Any:
    return convert(obj, "dpnp", **options).get_array()


_MAKERS: dict[tuple[str, str], Make] = {
    ("dpctl", "usm_ndarray"): _make_usm_ndarray,
    ("dpnp", "usm_ndarray"): _make_usm_ndarray,
    ("pandas", "DataFrame"): _make_frame,
    ("pandas", "Index"): _make_index,
    ("polars", "DataFrame"): _make_polars_frame,
    ("polars", "LazyFrame"): _make_lazy_frame,
    ("pyarrow", "ChunkedArray"): _make_chunked,
    ("pyarrow", "RecordBatch"): partial(_make_arrow_table, "RecordBatch"),
    ("pyarrow", "Table"): partial(_make_arrow_table, "Table"),
    ("pyarrow", "Tensor"): _make_tensor,
    ("xarray", "DataArray"): lambda obj, options: convert(obj, "xarray", **options),
    ("xarray", "Variable"): lambda obj, options: convert(obj, "xarray", **options).variable,
}
BY_SHAPE = (_make_frame,)  # the library's function chooses the class by the shape
_OF_TABLES = (_make_polars_frame, _make_lazy_frame, _MAKERS["pyarrow", "Table"], _MAKERS["pyarrow", "RecordBatch"])


def class_like(model: Any, has_columns: Callable[[], bool]) -> type | None:
    """Return the class of the result for a model whose type has a maker, or None if the library chooses the class.

    `has_columns` returns whether the converted object has columns. Without columns, it does not become a table.
    """
    cls: Any = type(model)
    make = maker_of(cls)
    if make in _OF_TABLES and not has_columns():
        return None
    if make is _make_index and has_columns():  # a frame
        return None
    found: type = next(base for base in cls.__mro__ if (root_of(base), base.__name__) in _MAKERS)
    return found
