"""Host-readable memory as plain host memory: USM of the kinds shared and host, CUDA's pinned and managed memory."""

from arrayhub._core.descriptor cimport NOT_USM, Descriptor, host_readable, same_layout
from arrayhub._core.device cimport DLDevice, kDLCPU
from arrayhub._core.runtime cimport device_of, host_ready, order_consumer
from arrayhub.adapters cimport dlpack

from arrayhub._core.device import TYPE_NAMES


cdef Descriptor as_host(Descriptor a):
    """The same memory under the device ``cpu``, after the wait that makes it safe to read; `a` must be host-readable."""
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    cdef Descriptor view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.stream_ = NULL
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
    raise BufferError(
        f"{library}: the memory is on {TYPE_NAMES.get(a.device_.device_type, 'no device')}:{device_of(a).device_id}, which"
        f" {library} cannot read; call arrayhub.to_host(x), or pass copy=True"
    )


cdef class LegacyView:
    """An array as a producer for libraries that read legacy capsules only and never write: their capsules cannot say
    read-only, so it is left out. Host-readable memory is shown as host memory."""
    cdef Descriptor array

    def __init__(self, Descriptor array):
        self.array = as_host(array) if host_readable(array) else array

    def __dlpack__(self, *, stream=None, **ignored):
        if stream is not None:
            order_consumer(self.array, stream)
        return dlpack.emit_legacy(self.array, True)

    def __dlpack_device__(self):
        device = device_of(self.array)
        return (device.device_type, device.device_id)
