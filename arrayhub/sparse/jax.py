"""jax.experimental.sparse: BCOO and BCSR, including batch dimensions and dense dimensions."""

from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.errors import Refusal, name_of_type, needed
from arrayhub.convert.functions import as_jax, asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, check_coords, check_parts
from arrayhub.sparse.validation import PADDED, is_marked_canonical

_NAME = "jax.experimental.sparse"


def parse(obj: Any) -> SparseArray:
    """Import a BCOO or a BCSR matrix."""
    kind = type(obj).__name__
    if kind not in ("BCOO", "BCSR"):
        raise BufferError(
            f"{name_of_type(type(obj))}: {kind} is not supported; accepted: BCOO and BCSR. Call"
            " jax.experimental.sparse.BCOO.fromdense(x.todense()) first, which copies"
        )
    shape = tuple(obj.shape)
    batch = obj.n_batch
    data, indices = asarray(obj.data), asarray(obj.indices)
    _check_batches(shape, batch, data, indices)
    if kind == "BCOO":
        joined = indices.transpose(batch + 1, *range(batch + 1))
        check_coords(_NAME, shape, data, None, joined, batch)
        return SparseArray("coo", shape, data, coords_array=joined, batch_ndim=batch, state=PADDED)
    indptr = asarray(obj.indptr)
    _check_batches(shape, batch, indptr)
    check_parts(_NAME, FORMATS["csr"], shape, data, indices, indptr, batch, None)
    return SparseArray("csr", shape, data, indices, indptr, batch_ndim=batch, state=PADDED)


def _check_batches(shape: tuple[int, ...], batch: int, *arrays: Any) -> None:
    """Raise BufferError if jax broadcasts a batch dimension of length 1."""
    for array in arrays:
        if array.shape[:batch] != shape[:batch]:
            raise Refusal(
                _NAME,
                f"an array of shape {array.shape} is broadcast to the batches {shape[:batch]}; accepted:"
                f" arrays of all batches. Call jax.experimental.sparse.bcoo_update_layout(x, n_batch=0) first, which"
                " copies. Convert a BCSR matrix by x.to_bcoo() before this call",
            )


def emit(x: SparseArray, copy: Copy, allow_readonly: bool, matrix: bool) -> Any:
    """Return a BCOO or BCSR matrix that shares the memory of `x`."""
    sparse = needed("jax.experimental.sparse", "to create its sparse arrays").experimental.sparse
    data = as_jax(x.data, copy=copy)
    batch = x.batch_ndim
    canonical = is_marked_canonical(x)
    if x.format == "coo":
        axes = (*range(1, batch + 2), 0)
        indices = as_jax(x.coords_array.transpose(*axes), copy=copy)
        return sparse.BCOO((data, indices), shape=x.shape, indices_sorted=canonical, unique_indices=canonical)
    indices, indptr = as_jax(x.indices, copy=copy), as_jax(x.indptr, copy=copy)
    return sparse.BCSR((data, indices, indptr), shape=x.shape, indices_sorted=canonical, unique_indices=canonical)
