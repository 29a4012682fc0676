"""An array that meets the conditions of C code. See request.pyx."""

from arrayhub.native.header cimport PyUSMArrayRequest

cdef object request(object obj, const PyUSMArrayRequest* said)
cdef int match(object array, const PyUSMArrayRequest* said) noexcept
cdef object explain(object obj, const PyUSMArrayRequest* said)
