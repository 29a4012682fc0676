"""Table of runtime functions by device type. Device types without functions are not synchronized."""

from arrayhub._core.descriptor import TYPE_NAMES

cdef Runtime _runtimes[DEVICE_TYPES]


cdef Runtime* runtime_of(int device_type) noexcept nogil:
    """Return the row of a device type. For an unknown type, return row 0, which is always empty."""
    return &_runtimes[device_type if 0 <= device_type < DEVICE_TYPES else 0]


cdef int wait_for_device(Descriptor a) except -1:
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.host_ready == NULL else runtime.host_ready(a)


cdef int order_consumer(Descriptor a, object stream) except -1:
    """Make the consumer's stream wait for the producer's work on `a`."""
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.consumer_ready == NULL else runtime.consumer_ready(a, stream)


cdef int adopt_on_device(Descriptor a) except -1:
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.adopt == NULL else runtime.adopt(a)


cdef DLDevice device_of(Descriptor a) except *:
    """Return the device of `a`, and resolve its ordinal if this was deferred."""
    cdef Runtime* runtime
    if a.device_.device_id == UNRESOLVED_ID:
        runtime = runtime_of(a.device_.device_type)
        if runtime.resolve_device != NULL:
            runtime.resolve_device(a)
    return a.device_


cdef str device_name(Descriptor a):
    """Return the device of `a` for an error message."""
    cdef DLDevice device = device_of(a)
    return f"{TYPE_NAMES[device.device_type]}:{device.device_id}"
