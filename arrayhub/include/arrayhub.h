/* The C interface of arrayhub: the struct behind every arrayhub.USMArray, and functions that import any array and export
 * memory as arrays. For C, C++ (see also arrayhub.hpp), Cython, and any other language that can call C.
 *
 *     #include <Python.h>
 *     #include <arrayhub.h>            // compile with $(python -m arrayhub config --cflags)
 *
 *     static const PyUSMArrayDataType doubles[] = {USM_ARRAY_FLOAT64_INIT};
 *     static const PyUSMArrayRequest wanted = {PyUSMArrayRequest_HEAD, .name = "total: x", .dtypes = doubles, .ndtypes = 1};
 *
 *     PyObject *array = PyUSMArray_Request(obj, &wanted);
 *     if (array == NULL) return NULL;                    // an exception with a message for the user is set
 *     const PyUSMArrayFields *a = PyUSMArray_Fields(array);
 *     ... a->nd, a->shape[k], a->data ...
 *     Py_DECREF(array);
 *
 * The first function that needs arrayhub imports it. Call all functions with the GIL held. Fields may be read without the
 * GIL while a reference to the array is held. Returned references are new, except the pointer of PyUSMArray_QueueRef.
 * If an object argument is NULL (for example the result of a failed Python call), the function fails with the exception
 * that is set, or with SystemError. docs/abi.md has the rules for changes of this interface.
 */
#ifndef ARRAYHUB_H
#define ARRAYHUB_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented for each new field, function or struct member. All of them are appended. */
#define ARRAYHUB_C_VERSION 3

/* The oldest version of the C interface that an extension supports. Define the macro before including the header. Newer
   functions are then not declared. 1: only the struct. 2: the functions. 3: PyUSMArraySpec.model. */
#ifndef ARRAYHUB_TARGET_VERSION
#define ARRAYHUB_TARGET_VERSION 2
#endif
#if ARRAYHUB_TARGET_VERSION > ARRAYHUB_C_VERSION
#error "ARRAYHUB_TARGET_VERSION is newer than this arrayhub.h"
#endif

/* Since C++17, each shared library has one hidden copy of the inline functions and of the pointer that they use. In C and
   older C++, each source file has its own copy. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ARRAYHUB_LINKAGE inline __attribute__((visibility("hidden")))
#define ARRAYHUB_INLINE ARRAYHUB_LINKAGE
#else
#define ARRAYHUB_LINKAGE static
#define ARRAYHUB_INLINE static inline
#endif

/* PyUSMArrayObject.flags. The contiguity and alignment flags are computed from shape, strides and address, never copied from
   a producer. Other bits may be set. */
#define USM_ARRAY_C_CONTIGUOUS 0x0001
#define USM_ARRAY_F_CONTIGUOUS 0x0002
#define USM_ARRAY_WRITEABLE    0x0004
#define USM_ARRAY_ALIGNED      0x0100 /* every element is aligned for its type */
#define USM_ARRAY_NOTSWAPPED   0x0200 /* native byte order */
#define USM_ARRAY_IMMUTABLE    0x1000 /* the memory never changes, not even through its owner (bytes, jax arrays) */
#define USM_ARRAY_PACKED       0x2000 /* elements smaller than a byte share bytes; always compact C order */
#define USM_ARRAY_COPIED       0x4000 /* a copy: writes do not change the imported object; also set for views of the copy */

/* PyUSMArrayObject.usm_type: dpctl's numbers. */
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
#define USM_ARRAY_ARROW           7

/* PyUSMArrayObject.dl_dtype.code if DLPack does not define the element type. */
#define USM_ARRAY_NO_DLPACK 255

/* Structs with the layouts of DLPack's DLDevice and DLDataType. The names differ, so that dlpack.h can be included too. */
typedef struct PyUSMArrayDevice {
    int32_t device_type; /* DLPack's number: 1 host, 2 CUDA, 14 oneAPI, ... */
    int32_t device_id;   /* ordinal; -1 for a SYCL device until it is looked up: call PyUSMArray_Device */
} PyUSMArrayDevice;

