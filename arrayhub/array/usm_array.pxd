from arrayhub._core.descriptor cimport Descriptor


cdef class USMArray(Descriptor):
    pass

# Return the result of the other operand's == or !=, or raise TypeError with `advice`.
cdef object compare(object array, object other, int op, str advice)
cdef int allocate_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1
