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

_NO_ARITHMETIC = "USMArray does not implement arithmetic"


def _of_numpy(name):
    return f"arrayhub.as_numpy(x).{name}{'' if name in _VALUES else '()'}"


cdef class Absent:
    """Python descriptor for an attribute that a class lacks. Access raises an AttributeError that names the call to use."""
    cdef str message

    def __cinit__(self, str message):
        self.message = message

    def __get__(self, array, owner):
        raise AttributeError(self.message)


cdef object names_for_dir(object array):
    """Return the names for ``dir``, without the attributes that the class of `array` lacks."""
    entries = type(array).__dict__
    return [name for name in object.__dir__(array) if not isinstance(entries.get(name), Absent)]


cdef int add_absent(type cls, dict instead, str why=None) except -1:
    """Add an `Absent` descriptor to a class for each name in `instead`, a dict of the expressions that replace the names."""
    cdef dict entries = <dict> (<PyTypeObject*> cls).tp_dict
    why = why or f"{cls.__name__} does not have this attribute"
    for name, expression in instead.items():
        entries[name] = Absent(f"{name}: {why}; use {expression}")
    PyType_Modified(cls)
    return 0
