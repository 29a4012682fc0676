/* A Python function for each function of the C interface, for tests. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arrayhub.h>
#include <stdlib.h>
#include <string.h>

#define MOST 70

/* ------------------------------------------------------------------------------------------------------- requests */

struct Wanted {
    PyUSMArrayRequest request;
    PyUSMArrayDataType dtypes[MOST];
    Py_ssize_t shape[MOST];
    char more[64]; /* space for members that a newer header might add */
};

static int read_type(PyObject *pair, PyUSMArrayDataType *out) {
    int code, bits, lanes;
    if (!PyArg_ParseTuple(pair, "iii", &code, &bits, &lanes)) return -1;
    out->code = (uint8_t)code;
    out->bits = (uint8_t)bits;
    out->lanes = (uint16_t)lanes;
    return 0;
}

static int read_sizes(PyObject *sizes, Py_ssize_t *out) {
    Py_ssize_t k, n = PyTuple_Size(sizes);
    if (n < 0 || n > MOST) return -1;
    for (k = 0; k < n; ++k) out[k] = PyLong_AsSsize_t(PyTuple_GetItem(sizes, k));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_request(PyObject *args, PyObject *keywords, PyObject **obj, struct Wanted *wanted) {
    static char *names[] = {(char *)"obj", (char *)"name", (char *)"dtypes", (char *)"ndtypes", (char *)"min_nd", (char *)"max_nd",
                            (char *)"shape", (char *)"flags", (char *)"as_is", (char *)"where", (char *)"may", (char *)"stream",
                            (char *)"struct_size", NULL};
    PyUSMArrayRequest *r = &wanted->request;
    PyObject *dtypes = NULL, *shape = NULL;
    Py_ssize_t k;
    int ndtypes = -100;
    memset(wanted, 0, sizeof(*wanted));
    r->struct_size = PyUSMArrayRequest_HEAD;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zOiiiOiiiiOn", names, obj, &r->name, &dtypes, &ndtypes, &r->min_nd,
                                     &r->max_nd, &shape, &r->flags, &r->as_is, &r->where, &r->may, &r->stream,
                                     &r->struct_size))
        return -1;
    if (dtypes != NULL) {
        r->dtypes = wanted->dtypes;
        r->ndtypes = (int)PyTuple_Size(dtypes);
        for (k = 0; k < r->ndtypes; ++k)
            if (read_type(PyTuple_GetItem(dtypes, k), &wanted->dtypes[k]) < 0) return -1;
    }
    if (ndtypes != -100) r->ndtypes = ndtypes;
    if (shape != NULL) {
        r->shape = wanted->shape;
        if (read_sizes(shape, wanted->shape) < 0) return -1;
    }
    return 0;
}

static PyObject *request(PyObject *module, PyObject *args, PyObject *keywords) {
    struct Wanted wanted;
    PyObject *obj;
    (void)module;
    return read_request(args, keywords, &obj, &wanted) < 0 ? NULL : PyUSMArray_Request(obj, &wanted.request);
}

static PyObject *match(PyObject *module, PyObject *args, PyObject *keywords) {
    struct Wanted wanted;
    PyObject *obj;
    (void)module;
    if (read_request(args, keywords, &obj, &wanted) < 0) return NULL;
    return PyBool_FromLong(PyUSMArray_Match(obj, &wanted.request));
}

static PyObject *explain(PyObject *module, PyObject *args, PyObject *keywords) {
    struct Wanted wanted;
    PyObject *obj;
    (void)module;
    return read_request(args, keywords, &obj, &wanted) < 0 ? NULL : PyUSMArray_Explain(obj, &wanted.request);
}

/* Make a request with a longer struct, as a newer header would declare it. The second argument is the added member. */
static PyObject *request_longer(PyObject *module, PyObject *args) {
    struct { PyUSMArrayRequest r; Py_ssize_t newer; } longer;
    PyObject *obj;
    (void)module;
    memset(&longer, 0, sizeof(longer));
    if (!PyArg_ParseTuple(args, "On", &obj, &longer.newer)) return NULL;
    longer.r.struct_size = sizeof(longer);
    return PyUSMArray_Request(obj, &longer.r);
}

static PyObject *request_null(PyObject *module, PyObject *obj) {
    (void)module;
    return PyUSMArray_Request(obj, NULL);
}

static PyObject *from_object(PyObject *module, PyObject *obj) {
    (void)module;
    return PyUSMArray_FromObject(obj);
}

static PyObject *check(PyObject *module, PyObject *obj) {
    (void)module;
    return PyBool_FromLong(PyUSMArray_Check(obj));
}

static PyObject *fields(PyObject *module, PyObject *obj) {
    const PyUSMArrayFields *a;
    (void)module;
    if (!PyUSMArray_Check(obj)) return PyErr_Format(PyExc_TypeError, "no USMArray");
    a = PyUSMArray_Fields(obj);
    return Py_BuildValue("{s:i,s:n,s:i,s:n,s:(iii),s:(ii),s:i}", "nd", a->nd, "data", (Py_ssize_t)a->data, "flags", a->flags,
                         "itemsize", a->itemsize, "dl_dtype", a->dl_dtype.code, a->dl_dtype.bits, a->dl_dtype.lanes, "device",
                         a->device.device_type, a->device.device_id, "usm_type", a->usm_type);
}

