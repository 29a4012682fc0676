/* An extension of two source files. In C, and in C++ before C++17, each file has its own pointer to the table. */
#include <arrayhub.h>

int nd_elsewhere(PyObject *array);

static PyObject *nd(PyObject *module, PyObject *x) {
    PyUSMArrayRequest any = {PyUSMArrayRequest_HEAD};
    PyObject *array = PyUSMArray_Request(x, &any), *found;
    (void)module;
    if (array == NULL) return NULL;
    found = PyLong_FromLong(nd_elsewhere(array));
    Py_DECREF(array);
    return found;
}

static PyMethodDef methods[] = {{"nd", nd, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "two_files", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_two_files(void) { return PyModule_Create(&definition); }
