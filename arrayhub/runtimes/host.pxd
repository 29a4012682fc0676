from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor as_host(Descriptor a)
cdef Descriptor for_host_library(Descriptor a, str library, int other_device)
cdef Descriptor on_stream(Descriptor a, object stream, bint fresh)
