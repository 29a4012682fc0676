"""C declaration of the launch of the kernel that reorders words."""

from arrayhub.runtimes.cuda cimport Driver, Stream
from arrayhub.transfer.cuda_route cimport Walk

cdef int move(Driver* driver, size_t kernel, const char* source, char* target, Walk* walk, Py_ssize_t first,
              Py_ssize_t count, Stream stream) noexcept nogil
