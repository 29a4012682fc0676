from arrayhub._core.descriptor cimport Descriptor

cdef object astype(Descriptor a, object dtype, object order, object casting, object copy)
cdef object ctypes_of(Descriptor a)
cdef object flatten(Descriptor a, object order)
cdef object ravel(Descriptor a, object order)
cdef object reshape_in(Descriptor a, tuple shape, object order)
cdef object view_as(Descriptor a, object dtype)
