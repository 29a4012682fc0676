"""What NumPy has that is not dense to others: records, strings, masks. The numbers are shared, the strings copied."""

from typing import Any

import numpy as np

from arrayhub._core.copying import forbidden
from arrayhub.convert.functions import asarray
from arrayhub.nested.array import NestedArray, bitmap_of, covered, from_string_dtype, make, nested_of, unwrapped
from arrayhub.nested.from_python import characters, from_python


def from_numpy(array: Any, copy: bool | None = None) -> NestedArray:
    """Return an ndarray as a NestedArray: a record's fields are views, strings and lists of every kind a copy.

    Raises
    ------
    TypeError, BufferError
        As `asarray`, for elements that are none of these; BufferError for strings where `copy` is False.
    """
    if array.ndim == 0 or (array.dtype.kind == "T" and array.ndim > 1):
        raise TypeError(
            f"asnested: an ndarray of {array.ndim} dimensions and {array.dtype}; accepted: one or more, of StringDType"
            " one. Take x.reshape(-1)"
        )
    if array.dtype.kind in "STU":
        forbidden(copy, "asnested", "NumPy's strings are in another form")
    if isinstance(array, np.ma.MaskedArray):
        return _masked(array)
    if array.dtype.kind == "O":
        forbidden(copy, "asnested", "Python's objects have no memory to view")
        return from_python(array.tolist())
    if array.dtype.names is not None and array.ndim == 1:
        return _records(array, copy)
    if array.dtype.kind == "T" and array.ndim == 1:
        return from_string_dtype(array)
    if array.dtype.kind == "S" and array.ndim == 1:
        return characters("bytes", array.tolist())
    if array.dtype.kind == "U" and array.ndim == 1:
        return from_python(array.tolist()) if len(array) else characters("string", [])
    return nested_of(asarray(array))


def _records(array: Any, copy: bool | None) -> NestedArray:
    names = tuple(array.dtype.names)
    parts = tuple(unwrapped(from_numpy(array[name], copy)) for name in names)
    return make("record", len(array), names=names, parts=parts)


def _masked(array: Any) -> NestedArray:
    """A mask says what is missing; the bits are a copy, the numbers are shared, and masked strings are left behind."""
    if array.ndim != 1 or array.dtype.names is not None:
        raise TypeError(
            "asnested: a masked array of several dimensions, or of records; accepted: of one, of numbers or strings"
        )
    mask = np.ma.getmaskarray(array)
    validity = None if not mask.any() else bitmap_of(~mask)
    if array.dtype.kind in "STU":
        return covered(from_numpy(array.filled("")), validity, 0)
    return make("flat", len(array), content=asarray(np.ma.getdata(array)), validity=validity)
