from arrayhub._core.descriptor cimport Descriptor

cdef int give_item(type cls) except -1
cdef object only_element(Descriptor a, str call)
cdef object as_index(Descriptor a)
cdef object formatted(Descriptor a, object spec)
cdef object tolist(Descriptor a)
cdef object tobytes(Descriptor a, object order)
cdef object iterator(Descriptor a)
