/* Signed arithmetic that reports overflow instead of wrapping (which C leaves undefined). */
#ifndef ARRAYHUB_CHECKED_H
#define ARRAYHUB_CHECKED_H

#include <Python.h>

#if defined(__GNUC__) || defined(__clang__)
static inline int checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_mul_overflow(a, b, out); }
static inline int checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_add_overflow(a, b, out); }
#else
static inline int checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
    if (a != 0 && b != 0) {
        if (a > 0 ? (b > 0 ? a > PY_SSIZE_T_MAX / b : b < PY_SSIZE_T_MIN / a)
                  : (b > 0 ? a < PY_SSIZE_T_MIN / b : b < PY_SSIZE_T_MAX / a)) return 1;
    }
    *out = a * b;
    return 0;
}
static inline int checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) {
    if (b > 0 ? a > PY_SSIZE_T_MAX - b : a < PY_SSIZE_T_MIN - b) return 1;
    *out = a + b;
    return 0;
}
#endif

#endif
