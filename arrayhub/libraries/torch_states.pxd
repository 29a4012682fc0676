# What `plain_tensor` says.
cdef enum:
    NOT_SURE = 0
    ON_HOST = 1
    ON_CUDA = 2

cdef int plain_tensor(object tensor) except -1
cdef int look_at_cuda(object device) except -1
