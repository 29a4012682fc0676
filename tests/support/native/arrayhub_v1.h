/* Version 1 of the C interface of arrayhub: the struct of arrayhub.USMArray, for C, C++ and Cython.
 *
 *     #include <Python.h>
 *     #include <arrayhub.h>            // compile with -I$(python -c 'import arrayhub; print(arrayhub.get_include())')
 *
 *     if (import_arrayhub() < 0) return NULL;            // once, in the module's init function, with the GIL held
 *     if (PyUSMArray_Check(obj)) {
 *         const PyUSMArrayObject *a = (const PyUSMArrayObject *)obj;
 *         ... a->nd, a->shape[k], a->data ...
 *     }
 *
 * All fields are read-only, and valid while the object exists. Later versions only add fields at the end. import_arrayhub()
 * fails if the installed arrayhub is older than this header, or has a different struct.
 */
#ifndef ARRAYHUB_H
#define ARRAYHUB_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased when a field is added. An installed arrayhub with this or a higher version has all fields below. */
#define ARRAYHUB_C_VERSION 1

/* PyUSMArrayObject.flags. The contiguity flags are computed from shape and strides. Other bits may be set. */
#define USM_ARRAY_C_CONTIGUOUS 0x0001
#define USM_ARRAY_F_CONTIGUOUS 0x0002
#define USM_ARRAY_WRITEABLE    0x0004
#define USM_ARRAY_ALIGNED      0x0100 /* every element is aligned as its type requires */
#define USM_ARRAY_NOTSWAPPED   0x0200 /* native byte order */
#define USM_ARRAY_IMMUTABLE    0x1000 /* the memory never changes, not even by its owner (bytes, jax arrays) */
#define USM_ARRAY_PACKED       0x2000 /* elements of less than a byte share bytes; always in compact C order */
#define USM_ARRAY_COPIED       0x4000 /* the memory is a copy, so writes do not change the imported object */

/* PyUSMArrayObject.usm_type: kinds of USM, with dpctl's numbers. */
#define USM_ARRAY_NOT_USM    0
#define USM_ARRAY_USM_DEVICE 1
#define USM_ARRAY_USM_SHARED 2
#define USM_ARRAY_USM_HOST   3

/* PyUSMArrayObject.protocol: the protocol through which the memory was imported. */
#define USM_ARRAY_CONSTRUCTED     0
#define USM_ARRAY_ARRAY_INTERFACE 1
#define USM_ARRAY_ARRAY_STRUCT    2
#define USM_ARRAY_CUDA_DICT       3
#define USM_ARRAY_SYCL_DICT       4
#define USM_ARRAY_PEP3118         5
#define USM_ARRAY_DLPACK          6

/* PyUSMArrayObject.dl_dtype.code if DLPack does not have a code for the element type. */
#define USM_ARRAY_NO_DLPACK 255

/* Structs with the layout of DLPack's DLDevice and DLDataType. Their names differ, so that dlpack.h can also be included. */
typedef struct PyUSMArrayDevice {
    int32_t device_type; /* DLPack's device type: 1 host, 2 CUDA, 14 oneAPI, ... */
    int32_t device_id;   /* ordinal; -1 for a SYCL device until USMArray.device has been read */
} PyUSMArrayDevice;

typedef struct PyUSMArrayDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} PyUSMArrayDataType;

typedef struct PyUSMArrayObject {
    PyObject_HEAD
    int nd;                      /* number of dimensions, 0 to 64 */
    char *data;                  /* address of element zero; NULL only if the array is empty */
    Py_ssize_t *shape;           /* nd lengths */
    Py_ssize_t *strides;         /* nd strides in elements; NULL if a byte stride is not a multiple of itemsize */
    int typenum;                 /* NumPy's type number; 4096 or more for types that NumPy does not have */
    int flags;                   /* USM_ARRAY_* */
    PyObject *base;              /* owner of the memory */
    Py_ssize_t *byte_strides;    /* nd strides in bytes; NULL if the flag USM_ARRAY_PACKED is set */
    Py_ssize_t itemsize;         /* bytes */
    PyUSMArrayDevice device;
    PyUSMArrayDataType dl_dtype;
    uint8_t usm_type;            /* kind of USM: USM_ARRAY_USM_* */
    uint8_t protocol;
    void *stream;                /* CUDA: handle of the producer's stream, or NULL if it is unknown */
    /* Private fields follow. */
} PyUSMArrayObject;

/* Struct to which the capsule "arrayhub._core.descriptor._C_API" points. */
typedef struct PyUSMArrayAPI {
    int version;                 /* ARRAYHUB_C_VERSION of the installed arrayhub */
    Py_ssize_t size;             /* size in bytes of the public fields of PyUSMArrayObject */
    PyTypeObject *array_type;    /* arrayhub.USMArray */
} PyUSMArrayAPI;

#define ARRAYHUB_CAPSULE "arrayhub._core.descriptor._C_API"

/* Each source file has its own pointer, so each file that calls PyUSMArray_Check must call import_arrayhub(). */
static const PyUSMArrayAPI *arrayhub_api = NULL;

/* Import arrayhub, and check its struct against this header. Return 0, or -1 with an ImportError set. */
static inline int import_arrayhub(void) {
    const PyUSMArrayAPI *api = NULL;
    /* PyCapsule_Import imports only the package arrayhub, which imports its submodules, and then reads attributes. */
    api = (const PyUSMArrayAPI *)PyCapsule_Import(ARRAYHUB_CAPSULE, 0);
    if (api == NULL) return -1;
    if (api->version < ARRAYHUB_C_VERSION || api->size < (Py_ssize_t)sizeof(PyUSMArrayObject) ||
        api->array_type == NULL || api->array_type->tp_basicsize < (Py_ssize_t)sizeof(PyUSMArrayObject)) {
        PyErr_Format(PyExc_ImportError,
                     "arrayhub: this extension was compiled for version %d of the C struct (%zd bytes), but the installed "
                     "arrayhub has version %d (%zd bytes); upgrade arrayhub",
                     ARRAYHUB_C_VERSION, (Py_ssize_t)sizeof(PyUSMArrayObject), api->version, api->size);
        return -1;
    }
    arrayhub_api = api;
    return 0;
}

/* Return 1 if `obj` is an arrayhub.USMArray, else 0. import_arrayhub() must have succeeded before this call. */
static inline int PyUSMArray_Check(PyObject *obj) {
    return PyObject_TypeCheck(obj, arrayhub_api->array_type);
}

#ifdef __cplusplus
}
#endif

#endif
