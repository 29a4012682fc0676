"""Views of arrays for the host, and for a caller's stream (the argument ``stream=``)."""

from arrayhub._core.descriptor cimport (
    NOT_USM,
    OTHER_CONTEXT,
    UNRESOLVED_ID,
    Descriptor,
    DLDevice,
    Runtime,
    host_readable,
    kDLCPU,
    runtime_of,
    same_layout,
)
from arrayhub._core.runtime cimport device_name, host_ready


cdef inline Descriptor as_host(Descriptor a):
    """Wait for the producer, and return a view of the same memory with device ``cpu``. `a` must be host-readable.

    An array with device ``cpu`` is returned unchanged.
    """
    cdef Descriptor view
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.flags_ &= ~OTHER_CONTEXT     # this flag is for SYCL devices only
    view.stream_ = NULL
    if view.block_.device_.device_id != UNRESOLVED_ID:     # else keep the queue, which determines x.memory.device
        view.producer_ = None
    return view


cdef inline Descriptor for_host_library(Descriptor a, str library, int other_device):
    """Return `a`, or a view of `a` with device ``cpu``, for a library that supports host memory and one other device type.

    `other_device` is the DLPack number of this device type, or 0 if the library supports only host memory. Raise Refusal for
    another device.
    """
    if host_readable(a):
        return as_host(a)
    if a.device_.device_type == other_device:
        return a
    from arrayhub._core.errors import Refusal

    raise Refusal(library, f"the memory is on {device_name(a)}, which {library} cannot read", call="arrayhub.to_host(x)")


cdef inline Descriptor on_stream(Descriptor a, object stream, bint fresh):
    """Make `stream` wait for the producer of `a`, and return `a` with `stream` as its stream.

    Consumers of the result then wait for `stream`. A repeated call does not add another wait. `stream` is a value of
    ``stream=``, except None. Work on host memory is never pending, so for such memory, the stream is only validated. If `fresh`
    is false, the result is a view, and `a` keeps its own stream.
    """
    cdef Runtime* runtime = runtime_of(a.device_.device_type)
    if not fresh and runtime.host_ready != NULL:      # the runtime records the stream in the array
        a = same_layout(a)
    runtime.adopt_stream(a, stream)
    return a
