"""Declarations of the constants and structs of the public header. ``arrayhub/__init__.pxd`` and `table` cimport them."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint16_t

cdef extern from *:
    enum:
        ARRAYHUB_C_VERSION
        USM_ARRAY_C_CONTIGUOUS
        USM_ARRAY_F_CONTIGUOUS
        USM_ARRAY_WRITEABLE
        USM_ARRAY_ALIGNED
        USM_ARRAY_NOTSWAPPED
        USM_ARRAY_IMMUTABLE
        USM_ARRAY_PACKED
        USM_ARRAY_COPIED
        USM_ARRAY_NOT_USM
        USM_ARRAY_USM_DEVICE
        USM_ARRAY_USM_SHARED
        USM_ARRAY_USM_HOST
        USM_ARRAY_CONSTRUCTED
        USM_ARRAY_ARRAY_INTERFACE
        USM_ARRAY_ARRAY_STRUCT
        USM_ARRAY_CUDA_DICT
        USM_ARRAY_SYCL_DICT
        USM_ARRAY_PEP3118
        USM_ARRAY_DLPACK
        USM_ARRAY_ARROW
        USM_ARRAY_NO_DLPACK
        USM_ARRAY_WHOLE_STRIDES
        USM_ARRAY_ON_HOST
        USM_ARRAY_ON_USM
        USM_ARRAY_ON_CUDA
        USM_ARRAY_ANYWHERE
        USM_ARRAY_MAY_CAST
        USM_ARRAY_MAY_RELAYOUT
        USM_ARRAY_MAY_TRANSFER
        USM_ARRAY_MAY_BUILD
        USM_ARRAY_READONLY

    ctypedef struct PyUSMArrayDevice:
        int32_t device_type
        int32_t device_id

    ctypedef struct PyUSMArrayDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    const PyUSMArrayDataType USM_ARRAY_BOOL
    const PyUSMArrayDataType USM_ARRAY_INT8
    const PyUSMArrayDataType USM_ARRAY_INT16
    const PyUSMArrayDataType USM_ARRAY_INT32
    const PyUSMArrayDataType USM_ARRAY_INT64
    const PyUSMArrayDataType USM_ARRAY_UINT8
    const PyUSMArrayDataType USM_ARRAY_UINT16
    const PyUSMArrayDataType USM_ARRAY_UINT32
    const PyUSMArrayDataType USM_ARRAY_UINT64
    const PyUSMArrayDataType USM_ARRAY_FLOAT16
    const PyUSMArrayDataType USM_ARRAY_FLOAT32
    const PyUSMArrayDataType USM_ARRAY_FLOAT64
    const PyUSMArrayDataType USM_ARRAY_BFLOAT16
    const PyUSMArrayDataType USM_ARRAY_COMPLEX64
    const PyUSMArrayDataType USM_ARRAY_COMPLEX128
    const PyUSMArrayDataType USM_ARRAY_FLOAT8_E4M3FN
    const PyUSMArrayDataType USM_ARRAY_FLOAT8_E5M2

    ctypedef struct PyUSMArrayFields:      # the members after the object header
        int nd
        char* data
        Py_ssize_t* shape
        Py_ssize_t* strides
        int typenum
        int flags
        PyObject* base
        Py_ssize_t* byte_strides
        Py_ssize_t itemsize
        PyUSMArrayDevice device
        PyUSMArrayDataType dl_dtype
        uint8_t usm_type
        uint8_t protocol
        void* stream

    const Py_ssize_t PyUSMArrayRequest_HEAD      # initializes struct_size
    const Py_ssize_t PyUSMArraySpec_HEAD

    ctypedef struct PyUSMArrayRequest:
        Py_ssize_t struct_size             # sizeof(PyUSMArrayRequest)
        const char* name
        const PyUSMArrayDataType* dtypes
        int ndtypes
        int min_nd
        int max_nd
        const Py_ssize_t* shape
        int flags
        int as_is
        int where
        int may
        PyObject* stream

    ctypedef struct PyUSMArraySpec:
        Py_ssize_t struct_size             # sizeof(PyUSMArraySpec)
        void* data
        int nd
        const Py_ssize_t* shape
        const Py_ssize_t* byte_strides
        PyUSMArrayDataType dtype
        int typenum
        int access
        PyUSMArrayDevice device
        PyObject* owner
        void (*release)(void* context) noexcept
        void* context
        PyObject* queue
        void* queue_ref
        void* stream
        PyObject* model

    ctypedef struct PyUSMArrayElement:
        Py_ssize_t struct_size             # size of the struct in the caller's header
        const char* name
        PyUSMArrayDataType dtype
        int typenum
        Py_ssize_t itemsize
        Py_ssize_t alignment
