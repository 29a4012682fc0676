"""Functions of this folder that lower layers and the class USMArray call through `_core/hooks`."""

from arrayhub import transfer
from arrayhub.array.usm_array import USMArray
from arrayhub.transfer.host_copies import with_padding
from arrayhub.transport.pickles import reduce, register_reduction

__all__ = ["padded_copy", "reduce", "register_reduction"]


def padded_copy(array: USMArray, boundary: int) -> USMArray:
    """Copy an array with padded rows, for ``copy.deepcopy``. The copy has the same strides and the same alignment.

    `boundary` is the result of `row_boundary`, in bytes.
    """
    from arrayhub.storage.allocation import empty, memory_of

    def beside(run: USMArray) -> USMArray:
        on_boundary = -run.ptr % boundary
        if on_boundary >= run.size:  # no byte of the run is on a boundary
            copied: USMArray = transfer.copy(run)
            return copied
        memory, device = memory_of(run, "array", "Call arrayhub.to_host(x)")
        fresh = empty(
            run.shape, run.dtype, alignment=boundary, aligned_index=(on_boundary,), memory=memory, device=device
        )
        transfer.write(fresh, run)
        return fresh

    copy: USMArray = with_padding(array, beside)
    return copy
