"""Errors for comparisons, and for attributes of ndarrays and tensors that USMArray lacks. Each error names a call to use.

Arithmetic raises Python's own TypeError, because USMArray does not have the methods.
"""

from cpython.object cimport Py_EQ, PyObject
from cpython.type cimport PyType_Modified

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict


cdef object compared(object array, object other, int op, str advice):
    """Return the result of the other operand's comparison for ``array == other`` or ``array != other``.

    If the comparison returns NotImplemented, raise TypeError. Without this error, Python would compare identities, for example
    in ``x in [1, 2]``.
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


# The following tables list attributes of ndarrays and tensors that USMArray lacks. Attributes that compute:
_COMPUTING = (
    *("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "cumsum", "cumprod", "argmin", "argmax", "round"),
    *("dot", "trace", "clip", "sort", "argsort", "searchsorted", "partition", "nonzero", "conj", "conjugate", "real", "imag"),
    *("take", "put", "repeat", "choose", "compress", "diagonal", "argpartition", "byteswap"),
)
# Other attributes of ndarrays. The error suggests the same attribute of `as_numpy(x)`:
_NUMPYS = ("dump", "dumps", "flat", "getfield", "mT", "setfield", "squeeze", "swapaxes", "tofile")
_VALUES = ("real", "imag", "flat", "mT")      # these are attributes, not methods
# Attributes that another call replaces. NumPy removed "itemset", "newbyteorder" and "ptp" in 2.0, and "tostring" in 2.3.
_LIBRARIES = ("arrow", "awkward", "cupy", "dpnp", "jax", "numba", "pandas", "polars", "torch")
_ELSEWHERE = {
    **{name: f"arrayhub.as_{name}(x)" for name in _LIBRARIES},
    **{f"to_{name}": f"arrayhub.as_{name}(x)" for name in _LIBRARIES},
    **dict.fromkeys(("asnumpy", "numpy", "values"), "arrayhub.as_numpy(x)"),
    **dict.fromkeys(("clone", "contiguous"), "x.copy()"),
    **dict.fromkeys(("cpu", "get"), "arrayhub.to_host(x)"),
    **dict.fromkeys(("to_list", "to_pylist"), "x.tolist()"),
    "cuda": "arrayhub.to_device(x, 'cuda:0')",
    "data_ptr": "x.ptr",
    "detach": "arrayhub.as_torch(x)",
    "dim": "x.ndim",
    "double": "x.astype('float64')",
    "explain": "arrayhub.explain(x)",
    "fill": "x[...] = value",
    "float": "x.astype('float32')",
    "is_contiguous": "x.flags",
    "is_cuda": "x.device",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "to": "arrayhub.to_device(x, device)",
    "unsqueeze": "x.reshape(shape)",
    "setflags": "x.flags['WRITEABLE'] = False",
    "resize": "numpy.resize(x, shape), which copies",
    "itemset": "x[index] = value",
    "newbyteorder": "x.view(x.dtype.newbyteorder())",
    "ptp": "numpy.ptp(x)",
    "tostring": "x.tobytes()",
}

cdef dict _ABSENT = {
    **{name: f"USMArray does not implement arithmetic; use arrayhub.as_numpy(x).{name}" for name in _COMPUTING},
    **{name: f"USMArray does not have this attribute; use arrayhub.as_numpy(x).{name}" for name in _NUMPYS},
    **{name: f"USMArray does not have this attribute; use {instead}" for name, instead in _ELSEWHERE.items()},
}


cdef class Absent:
    """Python descriptor for an attribute that USMArray lacks. Access raises an AttributeError that names the call to use."""
    cdef str name

    def __cinit__(self, str name):
        self.name = name

    def __get__(self, array, owner):
        call = "" if self.name in _VALUES or self.name in _ELSEWHERE else "()"
        raise AttributeError(f"{self.name}: {_ABSENT[self.name]}{call}")


def names(array):
    """Return the names for ``dir``, without the attributes that USMArray lacks."""
    return [name for name in object.__dir__(array) if name not in _ABSENT]


cdef int add_absent(type cls) except -1:
    """Add an `Absent` descriptor to a class for each name in `_ABSENT`."""
    cdef dict entries = <dict> (<PyTypeObject*> cls).tp_dict
    for name in _ABSENT:
        entries[name] = Absent(name)
    PyType_Modified(cls)
    return 0
