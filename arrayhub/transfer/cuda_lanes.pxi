"""CUDA copies by several threads through pinned memory.

A lane is a thread with its own stream on the device and some slots of pinned memory. Each lane repeats these steps:

1. Claim the next piece of the copy.
2. Queue the transfer of the piece between the device array and a slot.
3. During the transfer, copy an earlier piece between a slot and the host array.

Lanes share only the number of the next piece. Transfers over the bus overlap with the copies and page faults in host
memory, which are spread over several threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec
from posix.unistd cimport getpid

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    HUGE_PAGE,
    PACKED,
    PAGE,
    Descriptor,
    host_readable,
    same_shape,
    size_of,
)
from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    Context,
    CudaEvent,
    Driver,
    Stream,
    check,
    copy_now,
    copying_stream,
    driver_for,
    enter,
    leave,
    primary_context,
)
from arrayhub.transfer.host_copies cimport put

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t* thread, void* attributes, void* (*function)(void*) noexcept nogil, void* argument)
    int pthread_join(pthread_t thread, void** result)

cdef extern from "<semaphore.h>" nogil:
    ctypedef struct sem_t:
        pass
    int sem_init(sem_t* semaphore, int shared, unsigned int value)
    int sem_post(sem_t* semaphore)
    int sem_timedwait(sem_t* semaphore, const timespec* until)
    int sem_destroy(sem_t* semaphore)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK, SIGSEGV, SIGBUS, SIGFPE, SIGILL
    int sigfillset(sigset_t* signals)
    int sigdelset(sigset_t* signals, int number)
    int pthread_sigmask(int how, const sigset_t* signals, sigset_t* before)

cdef extern from *:
    """
    #define next_index(counter) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED)
    #define add_to(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
    #define look_at(number) __atomic_load_n(number, __ATOMIC_RELAXED)
    #define set_to(number, value) __atomic_store_n(number, value, __ATOMIC_RELAXED)
    """
    Py_ssize_t next_index(Py_ssize_t* counter) nogil
    Py_ssize_t add_to(Py_ssize_t* counter, Py_ssize_t n) nogil
    Py_ssize_t look_at(Py_ssize_t* number) nogil
    void set_to(Py_ssize_t* number, Py_ssize_t value) nogil

cdef enum:
    MAX_SLOTS = 8               # maximum number of slots per lane
    DISABLE_TIMING = 2          # CUevent_flags
    PORTABLE = 1                # flag of cuMemHostAlloc: pinned for all contexts
    NON_BLOCKING = 1            # CUstream_flags
    REPORT_EVERY = 20_000_000   # nanoseconds
    SECOND = 1_000_000_000

MOST_SLOTS = MAX_SLOTS


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


def copy_by(Pinned memory, Descriptor near, Descriptor far, stream):
    """Copy a small host array to a contiguous device array through pinned memory.

    Parameters
    ----------
    memory : Pinned
        Buffer of at least ``near.nbytes`` bytes, to which the elements are copied in the order of `far`.
    near, far : USMArray
        Host array and device array of the same shape and item size, not empty.
    stream : object or None
        Stream on which the write to `far` is ordered.
    """
    cdef int device = far.device_.device_id
    cdef Py_ssize_t nbytes = size_of(near) * near.itemsize_
    if (not 0 < nbytes <= memory.nbytes or not same_shape(near, far) or near.itemsize_ != far.itemsize_
            or (near.flags_ | far.flags_) & PACKED or not far.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS)
            or not host_readable(near)):
        raise ValueError(
            "copy_by: the arrays do not match; accepted: a host array and a contiguous device array of the same shape "
            "and item size, not empty, not packed, and not larger than the pinned memory"
        )
    with nogil:
        put(memory.memory, far.byte_strides_, near)
    copy_now(<uint64_t> far.data_, <uint64_t> memory.memory, nbytes, copying_stream(far, stream, device), device)


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
    cdef Walk walk = gather(plan)
    cdef Py_ssize_t nbytes = plan.words * plan.word
    cdef bint pushed
    cdef int error
    if nbytes > memory.nbytes:
        raise ValueError(f"fetch_by: the copy has {nbytes} bytes; accepted: at most {memory.nbytes}")
    if kernel == 0 and not plan.device_runs:
        raise ValueError("fetch_by: kernel is 0; accepted: the handle of a kernel, because the device array has gaps")
    refuse_capture(stream, device)
    pushed = enter(stream, device)
    with nogil:
        if plan.device_runs:
            error = driver.memcpy_async(<uint64_t> memory.memory, <uint64_t> plan.device, nbytes, <Stream> stream)
        else:
            error = move(driver, kernel, plan.device, memory.memory, &walk, 0, plan.words, <Stream> stream)
        if error == 0:
            error = driver.stream_synchronize(<Stream> stream)
        if error == 0:
            empty_run(plan, memory.memory, 0, plan.words)
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
    sem_t ended                 # posted by each lane when it ends
    # Shared by the lanes; accessed atomically.
    Py_ssize_t next_piece
    Py_ssize_t words_done
    Py_ssize_t stopped          # True: lanes do not claim another piece
    Py_ssize_t error            # error code of the driver


# A lane that works on a job.
cdef struct Seat:
    Job* job
    Track* track
    char* memory                # slots of this lane in host memory, of one piece each
    char* staging               # buffer of one piece on the device, for reordered words
    pthread_t thread


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
        Number of slots per lane, at most MOST_SLOTS.
    kernel : int
        Handle of the kernel for the words of the route, or 0 if the device array is contiguous.
    lanes : list of Lane
        Lanes that no other copy uses.
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
    cdef int count = <int> len(lanes), started = 0, running, k
    if count == 0 or piece <= 0 or not 0 < slots <= MAX_SLOTS:
        raise ValueError(f"copy_by_lanes: {count} lanes of {slots} slots of {piece} words; accepted: 1 or more lanes, "
                         f"1 to {MAX_SLOTS} slots and 1 or more words")
    cdef Seat* seats = <Seat*> PyMem_Malloc(count * sizeof(Seat))
    if seats == NULL:
        raise MemoryError()
    job.plan, job.to_host, job.piece, job.slots, job.kernel = &route.plan, to_host, piece, slots, kernel
    job.lead = words_into_page(&route.plan, size)
    job.next_piece = job.words_done = job.stopped = job.error = 0
    sem_init(&job.ended, 0, 0)
    for k in range(count):
        lane = lanes[k]
        seats[k].job, seats[k].track = &job, &lane.track
        seats[k].memory = <char*> memory + k * slots * size
        seats[k].staging = <char*> staging + k * size
    try:
        if threaded:
            with nogil:
                started = start(seats, count)
        if started == 0:          # threads are not requested, or cannot be created
            with nogil:
                work(&seats[0])
        running = started
        while running > 0:
            with nogil:
                running -= ends(&job)
            PyErr_CheckSignals()
            done = look_at(&job.words_done) * route.plan.word
            if report is not None and done != reported:
                reported, done = done, done - reported
                report(done)
    finally:
        set_to(&job.stopped, True)
        with nogil:
            for k in range(started):
                pthread_join(seats[k].thread, NULL)
        sem_destroy(&job.ended)
        PyMem_Free(seats)
    check(<int> job.error, "a copy in pieces")


cdef int start(Seat* seats, int count) noexcept nogil:
    """Start one thread per lane. Stop at the first thread that cannot be created. Return the number of started threads.

    The threads block all signals except those for their own faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL).
    """
    cdef sigset_t every, before
    cdef int* own = [SIGSEGV, SIGBUS, SIGFPE, SIGILL]
    cdef int started = 0, k
    sigfillset(&every)
    for k in range(4):
        sigdelset(&every, own[k])
    pthread_sigmask(SIG_SETMASK, &every, &before)
    while started < count and pthread_create(&seats[started].thread, NULL, run, &seats[started]) == 0:
        started += 1
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    return started


cdef int ends(Job* job) noexcept nogil:
    """Wait up to 20 ms for a lane to end, and return 1 if a lane has ended, else 0."""
    cdef timespec until
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_nsec += REPORT_EVERY
    if until.tv_nsec >= SECOND:
        until.tv_sec += 1
        until.tv_nsec -= SECOND
    return sem_timedwait(&job.ended, &until) == 0


cdef void* run(void* seat) noexcept nogil:
    work(<Seat*> seat)
    sem_post(&(<Seat*> seat).job.ended)
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
    begin = next_index(&job.next_piece) * job.piece - job.lead
    end = min(begin + job.piece, job.plan.words)
    first[0] = max(begin, <Py_ssize_t> 0)
    return max(end - first[0], <Py_ssize_t> 0)


cdef inline char* slot_of(Job* job, Seat* seat, Py_ssize_t turn) noexcept nogil:
    return seat.memory + (turn % job.slots) * job.piece * job.plan.word


cdef int download(Job* job, Track* track, Seat* seat) noexcept nogil:
    """Copy pieces from the device to free slots, and from each slot to the host array when its transfer has ended."""
    cdef VisitPlan* plan = job.plan
    cdef Driver* driver = track.driver
    cdef Walk walk = gather(plan)
    cdef Py_ssize_t firsts[MAX_SLOTS]
    cdef Py_ssize_t counts[MAX_SLOTS]
    cdef Py_ssize_t first = 0, count, queued = 0, arrived = 0
    cdef char* source
    cdef int error
    while True:
        while queued - arrived < job.slots:
            count = take(job, &first)
            if count == 0:
                break
            source = plan.device + first * plan.word
            error = 0
            if not plan.device_runs:
                source = seat.staging
                error = move(driver, job.kernel, plan.device, seat.staging - first * plan.word, &walk, first, count,
                             track.stream)
            if error == 0:
                error = driver.memcpy_async(<uint64_t> slot_of(job, seat, queued), <uint64_t> source, count * plan.word,
                                            track.stream)
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
        empty_run(plan, slot_of(job, seat, arrived), firsts[arrived % job.slots], count)
        add_to(&job.words_done, count)
        arrived += 1


cdef int upload(Job* job, Track* track, Seat* seat) noexcept nogil:
    """Copy pieces from the host array to free slots, and from each slot to the device."""
    cdef VisitPlan* plan = job.plan
    cdef Driver* driver = track.driver
    cdef Walk walk = scatter(plan)
    cdef Py_ssize_t first = 0, count, queued = 0
    cdef char* slot
    cdef char* target
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
        fill_run(plan, slot, first, count)
        target = plan.device + first * plan.word if plan.device_runs else seat.staging
        error = driver.memcpy_async(<uint64_t> target, <uint64_t> slot, count * plan.word, track.stream)
        if error == 0 and not plan.device_runs:
            error = move(driver, job.kernel, seat.staging - first * plan.word, plan.device, &walk, first, count,
                         track.stream)
        if error == 0:
            error = driver.event_record(track.events[queued % job.slots], track.stream)
        if error != 0:
            return error
        queued += 1
        add_to(&job.words_done, count)
