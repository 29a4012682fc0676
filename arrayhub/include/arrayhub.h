/* The C interface of arrayhub: the struct behind every arrayhub.USMArray, and functions that take any array and hand
 * out memory. For C, C++ (see also arrayhub.hpp), Cython, and whatever else can call C.
 *
 *     #include <Python.h>
 *     #include <arrayhub.h>            // compile with $(python -m arrayhub config --cflags)
 *
 *     static const PyUSMArrayDataType doubles[] = {USM_ARRAY_FLOAT64_INIT};
 *     static const PyUSMArrayRequest wanted = {PyUSMArrayRequest_HEAD, .name = "total: x", .dtypes = doubles, .ndtypes = 1};
 *
 *     PyObject *array = PyUSMArray_Request(obj, &wanted);
 *     if (array == NULL) return NULL;                    // with the exception set, and a message for the user
 *     const PyUSMArrayFields *a = PyUSMArray_Fields(array);
 *     ... a->nd, a->shape[k], a->data ...
 *     Py_DECREF(array);
 *
 * arrayhub is imported by the first function that needs it. All functions are called with the GIL held; fields may be
 * read without it while a reference to the array is held. References that come back are new but for
 * PyUSMArray_QueueRef's pointer. An object that is NULL, as a failed call of Python's gives it, fails with the exception
 * that is set, or SystemError. docs/abi.md has the rules by which all this may change.
 */
#ifndef ARRAYHUB_H
#define ARRAYHUB_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up with every field, function or member that is added, always at the end of what is there. */
#define ARRAYHUB_C_VERSION 2

/* The oldest arrayhub that an extension wants to run on; define it before the header is included. What is newer is not
   declared then. 1: the struct alone. 2: the functions. */
#ifndef ARRAYHUB_TARGET_VERSION
#define ARRAYHUB_TARGET_VERSION 2
#endif
#if ARRAYHUB_TARGET_VERSION > ARRAYHUB_C_VERSION
#error "ARRAYHUB_TARGET_VERSION is newer than this arrayhub.h"
#endif

/* C++ sees one copy of what is inline in each shared library, and none of another library's. C, and C++ before there were
   inline variables, sees one in each source file: the functions use a pointer that is the file's own. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ARRAYHUB_INLINE inline __attribute__((visibility("hidden")))
#else
#define ARRAYHUB_INLINE static inline
#endif

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
#define USM_ARRAY_ARROW           7

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

/* What may be read of an array. A macro, because it stands in two structs. */
#define ARRAYHUB_FIELDS                                                                                                \
    int nd;                      /* number of dimensions, 0 to 64 */                                                   \
    char *data;                  /* element zero; NULL only in an array without elements */                            \
    Py_ssize_t *shape;           /* nd lengths */                                                                      \
    Py_ssize_t *strides;         /* nd steps in elements; NULL where a byte stride is no multiple of itemsize */       \
    int typenum;                 /* NumPy's type number; 4096 and up for types NumPy does not have */                  \
    int flags;                   /* USM_ARRAY_* */                                                                     \
    PyObject *base;              /* what owns the memory */                                                            \
    Py_ssize_t *byte_strides;    /* nd steps in bytes; NULL where flags has USM_ARRAY_PACKED */                        \
    Py_ssize_t itemsize;         /* bytes */                                                                           \
    PyUSMArrayDevice device;                                                                                           \
    PyUSMArrayDataType dl_dtype; /* the thing to compare: typenum has several numbers for some types */                \
    uint8_t usm_type;            /* kind of SYCL memory: USM_ARRAY_USM_* */                                            \
    uint8_t protocol;                                                                                                  \
    void *stream;                /* CUDA: the producer's stream handle; NULL where it named none */

/* The same object seen as a Python object and as what is behind its head. */
typedef struct PyUSMArrayObject {
    PyObject_HEAD
    ARRAYHUB_FIELDS
    /* private fields follow */
} PyUSMArrayObject;

typedef struct PyUSMArrayFields {
    ARRAYHUB_FIELDS
    /* private fields follow */
} PyUSMArrayFields;

/* Element types under the names that NumPy and ml_dtypes give them: USM_ARRAY_FLOAT64_INIT in initialisers, of static
   variables too, and USM_ARRAY_FLOAT64 as a value anywhere else. */
