from arrayhub._core.descriptor cimport Descriptor

cdef bint hold(Descriptor a, object tensor, bint on_host) except -1
