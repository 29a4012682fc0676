"""Creation of containers around an array: pandas, xarray, polars and pyarrow with labels, and dpctl.

Each function of `_TABLE` receives a model or None, a USMArray or NestedArray, ``copy``, and ``labels``. If ``labels``
is true and the shapes are equal, the result gets the model's labels. A ``pandas.Index`` gets only the model's name.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.errors import root_of
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import Tree, kind_of
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, convert
from arrayhub.libraries.known import derived_from

Make = Callable[[Any, Any, Copy, bool], Any]
_is_frame_type = derived_from("pandas", "DataFrame")


@lru_cache(maxsize=1024)
def container_of(cls: type) -> Make | None:
    """Return the function of `_TABLE` for a type or its first base class that has an entry. Return None without one."""
    keys = [(root_of(base), base.__name__) for base in cls.__mro__]
    return next((_TABLE[key] for key in keys if key in _TABLE), None)


def _by_library(name: str, array: Any, copy: Copy) -> Any:
    return hooks.NESTED_CONSUMERS[name](array, copy=copy)


def _is_plain(array: Any) -> bool:
    """Return whether an array is a USMArray without fields."""
    return isinstance(array, USMArray) and array.dtype.names is None


def _keeps_labels(model: Any, shape: tuple[int, ...], labels: bool) -> bool:
    return labels and model is not None and tuple(model.shape) == tuple(shape)


def _check_ndim(library: str, array: Any, most: int) -> None:
    if not 1 <= array.ndim <= most:
        accepted = "1 or 2" if most > 1 else "1 dimension"
        raise ValueError(
            f"{library}: the array has {array.ndim} dimensions; accepted: {accepted}. Use a NumPy array instead"
        )


# -------------------------------------------------------------------------------------------------------------- pandas


def _pandas(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    """Create a Series (1-d) or a DataFrame (2-d or records). `_pandas_column` defines the types of the columns."""
    if _is_frame(array):
        columns = [_pandas_field(_column_of(model, name), field, copy) for name, field in _pairs(array)]
        made = pandas_frame(columns, array.field_names)
    else:
        made = _pandas_column(model, array, copy)
    if _keeps_labels(model, made.shape, labels):
        made.index = model.index
        if made.ndim == 1:
            made.name = model.name
        else:
            made.columns = model.columns
    return made


def pandas_frame(columns: Iterable[Any], names: Any) -> Any:
    """Return a pandas DataFrame that shares the columns. Names may repeat, unlike the keys of a dict."""
    frame = sys.modules["pandas"].DataFrame(dict(enumerate(columns)), copy=False)
    frame.columns = names
    return frame


def are_complete_records(array: Any) -> bool:
    """Return whether an array consists of records with fields, without missing records."""
    return isinstance(array, Tree) and bool(kind_of(array).fields and array.field_names and not array.null_count)


def _is_frame(array: Any) -> bool:
    """Return whether an array consists of complete records without a pandas index other than the default index."""
    return are_complete_records(array) and not _describes_index(array.metadata)


def _describes_index(metadata: Any) -> bool:
    """Return whether the metadata of a schema describes a pandas index other than the default index."""
    try:
        levels = list(json.loads(metadata[b"pandas"])["index_columns"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return False
    return any(not isinstance(level, dict) or level.get("start") != 0 or level.get("step") != 1 for level in levels)


def _pairs(array: Any) -> Iterator[tuple[str, Any]]:
    return zip(array.field_names, array.children, strict=True)


def _column_of(model: Any, name: str) -> Any:
    """Return the column `name` of a DataFrame, or None if `model` is not a DataFrame with exactly one such column."""
    if getattr(model, "ndim", 0) != 2 or list(model.columns).count(name) != 1:
        return None
    return model[name]


def _pandas_field(model: Any, array: Any, copy: Copy) -> Any:
    """Return a field of records as a Series. Fields that are records or have several dimensions have Arrow's types."""
    if are_complete_records(array) or (_is_plain(array) and array.ndim > 1):
        return _arrow_series(array, copy)
    return _pandas_column(model, array, copy)


