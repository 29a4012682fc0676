from arrayhub._core.descriptor cimport Descriptor

cpdef bint is_value(object obj) noexcept
cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_by_dict(object obj, object stream)
cdef Descriptor copy_values(object obj)
cdef Descriptor copy_values_as(object obj, object dtype)
cpdef int refuse_endless(object obj, str call) except -1
cpdef double count_elements(object obj, str call) except -1
cpdef object with_ndarrays(object obj)
cdef Descriptor copy_scalar(object obj, object stream)
cdef int check_memory(Descriptor a, bint allow_readonly) except -1
cdef int check_elements(Descriptor a) except -1
cdef object emit(Descriptor a)
cdef object find_source(Descriptor a)
cdef object array_over(Descriptor a, object dtype)
cdef object emit_array(Descriptor a, object dtype, object copy)
cdef object emit_raw(Descriptor a)
cdef object emit_run(Descriptor a, char* data, Py_ssize_t nbytes, object owner)
cdef int check_subclass(object obj) except -1
cdef int refuse_mask(object obj) except -1
cpdef int refuse_unit(object obj, str call=*) except -1
