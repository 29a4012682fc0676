from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.arrow_abi cimport ArrowSchema

cdef str why_not(Descriptor a)
cdef bint may_be_nat(Descriptor a) noexcept
cdef str why_unread(Descriptor a)
cdef bint is_sayable(Descriptor a) except -1
cdef bint wants_lists(object requested) except -1
cdef object as_said(object node, bint lists)
cdef int fill_root_schema(ArrowSchema* out, object node, bint lists) except -1
cdef object schema_capsule(object node, bint lists)
cdef object emit_schema(object node, object requested_schema)
cdef tuple described(object capsule)
cdef str difference(object requested, object own)