/* of_null(function, pending): call a function with NULL in place of an object. If `pending` is true, first set an exception,
   as a failed call that returned NULL would have done. */
static PyObject *of_null(PyObject *module, PyObject *args) {
    const char *call;
    int pending;
    PyUSMArrayRequest any = {PyUSMArrayRequest_HEAD};
    PyUSMArrayDevice found;
    PyUSMArrayElement element;
    void *queue;
    (void)module;
    if (!PyArg_ParseTuple(args, "sp", &call, &pending)) return NULL;
    if (pending) PyErr_SetString(PyExc_KeyError, "raised before the call");
    if (strcmp(call, "PyUSMArray_FromObject") == 0) return PyUSMArray_FromObject(NULL);
    if (strcmp(call, "PyUSMArray_Request") == 0) return PyUSMArray_Request(NULL, &any);
    if (strcmp(call, "PyUSMArray_Explain") == 0) return PyUSMArray_Explain(NULL, &any);
    if (strcmp(call, "PyUSMArray_ToHost") == 0) return PyUSMArray_ToHost(NULL);
    if (strcmp(call, "PyUSMArray_Convert") == 0) return PyUSMArray_Convert(NULL, "numpy");
    if (strcmp(call, "PyUSMArray_Like") == 0) return PyUSMArray_Like(NULL, Py_None, 0);
    if (strcmp(call, "PyUSMArray_Like, model") == 0) return PyUSMArray_Like(Py_None, NULL, 0);
    if (strcmp(call, "PyUSMArray_HostReady") == 0) return PyUSMArray_HostReady(NULL) < 0 ? NULL : Py_BuildValue("");
    if (strcmp(call, "PyUSMArray_Device") == 0) return PyUSMArray_Device(NULL, &found) < 0 ? NULL : Py_BuildValue("");
    if (strcmp(call, "PyUSMArray_QueueRef") == 0) return PyUSMArray_QueueRef(NULL, &queue) < 0 ? NULL : Py_BuildValue("");
    if (strcmp(call, "PyUSMArray_TypeOfObject") == 0) return PyUSMArray_TypeOfObject(NULL, &element) < 0 ? NULL : Py_BuildValue("");
    PyErr_Clear();
    return PyLong_FromLong(PyUSMArray_Match(NULL, &any) + PyUSMArray_Check(NULL));
}

/* ------------------------------------------------------------------------------------------------- arrays of memory */

static int released = 0;
static int raising = 0;

static void count(void *context) {
    ++released;
    if (PyErr_Occurred()) released += 1000;
    free(context);
    if (raising) PyErr_SetString(PyExc_RuntimeError, "raised by the release function");
}

static PyObject *take_released(PyObject *module, PyObject *nothing) {
    int n = released;
    (void)module, (void)nothing;
    released = 0;
    return PyLong_FromLong(n);
}

/* make(data, shape, ...): create an array on the memory at `data`. If `data` is None, allocate memory filled with 1.0. The
   callback `count` releases this memory if no owner is given. */
static PyObject *make(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {(char *)"data", (char *)"shape", (char *)"byte_strides", (char *)"dtype", (char *)"typenum",
                            (char *)"access", (char *)"device", (char *)"owner", (char *)"queue", (char *)"queue_ref",
                            (char *)"stream", (char *)"nd", (char *)"struct_size", (char *)"raises", (char *)"both",
                            (char *)"model", NULL};
    PyUSMArraySpec spec;
    PyObject *data, *shape, *strides = NULL, *dtype = NULL, *array;
    Py_ssize_t lengths[MOST], steps[MOST], k, n = 1, queue_ref = 0, stream = 0;
    int nd = -100, raises = 0, both = 0;
    double *fresh = NULL;
    (void)module;
    memset(&spec, 0, sizeof(spec));
    spec.struct_size = PyUSMArraySpec_HEAD;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$OOii(ii)OOnninppO", names, &data, &shape, &strides, &dtype,
                                     &spec.typenum, &spec.access, &spec.device.device_type, &spec.device.device_id,
                                     &spec.owner, &spec.queue, &queue_ref, &stream, &nd, &spec.struct_size, &raises, &both,
                                     &spec.model))
        return NULL;
    raising = raises;
    spec.queue_ref = (void *)queue_ref;
    spec.stream = (void *)stream;
    if (shape != Py_None) {
        if (read_sizes(shape, lengths) < 0) return NULL;
        spec.shape = lengths;
        spec.nd = (int)PyTuple_Size(shape);
    }
    if (nd != -100) spec.nd = nd;
    if (strides != NULL) {
        if (read_sizes(strides, steps) < 0) return NULL;
        spec.byte_strides = steps;
    }
    if (dtype != NULL) {
        if (read_type(dtype, &spec.dtype) < 0) return NULL;
    } else if (spec.typenum == 0) {
        spec.dtype = USM_ARRAY_FLOAT64;
    }
    if (data == Py_None) {
        for (k = 0; k < spec.nd; ++k) n *= lengths[k];
        spec.data = fresh = (double *)malloc((size_t)(n > 0 ? n : 1) * sizeof(double));
        for (k = 0; k < n; ++k) fresh[k] = 1;
        if (spec.owner == NULL || both) {
            spec.release = count;
            spec.context = fresh;
        }
    } else {
        spec.data = PyLong_AsVoidPtr(data);
        if (PyErr_Occurred()) return NULL;
        if (both) spec.release = count;
    }
    array = PyUSMArray_New(&spec);
    if (array == NULL) free(fresh);
    return array;
}

