"""Functions of a device's runtime: one row per DLPack device type, filled by the modules of runtimes/."""

from arrayhub._core.descriptor cimport UNRESOLVED_ID, Descriptor, DLDevice

cdef enum:
    DEVICE_TYPES = 19    # one more than DLPack's largest device type

cdef struct Runtime:
    # Return once the host may read what the producer has queued so far.
    int (*host_ready)(Descriptor) except -1
    # Make the consumer's stream (a Python object, as its protocol defines it) wait for the producer's.
    int (*consumer_ready)(Descriptor, object stream) except -1
    # Like `consumer_ready`, and make the consumer's stream the stream of the array. Called only by runtimes/streams.
    int (*adopt_stream)(Descriptor, object stream) except -1
    # Resolve the ordinal of the array's device if this was deferred.
    int (*resolve_device)(Descriptor) except -1
    # Complete an array that has only a pointer and a device, because DLPack does not contain the other fields.
    int (*adopt)(Descriptor) except -1
    # Allocate `nbytes` bytes on `device`, and set pointer, base and block of `a`.
    int (*allocate)(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1

cdef Runtime* runtime_of(int device_type) noexcept nogil
cdef int wait_for_device(Descriptor a) except -1
cdef int order_consumer(Descriptor a, object stream) except -1
cdef int adopt_on_device(Descriptor a) except -1
cdef DLDevice device_of(Descriptor a) except *
cdef str device_name(Descriptor a)


cdef inline int host_ready(Descriptor a) except -1:
    """Return once the producer's work on `a` is done, so that the host may read it."""
    return 0 if a.device_.device_type == 1 else wait_for_device(a)


cdef inline int adopt(Descriptor a) except -1:
    """Complete an array that has only a pointer and a device. For host memory, these fields are sufficient."""
    return 0 if a.device_.device_type == 1 else adopt_on_device(a)
