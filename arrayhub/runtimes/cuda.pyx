"""CUDA driver: the device of a pointer, and stream synchronization.

The driver library is loaded on first use rather than at import, and its functions are looked up by name, so building and
importing this package do not require CUDA. Without a driver, streams do not exist and work is never pending, so every wait
returns immediately.

Sources: the CUDA driver API reference (stream management, event management, unified addressing, graph capture), the
DLPack specification and version 3 of the CUDA array interface.
"""

import ctypes
import operator
import time

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport intptr_t, uint64_t

from arrayhub._core.descriptor cimport (
    DEVICE_TYPES,
    EXTERNAL,
    PAGE,
    Descriptor,
    DLDevice,
    extent,
    is_bool,
    kDLCPU,
    kDLCUDA,
    kDLCUDAHost,
    kDLCUDAManaged,
    new_block,
    size_of,
)
from arrayhub._core.runtime cimport Runtime, device_name, runtime_of
from arrayhub._core.cpython.atomics cimport found, is_done, mark_done
from arrayhub.runtimes.sycl cimport is_queue

from arrayhub._core.descriptor import IN_MESSAGES, TYPE_NAMES
from arrayhub._core.errors import INSTEAD, NO_CUDA_DEVICE, Refusal, interface_error, needed, show
from arrayhub.runtimes import CUDA_FILE

_NAMES = (
    "cuInit", "cuGetErrorName", "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetAttribute", "cuPointerGetAttributes",
    "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRetain",
    "cuStreamGetCtx", "cuStreamCreate", "cuStreamGetCaptureInfo_v2", "cuStreamQuery", "cuStreamSynchronize",
    "cuStreamDestroy_v2",
    "cuStreamWaitEvent", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuEventDestroy_v2",
    "cuMemcpyAsync", "cuMemHostAlloc", "cuMemFreeHost", "cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess",
    "cuLaunchKernel",
)

cdef enum:
    # CUpointer_attribute and CUmemorytype
    ATTRIBUTE_MEMORY_TYPE = 2
    ATTRIBUTE_IS_MANAGED = 8
    ATTRIBUTE_DEVICE_ORDINAL = 9
    MEMORY_HOST = 1
    MEMORY_DEVICE = 2
    MEMORY_UNIFIED = 4
    # CUdevice_attribute: kernels can read any host memory (Grace Hopper, or Linux with heterogeneous memory management)
    PAGEABLE_MEMORY_ACCESS = 88
    EVENT_DISABLE_TIMING = 2
    STREAM_NON_BLOCKING = 1
    # CUresult
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    NOT_READY = 600
    PEER_ACCESS_ENABLED = 704
    CAPTURE_IMPLICIT = 906         # the legacy stream cannot be queried while a dependent stream is being captured
    CAPTURE_ACTIVE = 1
    LOOKS_BEFORE_SLEEP = 30        # number of event queries (about 1 us each) before the first sleep
    FIRST_POINTER = PAGE           # the first page is never mapped, so smaller numbers are not stream handles

cdef uint64_t UNASKABLE = <uint64_t> -1     # capture id if the capture of a stream cannot be determined

_FORKED = (
    "CUDA: this process was forked from a process that had used CUDA, and cannot use CUDA; start processes with"
    " multiprocessing's 'spawn' or 'forkserver', or pass host memory to them"
)

cdef object _lock = object()
cdef int _looked = 0                   # whether the next four variables are set
cdef bint _present = False             # whether there is a driver with a device
cdef Driver _driver
cdef int _process = 0                  # id of the process that initialized the driver
cdef int _devices = 0                  # number of devices
cdef dict _contexts = {}               # primary contexts, retained for the life of the process, as CUDA's runtime does
cdef dict _streams = {}                # internal streams, see waiting_stream
cdef set _peers = set()                # pairs of devices for which allow_peer has asked the driver


# ------------------------------------------------------------------------------------------------------- the driver


