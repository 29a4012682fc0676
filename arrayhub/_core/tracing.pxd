"""Reports of imports, exports and copies to open traces. Without one, the only cost is a test of `active`."""

from arrayhub._core.cpython.atomics cimport read_int
from arrayhub._core.descriptor cimport Descriptor

cdef int active       # number of open traces, changed under a lock


cdef inline bint is_traced() noexcept:
    """Return whether to report an import or export: a trace is open, and this thread is not within another one."""
    return read_int(&active) != 0 and is_outermost()


cdef bint is_outermost() noexcept
cdef double begin() except? -1
cdef void end() noexcept
cdef int report_import(object obj, Descriptor a, double since) except -1
cdef int report_export(str call, object obj, object result, double since) except -1
