from arrayhub._core.descriptor cimport Descriptor


cdef class USMArray(Descriptor):
    pass

# Return the result of the other operand's == or !=, or raise TypeError with `advice`.
cdef object compared(object array, object other, int op, str advice)
cdef object names_for_dir(object array)
cdef int add_absent(type cls, dict instead, str why=*) except -1
cdef int allocate_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1
