"""Copies from and to SYCL USM that the host cannot read, by the queue's own memcpy, of the bytes the view reaches."""

import numpy

from arrayhub.libraries.host import empty_like, raw
from arrayhub.runtimes import sycl
from arrayhub.transfer import host


def to_host(array, order="C"):
    """Return a fresh host copy of USM, compact in `order`, once the array's queue has done what was submitted."""
    fresh = empty_like(array, order)
    if array.size == 0:
        return fresh
    memory, queue = sycl.reached_memory(array)
    queue.wait()
    if array.byte_strides == fresh.byte_strides:
        queue.memcpy(fresh, memory, fresh.nbytes)
        return fresh
    # The bytes between the elements come along: one copy of the reach is faster than one an element.
    staging = numpy.empty(memory.nbytes, numpy.uint8)
    queue.memcpy(staging, memory, memory.nbytes)
    start = array.ptr - memory._pointer
    view = numpy.ndarray(array.shape, f"V{array.itemsize}", staging, start, array.byte_strides)
    numpy.copyto(raw(fresh), view)
    return fresh


def from_host(array, ordinal):
    """Return a copy of a host array in device USM of the root device with that ordinal."""
    return upload(array, sycl.queue_for_ordinal(ordinal), "device", "C")


def copy(array, order):
    """Return a copy of USM of the same kind, on the same queue, compact in `order`."""
    source = to_host(array, order) if array.usm_type == "device" else array
    return upload(source, sycl.queue_of_array(array), array.usm_type, order)


def upload(array, queue, usm_type, order):
    """Return `array`, which the host can read, in fresh USM."""
    compact = host.copy(array, order)
    memory = sycl.memory_of(usm_type, compact.nbytes, queue)
    if compact.nbytes:
        queue.memcpy(memory, compact.reshape(-1) if compact.flags.c_contiguous else compact.T.reshape(-1), compact.nbytes)
    return sycl.put(compact, memory, usm_type)