cpdef bint has_device() except -1:
    """Return whether a CUDA driver with a device is available. The first call loads the driver."""
    global _present, _driver, _process, _devices
    cdef Driver driver
    cdef int devices = 0
    cdef bint present
    if not is_done(&_looked):
        present = load_driver(&driver, &devices)
        with cython.critical_section(_lock):
            if not is_done(&_looked):
                _driver, _present, _devices, _process = driver, present, devices, getpid()
                mark_done(&_looked)
    return _present


cdef Driver* driver_for(int device) except NULL:
    """Return the driver's functions, after checking that a device can be used.

    Raises
    ------
    BufferError
        The driver or the device does not exist, or this process was forked from a process that used CUDA.
    """
    if not has_device():
        raise BufferError("CUDA: this machine does not have a CUDA driver with a device; accepted: host memory")
    if _process != getpid():
        raise BufferError(_FORKED)
    if not 0 <= device < _devices:
        raise BufferError(f"CUDA: device is {device}; accepted: 0 to {_devices - 1}")
    return &_driver


cdef int refuse_without_device(Descriptor a, str library) except -1:
    """Raise Refusal for CUDA memory on a machine without a device, which `library` cannot share."""
    if a.device_.device_type == kDLCUDA and not has_device():
        raise Refusal(library, f"the memory is on {device_name(a)}, and no CUDA driver or device was found")
    return 0


cdef bint load_driver(Driver* driver, int* devices) except -1:
    """Load and initialize the driver. Return False if the driver is missing or too old, or does not have a device."""
    cdef void** slots = <void**> driver
    try:
        library = ctypes.CDLL(CUDA_FILE)
        for k, name in enumerate(_NAMES):
            slots[k] = <void*> <intptr_t> ctypes.cast(library[name], ctypes.c_void_p).value
    except (OSError, AttributeError):
        return False
    return driver.init(0) == 0 and driver.device_count(devices) == 0 and devices[0] > 0


cdef int check(int error, str call) except -1:
    """Raise an exception for an error code of the driver: MemoryError if memory is exhausted, else BufferError."""
    cdef const char* name = NULL
    if error == 0:
        return 0
    _driver.error_name(error, &name)
    text = f"CUDA: {call} failed with {'an unknown error' if name == NULL else name.decode()} ({error})"
    if error == OUT_OF_MEMORY:
        raise MemoryError(f"{text}: free memory on the device, or copy in parts")
    if error == NOT_INITIALIZED and _process != getpid():
        raise BufferError(f"{_FORKED}. {text}")
    raise BufferError(f"{text}. The driver also reports errors of earlier kernels here. Check stream= and the memory of the"
                      " producer")


cdef Context primary_context(int device) except NULL:
    """Return the primary context of a device, which numba, torch, cupy and jax share."""
    cdef Driver* driver
    cdef int handle
    cdef Context context
    kept = found(_contexts, device)
    if kept is None:
        driver = driver_for(device)
        check(driver.device_get(&handle, device), f"cuDeviceGet({device})")
        check(driver.context_retain(&context, handle), "cuDevicePrimaryCtxRetain")
        kept = _contexts.setdefault(device, <size_t> context)
    return <Context> <size_t> kept


def primary_context_of(int device):
    """Return the address of a device's primary context, for functions of the driver that ctypes calls."""
    driver_for(device)
    return <size_t> primary_context(device)


cdef bint enter(intptr_t stream, int device) except -1:
    """Make the context of `stream` current. Return whether `leave` must restore the previous context.

    The driver reports the context of a stream handle. For the default streams, keep the current context if it belongs to
    `device`, else use the primary context of `device`.
    """
    cdef Context wanted = NULL, current = NULL
    cdef int handle = -1, now = -1
    if not has_device():
        driver_for(0)      # raises BufferError
    check_handle(stream)
    check(_driver.context_current(&current), "cuCtxGetCurrent")
    if stream > PER_THREAD_STREAM:
        check(_driver.stream_context(<Stream> stream, &wanted), "cuStreamGetCtx")
    else:
        check(_driver.device_get(&handle, device), f"cuDeviceGet({device})")
        if current != NULL and _driver.context_device(&now) == 0 and now == handle:
            return False
        wanted = primary_context(device)
    if wanted == current:
        return False
    check(_driver.context_push(wanted), "cuCtxPushCurrent")
    return True


