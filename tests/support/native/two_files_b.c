/* The only call in this file, PyUSMArray_Fields, loads the function table but cannot report an error. */
#include <arrayhub.h>

int nd_elsewhere(PyObject *array) { return PyUSMArray_Fields(array)->nd; }
