"""The order in which a copy visits the words of an array in host memory and of one on a device."""

from libc.stdint cimport int64_t

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.layout cimport MAX_NDIM

# Where the n-th word lies on two sides, by its index along each axis, the slowest first. transfer/cuda_kernel.py declares
# the same struct.
cdef struct Walk:
    int64_t axes
    int64_t shape[MAX_NDIM]
    int64_t source_steps[MAX_NDIM]     # bytes
    int64_t target_steps[MAX_NDIM]

# Everything about a route that threads without Python need.
cdef struct VisitPlan:
    char* host                         # the first word on either side
    char* device
    Py_ssize_t word                    # bytes: a power of two up to 16
    Py_ssize_t words
    bint host_runs                     # whether that side lies in one piece in this order
    bint device_runs
    int axes
    int64_t shape[MAX_NDIM]
    int64_t host_steps[MAX_NDIM]       # bytes, none negative
    int64_t device_steps[MAX_NDIM]
    int64_t run_steps[MAX_NDIM]        # those of the words one after the other

cdef class Route:
    cdef Descriptor near, far          # kept alive: they own the memory
    cdef VisitPlan plan

cdef Walk gather(VisitPlan* plan) noexcept nogil
cdef Walk scatter(VisitPlan* plan) noexcept nogil
cdef Walk device_to_host(VisitPlan* plan) noexcept nogil
cdef Walk host_to_device(VisitPlan* plan) noexcept nogil
cdef void fill_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
cdef void empty_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
