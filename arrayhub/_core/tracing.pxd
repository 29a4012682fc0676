"""Listeners for imports, exports and copies. Without a listener, the only cost is a test of `active`."""

from arrayhub._core.descriptor cimport Descriptor

cdef int active       # number of listeners

cdef bint is_outermost() noexcept
cdef double begin() except? -1
cdef void end() noexcept
cdef int report_import(object obj, Descriptor a, double since) except -1
cdef int report_export(str call, object obj, object result, double since) except -1
