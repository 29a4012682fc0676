"""Copies from host memory to host memory, whatever the elements are."""

import numpy

from arrayhub._core.fresh import empty_like, typed_like
from arrayhub.libraries.numpy import ndarray, raw
from arrayhub.transfer import tiles

_PIECE = 64 << 20  # bytes copied between two looks at signals and reports of progress
_RUN = 1 << 30  # the same where all bytes lie one after the other: memcpy is faster where it knows how much comes


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy host-readable `array` into `out`, or into fresh host memory that is compact in `order`."""
    target = empty_like(array, order) if out is None else out
    if tiles.copy_at_once(target, array, _PIECE):
        return target
    source, view = raw(array), raw(target, writable=True)
    if out is not None and numpy.may_share_memory(source, view):
        source = source.copy()  # NumPy's own care of overlaps does not cover two different steps in one dimension
    move(view, source, progress)
    return target


def move(target, source, progress=None):
    """Copy one ndarray of opaque items into another that shares no memory with it, in pieces if it is large."""
    most = _RUN if progress is None and _is_run(target, source) else _PIECE
    if target.nbytes <= most or target.size == 1:  # a single element is not cut, however large
        tiles.copy(target, source)
        if progress is not None:
            progress.update(target.nbytes)
        return
    axis = max(range(target.ndim), key=lambda k: (abs(target.strides[k]) * (target.shape[k] > 1), -k))
    length = target.shape[axis]
    step = max(most * length // target.nbytes, 1)
    for start in range(0, length, step):
        piece = (slice(None),) * axis + (slice(start, start + step),)
        move(target[piece], source[piece], progress)


def _is_run(target, source):
    """Whether one call of memcpy copies two ndarrays."""
    a, b = target.flags, source.flags
    return (a.c_contiguous and b.c_contiguous) or (a.f_contiguous and b.f_contiguous)


def copy(array, order, *, stream=None):
    """Return a fresh host copy of host-readable `array`, compact in `order`."""
    return to_host(array, order)


def write(fresh, source):
    """Put the elements of host-readable `source`, or its single one, into a fresh array."""
    view = raw(fresh, writable=True)
    move(view, numpy.broadcast_to(raw(source), view.shape))


def astype(array, dtype):
    """Return a fresh C-contiguous host copy of host-readable `array` with another element type.

    Strings without a length, and times without a unit, get those that NumPy gives them, by their values where it must.
    """
    values = ndarray(array)
    if dtype.kind in "SUVmM":
        values = values.astype(dtype)
        dtype = values.dtype
    fresh = typed_like(array, dtype)
    ndarray(fresh)[...] = values
    return fresh
