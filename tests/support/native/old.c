/* An extension that is compiled with version 1 of the header, which declares only the struct and PyUSMArray_Check. */
#include <Python.h>
#include <arrayhub.h>

static PyObject *address(PyObject *module, PyObject *obj) {
    (void)module;
    if (!PyUSMArray_Check(obj)) return PyErr_Format(PyExc_TypeError, "no USMArray");
    return PyLong_FromVoidPtr(((const PyUSMArrayObject *)obj)->data);
}

static PyMethodDef methods[] = {{"address", address, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "old", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_old(void) { return import_arrayhub() < 0 ? NULL : PyModule_Create(&definition); }
