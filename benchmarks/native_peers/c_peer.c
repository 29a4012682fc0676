/* Import and export of a float64 array by arrayhub's request and by NumPy's conversion. */
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <arrayhub.h>
#include <stdlib.h>

static const PyUSMArrayDataType doubles[] = {USM_ARRAY_FLOAT64};
static const PyUSMArrayRequest wanted = {PyUSMArrayRequest_HEAD, .name = "take: x", .dtypes = doubles, .ndtypes = 1};

static PyObject *take(PyObject *module, PyObject *x) {
    PyObject *array = PyUSMArray_Request(x, &wanted);
    (void)module;
    if (array == NULL) return NULL;
    Py_DECREF(array);
    Py_RETURN_NONE;
}

static PyObject *take_numpy(PyObject *module, PyObject *x) {
    PyObject *array = PyArray_FROM_OTF(x, NPY_DOUBLE, NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED);
    (void)module;
    if (array == NULL) return NULL;
    Py_DECREF(array);
    Py_RETURN_NONE;
}

static PyObject *out(PyObject *module, PyObject *nothing) {
    const Py_ssize_t n = 8;
    double *data = calloc(n, sizeof(double));
    PyUSMArraySpec spec = {PyUSMArraySpec_HEAD, .data = data, .nd = 1, .shape = &n, .dtype = USM_ARRAY_FLOAT64,
                           .access = USM_ARRAY_WRITEABLE, .release = free, .context = data};
    (void)module, (void)nothing;
    return PyUSMArray_New(&spec);
}

static void free_capsule(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, NULL)); }

static PyObject *out_numpy(PyObject *module, PyObject *nothing) {
    npy_intp n = 8;
    double *data = calloc(n, sizeof(double));
    PyObject *array = PyArray_SimpleNewFromData(1, &n, NPY_DOUBLE, data);
    (void)module, (void)nothing;
    if (array != NULL) PyArray_SetBaseObject((PyArrayObject *)array, PyCapsule_New(data, NULL, free_capsule));
    return array;
}

static PyMethodDef methods[] = {
    {"take", take, METH_O, NULL},
    {"take_numpy", take_numpy, METH_O, NULL},
    {"out", out, METH_NOARGS, NULL},
    {"out_numpy", out_numpy, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "c_peer", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_c_peer(void) {
    import_array();
    return PyModule_Create(&definition);
}
