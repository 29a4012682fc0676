"""Allocation that contains a USM pointer, as far as the runtime below SYCL reports it."""

ctypedef enum Backend:
    OTHER = 0          # does not report allocations
    OPENCL
    LEVEL_ZERO

# clGetMemAllocInfoINTEL of OpenCL's extension cl_intel_unified_shared_memory.
ctypedef int (*AllocInfo)(void* context, const void* pointer, unsigned int what, size_t size, void* value,
                          size_t* written) noexcept nogil

# Context of the runtime below SYCL. All zero before `enter` and after `leave`.
cdef struct Native:
    Backend backend
    void* context
    AllocInfo info

cdef int look(object library) except -1
cdef int enter(Native* native, void* context) noexcept
cdef void leave(Native* native) noexcept
cdef char* allocation_of(const Native* native, const void* pointer) noexcept nogil
