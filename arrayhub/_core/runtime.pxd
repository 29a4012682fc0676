"""Table of runtime functions, with one row per DLPack device type. The modules of runtimes/ fill in the rows."""

from arrayhub._core.descriptor cimport UNRESOLVED_ID, Descriptor, DLDevice

cdef enum:
    DEVICE_TYPES = 19    # one more than DLPack's largest device type

cdef struct Runtime:
    # Wait until the host may read the results of the work that the producer has queued so far.
    int (*host_ready)(Descriptor) except -1
    # Make the consumer's stream wait for the producer's work. The consumer's protocol defines the Python type of `stream`.
    int (*consumer_ready)(Descriptor, object stream) except -1
    # Call `consumer_ready`, and set the consumer's stream as the stream of the array. Called only by runtimes/host.
    int (*adopt_stream)(Descriptor, object stream) except -1
    # Resolve the ordinal of the array's device if this was deferred.
    int (*resolve_device)(Descriptor) except -1
    # Set the fields, such as the USM type, that neither DLPack nor Arrow contains.
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
    """Wait for the producer's work on `a`, so that the host may read the memory."""
    return 0 if a.device_.device_type == 1 else wait_for_device(a)


cdef inline int adopt(Descriptor a) except -1:
    """Set the fields that neither DLPack nor Arrow contains. Host memory does not have such fields."""
    return 0 if a.device_.device_type == 1 else adopt_on_device(a)
