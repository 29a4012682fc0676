"""Draw the pattern of a SparseArray for a notebook: a coarse grid with darker cells for more stored values."""

from typing import Any

import numpy as np

from arrayhub.convert.functions import SparseParts
from arrayhub.inspection.pictures.canvas import MARGIN, Canvas, for_page
from arrayhub.sparse.conversion import elements
from arrayhub.sparse.validation import is_on_host

MOST_CELLS = 32  # maximum number of cells along each side
_SIDE = 240  # length of the longer side, in pixels


def picture_of(x: SparseParts) -> str:
    """Return a drawing of the pattern as HTML. If the indices are invalid or on a device, return only text."""
    canvas = Canvas()
    canvas.write(repr(x)[1:-1], 13)
    if not is_on_host(x):
        canvas.write("the memory is on a device; call x.to_host() to draw the pattern", 11)
        return for_page(canvas.svg(repr(x)))
    try:
        counts = pattern(x)
    except ValueError as error:
        canvas.write(str(error), 11)
        return for_page(canvas.svg(repr(x)))
    if counts is not None:
        _draw(canvas, counts)
    return for_page(canvas.svg(repr(x)))


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


def _draw(canvas: Canvas, counts: Any) -> None:
    rows, columns = counts.shape
    side = _SIDE / max(rows, columns)
    most = max(int(counts.max()), 1)
    left, top = MARGIN, canvas.y + MARGIN
    canvas.add("lines", f'<rect x="{left}" width="{columns * side:.1f}" height="{rows * side:.1f}"/>', top)
    canvas.reach(left + columns * side)
    for row, column in zip(*np.nonzero(counts), strict=True):
        shade = 0.25 + 0.75 * int(counts[row, column]) / most
        size = f'width="{side:.1f}" height="{side:.1f}" fill-opacity="{shade:.2f}"'
        canvas.add("bins", f'<rect x="{left + column * side:.1f}" {size}/>', top + row * side)
    canvas.y = top + rows * side
