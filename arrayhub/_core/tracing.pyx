"""Reports of imports, exports and copies to open traces. Without an open trace, the only cost is a test of `active`.

Events are reported in three places: imports by `import_traced` of convert/dispatch, exports by `give_traced` of
convert/functions, and copies by `_engine` of transfer. An import or export within another one is not reported.

A trace is an object with a method `record`, which is called with the kind of event (``"in"``, ``"out"`` or ``"copy"``), the
method (a protocol or a call, for example ``"dlpack"``), the source, the target, the size in bytes and the time in seconds.
It is called directly after the event, in the same thread, so that it can find the line of the program.
"""

from _thread import allocate_lock
from time import perf_counter

from arrayhub._core.cpython.atomics cimport read_int, write_int
from arrayhub._core.descriptor cimport COPIED, Descriptor, kDLCPU

from arrayhub._core.descriptor import PROTOCOL_NAMES, TYPE_NAMES
from arrayhub._core.errors import root_of

cdef extern from *:
    """
    /* Number of nested imports and exports of this thread. A threading.local is not used, because its access can fail if
       memory is exhausted. */
    static _Thread_local int arrayhub_trace_depth;
    """
    int depth "arrayhub_trace_depth"

cdef int active = 0
cdef list _traces = []      # a trace that is entered twice is listed twice
cdef object _lock = allocate_lock()


def start(trace):
    """Report events to a trace until `stop` was called once for each call of `start`."""
    _lock.acquire()      # no `with` statement: in Cython, it requires a traceback, which a MemoryError may lack
    try:
        _traces.append(trace)
        write_int(&active, len(_traces))
    finally:
        _lock.release()


def stop(trace):
    """Undo one call of `start`. Return whether no call remains. Raise RuntimeError if no call remained before.

    The function does not allocate, so that a trace can end even if memory is exhausted.
    """
    _lock.acquire()
    try:
        if trace not in _traces:
            raise RuntimeError("trace: __exit__ was called without __enter__; use it in a with statement")
        _traces.remove(trace)
        write_int(&active, len(_traces))
        return trace not in _traces
    finally:
        _lock.release()


def is_active():
    """Return whether a trace is open."""
    return read_int(&active) != 0


cdef int report(str kind, str method, str source, str target, Py_ssize_t nbytes, double since) except -1:
    seconds = perf_counter() - since
    _lock.acquire()      # another thread may change the list
    try:
        traces = dict.fromkeys(_traces)
    finally:
        _lock.release()
    for trace in traces:
        trace.record(kind, method, source, target, nbytes, seconds)
    return 0


def report_copy(str method, str source, str target, Py_ssize_t nbytes, double since):
    """Report a copy that began at `since`, a result of ``time.perf_counter``."""
    report("copy", method, source, target, nbytes, since)


cdef str type_name(object obj):
    cls = type(obj)
    root = root_of(cls)
    return cls.__name__ if root in ("", "builtins") else f"{root}.{cls.__name__}"


cdef str place(Descriptor a):
    """Return the device of an array as in ``str(device)``. Omit an ordinal that has not been resolved yet."""
    name = TYPE_NAMES.get(a.device_.device_type, "nowhere")
    return name if a.device_.device_type == kDLCPU or a.device_.device_id < 0 else f"{name}:{a.device_.device_id}"


cdef bint is_outermost() noexcept:
    """Return whether this thread is not within a traced import or export."""
    return depth == 0


cdef double begin() except? -1:
    """Return the start time of an import or export. The caller must call `end`."""
    global depth
    since = perf_counter()      # first, because this can fail if memory is exhausted
    depth += 1
    return since


cdef void end() noexcept:
    global depth
    depth -= 1


cdef int report_import(object obj, Descriptor a, double since) except -1:
    """Report the import of `obj` as `a`, and the copy if `a` is one. Do nothing if `obj` is `a` itself."""
    if <object> a is obj:
        return 0
    method = PROTOCOL_NAMES[a.protocol_]
    if a.flags_ & COPIED:
        report("copy", method, type_name(obj), place(a), a.nbytes, since)
    return report("in", method, type_name(obj), place(a), a.nbytes, since)


cdef int report_export(str call, object obj, object result, double since) except -1:
    """Report the export of `obj` as `result` by the function named `call`."""
    return report("out", call, type_name(obj), type_name(result), nbytes_of(result), since)


cdef Py_ssize_t nbytes_of(object array) except -1:
    """Return ``nbytes`` of an array, or 0 if the attribute is missing, raises RuntimeError or is not an int."""
    nbytes = 0
    try:
        nbytes = getattr(array, "nbytes", 0)
    except RuntimeError:      # sparse tensors of torch
        pass
    return nbytes if isinstance(nbytes, int) else 0
