"""C functions for copies in host memory."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.footprint cimport Footprint

cdef void footprint(Descriptor a, Footprint* span) noexcept
cdef void measure_reach(Descriptor a, Footprint* span) noexcept
cdef int check_alike(Descriptor target, Descriptor source) except -1
cdef void put(char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil
