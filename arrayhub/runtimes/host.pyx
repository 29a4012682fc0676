"""Memory that the host can read, shown as host memory: shared and host USM, CUDA's pinned and managed memory."""

from arrayhub._core.descriptor cimport NOT_USM, OTHER_CONTEXT, PACKED, Descriptor, host_readable, same_layout
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice, kDLCPU
from arrayhub._core.runtime cimport host_ready, place_of

from arrayhub._core.errors import unreadable


cdef Descriptor as_host(Descriptor a):
    """The same memory under the device ``cpu``, after the wait that makes it safe to read; `a` must be host-readable."""
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    cdef Descriptor view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.flags_ &= ~OTHER_CONTEXT     # of no concern to who reads it as host memory
    view.stream_ = NULL
    if view.block_.device_.device_id != UNRESOLVED_ID:     # else the queue tells, once somebody asks for x.memory.device
        view.producer_ = None
    return view


cdef Descriptor for_host_library(Descriptor a, str library, int other_device):
    """`a` as a library takes it that knows host memory and one device type besides (0: none).

    Raises
    ------
    BufferError
        The memory is on a device that the library does not know.
    """
    if host_readable(a):
        return as_host(a)
    if a.device_.device_type == other_device:
        return a
    raise BufferError(unreadable(library, place_of(a), library, "call arrayhub.to_host(x), or pass copy=True"))


def host_view(Descriptor array):
    """Return `array` as plain host memory, once the host may read it; BufferError where it cannot."""
    return for_host_library(array, "the host", 0)


def is_host_readable(Descriptor array):
    """Return whether a host thread may read the memory where it lies."""
    return host_readable(array)


def is_packed(Descriptor array):
    """Return whether elements of less than a byte share bytes; such arrays are compact, and have no byte strides."""
    return bool(array.flags_ & PACKED)
