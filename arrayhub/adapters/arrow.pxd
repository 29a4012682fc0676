from arrayhub._core.descriptor cimport Descriptor, DLDevice

cdef Descriptor parse(object obj, object stream)
cdef list parse_chunks(object obj)
cdef bint is_stream(object obj) except -1
cdef unsigned int interfaces_of(object cls) except? 0
cpdef str obstacle_of(Descriptor array, bint extension)
cpdef bint may_be_nat(Descriptor a) noexcept
cdef DLDevice device_of_node(object node) except *
cdef object emit(object node, int what, int form)
cdef object bind_export(object node, int what)

cdef enum:      # values of `what`
    SCHEMA
    ARRAY
    DEVICE_ARRAY
    STREAM
    DEVICE_STREAM
