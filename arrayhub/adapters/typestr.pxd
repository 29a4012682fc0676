"""Element types from type strings and from descriptions of fields."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.interface_keys cimport Entries

cdef int set_typestr(Descriptor a, const Entries* entries, int protocol) except -1
cdef int check_descr(Descriptor a, object descr, int protocol) except -1
cdef object dtype_from_descr(object descr, int protocol)
