"""Listeners for imports, exports, copies and waits. Without a listener, the only cost is a test of `active`.

A listener is called with the kind of event (``"in"``, ``"out"``, ``"copy"`` or ``"wait"``), the method (a protocol or a call,
for example ``"dlpack"``), the source, the target, the size in bytes and the time in seconds. It is called directly after
the event, in the same thread, so that it can examine the caller's frames.
"""

cimport cython

from _thread import allocate_lock
from time import perf_counter

from arrayhub._core.descriptor cimport COPIED, Descriptor, kDLCPU

from arrayhub._core.descriptor import PROTOCOL_NAMES, TYPE_NAMES
from arrayhub._core.errors import PASSES_ON, root_of

cdef extern from *:
    """
    /* State of a thread. A threading.local is not used, because its access can fail if memory is exhausted. */
    static _Thread_local int arrayhub_trace_depth;        /* number of nested imports and exports */
    static _Thread_local int arrayhub_trace_suppressed;   /* whether to suppress the next report */
    """
    int depth "arrayhub_trace_depth"
    int suppressed "arrayhub_trace_suppressed"

cdef int active = 0
cdef tuple _listeners = ()
cdef object _lock = allocate_lock()


@cython.final
cdef class Listener:
    """Registered function and its owner."""
    cdef object owner
    cdef object function    # called for each event
    cdef int blocks         # number of `listen` calls minus `unlisten` calls of `owner`; 0 after the last `unlisten`


def listen(owner, function):
    """Call `function` for each event in any thread, until `unlisten` was called once for each `listen` of this owner.

    If the owner already has a function, `function` is ignored, and only the call is counted.
    """
    global active, _listeners
    cdef Listener listener, known
    listener = Listener()
    listener.owner = owner
    listener.function = function
    listener.blocks = 1
    _lock.acquire()      # no `with` statement: in Cython, it requires a traceback, which a MemoryError may lack
    try:
        for known in _listeners:
            if known.owner is owner and known.blocks > 0:
                known.blocks += 1
                return
        _listeners = (*[known for known in _listeners if known.blocks > 0], listener)
        active += 1
    finally:
        _lock.release()


def unlisten(owner):
    """Undo one call of `listen` by an owner. Return whether this was the owner's last remaining call.

    Raise ValueError if no call remains.

    The function does not allocate, so that a trace can end even if memory is exhausted.
    """
    global active, _listeners
    cdef Listener known
    _lock.acquire()
    try:
        for known in _listeners:
            if known.owner is owner and known.blocks > 0:
                known.blocks -= 1
                if known.blocks > 0:
                    return False
                active -= 1
                if active == 0:
                    _listeners = ()
                return True
    finally:
        _lock.release()
    raise ValueError("unlisten: listen was not called for this owner, or was already undone")


def is_active():
    """Return whether a listener is registered."""
    return active != 0


cdef int tell(str kind, str method, str source, str target, Py_ssize_t nbytes, double since) except -1:
    cdef Listener listener
    seconds = perf_counter() - since
    _lock.acquire()      # another thread may replace the tuple, and thereby free it
    listeners = _listeners
    _lock.release()
    for listener in listeners:
        if listener.blocks > 0:
            listener.function(kind, method, source, target, nbytes, seconds)
    return 0


def started():
    """Return the start time for a later call of `copied`, or None without listeners."""
    return perf_counter() if active else None


def copied(method, source, target, nbytes, since):
    """Report a copy that began at `since`, the result of `started`. Do nothing if `since` is None."""
    if since is not None:
        tell("copy", method, source, target, nbytes, since)


