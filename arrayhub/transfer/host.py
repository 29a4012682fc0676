"""Copies from host memory to host memory, whatever the elements are."""

import numpy

from arrayhub.libraries.host import empty_like, ndarray, raw, typed_like


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy host-readable `array` into `out`, or into fresh host memory that is compact in `order`."""
    target = empty_like(array, order) if out is None else out
    numpy.copyto(raw(target, writable=True), raw(array))
    return target


def copy(array, order, *, stream=None):
    """Return a fresh host copy of host-readable `array`, compact in `order`."""
    return to_host(array, order)


def astype(array, dtype):
    """Return a fresh C-contiguous host copy of host-readable `array` with another element type."""
    fresh = typed_like(array, dtype)
    ndarray(fresh)[...] = ndarray(array)
    return fresh
