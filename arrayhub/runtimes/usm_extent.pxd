"""Which allocation a USM pointer lies in, where the runtime below SYCL can be asked."""

ctypedef enum Backend:
    OTHER = 0          # nobody to ask
    OPENCL
    LEVEL_ZERO

# clGetMemAllocInfoINTEL, as Intel's extension unified_shared_memory of OpenCL has it.
ctypedef int (*AllocInfo)(void* context, const void* pointer, unsigned int what, size_t size, void* value,
                          size_t* written) noexcept nogil

# A context of the runtime below. All zero before `enter`, and after `leave`.
cdef struct Native:
    Backend backend
    void* context
    AllocInfo info

cdef int look(object library) except -1
cdef int enter(Native* native, void* context) noexcept
cdef void leave(Native* native) noexcept
cdef char* allocation_of(const Native* native, const void* pointer) noexcept nogil
