"""What ``from arrayhub cimport USMArray`` gives: the public C struct of an array. See docs/c_interface.md."""

from libc.stdint cimport int32_t, uint8_t, uint16_t

cdef extern from "arrayhub.h":
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
        USM_ARRAY_NO_DLPACK

    ctypedef struct PyUSMArrayDevice:
        int32_t device_type
        int32_t device_id

    ctypedef struct PyUSMArrayDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    # Fields are added at the end, so an installed arrayhub may be larger than this declaration.
    ctypedef class arrayhub.USMArray [object PyUSMArrayObject, check_size ignore]:
        cdef int nd
        cdef char* data                    # element zero
        cdef Py_ssize_t* shape
        cdef Py_ssize_t* strides           # elements; NULL where a byte stride is no multiple of itemsize
        cdef int typenum                   # NumPy's, or 4096 and up
        cdef int flags                     # USM_ARRAY_*
        cdef object base                   # what owns the memory
        cdef Py_ssize_t* byte_strides      # NULL where flags has USM_ARRAY_PACKED
        cdef Py_ssize_t itemsize           # bytes
        cdef PyUSMArrayDevice device
        cdef PyUSMArrayDataType dl_dtype
        cdef uint8_t usm_type
        cdef uint8_t protocol
        cdef void* stream

    int import_arrayhub() except -1
    bint PyUSMArray_Check(object obj)
