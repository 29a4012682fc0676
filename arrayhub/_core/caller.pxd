"""The Python code that called. On a thread that C code runs there may be none, where ``sys._getframe`` raises."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyEval_GetFrame() noexcept      # borrowed


cdef inline object calling_frame():
    """The frame of the Python code that called, or None."""
    cdef PyObject* frame = PyEval_GetFrame()
    return None if frame == NULL else <object> frame


cdef inline object calling_module():
    """What the module of the Python code that called has for a name; None where it has none, or there is no such code."""
    frame = calling_frame()
    return None if frame is None else frame.f_globals.get("__name__")
