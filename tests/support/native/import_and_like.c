/* Call PyUSMArray_FromObject and PyUSMArray_Like from Python. */
#include <Python.h>

#include "arrayhub.h"

static PyObject *from_object(PyObject *module, PyObject *obj) {
    (void)module;
    return PyUSMArray_FromObject(obj);
}

static PyObject *like(PyObject *module, PyObject *arguments) {
    PyObject *obj, *model;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO", &obj, &model)) {
        return NULL;
    }
    return PyUSMArray_Like(obj, model, 0);
}

static PyMethodDef methods[] = {
    {"from_object", from_object, METH_O, NULL},
    {"like", like, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "import_and_like", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_import_and_like(void) {
    if (import_arrayhub() < 0) {
        return NULL;
    }
    return PyModule_Create(&module);
}
