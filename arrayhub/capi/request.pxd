"""Arrays that meet the conditions of C code. See request.pyx."""

from cpython.object cimport PyObject

from arrayhub._core.descriptor cimport Descriptor
from arrayhub.capi.header cimport PyUSMArrayRequest

cdef int refuse_null(str call) except -1
cdef object request(object obj, const PyUSMArrayRequest* said)
cdef int match(object array, const PyUSMArrayRequest* said) noexcept
cdef object explain(object obj, const PyUSMArrayRequest* said)
cdef Descriptor viewed(object obj)
cdef object error_about(const PyUSMArrayRequest* r, type kind, object obj, str words)


cdef inline int given(PyObject* obj, str call) except -1:
    """Refuse a NULL object, such as the result of a failed Python call."""
    return 0 if obj != NULL else refuse_null(call)
