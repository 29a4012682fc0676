"""CUDA copies on one stream: small ones at once, large ones in pieces; and what the engine asks of streams."""

from libc.stdint cimport intptr_t, uint64_t

from arrayhub._core.descriptor cimport C_CONTIGUOUS, F_CONTIGUOUS, Descriptor, extent
from arrayhub._core.device cimport kDLCUDAHost, kDLCUDAManaged
from arrayhub.runtimes cimport cuda as runtime
from arrayhub.runtimes.cuda cimport (
    Driver,
    Stream,
    capture_of,
    check,
    check_handle,
    copy_now,
    copying_stream,
    driver_for,
    driver_present,
    enter,
    finish,
    leave,
    order_streams,
    device_at,
    refuse_captured_producer,
    wait_for_stream,
    waiting_stream,
)
from arrayhub.transfer.cuda_route cimport Route, VisitPlan, Walk, device_to_host, gather, host_to_device, scatter

cdef enum:
    SMALL = 8 << 20             # bytes: below it the driver's own copy is as fast as any
    THREADS = 256               # of a block of the kernel

cpdef enum:
    PER_THREAD = 4              # words

SMALL_COPY = SMALL


def at_once(Descriptor near, Descriptor far, stream, bint to_host):
    """Copy a small array whose elements lie in the same order on both sides, and return True; else do nothing."""
    cdef int device = far.device_.device_id
    cdef Py_ssize_t nbytes = near.nbytes
    if nbytes >= SMALL or not near.flags_ & far.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS):
        return False
    driver_for(device)
    if to_host:
        copy_now(<uint64_t> near.data_, <uint64_t> far.data_, nbytes, copying_stream(far, stream, device), device)
    else:
        copy_now(<uint64_t> far.data_, <uint64_t> near.data_, nbytes, copying_stream(far, stream, device), device)
    return True


def need_device(int device):
    """Raise BufferError where there is no such device, or this process may not use it."""
    driver_for(device)


def reading_stream(Descriptor array, stream):
    """Return a stream, as a number, in whose order `array` may be read: `stream` once it waits for the producer, else the
    producer's own, else one of this package's."""
    return copying_stream(array, stream, array.device_.device_id)


def own_stream(int device):
    """Return this package's stream on a device, as a number. No default stream waits for it."""
    return waiting_stream(device)


def order_behind(intptr_t earlier, intptr_t later, int device):
    """Make one stream wait for the work that is queued on another now."""
    order_streams(earlier, later, device)


def hold_producer(Descriptor array, intptr_t reader):
    """Let the producer write or free the array only after what is queued on `reader`, which reads it.

    Its stream is made to wait. Where it named none (by DLPack, by an interface dict from before version 3, or because
    nothing was in flight when the array came in) nobody can be told, so the host waits for `reader`. In a captured graph
    whoever launches it sees to that.
    """
    cdef int device = array.device_.device_id
    if capture_of(reader, device) != 0:
        return
    if array.stream_ != NULL:
        order_streams(reader, <intptr_t> array.stream_, device)
    else:
        finish(reader, device)


def wait(intptr_t stream, int device):
    """Return when the work queued on a stream now is done, however long that takes; Ctrl-C ends the wait."""
    finish(stream, device)


def wait_for_piece(intptr_t stream, int device):
    """The same for some milliseconds of work: as soon as possible, and heedless of interrupts."""
    wait_for_stream(stream, device)


def allow_peer(int device, int peer):
    """Let two devices reach each other's memory, where the machine can."""
    if device != peer:
        runtime.allow_peer(device, peer)
        runtime.allow_peer(peer, device)


def is_device_reachable(Descriptor array):
    """Whether the driver knows this host memory, from the first byte to the last: pinned, registered or managed."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    if high == low or not driver_present():
        return False
    return (device_at(<uint64_t> (array.data_ + low)).device_type in (kDLCUDAHost, kDLCUDAManaged)
            and device_at(<uint64_t> (array.data_ + high - 1)).device_type in (kDLCUDAHost, kDLCUDAManaged))


cdef int move(Driver* driver, size_t kernel, const char* source, char* target, Walk* walk, Py_ssize_t first,
              Py_ssize_t count, Stream stream) noexcept nogil:
    """Queue the kernel on `count` words from the `first` of a walk. The memory's pointers are those of its word 0."""
    cdef uint64_t begin = first, number = count
    cdef void** arguments = [&source, &target, walk, &begin, &number]
    cdef Py_ssize_t blocks = (count + THREADS * PER_THREAD - 1) // (THREADS * PER_THREAD)     # the driver takes 2**31 - 1
    return driver.launch(<void*> kernel, <unsigned int> blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL)


def queue_piece(Route route, bint to_host, Py_ssize_t first, Py_ssize_t count, intptr_t stream, int device,
                size_t kernel, size_t staging):
    """Queue the copy of `count` words from the `first`, between a device and memory that it reaches itself.

    Parameters
    ----------
    route : Route
        Its host side is pinned or managed memory, or that of a device; or any host memory where both sides lie in one piece.
    stream : int
        On `device`, and ordered behind whatever must be done before.
    kernel : int
        The handle of the kernel for the route's words; 0 where both sides lie in one piece.
    staging : int
        The address of `count` words on the device, free in the order of the stream, where words that the kernel has sorted
        wait to cross in one piece; 0 where the kernel reaches both sides itself, or none is needed.
    """
    cdef Driver* driver = driver_for(device)
    cdef VisitPlan* plan = &route.plan
    cdef Py_ssize_t offset = first * plan.word, nbytes = count * plan.word
    cdef char* run = <char*> staging - offset        # where word 0 would lie
    cdef uint64_t host = <uint64_t> (plan.host + offset), far = <uint64_t> (plan.device + offset)
    cdef Stream queue = <Stream> stream
    cdef Walk walk
    cdef bint pushed
    cdef int error
    check_handle(stream)
    pushed = enter(stream, device)
    with nogil:
        if plan.host_runs and plan.device_runs:
            error = driver.memcpy_async(host, far, nbytes, queue) if to_host else driver.memcpy_async(
                far, host, nbytes, queue)
        elif staging == 0:
            walk = device_to_host(plan) if to_host else host_to_device(plan)
            error = (move(driver, kernel, plan.device, plan.host, &walk, first, count, queue) if to_host
                     else move(driver, kernel, plan.host, plan.device, &walk, first, count, queue))
        elif to_host:
            walk = gather(plan)
            error = move(driver, kernel, plan.device, run, &walk, first, count, queue)
            if error == 0:
                error = driver.memcpy_async(host, staging, nbytes, queue)
        else:
            walk = scatter(plan)
            error = driver.memcpy_async(staging, host, nbytes, queue)
            if error == 0:
                error = move(driver, kernel, run, plan.device, &walk, first, count, queue)
    leave(pushed)
    check(error, "copying a piece")


def refuse_capture(intptr_t stream, int device):
    """Raise BufferError where a stream is being captured into a graph, and so cannot be waited for."""
    check_handle(stream)
    if capture_of(stream, device) != 0:
        refuse_captured_producer()
