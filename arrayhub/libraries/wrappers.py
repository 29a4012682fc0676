"""Objects that hold an array, or look as if they did: which of them are taken for it, and what to call for the rest.

A wrapper is taken where what it hands out is its own memory in its own type, which is checked for each object. Of all
others a part would be lost (a mask, a unit, a time zone, what is not stored), or writes would (into a copy made at each
look); the error then names the call that gives an array. Types are known by the names of their library and their class,
those that they inherit from included, so no library is imported to recognise its objects.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from arrayhub._core.errors import show


class Wrapper(NamedTuple):
    """What is known of a type."""

    call: str  # what gives an array, for people
    attribute: str | None = None  # what hands out its memory; None: it is never taken for an array
    dtype: Callable[[Any], Any] = lambda obj: None  # the element type that an object says it has; None: none of NumPy's


# OpenVINO's names of the element types that its `data` shows as what they are; others come as bytes or another type.
_OPENVINO = {
    "boolean": "bool",
    **{f"{code}{bits}": f"{name}{bits}" for code, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


def _dtype_of_openvino(obj: Any) -> Any:
    name = _OPENVINO.get(obj.get_element_type().get_type_name())
    return obj.get_element_type() if name is None else np.dtype(name)


def _dtype_of_frame(obj: Any) -> Any:
    dtypes = set(obj.dtypes)
    return dtypes.pop() if len(dtypes) == 1 else "several types"


def _dtype_of_series(obj: Any) -> Any:
    return obj.dtype


def _dtype_of_xarray(obj: Any) -> Any:
    return obj.dtype if isinstance(obj.dtype, np.dtype) else None  # else what is in it says so itself


_DATA_AND_MASK = "x.data, and x.mask for what is valid"
_PANDAS = "x.to_numpy(), which copies time zones, missing values and columns of several types into one array"
_SPARSE = "x.toarray(), a dense copy"
_READ = "x[...], which reads a copy into memory"
_XARRAY = "x.load(), which reads it into memory, or x.to_numpy()"
_OPENVINO_CALL = "x.data, which shows types that NumPy lacks as other types or as bytes"

# One row per type: the first part of its module's name, and the name of the class.
_TABLE = {
    ("astropy", "NDData"): Wrapper(_DATA_AND_MASK + "; x.unit and x.uncertainty are not in it either"),
    ("astropy", "Table"): Wrapper("x.as_array(), a copy, or x['name'] for a column"),
    ("awkward", "Array"): Wrapper("awkward.to_numpy(x), or arrayhub.asnested(x) where its lists differ in length"),
    ("blosc2", "NDArray"): Wrapper("x[:], which decompresses a copy"),
    ("cupyx", "spmatrix"): Wrapper(_SPARSE),
    ("dask", "Array"): Wrapper("x.compute()"),
    ("gt4py", "NdArrayField"): Wrapper("x.ndarray", "ndarray"),
    ("h5py", "Dataset"): Wrapper(_READ),
    ("jax", "JAXSparse"): Wrapper("x.todense(), a dense copy"),
    ("lightgbm", "Dataset"): Wrapper("x.get_data()"),
    ("marray", "masked_namespace.<locals>.MArray"): Wrapper(_DATA_AND_MASK),
    ("netCDF4", "Variable"): Wrapper(_READ),
    ("openvino", "Constant"): Wrapper(_OPENVINO_CALL, "data", _dtype_of_openvino),
    ("openvino", "Tensor"): Wrapper(_OPENVINO_CALL, "data", _dtype_of_openvino),
    ("pandas", "DataFrame"): Wrapper(_PANDAS, "values", _dtype_of_frame),
    ("pandas", "ExtensionArray"): Wrapper(_PANDAS),
    ("pandas", "Index"): Wrapper(_PANDAS, "values", _dtype_of_series),
    ("pandas", "Series"): Wrapper(_PANDAS, "values", _dtype_of_series),
    ("pint", "Quantity"): Wrapper("x.magnitude; the unit is not in it"),
    ("scipy", "KDTree"): Wrapper("x.data for its points"),
    ("scipy", "cKDTree"): Wrapper("x.data for its points"),
    ("scipy", "sparray"): Wrapper(_SPARSE),
    ("scipy", "spmatrix"): Wrapper(_SPARSE),
    ("sklearn", "BallTree"): Wrapper("x.data for its points"),
    ("sklearn", "Bunch"): Wrapper("x['data'], or another of its keys"),
    ("sklearn", "KDTree"): Wrapper("x.data for its points"),
    ("sparse", "SparseArray"): Wrapper("x.todense(), a dense copy"),
    ("warp", "fabricarray"): Wrapper("x.contiguous(), a copy"),
    ("warp", "indexedarray"): Wrapper("x.contiguous(), a copy"),
    ("warp", "indexedfabricarray"): Wrapper("x.contiguous(), a copy"),
    ("xarray", "DataArray"): Wrapper(_XARRAY, "data", _dtype_of_xarray),
    ("xarray", "Dataset"): Wrapper("x['name'] for one of its variables"),
    ("xarray", "NamedArray"): Wrapper(_XARRAY, "data", _dtype_of_xarray),
}

# Attributes that hold an array in many types; they are named in the error where there is one, and not asked for.
_USUAL = ("ndarray", "data", "values", "array")

# The interpreter's own records, which no metaclass can redefine.
_mro = type.__dict__["__mro__"].__get__
_module = type.__dict__["__module__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_members = type.__dict__["__dict__"].__get__


def known(cls):
    """Return the row of a type, or of the first that it inherits from, or None."""
    for base in _mro(cls):
        module = _module(base)
        if type(module) is str:
            row = _TABLE.get((module.partition(".")[0], _qualname(base)))
            if row is not None:
                return row
    return None


def inside(obj):
    """Return what a wrapper hands out as its memory.

    Raises
    ------
    TypeError
        Its type is never taken for an array, or this one has an element type that NumPy cannot say.
    """
    row = known(type(obj))
    if row.attribute is None:
        raise wrapper_error(obj, "is not taken for an array")
    said = row.dtype(obj)
    if said is not None and not isinstance(said, np.dtype):
        raise wrapper_error(obj, f"has elements of {said}, which no array has as they are")
    return getattr(obj, row.attribute)


def check(obj, array, again):
    """Hold a wrapper to what it says of itself: `array` and `again` are what two looks at it gave.

    Raises
    ------
    TypeError
        It made a copy for each look, or the array has another shape or type than the wrapper says.
    """
    if array.size and array.ptr != again.ptr:
        raise wrapper_error(obj, "makes a copy at each look, in which writes would be lost")
    said = known(type(obj)).dtype(obj)
    if said is not None and array.dtype != said:
        raise wrapper_error(obj, f"has elements of type {said}, and shows {array.dtype}")
    shape = tuple(getattr(obj, "shape", array.shape))
    if shape != array.shape:
        raise wrapper_error(obj, f"has shape {shape}, and shows {array.shape}")


def wrapper_error(obj, why):
    """Return the TypeError for a wrapper that is not taken."""
    cls = type(obj)
    name = f"{_module(cls).partition('.')[0]}.{_qualname(cls).rpartition('.')[2]}"
    return TypeError(f"asarray: {name} {why}: {show(obj)}; pass {known(cls).call}")


def hint(obj):
    """Return what may help with an object that speaks no protocol, as the end of a sentence; "" where nothing does.

    Nothing of the object's is run: its attributes are looked up where they are stored.
    """
    cls = type(obj)
    if hasattr(cls, "__array__"):
        return " but NumPy's: numpy.asarray(x) makes an array of it, perhaps a copy"
    for name in _USUAL:
        if any(name in _members(base) for base in _mro(cls)) or name in _stored(obj):
            return f"; pass x.{name} if that is the array which is meant"
    return ""


def _stored(obj):
    try:
        stored = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return ()
    return stored if type(stored) is dict else ()
