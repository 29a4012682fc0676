"""Functions to propagate an exception that a C API call has set, and to save a pending exception while other code runs.

These functions avoid Cython's `try`, which saves the exception state and therefore takes longer than many C API calls.
"""

from cpython.exc cimport PyErr_Fetch, PyErr_Occurred, PyErr_Restore, PyErr_WriteUnraisable
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

cdef extern from *:
    """
    #define arrayhub_take(value) (value)
    #define arrayhub_raise_on() (-1)
    """
    object take "arrayhub_take"(PyObject* value)     # takes ownership of a new reference; NULL propagates the pending exception
    int raise_on "arrayhub_raise_on"() except -1     # propagates the pending exception

cdef struct Aside:
    PyObject* kind          # NULL if no exception was pending
    PyObject* value
    PyObject* traceback


cdef inline Aside put_aside() noexcept:
    """Save and clear the pending exception, if any, before calling foreign code."""
    cdef Aside aside
    aside.kind = NULL
    if PyErr_Occurred() != NULL:
        PyErr_Fetch(&aside.kind, &aside.value, &aside.traceback)
    return aside


cdef inline void put_back(Aside aside) noexcept:
    """Restore the exception that `put_aside` saved.

    If foreign code has left an exception pending since then, pass this exception to `sys.unraisablehook`.
    """
    if PyErr_Occurred() != NULL:
        PyErr_WriteUnraisable(None)
    if aside.kind != NULL:
        PyErr_Restore(aside.kind, aside.value, aside.traceback)


cdef inline void drop_reference(PyObject* owned) noexcept:
    """Release a reference, unless it is NULL. A pending exception stays pending, although foreign code may run."""
    cdef Aside aside = put_aside()
    Py_XDECREF(owned)
    put_back(aside)
