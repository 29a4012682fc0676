"""Functions in the capsule's table that other modules call. See table.pyx and request.pxi."""

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.capi.header cimport PyUSMArrayElement, PyUSMArrayRequest

cdef object request(object obj, const PyUSMArrayRequest* raw)
cdef int match(object array, const PyUSMArrayRequest* raw) noexcept
cdef Descriptor viewed(object obj)
cdef object error_about(const PyUSMArrayRequest* r, type kind, object obj, str words)
cdef int type_of_object(object dtype, PyUSMArrayElement* out) except -1
