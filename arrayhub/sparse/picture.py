"""Describe a SparseArray for a notebook: a coarse grid of characters, denser ones for more stored values."""

from typing import Any

import numpy as np

from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.sparse.conversion import elements
from arrayhub.sparse.validation import is_on_host

MOST_CELLS = 32  # maximum number of cells along each side
_SHADES = np.array(list(".-+*#"))  # from a cell without stored values to the cell with the most


def picture_of(x: Any) -> TextPicture:
    """Return the text. If the indices are invalid or on a device, a line with the reason replaces the grid.

    The counts of all batches are added. Empty arrays, and arrays without exactly two sparse dimensions, have no grid.
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
