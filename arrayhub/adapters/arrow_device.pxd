from arrayhub._core.device cimport DLDevice
from arrayhub.adapters.arrow_abi cimport ArrowDeviceArray
from arrayhub.adapters.arrow_owner cimport Import

cdef int take_device_array(Import owner, object capsule) except -1
cdef int take_device_struct(Import owner, ArrowDeviceArray* array) except -1
cdef tuple emit_device(object node, object requested_schema, dict keywords)
cdef int refuse_keywords(str method, dict keywords) except -1
cdef DLDevice device_of_node(object node) except *
cdef DLDevice device_shown(object node) except *
cdef int ready_on_device(object node) except -1
cdef int fill_device_array(ArrowDeviceArray* out, object node, bint lists) except -1
