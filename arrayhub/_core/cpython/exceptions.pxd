"""The exception that is set: raised on after a C function of Python's was called without a `try` around the call, or put
aside while something else runs.

Cython's `try` saves the state of exceptions before it, which takes longer than many a call.
"""

from cpython.exc cimport PyErr_Fetch, PyErr_Occurred, PyErr_Restore, PyErr_WriteUnraisable
from cpython.object cimport PyObject

cdef extern from *:
    """
    #define arrayhub_take(value) (value)
    #define arrayhub_raise_on() (-1)
    """
    object take "arrayhub_take"(PyObject* value)         # a new reference, from now on counted
    int raise_on "arrayhub_raise_on"() except -1         # raises the exception that is set

cdef struct Aside:
    PyObject* kind          # NULL: none was set
    PyObject* value
    PyObject* traceback


cdef inline Aside put_aside() noexcept:
    """Save and clear the exception that is set, if there is one, before code of others is called."""
    cdef Aside aside
    aside.kind = NULL
    if PyErr_Occurred() != NULL:
        PyErr_Fetch(&aside.kind, &aside.value, &aside.traceback)
    return aside


cdef inline void put_back(Aside aside) noexcept:
    """Restore the exception that `put_aside` saved.

    An exception that a callback of C has left set since then belongs to no caller. It goes to `sys.unraisablehook`.
    """
    if PyErr_Occurred() != NULL:
        PyErr_WriteUnraisable(None)
    if aside.kind != NULL:
        PyErr_Restore(aside.kind, aside.value, aside.traceback)