cdef bint has_devices() except -1:
    """Return whether this process can use several devices."""
    return has_device() and _devices > 1 and _process == getpid()


cdef bint enter_device(long long device) except -1:
    """Push the context of a device for a call of a library. Return whether `leave` must restore the previous context.

    The context is pushed even if it is current, because jax replaces the current context. With one device, do nothing.
    """
    if not has_devices() or not 0 <= device < _devices:
        return False
    check(_driver.context_push(primary_context(<int> device)), "cuCtxPushCurrent")
    return True


cdef bint enter_to_wait(intptr_t stream, int device) except -1:
    """Call `enter` before a wait for `stream`. Raise BufferError if the stream is being captured: the wait would not end."""
    refuse_capture(stream, device)
    return enter(stream, device)


cdef void leave(bint pushed) noexcept nogil:
    cdef Context ignored
    if pushed:
        _driver.context_pop(&ignored)


cdef int device_of(intptr_t stream) except -1:
    """Return the ordinal of a stream's device, or 0 without a driver.

    The device of a default stream is the current device, or device 0 if no context is current.
    """
    cdef int device = 0
    cdef bint pushed = False
    if not has_device():
        return 0
    if stream > PER_THREAD_STREAM:
        pushed = enter(stream, 0)
    if _driver.context_device(&device) != 0:
        device = 0
    leave(pushed)
    return device


# ------------------------------------------------------------------------------------------------- device of a pointer


cdef int locate(Descriptor a, bint ask_last=True) except -1:
    """Set the device of a sealed array: the kind of memory (device, managed or pinned host) and the ordinal.

    The driver is queried for the first and the last byte of the array, or only for the first one if `ask_last` is false,
    because the library of the array guarantees that all elements are in the same memory. The device does not change in three
    cases: without a driver, without elements, and for addresses that the driver does not know, if kernels can access all host
    memory.

    Raises
    ------
    InterfaceError
        The driver does not recognize an address, and kernels can access only registered memory.
    """
    cdef Py_ssize_t low, high
    cdef DLDevice first, last
    cdef int device = 0, is_pageable = 0
    extent(a, &low, &high)
    if high == low or not has_device():
        return 0
    first = device_at(<uint64_t> (a.data_ + low))
    last = device_at(<uint64_t> (a.data_ + high - 1)) if ask_last else first
    if first.device_type == 0 or last.device_type == 0:
        _driver.device_get(&device, 0)
        if _driver.device_attribute(&is_pageable, PAGEABLE_MEMORY_ACCESS, device) == 0 and is_pageable != 0:
            return 0      # kernels can read memory that is not registered with CUDA
        unknown = a.data_ + low if first.device_type == 0 else a.data_ + high - 1
        raise interface_error(
            "__cuda_array_interface__", "data", <size_t> a.data_,
            "memory that CUDA allocated, mapped or registered in this process, up to the last element; the driver"
            f" does not know the address {<size_t> unknown:#x}",
        )
    a.device_ = first
    return 0


cdef DLDevice device_at(uint64_t address) except *:
    """Return the DLPack device of the memory at an address, or device type 0 if the driver does not know the address."""
    cdef int* which = [ATTRIBUTE_MEMORY_TYPE, ATTRIBUTE_IS_MANAGED, ATTRIBUTE_DEVICE_ORDINAL]
    cdef uint64_t memory_type = 0, managed = 0, ordinal = 0
    cdef void** values = [&memory_type, &managed, &ordinal]
    check(_driver.pointer_attributes(3, which, values, address), "cuPointerGetAttributes")
    cdef int device = <int> <unsigned int> ordinal
    device = device if device >= 0 else 0      # managed memory that no device has used yet
    cdef int kind = <int> <unsigned int> memory_type
    if <unsigned char> managed or kind == MEMORY_UNIFIED:
        return DLDevice(kDLCUDAManaged, device)
    if kind == MEMORY_DEVICE:
        return DLDevice(kDLCUDA, device)
    if kind == MEMORY_HOST:
        return DLDevice(kDLCUDAHost, 0)
    return DLDevice(0, 0)


