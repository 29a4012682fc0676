"""Import NumPy's structured arrays, strings and masked arrays. Numbers are shared, and strings are copied."""

from typing import Any

import numpy as np

from arrayhub._core.copying import forbidden
from arrayhub._core.errors import TypeRefusal
from arrayhub.convert.functions import import_unadvised
from arrayhub.nested.array import NestedArray, bitmap_of, cover_missing, from_string_dtype, make, nested_of, unwrap_flat
from arrayhub.nested.from_python import characters, from_python
from arrayhub.nested.to_device import in_rows


def from_numpy(array: Any, copy: bool | None = False) -> NestedArray:
    """Import an ndarray as a NestedArray. Numbers and fields are views. Strings and Python objects are copied.

    For VIEW, raise BufferError if strings or Python objects must be copied.
    """
    if array.ndim == 0 or (array.dtype.kind == "T" and array.ndim > 1):
        reason = f"the ndarray of {array.dtype} has {array.ndim} dimensions"
        accepted = "one or more, and exactly one for StringDType"
        raise TypeRefusal("asnested", reason, accepted, "arrayhub.asnested(x.reshape(-1))")
    if array.dtype.kind in "STU":
        forbidden(copy, "asnested", "NumPy stores strings in a different layout")
    if isinstance(array, np.ma.MaskedArray):
        return _import_masked(array, copy)
    if array.ndim > 1 and array.dtype.kind in "OSU":
        return in_rows(from_numpy(np.asarray(array).reshape(-1), copy), array.shape)  # a matrix stays 2-d
    if array.dtype.kind == "O":
        forbidden(copy, "asnested", "Python objects do not have memory to view")
        return from_python(array.tolist())
    if array.dtype.names is not None and array.ndim == 1:
        return _records(array, copy)
    if array.dtype.kind == "T":
        return from_string_dtype(array)
    if array.dtype.kind == "S":
        return characters("bytes", array.tolist())
    if array.dtype.kind == "U":
        return from_python(array.tolist()) if len(array) else characters("string", [])
    return nested_of(import_unadvised(array))


def _records(array: Any, copy: bool | None) -> NestedArray:
    names = tuple(array.dtype.names)
    parts = tuple(unwrap_flat(from_numpy(array[name], copy)) for name in names)
    return make("record", len(array), names=names, parts=parts)


def _import_masked(array: Any, copy: bool | None) -> NestedArray:
    """Import a masked array. Numbers are shared, and the mask is packed into a bitmap.

    Several dimensions become rows of equal lengths. Only a C-contiguous array of several dimensions is shared. Masked
    strings become missing elements without characters.
    """
    if array.dtype.names is not None:
        raise TypeRefusal("asnested", "the masked array has records", "numbers or strings. Pass one field of x")
    if array.ndim > 1:
        if not np.ma.getdata(array).flags.c_contiguous:
            forbidden(copy, "asnested", "a masked array of several dimensions that is not C-contiguous needs a copy")
        return in_rows(_import_masked(array.reshape(-1), copy), array.shape)
    mask = np.ma.getmaskarray(array)
    if array.dtype.kind == "O":
        return from_numpy(np.where(mask, np.array(None), np.ma.getdata(array)), copy)
    validity = None if not mask.any() else bitmap_of(~mask)
    if array.dtype.kind in "STU":
        return cover_missing(from_numpy(array.filled("")), validity, 0)
    return make("flat", len(array), content=import_unadvised(np.ma.getdata(array)), validity=validity)
