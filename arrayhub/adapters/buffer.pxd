from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef int emit(Descriptor a, Py_buffer* out, int request) except -1
cdef void release(Py_buffer* view) noexcept