#ifdef __cplusplus
#define USM_ARRAY_VALUE PyUSMArrayDataType
#else
#define USM_ARRAY_VALUE (PyUSMArrayDataType)
#endif
#define USM_ARRAY_TYPE(code, bits) USM_ARRAY_VALUE{code, bits, 1}
#define USM_ARRAY_BOOL_INIT          {6, 8, 1}
#define USM_ARRAY_INT8_INIT          {0, 8, 1}
#define USM_ARRAY_INT16_INIT         {0, 16, 1}
#define USM_ARRAY_INT32_INIT         {0, 32, 1}
#define USM_ARRAY_INT64_INIT         {0, 64, 1}
#define USM_ARRAY_UINT8_INIT         {1, 8, 1}
#define USM_ARRAY_UINT16_INIT        {1, 16, 1}
#define USM_ARRAY_UINT32_INIT        {1, 32, 1}
#define USM_ARRAY_UINT64_INIT        {1, 64, 1}
#define USM_ARRAY_FLOAT16_INIT       {2, 16, 1}
#define USM_ARRAY_FLOAT32_INIT       {2, 32, 1}
#define USM_ARRAY_FLOAT64_INIT       {2, 64, 1}
#define USM_ARRAY_BFLOAT16_INIT      {4, 16, 1}
#define USM_ARRAY_COMPLEX64_INIT     {5, 64, 1}
#define USM_ARRAY_COMPLEX128_INIT    {5, 128, 1}
#define USM_ARRAY_FLOAT8_E4M3FN_INIT {10, 8, 1}
#define USM_ARRAY_FLOAT8_E5M2_INIT   {12, 8, 1}
#define USM_ARRAY_BOOL               USM_ARRAY_VALUE USM_ARRAY_BOOL_INIT
#define USM_ARRAY_INT8               USM_ARRAY_VALUE USM_ARRAY_INT8_INIT
#define USM_ARRAY_INT16              USM_ARRAY_VALUE USM_ARRAY_INT16_INIT
#define USM_ARRAY_INT32              USM_ARRAY_VALUE USM_ARRAY_INT32_INIT
#define USM_ARRAY_INT64              USM_ARRAY_VALUE USM_ARRAY_INT64_INIT
#define USM_ARRAY_UINT8              USM_ARRAY_VALUE USM_ARRAY_UINT8_INIT
#define USM_ARRAY_UINT16             USM_ARRAY_VALUE USM_ARRAY_UINT16_INIT
#define USM_ARRAY_UINT32             USM_ARRAY_VALUE USM_ARRAY_UINT32_INIT
#define USM_ARRAY_UINT64             USM_ARRAY_VALUE USM_ARRAY_UINT64_INIT
#define USM_ARRAY_FLOAT16            USM_ARRAY_VALUE USM_ARRAY_FLOAT16_INIT
#define USM_ARRAY_FLOAT32            USM_ARRAY_VALUE USM_ARRAY_FLOAT32_INIT
#define USM_ARRAY_FLOAT64            USM_ARRAY_VALUE USM_ARRAY_FLOAT64_INIT
#define USM_ARRAY_BFLOAT16           USM_ARRAY_VALUE USM_ARRAY_BFLOAT16_INIT
#define USM_ARRAY_COMPLEX64          USM_ARRAY_VALUE USM_ARRAY_COMPLEX64_INIT
#define USM_ARRAY_COMPLEX128         USM_ARRAY_VALUE USM_ARRAY_COMPLEX128_INIT
#define USM_ARRAY_FLOAT8_E4M3FN      USM_ARRAY_VALUE USM_ARRAY_FLOAT8_E4M3FN_INIT
#define USM_ARRAY_FLOAT8_E5M2        USM_ARRAY_VALUE USM_ARRAY_FLOAT8_E5M2_INIT

/* PyUSMArrayRequest.flags: USM_ARRAY_WRITEABLE, USM_ARRAY_C_CONTIGUOUS, USM_ARRAY_F_CONTIGUOUS, and */
#define USM_ARRAY_WHOLE_STRIDES 0x00010000 /* steps in elements exist: `strides` is not NULL */

/* PyUSMArrayRequest.where: where the memory may be. 0 is USM_ARRAY_ON_HOST. */
#define USM_ARRAY_ON_HOST  1 /* a host thread may read it: host memory, shared and host USM, managed and pinned CUDA memory */
#define USM_ARRAY_ON_USM   2 /* SYCL memory of any kind */
#define USM_ARRAY_ON_CUDA  4 /* what a CUDA kernel can reach */
#define USM_ARRAY_ANYWHERE 15

