"""Creation of containers with labels around an array: pandas, xarray, polars and pyarrow.

Each function receives a model or None, a USMArray or NestedArray, and ``copy``. The result has the labels of the model
if it has the model's shape.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.errors import root_of
from arrayhub._core.hooks import hooks
from arrayhub._core.tree import Tree, kind_of
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy, convert

Make = Callable[[Any, Any, Copy], Any]


@lru_cache(maxsize=1024)
def container_of(cls: type) -> Make | None:
    """Return the function that creates a container of this type, or None if the type is not in the table."""
    keys = [(root_of(base), base.__name__) for base in cls.__mro__]
    return next((_TABLE[key] for key in keys if key in _TABLE), None)


def _by_library(name: str, array: Any, copy: Copy) -> Any:
    return hooks.NESTED_CONSUMERS[name](array, copy=copy)


def _is_plain(array: Any) -> bool:
    """Return whether an array is a USMArray without fields."""
    return isinstance(array, USMArray) and array.dtype.names is None


def _check_ndim(library: str, array: Any, most: int) -> None:
    if not 1 <= array.ndim <= most:
        accepted = "1 or 2" if most > 1 else "1 dimension"
        raise ValueError(
            f"like: the array has {array.ndim} dimensions; accepted by {library}: {accepted}. Pass numpy as the model"
        )


# -------------------------------------------------------------------------------------------------------------- pandas


def _pandas(model: Any, array: Any, copy: Copy) -> Any:
    """Create a Series (1-d) or a DataFrame (2-d). It contains NumPy arrays unless the model contains Arrow arrays."""
    pandas = sys.modules["pandas"]
    if _is_plain(array) and _has_arrow(pandas, model):
        made = pandas.Series(pandas.arrays.ArrowExtensionArray(_by_library("arrow", array, copy)))
    else:
        if _is_plain(array):
            _check_ndim("pandas", array, 2)
        made = _by_library("pandas", array, copy)
    if model is None or made.shape != model.shape:
        return made
    made.index = model.index
    if made.ndim == 1:
        made.name = model.name
    else:
        made.columns = model.columns
    return made


def _has_arrow(pandas: Any, model: Any) -> bool:
    return model is not None and model.ndim == 1 and isinstance(model.dtype, pandas.ArrowDtype)


def _pandas_index(model: Any, array: Any, copy: Copy) -> Any:
    pandas = sys.modules["pandas"]
    values = _pandas(None, array, copy)
    if values.ndim != 1:
        raise ValueError(f"like: the array has {values.ndim} dimensions; accepted by pandas.Index: 1 dimension")
    same = model is not None and values.shape == model.shape
    return pandas.Index(values.array, name=model.name if same else None, copy=False)


# -------------------------------------------------------------------------------------------------------------- xarray


def _xarray(model: Any, array: Any, copy: Copy) -> Any:
    xarray = sys.modules["xarray"]
    if isinstance(array, Tree):
        array = hooks.asarray(array.to_dense(copy=copy))
    data = _xarray_data(model, array, copy)
    if model is None or data.shape != model.shape:
        return xarray.DataArray(data, dims=array.dims)
    return xarray.DataArray(data, coords=model.coords, dims=model.dims, name=model.name)


def _xarray_variable(model: Any, array: Any, copy: Copy) -> Any:
    made = _xarray(None, array, copy)
    cls = sys.modules["xarray"].Variable if model is None else type(model)
    same = model is not None and made.shape == model.shape
    return cls(model.dims if same else made.dims, made.data)


def _xarray_data(model: Any, array: Any, copy: Copy) -> Any:
    """Return the data for the result, as an array of the library whose array the model contains."""
    from arrayhub.convert.names import name_of_type

    inner = None if model is None else name_of_type(type(model.data))
    if inner is not None:
        return convert(array, inner, copy=copy)
    return convert(array, "cupy" if array.device.type == "cuda" else "numpy", copy=copy)


def _xarray_dataset(model: Any, array: Any, copy: Copy) -> Any:
    """Create a Dataset with one variable per field of a record."""
    xarray = sys.modules["xarray"]
    variables = {}
    for name, field in _fields(array).items():
        known = None if model is None else model.variables.get(name)
        made = _xarray_variable(known, field, copy)
        variables[name] = made if known is not None and made.dims == known.dims else (f"{name}_dim", made.data)
    coords = {} if model is None else {k: v for k, v in model.coords.items() if k not in variables}
    return xarray.Dataset(variables, coords=coords)


def _fields(array: Any) -> dict[str, Any]:
    if isinstance(array, Tree) and kind_of(array.chunks[0]).fields:
        return dict(array.fields)
    if isinstance(array, USMArray) and array.dtype.names is not None:
        values = as_numpy(array)
        return {name: hooks.asarray(values[name]) for name in array.dtype.names}
    raise ValueError("like: the model is an xarray.Dataset, but the array does not have fields; accepted: records")


# ------------------------------------------------------------------------------------------------- polars and pyarrow


def _columns(name: str, array: Any, copy: Copy) -> list[Any]:
    """Return the columns of a two-dimensional array as arrays of a library that requires contiguous memory."""
    if not copy and not array[:, :1].flags["C"]:
        raise BufferError(
            f"like: the columns of the array, whose shape is {array.shape}, are not contiguous; accepted by {name}:"
            " contiguous columns, as in Fortran order. Pass copy=True"
        )
    return [_by_library(name, array[:, k], copy) for k in range(array.shape[1])]


def _polars(model: Any, array: Any, copy: Copy) -> Any:
    made = _by_library("polars", array, copy)
    if model is not None and made.shape == model.shape and hasattr(made, "alias"):
        return made.alias(model.name)
    return made


def _polars_frame(model: Any, array: Any, copy: Copy) -> Any:
    if not (_is_plain(array) and array.ndim == 2):
        return _by_library("polars", array, copy)
    same = model is not None and array.shape == model.shape
    names = model.columns if same else [f"column_{k}" for k in range(array.shape[1])]
    columns = _columns("polars", array, copy)
    return sys.modules["polars"].DataFrame([column.alias(name) for name, column in zip(names, columns, strict=True)])


def _arrow_chunked(model: Any, array: Any, copy: Copy) -> Any:
    pyarrow = sys.modules["pyarrow"]
    made = _by_library("arrow", array, copy)
    return made if isinstance(made, pyarrow.ChunkedArray) else pyarrow.chunked_array([made], type=made.type)


def _arrow_tensor(model: Any, array: Any, copy: Copy) -> Any:
    values = as_numpy(array, copy=copy)
    same = model is not None and array.shape == model.shape
    pyarrow = sys.modules["pyarrow"]
    try:
        return pyarrow.Tensor.from_numpy(values, dim_names=(model.dim_names or None) if same else None)
    except pyarrow.ArrowException as error:
        raise BufferError(f"pyarrow.Tensor: elements of {values.dtype!r} are not supported ({error})") from error


def _arrow_table(model: Any, array: Any, copy: Copy) -> Any:
    return _arrow_columns(sys.modules["pyarrow"].Table, model, array, copy)


def _arrow_batch(model: Any, array: Any, copy: Copy) -> Any:
    return _arrow_columns(sys.modules["pyarrow"].RecordBatch, model, array, copy)


def _arrow_columns(cls: Any, model: Any, array: Any, copy: Copy) -> Any:
    pyarrow = sys.modules["pyarrow"]
    if not (_is_plain(array) and array.ndim == 2):
        made = _by_library("arrow", array, copy)
        if not pyarrow.types.is_struct(made.type):
            return made
        chunks = made.chunks if isinstance(made, pyarrow.ChunkedArray) else [made]
        batches = [pyarrow.RecordBatch.from_struct_array(chunk) for chunk in chunks]
        if cls is not pyarrow.RecordBatch:
            return pyarrow.Table.from_batches(batches)
        if len(batches) > 1:
            raise BufferError(
                f"pyarrow: a RecordBatch has one chunk, and the array has {len(batches)}; pass copy=True, which"
                " concatenates them, or pyarrow.Table as the model"
            )
        return batches[0]
    same = model is not None and array.shape == (model.num_rows, model.num_columns)
    names = model.schema.names if same else [str(k) for k in range(array.shape[1])]
    return cls.from_arrays(_columns("arrow", array, copy), names=names)


def _usm_ndarray(model: Any, array: Any, copy: Copy) -> Any:
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
