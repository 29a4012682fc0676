from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