/* PyUSMArrayRequest.may: what may be done to meet the other conditions. 0: nothing, which an error then names. */
#define USM_ARRAY_MAY_CAST     1 /* copy to the first accepted element type that takes the values, as NumPy's "same_kind" */
#define USM_ARRAY_MAY_RELAYOUT 2 /* copy for layout, alignment or byte order */
#define USM_ARRAY_MAY_TRANSFER 4 /* copy between host and device */
#define USM_ARRAY_MAY_BUILD    8 /* make an array of numbers and of nested lists of numbers, of a type that holds them */

/* PyUSMArraySpec.access: USM_ARRAY_WRITEABLE, USM_ARRAY_IMMUTABLE (nobody will ever write again), or */
#define USM_ARRAY_READONLY 0
/* Elements of less than a byte, such as DLPack's (0, 4, 1), lie one to a byte, padded. With | USM_ARRAY_PACKED they share
   bytes, in C order, as DLPack has those that are not padded: byte_strides has to be NULL then. */

/* What an array has to be. All of it may be zero but struct_size: then any aligned array in native byte order that the
   host can read meets it. */
typedef struct PyUSMArrayRequest {
    Py_ssize_t struct_size;           /* sizeof(PyUSMArrayRequest): PyUSMArrayRequest_HEAD */
    const char *name;                 /* what messages begin with, "function: argument"; or NULL */
    const PyUSMArrayDataType *dtypes; /* accepted element types */
    int ndtypes;                      /* how many; 0 for any */
    int min_nd;                       /* least number of dimensions */
    int max_nd;                       /* most; 0 or less for any, unless shape is given */
    const Py_ssize_t *shape;          /* NULL, or max_nd lengths (-1 for any) of an array that has max_nd dimensions */
    int flags;                        /* which of them the array must have */
    int as_is;                        /* not 0: elements may be unaligned, or in the other byte order */
    int where;                        /* USM_ARRAY_ON_* */
    int may;                          /* USM_ARRAY_MAY_*; nothing of it is done where flags has USM_ARRAY_WRITEABLE */
    PyObject *stream;                 /* borrowed; the stream or queue that the caller works on, as asarray's stream=; or NULL */
} PyUSMArrayRequest;
#define PyUSMArrayRequest_HEAD sizeof(PyUSMArrayRequest)

/* Memory to make an array of. */
typedef struct PyUSMArraySpec {
    Py_ssize_t struct_size;         /* sizeof(PyUSMArraySpec): PyUSMArraySpec_HEAD */
    void *data;                     /* element zero; NULL only where there are no elements */
    int nd;                         /* number of dimensions, 0 to 64 */
    const Py_ssize_t *shape;        /* nd lengths */
    const Py_ssize_t *byte_strides; /* nd steps; NULL for compact C order */
    PyUSMArrayDataType dtype;       /* element type; all zero where typenum says it */
    int typenum;                    /* for types that DLPack cannot say, such as long double; not 0, which is no type */
    int access;                     /* USM_ARRAY_WRITEABLE, USM_ARRAY_READONLY or USM_ARRAY_IMMUTABLE; see there */
    PyUSMArrayDevice device;        /* DLPack's numbers; all zero for the host, or for SYCL where a queue is given */
    PyObject *owner;                /* keeps the memory while the array lives; or NULL, and then: */
    void (*release)(void *context); /* called once, with the GIL held and no exception set, from whatever thread; a C++
                                       exception must not leave it */
    void *context;
    PyObject *queue;                /* SYCL: a dpctl.SyclQueue, or what else names one; or NULL, and then: */
    void *queue_ref;                /* SYCL: a sycl::queue*, which is copied */
    void *stream;                   /* CUDA: the stream on which the memory is being filled; NULL for none */
} PyUSMArraySpec;
#define PyUSMArraySpec_HEAD sizeof(PyUSMArraySpec)

/* An element type under all its names. */
typedef struct PyUSMArrayElement {
    Py_ssize_t struct_size;         /* set before the call */
    const char *name;               /* as NumPy or ml_dtypes calls it; lives as long as the process */
    PyUSMArrayDataType dtype;       /* code USM_ARRAY_NO_DLPACK where DLPack has no number */
    int typenum;
    Py_ssize_t itemsize;            /* bytes */
    Py_ssize_t alignment;           /* bytes */
} PyUSMArrayElement;

