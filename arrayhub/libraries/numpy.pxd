from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_by_dict(object obj, object stream)
cdef object emit(Descriptor a)
cdef object emit_array(Descriptor a, object dtype, object copy)
cdef object emit_raw(Descriptor a)
cdef int refuse_mask(object obj) except -1
