from arrayhub._core.descriptor cimport Descriptor


cdef Descriptor parse(object obj, object stream):
    return None


cdef object emit(Descriptor a):
    raise AttributeError("array_interface")


cdef Descriptor parse_struct(object obj, object stream):
    return None


cdef object emit_struct(Descriptor a):
    raise AttributeError("__array_struct__")
