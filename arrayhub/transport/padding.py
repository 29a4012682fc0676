"""Copies for the module copy that keep what pads the rows of an array, and the boundary that they lie on."""

from __future__ import annotations

from arrayhub import transfer
from arrayhub.array.usm_array import USMArray
from arrayhub.storage import empty_like
from arrayhub.transfer.gather import with_padding


def padded_copy(array: USMArray, boundary: int) -> USMArray:
    """Return a copy of an array whose rows are padded, with the same strides, as far from a boundary as it is.

    `boundary` is that of its `row_boundary`, in bytes.
    """

    def beside(run: USMArray) -> USMArray:
        on_boundary = -run.ptr % boundary
        if on_boundary >= run.size:  # none of its bytes is on one
            copied: USMArray = transfer.copy(run)
            return copied
        fresh = empty_like(run, alignment=boundary, aligned_index=(on_boundary,))
        transfer.write(fresh, run)
        return fresh

    copy: USMArray = with_padding(array, beside)
    return copy
