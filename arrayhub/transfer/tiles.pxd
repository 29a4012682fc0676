"""Copy between any two layouts of host memory."""

from arrayhub._core.descriptor cimport Descriptor

cdef void put(char* target, const Py_ssize_t* steps, Descriptor source) noexcept nogil
