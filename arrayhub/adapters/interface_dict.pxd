from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse_array_interface(object obj, object stream)
cdef Descriptor parse_array_interface_as(object obj, object dtype)
cdef object emit_array_interface(Descriptor a)
cdef Descriptor parse_struct(object obj, object stream)
cdef object emit_struct(Descriptor a)
cdef int check_host(Descriptor a, str attribute) except -1

cdef Descriptor parse_cuda_array(object obj, object stream)
cdef Descriptor parse_cuda_array_as(object interface, object obj, object dtype)
cdef object emit_cuda_array(Descriptor a)

cdef Descriptor parse_sycl_usm(object obj, object stream)
cdef object emit_sycl_usm(Descriptor a)
