"""Propagate the pending exception after a C API call outside `try`, or save the exception while other code runs.

Cython's `try` saves the exception state first, which takes longer than many C API calls.
"""

from cpython.exc cimport PyErr_Fetch, PyErr_Occurred, PyErr_Restore, PyErr_WriteUnraisable
from cpython.object cimport PyObject

cdef extern from *:
    """
    #define arrayhub_take(value) (value)
    #define arrayhub_raise_on() (-1)
    """
    object take "arrayhub_take"(PyObject* value)         # converts a new reference to an object
    int raise_on "arrayhub_raise_on"() except -1         # propagates the pending exception

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

    An exception that a C callback has left pending since then cannot reach a caller, and is passed to `sys.unraisablehook`.
    """
    if PyErr_Occurred() != NULL:
        PyErr_WriteUnraisable(None)
    if aside.kind != NULL:
        PyErr_Restore(aside.kind, aside.value, aside.traceback)
