from arrayhub.adapters.arrow_owner cimport Import

cdef int take_device_array(Import owner, object capsule) except -1
cdef tuple emit_device(object node, object requested_schema, dict keywords)
