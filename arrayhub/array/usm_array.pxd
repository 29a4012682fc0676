from arrayhub._core.descriptor cimport Descriptor


cdef class USMArray(Descriptor):
    pass

cdef int allocate_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1
