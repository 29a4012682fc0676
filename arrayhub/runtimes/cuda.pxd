"""CUDA driver: the device of a pointer, and stream synchronization."""

from libc.stdint cimport intptr_t, uint64_t

from arrayhub._core.descriptor cimport Descriptor, DLDevice, kDLCUDA, kDLCUDAHost, kDLCUDAManaged

cdef extern from "platform.h" nogil:
    int getpid()

# Stream handles with special meanings, from CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of the driver API. DLPack and the
# CUDA array interface use the same numbers.
cpdef enum:
    NO_STREAM = -1       # DLPack: no synchronization
    LEGACY_STREAM = 1
    PER_THREAD_STREAM = 2

ctypedef void* Context
ctypedef void* CudaEvent
ctypedef void* Stream

# Functions of the driver, in the order of _NAMES. Each returns a CUresult, 0 for success.
cdef struct Driver:
    int (*init)(unsigned int flags) noexcept nogil
    int (*error_name)(int error, const char** name) noexcept nogil
    int (*device_get)(int* device, int ordinal) noexcept nogil
    int (*device_count)(int* count) noexcept nogil
    int (*device_attribute)(int* value, int attribute, int device) noexcept nogil
    int (*pointer_attributes)(unsigned int count, int* which, void** values, uint64_t address) noexcept nogil
    int (*context_current)(Context* context) noexcept nogil
    int (*context_device)(int* device) noexcept nogil
    int (*context_push)(Context context) noexcept nogil
    int (*context_pop)(Context* context) noexcept nogil
    int (*context_retain)(Context* context, int device) noexcept nogil
    int (*stream_context)(Stream stream, Context* context) noexcept nogil
    int (*stream_create)(Stream* stream, unsigned int flags) noexcept nogil
    int (*stream_capture)(Stream stream, int* status, uint64_t* sequence, void* graph, void* nodes,
                          void* count) noexcept nogil
    int (*stream_query)(Stream stream) noexcept nogil
    int (*stream_synchronize)(Stream stream) noexcept nogil
    int (*stream_destroy)(Stream stream) noexcept nogil
    int (*stream_wait)(Stream stream, CudaEvent event, unsigned int flags) noexcept nogil
    int (*event_create)(CudaEvent* event, unsigned int flags) noexcept nogil
    int (*event_record)(CudaEvent event, Stream stream) noexcept nogil
    int (*event_query)(CudaEvent event) noexcept nogil
    int (*event_synchronize)(CudaEvent event) noexcept nogil
    int (*event_destroy)(CudaEvent event) noexcept nogil
    int (*memcpy_async)(uint64_t to, uint64_t source, size_t nbytes, Stream stream) noexcept nogil
    int (*host_alloc)(void** memory, size_t nbytes, unsigned int flags) noexcept nogil
    int (*host_free)(void* memory) noexcept nogil
    int (*can_access_peer)(int* yes, int device, int peer) noexcept nogil
    int (*enable_peer)(Context peer, unsigned int flags) noexcept nogil
    int (*launch)(void* kernel, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                  unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, Stream stream, void** arguments,
                  void** extra) noexcept nogil

cpdef bint has_device() except -1
cdef int refuse_without_device(Descriptor a, str library) except -1
cdef Driver* driver_for(int device) except NULL
cdef int check(int error, str call) except -1
cdef Context primary_context(int device) except NULL
cdef bint enter(intptr_t stream, int device) except -1
cdef bint has_devices() except -1
cdef bint enter_device(long long device) except -1
cdef void leave(bint pushed) noexcept nogil
cdef int device_of(intptr_t stream) except -1
cdef int locate(Descriptor a, bint ask_last=*) except -1
cdef DLDevice device_at(uint64_t address) except *
cpdef intptr_t stream_handle(object stream) except? 0
cdef int check_handle(intptr_t stream) except -1
cdef intptr_t checked_handle(object stream) except? 0
cdef uint64_t capture_of(intptr_t stream, int device) except? 0
cpdef int refuse_capture(intptr_t stream, int device) except -1
cpdef int wait_for_stream(intptr_t stream, int device) except -1
cpdef int wait_interruptibly(intptr_t stream, int device) except -1
cpdef intptr_t copying_stream(Descriptor a, object stream) except 0
cdef int copy_now(uint64_t to, uint64_t source, size_t nbytes, intptr_t stream, int device) except -1
cpdef intptr_t waiting_stream(int device, intptr_t other=*) except 0
cdef intptr_t stream_after(CudaEvent* place, int device) except 0
cdef CudaEvent event_on(intptr_t stream, int device) except NULL
cdef void destroy_event(CudaEvent event) noexcept
cpdef int order_streams(intptr_t producer, intptr_t consumer, int device, int consumer_device=*) except -1
cdef int consumer_ready(Descriptor a, object stream) except -1
cdef int remember_handle(Descriptor a, intptr_t handle, object stream) except -1
cpdef intptr_t safe_stream(Descriptor a) except? -2


cdef inline bint is_cuda(int device_type) noexcept nogil:
    """Return whether a DLPack device type is one of CUDA's: device, pinned or managed memory."""
    return device_type in (kDLCUDA, kDLCUDAHost, kDLCUDAManaged)
