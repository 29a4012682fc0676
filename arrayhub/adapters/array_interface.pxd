from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_as(object obj, object dtype)
cdef object emit(Descriptor a)
cdef Descriptor parse_struct(object obj, object stream)
cdef object emit_struct(Descriptor a)
