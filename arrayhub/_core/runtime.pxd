"""Table of runtime functions, with one row per DLPack device type. The modules of runtimes/ fill in the rows.

Device types without functions are not synchronized.
"""

from arrayhub._core.descriptor cimport UNRESOLVED_ID, Descriptor, DLDevice, Runtime, make_device, runtime_of


cdef inline int host_ready(Descriptor a) except -1:
    """Wait for the producer's work on `a`, so that the host may read the memory."""
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.host_ready == NULL else runtime.host_ready(a)


cdef inline int order_consumer(Descriptor a, object stream) except -1:
    """Make the consumer's stream wait for the producer's work on `a`."""
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.consumer_ready == NULL else runtime.consumer_ready(a, stream)


cdef inline int adopt(Descriptor a) except -1:
    """Set the fields that neither DLPack nor Arrow contains. Host memory does not have such fields."""
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    return 0 if runtime.adopt == NULL else runtime.adopt(a)


cdef inline DLDevice device_of(Descriptor a) except *:
    """Return the device of `a`, and resolve its ordinal if this was deferred."""
    cdef Runtime* runtime
    if a.device_.device_id == UNRESOLVED_ID:
        runtime = runtime_of(a.device_.device_type)
        if runtime.resolve_device != NULL:
            runtime.resolve_device(a)
    return a.device_


cdef inline str device_name(Descriptor a):
    """Return the device of `a` for an error message."""
    cdef DLDevice device = device_of(a)
    return f"{make_device(device).type}:{device.device_id}"
