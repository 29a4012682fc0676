from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from arrayhub._core.descriptor cimport Descriptor, MemoryBlock

cdef Descriptor parse(object obj, object stream)
cdef Descriptor parse_bytes(object obj, object stream)
cdef int emit(Descriptor a, Py_buffer* out, int request) except -1
cdef MemoryBlock hold(object exporter, int request)
cdef int access_of(object obj, Py_buffer* view) except -1

cdef int expects_map       # false after the first import of memory that a process has mapped
cdef int check_map(PyObject* owner) except -1


cdef inline void release(Py_buffer* view) noexcept:
    """Release the reference to the format string that `emit` stored in the view, if any."""
    if view.internal != NULL:
        Py_DECREF(<object> view.internal)
        view.internal = NULL
