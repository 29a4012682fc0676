from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_by_dlpack(object obj, object stream)
cdef object emit(Descriptor a, bint allow_readonly)
