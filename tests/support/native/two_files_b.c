/* Whose first call is the one that has no error to give. */
#include <arrayhub.h>

int nd_elsewhere(PyObject *array) { return PyUSMArray_Fields(array)->nd; }
