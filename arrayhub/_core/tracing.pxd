"""Listeners for imports, exports, copies and waits. Without a listener, the only cost is a test of `active`."""

cimport cython

from arrayhub._core.descriptor cimport Descriptor

cdef int active       # number of listeners


@cython.final
cdef class Handover:
    """One traced import or export, from `begin` to `end`. Imports and exports nested in it are not reported."""
    cdef double since
    cdef tuple event

    cdef int begin(self) except -1
    cdef int end(self) except -1
    cdef int set_import(self, object obj, Descriptor a) except -1
    cdef int set_export(self, str method, object obj, object result) except -1

cdef void pass_once() noexcept
cdef bint passes() noexcept
cdef int gave(object array, Descriptor a, str method) except -1
cdef int waited(Descriptor a, str method, double since) except -1