typedef struct PyUSMArrayDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} PyUSMArrayDataType;

/* The public fields of an array. A macro, because two structs contain them. */
#define ARRAYHUB_FIELDS                                                                                                \
    int nd;                      /* number of dimensions, 0 to 64 */                                                   \
    char *data;                  /* element zero; NULL only in an array without elements */                            \
    Py_ssize_t *shape;           /* nd lengths */                                                                      \
    Py_ssize_t *strides;         /* nd steps in elements; NULL if a byte stride is not a multiple of itemsize */       \
    int typenum;                 /* NumPy's type number; 4096 and up for types that NumPy does not have */             \
    int flags;                   /* USM_ARRAY_* */                                                                     \
    PyObject *base;              /* owner of the memory */                                                             \
    Py_ssize_t *byte_strides;    /* nd steps in bytes; NULL if flags has USM_ARRAY_PACKED */                           \
    Py_ssize_t itemsize;         /* bytes */                                                                           \
    PyUSMArrayDevice device;                                                                                           \
    PyUSMArrayDataType dl_dtype; /* for comparing element types, because some have several values of typenum */        \
    uint8_t usm_type;            /* USM type of SYCL memory: USM_ARRAY_USM_* */                                        \
    uint8_t protocol;                                                                                                  \
    void *stream;                /* CUDA: the handle of the producer's stream; NULL if unknown */

/* The two structs describe the same object, with and without its object header. */
typedef struct PyUSMArrayObject {
    PyObject_HEAD
    ARRAYHUB_FIELDS
    /* private fields follow */
} PyUSMArrayObject;

typedef struct PyUSMArrayFields {
    ARRAYHUB_FIELDS
    /* private fields follow */
} PyUSMArrayFields;

/* Element types, named as in NumPy and ml_dtypes. USM_ARRAY_FLOAT64_INIT is an initializer, also for static variables.
   USM_ARRAY_FLOAT64 is a value for all other uses. */
#ifdef __cplusplus
#define USM_ARRAY_VALUE PyUSMArrayDataType
#else
#define USM_ARRAY_VALUE (PyUSMArrayDataType)
#endif
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

/* PyUSMArrayRequest.flags: USM_ARRAY_WRITEABLE, USM_ARRAY_C_CONTIGUOUS, USM_ARRAY_F_CONTIGUOUS, and the following flag. */
#define USM_ARRAY_WHOLE_STRIDES 0x00010000 /* byte strides are multiples of itemsize, so `strides` is not NULL */

/* PyUSMArrayRequest.where: accepted kinds of memory. 0 means USM_ARRAY_ON_HOST. */
#define USM_ARRAY_ON_HOST  1 /* readable by a host thread: host memory, shared and host USM, managed and pinned CUDA memory */
#define USM_ARRAY_ON_USM   2 /* SYCL USM of any type */
#define USM_ARRAY_ON_CUDA  4 /* memory that a CUDA kernel can access */
#define USM_ARRAY_ANYWHERE 15

/* PyUSMArrayRequest.may: copies allowed to meet the other conditions. 0: none; the error names the unmet condition.
   USM_ARRAY_MAY_CAST copies to the first accepted element type to which numpy.can_cast allows a safe cast, or else to the first
   of the same or a higher kind, in the order bool, integer, real, complex. A value that this type cannot represent raises
   OverflowError: an integer out of range, or a finite number that would become infinite. */
#define USM_ARRAY_MAY_CAST     1 /* copy to an accepted element type, or to native byte order */
#define USM_ARRAY_MAY_RELAYOUT 2 /* copy for layout, alignment or byte order */
#define USM_ARRAY_MAY_TRANSFER 4 /* copy between host and device */
#define USM_ARRAY_MAY_BUILD    8 /* make an array from numbers and nested lists, of an accepted type that represents them */

