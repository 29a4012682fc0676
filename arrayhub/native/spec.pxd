"""An array of memory that C code has. See spec.pyx."""

from arrayhub.native.header cimport PyUSMArraySpec

cdef object make(const PyUSMArraySpec* said)
