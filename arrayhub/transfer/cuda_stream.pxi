"""CUDA copies on one stream, and the stream functions of the CUDA engine."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport intptr_t, uint64_t

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    Descriptor,
    extent,
    kDLCPU,
    kDLCUDA,
    kDLCUDAHost,
    kDLCUDAManaged,
    same_layout,
    same_shape,
    size_of,
)
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
    has_device,
    enter,
    finish,
    leave,
    order_streams,
    device_at,
    refuse_captured_producer,
    wait_for_stream,
)
from arrayhub.transfer.host_copies cimport put

cdef enum:
    SMALL = 8 << 20             # bytes; below this size, a copy by the driver is the fastest method
    THREADS = 256               # threads per block of the kernel

cpdef enum:
    PER_THREAD = 4              # words that each thread of the kernel copies
    FEW = 24 << 10              # elements; below this number, the host reorders elements faster than a kernel
    PAGEABLE = 64 << 10         # bytes; up to this size, the driver copies from pageable memory in one step
    ONE_PIECE = 512 << 10       # bytes; up to this size, elements are reordered on the host or in pinned memory in one piece
    EXTENT = 32 << 10           # bytes; up to this extent, it is faster to copy a device array with its gaps than by a kernel
    EXTENT_ELEMENTS = 8 << 10   # maximum number of elements in such an extent

SMALL_COPY = SMALL


def at_once(Descriptor near, Descriptor far, stream):
    """Copy a small array to the host if a single copy by the driver suffices. Return whether the array was copied.

    If the elements have gaps or are in a different order, and their extent is small, the driver copies the extent, and the
    host reorders the elements.
    """
    cdef int device = far.device_.device_id
    cdef Py_ssize_t nbytes = near.nbytes
    if not near.flags_ & far.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS):
        return fetch_extent(near, far, stream)
    if nbytes >= SMALL:
        return False
    driver_for(device)
    copy_now(<uint64_t> near.data_, <uint64_t> far.data_, nbytes, copying_stream(far, stream, device), device)
    return True


cdef bint fetch_extent(Descriptor near, Descriptor far, stream) except -1:
    """Copy an array with a small extent to the host, as `at_once` does. Return whether the array was copied."""
    cdef Py_ssize_t low, high
    cdef int device = far.device_.device_id
    cdef Descriptor fetched
    cdef char* memory
    extent(far, &low, &high)
    if near.device_.device_type != kDLCPU or high - low > EXTENT or size_of(far) > EXTENT_ELEMENTS:
        return False
    driver_for(device)
    memory = <char*> PyMem_RawMalloc(high - low)
    if memory == NULL:
        raise MemoryError(f"CUDA: cannot allocate {high - low} bytes of host memory for the extent of the array")
    try:
        copy_now(<uint64_t> memory, <uint64_t> (far.data_ + low), high - low, copying_stream(far, stream, device), device)
        fetched = same_layout(far)
        fetched.data_ = memory - low
        with nogil:
            put(near.data_, near.byte_strides_, fetched)
    finally:
        PyMem_RawFree(memory)
    return True


def copy_straight(Descriptor array, Descriptor out, stream):
    """Copy an array to a contiguous array on a CUDA device if a single copy by the driver suffices.

    A single copy suffices for an array on the same device that is contiguous in the same order, and for a small host array.
    If the host array has few elements in a different order, the host reorders them first, which is faster than a kernel.

    Returns
    -------
    bool
        Whether the array was copied. A copy from the host is complete. A copy on a device is queued, in the order that
        `transfer.cuda.assign` describes.
    """
    cdef int kind = array.device_.device_type, orders = out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS)
    if (not orders or out.device_.device_type != kDLCUDA or array.itemsize_ != out.itemsize_
            or not same_shape(array, out)):
        return False
    if kind == kDLCPU:
        return upload_straight(array, out, stream)
    if kind == kDLCUDA and array.device_.device_id == out.device_.device_id and array.flags_ & orders:
        queue_straight(array, out, stream)
        return True
    return False


cdef bint upload_straight(Descriptor array, Descriptor out, stream) except -1:
    """Copy a small host array, as `copy_straight` does. Return whether the array was copied."""
    cdef bint same_order = array.flags_ & out.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS)
    cdef int device = out.device_.device_id
    cdef Py_ssize_t nbytes = out.nbytes
    cdef intptr_t writing
    cdef char* ordered
    if same_order:
        if nbytes >= SMALL:
            return False
    elif size_of(out) > FEW or nbytes > (PAGEABLE if out.flags_ & C_CONTIGUOUS else ONE_PIECE):
        return False
    driver_for(device)
    writing = copying_stream(out, stream, device)
    if same_order or nbytes == 0:
        copy_now(<uint64_t> out.data_, <uint64_t> array.data_, nbytes, writing, device)
        return True
    ordered = <char*> PyMem_RawMalloc(nbytes)
    if ordered == NULL:
        raise MemoryError(f"CUDA: cannot allocate {nbytes} bytes of host memory for the reordered elements")
    try:
        with nogil:
            put(ordered, out.byte_strides_, array)
        copy_now(<uint64_t> out.data_, <uint64_t> ordered, nbytes, writing, device)
    finally:
        PyMem_RawFree(ordered)
    return True


cdef int queue_straight(Descriptor array, Descriptor out, stream) except -1:
    """Queue the copy of an array on the same device, as `copy_straight` does."""
    cdef int device = out.device_.device_id, error
    cdef Driver* driver = driver_for(device)
    cdef Py_ssize_t nbytes = out.nbytes
    cdef intptr_t writing = copying_stream(out, stream, device)
    cdef bint pushed
    copying_stream(array, writing, device)
    check_handle(writing)
    pushed = enter(writing, device)
    with nogil:
        error = driver.memcpy_async(<uint64_t> out.data_, <uint64_t> array.data_, nbytes, <Stream> writing)
    leave(pushed)
    check(error, "cuMemcpyAsync")
    hold_producers(writing, array, out)
    return 0


def need_device(int device):
    """Raise BufferError if the device does not exist, or if this process cannot use the device."""
    driver_for(device)


def reading_stream(Descriptor array, stream):
    """Return the handle of a stream on which `array` can be read, as described in `runtimes.cuda.copying_stream`.

    Raises the errors of `need_device`.
    """
    driver_for(array.device_.device_id)
    return copying_stream(array, stream, array.device_.device_id)


def hold_producers(intptr_t user, *arrays):
    """Make later work of the arrays' producers wait for the copies that are queued on the stream `user`.

    All arrays must be on the same device. A producer's stream waits for `user`. If the stream of a producer is unknown,
    the host waits for `user` instead. The stream is unknown for DLPack imports, for interface dicts from before version
    3, and for arrays without pending work at the import. If `user` is being captured into a graph, do nothing: the code
    that launches the graph is responsible for the order.
    """
    cdef Descriptor array
    cdef list others = []
    cdef bint unknown = False
    cdef int device = 0
    for each in arrays:
        array = <Descriptor?> each
        device = array.device_.device_id
        if <intptr_t> array.stream_ != user:
            others.append(array)
    if not others or capture_of(user, device) != 0:
        return
    for array in others:
        if array.stream_ == NULL:
            unknown = True
        else:
            order_streams(user, <intptr_t> array.stream_, device)
    if unknown:
        finish(user, device)


def wait(intptr_t stream, int device):
    """Wait for the work that is queued on a stream. Ctrl-C interrupts the wait."""
    finish(stream, device)


def wait_for_piece(intptr_t stream, int device):
    """Wait, with low latency, for queued work of some milliseconds. Interrupts are not handled during the wait."""
    wait_for_stream(stream, device)


def allow_peer(int device, int peer):
    """Enable peer access between two devices if the machine supports it."""
    if device != peer:
        runtime.allow_peer(device, peer)
        runtime.allow_peer(peer, device)


def is_device_reachable(Descriptor array):
    """Return whether devices can access the memory of `array`: pinned, registered or managed host memory."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    if high == low or not has_device():
        return False
    return (device_at(<uint64_t> (array.data_ + low)).device_type in (kDLCUDAHost, kDLCUDAManaged)
            and device_at(<uint64_t> (array.data_ + high - 1)).device_type in (kDLCUDAHost, kDLCUDAManaged))