# ---------------------------------------------------------------------------------------------------------- streams


cpdef intptr_t stream_handle(object stream) except? 0:
    """Convert a stream to DLPack's number: -1 (no synchronization), 1 (legacy default), 2 (per-thread default) or a handle.

    Parameters
    ----------
    stream : int or object
        A DLPack number, or an object with one of the attributes ``__cuda_stream__`` (cuda.core's protocol, which returns
        version 0 and a handle), ``cuda_stream`` (torch) or ``ptr`` (cupy). Callers handle None, whose meaning depends on the
        protocol.

    Raises
    ------
    InterfaceError
        The number 0, which could mean either default stream, or a number that is not a handle.
    TypeError
        `stream` is neither a number nor an object with such an attribute.
    """
    cdef intptr_t handle = handle_or_null(stream, LEGACY_STREAM)
    if handle == 0:
        raise interface_error("CUDA stream", "stream", 0, "1 (legacy default), 2 (per-thread default), a handle, or -1"
                              " (no synchronization); 0 could mean either default stream")
    return handle


cdef intptr_t handle_or_null(object stream, intptr_t null) except? 0:
    """Convert a stream like `stream_handle`, but return the number 0 unchanged, and `null` for a stream object with handle 0.

    Handle 0 of a stream object is unambiguous: it is the legacy default stream of CUDA, or the default stream of ROCm.
    """
    cdef object handle = stream if type(stream) is int else handle_of_object(stream, null)
    if not -1 <= handle < 2**63:
        raise interface_error("CUDA stream", "stream", stream, "-1, 1, 2, or the handle of a stream")
    return <intptr_t> handle


cdef object handle_of_object(object stream, intptr_t null):
    """Return the handle of a stream object, or `null` if the handle is 0.

    An object that is an integer itself, such as a NumPy scalar, is returned as an int.
    """
    accepted = "an integer, or an object with __cuda_stream__, cuda_stream or ptr"
    if is_bool(stream):
        raise TypeError(f"CUDA stream: stream is {stream}; accepted: {accepted}")
    handle = getattr(stream, "__cuda_stream__", None)
    if handle is not None:
        pair = handle() if callable(handle) else handle
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] != 0:
            raise interface_error("CUDA stream", "__cuda_stream__", pair, "the pair (0, handle)")
        handle = pair[1]
    else:
        handle = getattr(stream, "cuda_stream", None)
        if handle is None:
            handle = getattr(stream, "ptr", stream)
    try:
        number = operator.index(handle)
    except TypeError:
        raise TypeError(f"CUDA stream: stream is {show(stream)}; accepted: {accepted}") from None
    if number < 0 and handle is not stream:
        raise interface_error("CUDA stream", "handle", number, "a handle of zero or more")
    return null if number == 0 and handle is not stream else number


cdef int check_handle(intptr_t stream) except -1:
    """Raise BufferError if `stream` is neither a predefined handle nor a plausible address.

    The driver would dereference an invalid handle without a check.
    """
    if stream < 0 or PER_THREAD_STREAM < stream < FIRST_POINTER:
        raise BufferError(f"CUDA stream: {stream} is not a stream handle; accepted: 1, 2, or a handle from CUDA")
    return 0


cdef intptr_t checked_handle(object stream) except? 0:
    """Return the validated handle for a value of ``stream=``, or NO_STREAM for -1."""
    cdef intptr_t handle = stream_handle(stream)
    if handle != NO_STREAM:
        check_handle(handle)
    return handle


