"""Copy engine for host memory, for elements of any type."""

from arrayhub._core.descriptor import empty_like, typed_like
from arrayhub.libraries.numpy import ndarray
from arrayhub.transfer import host_copies
from arrayhub.transfer.host_copies import broadcast, is_packed, share_bytes

_PIECE = 64 << 20  # bytes copied between two checks for signals and progress reports
_RUN = 1 << 30  # bytes; replaces _PIECE for contiguous memory, because large calls of memcpy are faster


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy host-readable `array` to `out`, or to new host memory that is contiguous in `order`."""
    target = empty_like(array, order) if out is None else out
    if out is not None and share_bytes(array, out):
        array = to_host(array)  # `move` does not support arrays that overlap
    move(target, array, progress)
    return target


def move(target, source, progress=None):
    """Copy a host array to another one of the same shape, in pieces if it is large. The arrays must not overlap."""
    most = _PIECE
    if target.nbytes > most and progress is None and target.flags.num & source.flags.num & 3:
        most = _RUN  # both arrays are contiguous in the same order
    if target.nbytes <= most or target.size == 1 or is_packed(target):  # single and packed elements are never split
        host_copies.copy(target, source)
        if progress is not None:
            progress(target.nbytes)
        return
    reach = [abs(stride) * (length > 1) for stride, length in zip(target.byte_strides, target.shape, strict=True)]
    axis = reach.index(max(reach))
    length = target.shape[axis]
    step = max(most * length // target.nbytes, 1)
    for start in range(0, length, step):
        piece = (slice(None),) * axis + (slice(start, start + step),)
        move(target[piece], source[piece], progress)


def copy(array, order, *, stream=None):
    """Return a host copy of host-readable `array`, contiguous in `order`."""
    return to_host(array, order)


def assign(array, out, *, stream=None, progress=None, fresh=False):
    """Copy host-readable `array`, broadcast to the shape of `out`, to the host array `out`."""
    move(out, broadcast(array, out), progress)


def astype(array, dtype):
    """Return a C-contiguous host copy of host-readable `array`, cast to `dtype`.

    If `dtype` is a string type without a length or a time type without a unit, NumPy chooses the length or the unit.
    """
    values = ndarray(array)
    if dtype.kind in "SUVmM":
        values = values.astype(dtype)
        dtype = values.dtype
    fresh = typed_like(array, dtype)
    ndarray(fresh)[...] = values
    return fresh
