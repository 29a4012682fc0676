"""Devices, numbered as in DLPack, whose list of device types is the most complete."""

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
    UNRESOLVED_ID = -1  # the ordinal of a SYCL device is resolved on first use


cdef inline bint type_is_host(int device_type) noexcept nogil:
    """Return whether host threads can always read memory of this device type. For SYCL the kind of USM decides instead."""
    return device_type == kDLCPU or device_type == kDLCUDAHost or device_type == kDLCUDAManaged \
        or device_type == kDLROCMHost


cdef class Device:
    cdef DLDevice dl


cdef Device make_device(DLDevice dl)
