/* Gives any callable the entry of _core/shortcut.h, which answers True, unless the argument is a list. */
#include "shortcut.h"

ARRAYHUB_SHORTCUT(tried)

static PyObject *one(PyObject *argument) {
    (void)argument;
    return Py_NewRef(Py_True);
}

static PyObject *shorten(PyObject *module, PyObject *callable) {
    (void)module;
    tried_shortcut(callable, one, &PyList_Type);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"shorten", shorten, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shortcut", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_shortcut(void) {
    return PyModule_Create(&module);
}