def _arrow_series(array: Any, copy: Copy) -> Any:
    pandas = sys.modules["pandas"]
    return pandas.Series(pandas.arrays.ArrowExtensionArray(_by_library("arrow", array, copy)))


def _pandas_column(model: Any, array: Any, copy: Copy) -> Any:
    """Return an array as pandas data with NumPy's types if the array is dense, and otherwise with Arrow's types.

    - If the model is a Series of an Arrow type, dense arrays have Arrow's types, too.
    - If a copy is permitted, and the model is a Series of pandas' own categorical, string or float type, Arrow data of
      the corresponding type is converted by ``pyarrow.Array.to_pandas``.
    """
    pandas = sys.modules["pandas"]
    is_column = getattr(model, "ndim", 0) == 1
    if _is_plain(array):
        if is_column and isinstance(model.dtype, pandas.ArrowDtype):
            return _arrow_series(array, copy)
        _check_ndim("pandas", array, 2)
    made = _by_library("pandas", array, copy)
    if (
        copy is not False
        and is_column
        and isinstance(getattr(made, "dtype", None), pandas.ArrowDtype)
        and _is_of_pandas(model, made)
    ):
        return made.array.__arrow_array__().to_pandas()
    return made


def _is_of_pandas(model: Any, made: Any) -> bool:
    """Return whether the Arrow type of `made` corresponds to the categorical, string or float type of `model`."""
    pandas = sys.modules["pandas"]
    if isinstance(model.dtype, pandas.ArrowDtype):
        return False
    types = sys.modules["pyarrow"].types
    of_arrow = made.dtype.pyarrow_dtype
    if isinstance(model.dtype, pandas.CategoricalDtype):
        return bool(types.is_dictionary(of_arrow))
    if isinstance(model.dtype, pandas.StringDtype):
        return bool(types.is_string(of_arrow) or types.is_large_string(of_arrow))
    return bool(model.dtype.kind == "f" and types.is_floating(of_arrow))


