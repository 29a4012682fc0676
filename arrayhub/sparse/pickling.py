"""Pickles of SparseArrays.

A pickle contains ``arrayhub._unpickle_sparse(state)``. ``state`` is a dict with the format, the shape and the parts.
Each part is a USMArray, whose ``__reduce__`` passes the bytes out of band in protocol 5, and applies the setting of
`arrayhub.transport.pickling` to device memory.
"""

from collections.abc import Callable
from typing import Any

from arrayhub.array.usm_array import USMArray
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.formats import FORMATS, PADDED, check_shapes, parts_of
from arrayhub.transport.codec import restore_state, state_error


def reduce(x: SparseArray) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the argument that restore an array, for ``SparseArray.__reduce__``."""
    facts = {"blocksize": x.blocksize, "batch_ndim": x.batch_ndim, "padded": bool(x._state & PADDED)}
    stated = {name: fact for name, fact in facts.items() if fact}
    return _unpickle_sparse, ({"format": x.format, "shape": x.shape, **parts_of(x), **stated},)


def _unpickle_sparse(state: Any) -> SparseArray:
    """Restore the array of a pickle, or raise UnpicklingError. Indices are validated on first use."""
    return restore_state(_build_array, state, "SparseArray")


_unpickle_sparse.__module__ = "arrayhub"  # pickles name this module, so the function can move


def _build_array(found: Any) -> SparseArray:
    state = dict(found)
    name, shape, batch = state.pop("format"), state.pop("shape"), state.get("batch_ndim", 0)
    row = FORMATS[name]
    if ("blocksize" in state) is not row.blocks:
        raise state_error("blocksize", state.get("blocksize"), "two lengths for bsr and bsc only")
    lengths = shape if type(shape) is tuple else (None,)
    if any(type(length) is not int or length < 0 for length in (*lengths, batch)):
        raise state_error("shape", shape, "a tuple of lengths")
    arrays = [state["data"], *(state[part] for part in ("indices", "indptr", "coords_array") if part in state)]
    if type(state.get("coords", ())) is not tuple:
        raise state_error("coords", state["coords"], "a tuple of arrays")
    for array in (*arrays, *state.get("coords", ())):
        if not isinstance(array, USMArray) or array.ndim == 0:
            raise state_error("part", array, "arrays of one or more dimensions")
    if state.pop("padded", False):
        state["state"] = PADDED
    return check_shapes("pickle", SparseArray(name, shape, **state))
