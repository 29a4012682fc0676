from arrayhub._core.descriptor cimport Descriptor

cdef bint steps_backwards(Descriptor a) noexcept
cdef int check_torch(Descriptor a) except -1
cdef int refuse_plain_bytes(Descriptor a) except -1