cdef uint64_t capture_of(intptr_t stream, int device) except? 0:
    """Return the id of the graph capture that `stream` belongs to, or 0 if `stream` is not being captured.

    Return UNASKABLE if the capture was invalidated, or if `stream` is the legacy stream and another capture forbids the query.
    """
    cdef int status = 0, error
    cdef uint64_t sequence = 0
    cdef bint pushed = enter(stream, device)
    error = _driver.stream_capture(<Stream> stream, &status, &sequence, NULL, NULL, NULL)
    leave(pushed)
    if error == CAPTURE_IMPLICIT:
        return UNASKABLE
    check(error, "cuStreamGetCaptureInfo")
    return sequence if status == CAPTURE_ACTIVE else (UNASKABLE if status != 0 else 0)


cpdef int refuse_capture(intptr_t stream, int device) except -1:
    """Raise BufferError if a producer's stream is being captured into a graph. Such a stream cannot be synchronized."""
    if capture_of(stream, device) != 0:
        raise BufferError(
            "CUDA: the producer's stream is being captured into a graph, so its work has not run and nothing outside of the"
            " capture can wait for it; use the array on the same stream, or export it before or after the capture"
        )
    return 0


cpdef int order_streams(intptr_t producer, intptr_t consumer, int device, int consumer_device=-1) except -1:
    """Make the stream `consumer` wait for the work that is now queued on the stream `producer`. The host does not wait.

    Parameters
    ----------
    producer, consumer : intptr_t
        Stream handles, or LEGACY_STREAM or PER_THREAD_STREAM, which then belong to `device`. If `consumer` is NO_STREAM, do
        nothing.
    device : int
        The device of `producer`.
    consumer_device : int
        The device of `consumer`, or -1 for the same device.

    Notes
    -----
    A captured stream cannot wait for a stream outside of its capture, or vice versa. If `consumer` is being captured, and
    `producer` is not part of the same capture, no wait is added: the captured work is ordered when the graph is launched. If
    only `producer` is being captured, its work has not run, and BufferError is raised.
    """
    cdef uint64_t capture
    cdef CudaEvent event
    cdef int there = device if consumer_device < 0 else consumer_device
    if consumer == NO_STREAM or (producer == consumer and device == there):
        return 0
    capture = capture_of(consumer, there)
    if capture != 0:
        if capture == UNASKABLE or capture != capture_of(producer, device):
            return 0
    else:
        refuse_capture(producer, device)
    event = event_on(producer, device)
    try:
        wait_for_event(consumer, event, there)
    finally:
        destroy_event(event)
    return 0


cdef int wait_for_event(intptr_t stream, CudaEvent event, int device) except -1:
    """Make later work of `stream` wait for an event. The host does not wait."""
    cdef bint pushed = enter(stream, device)
    cdef int error
    with nogil:
        error = _driver.stream_wait(<Stream> stream, event, 0)
    leave(pushed)
    return check(error, "cuStreamWaitEvent")


cpdef int wait_for_stream(intptr_t stream, int device) except -1:
    """Wait, with low latency, for the work queued on `stream`. Signals are not handled during the wait."""
    cdef bint pushed = enter_to_wait(stream, device)
    cdef int error
    with nogil:
        error = _driver.stream_synchronize(<Stream> stream)
    leave(pushed)
    return check(error, "cuStreamSynchronize")


cpdef int wait_interruptibly(intptr_t stream, int device) except -1:
    """Wait for the work that is currently queued on `stream`. Signals are handled, so Ctrl-C interrupts the wait."""
    cdef bint pushed = enter_to_wait(stream, device)
    cdef int error = _driver.stream_query(<Stream> stream), look = 0
    cdef CudaEvent event
    leave(pushed)
    if error != NOT_READY:
        return check(error, "cuStreamQuery")
    event = event_on(stream, device)
    try:
        while True:
            error = _driver.event_query(event)
            if error != NOT_READY:
                return check(error, "cuEventQuery")
            PyErr_CheckSignals()      # time.sleep handles only signals that arrive during the sleep
            look += 1
            if look > LOOKS_BEFORE_SLEEP:      # the interval grows by 6% per query, up to 5 ms
                time.sleep(min(20e-6 * 1.06 ** min(look - LOOKS_BEFORE_SLEEP, 100), 5e-3))
    finally:
        destroy_event(event)


