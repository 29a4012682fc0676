"""Copies between host memory and CUDA devices.

The sections are: the route, in which order a copy visits the words of both arrays; copies on one stream, with the kernel that
reorders words; lanes, which are copies by several threads through pinned memory.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, intptr_t, uint64_t
from libc.string cimport memcmp, memcpy

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    HUGE_PAGE,
    PACKED,
    PAGE,
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
from arrayhub._core.layout cimport MAX_NDIM
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    Context,
    CudaEvent,
    Driver,
    Stream,
    capture_of,
    check,
    copy_now,
    copying_stream,
    device_at,
    driver_for,
    enter,
    getpid,
    has_device,
    leave,
    order_streams,
    primary_context,
    refuse_capture,
    wait_interruptibly,
)
from arrayhub.transfer.host_copies cimport check_alike, put
from arrayhub.transfer.loops cimport LARGEST_WORD, Dimension, RowLoop, copy_rows, insert, join, row_loop

# ------------------------------------------------------------------------------------------------------------------- cuda route

# The order in which a copy visits the words of a host array and a device array.
#
# Words are visited in the order of the host's addresses, so that the host accesses its memory sequentially for every
# layout. If the device array has another layout, a kernel reorders the words on the device, which has the higher memory
# bandwidth. The words that cross the bus are therefore contiguous, unless the kernel itself accesses a host array with gaps.

# Shape and strides of source and target for the kernel, the slowest axis first. transfer/cuda_kernel.py declares the
# same struct.
cdef struct Walk:
    int64_t axes
    int64_t shape[MAX_NDIM]
    int64_t source_steps[MAX_NDIM]     # bytes
    int64_t target_steps[MAX_NDIM]


# Parameters of a route, for threads that do not hold the GIL.
cdef struct VisitPlan:
    char* host                         # first word of the host array
    char* device                       # first word of the device array
    Py_ssize_t word                    # bytes: a power of two up to 16
    Py_ssize_t words
    bint host_runs                     # whether the host array is contiguous in the iteration order
    bint device_runs                   # whether the device array is contiguous in the iteration order
    int axes
    int64_t shape[MAX_NDIM]
    int64_t host_steps[MAX_NDIM]       # bytes, not negative
    int64_t device_steps[MAX_NDIM]
    int64_t run_steps[MAX_NDIM]        # bytes; strides of contiguous words in the iteration order


cdef class Route:
    """Iteration order of a copy between two arrays of the same shape and element type.

    Parameters
    ----------
    near, far : Descriptor
        Two arrays, both not empty. `near` determines the order. In a copy between host and device, `near` is the host array.
        Creating a route does not access the memory.

    Attributes
    ----------
    word : int
        Size of a word in bytes.
    words : int
        Number of words.
    host_runs, device_runs : bool
        Whether the host array, or the device array, is contiguous in the iteration order.
    straight : bool
        Whether both arrays are contiguous in the iteration order.
    """
    cdef Descriptor near, far          # keep the memory alive
    cdef VisitPlan plan
    cdef readonly Py_ssize_t word, words
    cdef readonly bint host_runs, device_runs, straight

    def __cinit__(self, Descriptor near, Descriptor far):
        cdef VisitPlan* plan = &self.plan
        cdef Dimension axes[MAX_NDIM + 1]
        cdef Dimension axis
        cdef Py_ssize_t size = near.itemsize_
        cdef size_t bits = LARGEST_WORD
        cdef int k, count = 0
        check_alike(near, far)
        if size_of(near) <= 0:
            raise ValueError("Route: the arrays are empty; accepted: arrays with elements")
        self.near, self.far = near, far
        plan.host, plan.device = near.data_, far.data_
        if near.flags_ & PACKED:
            size = near.nbytes         # packed arrays are always contiguous
        else:
            for k in range(near.nd_):
                axis = Dimension(near.shape_[k], near.byte_strides_[k], far.byte_strides_[k])
                count = insert(axes, count, axis, &plan.host, &plan.device)
        bits |= <size_t> size | <size_t> plan.host | <size_t> plan.device
        for k in range(count):
            bits |= <size_t> axes[k].step | <size_t> axes[k].other
        plan.word = bits & -bits       # largest power of two that divides the size, the addresses and all strides
        axis = Dimension(size // plan.word, plan.word, plan.word)
        if count == 0 or axis.length > 1:
            axes[count] = axis
            count += 1
        plan.axes = join(axes, count)
        if plan.axes > MAX_NDIM:
            raise BufferError(
                f"CUDA: the array has {plan.axes} dimensions that cannot be merged; accepted: at most {MAX_NDIM}. "
                "Call x.copy() first"
            )
        plan.words = 1
        for k in reversed(range(plan.axes)):
            plan.shape[k], plan.host_steps[k], plan.device_steps[k] = axes[k].length, axes[k].step, axes[k].other
            plan.run_steps[k] = plan.words * plan.word
            plan.words *= plan.shape[k]
        plan.host_runs = memcmp(plan.host_steps, plan.run_steps, plan.axes * sizeof(int64_t)) == 0
        plan.device_runs = memcmp(plan.device_steps, plan.run_steps, plan.axes * sizeof(int64_t)) == 0
        self.word, self.words, self.host_runs, self.device_runs = plan.word, plan.words, plan.host_runs, plan.device_runs
        self.straight = plan.host_runs and plan.device_runs


cdef void copy_words(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count, bint into_host) noexcept nogil:
    """Copy `count` words between the host array, starting at word `first`, and contiguous memory at `run`.

    The words of a host array that is not contiguous are copied row by row along the last axis. Complete rows along the
    second-to-last axis are copied in a single call.
    """
    cdef int64_t place[MAX_NDIM]
    cdef const int64_t* shape = plan.shape
    cdef const int64_t* steps = plan.host_steps
    cdef char* memory = plan.host
    cdef RowLoop loop = row_loop(plan.word)
    cdef Py_ssize_t rest = first, here, rows, apart
    cdef int last = plan.axes - 1, k
    if plan.host_runs:
        memory += first * plan.word
        if into_host:
            memcpy(memory, run, count * plan.word)
        else:
            memcpy(run, memory, count * plan.word)
        return
    for k in range(last, -1, -1):
        place[k] = rest % shape[k]
        rest //= shape[k]
        memory += place[k] * steps[k]
    while count > 0:
        here = min(<Py_ssize_t> (shape[last] - place[last]), count)
        k = last - 1 if last > 0 and here == shape[last] else last
        rows = 1 if k == last else min(<Py_ssize_t> (shape[k] - place[k]), count // here)
        apart = 0 if k == last else steps[k]
        if into_host:
            copy_rows(loop, plan.word, memory, run, rows, here, apart, steps[last], here * plan.word, plan.word)
        else:
            copy_rows(loop, plan.word, run, memory, rows, here, here * plan.word, plan.word, apart, steps[last])
        run += rows * here * plan.word
        count -= rows * here
        rows = here if k == last else rows
        memory += rows * steps[k]
        place[k] += rows
        while k > 0 and place[k] == shape[k]:
            memory += steps[k - 1] - shape[k] * steps[k]
            place[k] = 0
            k -= 1
            place[k] += 1


# ------------------------------------------------------------------------------------------------------------------ cuda stream

# CUDA copies on one stream, and the stream functions of the CUDA engine.

cdef enum:
    THREADS = 256               # threads per block of the kernel
    FEW = 24 << 10              # elements; below this number, the host reorders elements faster than a kernel
    EXTENT = 32 << 10           # bytes; up to this extent, it is faster to copy a device array with its gaps than by a kernel
    EXTENT_ELEMENTS = 8 << 10   # maximum number of elements in such an extent

cpdef enum:
    PER_THREAD = 4              # words that each thread of the kernel copies
    SMALL_COPY = 8 << 20        # bytes; below this size, a copy by the driver is the fastest method
    PAGEABLE = 64 << 10         # bytes; up to this size, the driver copies from pageable memory in one step
    ONE_PIECE = 1 << 20         # bytes; up to this size, elements are reordered on the host or in pinned memory in one piece
    GATHERED = 512 << 10        # elements; up to this number, the host gathers elements with gaps in one piece
    # bytes to copy on one stream between checks for signals and reports: about 5 ms at 50 GB/s
    UNINTERRUPTED_COPY = 256 << 20
    MAX_SLOTS = 8               # maximum number of slots per lane


def at_once(Descriptor near, Descriptor far, stream):
    """Copy a small array to the host if a single copy by the driver suffices. Return whether the array was copied.

    If the elements have gaps or are in a different order, and their extent is small, the driver copies the extent, and the
    host reorders the elements.
    """
    cdef int device = far.device_.device_id
    cdef Py_ssize_t nbytes = near.nbytes
    if not near.flags_ & far.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS):
        return fetch_extent(near, far, stream)
    if nbytes >= SMALL_COPY:
        return False
    driver_for(device)
    copy_now(<uint64_t> near.data_, <uint64_t> far.data_, nbytes, copying_stream(far, stream), device)
    return True


cdef bint fetch_extent(Descriptor near, Descriptor far, stream) except -1:
    """Copy an array with a small extent to the host, as `at_once` does. Return whether the array was copied."""
    cdef Py_ssize_t low, high
    cdef int device = far.device_.device_id
    cdef Descriptor fetched
    cdef bytes memory
    extent(far, &low, &high)
    if near.device_.device_type != kDLCPU or high - low > EXTENT or size_of(far) > EXTENT_ELEMENTS:
        return False
    driver_for(device)
    memory = PyBytes_FromStringAndSize(NULL, high - low)
    fetched = same_layout(far)
    fetched.data_ = PyBytes_AS_STRING(memory) - low
    copy_now(
        <uint64_t> PyBytes_AS_STRING(memory), <uint64_t> (far.data_ + low), high - low, copying_stream(far, stream),
        device)
    with nogil:
        put(near.data_, near.byte_strides_, fetched)
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
    if same_order:
        if nbytes >= SMALL_COPY:
            return False
    elif size_of(out) > FEW or nbytes > ONE_PIECE:
        return False
    driver_for(device)
    if same_order or nbytes == 0:
        copy_now(<uint64_t> out.data_, <uint64_t> array.data_, nbytes, copying_stream(out, stream), device)
    else:
        copy_by(None, array, out, stream)
    return True


cdef int queue_straight(Descriptor array, Descriptor out, stream) except -1:
    """Queue the copy of an array on the same device, as `copy_straight` does."""
    cdef int device = out.device_.device_id, error
    cdef Driver* driver = driver_for(device)
    cdef Py_ssize_t nbytes = out.nbytes
    cdef intptr_t writing = copying_stream(out, stream)
    cdef bint pushed
    copying_stream(array, writing)
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


def hold_producers(intptr_t user, Descriptor array, Descriptor out):
    """Make later work of the arrays' producers wait for the copies that are queued on the stream `user`.

    Both arrays must be on the same device. A producer's stream waits for `user`. If the stream of a producer is unknown,
    the host waits for `user` instead. The stream is unknown for DLPack imports, for interface dicts from before version
    3, and for arrays without pending work at the import. If `user` is being captured into a graph, do nothing: the code
    that launches the graph is responsible for the order.
    """
    cdef int device = out.device_.device_id
    cdef intptr_t reading = <intptr_t> array.stream_, writing = <intptr_t> out.stream_
    if (reading == user and writing == user) or capture_of(user, device) != 0:
        return
    if reading != 0:
        order_streams(user, reading, device)      # does nothing for the same stream
    if writing != 0:
        order_streams(user, writing, device)
    if reading == 0 or writing == 0:
        wait_interruptibly(user, device)


def is_device_reachable(Descriptor array):
    """Return whether devices can access the memory of `array`: pinned, registered or managed host memory."""
    cdef Py_ssize_t low, high
    extent(array, &low, &high)
    if high == low or not has_device():
        return False
    return (device_at(<uint64_t> (array.data_ + low)).device_type in (kDLCUDAHost, kDLCUDAManaged)
            and device_at(<uint64_t> (array.data_ + high - 1)).device_type in (kDLCUDAHost, kDLCUDAManaged))


cdef int move(Driver* driver, size_t kernel, const VisitPlan* plan, const char* source, const int64_t* source_steps,
              char* target, const int64_t* target_steps, Py_ssize_t first, Py_ssize_t count,
              Stream stream) noexcept nogil:
    """Launch the kernel for `count` words, starting at word `first`. `source` and `target` point to word 0."""
    cdef uint64_t begin = first, number = count
    cdef Walk walk
    cdef void** arguments = [&source, &target, &walk, &begin, &number]
    walk.axes = plan.axes
    memcpy(walk.shape, plan.shape, sizeof(plan.shape))
    memcpy(walk.source_steps, source_steps, sizeof(plan.shape))
    memcpy(walk.target_steps, target_steps, sizeof(plan.shape))
    cdef Py_ssize_t blocks = (count + THREADS * PER_THREAD - 1) // (THREADS * PER_THREAD)     # at most 2**31 - 1
    return driver.launch(<void*> kernel, <unsigned int> blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL)


cdef int cross(Driver* driver, size_t kernel, VisitPlan* plan, bint to_host, Py_ssize_t first, Py_ssize_t count, char* run,
               char* staging, Stream stream) noexcept nogil:
    """Queue the copy of `count` words, starting at word `first`, between contiguous memory at `run` and the device array.

    If the device array is not contiguous in the iteration order, the kernel stores or reads the contiguous words in `staging`,
    a buffer on the device, or directly in `run` if `staging` is NULL.
    """
    cdef Py_ssize_t offset = first * plan.word
    cdef char* words = plan.device + offset if plan.device_runs else run if staging == NULL else staging
    cdef int error = 0
    if to_host and not plan.device_runs:
        error = move(driver, kernel, plan, plan.device, plan.device_steps, words - offset, plan.run_steps, first, count, stream)
    if error == 0 and words != run:
        error = driver.memcpy_async(<uint64_t> (run if to_host else words), <uint64_t> (words if to_host else run),
                                    count * plan.word, stream)
    if error == 0 and not to_host and not plan.device_runs:
        error = move(driver, kernel, plan, words - offset, plan.run_steps, plan.device, plan.device_steps, first, count, stream)
    return error


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
    cdef Stream queue = <Stream> stream
    cdef bint pushed = enter(stream, device)
    cdef int error
    with nogil:
        if plan.host_runs:
            error = cross(driver, kernel, plan, to_host, first, count, plan.host + first * plan.word, <char*> staging, queue)
        elif to_host:
            error = move(driver, kernel, plan, plan.device, plan.device_steps, plan.host, plan.host_steps, first, count, queue)
        else:
            error = move(driver, kernel, plan, plan.host, plan.host_steps, plan.device, plan.device_steps, first, count, queue)
    leave(pushed)
    check(error, "copying a piece")


# ------------------------------------------------------------------------------------------------------------------- cuda lanes

# CUDA copies by several threads through pinned memory.
#
# A lane is a thread with its own stream on the device and some slots of pinned memory. Each lane repeats these steps:
#
# 1. Claim the next piece of the copy.
# 2. Queue the transfer of the piece between the device array and a slot.
# 3. During the transfer, copy an earlier piece between a slot and the host array.
#
# Lanes share only the number of the next piece. Transfers over the bus overlap with the copies and page faults in host
# memory, which are spread over several threads.

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    int WAIT_LOCK, NOWAIT_LOCK, PY_LOCK_ACQUIRED
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    int PyThread_acquire_lock(PyThread_type_lock lock, int mode)
    int PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int interruptible)
    void PyThread_release_lock(PyThread_type_lock lock)

cdef extern from "platform.h" nogil:
    ctypedef unsigned long arrayhub_thread
    int arrayhub_start_thread(arrayhub_thread* thread, void* (*function)(void*) noexcept nogil, void* argument)
    void arrayhub_join_thread(arrayhub_thread thread)

cdef extern from *:
    """
    #define add_to(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
    #define look_at(number) __atomic_load_n(number, __ATOMIC_RELAXED)
    #define set_to(number, value) __atomic_store_n(number, value, __ATOMIC_RELAXED)
    """
    Py_ssize_t add_to(Py_ssize_t* counter, Py_ssize_t n) nogil
    Py_ssize_t look_at(Py_ssize_t* number) nogil
    void set_to(Py_ssize_t* number, Py_ssize_t value) nogil

cdef enum:
    DISABLE_TIMING = 2          # CUevent_flags
    PORTABLE = 1                # flag of cuMemHostAlloc: pinned for all contexts
    NON_BLOCKING = 1            # CUstream_flags
    REPORT_EVERY = 20_000       # microseconds


cdef class Pinned:
    """Page-locked host memory, which devices can access directly.

    Attributes
    ----------
    address : int
    nbytes : int
        Size in bytes.
    """
    cdef char* memory
    cdef readonly Py_ssize_t nbytes
    cdef Context context
    cdef Driver* driver
    cdef int process               # ID of the allocating process: a forked child must not free the memory

    def __cinit__(self, Py_ssize_t nbytes, int device):
        cdef bint pushed
        cdef int error
        cdef void* memory = NULL
        self.driver = driver_for(device)
        self.context = primary_context(device)
        self.process = getpid()
        pushed = enter(LEGACY_STREAM, device)
        with nogil:
            error = self.driver.host_alloc(&memory, nbytes, PORTABLE)
        leave(pushed)
        check(error, f"cuMemHostAlloc({nbytes})")
        self.memory, self.nbytes = <char*> memory, nbytes

    @property
    def address(self):
        return <size_t> self.memory

    def __dealloc__(self):
        if self.memory != NULL and self.process == getpid() and self.driver.context_push(self.context) == 0:
            self.driver.host_free(self.memory)
            leave(True)


def copy_by(Pinned memory or None, Descriptor near, Descriptor far, stream):
    """Copy a small host array to a contiguous device array through a buffer that has the elements in the order of `far`.

    Parameters
    ----------
    memory : Pinned or None
        Buffer of at least ``near.nbytes`` bytes. None: new pageable memory.
    near, far : USMArray
        Host array and device array of the same shape and item size, not empty and not packed.
    stream : object or None
        Stream on which the write to `far` is ordered.
    """
    cdef int device = far.device_.device_id
    cdef Py_ssize_t nbytes = size_of(near) * near.itemsize_
    cdef bytes pageable = PyBytes_FromStringAndSize(NULL, nbytes) if memory is None else None
    cdef char* ordered = PyBytes_AS_STRING(pageable) if memory is None else memory.memory
    with nogil:
        put(ordered, far.byte_strides_, near)
    copy_now(<uint64_t> far.data_, <uint64_t> ordered, nbytes, copying_stream(far, stream), device)


def fetch_by(Pinned memory, Route route, intptr_t stream, int device, size_t kernel):
    """Copy a small device array to a host array through pinned memory, in which a kernel stores the reordered words.

    Parameters
    ----------
    memory : Pinned
        Buffer of at least ``route.words * route.word`` bytes.
    route : Route
    stream : int
        Stream of `device`, ordered after all work that the copy depends on.
    kernel : int
        Handle of the kernel for the words of the route. Ignored if the device array is contiguous in the iteration order.
    """
    cdef Driver* driver = driver_for(device)
    cdef VisitPlan* plan = &route.plan
    cdef bint pushed
    cdef int error
    refuse_capture(stream, device)
    pushed = enter(stream, device)
    with nogil:
        error = cross(driver, kernel, plan, True, 0, plan.words, memory.memory, NULL, <Stream> stream)
        if error == 0:
            error = driver.stream_synchronize(<Stream> stream)
        if error == 0:
            copy_words(plan, memory.memory, 0, plan.words, True)
    leave(pushed)
    check(error, "a copy through pinned memory")


# Resources of a lane on its device.
cdef struct Track:
    Driver* driver
    Context context
    Stream stream
    CudaEvent events[MAX_SLOTS]     # one per slot


cdef class Lane:
    """Stream on a device, with an event for each slot. Only one copy at a time may use a lane."""
    cdef Track track
    cdef int process               # ID of the creating process, as in `Pinned`

    def __cinit__(self, int device):
        cdef Track* track = &self.track
        cdef int error, k
        track.driver = driver_for(device)
        track.context = primary_context(device)
        self.process = getpid()
        check(track.driver.context_push(track.context), "cuCtxPushCurrent")
        error = track.driver.stream_create(&track.stream, NON_BLOCKING)
        for k in range(MAX_SLOTS):
            if error == 0:
                error = track.driver.event_create(&track.events[k], DISABLE_TIMING)
        leave(True)
        check(error, "cuStreamCreate")

    def __dealloc__(self):
        cdef Track* track = &self.track
        cdef int k
        if track.driver == NULL or self.process != getpid() or track.driver.context_push(track.context) != 0:
            return
        for k in range(MAX_SLOTS):
            if track.events[k] != NULL:
                track.driver.event_destroy(track.events[k])
        if track.stream != NULL:
            track.driver.stream_destroy(track.stream)
        leave(True)


# A copy, split into pieces that the lanes claim one by one.
cdef struct Job:
    VisitPlan* plan
    bint to_host                # direction: True for device to host
    Py_ssize_t piece            # words per piece
    Py_ssize_t lead             # words that the first piece lacks, so that all other pieces start on a page boundary
    int slots                   # slots per lane
    size_t kernel               # handle of the kernel, or 0 if the device array is contiguous
    PyThread_type_lock ended    # released when no lane works
    # Shared by the lanes; accessed atomically.
    Py_ssize_t next_piece
    Py_ssize_t words_done
    Py_ssize_t stopped          # True: lanes do not claim another piece
    Py_ssize_t error            # error code of the driver
    Py_ssize_t working          # number of lanes that work, plus one while lanes are started


# A lane that works on a job.
cdef struct Seat:
    Job* job
    Track* track
    char* memory                # slots of this lane in host memory, of one piece each
    char* staging               # buffer of one piece on the device, for reordered words
    arrayhub_thread thread


def copy_by_lanes(Route route, bint to_host, Py_ssize_t piece, int slots, size_t kernel, list lanes, size_t memory,
                  size_t staging, report, bint threaded):
    """Copy between any host memory and a device, in pieces that several threads claim one by one.

    While the lanes work, this thread runs only `report` and signal handlers. An exception in these functions, such as a
    KeyboardInterrupt, ends the copy, and is raised after all lanes have ended.

    Parameters
    ----------
    route : Route
    to_host : bool
        Direction: True for device to host.
    piece : int
        Number of words per piece.
    slots : int
        Number of slots per lane, at most MAX_SLOTS.
    kernel : int
        Handle of the kernel for the words of the route, or 0 if the device array is contiguous.
    lanes : list of Lane
        One or more lanes that no other copy uses.
    memory : int
        Address of the slots of all lanes in host memory, preferably pinned.
    staging : int
        Address of a device buffer of one piece per lane. Ignored if the device array is contiguous.
    report : callable or None
        Called about every 20 ms with the bytes copied since the last call.
    threaded : bool
        If False, the calling thread does the work of one lane, and does not handle signals.
    """
    cdef Job job
    cdef Lane lane
    cdef Py_ssize_t size = piece * route.plan.word, reported = 0, done
    cdef int count = <int> len(lanes), started = 0, k
    cdef bint running = False
    cdef Seat* seats = <Seat*> PyMem_Malloc(count * sizeof(Seat))
    if seats == NULL:
        raise MemoryError()
    job.ended = PyThread_allocate_lock()
    if job.ended == NULL:
        PyMem_Free(seats)
        raise MemoryError()
    PyThread_acquire_lock(job.ended, WAIT_LOCK)
    job.plan, job.to_host, job.piece, job.slots, job.kernel = &route.plan, to_host, piece, slots, kernel
    job.lead = words_into_page(&route.plan, size)
    job.next_piece = job.words_done = job.stopped = job.error = 0
    job.working = 1
    for k in range(count):
        lane = lanes[k]
        seats[k].job, seats[k].track = &job, &lane.track
        seats[k].memory = <char*> memory + k * slots * size
        seats[k].staging = <char*> staging + k * size
    try:
        if threaded:
            with nogil:
                started = start(seats, count)
            running = started > 0
        if not running:          # threads are not requested, or cannot be created
            with nogil:
                work(&seats[0])
        while running:
            with nogil:       # wait up to 20 ms for all lanes to end; a signal ends the wait
                running = PyThread_acquire_lock_timed(job.ended, REPORT_EVERY, True) != PY_LOCK_ACQUIRED
            PyErr_CheckSignals()
            done = look_at(&job.words_done) * route.plan.word
            if report is not None and done != reported:
                reported, done = done, done - reported
                report(done)
    finally:
        set_to(&job.stopped, True)
        with nogil:
            if running:
                PyThread_acquire_lock(job.ended, WAIT_LOCK)
            for k in range(started):
                arrayhub_join_thread(seats[k].thread)
        PyThread_acquire_lock(job.ended, NOWAIT_LOCK)
        PyThread_release_lock(job.ended)       # a lock must not be held when it is freed
        PyThread_free_lock(job.ended)
        PyMem_Free(seats)
    check(<int> job.error, "a copy in pieces")


cdef int start(Seat* seats, int count) noexcept nogil:
    """Start one thread per lane. Stop at the first thread that cannot be created. Return the number of started threads."""
    cdef int started = 0
    while started < count:
        add_to(&seats.job.working, 1)
        if arrayhub_start_thread(&seats[started].thread, run, &seats[started]) != 0:
            add_to(&seats.job.working, -1)
            break
        started += 1
    leave_job(seats.job)
    return started


cdef void leave_job(Job* job) noexcept nogil:
    if add_to(&job.working, -1) == 1:
        PyThread_release_lock(job.ended)


cdef void* run(void* seat) noexcept nogil:
    work(<Seat*> seat)
    leave_job((<Seat*> seat).job)
    return NULL


cdef void work(Seat* seat) noexcept nogil:
    """Claim and copy pieces until all pieces are claimed."""
    cdef Job* job = seat.job
    cdef Track* track = seat.track
    cdef int error = track.driver.context_push(track.context)
    if error == 0:
        error = download(job, track, seat) if job.to_host else upload(job, track, seat)
        if error != 0:                   # queued transfers must end before another copy uses the slots
            track.driver.stream_synchronize(track.stream)
        leave(True)
    if error != 0:
        set_to(&job.error, error)
        set_to(&job.stopped, True)


cdef Py_ssize_t words_into_page(VisitPlan* plan, Py_ssize_t piece) noexcept nogil:
    """Return the number of words between the last page boundary and the start of the host array.

    Return 0 if the host array is not contiguous. Pieces start on page boundaries, because a new page that two lanes touch
    at the same time is cleared twice.
    """
    cdef size_t page = HUGE_PAGE if piece % HUGE_PAGE == 0 else PAGE
    return <Py_ssize_t> (<size_t> plan.host % page) // plan.word if plan.host_runs else 0


cdef Py_ssize_t take(Job* job, Py_ssize_t* first) noexcept nogil:
    """Claim the next piece. Return its number of words, or 0 if all pieces are claimed, and set `first`."""
    cdef Py_ssize_t begin, end
    if look_at(&job.stopped):
        return 0
    begin = add_to(&job.next_piece, 1) * job.piece - job.lead
    end = min(begin + job.piece, job.plan.words)
    first[0] = max(begin, <Py_ssize_t> 0)
    return max(end - first[0], <Py_ssize_t> 0)


cdef inline char* slot_of(Job* job, Seat* seat, Py_ssize_t turn) noexcept nogil:
    return seat.memory + (turn % job.slots) * job.piece * job.plan.word


cdef int download(Job* job, Track* track, Seat* seat) noexcept nogil:
    """Copy pieces from the device to free slots, and from each slot to the host array when its transfer has ended."""
    cdef VisitPlan* plan = job.plan
    cdef Driver* driver = track.driver
    cdef Py_ssize_t firsts[MAX_SLOTS]
    cdef Py_ssize_t counts[MAX_SLOTS]
    cdef Py_ssize_t first = 0, count, queued = 0, arrived = 0
    cdef int error
    while True:
        while queued - arrived < job.slots:
            count = take(job, &first)
            if count == 0:
                break
            error = cross(driver, job.kernel, plan, True, first, count, slot_of(job, seat, queued), seat.staging, track.stream)
            if error == 0:
                error = driver.event_record(track.events[queued % job.slots], track.stream)
            if error != 0:
                return error
            firsts[queued % job.slots], counts[queued % job.slots] = first, count
            queued += 1
        if queued == arrived:
            return 0
        error = driver.event_synchronize(track.events[arrived % job.slots])
        if error != 0:
            return error
        count = counts[arrived % job.slots]
        copy_words(plan, slot_of(job, seat, arrived), firsts[arrived % job.slots], count, True)
        add_to(&job.words_done, count)
        arrived += 1


cdef int upload(Job* job, Track* track, Seat* seat) noexcept nogil:
    """Copy pieces from the host array to free slots, and from each slot to the device."""
    cdef VisitPlan* plan = job.plan
    cdef Driver* driver = track.driver
    cdef Py_ssize_t first = 0, count, queued = 0
    cdef char* slot
    cdef int error
    while True:
        count = take(job, &first)
        if count == 0:
            return driver.stream_synchronize(track.stream)
        slot = slot_of(job, seat, queued)
        if queued >= job.slots:
            error = driver.event_synchronize(track.events[queued % job.slots])
            if error != 0:
                return error
        copy_words(plan, slot, first, count, False)
        error = cross(driver, job.kernel, plan, False, first, count, slot, seat.staging, track.stream)
        if error == 0:
            error = driver.event_record(track.events[queued % job.slots], track.stream)
        if error != 0:
            return error
        queued += 1
        add_to(&job.words_done, count)