/* What the capsule ARRAYHUB_CAPSULE points to. */
typedef struct PyUSMArrayAPI {
    int version;                    /* ARRAYHUB_C_VERSION of the installed arrayhub */
    Py_ssize_t size;                /* bytes of PyUSMArrayObject up to its private fields */
    PyTypeObject *array_type;       /* arrayhub.USMArray */
    /* version 2 */
    Py_ssize_t table_size;          /* bytes of this struct in the installed arrayhub */
    Py_ssize_t fields_offset;       /* bytes from an array's address to its PyUSMArrayFields */
    PyObject *(*from_object)(PyObject *obj);
    PyObject *(*request)(PyObject *obj, const PyUSMArrayRequest *request);
    int (*match)(PyObject *array, const PyUSMArrayRequest *request);
    PyObject *(*explain)(PyObject *obj, const PyUSMArrayRequest *request);
    PyObject *(*make)(const PyUSMArraySpec *spec);
    PyObject *(*to_host)(PyObject *obj);
    int (*host_ready)(PyObject *array);
    int (*device)(PyObject *array, PyUSMArrayDevice *out);
    int (*queue_ref)(PyObject *array, void **out);
    int (*type_of_number)(int typenum, PyUSMArrayElement *out);
    int (*type_of_dlpack)(PyUSMArrayDataType dtype, PyUSMArrayElement *out);
    int (*type_of_object)(PyObject *dtype, PyUSMArrayElement *out);
    PyObject *(*convert)(PyObject *obj, const char *library);
    PyObject *(*like)(PyObject *obj, PyObject *model, int may_copy);
} PyUSMArrayAPI;

#define ARRAYHUB_CAPSULE "arrayhub._core.descriptor._C_API"

/* One pointer a C source file, one a C++ library. Nobody has to fill it: import_arrayhub() does, at the latest when the
   first function below needs it. */
#if defined(__cplusplus) && __cplusplus >= 201703L
ARRAYHUB_INLINE const PyUSMArrayAPI *arrayhub_api = NULL;
#else
static const PyUSMArrayAPI *arrayhub_api = NULL;
#endif

/* Import arrayhub and check that it is the one declared here, or a later one. 0, or -1 with an ImportError set. To be
   called in a module's init function by those who want to know at once; nobody else needs it. */
ARRAYHUB_INLINE int import_arrayhub(void) {
    const PyUSMArrayAPI *api;
    if (arrayhub_api != NULL) return 0;
    /* PyCapsule_Import reads attributes and imports the first name only; the attributes are there once it is done. */
    api = (const PyUSMArrayAPI *)PyCapsule_Import(ARRAYHUB_CAPSULE, 0);
    if (api == NULL) return -1;
    if (api->version < ARRAYHUB_TARGET_VERSION || api->array_type == NULL ||
        api->size < (Py_ssize_t)(offsetof(PyUSMArrayObject, stream) + sizeof(void *))
#if ARRAYHUB_TARGET_VERSION >= 2
        || api->table_size < (Py_ssize_t)(offsetof(PyUSMArrayAPI, like) + sizeof(api->like)) || api->like == NULL ||
        api->fields_offset <= 0
#endif
    ) {
        PyErr_Format(PyExc_ImportError,
                     "arrayhub: this extension was compiled for version %d of the C interface (a struct of %zd bytes), the "
                     "installed arrayhub has version %d (%zd bytes); upgrade arrayhub",
                     ARRAYHUB_TARGET_VERSION, (Py_ssize_t)sizeof(PyUSMArrayObject), api->version, api->size);
        return -1;
    }
    arrayhub_api = api;
    return 0;
}

/* 1 if `obj` is an arrayhub.USMArray, else 0; raises nothing. */
ARRAYHUB_INLINE int PyUSMArray_Check(PyObject *obj) {
    if (arrayhub_api == NULL && import_arrayhub() < 0) {
        PyErr_WriteUnraisable(obj);
        return 0;
    }
    return obj != NULL && PyObject_TypeCheck(obj, arrayhub_api->array_type);
}

#if ARRAYHUB_TARGET_VERSION >= 2

