"""Views of arrays for the host, and for a caller's stream (the argument ``stream=``)."""

from libc.stdint cimport intptr_t

from arrayhub._core.descriptor cimport (
    NOT_USM,
    OTHER_CONTEXT,
    PACKED,
    UNRESOLVED_ID,
    Descriptor,
    DLDevice,
    host_readable,
    kDLCPU,
    same_layout,
)
from arrayhub._core.runtime cimport Runtime, device_name, host_ready, runtime_of
from arrayhub.runtimes cimport cuda, sycl

from arrayhub._core.errors import Refusal, show

# ------------------------------------------------------------------------------------------------------------------ host memory

# Views with device ``cpu`` of host-readable memory: shared and host USM, and CUDA's pinned and managed memory.

cdef Descriptor as_host(Descriptor a):
    """Wait for the producer, and return a view of the same memory with device ``cpu``. `a` must be host-readable.

    An array with device ``cpu`` is returned unchanged.
    """
    if a.device_.device_type == kDLCPU:
        return a
    host_ready(a)
    cdef Descriptor view = same_layout(a)
    view.device_ = DLDevice(kDLCPU, 0)
    view.usm_type_ = NOT_USM
    view.flags_ &= ~OTHER_CONTEXT     # this flag is for SYCL devices only
    view.stream_ = NULL
    if view.block_.device_.device_id != UNRESOLVED_ID:     # else keep the queue, which determines x.memory.device
        view.producer_ = None
    return view


cdef Descriptor for_host_library(Descriptor a, str library, int other_device):
    """Return `a`, or a view of `a` with device ``cpu``, for a library that supports host memory and one other device type.

    `other_device` is the DLPack number of this device type, or 0 if the library supports only host memory.

    Raises
    ------
    BufferError
        The library does not support the device.
    """
    if host_readable(a):
        return as_host(a)
    if a.device_.device_type == other_device:
        return a
    raise Refusal(library, f"the memory is on {device_name(a)}, which {library} cannot read", call="arrayhub.to_host(x)")


def host_view(Descriptor array):
    """Return `array` as an array with device ``cpu``, after waiting for its producer.

    Raise BufferError if the host cannot read the memory.
    """
    return for_host_library(array, "the host", 0)


def is_host_readable(Descriptor array):
    """Return whether a host thread can read the memory directly."""
    return host_readable(array)


def is_packed(Descriptor array):
    """Return whether several elements share a byte. Packed arrays are compact and do not have byte strides."""
    return bool(array.flags_ & PACKED)


# ---------------------------------------------------------------------------------------------------------------------- streams

# The argument ``stream=``: validate the stream, and order it after the producer's work, for every kind of memory.

cdef Descriptor on_stream(Descriptor a, object stream, bint fresh):
    """Make `stream` wait for the producer of `a`, and return `a` with `stream` as its stream.

    Consumers of the result then wait for `stream`. A repeated call does not add another wait.

    Parameters
    ----------
    a : Descriptor
        An array in host memory is returned unchanged, because no work on it is pending. An array on a device type
        without a module in ``runtimes/``, such as ROCm, is also returned unchanged, after its producer has made `stream` wait.
    stream : object
        Value of ``stream=``, except None.
    fresh : bool
        Whether `a` may be changed. If not, the result is a view, and `a` keeps its own stream.

    Raises
    ------
    TypeError, InterfaceError, BufferError
        `stream` is not a stream, or the memory cannot be used on this stream.
    """
    cdef int kind = a.device_.device_type
    cdef Runtime* runtime = runtime_of(kind)
    if kind == kDLCPU:
        check_stream(stream)       # work on host memory is never pending
        return a
    if runtime.adopt_stream == NULL:
        order_by_producer(a, stream)
        return a
    if not fresh:
        a = same_layout(a)
    runtime.adopt_stream(a, stream)
    return a


cdef int check_stream(object stream) except -1:
    """Raise TypeError, InterfaceError or BufferError if `stream` is not a stream of any runtime."""
    if sycl.is_queue(stream):
        return 0
    try:
        cuda.checked_handle(stream)
    except TypeError:
        raise TypeError(
            f"stream is {show(stream)}; accepted: None, the handle of a CUDA stream (1: legacy default, 2: per-thread"
            " default, -1: no synchronization), an object with __cuda_stream__, cuda_stream or ptr, or a dpctl.SyclQueue"
        ) from None
    return 0


cdef int order_by_producer(Descriptor a, object stream) except -1:
    """Call the producer's ``__dlpack__`` to order a stream after the producer's work.

    This function is used for device types without a module in ``runtimes/``, such as ROCm. Handles are passed unchanged,
    because 0 is ROCm's default stream. For the handle -1, the producer is not called.
    """
    cdef intptr_t handle = cuda.handle_or_null(stream, 0)
    if handle == cuda.NO_STREAM:
        return 0
    export = getattr(a.producer_, "__dlpack__", None)
    if export is None:
        raise BufferError(
            f"stream is {show(stream)} for memory on {device_name(a)}, and the producer does not have __dlpack__, which orders"
            " streams; accepted: None, after the producer's work is done"
        )
    export(stream=handle)
    return 0


def order_on_stream(Descriptor array, stream):
    """Return a view of `array` that is ordered on `stream` (see `on_stream`), or `array` itself if `stream` is None."""
    return array if stream is None else on_stream(array, stream, False)
