from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef list parse_chunks(object obj)
cdef unsigned int interfaces_of(object cls) except? 0
cdef object emit_attribute(object node, int what, object conform=*)

cdef enum:      # the attributes, as `emit_attribute` counts them
    SCHEMA
    ARRAY
    DEVICE_ARRAY
    STREAM
    DEVICE_STREAM