cpdef intptr_t copying_stream(Descriptor a, object stream) except 0:
    """Return the handle of a stream on which `a` can be read.

    - If `stream` is given, return it, after making it wait for the producer.
    - If `stream` is -1 (no synchronization), return the internal stream without a wait.
    - If `stream` is None, return the producer's stream if it is known, else the internal stream, which waits for the
      producer.
    """
    cdef intptr_t chosen = NO_STREAM if stream is None else stream_handle(stream)
    if chosen == NO_STREAM:
        if stream is None and a.stream_ != NULL:
            return <intptr_t> a.stream_
        chosen = waiting_stream(a.device_.device_id)
        if stream is not None:             # -1: no synchronization
            return chosen
    consumer_ready(a, chosen)
    return chosen


cdef int copy_now(uint64_t to, uint64_t source, size_t nbytes, intptr_t stream, int device) except -1:
    """Copy `nbytes` bytes between two addresses that CUDA can access, with `stream`, and wait for the copy."""
    cdef bint pushed = enter_to_wait(stream, device)
    cdef int error
    with nogil:
        error = _driver.memcpy_async(to, source, nbytes, <Stream> stream)
        if error == 0:
            error = _driver.stream_synchronize(<Stream> stream)
    leave(pushed)
    return check(error, "cuMemcpyAsync")


def allow_peer(int device, int peer):
    """Let `device` access the memory of the device `peer`, if supported. Otherwise the driver copies through the host.

    Only the first call for two devices asks the driver.
    """
    cdef int here, there, yes = 0, error
    if device == peer or (device, peer) in _peers:
        return
    cdef Context context = primary_context(device), other = primary_context(peer)
    check(_driver.device_get(&here, device), f"cuDeviceGet({device})")
    check(_driver.device_get(&there, peer), f"cuDeviceGet({peer})")
    check(_driver.can_access_peer(&yes, here, there), "cuDeviceCanAccessPeer")
    if yes:
        check(_driver.context_push(context), "cuCtxPushCurrent")
        error = _driver.enable_peer(other, 0)
        leave(True)
        if error != PEER_ACCESS_ENABLED:
            check(error, "cuCtxEnablePeerAccess")
    _peers.add((device, peer))


cpdef intptr_t waiting_stream(int device, intptr_t other=NO_STREAM) except 0:
    """Return an internal stream of `device`, for waits and copies, that is not the stream `other`.

    Internal streams do not synchronize with default streams. Each device has at most two of them.
    """
    cdef Stream stream = NULL
    cdef bint pushed
    cdef int error, key = device
    kept = found(_streams, key)
    if kept is not None and <intptr_t> kept == other:
        key = ~device      # the second stream
        kept = found(_streams, key)
    if kept is None:
        pushed = enter(LEGACY_STREAM, device)
        error = _driver.stream_create(&stream, STREAM_NON_BLOCKING)
        leave(pushed)
        check(error, "cuStreamCreate")
        kept = _streams.setdefault(key, <intptr_t> stream)
        if <intptr_t> kept != <intptr_t> stream:      # another thread was first
            _driver.stream_destroy(stream)
    return kept


cdef intptr_t stream_after(CudaEvent* place, int device) except 0:
    """Return the internal stream of `device`, after making the stream wait for the event at the address `place`.

    `place` is dereferenced only after the driver and the device are validated.
    """
    cdef intptr_t stream = waiting_stream(device)
    wait_for_event(stream, place[0], device)
    return stream


cdef CudaEvent event_on(intptr_t stream, int device) except NULL:
    """Return a new event that completes after the work now queued on `stream`. Free the event with `destroy_event`."""
    cdef CudaEvent event = NULL
    cdef bint pushed = enter(stream, device)
    cdef int error
    with nogil:
        error = _driver.event_create(&event, EVENT_DISABLE_TIMING)
        if error == 0:
            error = _driver.event_record(event, <Stream> stream)
    leave(pushed)
    if error != 0:
        destroy_event(event)
    check(error, "cuEventRecord")
    return event


