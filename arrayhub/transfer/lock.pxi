"""Lock that a `with` statement releases without allocating memory."""

from _thread import allocate_lock


cdef class Lock:
    """Lock like ``threading.Lock``, but CPython does not allocate an argument tuple to call its ``__exit__``."""
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
