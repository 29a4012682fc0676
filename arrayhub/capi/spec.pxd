"""Arrays over the memory of C code. See spec.pyx."""

from arrayhub.capi.header cimport PyUSMArraySpec

cdef object make(const PyUSMArraySpec* said)
