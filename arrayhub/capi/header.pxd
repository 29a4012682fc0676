"""Cython declarations of the public C header, for the modules that implement its function table."""

from arrayhub.capi.structs cimport *

cdef extern from *:
    """
    #define PyUSMArrayObject arrayhub_public_struct     /* Cython declares the struct of arrays itself */
    #include "../include/arrayhub.h"
    #undef PyUSMArrayObject
    """
    ctypedef struct PyUSMArrayAPI:
        object (*from_object)(object obj)
        object (*request)(object obj, const PyUSMArrayRequest* request)
        int (*match)(object array, const PyUSMArrayRequest* request) noexcept
        object (*explain)(object obj, const PyUSMArrayRequest* request)
        object (*make)(const PyUSMArraySpec* spec)
        object (*to_host)(object obj)
        int (*host_ready)(object array) except -1
        int (*device)(object array, PyUSMArrayDevice* out) except -1
        int (*queue_ref)(object array, void** out) except -1
        int (*type_of_number)(int typenum, PyUSMArrayElement* out) except -1
        int (*type_of_dlpack)(PyUSMArrayDataType dtype, PyUSMArrayElement* out) except -1
        int (*type_of_object)(object dtype, PyUSMArrayElement* out) except -1
        object (*convert)(object obj, const char* library)
        object (*like)(object obj, object model, int may_copy)


cdef extern from *:
    """
    #include <string.h>
    #define ARRAYHUB_MOST_STRUCT 4096      /* bytes; every later version of a struct must be smaller */
    /* Copy a caller's struct to a struct of the size that this version defines. Members that the caller's struct lacks
       become zero. Return 0 if its size is invalid, or if members that this version does not define are not zero. */
    static CYTHON_UNUSED inline int arrayhub_resized(const void *theirs, Py_ssize_t size, void *ours, Py_ssize_t wanted) {
        Py_ssize_t k;
        if (size < (Py_ssize_t)sizeof(Py_ssize_t) || size > ARRAYHUB_MOST_STRUCT) return 0;
        for (k = wanted; k < size; ++k)
            if (((const char *)theirs)[k] != 0) return 0;
        memset(ours, 0, (size_t)wanted);
        memcpy(ours, theirs, (size_t)(size < wanted ? size : wanted));
        return 1;
    }
    """
    const Py_ssize_t MOST_STRUCT "ARRAYHUB_MOST_STRUCT"
    bint resized "arrayhub_resized"(const void* theirs, Py_ssize_t size, void* ours, Py_ssize_t wanted) noexcept nogil
