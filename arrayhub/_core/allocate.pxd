from arrayhub._core.descriptor cimport Descriptor

cdef int compact(Descriptor fresh, Descriptor array, object order) except -1
