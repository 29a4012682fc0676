"""scipy.sparse: arrays and matrices in coo, csr, csc and bsr."""

from typing import Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.errors import dimensions, name_of_type, needed
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, INTEGERS, check_coords, check_parts

_NAME = "scipy.sparse"


def parse(obj: Any) -> SparseArray:
    """Import an array or a matrix of scipy.sparse."""
    name = obj.format
    if name == "coo":
        return _parse_coo(obj)
    row, shape = FORMATS.get(name), obj.shape
    if row is None or len(shape) != 2:
        raise BufferError(
            f"{name_of_type(type(obj))}: {name} of {dimensions(obj.ndim)} is not supported; accepted: coo, and csr, csc"
            " and bsr of 2 dimensions. Call x.tocoo() first, which copies"
        )
    pointers = obj.indptr
    data, indices, indptr = asarray(obj.data), asarray(obj.indices), asarray(pointers)
    stored = indices.shape
    if len(stored) == 1 and stored == data.shape[:1] and indptr.ndim == 1 and indptr.shape[0]:
        used = int(pointers[-1])
        if 0 <= used < stored[0]:  # the elements after `used` are unused
            data, indices = data[:used], indices[:used]
        elif (  # the same checks as in `check_parts`, but faster
            (not row.blocks and data.ndim == 1 and indptr.shape[0] == shape[row.compressed] + 1)
            and indices.typenum in INTEGERS
            and indptr.typenum in INTEGERS
        ):
            return SparseArray(name, shape, data, indices, indptr)
    blocksize = obj.blocksize if row.blocks else None
    check_parts(_NAME, row, shape, data, indices, indptr, 0, blocksize)
    return SparseArray(name, shape, data, indices, indptr, blocksize=blocksize)


def _parse_coo(obj: Any) -> SparseArray:
    data = asarray(obj.data)
    coords = tuple(map(asarray, obj.coords if hasattr(obj, "coords") else (obj.row, obj.col)))
    check_coords(_NAME, obj.shape, data, coords, None, 0)
    return SparseArray("coo", obj.shape, data, coords=coords)


def emit(x: SparseArray, copy: Copy, allow_readonly: bool, matrix: bool) -> Any:
    """Return a SciPy sparse array, or a SciPy matrix, that shares the memory of `x`."""
    sparse = needed("scipy.sparse", "to create its sparse arrays").sparse
    make = getattr(sparse, f"{x.format}_{'matrix' if matrix else 'array'}")
    data = as_numpy(x.data, copy=copy)
    if x.format == "coo":
        coords = tuple(as_numpy(array, copy=copy) for array in x.coords or ())
        made = make((data, coords), shape=x.shape)
        if any(own is not given and not _same(own, given) for own, given in zip(made.coords, coords, strict=True)):
            made.coords = coords  # the constructor narrows int64 to int32 if the values fit
        return made
    indices, indptr = as_numpy(x.indices, copy=copy), as_numpy(x.indptr, copy=copy)
    options = {"blocksize": x.blocksize} if x.blocksize else {}
    made = make((data, indices, indptr), shape=x.shape, **options)
    if not _same(made.indices, indices) or not _same(made.indptr, indptr):
        made.indices, made.indptr = indices, indptr
    return made


def _same(own: Any, given: Any) -> bool:
    return bool(own.dtype == given.dtype and (own.size == 0 or np.shares_memory(own, given)))