def _pandas_index(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    pandas = sys.modules["pandas"]
    values = _pandas(None, array, copy, False)
    if values.ndim != 1:
        raise ValueError(f"pandas.Index: the array has {values.ndim} dimensions; accepted: 1 dimension")
    name = model.name if _keeps_labels(model, values.shape, labels) else None
    return pandas.Index(values.array, name=name, copy=False)


def is_frame(obj: Any) -> bool:
    """Return whether an object is a ``pandas.DataFrame``."""
    return _is_frame_type(type(obj))


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


def own_names(obj: Any) -> Any:
    """Return the name of a pandas or polars Series, the list of field names of a table or of records, or None."""
    cls: Any = type(obj)
    make = container_of(cls)
    if make in (_pandas, _polars) and len(obj.shape) == 1:
        return None if obj.name is None or (isinstance(obj.name, str) and not obj.name) else obj.name
    if make in (_pandas, _polars_frame):
        return list(obj.columns)
    if make in (_arrow_table, _arrow_batch):
        return list(obj.schema.names)
    if make is not None:
        return None
    found = getattr(obj, "fields", None)  # of awkward or a NestedArray
    for attribute in ("dtype", "type"):  # of NumPy or pyarrow
        found = found or getattr(getattr(obj, attribute, None), "names", None)
    return list(found) if found else None


def with_names(made: Any, names: Any, model: Any, labels: bool) -> Any:
    """Return a converted result with the names that the result had before the conversion.

    Names that are not strings in the model are restored, because polars and Arrow convert names to strings. If `labels`
    is true and pandas data has the length of the model, the data also gets the model's index.
    """
    cls: Any = type(made)
    make = container_of(cls)
    is_table = isinstance(names, list)
    if is_table != (len(getattr(made, "shape", ())) == 2):
        return made
    if make is _pandas:
        if labels and len(made) == len(model):
            made.index = model.index
        if is_table:
            known = {str(name): name for name in model.columns} if model.ndim == 2 else {}
            made.columns = [known.get(str(name), name) for name in names]
        else:
            made.name = model.name if model.ndim == 1 and str(model.name) == str(names) else names
    elif make is _polars_frame:
        made.columns = list(map(str, names))
    elif make is _polars:
        made = made.alias(str(names))
    elif make in (_arrow_table, _arrow_batch):
        made = made.rename_columns(list(map(str, names)))
    return made


def with_labels_of(frame: Any, made: Any, model: Any, labels: bool) -> Any:
    """Return `made`, which was converted from `frame` as a matrix, with the labels of `frame`.

    Labels of the model take precedence. If `frame` is not a pandas DataFrame, return `made` unchanged.
    """
    shape = tuple(getattr(made, "shape", ()))
    if not is_frame(frame) or shape != frame.shape or _keeps_labels(model, shape, labels):
        return made
    cls: Any = type(made)
    if container_of(cls) is _pandas:
        made.index, made.columns = frame.index, frame.columns
        return made
    return with_names(made, own_names(frame), model, labels)


# -------------------------------------------------------------------------------------------------------------- xarray


def _xarray(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    xarray = sys.modules["xarray"]
    if isinstance(array, Tree):
        array = hooks.asarray(array.to_dense(copy=copy))
    data = _xarray_data(model, array, copy)
    if not _keeps_labels(model, data.shape, labels):
        return xarray.DataArray(data, dims=array.dims)
    return xarray.DataArray(data, coords=model.coords, dims=model.dims, name=model.name)


def _xarray_variable(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    made = _xarray(None, array, copy, False)
    cls = sys.modules["xarray"].Variable if model is None else type(model)
    return cls(model.dims if _keeps_labels(model, made.shape, labels) else made.dims, made.data)


def _xarray_data(model: Any, array: Any, copy: Copy) -> Any:
    """Convert `array` to the library of the array that the model contains.

    Without a model, or for a model of an unknown library, return a cupy array for CUDA memory, and otherwise a NumPy
    array.
    """
    from arrayhub.convert.names import name_of_type

    inner = None if model is None else name_of_type(type(model.data))
    if inner is not None:
        return convert(array, inner, copy=copy)
    return convert(array, "cupy" if array.device.type == "cuda" else "numpy", copy=copy)


def _xarray_dataset(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    """Create a Dataset with one variable per field of an array of records.

    Variables without a counterpart in the model share their first dimension, ``dim_0``.
    """
    xarray = sys.modules["xarray"]
    variables = {}
    for name, field in _fields(array).items():
        known = model.variables.get(name) if labels and model is not None else None
        made = _xarray_variable(known, field, copy, labels)
        dims = ("dim_0", *[f"{name}_dim_{k}" for k in range(1, made.ndim)])
        variables[name] = made if known is not None and made.dims == known.dims else (dims, made.data)
    coords = {} if model is None or not labels else {k: v for k, v in model.coords.items() if k not in variables}
    return xarray.Dataset(variables, coords=coords)


def _fields(array: Any) -> dict[str, Any]:
    if isinstance(array, Tree) and kind_of(array.chunks[0]).fields:
        return dict(array.fields)
    if isinstance(array, USMArray) and array.dtype.names is not None:
        values = as_numpy(array)
        return {name: hooks.asarray(values[name]) for name in array.dtype.names}
    raise ValueError("xarray.Dataset: the array does not have fields; accepted: records")


# ------------------------------------------------------------------------------------------------- polars and pyarrow


def _columns(name: str, array: Any, copy: Copy) -> list[Any]:
    """Return the columns of a 2-d array as arrays of a library that requires contiguous memory."""
    if copy is False and not array[:, :1].flags["C"]:
        raise BufferError(
            f"{'pyarrow' if name == 'arrow' else name}: the columns of the array, whose shape is {array.shape}, are not"
            " contiguous; accepted: contiguous columns, as in Fortran order. Pass copy=True"
        )
    return [_by_library(name, array[:, k], copy) for k in range(array.shape[1])]


def _polars(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    made = _by_library("polars", array, copy)
    if _keeps_labels(model, made.shape, labels) and hasattr(made, "alias"):
        return made.alias(model.name)
    return made


def _polars_frame(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    if not (_is_plain(array) and array.ndim == 2):
        return _by_library("polars", array, copy)
    names = (
        model.columns if _keeps_labels(model, array.shape, labels) else [f"column_{k}" for k in range(array.shape[1])]
    )
    columns = _columns("polars", array, copy)
    return sys.modules["polars"].DataFrame([column.alias(name) for name, column in zip(names, columns, strict=True)])


def _arrow_chunked(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    pyarrow = sys.modules["pyarrow"]
    made = _by_library("arrow", array, copy)
    return made if isinstance(made, pyarrow.ChunkedArray) else pyarrow.chunked_array([made], type=made.type)


def _arrow_tensor(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    values = as_numpy(array, copy=copy)
    same = _keeps_labels(model, array.shape, labels)
    pyarrow = sys.modules["pyarrow"]
    try:
        return pyarrow.Tensor.from_numpy(values, dim_names=(model.dim_names or None) if same else None)
    except pyarrow.ArrowException as error:
        raise BufferError(f"pyarrow.Tensor: elements of {values.dtype!r} are not supported ({error})") from error


def _arrow_columns(name: str, model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    """Create a ``pyarrow.Table`` or a ``pyarrow.RecordBatch``, as `name` specifies."""
    pyarrow = sys.modules["pyarrow"]
    cls = getattr(pyarrow, name)
    if not (_is_plain(array) and array.ndim == 2):
        made = _by_library("arrow", array, copy)
        chunks = made.chunks if isinstance(made, pyarrow.ChunkedArray) else [made]
        if not pyarrow.types.is_struct(made.type):
            if model is not None:
                return made
            chunks = [pyarrow.StructArray.from_arrays([chunk], names=["0"]) for chunk in chunks]
        batches = [pyarrow.RecordBatch.from_struct_array(chunk) for chunk in chunks]
        metadata = array.metadata if isinstance(array, Tree) else None
        batches = [batch.replace_schema_metadata(metadata) for batch in batches]
        if cls is not pyarrow.RecordBatch:
            return pyarrow.Table.from_batches(batches)
        if len(batches) > 1:
            raise BufferError(
                f"pyarrow: a RecordBatch has one chunk, and the array has {len(batches)}; pass copy=True, which"
                " concatenates them, or pyarrow.Table as the model"
            )
        return batches[0]
    same = labels and model is not None and array.shape == (model.num_rows, model.num_columns)
    names = model.schema.names if same else [str(k) for k in range(array.shape[1])]
    return cls.from_arrays(_columns("arrow", array, copy), names=names)


_arrow_table, _arrow_batch = partial(_arrow_columns, "Table"), partial(_arrow_columns, "RecordBatch")


def _usm_ndarray(model: Any, array: Any, copy: Copy, labels: bool) -> Any:
    return convert(array, "dpnp", copy=copy).get_array()


_TABLE: dict[tuple[str, str], Make] = {
    ("dpctl", "usm_ndarray"): _usm_ndarray,
    ("dpnp", "usm_ndarray"): _usm_ndarray,
    ("pandas", "DataFrame"): _pandas,
    ("pandas", "Index"): _pandas_index,
    ("pandas", "Series"): _pandas,
    ("polars", "DataFrame"): _polars_frame,
    ("polars", "Series"): _polars,
    ("pyarrow", "ChunkedArray"): _arrow_chunked,
    ("pyarrow", "RecordBatch"): _arrow_batch,
    ("pyarrow", "Table"): _arrow_table,
    ("pyarrow", "Tensor"): _arrow_tensor,
    ("xarray", "DataArray"): _xarray,
    ("xarray", "Dataset"): _xarray_dataset,
    ("xarray", "Variable"): _xarray_variable,
}
