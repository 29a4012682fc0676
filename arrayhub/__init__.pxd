"""Public C struct of an array, and the functions of the C interface, for ``from arrayhub cimport USMArray``.

See docs/c_interface.md and docs/howto/cython_author.md.
"""

cimport cython
from libc.stdint cimport uint8_t

from arrayhub.capi.structs cimport *

cdef extern from "arrayhub.h":
    # New fields are appended, so the struct of an installed arrayhub may be larger than this declaration.
    @cython.final      # fields of a subclass would overlap the private fields of the struct
    class arrayhub.USMArray [object PyUSMArrayObject, check_size ignore]:
        cdef int nd
        cdef char* data                    # element zero
        cdef Py_ssize_t* shape
        cdef Py_ssize_t* strides           # elements; NULL if a byte stride is not a multiple of itemsize
        cdef int typenum                   # NumPy's, or 4096 and above
        cdef int flags                     # USM_ARRAY_*
        cdef object base                   # owner of the memory
        cdef Py_ssize_t* byte_strides      # NULL if flags has USM_ARRAY_PACKED
        cdef Py_ssize_t itemsize           # bytes
        cdef PyUSMArrayDevice device
        cdef PyUSMArrayDataType dl_dtype
        cdef uint8_t usm_type
        cdef uint8_t protocol
        cdef void* stream

    int import_arrayhub() except -1
    bint PyUSMArray_Check(object obj)
    const PyUSMArrayFields* PyUSMArray_Fields(object array)
    USMArray PyUSMArray_FromObject(object obj)
    USMArray PyUSMArray_Request(object obj, const PyUSMArrayRequest* request)
    bint PyUSMArray_Match(object array, const PyUSMArrayRequest* request)
    object PyUSMArray_Explain(object obj, const PyUSMArrayRequest* request)
    USMArray PyUSMArray_New(const PyUSMArraySpec* spec)
    USMArray PyUSMArray_ToHost(object obj)
    int PyUSMArray_HostReady(object array) except -1
    int PyUSMArray_Device(object array, PyUSMArrayDevice* out) except -1
    int PyUSMArray_QueueRef(object array, void** out) except -1
    int PyUSMArray_TypeOfNumber(int typenum, PyUSMArrayElement* out) except -1
    int PyUSMArray_TypeOfDLPack(PyUSMArrayDataType dtype, PyUSMArrayElement* out) except -1
    int PyUSMArray_TypeOfObject(object dtype, PyUSMArrayElement* out) except -1
    object PyUSMArray_Convert(object obj, const char* library)
    object PyUSMArray_Like(object obj, object model, bint may_copy)