def traced_import(function, obj, method=None, *arguments):
    """Call ``function(obj, *arguments)``, which imports `obj` and all of its parts, and report one import through `method`.

    With ``method=None``, the report contains the protocol and the size of the result. Otherwise, `function` must return a tuple
    of the result and the size in bytes. A result of None, or `obj` itself, is not reported.
    """
    cdef Handover handover
    handover = Handover()
    handover.begin()
    try:
        result = function(obj, *arguments)
        if method is not None:
            result, nbytes = result
        if result is not None and result is not obj:
            if method is None:
                method, nbytes = result.protocol, result.nbytes
            handover.event = ("in", method, type_name(obj), str(result.device), nbytes)
    finally:
        handover.end()
    return result


def traced_export(call, function, obj, nbytes, *arguments):
    """Call ``function(obj, *arguments)``, which exports `obj` and all of its parts, and report one export through `call`.

    With ``nbytes=None``, `function` must return a tuple of the result and the size in bytes.
    """
    cdef Handover handover
    handover = Handover()
    handover.begin()
    try:
        result = function(obj, *arguments)
        if nbytes is None:
            result, nbytes = result
        handover.event = ("out", call, type_name(obj), type_name(result), nbytes)
    finally:
        handover.end()
    return result


cdef str type_name(object obj):
    cls = type(obj)
    root = root_of(cls)
    return cls.__name__ if root in ("", "builtins") else f"{root}.{cls.__name__}"


cdef str place(Descriptor a):
    """Return the device of an array as in ``str(device)``. Omit an ordinal that has not been resolved yet."""
    name = TYPE_NAMES.get(a.device_.device_type, "nowhere")
    return name if a.device_.device_type == kDLCPU or a.device_.device_id < 0 else f"{name}:{a.device_.device_id}"


@cython.final
cdef class Handover:

    cdef int begin(self) except -1:
        global depth
        self.since = perf_counter()      # first, because this can fail if memory is exhausted
        depth += 1
        return 0

    cdef int end(self) except -1:
        global depth, suppressed
        depth -= 1
        suppressed = False      # `passes` was not called if the last listener was removed in the meantime
        if self.event is not None and depth == 0:
            kind, method, source, target, nbytes = self.event
            tell(kind, method, source, target, nbytes, self.since)
        return 0

    cdef int set_import(self, object obj, Descriptor a) except -1:
        """Record the import of `obj` as `a`, unless `obj` is `a` itself.

        If the memory is a copy, also report the copy, even in a nested import.
        """
        if <object> a is obj:
            return 0
        method = PROTOCOL_NAMES[a.protocol_]
        self.event = ("in", method, type_name(obj), place(a), a.nbytes)
        if a.flags_ & COPIED:
            tell("copy", method, type_name(obj), place(a), a.nbytes, self.since)
        return 0

    cdef int set_export(self, str method, object obj, object result) except -1:
        """Record the export of `obj` as `result`."""
        self.event = ("out", method, type_name(obj), type_name(result), nbytes_of(result))
        return 0


cdef void pass_once() noexcept:
    """Suppress the next report of this thread, because the caller reports the event itself."""
    global suppressed
    suppressed = True


cdef bint passes() noexcept:
    """Return whether `pass_once` has suppressed this report, and end the suppression."""
    global suppressed
    was = suppressed
    suppressed = False
    return was


cdef Py_ssize_t nbytes_of(object array) except -1:
    """Return ``nbytes`` of an array, or 0 if the attribute is missing, raises RuntimeError or is not an int."""
    nbytes = 0
    try:
        nbytes = getattr(array, "nbytes", 0)
    except PASSES_ON:
        raise
    except RuntimeError:      # sparse tensors of torch
        pass
    return nbytes if isinstance(nbytes, int) else 0


cdef int gave(object array, Descriptor a, str method) except -1:
    """Report an export of `array` through `method`, unless another traced import or export contains it.

    The report contains the device of `a`.
    """
    if depth == 0:
        tell("out", method, place(a), "", nbytes_of(array), perf_counter())
    return 0


cdef int waited(Descriptor a, str method, double since) except -1:
    return tell("wait", method, place(a), "", a.nbytes, since)