/* PyUSMArraySpec.access: USM_ARRAY_WRITEABLE, USM_ARRAY_IMMUTABLE (the memory never changes again), or the following value. */
#define USM_ARRAY_READONLY 0
/* Elements smaller than a byte, such as DLPack's (0, 4, 1), are padded to one byte each. If access also contains
   USM_ARRAY_PACKED, elements share bytes, in C order, as in DLPack tensors without the padding flag. byte_strides must then
   be NULL. */

/* Conditions on an array. All members except struct_size may be zero. The request then accepts any array that the host can
   read, if its elements are aligned, not packed, and in native byte order. */
typedef struct PyUSMArrayRequest {
    Py_ssize_t struct_size;           /* sizeof(PyUSMArrayRequest): PyUSMArrayRequest_HEAD */
    const char *name;                 /* prefix of error messages, "function: argument"; or NULL */
    const PyUSMArrayDataType *dtypes; /* accepted element types */
    int ndtypes;                      /* length of dtypes; 0 for any */
    int min_nd;                       /* minimum number of dimensions */
    int max_nd;                       /* maximum number of dimensions; 0 or less for any, unless shape is given */
    const Py_ssize_t *shape;          /* NULL, or max_nd lengths (-1 for any); the array must then have max_nd dimensions */
    int flags;                        /* flags that the array must have */
    int as_is;                        /* not 0: elements may be unaligned, packed, or in the other byte order */
    int where;                        /* USM_ARRAY_ON_* */
    int may;                          /* USM_ARRAY_MAY_*; ignored if flags has USM_ARRAY_WRITEABLE */
    PyObject *stream;                 /* borrowed; the caller's stream or queue, as in asarray(stream=); or NULL or None */
} PyUSMArrayRequest;
#define PyUSMArrayRequest_HEAD sizeof(PyUSMArrayRequest)

/* Memory to wrap as an array. */
typedef struct PyUSMArraySpec {
    Py_ssize_t struct_size;         /* sizeof(PyUSMArraySpec): PyUSMArraySpec_HEAD */
    void *data;                     /* element zero; NULL only for an array without elements */
    int nd;                         /* number of dimensions, 0 to 64 */
    const Py_ssize_t *shape;        /* nd lengths */
    const Py_ssize_t *byte_strides; /* nd steps; NULL for compact C order */
    PyUSMArrayDataType dtype;       /* element type; all zero if typenum is given instead */
    int typenum;                    /* for types that DLPack does not define, such as long double; 0 means not given */
    int access;                     /* USM_ARRAY_WRITEABLE, USM_ARRAY_READONLY or USM_ARRAY_IMMUTABLE; see above */
    PyUSMArrayDevice device;        /* DLPack's numbers; all zero for the host, or for SYCL memory with a queue */
    PyObject *owner;                /* object that keeps the memory alive; NULL if `release` is given */
    void (*release)(void *context); /* releases the memory; called once, from any thread, with the GIL held and no exception
                                       set; must not throw a C++ exception; NULL if `owner` is given */
    void *context;
    PyObject *queue;                /* SYCL: a dpctl.SyclQueue, or an object that determines one; or NULL */
    void *queue_ref;                /* SYCL, if `queue` is NULL: a sycl::queue*, whose queue is copied; or NULL */
    void *stream;                   /* CUDA: the stream that fills the memory; NULL for none */
    /* version 3 */
    PyObject *model;                /* NULL, or an array: allocate memory of its library, device and stream; data,
                                       byte_strides, device, owner, release, queue, queue_ref and stream must then be zero */
} PyUSMArraySpec;
#define PyUSMArraySpec_HEAD sizeof(PyUSMArraySpec)

