"""Numbers of the protocols in the C struct. `table` describes the protocols. arrayhub.h defines the numbers for C code."""

cdef enum Protocol:
    ARRAY_INTERFACE = 1
    ARRAY_STRUCT = 2
    CUDA_DICT = 3
    SYCL_DICT = 4
    PEP3118 = 5
    DLPACK_PROTOCOL = 6
    ARROW_PROTOCOL = 7
    PROTOCOL_NUMBERS      # one more than the largest number
