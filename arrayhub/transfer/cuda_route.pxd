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

# Everything about a route that threads without Python need.
cdef struct Plan:
    char* host                         # the first word on either side
    char* device
    Py_ssize_t word                    # bytes: a power of two up to 16
    Py_ssize_t words
    bint host_runs                     # whether that side lies in one piece in this order
    bint device_runs
    int axes
    int64_t shape[MAX_AXES]
    int64_t host_steps[MAX_AXES]       # bytes, none negative
    int64_t device_steps[MAX_AXES]
    int64_t run_steps[MAX_AXES]        # those of the words one after the other

cdef class Route:
    cdef Descriptor near, far          # kept alive: they own the memory
    cdef Plan plan

cdef Walk gather(Plan* plan) noexcept nogil
cdef Walk scatter(Plan* plan) noexcept nogil
cdef Walk device_to_host(Plan* plan) noexcept nogil
cdef Walk host_to_device(Plan* plan) noexcept nogil
cdef void fill_run(Plan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
cdef void empty_run(Plan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
