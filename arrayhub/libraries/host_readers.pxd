from arrayhub._core.descriptor cimport Descriptor

cdef bint wants_host(Descriptor a, object max_version) except -1
cdef bint wants_host_device(Descriptor a) except -1
