"""Listeners for imports, exports, copies and waits. Without a listener, the only cost is a test of `active`.

A listener is called with the kind of event (``"in"``, ``"out"``, ``"copy"`` or ``"wait"``), the method, source, target, bytes
and seconds. The call is made in the thread of the event and directly after it, so that a listener can find the caller.
"""

cimport cython

from _thread import allocate_lock
from time import perf_counter

from arrayhub._core.descriptor cimport COPIED, Descriptor
from arrayhub._core.device cimport kDLCPU

from arrayhub._core.descriptor import PROTOCOL_NAMES
from arrayhub._core.device import TYPE_NAMES
from arrayhub._core.errors import root_of

cdef int active = 0
cdef tuple _listeners = ()
cdef object _lock = allocate_lock()
cdef object _of_thread = None      # created by the first listener, so that importing the package does not import threading


def listen(listener):
    """Call `listener` for each event in all threads, until `unlisten`."""
    global active, _listeners, _of_thread
    import threading

    _lock.acquire()      # no `with`: Cython reads the traceback in one, and a MemoryError may lack it
    try:
        if _of_thread is None:
            _of_thread = threading.local()
        _listeners = (*_listeners, listener)
        active = len(_listeners)
    finally:
        _lock.release()


def unlisten(listener):
    """Remove a listener that was added with `listen`."""
    global active, _listeners
    _lock.acquire()
    try:
        left = list(_listeners)
        left.remove(listener)
        _listeners = tuple(left)
        active = len(_listeners)
    finally:
        _lock.release()


cdef int tell(str kind, str way, str source, str target, Py_ssize_t nbytes, double since) except -1:
    seconds = perf_counter() - since
    for listener in _listeners:
        listener(kind, way, source, target, nbytes, seconds)
    return 0


def started():
    """Return the start time for a later call of `copied`; None without listeners."""
    return perf_counter() if active else None


def copied(way, source, target, nbytes, since):
    """Report a copy that began at `since`, the result of `started`; do nothing if that is None."""
    if since is not None:
        tell("copy", way, source, target, nbytes, since)


cdef str type_name(object obj):
    cls = type(obj)
    root = root_of(cls)
    return cls.__name__ if root in ("", "builtins") else f"{root}.{cls.__name__}"


cdef str place(Descriptor a):
    """Return the device of an array as in ``str(device)``, without an ordinal that is not resolved yet."""
    name = TYPE_NAMES.get(a.device_.device_type, "nowhere")
    return name if a.device_.device_type == kDLCPU or a.device_.device_id < 0 else f"{name}:{a.device_.device_id}"


@cython.final
cdef class Handover:

    def __enter__(self):
        _of_thread.depth = getattr(_of_thread, "depth", 0) + 1
        self.since = perf_counter()
        return self

    def __exit__(self, kind, error, trace):
        _of_thread.depth -= 1
        if self.event is not None and _of_thread.depth == 0:
            kind, way, source, target, nbytes = self.event
            tell(kind, way, source, target, nbytes, self.since)

    cdef int goes_in(self, object obj, Descriptor a) except -1:
        """Record the import of `obj` as `a`. If its memory is a copy, report the copy too, in nested hand-overs as well."""
        if <object> a is obj:
            return 0
        way = PROTOCOL_NAMES[a.protocol_]
        self.event = ("in", way, type_name(obj), place(a), a.nbytes)
        if a.flags_ & COPIED:
            tell("copy", way, type_name(obj), place(a), a.nbytes, self.since)
        return 0

    cdef int goes_out(self, str way, object obj, object result) except -1:
        """Record the export of `obj` as `result`."""
        self.event = ("out", way, type_name(obj), type_name(result), nbytes_of(result))
        return 0


cdef int pass_once() except -1:
    """Suppress the next report of this thread that tests `passes`, because the caller reports it."""
    _of_thread.passes = True
    return 0


cdef bint passes() except -1:
    if not getattr(_of_thread, "passes", False):
        return False
    _of_thread.passes = False
    return True


cdef Py_ssize_t nbytes_of(object array) except -1:
    """Return the size of a library's array in bytes, or 0 if it does not have ``nbytes``."""
    nbytes = getattr(array, "nbytes", 0)
    return nbytes if isinstance(nbytes, int) else 0


cdef int gave(object array, Descriptor a, str way) except -1:
    """Report that a consumer has exported the memory of `array`, which is on the device of `a`, by its protocol."""
    if getattr(_of_thread, "depth", 0) == 0:
        tell("out", way, place(a), "", nbytes_of(array), perf_counter())
    return 0


cdef int waited(Descriptor a, str way, double since) except -1:
    return tell("wait", way, place(a), "", a.nbytes, since)
