"""Copies from and to SYCL USM that the host cannot read, by the queue's own memcpy, of the bytes the view reaches."""

import numpy

from arrayhub.libraries.host import empty_like, is_host_readable, raw
from arrayhub.runtimes import sycl
from arrayhub.transfer import host


def to_host(array, order="C"):
    """Return a fresh host copy of USM, compact in `order`, once the array's queue has done what was submitted."""
    fresh = empty_like(array, order)
    if array.size == 0:
        return fresh
    memory, queue = sycl.reached_memory(array)
    queue.wait()
    if is_packed(array) or array.byte_strides == fresh.byte_strides:
        queue.memcpy(as_bytes(fresh), memory, fresh.nbytes)
        return fresh
    # The bytes between the elements come along: one copy of the reach is faster than one an element.
    staging, elements = _staging(array, memory)
    queue.memcpy(staging, memory, memory.nbytes)
    numpy.copyto(raw(fresh), elements)
    return fresh


def write(fresh, source):
    """Put the elements of `source` into a fresh, not empty array; whatever lies between them there is overwritten."""
    memory, queue = sycl.reached_memory(fresh)
    staging, elements = _staging(fresh, memory)
    numpy.copyto(elements, raw(source if is_host_readable(source) else to_host(source)))
    queue.memcpy(memory, staging, memory.nbytes)


def _staging(array, memory):
    """Return host bytes for all that `array` reaches, and its elements there."""
    staging = numpy.empty(memory.nbytes, numpy.uint8)
    start = array.ptr - memory._pointer
    return staging, numpy.ndarray(array.shape, f"V{array.itemsize}", staging, start, array.byte_strides)


def from_host(array, ordinal):
    """Return a copy of a host array in device USM of the root device with that ordinal."""
    return upload(host.copy(array, "C"), sycl.queue_for_ordinal(ordinal), "device")


def copy(array, order):
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