/* An element type: its name, numbers, size and alignment. */
typedef struct PyUSMArrayElement {
    Py_ssize_t struct_size;         /* sizeof(PyUSMArrayElement); set by the functions below */
    const char *name;               /* name in NumPy, ml_dtypes or arrayhub; valid until the process ends */
    PyUSMArrayDataType dtype;       /* code USM_ARRAY_NO_DLPACK if DLPack does not define the type */
    int typenum;
    Py_ssize_t itemsize;            /* bytes */
    Py_ssize_t alignment;           /* bytes */
} PyUSMArrayElement;

/* The struct that the capsule ARRAYHUB_CAPSULE points to. */
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

/* The table of functions: one pointer for each source file, or for each shared library since C++17. import_arrayhub() sets
   the pointer, and the functions below call import_arrayhub(). */
ARRAYHUB_LINKAGE const PyUSMArrayAPI *arrayhub_api = NULL;

#ifdef ARRAYHUB_STANDALONE /* import host arrays without the package: arrayhub/standalone.hpp, which arrayhub.hpp includes */
#if !defined(__cplusplus) || __cplusplus < 201703L
#error "ARRAYHUB_STANDALONE needs C++17 and arrayhub.hpp"
#endif
ARRAYHUB_INLINE const PyUSMArrayAPI *arrayhub_standalone_api(void);
#endif

/* Import arrayhub and check that its C interface has at least the targeted version. Return 0, or -1 with an ImportError set.
   The call is optional. In a module's init function, it reports a missing or old arrayhub when the module is imported. */
ARRAYHUB_INLINE int import_arrayhub(void) {
    const PyUSMArrayAPI *api = NULL;
    if (arrayhub_api != NULL) return 0;
#ifdef ARRAYHUB_STANDALONE
    api = arrayhub_standalone_api(); /* NULL if the package is installed */
    if (api == NULL && PyErr_Occurred()) return -1;
#endif
    if (api == NULL) {
        PyObject *package = PyImport_ImportModule("arrayhub"); /* PyCapsule_Import would replace the error of the import */
        if (package != NULL && (api = (const PyUSMArrayAPI *)PyCapsule_Import(ARRAYHUB_CAPSULE, 0)) == NULL)
            PyErr_Format(PyExc_ImportError, "arrayhub: %R does not have the C interface; upgrade arrayhub", package);
        Py_XDECREF(package);
    }
    if (api == NULL) return -1;
    if (api->version < ARRAYHUB_TARGET_VERSION || api->array_type == NULL ||
        api->size < (Py_ssize_t)(offsetof(PyUSMArrayObject, stream) + sizeof(void *))
#if ARRAYHUB_TARGET_VERSION >= 2
        || api->table_size < (Py_ssize_t)(offsetof(PyUSMArrayAPI, like) + sizeof(api->like)) || api->like == NULL ||
        api->fields_offset <= 0
#endif
    ) {
        PyErr_Format(PyExc_ImportError,
                     "arrayhub: this extension was compiled for version %d of the C interface (a struct of %zd bytes), but the "
                     "installed arrayhub has version %d (%zd bytes); upgrade arrayhub",
                     ARRAYHUB_TARGET_VERSION, (Py_ssize_t)sizeof(PyUSMArrayObject), api->version, api->size);
        return -1;
    }
    arrayhub_api = api;
    return 0;
}

/* Return 1 if `obj` is an arrayhub.USMArray, else 0. Never raises. */
ARRAYHUB_INLINE int PyUSMArray_Check(PyObject *obj) {
    if (arrayhub_api == NULL && import_arrayhub() < 0) {
        PyErr_WriteUnraisable(obj);
        return 0;
    }
    return obj != NULL && PyObject_TypeCheck(obj, arrayhub_api->array_type);
}

#if ARRAYHUB_TARGET_VERSION >= 2

/* Return the fields of an arrayhub.USMArray, valid while the object lives. `array` must be a USMArray: the result of a
   function below, or an object that PyUSMArray_Check accepts. */
