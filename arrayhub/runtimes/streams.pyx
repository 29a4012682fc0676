"""``stream=``: the one function that orders every way in, for every kind of memory, and refuses what is no stream."""

from arrayhub._core.descriptor cimport Descriptor, same_layout
from arrayhub._core.device cimport kDLCPU
from arrayhub._core.runtime cimport Runtime, place_of, runtime_of
from arrayhub.runtimes cimport cuda, sycl

from arrayhub._core.errors import show


cdef Descriptor on_stream(Descriptor a, object stream, bint fresh):
    """`a` for a caller who goes on working on `stream`, which waits for the producer's work.

    Consumers of the result wait for `stream` in turn. Asking twice waits for nothing new.

    Parameters
    ----------
    a : Descriptor
        The array.
    stream : object
        What ``stream=`` was given, anything but None.
    fresh : bool
        Nobody else has `a` yet. Otherwise the result is a view, and who holds `a` keeps the producer's order.

    Raises
    ------
    TypeError, InterfaceError, BufferError
        `stream` is no stream, or none that the memory can be used on.
    """
    cdef int kind = a.device_.device_type
    cdef Runtime* runtime = runtime_of(kind)
    if kind == kDLCPU:
        check_stream(stream)       # and nothing is in flight
        return a
    if runtime.adopt_stream == NULL:
        ask_producer(a, stream)
        return a
    if not fresh:
        a = same_layout(a)
    runtime.adopt_stream(a, stream)
    return a


cdef int check_stream(object stream) except -1:
    """Refuse what is a stream of no runtime."""
    if sycl.is_queue(stream):
        return 0
    try:
        cuda.checked_handle(stream)
    except TypeError:
        raise TypeError(
            f"stream is {show(stream)}; accepted: None, the handle of a CUDA stream (1 the legacy default one, 2 the"
            " per-thread one, -1 for no order), an object with __cuda_stream__, cuda_stream or ptr, or a dpctl.SyclQueue"
        ) from None
    return 0


cdef int ask_producer(Descriptor a, object stream) except -1:
    """Have the producer order a stream of a runtime that is unknown here (ROCm's, say), as DLPack lets it.

    Numbers go to him as they are, since 0 means the default stream to ROCm; -1 wants no order.
    """
    handle = stream if type(stream) is int and -1 <= stream < 2**63 else cuda.stream_handle(stream)
    if handle == cuda.NO_STREAM:
        return 0
    export = getattr(a.producer_, "__dlpack__", None)
    if export is None:
        raise BufferError(
            f"stream is {show(stream)} for memory on {place_of(a)}, whose producer has no __dlpack__ to"
            " be asked for the order; accepted: None, after the producer's work is done"
        )
    export(stream=handle)
    return 0


def ordered(Descriptor array, stream):
    """Return `array` in the order of `stream`; itself where that is None or the memory is the host's."""
    return array if stream is None else on_stream(array, stream, False)
