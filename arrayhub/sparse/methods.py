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
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.export import convert_like, device_of, export, refusal_of_sparse, relocate
from arrayhub.sparse.formats import PADDED, check_indices, elements, name_structure
from arrayhub.sparse.libraries import import_parts
from arrayhub.sparse.libraries import sparse_or_none as import_or_none
from arrayhub.transport.codec import restore_state, state_error

__all__ = [
    "convert_like",
    "device_of",
    "export",
    "find_faults",
    "import_or_none",
    "lines_of",
    "picture_of",
    "reduce",
    "refusal_of_sparse",
    "relocate",
]


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
    for name, array in {"data": x.data, **name_structure(x)}.items():
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
    if not x._is_on_host():
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

# A pickle contains ``arrayhub._unpickle_sparse(state)``. ``state`` is a tuple: the format, the shape, the arrays `data`
# and `structure`, the blocksize, the number of batch dimensions, and whether elements may be padding. Each array is a
# USMArray, whose ``__reduce__`` passes the bytes out of band in protocol 5, and applies the setting of
# `arrayhub.transport.pickling` to device memory.


def reduce(x: SparseArray) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the argument that restore an array, for ``SparseArray.__reduce__``."""
    state = (x.format, x.shape, x.data, x.structure, x.blocksize, x.batch_ndim, bool(x._state & PADDED))
    return _unpickle_sparse, (state,)


def _unpickle_sparse(state: Any) -> SparseArray:
    """Restore the array of a pickle, or raise UnpicklingError. Indices are validated on first use."""
    return restore_state("SparseArray", _build_array, state)


_unpickle_sparse.__module__ = "arrayhub"  # pickles name this module, so the function can move


def _build_array(state: Any) -> SparseArray:
    format, shape, data, structure, blocksize, batch, padded = state
    lengths = (*shape, *(blocksize or ()), batch) if type(shape) is tuple else (None,)
    if any(type(length) is not int or length < 0 for length in lengths):
        raise state_error("shape", shape, "a tuple of lengths")
    if type(structure) is not tuple:
        raise state_error("structure", structure, "a tuple of arrays")
    for array in (data, *structure):
        if not isinstance(array, USMArray):
            raise state_error("part", array, "arrays")
    facts = {"blocksize": blocksize, "batch_ndim": batch, "state": PADDED if padded else 0}
    return import_parts("pickle", format, shape, data, structure, **facts)
