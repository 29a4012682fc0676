"""Errors of comparisons, and of names of ndarrays and tensors that USMArrays lack. Each names the call to make instead.

Python itself refuses arithmetic, because a USMArray does not have its methods.
"""

from cpython.object cimport Py_EQ, PyObject
from cpython.type cimport PyType_Modified

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict


cdef object compared(object array, object other, int op, str advice):
    """Return what `other` answers to ``array == other`` or ``array != other``.

    Python would compare identities instead of raising, for example in ``x in [1, 2]``.

    Raises
    ------
    TypeError
        The other operand does not compare itself with arrays.
    """
    cls = type(other)
    if cls is not type(array):
        answer = cls.__eq__(other, array) if op == Py_EQ else cls.__ne__(other, array)
        if answer is not NotImplemented:
            return answer
    raise TypeError(f"{'==' if op == Py_EQ else '!='}: {advice}")


cdef str NO_COMPARISON = (
    "a USMArray does not implement arithmetic or comparison; use arrayhub.as_numpy(x), or another library's array from"
    " as_torch, as_jax, as_cupy or as_dpnp"
)


# Attributes of ndarrays and tensors that a USMArray does not have. Accessing one raises an explanation. Those that compute,
_COMPUTING = (
    *("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "cumsum", "cumprod", "argmin", "argmax", "round"),
    *("dot", "trace", "clip", "sort", "argsort", "searchsorted", "partition", "nonzero", "conj", "conjugate", "real", "imag"),
    *("take", "put", "fill", "repeat", "choose", "compress", "diagonal", "argpartition", "byteswap"),
)
# those that NumPy alone offers for the same memory,
_NUMPYS = ("dump", "dumps", "flat", "getfield", "mT", "setfield", "squeeze", "swapaxes", "tofile")
_VALUES = ("real", "imag", "flat", "mT")      # attributes rather than methods
# and those with another name. NumPy has "itemset", "newbyteorder", "ptp" and "tostring" only up to release 2.3.
_ELSEWHERE = {
    "cpu": "arrayhub.to_host(x)",
    "cuda": "arrayhub.to_device(x, 'cuda:0')",
    "explain": "arrayhub.explain(x)",
    "get": "arrayhub.to_host(x)",
    "numpy": "arrayhub.as_numpy(x)",
    "to": "arrayhub.to_device(x, device)",
    "to_torch": "arrayhub.as_torch(x)",
    "setflags": "x.flags['WRITEABLE'] = False",
    "resize": "numpy.resize(x, shape), which copies",
    "itemset": "x[index] = value",
    "newbyteorder": "x.view(x.dtype.newbyteorder())",
    "ptp": "numpy.ptp(x)",
    "tostring": "x.tobytes()",
}

cdef dict _ABSENT = {
    **{name: f"a USMArray does not compute; use arrayhub.as_numpy(x).{name}" for name in _COMPUTING},
    **{name: f"a USMArray does not have it; use arrayhub.as_numpy(x).{name}" for name in _NUMPYS},
    **{name: f"a USMArray does not have it; use {instead}" for name, instead in _ELSEWHERE.items()},
}


cdef class Absent:
    """Descriptor for an attribute that a USMArray does not have. Raises an AttributeError with the call to make instead."""
    cdef str name

    def __cinit__(self, str name):
        self.name = name

    def __get__(self, array, owner):
        call = "" if self.name in _VALUES or self.name in _ELSEWHERE else "()"
        raise AttributeError(f"{self.name}: {_ABSENT[self.name]}{call}")


def names(array):
    """Return the attributes for ``dir``, without the absent ones."""
    return [name for name in object.__dir__(array) if name not in _ABSENT]


cdef int add_absent(type cls) except -1:
    """Add the names that a USMArray does not have to a class."""
    cdef dict entries = <dict> (<PyTypeObject*> cls).tp_dict
    for name in _ABSENT:
        entries[name] = Absent(name)
    PyType_Modified(cls)
    return 0
