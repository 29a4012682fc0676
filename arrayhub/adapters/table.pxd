"""Numbers of the protocols that `table` describes. arrayhub.h defines the same numbers for C code."""

cdef enum Protocol:
    ARRAY_INTERFACE = 1
    ARRAY_STRUCT = 2
    CUDA_DICT = 3
    SYCL_DICT = 4
    PEP3118 = 5
    DLPACK_PROTOCOL = 6
    ARROW_PROTOCOL = 7
    PROTOCOL_NUMBERS      # one more than the largest number
