from arrayhub._core.descriptor cimport Descriptor

cdef int fill_new(Descriptor a, object shape, object dtype, object buffer, object strides, object offset,
                  object order, object buffer_ctor_kwargs) except -1
cdef int take_usm(Descriptor a, str kind, dict options, Py_ssize_t nbytes) except -1
