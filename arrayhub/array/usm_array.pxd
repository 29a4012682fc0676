from arrayhub._core.descriptor cimport Descriptor


cdef class USMArray(Descriptor):
    pass

cdef void register_way_in(object asarray, object check_values)
