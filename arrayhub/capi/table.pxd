"""Functions in the capsule's table that other modules call. See table.pyx and request.pxi."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.capi.header cimport PyUSMArrayRequest

cdef object request(object obj, const PyUSMArrayRequest* raw)
cdef int match(object array, const PyUSMArrayRequest* raw) noexcept
cdef Descriptor import_view(object obj)
cdef object add_name(const PyUSMArrayRequest* r, object error)
cdef object error_about(type kind, object obj, str words)