ARRAYHUB_INLINE const PyUSMArrayFields *PyUSMArray_Fields(PyObject *array) {
#ifdef Py_LIMITED_API /* the size of the object header depends on the Python version */
    if (arrayhub_api == NULL && import_arrayhub() < 0) return NULL; /* may be the first call in this source file */
    return (const PyUSMArrayFields *)((char *)array + arrayhub_api->fields_offset);
#else
    return (const PyUSMArrayFields *)((char *)array + offsetof(PyUSMArrayObject, nd));
#endif
}

/* Import any array as a USMArray without a copy, like arrayhub.asarray(obj). Numbers and lists of numbers are copied. */
ARRAYHUB_INLINE PyObject *PyUSMArray_FromObject(PyObject *obj) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->from_object(obj);
}

/* Import any array as a USMArray that meets a request. On failure, return NULL with an exception whose message is for the
   user: TypeError (the object is not an array, or its element type is not accepted), ValueError (the shape is not accepted,
   or the memory is read-only), BufferError (the kind of memory or the layout is not accepted), OverflowError (no accepted
   type represents a number), or an exception of arrayhub.asarray. If an array on a device is accepted only because the host
   can read its memory, the function waits for the producer's queue or stream. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Request(PyObject *obj, const PyUSMArrayRequest *request) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->request(obj, request);
}

/* Return 1 if `array` is a USMArray that meets a request without a copy, else 0. Never raises, copies or waits. */
ARRAYHUB_INLINE int PyUSMArray_Match(PyObject *array, const PyUSMArrayRequest *request) {
    return PyUSMArray_Check(array) && arrayhub_api->match(array, request);
}

/* Return the error message of PyUSMArray_Request as a str, or "" if the request succeeds. The request is executed with all
   permitted copies, and the array is discarded. PyUSMArray_Match is faster. Return NULL if the request itself is invalid. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Explain(PyObject *obj, const PyUSMArrayRequest *request) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->explain(obj, request);
}

/* Wrap existing memory as an array or, if the spec has a model, allocate an array as arrayhub.empty(shape, dtype,
   like=model) does. On failure, the caller still owns the memory, and `release` is not called. */
ARRAYHUB_INLINE PyObject *PyUSMArray_New(const PyUSMArraySpec *spec) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->make(spec);
}

/* Import any array as a USMArray that the host can read: a view if possible, else a copy. */
ARRAYHUB_INLINE PyObject *PyUSMArray_ToHost(PyObject *obj) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->to_host(obj);
}

/* Wait until the producer's work on a USMArray is done. Return 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_HostReady(PyObject *array) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->host_ready(array);
}

/* Get the device of a USMArray, and determine its ordinal if that is still -1. Return 0, or -1 with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_Device(PyObject *array, PyUSMArrayDevice *out) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->device(array, out);
}

/* Get the sycl::queue* of a USMArray in SYCL memory. The pointer is borrowed, and valid while the array lives. Return 0, or -1
   with an exception set. */
ARRAYHUB_INLINE int PyUSMArray_QueueRef(PyObject *array, void **out) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? -1 : arrayhub_api->queue_ref(array, out);
}

/* Get an element type from its type number, from its DLPack data type, or from a Python object that names it: a string, a
   NumPy dtype or type, a torch.dtype. Return 0, or -1 with an exception set. */
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

/* Convert any array to an array of the named library. The names are those of arrayhub.convert: "numpy", "torch", "jax", "cupy",
   "dpnp", "numba", "arrow", "polars", "pandas", "awkward", "xarray" and others. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Convert(PyObject *obj, const char *library) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->convert(obj, library);
}

/* Convert any array to the library of `model`. Copy only if `may_copy` is not 0 and a view is impossible. */
ARRAYHUB_INLINE PyObject *PyUSMArray_Like(PyObject *obj, PyObject *model, int may_copy) {
    return arrayhub_api == NULL && import_arrayhub() < 0 ? NULL : arrayhub_api->like(obj, model, may_copy);
}

#endif /* ARRAYHUB_TARGET_VERSION >= 2 */

#ifdef __cplusplus
}
#endif

#endif
