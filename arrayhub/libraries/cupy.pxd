from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_by_dict(object obj, object stream)
cpdef object emit(Descriptor a, bint allow_readonly=*)
