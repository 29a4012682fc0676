/* The C face of arrayhub: the struct behind every arrayhub.USMArray, for C, C++ and Cython.
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
 * Everything here is read-only, and valid for as long as the object lives. Fields are only ever added, at the end;
 * import_arrayhub() refuses an installed arrayhub that is older than this header, or laid out differently.
 */
#ifndef ARRAYHUB_H
#define ARRAYHUB_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up with every field that is added. An installed arrayhub of the same or a higher number has all fields below. */
#define ARRAYHUB_C_VERSION 1

/* PyUSMArrayObject.flags: computed from shape and strides, never taken from a producer. Other bits may be set. */
#define USM_ARRAY_C_CONTIGUOUS 0x0001
#define USM_ARRAY_F_CONTIGUOUS 0x0002
#define USM_ARRAY_WRITEABLE    0x0004
#define USM_ARRAY_ALIGNED      0x0100 /* every element lies on a boundary of its type's alignment */
#define USM_ARRAY_NOTSWAPPED   0x0200 /* the machine's own byte order */
#define USM_ARRAY_IMMUTABLE    0x1000 /* nobody can write, the owner included (bytes, jax arrays) */
#define USM_ARRAY_PACKED       0x2000 /* elements of less than a byte share bytes; always compact C order */
#define USM_ARRAY_COPIED       0x4000 /* a copy, so that writes do not reach the object which came in; views of it too */

/* PyUSMArrayObject.usm_type: dpctl's numbers. */
#define USM_ARRAY_NOT_USM    0
#define USM_ARRAY_USM_DEVICE 1
#define USM_ARRAY_USM_SHARED 2
#define USM_ARRAY_USM_HOST   3

/* PyUSMArrayObject.protocol: the protocol by which the memory came in. */
#define USM_ARRAY_CONSTRUCTED     0
#define USM_ARRAY_ARRAY_INTERFACE 1
#define USM_ARRAY_ARRAY_STRUCT    2
#define USM_ARRAY_CUDA_DICT       3
#define USM_ARRAY_SYCL_DICT       4
#define USM_ARRAY_PEP3118         5
#define USM_ARRAY_DLPACK          6

/* PyUSMArrayObject.dl_dtype.code where DLPack has no number for the element type. */
#define USM_ARRAY_NO_DLPACK 255

/* The same layout as DLPack's DLDevice and DLDataType, under names of its own so that dlpack.h may be included too. */
typedef struct PyUSMArrayDevice {
    int32_t device_type; /* DLPack's number: 1 host, 2 CUDA, 14 oneAPI, ... */
    int32_t device_id;   /* ordinal; -1 while a SYCL device's has not been looked up: read USMArray.device for it */
} PyUSMArrayDevice;

typedef struct PyUSMArrayDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} PyUSMArrayDataType;

typedef struct PyUSMArrayObject {
    PyObject_HEAD
    int nd;                      /* number of dimensions, 0 to 64 */
    char *data;                  /* element zero; NULL only in an array without elements */
    Py_ssize_t *shape;           /* nd lengths */
    Py_ssize_t *strides;         /* nd steps in elements; NULL where a byte stride is no multiple of itemsize */
    int typenum;                 /* NumPy's type number; 4096 and up for types NumPy does not have */
    int flags;                   /* USM_ARRAY_* */
    PyObject *base;              /* what owns the memory */
    Py_ssize_t *byte_strides;    /* nd steps in bytes; NULL where flags has USM_ARRAY_PACKED */
    Py_ssize_t itemsize;         /* bytes */
    PyUSMArrayDevice device;
    PyUSMArrayDataType dl_dtype;
    uint8_t usm_type;            /* kind of SYCL memory: USM_ARRAY_USM_* */
    uint8_t protocol;
    void *stream;                /* CUDA: the producer's stream handle; NULL where it named none */
    /* private fields follow */
} PyUSMArrayObject;

/* What the capsule "arrayhub._core.descriptor._C_API" points to. */
typedef struct PyUSMArrayAPI {
    int version;                 /* ARRAYHUB_C_VERSION of the installed arrayhub */
    Py_ssize_t size;             /* bytes of PyUSMArrayObject up to its private fields */
    PyTypeObject *array_type;    /* arrayhub.USMArray */
} PyUSMArrayAPI;

#define ARRAYHUB_CAPSULE "arrayhub._core.descriptor._C_API"

/* One pointer a source file: each file that calls PyUSMArray_Check calls import_arrayhub() itself. */
static const PyUSMArrayAPI *arrayhub_api = NULL;

/* Import arrayhub and check that its struct is the one declared here. 0, or -1 with an ImportError set. */
static inline int import_arrayhub(void) {
    const PyUSMArrayAPI *api = NULL;
    /* PyCapsule_Import reads attributes and imports the first name only; the attributes are there once it is done. */
    api = (const PyUSMArrayAPI *)PyCapsule_Import(ARRAYHUB_CAPSULE, 0);
    if (api == NULL) return -1;
    if (api->version < ARRAYHUB_C_VERSION || api->size < (Py_ssize_t)sizeof(PyUSMArrayObject) ||
        api->array_type == NULL || api->array_type->tp_basicsize < (Py_ssize_t)sizeof(PyUSMArrayObject)) {
        PyErr_Format(PyExc_ImportError,
                     "arrayhub: this extension was compiled for version %d of the C struct (%zd bytes), the installed "
                     "arrayhub has version %d (%zd bytes); upgrade arrayhub",
                     ARRAYHUB_C_VERSION, (Py_ssize_t)sizeof(PyUSMArrayObject), api->version, api->size);
        return -1;
    }
    arrayhub_api = api;
    return 0;
}

/* 1 if `obj` is an arrayhub.USMArray, else 0. import_arrayhub() must have succeeded before. */
static inline int PyUSMArray_Check(PyObject *obj) {
    return PyObject_TypeCheck(obj, arrayhub_api->array_type);
}

#ifdef __cplusplus
}
#endif

#endif
