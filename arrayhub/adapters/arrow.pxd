from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor parse(object obj, object stream)
cdef object parse_chunks(object obj)
cdef tuple described(object capsule)
cdef bint speaks(object cls) except -1
cdef bint is_sayable(Descriptor a) except -1
cdef object emit_attribute(object node, int what)
cdef tuple emit(object node, object requested_schema)
cdef tuple emit_device(object node, object requested_schema, dict keywords)
cdef object emit_stream(object node, object requested_schema)
cdef object emit_schema(object node, object requested_schema)

cdef enum:      # the four attributes, as `emit_attribute` counts them
    SCHEMA
    ARRAY
    DEVICE_ARRAY
    STREAM
