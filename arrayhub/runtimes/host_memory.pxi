"""Views with device ``cpu`` of host-readable memory: shared and host USM, and CUDA's pinned and managed memory."""

from arrayhub._core.descriptor cimport (
    NOT_USM,
    OTHER_CONTEXT,
    PACKED,
    UNRESOLVED_ID,
    Descriptor,
    DLDevice,
    host_readable,
    kDLCPU,
    same_layout,
)
from arrayhub._core.runtime cimport host_ready, device_name

from arrayhub._core.errors import Refusal


cdef Descriptor as_host(Descriptor a):
    """Wait for the producer, and return a view of the same memory with device ``cpu``. `a` must be host-readable.

    An array with device ``cpu`` is returned unchanged.
    """
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    cdef Descriptor view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.flags_ &= ~OTHER_CONTEXT     # this flag is for SYCL devices only
    view.stream_ = NULL
    if view.block_.device_.device_id != UNRESOLVED_ID:     # else keep the queue, which determines x.memory.device
        view.producer_ = None
    return view


cdef Descriptor for_host_library(Descriptor a, str library, int other_device):
    """Return `a`, or a view of `a` with device ``cpu``, for a library that supports host memory and one other device type.

    `other_device` is the DLPack number of this device type, or 0 if the library supports only host memory.

    Raises
    ------
    BufferError
        The library does not support the device.
    """
    if host_readable(a):
        return as_host(a)
    if a.device_.device_type == other_device:
        return a
    raise Refusal(library, f"the memory is on {device_name(a)}, which {library} cannot read", call="arrayhub.to_host(x)")


def host_view(Descriptor array):
    """Return `array` as an array with device ``cpu``, after waiting for its producer.

    Raise BufferError if the host cannot read the memory.
    """
    return for_host_library(array, "the host", 0)


def is_host_readable(Descriptor array):
    """Return whether a host thread can read the memory directly."""
    return host_readable(array)


def is_packed(Descriptor array):
    """Return whether several elements share a byte. Packed arrays are compact and do not have byte strides."""
    return bool(array.flags_ & PACKED)
