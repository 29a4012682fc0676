from arrayhub._core.descriptor cimport Descriptor

cdef bint came_as_copy(Descriptor a, object obj) except -1
