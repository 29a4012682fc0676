from arrayhub.adapters.arrow_abi cimport ArrowArray, ArrowSchema

cdef list import_stream(object obj)
cdef list import_device_stream(object obj)
cdef int make_empty(ArrowArray* out, ArrowSchema* schema, int depth) except -1
cdef object emit_stream(object node, object requested_schema)
cdef object emit_device_stream(object node, object requested_schema, dict keywords)
