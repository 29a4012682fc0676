/* A function called with one argument and no keywords, the usual way, needs no parsing of arguments: `one` is
   called with it, unless it is of the type `own`, whose objects are their own answer. All else goes to the
   function's own entry, which is kept. Where the entry lies is said by the function's type; one that says nothing, or has
   no entry there, is left as it is. */
#ifndef ARRAYHUB_SHORTCUT
#include <Python.h>
#define ARRAYHUB_SHORTCUT(name)                                                                                        \
    static vectorcallfunc name##_any;                                                                                  \
    static PyObject *(*name##_one)(PyObject *);                                                                        \
    static PyTypeObject *name##_own;                                                                                   \
    static PyObject *name##_enter(PyObject *f, PyObject *const *args, size_t n, PyObject *keywords) {                  \
        if (PyVectorcall_NARGS(n) != 1 || keywords != NULL) return name##_any(f, args, n, keywords);                   \
        return Py_TYPE(args[0]) == name##_own ? Py_NewRef(args[0]) : name##_one(args[0]);                              \
    }                                                                                                                  \
    static void name##_shortcut(PyObject *f, PyObject *(*one)(PyObject *), PyTypeObject *own) {                        \
        Py_ssize_t offset = Py_TYPE(f)->tp_vectorcall_offset;                                                          \
        vectorcallfunc *entry = (vectorcallfunc *)((char *)f + offset);                                                \
        if (offset < (Py_ssize_t)sizeof(PyObject) || PyVectorcall_Function(f) == NULL || *entry == NULL) return;       \
        name##_any = *entry;                                                                                           \
        name##_one = one;                                                                                              \
        name##_own = own;                                                                                              \
        *entry = name##_enter;                                                                                         \
    }
#endif
