"""Functions of this folder that lower layers and the class SparseArray call through `_core/hooks`.

`nested/methods` has the same functions for nested arrays: import, export, pickles and descriptions.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from arrayhub._core.errors import InterfaceError
from arrayhub.array.usm_array import USMArray
from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.inspection.printout import head_lines, part_lines
from arrayhub.inspection.texts import attempt
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.export import convert_like, device_of
from arrayhub.sparse.export import give_any as export
from arrayhub.sparse.formats import FORMATS, PADDED, check_indices, check_shapes, elements, is_on_host, parts_of
from arrayhub.sparse.libraries import assparse, relocate
from arrayhub.sparse.libraries import sparse_or_none as import_or_none
from arrayhub.transport.codec import restore_state, state_error

__all__ = [
    "assparse",
    "convert_like",
    "device_of",
    "export",
    "find_faults",
    "import_or_none",
    "lines_of",
    "picture_of",
    "reduce",
    "relocate",
    "view_of",
]


def view_of(obj: Any) -> SparseArray | None:
    """Import `obj` as a SparseArray, or return None."""
    return attempt(import_or_none, obj)[0]


def lines_of(x: SparseArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a SparseArray and its parts, without the first and the last."""
    yield from head_lines(x, refcount, [f"  type: {x.format} of {x.dtype}"])
    yield f"  {x.format} arrmeta"
    yield f"   shape: {x.shape}"
    yield f"   stored: {x.nnz}"
    if x.blocksize is not None:
        yield f"   blocksize: {tuple(x.blocksize)}"
    if x.batch_ndim or x.dense_ndim:
        yield f"   batch_ndim: {x.batch_ndim}"
        yield f"   dense_ndim: {x.dense_ndim}"
    yield " data:"
    coords = {f"coords[{k}]": array for k, array in enumerate(x.coords or ())}
    for name, array in (parts_of(x) if x.coords is None else {"data": x.data, **coords}).items():
        yield from part_lines(name, array)


def find_faults(obj: Any, texts: list[str]) -> list[str] | None:
    """Return a list with the first error in the parts or indices, if any. Return None if `obj` is not sparse.

    Indices on a device are copied to the host for the check. `texts`, the messages about interfaces, are not repeated.
    """
    try:
        x = import_or_none(obj)
        if x is None:
            return None
        check_indices(x.to_host())
    except InterfaceError as error:
        return [f"x: {error}"]
    return []


# ------------------------------------------------------------------------------------------------------ picture

MOST_CELLS = 32  # maximum number of cells along each side
_SHADES = np.array(list(".-+*#"))  # from a cell without stored values to the cell with the most


def picture_of(x: Any) -> TextPicture:
    """Return the text. If the indices are invalid or on a device, a line with the reason replaces the grid.

    The counts of all batches are added. Only arrays with elements and exactly two sparse dimensions have a grid.
    """
    lines = [repr(x)[1:-1]]
    lengths = x.shape[x.batch_ndim : len(x.shape) - x.dense_ndim]
    if not is_on_host(x):
        lines.append("the memory is on a device; call x.to_host() to show the pattern")
    elif len(lengths) == 2 and 0 not in lengths:
        try:
            coords, _ = elements(x)
        except ValueError as error:
            lines.append(str(error))
        else:
            lines.extend(_draw_grid(coords[1:], lengths))
    return TextPicture("\n".join(lines))


def _draw_grid(coords: Any, lengths: tuple[int, ...]) -> list[str]:
    """Return the lines of a grid of at most 32 by 32 cells, from the number of stored values in each cell."""
    sides: Any = [min(length, MOST_CELLS) for length in lengths]
    rows, columns = coords
    counts, _, _ = np.histogram2d(rows, columns, sides, [[0, length] for length in lengths])
    shades = np.ceil(counts * (len(_SHADES) - 1) / max(counts.max(), 1)).astype(int)
    return list(map(" ".join, _SHADES[shades]))


# ------------------------------------------------------------------------------------------------------ pickles

# A pickle contains ``arrayhub._unpickle_sparse(state)``. ``state`` is a dict with the format, the shape and the parts.
# Each part is a USMArray, whose ``__reduce__`` passes the bytes out of band in protocol 5, and applies the setting of
# `arrayhub.transport.pickling` to device memory.


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
