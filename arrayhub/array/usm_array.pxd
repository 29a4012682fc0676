from arrayhub._core.descriptor cimport Descriptor


cdef class USMArray(Descriptor):
    pass
