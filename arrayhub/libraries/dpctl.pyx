from arrayhub._core.descriptor cimport Descriptor


cdef Descriptor parse_memory(object obj, object stream):
    return None


cdef Descriptor parse_usm_ndarray(object obj, object stream):
    return None


cdef Descriptor parse_dpnp(object obj, object stream):
    return None


cdef object emit_attribute(Descriptor a):
    raise AttributeError("__usm_ndarray__")
