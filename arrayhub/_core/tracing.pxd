"""Who is told of hand-overs, copies and waits. Where nobody is, `active` is all that anybody asks."""

cimport cython

from arrayhub._core.descriptor cimport Descriptor

cdef int active       # how many listen


@cython.final
cdef class Handover:
    """``with Handover() as told: ...``: what happens inside by the same thread is part of one hand-over."""
    cdef double since
    cdef tuple event

    cdef int goes_in(self, object obj, Descriptor a) except -1
    cdef int goes_out(self, str way, object obj, object result) except -1

cdef int pass_once() except -1
cdef bint passes() except -1
cdef int gave(object array, Descriptor a, str way) except -1
cdef int waited(Descriptor a, str way, double since) except -1
