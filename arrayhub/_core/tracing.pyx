"""Who is told of hand-overs, copies and waits. Where nobody is, `active` is all that anybody asks.

A listener is called with what happened (``"in"``, ``"out"``, ``"copy"`` or ``"wait"``), the way, where from, where to, bytes
and seconds, in the thread where it happened and right after it, so that it can see who asked.
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
cdef object _of_thread = None      # from the first listener on; who only imports the package has no need of threading


def listen(listener):
    """Tell `listener` of everything, in all threads, until `unlisten`."""
    global active, _listeners, _of_thread
    import threading

    _lock.acquire()      # no `with`: Cython reads the traceback in one, and without memory an exception has none
    try:
        if _of_thread is None:
            _of_thread = threading.local()
        _listeners = (*_listeners, listener)
        active = len(_listeners)
    finally:
        _lock.release()


def unlisten(listener):
    """Take one of `listen` back."""
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
    """Return when what `copied` will tell of begins; None while nobody listens."""
    return perf_counter() if active else None


def copied(way, source, target, nbytes, since):
    """Tell of a copy, unless `since`, what `started` said, is None."""
    if since is not None:
        tell("copy", way, source, target, nbytes, since)


cdef str type_name(object obj):
    cls = type(obj)
    root = root_of(cls)
    return cls.__name__ if root in ("", "builtins") else f"{root}.{cls.__name__}"


cdef str place(Descriptor a):
    """Where an array lies, as ``str(device)`` says it; an ordinal that nobody has looked up yet is left out."""
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
        """`obj` has come in as `a`; where the memory is a copy, that is told besides, of hand-overs inside of others too."""
        if <object> a is obj:
            return 0
        way = PROTOCOL_NAMES[a.protocol_]
        self.event = ("in", way, type_name(obj), place(a), a.nbytes)
        if a.flags_ & COPIED:
            tell("copy", way, type_name(obj), place(a), a.nbytes, self.since)
        return 0

    cdef int goes_out(self, str way, object obj, object result) except -1:
        """`result` is what a caller who gave `obj` has got."""
        self.event = ("out", way, type_name(obj), type_name(result), nbytes_of(result))
        return 0


cdef int pass_once() except -1:
    """Let the next one of this thread who asks `passes` do its work and tell nothing: the caller tells of it."""
    _of_thread.passes = True
    return 0


cdef bint passes() except -1:
    if not getattr(_of_thread, "passes", False):
        return False
    _of_thread.passes = False
    return True


cdef Py_ssize_t nbytes_of(object array) except -1:
    """What a library says that its array takes, in bytes; 0 where it does not say."""
    nbytes = getattr(array, "nbytes", 0)
    return nbytes if isinstance(nbytes, int) else 0


cdef int gave(object array, Descriptor a, str way) except -1:
    """A consumer has asked `array` itself for its memory, which lies where that of `a` does."""
    if getattr(_of_thread, "depth", 0) == 0:
        tell("out", way, place(a), "", nbytes_of(array), perf_counter())
    return 0


cdef int waited(Descriptor a, str way, double since) except -1:
    return tell("wait", way, place(a), "", a.nbytes, since)
