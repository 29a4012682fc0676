from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_as(object interface, object obj, object dtype)
cdef object emit(Descriptor a)
