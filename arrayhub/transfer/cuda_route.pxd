"""The order in which a copy visits the words of an array in host memory and of one on a device."""

from libc.stdint cimport int64_t

from arrayhub._core.descriptor cimport Descriptor

cdef enum:
    MAX_AXES = 64

# Where the n-th word lies on two sides, by its index along each axis, the slowest first. transfer/cuda_kernel.py declares
# the same struct.
cdef struct Walk:
    int64_t axes
    int64_t shape[MAX_AXES]
    int64_t source_steps[MAX_AXES]     # bytes
    int64_t target_steps[MAX_AXES]

cdef class Route:
    cdef Descriptor near, far          # kept alive: they own the memory
    cdef char* host                    # the first word on either side
    cdef char* device
    cdef readonly Py_ssize_t word               # bytes: a power of two up to 16
    cdef readonly Py_ssize_t words
    cdef readonly bint host_runs, device_runs   # whether that side lies in one piece in this order
    cdef int axes
    cdef int64_t shape[MAX_AXES]
    cdef int64_t host_steps[MAX_AXES]  # bytes, none negative
    cdef int64_t device_steps[MAX_AXES]
    cdef int64_t run_steps[MAX_AXES]   # those of the words one after the other
    cdef bint same_steps(self, const int64_t* steps) noexcept
    cdef Walk walk(self, const int64_t* source_steps, const int64_t* target_steps) noexcept nogil
    cdef Walk gather(self) noexcept nogil
    cdef Walk scatter(self) noexcept nogil
    cdef Walk across(self) noexcept nogil
    cdef Walk back(self) noexcept nogil
    cdef void from_host(self, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
    cdef void into_host(self, const char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
