"""Lock that a `with` statement releases without allocating memory."""

from _thread import allocate_lock


cdef class Lock:
    """Lock like ``threading.Lock``, whose ``__exit__`` allocates a tuple of arguments in CPython."""
    cdef object lock

    def __cinit__(self):
        self.lock = allocate_lock()

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, kind, error, trace):
        self.lock.release()

    def acquire(self, blocking=True):
        return self.lock.acquire(blocking)

    def release(self):
        self.lock.release()

    def locked(self):
        return self.lock.locked()
