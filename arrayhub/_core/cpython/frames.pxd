"""The Python code that called. On a thread that C code runs there may be none, where ``sys._getframe`` raises."""

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass

    PyFrameObject* PyEval_GetFrame() noexcept  # borrowed


cdef inline object calling_frame():
    """Return the frame of the calling Python code, or None."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    return None if frame == NULL else <object> <PyObject*> frame


cdef inline object calling_module():
    """Return the `__name__` of the calling Python code's module; None if it has no name or no Python code called."""
    frame = calling_frame()
    return None if frame is None else frame.f_globals.get("__name__")
