"""The frame of the calling Python code. A thread started by C may not have one; ``sys._getframe`` raises there."""

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
    """Return the `__name__` of the calling Python code's module; None without a calling frame or a name."""
    frame = calling_frame()
    return None if frame is None else frame.f_globals.get("__name__")
