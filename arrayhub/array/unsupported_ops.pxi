"""Errors for comparisons, in-place operators and attributes that USMArray lacks. Each error names a call to use.

Arithmetic raises Python's own TypeError, because USMArray does not have the methods.
"""

from cpython.object cimport Py_EQ

cdef extern from *:
    """
    static PyObject *arrayhub_refuse_in_place(PyObject *array, PyObject *other) {
        PyErr_SetString(PyExc_TypeError,
                        "in-place operator: USMArray does not implement arithmetic; use x[...] = arrayhub.as_numpy(x) + y");
        return NULL;
    }

    static PyObject *arrayhub_refuse_in_place_power(PyObject *array, PyObject *other, PyObject *modulo) {
        return arrayhub_refuse_in_place(array, other);
    }

    /* Without these slots, `x += ndarray` would bind x to NumPy's result, and the memory would not change. */
    static void arrayhub_refuse_in_place_operators(PyTypeObject *cls) {
        PyNumberMethods *nb = cls->tp_as_number;
        nb->nb_inplace_add = nb->nb_inplace_subtract = nb->nb_inplace_multiply = nb->nb_inplace_true_divide
            = nb->nb_inplace_floor_divide = nb->nb_inplace_remainder = nb->nb_inplace_matrix_multiply
            = nb->nb_inplace_lshift = nb->nb_inplace_rshift = nb->nb_inplace_and = nb->nb_inplace_or
            = nb->nb_inplace_xor = arrayhub_refuse_in_place;
        nb->nb_inplace_power = arrayhub_refuse_in_place_power;
    }
    """
    void refuse_in_place_operators "arrayhub_refuse_in_place_operators"(type cls)


cdef object compare(object array, object other, int op, str advice):
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


# Attributes that compute:
_COMPUTING = (
    *("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "cumsum", "cumprod", "argmin", "argmax", "round"),
    *("dot", "trace", "clip", "sort", "argsort", "searchsorted", "partition", "nonzero", "conj", "conjugate"),
    *("take", "put", "repeat", "choose", "compress", "diagonal", "argpartition", "byteswap"),
)
# Other methods and attributes of ndarrays:
_NUMPYS = ("dump", "dumps", "getfield", "setfield", "squeeze", "swapaxes", "tofile", *_COMPUTING)
_VALUES = ("real", "imag", "flat", "mT")
_LIBRARIES = ("arrow", "awkward", "cupy", "dpnp", "jax", "numba", "pandas", "polars", "scipy", "torch")

# Attributes of ndarrays, tensors and SYCL arrays that USMArray lacks, and the call to use instead.
cdef dict HINTS = {
    **{name: f"arrayhub.as_numpy(x).{name}()" for name in _NUMPYS},
    **{name: f"arrayhub.as_numpy(x).{name}" for name in _VALUES},
    **{f"{prefix}{name}": f"arrayhub.as_{name}(x)" for name in _LIBRARIES for prefix in ("", "as_", "to_")},
    **dict.fromkeys(("as_numpy", "asnumpy", "numpy", "values"), "arrayhub.as_numpy(x)"),
    **dict.fromkeys(("clone", "contiguous"), "x.copy()"),
    **dict.fromkeys(("cpu", "get"), "arrayhub.to_host(x)"),
    **dict.fromkeys(("to_list", "to_pylist"), "x.tolist()"),
    **{name: f"x.base.{name}" for name in ("sycl_context", "sycl_device", "sycl_queue")},
    **{name: f"arrayhub.{name}(x)" for name in ("check", "debug_repr", "explain", "ipc_handle")},
    "convert": "arrayhub.convert(x, library)",
    "cuda": "arrayhub.to_device(x, 'cuda:0')",
    "data_ptr": "x.ptr",
    "detach": "arrayhub.as_torch(x)",
    "dim": "x.ndim",
    "double": "x.astype('float64')",
    "element_size": "x.itemsize",
    "fill": "x[...] = value",
    "float": "x.astype('float32')",
    "half": "x.astype('float16')",
    "is_contiguous": "x.flags",
    "is_cuda": "x.device",
    "itemset": "x[index] = value",
    "like": "arrayhub.like(x, model)",
    "nd": "x.ndim",
    "newbyteorder": "x.view(x.dtype.newbyteorder())",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "ptp": "numpy.ptp(x)",
    "resize": "numpy.resize(x, shape), which copies",
    "setflags": "x.flags['WRITEABLE'] = False",
    "storage_offset": "x.offset",
    "stride": "x.strides",
    "to": "arrayhub.to_device(x, device)",
    "tostring": "x.tobytes()",
    "unsqueeze": "x.reshape(shape)",
    "usm_data": "x.base",
}
