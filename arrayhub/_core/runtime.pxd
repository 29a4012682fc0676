"""What a device's runtime does for its memory: one row per DLPack device type, entered by the modules of runtimes/."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.device cimport UNRESOLVED_ID, DLDevice

cdef enum:
    DEVICE_TYPES = 19    # DLPack's device types are below

cdef struct Runtime:
    # Return when the host may read what was written to the array so far.
    int (*host_ready)(Descriptor) except -1
    # Make the consumer's stream (a Python object in its protocol's convention) wait for the producer's.
    int (*consumer_ready)(Descriptor, object stream) except -1
    # Make the consumer's stream that of the array, once it waits for the producer's. Asked by runtimes/streams alone.
    int (*adopt_stream)(Descriptor, object stream) except -1
    # Fill in the ordinal of the array's device, where finding it was put off.
    int (*resolve_device)(Descriptor) except -1
    # Complete an array of which only pointer and device are known, because DLPack can say no more.
    int (*adopt)(Descriptor) except -1
    # Give `a` fresh memory of that many bytes on that device: pointer, base and block.
    int (*allocate)(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1

cdef Runtime* runtime_of(int device_type) noexcept nogil
cdef int wait_for_device(Descriptor a) except -1
cdef int order_consumer(Descriptor a, object stream) except -1
cdef int adopt_on_device(Descriptor a) except -1
cdef DLDevice device_of(Descriptor a) except *
cdef str place_of(Descriptor a)


cdef inline int host_ready(Descriptor a) except -1:
    """Return when the producer's work on `a` is done and the host may read it."""
    return 0 if a.device_.device_type == 1 else wait_for_device(a)


cdef inline int adopt(Descriptor a) except -1:
    """Complete an array of which only pointer and device are known; there is nothing to add for plain host memory."""
    return 0 if a.device_.device_type == 1 else adopt_on_device(a)
