"""Order in which a copy visits the words of a host array and a device array. See cuda_route.pyx."""

from libc.stdint cimport int64_t

from arrayhub._core.descriptor cimport Descriptor
from arrayhub._core.layout cimport MAX_NDIM

# Shape and strides of source and target for the kernel, the slowest axis first. transfer/cuda_kernel.py declares the
# same struct.
cdef struct Walk:
    int64_t axes
    int64_t shape[MAX_NDIM]
    int64_t source_steps[MAX_NDIM]     # bytes
    int64_t target_steps[MAX_NDIM]

# Parameters of a route, for threads that do not hold the GIL.
cdef struct VisitPlan:
    char* host                         # first word of the host array
    char* device                       # first word of the device array
    Py_ssize_t word                    # bytes: a power of two up to 16
    Py_ssize_t words
    bint host_runs                     # the host array is contiguous in the order of the visit
    bint device_runs                   # the device array is contiguous in the order of the visit
    int axes
    int64_t shape[MAX_NDIM]
    int64_t host_steps[MAX_NDIM]       # bytes, not negative
    int64_t device_steps[MAX_NDIM]
    int64_t run_steps[MAX_NDIM]        # bytes, for contiguous words

cdef class Route:
    cdef Descriptor near, far          # keep the memory alive
    cdef VisitPlan plan

cdef Walk gather(VisitPlan* plan) noexcept nogil
cdef Walk scatter(VisitPlan* plan) noexcept nogil
cdef Walk device_to_host(VisitPlan* plan) noexcept nogil
cdef Walk host_to_device(VisitPlan* plan) noexcept nogil
cdef void fill_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
cdef void empty_run(VisitPlan* plan, char* run, Py_ssize_t first, Py_ssize_t count) noexcept nogil
