"""torch: sparse tensors in the layouts COO (coalesced or not), CSR, CSC, BSR and BSC."""

from collections.abc import Callable
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub._core.errors import PASSES_ON, Refusal, first_line, needed
from arrayhub.convert.functions import as_torch, asarray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, check_coords, check_parts
from arrayhub.sparse.validation import is_marked_canonical

_NAME = "torch"
# Names of the methods that return indices and pointers, keyed by format.
_METHODS = {
    "csr": ("col_indices", "crow_indices"),
    "csc": ("row_indices", "ccol_indices"),
    "bsr": ("col_indices", "crow_indices"),
    "bsc": ("row_indices", "ccol_indices"),
}


def format_of(obj: Any) -> str | None:
    """Return the format of a sparse tensor, or None for other tensors."""
    try:
        text = str(obj.layout)
    except PASSES_ON:
        raise
    except Exception:  # a subclass of Tensor may raise any exception
        return None
    name = text.removeprefix("torch.sparse_")
    return name if name in FORMATS else None


def parse(obj: Any) -> SparseArray | None:
    """Import a sparse tensor. Return None for a tensor of a different layout."""
    name = format_of(obj)
    if name is None:
        return None
    if obj.requires_grad:
        raise Refusal("torch", "requires_grad is True; accepted: tensors outside autograd. Call x.detach() first")
    shape = tuple(obj.shape)
    if name == "coo":
        joined, data = map(asarray, _coo_parts(obj))
        check_coords(_NAME, shape, data, None, joined, 0)
        return SparseArray("coo", shape, data, coords_array=joined)
    row = FORMATS[name]
    indices, indptr = (asarray(getattr(obj, method)()) for method in _METHODS[name])
    data = asarray(obj.values())
    batch = indices.ndim - 1
    blocksize = data.shape[batch + 1 : batch + 3] if row.blocks else None
    check_parts(_NAME, row, shape, data, indices, indptr, batch, blocksize)
    return SparseArray(name, shape, data, indices, indptr, blocksize=blocksize, batch_ndim=batch)


def _coo_parts(obj: Any) -> tuple[Any, Any]:
    """Return indices and values. For tensors that are not coalesced, torch has only private methods."""
    if obj.is_coalesced():
        return obj.indices(), obj.values()
    try:
        return obj._indices(), obj._values()
    except AttributeError:
        raise Refusal("torch", "the tensor is not coalesced; call x.coalesce() first, which copies") from None


def emit(x: SparseArray, copy: Copy, allow_readonly: bool, matrix: bool) -> Any:
    """Return a sparse tensor that shares the memory of `x`. A canonical COO tensor is marked as coalesced."""
    data = as_torch(x.data, copy=copy, allow_readonly=allow_readonly)
    make = _functions.get(x.format) or _function(x.format)
    try:
        if x.format == "coo":
            joined = as_torch(x.coords_array, copy=copy, allow_readonly=allow_readonly)
            return make(joined, data, x.shape, check_invariants=False, is_coalesced=is_marked_canonical(x))
        indices = as_torch(x.indices, copy=copy, allow_readonly=allow_readonly)
        indptr = as_torch(x.indptr, copy=copy, allow_readonly=allow_readonly)
        return make(indptr, indices, data, x.shape, check_invariants=False)
    except PASSES_ON:
        raise
    except RuntimeError as error:
        raise Refusal("torch", f"{x!r} is not supported ({first_line(error)})") from error


_functions: dict[str, Callable[..., Any]] = {}


def _function(name: str) -> Callable[..., Any]:
    """Return torch's constructor function for a format."""
    found: Callable[..., Any] = getattr(needed("torch", "to create its tensors"), f"sparse_{name}_tensor")
    _functions[name] = found
    return found
