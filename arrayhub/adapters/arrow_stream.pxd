from arrayhub.adapters.arrow_abi cimport ArrowArray, ArrowSchema

# Raises where arrays of a schema are not wanted, before the stream is asked for the first of them.
ctypedef int (*Check)(ArrowSchema* schema, object obj) except -1

cdef list import_stream(object obj, Check check)
cdef list import_device_stream(object obj, Check check)
cdef int make_empty(ArrowArray* out, ArrowSchema* schema) except -1
cdef object emit_stream(object node, object requested_schema)
cdef object emit_device_stream(object node, object requested_schema, dict keywords)
