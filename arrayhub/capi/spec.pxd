"""An array of memory that C code has. See spec.pyx."""

from arrayhub.capi.header cimport PyUSMArraySpec

cdef object make(const PyUSMArraySpec* said)
