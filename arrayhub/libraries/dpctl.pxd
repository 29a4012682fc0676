from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse_memory(object obj, object stream)
cdef Descriptor parse_usm_ndarray(object obj, object stream)
cdef Descriptor parse_dpnp(object obj, object stream)
cdef Descriptor parse_by_dict(object obj, object stream)
cdef object emit(Descriptor a)
cdef object emit_attribute(Descriptor a)
cdef object emit_dpnp(Descriptor a)
cdef int see_dpnp() except -1
