/* The first call in this file cannot report an error. */
#include <arrayhub.h>

int nd_elsewhere(PyObject *array) { return PyUSMArray_Fields(array)->nd; }
