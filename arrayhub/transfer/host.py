"""Copies from host memory to host memory, whatever the elements are."""

import numpy

from arrayhub.libraries.host import empty_like, ndarray, raw, typed_like


def copy(array, order):
    """Return a fresh host copy of host-readable `array`, compact in `order`."""
    fresh = empty_like(array, order)
    numpy.copyto(raw(fresh), raw(array))
    return fresh


def copy_into(array, out):
    """Copy host-readable `array` into host-readable `out` of the same shape and type."""
    numpy.copyto(raw(out, writable=True), raw(array))


def astype(array, dtype):
    """Return a fresh C-contiguous host copy of host-readable `array` with another element type."""
    fresh = typed_like(array, dtype)
    ndarray(fresh)[...] = ndarray(array)
    return fresh
