/* The first call in this file is one without an error return. */
#include <arrayhub.h>

int nd_elsewhere(PyObject *array) { return PyUSMArray_Fields(array)->nd; }
