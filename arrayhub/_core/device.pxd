"""Where memory lives. DLPack's numbering of devices is the widest one, so it is the one used inside."""

from libc.stdint cimport int32_t

cdef enum DLDeviceType:
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
    kDLROCMHost = 11
    kDLCUDAManaged = 13
    kDLOneAPI = 14

cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef enum:
    UNRESOLVED_ID = -1  # the ordinal of a SYCL device is looked up only when somebody asks for it


cdef inline bint type_is_host(int device_type) noexcept nogil:
    """Device types whose memory a host thread can always read. SYCL's depends on the kind of USM besides."""
    return device_type == kDLCPU or device_type == kDLCUDAHost or device_type == kDLCUDAManaged \
        or device_type == kDLROCMHost


cdef class Device:
    cdef DLDevice dl


cdef Device make_device(DLDevice dl)
