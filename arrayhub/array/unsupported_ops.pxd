cdef int refuse_arithmetic(type cls) except -1
