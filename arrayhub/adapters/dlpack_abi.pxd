"""Constants and structs of the DLPack 1.3 ABI, declared from its specification."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from arrayhub._core.descriptor cimport DLDevice
from arrayhub._core.dtypes cimport DLDataType

cdef enum:
    kDLInt = 0           # values of DLDataType.code in all versions since 1.0
    kDLUInt = 1
    kDLFloat = 2
    kDLBfloat = 4
    kDLComplex = 5
    kDLBool = 6

cdef enum:
    DLPACK_MAJOR = 1
    DLPACK_MINOR = 3
    DL_READ_ONLY = 1
    DL_IS_COPIED = 2
    DL_SUBBYTE_PADDED = 4
    PADDED_SINCE = 1     # minor version that added the flag; older consumers treat padded elements as packed

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept nogil

cdef struct DLPackVersion:
    uint32_t major
    uint32_t minor

cdef struct DLManagedTensorVersioned:
    DLPackVersion version
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept nogil
    uint64_t flags
    DLTensor dl_tensor

ctypedef int (*ManagedTensorAllocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                       void (*set_error)(void*, const char*, const char*) noexcept) noexcept
ctypedef int (*ManagedTensorFromPyObject)(void* py_object, DLManagedTensorVersioned** out) noexcept
ctypedef int (*ManagedTensorToPyObject)(DLManagedTensorVersioned* tensor, void** out) noexcept
ctypedef int (*DLTensorFromPyObject)(void* py_object, DLTensor* out) noexcept
ctypedef int (*CurrentWorkStream)(int device_type, int32_t device_id, void** out) noexcept

cdef struct DLPackExchangeAPIHeader:
    DLPackVersion version
    DLPackExchangeAPIHeader* prev_api

cdef struct DLPackExchangeAPI:
    DLPackExchangeAPIHeader header
    ManagedTensorAllocator managed_tensor_allocator
    ManagedTensorFromPyObject managed_tensor_from_py_object_no_sync
    ManagedTensorToPyObject managed_tensor_to_py_object_no_sync
    DLTensorFromPyObject dltensor_from_py_object_no_sync
    CurrentWorkStream current_work_stream
