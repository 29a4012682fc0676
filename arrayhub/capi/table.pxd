"""Functions of the capsule's table that other modules call. See table.pyx."""

from arrayhub.capi.header cimport PyUSMArrayElement

cdef int type_of_object(object dtype, PyUSMArrayElement* out) except -1
