"""CUDA copies by several threads side by side, through pinned memory.

A lane is a thread with a stream of its own on the device and a few slots of pinned memory. It takes the next piece that
nobody has taken, lets the device copy it between its array and a slot, and meanwhile copies an earlier piece between a
slot and the host's array. Lanes share nothing but the number of the next piece. So the bus is busy while several
processors fill host memory and take its page faults, which is what a single copy lacks.
"""

from libc.stdint cimport uint64_t
from posix.unistd cimport getpid, usleep

from arrayhub.runtimes.cuda cimport (
    LEGACY_STREAM,
    Context,
    Driver,
    Event,
    Stream,
    check,
    driver_for,
    enter,
    leave,
    primary_context,
)
from arrayhub.transfer.cuda_route cimport Route, Walk
from arrayhub.transfer.cuda_stream cimport move

cdef extern from *:
    """
    #define take_next(counter) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED)
    #define add_to(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
    #define look_at(flag) __atomic_load_n(flag, __ATOMIC_RELAXED)
    #define set_to(flag, value) __atomic_store_n(flag, value, __ATOMIC_RELAXED)
    """
    Py_ssize_t take_next(Py_ssize_t* counter) nogil
    Py_ssize_t add_to(Py_ssize_t* counter, Py_ssize_t n) nogil
    Py_ssize_t look_at(Py_ssize_t* flag) nogil
    int look_at_int "look_at" (int* flag) nogil
    void set_to(int* flag, int value) nogil

cdef enum:
    MAX_SLOTS = 8               # of a lane
    BLOCKING_SYNC = 1           # CUevent_flags: who waits sleeps
    DISABLE_TIMING = 2
    PORTABLE = 1                # cuMemHostAlloc: pinned for all contexts
    NON_BLOCKING = 1            # CUstream_flags

MOST_SLOTS = MAX_SLOTS


cdef class Pinned:
    """Page-locked host memory, which devices copy from and to by themselves.

    Attributes
    ----------
    address, nbytes : int
        Where it lies, and its size in bytes.
    """
    cdef char* memory
    cdef readonly Py_ssize_t nbytes
    cdef Context context
    cdef Driver* driver
    cdef int process               # the memory of a parent is not a child's to free

    def __init__(self, Py_ssize_t nbytes, int device):
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


cdef class Lane:
    """A stream on a device, with an event for each of its slots."""
    cdef Driver* driver
    cdef Context context
    cdef Stream stream
    cdef Event events[MAX_SLOTS]
    cdef int process

    def __init__(self, int device):
        cdef int error, k
        self.driver = driver_for(device)
        self.context = primary_context(device)
        self.process = getpid()
        check(self.driver.context_push(self.context), "cuCtxPushCurrent")
        error = self.driver.stream_create(&self.stream, NON_BLOCKING)
        for k in range(MAX_SLOTS):
            if error == 0:
                error = self.driver.event_create(&self.events[k], BLOCKING_SYNC | DISABLE_TIMING)
        leave(True)
        check(error, "cuStreamCreate")

    def __dealloc__(self):
        cdef int k
        if self.driver == NULL or self.process != getpid() or self.driver.context_push(self.context) != 0:
            return
        for k in range(MAX_SLOTS):
            if self.events[k] != NULL:
                self.driver.event_destroy(self.events[k])
        if self.stream != NULL:
            self.driver.stream_destroy(self.stream)
        leave(True)


