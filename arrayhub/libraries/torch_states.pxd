cdef int plain_host_tensor(object tensor) except -1
