from arrayhub._core.descriptor cimport Descriptor


cdef class Flags:
    cdef Descriptor array
    cdef Descriptor owner(self)

cdef Flags flags_of(Descriptor a)