cdef class Pieces:
    """One copy, cut into pieces that lanes take in turn.

    Parameters
    ----------
    route : Route
    to_host : bool
        From the device to the host, or the reverse.
    piece : int
        Words in one piece.
    slots : int
        Slots of a lane.
    kernel : int
        The handle of the kernel for the route's words; 0 where the device's side lies in one piece.
    """
    cdef Route route
    cdef bint to_host
    cdef Py_ssize_t piece, next_piece, words_done
    cdef int slots
    cdef size_t kernel
    cdef int stopped                # no piece is begun any more
    cdef int error                  # of the driver, the first one
    cdef int running                # lanes; changed with the GIL held

    def __init__(self, Route route not None, bint to_host, Py_ssize_t piece, int slots, size_t kernel):
        self.route, self.to_host, self.piece, self.slots, self.kernel = route, to_host, piece, slots, kernel

    @property
    def nbytes_done(self):
        """Bytes copied so far."""
        return look_at(&self.words_done) * self.route.word

    def run(self, Lane lane not None, size_t memory, size_t staging):
        """Copy pieces until none is left.

        Parameters
        ----------
        lane : Lane
            Nobody else's meanwhile.
        memory : int
            The address of the lane's slots, each of one piece, in host memory.
        staging : int
            The address of one piece on the device; not used where the device's side lies in one piece.
        """
        cdef Route route = self.route
        if self.stopped:
            return
        self.running += 1
        with nogil:
            self.work(route, lane, <char*> memory, <char*> staging)
        self.running -= 1

    def run_all(self, submit, list lanes, report, wait_for):
        """Run several lanes in threads of a pool, and return when they are done; raise what went wrong.

        An exception, Ctrl-C for one, ends the copy: it comes out of here once no lane is at work any more. Nothing between
        the first lane's start and that moment is Python code of this package, in which an interrupt could strike.

        Parameters
        ----------
        submit : callable or None
            ``submit(function, *arguments)`` calls the function in another thread and returns a future. None: the calling
            thread does it all, and heeds no interrupt.
        lanes : list of tuple
            The arguments of `run` for each.
        report : callable or None
            Called with the bytes done since the last call.
        wait_for : callable
            ``wait_for(futures)`` waits a while for them, and returns those that are not done.
        """
        cdef Py_ssize_t reported = 0, done
        futures = []
        try:
            try:
                for arguments in lanes if submit is not None else ():
                    futures.append(submit(self.run, *arguments))
            except RuntimeError:             # no more threads can be had; those that there are share the work
                pass
            if not futures:
                self.run(*lanes[0])
            while futures:
                futures = wait_for(futures)
                done = self.nbytes_done
                if report is not None and done != reported:
                    reported, done = done, done - reported
                    report(done)
        finally:
            self.stop()
        check(self.error, "copying a piece")

    cdef void stop(self) noexcept:
        """Return when no lane is at work, and none can begin to be."""
        set_to(&self.stopped, True)
        while self.running:
            with nogil:
                usleep(100)

    cdef void work(self, Route route, Lane lane, char* memory, char* staging) noexcept nogil:
        cdef int error = lane.driver.context_push(lane.context)
        if error == 0:
            error = (self.download(route, lane, memory, staging) if self.to_host
                     else self.upload(route, lane, memory, staging))
            if error != 0:                   # what is in flight must not arrive after the slots are somebody else's
                lane.driver.stream_synchronize(lane.stream)
            leave(True)
        if error != 0:
            self.error = error
            set_to(&self.stopped, True)

    cdef Py_ssize_t take(self, Route route) noexcept nogil:
        """The first word of a piece that is left to do; -1 where there is none."""
        cdef Py_ssize_t first
        if look_at_int(&self.stopped):
            return -1
        first = take_next(&self.next_piece) * self.piece
        return first if first < route.words else -1

    cdef int download(self, Route route, Lane lane, char* memory, char* staging) noexcept nogil:
        cdef Driver* driver = lane.driver
        cdef Walk walk = route.gather()
        cdef Py_ssize_t firsts[MAX_SLOTS]
        cdef Py_ssize_t first, count, queued = 0, arrived = 0
        cdef char* slot
        cdef char* source
        cdef int error, k
        while True:
            while queued - arrived < self.slots:
                first = self.take(route)
                if first < 0:
                    break
                count = min(self.piece, route.words - first)
                k = queued % self.slots
                source = route.device + first * route.word
                if not route.device_runs:
                    source = staging
                    error = move(driver, self.kernel, route.device, staging - first * route.word, &walk, first, count,
                                 lane.stream)
                    if error != 0:
                        return error
                slot = memory + k * self.piece * route.word
                error = driver.memcpy_async(<uint64_t> slot, <uint64_t> source, count * route.word, lane.stream)
                if error == 0:
                    error = driver.event_record(lane.events[k], lane.stream)
                if error != 0:
                    return error
                firsts[k] = first
                queued += 1
            if queued == arrived:
                return 0
            k = arrived % self.slots
            error = driver.event_synchronize(lane.events[k])
            if error != 0:
                return error
            count = min(self.piece, route.words - firsts[k])
            route.into_host(memory + k * self.piece * route.word, firsts[k], count)
            add_to(&self.words_done, count)
            arrived += 1

    cdef int upload(self, Route route, Lane lane, char* memory, char* staging) noexcept nogil:
        cdef Driver* driver = lane.driver
        cdef Walk walk = route.scatter()
        cdef Py_ssize_t first, count, queued = 0
        cdef char* slot
        cdef char* target
        cdef int error, k
        while True:
            first = self.take(route)
            if first < 0:
                return driver.stream_synchronize(lane.stream)
            count = min(self.piece, route.words - first)
            k = queued % self.slots
            slot = memory + k * self.piece * route.word
            if queued >= self.slots:
                error = driver.event_synchronize(lane.events[k])
                if error != 0:
                    return error
            route.from_host(slot, first, count)
            target = route.device + first * route.word if route.device_runs else staging
            error = driver.memcpy_async(<uint64_t> target, <uint64_t> slot, count * route.word, lane.stream)
            if error == 0 and not route.device_runs:
                error = move(driver, self.kernel, staging - first * route.word, route.device, &walk, first, count,
                             lane.stream)
            if error == 0:
                error = driver.event_record(lane.events[k], lane.stream)
            if error != 0:
                return error
            queued += 1
            add_to(&self.words_done, count)
