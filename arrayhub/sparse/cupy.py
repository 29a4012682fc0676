"""cupyx.scipy.sparse: matrices in coo, csr and csc."""

from importlib import import_module
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.errors import name_of_type, needed
from arrayhub.convert.functions import as_cupy, asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, check_coords, check_parts

_NAME = "cupyx.scipy.sparse"


def parse(obj: Any) -> SparseArray:
    """Import a matrix of cupyx.scipy.sparse."""
    name, shape = obj.format, obj.shape
    if name not in ("coo", "csr", "csc"):
        raise BufferError(
            f"{name_of_type(type(obj))}: {name} is not supported; accepted: coo, csr, csc. Call x.tocsr() first, which"
            " copies"
        )
    data = asarray(obj.data)
    if name == "coo":
        coords = (asarray(obj.row), asarray(obj.col))
        check_coords(_NAME, shape, data, coords, None, 0)
        return SparseArray("coo", shape, data, coords=coords)
    indices, indptr = asarray(obj.indices), asarray(obj.indptr)
    check_parts(_NAME, FORMATS[name], shape, data, indices, indptr, 0, None)
    return SparseArray(name, shape, data, indices, indptr)


def emit(x: SparseArray, copy: Copy, allow_readonly: bool, matrix: bool) -> Any:
    """Return a matrix of cupyx.scipy.sparse that shares the memory of `x`."""
    needed("cupy", "to create its arrays")
    sparse = import_module("cupyx.scipy.sparse")
    make = getattr(sparse, f"{x.format}_matrix")
    data = as_cupy(x.data, copy=copy, allow_readonly=allow_readonly)
    with data.device:
        if x.format == "coo":
            coords = tuple(as_cupy(array, copy=copy, allow_readonly=allow_readonly) for array in x.coords or ())
            return make((data, coords), shape=x.shape)
        indices = as_cupy(x.indices, copy=copy, allow_readonly=allow_readonly)
        indptr = as_cupy(x.indptr, copy=copy, allow_readonly=allow_readonly)
        return make((data, indices, indptr), shape=x.shape)
