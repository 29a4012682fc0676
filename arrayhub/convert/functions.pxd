"""C declarations of the import functions in dispatch.pxi, and of the export to a library."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.libraries.known cimport Library

cdef bint import_copied(Descriptor a, object obj) except -1
cpdef bint is_traced() noexcept
cdef Descriptor import_array(object obj, object stream)
cpdef Descriptor import_allowed(object obj, object copy, str call)
cdef object read_inner(object obj, object row, object wrappers)
cdef object give_as(
    object obj, Library to, object copy, object dtype, object device, object missing, bint allow_readonly=*, Descriptor array=*
)


# Only dispatch.pxi calls this function. The declaration prevents the C compiler from inlining the function into
# `import_array`. With the inlined code, `import_array` would save more registers on each call.
cdef Descriptor try_protocols(object obj, object stream, unsigned int speaks)