cdef void destroy_event(CudaEvent event) noexcept:
    if event != NULL:
        _driver.event_destroy(event)     # takes effect once the event is complete


# ----------------------------------------------------------------------------------------- the row of _core/runtime
#
# An array represents its producer's pending work in one of these forms:
#   stream_ is set                        the work is on this stream (producer_ may keep the stream object alive)
#   producer_ has __dlpack__              the producer makes any stream wait, if called with the stream's handle
#   producer_ without __dlpack__          an interface dict from before version 3: by convention, the legacy default stream
#   neither                               no work is pending


cdef bint tell_producer(object producer, intptr_t consumer, int device) except -1:
    """Call the producer's ``__dlpack__``, which makes the stream `consumer` wait. Return False if it does not exist."""
    export = getattr(producer, "__dlpack__", None)
    if export is None:
        return False
    cdef bint pushed = enter(consumer, device)     # a default stream is relative to the current context
    # The capsule is discarded: the call is made only for its effect on the stream.
    try:
        try:
            export(stream=consumer, max_version=(1, 0))
        except TypeError:
            export(stream=consumer)
    finally:
        leave(pushed)
    return True


cdef int consumer_ready(Descriptor a, object stream) except -1:
    """Make the consumer's stream wait for the producer's work. None is the legacy default stream, and -1 means no wait."""
    cdef intptr_t asked, consumer = LEGACY_STREAM if stream is None else stream_handle(stream)
    cdef int device = a.device_.device_id
    if consumer == NO_STREAM or not has_device():
        return 0
    check_handle(consumer)
    if a.stream_ != NULL:
        order_streams(<intptr_t> a.stream_, consumer, device)
    elif a.producer_ is not None:
        if capture_of(consumer, device) != 0:     # a wait cannot be captured, see order_streams
            return 0
        # torch rejects the handle of the per-thread stream, so an internal stream relays the wait.
        asked = waiting_stream(device) if consumer == PER_THREAD_STREAM else consumer
        order_streams(asked if tell_producer(a.producer_, asked, device) else LEGACY_STREAM, consumer, device)
    return 0


cdef int host_ready(Descriptor a) except -1:
    """Wait on the host for the producer's stream, not for the complete device."""
    cdef int device = a.device_.device_id
    cdef intptr_t stream
    if (a.stream_ == NULL and a.producer_ is None) or not has_device():
        return 0
    if a.stream_ != NULL:
        return wait_for_stream(<intptr_t> a.stream_, device)
    stream = waiting_stream(device)
    return wait_for_stream(stream if tell_producer(a.producer_, stream, device) else LEGACY_STREAM, device)


cdef int adopt_stream(Descriptor a, object stream) except -1:
    """Make `stream` the stream of a newly imported array, after making it wait for the producer's work.

    The caller can then read the array in stream order on `stream`, and consumers wait for `stream`. If `stream` already is the
    stream of the array, do nothing.
    """
    if a.stream_ != NULL and a.producer_ is stream:
        return 0
    cdef intptr_t handle = stream_handle(stream)
    consumer_ready(a, handle)
    return remember_handle(a, handle, stream)


cdef int remember_handle(Descriptor a, intptr_t handle, object stream) except -1:
    """Record that `a` can be read in stream order on `stream`, which already waits for the producer.

    `handle` is passed separately, because a stream object may return a different handle when it is queried again.
    """
    if handle != NO_STREAM:
        a.stream_ = <void*> handle
        a.producer_ = None if type(stream) is int else stream    # kept alive, because freeing the object destroys the stream
    return 0


cpdef intptr_t safe_stream(Descriptor a) except? -2:
    """Return a stream on which `a` can be read in stream order, or 0 if no work is pending.

    If the producer's stream is unknown, make the legacy default stream wait for the producer, and return this stream.
    """
    if a.stream_ != NULL:
        return <intptr_t> a.stream_
    if a.producer_ is None:
        return 0
    consumer_ready(a, LEGACY_STREAM)
    return LEGACY_STREAM


ALLOCATORS = {"cuda": "alloc", "cuda_managed": "malloc_managed", "cuda_host": "alloc_pinned_memory"}     # in cupy.cuda


cdef int allocate(Descriptor a, Py_ssize_t nbytes, DLDevice device) except -1:
    """Allocate device, managed or pinned memory for `a` with cupy. Device memory is ordered on cupy's current stream."""
    driver_for(device.device_id)      # before the import, because without a device, the error should not be about cupy
    cupy = needed("cupy", "to allocate CUDA memory")
    current = cupy.cuda.Device(device.device_id)
    current.__enter__()      # no `with`, which requires a traceback that a MemoryError may lack
    try:
        memory = getattr(cupy.cuda, ALLOCATORS[TYPE_NAMES[device.device_type]])(nbytes)
        stream = cupy.cuda.get_current_stream()
    finally:
        current.__exit__(None, None, None)
    if device.device_type == kDLCUDAHost:
        device.device_id = 0              # pinned memory is in host memory; the ordinal only selected the context that pins it
    a.data_ = <char*> <size_t> memory.ptr
    a.device_ = device
    a.base_ = memory
    a.block_ = new_block(EXTERNAL, memory, a.data_, nbytes, device)
    if device.device_type == kDLCUDA:     # earlier work on this stream may still use the memory, which is from cupy's pool
        a.stream_ = <void*> (<intptr_t> stream.ptr or LEGACY_STREAM)
        a.producer_ = stream
    return 0


cdef int check_number(Descriptor a) except -1:
    """Raise InterfaceError if an array that was imported through DLPack or Arrow is on another device than the producer states.

    If the machine has one device, the driver is not asked for the device of the memory.
    """
    cdef DLDevice actual
    if not has_device() or (_devices == 1 and a.device_.device_id == 0) or size_of(a) == 0 or _process != getpid():
        return 0
    accepted = 0
    if _devices > 1:
        actual = device_at(<uint64_t> a.data_)
        if actual.device_type != kDLCUDA or actual.device_id == a.device_.device_id:
            return 0
        accepted = actual.device_id
    raise interface_error(
        IN_MESSAGES[a.protocol_], "device_id", a.device_.device_id, f"{accepted}, the device of the memory")


cdef int check_stream(Descriptor a, object stream) except -1:
    """Raise TypeError, InterfaceError or BufferError if `stream` is not a stream of any runtime."""
    if is_queue(stream):
        return 0
    try:
        checked_handle(stream)
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
    cdef intptr_t handle = handle_or_null(stream, 0)
    if handle == NO_STREAM:
        return 0
    export = getattr(a.producer_, "__dlpack__", None)
    if export is None:
        raise BufferError(
            f"stream is {show(stream)} for memory on {device_name(a)}, and the producer does not have __dlpack__, which orders"
            " streams; accepted: None, after the producer's work is done"
        )
    export(stream=handle)
    return 0


cdef int _register() except -1:
    cdef Runtime* row
    for device_type in range(DEVICE_TYPES):
        row = runtime_of(device_type)
        if row.adopt_stream == NULL:      # no other runtime has set it
            row.adopt_stream = order_by_producer
    runtime_of(kDLCPU).adopt_stream = check_stream
    for device_type in (kDLCUDA, kDLCUDAHost, kDLCUDAManaged):
        row = runtime_of(device_type)
        row.host_ready = host_ready
        row.consumer_ready = consumer_ready
        row.adopt_stream = adopt_stream
        row.allocate = allocate
    runtime_of(kDLCUDA).adopt = check_number
    return 0


_register()


def instead_of_cupy():
    """Return why installing cupy would not help, and the call for host memory. Return "" if the machine has a CUDA device."""
    return "" if has_device() else f"{NO_CUDA_DEVICE}. For host memory, call arrayhub.as_numpy(x)"


INSTEAD["cupy"] = instead_of_cupy
