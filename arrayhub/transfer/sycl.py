"""Copies from and to SYCL USM that the host cannot read, by the queue's own memcpy, of the bytes the view reaches."""

import numpy

from arrayhub.libraries.host import empty_like, raw
from arrayhub.runtimes import sycl
from arrayhub.transfer import host


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Return a fresh host copy of USM, compact in `order`, once the array's queue has done what was submitted."""
    if out is not None:
        return host.to_host(to_host(array), out=out)
    fresh = empty_like(array, order)
    if array.size == 0:
        return fresh
    memory, queue = sycl.reached_memory(array)
    queue.wait()
    if is_packed(array) or array.byte_strides == fresh.byte_strides:
        queue.memcpy(as_bytes(fresh), memory, fresh.nbytes)
        return fresh
    # The bytes between the elements come along: one copy of the reach is faster than one an element.
    staging = numpy.empty(memory.nbytes, numpy.uint8)
    queue.memcpy(staging, memory, memory.nbytes)
    start = array.ptr - memory._pointer
    view = numpy.ndarray(array.shape, f"V{array.itemsize}", staging, start, array.byte_strides)
    numpy.copyto(raw(fresh), view)
    return fresh


def from_host(array, ordinal, *, stream=None, progress=None):
    """Return a copy of a host array in device USM of the root device with that ordinal."""
    return upload(host.copy(array, "C"), sycl.queue_for_ordinal(ordinal), "device")


def to_other(array, ordinal, *, stream=None, progress=None):
    """Return a copy of USM in device USM of another root device."""
    return from_host(to_host(array), ordinal)


def copy(array, order, *, stream=None):
    """Return a copy of USM of the same kind, on the same queue, compact in `order`."""
    compact = to_host(array, order) if array.usm_type == "device" else host.copy(array, order)
    return upload(compact, sycl.queue_of_array(array), array.usm_type)


def upload(compact, queue, usm_type):
    """Return a compact host array in fresh USM, with the same strides."""
    memory = sycl.memory_of(usm_type, compact.nbytes, queue)
    if compact.size:
        queue.memcpy(memory, as_bytes(compact), compact.nbytes)
    return sycl.put(compact, memory, usm_type)


def as_bytes(compact):
    """Return the memory of a compact host array as one run of opaque items, whatever the order of its dimensions."""
    items = raw(compact)
    return (
        items.transpose(numpy.argsort([-step for step in items.strides], kind="stable")).reshape(-1).view(numpy.uint8)
    )


def is_packed(array):
    """Return whether elements of less than a byte share bytes; such arrays are compact, and have no byte strides."""
    return array.nbytes < array.size * array.itemsize
