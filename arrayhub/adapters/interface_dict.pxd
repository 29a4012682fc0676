"""Descriptors from the keys that the three interface dicts (host, CUDA, SYCL) share."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.adapters.interface_keys cimport Entries

cdef Descriptor new_from_dict(const Entries* entries, int protocol, object dtype)
cdef int set_pointer(Descriptor a, object data) except -1
