"""The element types of the matrix, and the protocols that can represent each type, as in docs/protocols.md."""

from typing import NamedTuple

import ml_dtypes
import numpy as np


class Element(NamedTuple):
    """One element type.

    Attributes
    ----------
    name : str
        Name in the table of element types.
    dtype : numpy.dtype or None
        None if neither NumPy nor ml_dtypes has the type.
    dlpack, pep3118 : bool
        Whether the protocol can represent the type.
    padded : bool
        Whether elements of less than a byte are padded to one byte. Legacy DLPack capsules lack a flag for padding.
    bits_as : numpy.dtype
        NumPy type of the same size, which is used to create the elements.
    """

    name: str
    dtype: np.dtype | None
    dlpack: bool
    pep3118: bool
    padded: bool
    bits_as: np.dtype


def _numpy(name, dlpack=True, pep3118=True, dtype=None):
    dtype = np.dtype(name if dtype is None else dtype)
    return Element(name, dtype, dlpack, pep3118, False, dtype)


def _ml(name, padded=False):
    dtype = np.dtype(getattr(ml_dtypes, name))
    return Element(name, dtype, True, False, padded, dtype)


def _of_ml(name):
    """Return a dtype of ml_dtypes, or None if the installed release lacks it."""
    scalar = getattr(ml_dtypes, name, None)
    return None if scalar is None else np.dtype(scalar)


BOOL = ["bool"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMBERS = BOOL + INTEGERS + FLOATS + COMPLEX
FLOAT8 = [
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
SMALL = ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"]
EXTENDED = ["longdouble", "clongdouble"]
DATES = ["datetime64[ns]", "timedelta64[s]"]
TEXT = ["S5", "U3"]
SWAPPED = [">i4", ">f8"]

ELEMENTS = {
    element.name: element
    for element in [
        *(_numpy(name) for name in NUMBERS),
        *(_ml(name) for name in ["bfloat16", *FLOAT8]),
        *(_ml(name, padded=True) for name in SMALL),
        Element("complex32", _of_ml("complex32"), True, False, False, np.dtype("V4")),
        *(_numpy(name, dlpack=False) for name in EXTENDED + TEXT + SWAPPED),
        *(_numpy(name, dlpack=False, pep3118=False) for name in DATES),
        _numpy("record", dlpack=False, dtype=np.dtype([("x", "f8"), ("n", "i4"), ("m", "i4")])),
    ]
}


def fill(out, element):
    """Fill a compact one-dimensional array with varying values.

    The first element of every layout is not zero, so that a test can detect a zero that a consumer has written.
    """
    count = np.arange(1, out.size + 1)
    if element.name == "record":
        out["x"], out["n"], out["m"] = count / 2, count, -count
    elif element.name == "complex32":
        out.view("float16").reshape(-1, 2)[:] = np.stack([count, -count], axis=-1)
    elif element.name == "bool":
        out[:] = count % 4 != 2
    elif element.name == "float8_e8m0fnu":
        out[:] = (2.0 ** (count % 7)).astype(element.dtype)
    elif element.padded:
        out[:] = np.resize([1, -1, -2] if element.name.startswith("int") else [1, 2, 3], out.size).astype(element.dtype)
    elif element.dtype.kind in "mM":
        out[:] = count.astype("i8").view(element.dtype)
    else:
        out[:] = count.astype(element.dtype)
