"""Describe a SparseArray for a notebook: a coarse grid of characters, denser ones for more stored values."""

from typing import Any

import numpy as np

from arrayhub.convert.functions import SparseParts
from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.sparse.conversion import elements
from arrayhub.sparse.validation import is_on_host

MOST_CELLS = 32  # maximum number of cells along each side
_SHADES = np.array(list(".-+*#"))  # from a cell without stored values to the cell with the most


def picture_of(x: SparseParts) -> TextPicture:
    """Return the text. If the indices are invalid or on a device, a line with the reason replaces the grid."""
    lines = [repr(x)[1:-1]]
    if not is_on_host(x):
        lines.append("the memory is on a device; call x.to_host() to show the pattern")
    else:
        try:
            counts = pattern(x)
        except ValueError as error:
            lines.append(str(error))
        else:
            lines.extend([] if counts is None else _grid(counts))
    return TextPicture("\n".join(lines))


def pattern(x: Any) -> Any:
    """Return the number of stored values in each cell of a grid of at most 32 by 32 cells.

    The counts of all batches are added. Return None for empty arrays and arrays without exactly two sparse dimensions.
    """
    lengths = x.shape[x.batch_ndim : len(x.shape) - x.dense_ndim]
    if len(lengths) != 2 or 0 in lengths:
        return None
    rows, columns = (min(length, MOST_CELLS) for length in lengths)
    counts = np.zeros((rows, columns), np.int64)
    for coords, _ in elements(x):
        place = tuple(
            (array.astype(np.float64) * cells / length).astype(np.int64).clip(0, cells - 1)
            for array, cells, length in zip(coords, (rows, columns), lengths, strict=True)
        )
        np.add.at(counts, place, 1)
    return counts


def _grid(counts: Any) -> list[str]:
    shades = -(-counts * (len(_SHADES) - 1) // max(int(counts.max()), 1))  # rounded up
    return list(map(" ".join, _SHADES[shades]))