cdef int move(Driver* driver, size_t kernel, const char* source, char* target, Walk* walk, Py_ssize_t first,
              Py_ssize_t count, Stream stream) noexcept nogil:
    """Launch the kernel for `count` words, starting at word `first`. `source` and `target` point to word 0."""
    cdef uint64_t begin = first, number = count
    cdef void** arguments = [&source, &target, walk, &begin, &number]
    cdef Py_ssize_t blocks = (count + THREADS * PER_THREAD - 1) // (THREADS * PER_THREAD)     # at most 2**31 - 1
    return driver.launch(<void*> kernel, <unsigned int> blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL)


def queue_piece(Route route, bint to_host, Py_ssize_t first, Py_ssize_t count, intptr_t stream, int device,
                size_t kernel, size_t staging):
    """Queue the copy of `count` words, starting at word `first`, between a device and memory that it can access.

    Parameters
    ----------
    route : Route
        Route whose host side is pinned, managed or device memory, or any host memory if the route is straight.
    stream : int
        Stream of `device`, ordered after all work that the copy depends on.
    kernel : int
        Handle of the kernel for the words of the route, or 0 if the route is straight.
    staging : int
        Address of a device buffer of `count` words, allocated in stream order, for the words that the kernel reorders. 0
        if the kernel accesses both sides directly, or if the route is straight.
    """
    cdef Driver* driver = driver_for(device)
    cdef VisitPlan* plan = &route.plan
    cdef Py_ssize_t offset = first * plan.word, nbytes = count * plan.word
    cdef char* run = <char*> staging - offset        # address that word 0 would have in the buffer
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
    """Raise BufferError if a stream is being captured into a graph: such a stream cannot be synchronized."""
    check_handle(stream)
    if capture_of(stream, device) != 0:
        refuse_captured_producer()
