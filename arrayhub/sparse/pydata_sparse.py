"""pydata/sparse: COO arrays, and two-dimensional GCXS, CSR and CSC arrays."""

from typing import Any

import numpy as np

from arrayhub._core.copying import Copy
from arrayhub._core.errors import PASSES_ON, Refusal, dimensions, first_line, name_of_type, needed
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, check_coords, check_parts

_NAME = "sparse"


def parse(obj: Any) -> SparseArray:
    """Import an array of pydata/sparse."""
    cls = name_of_type(type(obj))
    if not np.array_equal(obj.fill_value, np.zeros((), obj.dtype)):
        raise Refusal(
            cls,
            f"fill_value is {obj.fill_value}; accepted: 0, the fill value of other libraries. Use x.todense(), a"
            " dense copy",
        )
    shape = tuple(map(int, obj.shape))
    if hasattr(obj, "coords"):
        data, joined = asarray(obj.data), asarray(obj.coords)
        check_coords(_NAME, shape, data, None, joined, 0)
        return SparseArray("coo", shape, data, coords_array=joined)
    axes = tuple(getattr(obj, "compressed_axes", None) or ())
    if obj.ndim != 2 or axes not in ((0,), (1,)):
        raise Refusal(
            cls,
            f"compressed_axes is {axes or None} for {dimensions(obj.ndim)}; accepted: COO, or two dimensions"
            " with one compressed axis. Call x.asformat('coo') first, which copies",
        )
    name = "csr" if axes == (0,) else "csc"
    data, indices, indptr = asarray(obj.data), asarray(obj.indices), asarray(obj.indptr)
    check_parts(_NAME, FORMATS[name], shape, data, indices, indptr, 0, None)
    return SparseArray(name, shape, data, indices, indptr)


def emit(x: SparseArray, copy: Copy, allow_readonly: bool, matrix: bool) -> Any:
    """Return a COO array, or a GCXS array for csr and csc, that shares the memory of `x`."""
    sparse = needed("sparse", "to create its arrays")
    data = as_numpy(x.data, copy=copy)
    if x.format == "coo":
        joined = as_numpy(x.coords_array, copy=copy)
        return sparse.COO(joined, data, shape=x.shape, has_duplicates=False, sorted=True)
    parts = (data, as_numpy(x.indices, copy=copy), as_numpy(x.indptr, copy=copy))
    try:
        return sparse.GCXS(parts, shape=x.shape, compressed_axes=(FORMATS[x.format].compressed,))
    except PASSES_ON:
        raise
    except Exception as error:  # GCXS is compiled by Numba, which does not support float16
        raise Refusal(
            "pydata_sparse", f"GCXS does not support {x!r} ({first_line(error)}). Use x.to_format('coo')"
        ) from error
