from arrayhub._core.descriptor cimport Descriptor

cdef object emit(Descriptor a, bint allow_readonly)
