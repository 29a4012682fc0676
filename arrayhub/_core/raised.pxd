"""Calling a C function of Python's without a `try` around the call: what it gave, and what it raised.

Cython's `try` saves the state of exceptions before it, which takes longer than many a call.
"""

from cpython.object cimport PyObject

cdef extern from *:
    """
    #define arrayhub_take(value) (value)
    #define arrayhub_raise_on() (-1)
    """
    object take "arrayhub_take"(PyObject* value)         # a new reference, from now on counted
    int raise_on "arrayhub_raise_on"() except -1         # raises the exception that is set