/* The fields of an arrayhub.USMArray, valid while the object lives. It has to be one: the functions below give them, and
   PyUSMArray_Check knows them. */
ARRAYHUB_INLINE const PyUSMArrayFields *PyUSMArray_Fields(PyObject *array) {
#ifdef Py_LIMITED_API /* the head of objects is another one from Python to Python */
    if (arrayhub_api == NULL && import_arrayhub() < 0) return NULL; /* the first that this source file asks for */
    return (const PyUSMArrayFields *)((char *)array + arrayhub_api->fields_offset);
#else
    return (const PyUSMArrayFields *)((char *)array + offsetof(PyUSMArrayObject, nd));
#endif
}

/* Any array as a USMArray without a copy, as Python's arrayhub.asarray(obj); numbers and lists of them are copied. */
ARRAYHUB_INLINE PyObject *PyUSMArray_FromObject(PyObject *obj) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->from_object(obj);
}

/* Any array as a USMArray that meets a request, or NULL with an exception whose message is for the user: TypeError (no
   array, or its element type), ValueError (its shape, or it is read-only), BufferError (its place or its layout),
   OverflowError (a number that no accepted type holds), and what arrayhub.asarray raises. Where the host is to read, the
   producer's queue or stream has been waited for. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Request(PyObject *obj, const PyUSMArrayRequest *request) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->request(obj, request);
}

/* 1 if `array` is a USMArray that meets a request as it is, else 0. Raises nothing, copies nothing, waits for nothing. */
ARRAYHUB_INLINE int PyUSMArray_Match(PyObject *array, const PyUSMArrayRequest *request) {
    return PyUSMArray_Check(array) && arrayhub_api->match(array, request);
}

/* A str: what PyUSMArray_Request says of `obj`, or "" where it gives an array, which is made for it and dropped, allowed
   copies included. Nothing but that tells in all cases; PyUSMArray_Match is quick. NULL where the request makes no sense. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Explain(PyObject *obj, const PyUSMArrayRequest *request) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->explain(obj, request);
}

/* An array of memory that is there. On failure nothing has been taken over, and `release` is not called. */
ARRAYHUB_INLINE PyObject *PyUSMArray_New(const PyUSMArraySpec *spec) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->make(spec);
}

/* Any array as a USMArray that the host may read: a view where there is one, else a copy. */
ARRAYHUB_INLINE PyObject *PyUSMArray_ToHost(PyObject *obj) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->to_host(obj);
}

/* Wait until the producer's work on a USMArray is done. 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_HostReady(PyObject *array) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->host_ready(array);
}

/* Where a USMArray lies, its ordinal looked up. 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_Device(PyObject *array, PyUSMArrayDevice *out) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->device(array, out);
}

/* The sycl::queue* of a USMArray of SYCL memory, borrowed: valid while the array lives. 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_QueueRef(PyObject *array, void **out) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->queue_ref(array, out);
}

/* An element type by its type number, by DLPack's numbers, or by whatever names it in Python: a string, a NumPy dtype or
   type, a torch.dtype. 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_TypeOfNumber(int typenum, PyUSMArrayElement *out) {
    out->struct_size = sizeof(PyUSMArrayElement);
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->type_of_number(typenum, out);
}
ARRAYHUB_INLINE int PyUSMArray_TypeOfDLPack(PyUSMArrayDataType dtype, PyUSMArrayElement *out) {
    out->struct_size = sizeof(PyUSMArrayElement);
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->type_of_dlpack(dtype, out);
}
ARRAYHUB_INLINE int PyUSMArray_TypeOfObject(PyObject *dtype, PyUSMArrayElement *out) {
    out->struct_size = sizeof(PyUSMArrayElement);
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->type_of_object(dtype, out);
}

/* Any array as one of the library that is named, as Python's arrayhub.convert has them: "numpy", "torch", "jax", "cupy",
   "dpnp", "numba", "arrow", "polars", "pandas", "awkward". */
ARRAYHUB_INLINE PyObject *PyUSMArray_Convert(PyObject *obj, const char *library) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->convert(obj, library);
}

/* Any array as one of the library that `model` came from; a copy only where `may_copy` is not 0 and no view will do. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Like(PyObject *obj, PyObject *model, int may_copy) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->like(obj, model, may_copy);
}

#endif /* ARRAYHUB_TARGET_VERSION >= 2 */

#ifdef __cplusplus
}
#endif

#endif
