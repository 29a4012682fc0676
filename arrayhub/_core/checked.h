/* Signed arithmetic that reports overflow. In C, signed overflow is undefined behavior. */
#ifndef ARRAYHUB_CHECKED_H
#define ARRAYHUB_CHECKED_H

#include <Python.h>

static inline int checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_mul_overflow(a, b, out); }
static inline int checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_add_overflow(a, b, out); }

#endif
