/* A vectorcall entry for calls with one positional argument and no keywords, which skips the parsing of arguments. An
   argument of the type `own` is returned unchanged; for any other, `one` is called. All other calls go to the function's
   original entry. The function's type says where its entry is (tp_vectorcall_offset); a function without an entry is not
   changed. */
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
