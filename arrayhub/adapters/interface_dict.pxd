"""What the three interface dicts (host, CUDA, SYCL) have in common: their keys become fields of a descriptor here."""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject

from arrayhub._core.descriptor cimport Descriptor

cdef Descriptor new_from_dict(object interface, int protocol, object dtype)
cdef int set_pointer(Descriptor a, object data) except -1
cdef Py_ssize_t whole(object value, int protocol, str key, int position) except? -1
cdef object complaint(int protocol, str key, object value, str accepted)
cdef object dtype_from_descr(object descr, int protocol)


cdef inline object entry(dict interface, str key):
    """The value of a key, None where it is missing: no protocol tells the two apart."""
    cdef PyObject* value = PyDict_GetItemWithError(interface, key)
    return None if value == NULL else <object> value