static PyObject *make_null(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyUSMArray_New(NULL);
}

/* -------------------------------------------------------------------------------------------------------- look-ups */

static PyObject *to_host(PyObject *module, PyObject *obj) {
    (void)module;
    return PyUSMArray_ToHost(obj);
}

static PyObject *host_ready(PyObject *module, PyObject *obj) {
    (void)module;
    return PyUSMArray_HostReady(obj) < 0 ? NULL : Py_BuildValue("");
}

static PyObject *device(PyObject *module, PyObject *obj) {
    PyUSMArrayDevice found;
    (void)module;
    return PyUSMArray_Device(obj, &found) < 0 ? NULL : Py_BuildValue("(ii)", found.device_type, found.device_id);
}

static PyObject *queue_ref(PyObject *module, PyObject *obj) {
    void *queue;
    (void)module;
    return PyUSMArray_QueueRef(obj, &queue) < 0 ? NULL : PyLong_FromVoidPtr(queue);
}

static PyObject *type_words(int status, const PyUSMArrayElement *t) {
    if (status < 0) return NULL;
    return Py_BuildValue("(s(iii)inn)", t->name, t->dtype.code, t->dtype.bits, t->dtype.lanes, t->typenum, t->itemsize,
                         t->alignment);
}

static PyObject *type_of_number(PyObject *module, PyObject *number) {
    PyUSMArrayElement t;
    (void)module;
    return type_words(PyUSMArray_TypeOfNumber((int)PyLong_AsLong(number), &t), &t);
}

static PyObject *type_of_dlpack(PyObject *module, PyObject *args) {
    PyUSMArrayElement t;
    PyUSMArrayDataType dtype;
    (void)module;
    return read_type(args, &dtype) < 0 ? NULL : type_words(PyUSMArray_TypeOfDLPack(dtype, &t), &t);
}

static PyObject *type_of_object(PyObject *module, PyObject *obj) {
    PyUSMArrayElement t;
    (void)module;
    memset(&t, 0xff, sizeof(t)); /* the function must write all fields, because callers do not clear them */
    return type_words(PyUSMArray_TypeOfObject(obj, &t), &t);
}

static PyObject *convert(PyObject *module, PyObject *args) {
    PyObject *obj;
    const char *library;
    (void)module;
    return PyArg_ParseTuple(args, "Oz", &obj, &library) ? PyUSMArray_Convert(obj, library) : NULL;
}

static PyObject *like(PyObject *module, PyObject *args) {
    PyObject *obj, *model;
    int may_copy = 0;
    (void)module;
    return PyArg_ParseTuple(args, "OO|p", &obj, &model, &may_copy) ? PyUSMArray_Like(obj, model, may_copy) : NULL;
}

#define KEYWORDS(function) {#function, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, NULL}
static PyMethodDef methods[] = {
    KEYWORDS(request),
    KEYWORDS(match),
    KEYWORDS(explain),
    KEYWORDS(make),
    {"request_longer", request_longer, METH_VARARGS, NULL},
    {"request_null", request_null, METH_O, NULL},
    {"of_null", of_null, METH_VARARGS, NULL},
    {"from_object", from_object, METH_O, NULL},
    {"check", check, METH_O, NULL},
    {"fields", fields, METH_O, NULL},
    {"take_released", take_released, METH_NOARGS, NULL},
    {"make_null", make_null, METH_NOARGS, NULL},
    {"to_host", to_host, METH_O, NULL},
    {"host_ready", host_ready, METH_O, NULL},
    {"device", device, METH_O, NULL},
    {"queue_ref", queue_ref, METH_O, NULL},
    {"type_of_number", type_of_number, METH_O, NULL},
    {"type_of_dlpack", type_of_dlpack, METH_VARARGS, NULL},
    {"type_of_object", type_of_object, METH_O, NULL},
    {"convert", convert, METH_VARARGS, NULL},
    {"like", like, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
#ifndef NAME
#define NAME probe
#endif
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define INIT_(name) PyInit_##name
#define INIT(name) INIT_(name)
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, TEXT(NAME), NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC INIT(NAME)(void) { return PyModule_Create(&definition); }
