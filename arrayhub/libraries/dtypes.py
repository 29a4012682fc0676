"""Conversion of the libraries' element types to NumPy dtypes or to names, one function per library.

The rows of `table` name the functions, and `requested_dtype` looks up the names of element types. Each function
receives an object or a type of its library, so the library is already loaded. The result is None for an object that is
not an element type. For an element type that NumPy does not have, the result is None or a name, which
`requested_dtype` may reject.

`cast_times` converts in the other direction, to the types of pandas and xarray.
"""

import sys

import numpy as np

from arrayhub._core.errors import Refusal


def by_name(dtype):
    """Return the name of a dtype of torch, paddle, mlx or array_api_strict, such as "float32" for ``torch.float32``."""
    return str(dtype).rpartition(".")[2] if type(dtype).__name__.lower() == "dtype" else None


def read_numba(dtype):
    """Return the name of a type of numba."""
    return dtype.name if isinstance(dtype, sys.modules["numba"].types.Type) else None


def read_pyarrow(dtype):
    """Return the dtype of a ``pyarrow.DataType``."""
    pyarrow = sys.modules["pyarrow"]
    if not isinstance(dtype, pyarrow.DataType):
        return None
    if pyarrow.types.is_date32(dtype):  # to_pandas_dtype would return milliseconds
        return np.dtype("M8[D]")
    if pyarrow.types.is_timestamp(dtype) and dtype.tz is not None:
        return None
    try:
        found = np.dtype(dtype.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        return None
    return None if found.hasobject else found


def read_polars(dtype):
    """Return the name of a polars dtype (class or instance), or the NumPy dtype of a temporal type."""
    polars = sys.modules["polars"]
    if not isinstance(dtype, polars.DataType) and not (isinstance(dtype, type) and issubclass(dtype, polars.DataType)):
        return None
    if dtype == polars.Datetime:
        unit, zone = getattr(dtype, "time_unit", None) or "us", getattr(dtype, "time_zone", None)
        return None if zone is not None else np.dtype(f"M8[{unit}]")
    if dtype == polars.Duration:
        return np.dtype(f"m8[{getattr(dtype, 'time_unit', None) or 'us'}]")
    name = str(dtype).lower()
    return {"boolean": "bool", "date": np.dtype("M8[D]")}.get(name, name)


def read_pandas(dtype):
    """Return the dtype of the values of a pandas extension dtype, such as ``Int64``."""
    found = getattr(dtype, "numpy_dtype", None)
    return found if isinstance(found, np.dtype) and not found.hasobject else None


def cast_times(values, copied, library):
    """Return an ndarray in the units that pandas and xarray store: s, ms, us and ns. Other elements are not changed.

    Raises
    ------
    Refusal
        The times do not have a unit, or a cast makes a copy and `copied` is false. The libraries would copy silently.
    """
    if values.dtype.kind not in "mM":
        return values
    accepted = "times in s, ms, us and ns"
    unit, count = np.datetime_data(values.dtype)
    if unit == "generic":
        raise Refusal(library, f"elements of {values.dtype} do not have a unit", accepted)
    if not copied and not (count == 1 and unit in ("s", "ms", "us", "ns") and values.dtype.isnative):
        raise Refusal(library, f"elements of {values.dtype} are not supported", f"{accepted}, in native byte order")
    return values if count == 1 else values.astype(f"{values.dtype.kind}8[{unit}]")  # the libraries cast other units
