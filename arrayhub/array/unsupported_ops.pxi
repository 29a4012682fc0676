"""Arithmetic, comparison and hashing, which arrays do not implement: operators that raise, naming the call to make instead.

Python's slots are filled, but the corresponding methods are omitted. So ``x + 1`` raises a helpful error, while
``hasattr(x, "__add__")``, ``dir(x)`` and type checkers correctly report that arrays do not have arithmetic.
"""

from cpython.object cimport PyObject

cdef extern from *:
    """
    static PyTypeObject *arrayhub_refusing;

    static PyObject *arrayhub_refuse(const char *what) {
        PyErr_Format(PyExc_TypeError, "%s: a USMArray does not implement arithmetic or comparison; use"
                     " arrayhub.as_numpy(x), or another library's array from as_torch, as_jax, as_cupy or as_dpnp", what);
        return NULL;
    }

    /* The other operand computes the result if it can; a NumPy array treats a USMArray as an array. Python calls the left
       operand first, so if the USMArray is on the left, the other operand is called here. Adding a list to, or repeating
       a list by, an array without dimensions is a sequence operation, which Python tries last. */
    static PyObject *arrayhub_binary(PyObject *left, PyObject *right, size_t slot, const char *symbol) {
        PyTypeObject *other = Py_TYPE(left) == arrayhub_refusing ? Py_TYPE(right) : Py_TYPE(left);
        if (other != arrayhub_refusing) {
            PySequenceMethods *sequence = other->tp_as_sequence;
            PyNumberMethods *number = other->tp_as_number;
            binaryfunc answer = number == NULL ? NULL : *(binaryfunc *)((char *)number + slot);
            if (answer != NULL && other == Py_TYPE(right)) {
                PyObject *result = answer(left, right);
                if (result != Py_NotImplemented) return result;
                Py_DECREF(result);
            }
            if (answer == NULL && sequence != NULL &&
                ((symbol[0] == '+' && sequence->sq_concat != NULL) ||
                 (symbol[0] == '*' && symbol[1] != '*' && sequence->sq_repeat != NULL)))
                Py_RETURN_NOTIMPLEMENTED;
        }
        return arrayhub_refuse(symbol);
    }
    #define ARRAYHUB_BINARY(slot, symbol)                                                                              \
        static PyObject *arrayhub_##slot(PyObject *left, PyObject *right) {                                            \
            return arrayhub_binary(left, right, offsetof(PyNumberMethods, slot), symbol);                              \
        }
    #define ARRAYHUB_UNARY(slot, symbol)                                                                               \
        static PyObject *arrayhub_##slot(PyObject *Py_UNUSED(x)) { return arrayhub_refuse(symbol); }
    #define ARRAYHUB_OPERATORS(BINARY, UNARY)                                                                          \
        BINARY(nb_add, "+") BINARY(nb_subtract, "-") BINARY(nb_multiply, "*") BINARY(nb_remainder, "%")                \
        BINARY(nb_divmod, "divmod") BINARY(nb_floor_divide, "//") BINARY(nb_true_divide, "/")                          \
        BINARY(nb_matrix_multiply, "@") BINARY(nb_lshift, "<<") BINARY(nb_rshift, ">>") BINARY(nb_and, "&")            \
        BINARY(nb_xor, "^") BINARY(nb_or, "|")                                                                         \
        UNARY(nb_negative, "-x") UNARY(nb_positive, "+x") UNARY(nb_absolute, "abs") UNARY(nb_invert, "~")
    ARRAYHUB_OPERATORS(ARRAYHUB_BINARY, ARRAYHUB_UNARY)

    static PyObject *arrayhub_nb_power(PyObject *base, PyObject *exponent, PyObject *modulus) {
        PyNumberMethods *number = Py_TYPE(exponent)->tp_as_number;
        if (Py_TYPE(exponent) != arrayhub_refusing && number != NULL && number->nb_power != NULL) {
            PyObject *result = number->nb_power(base, exponent, modulus);
            if (result != Py_NotImplemented) return result;
            Py_DECREF(result);
        }
        return arrayhub_refuse("**");
    }

    static PyObject *arrayhub_compare(PyObject *x, PyObject *other, int op) {
        static const char *const symbols[] = {"<", "<=", "==", "!=", ">", ">="};
        static const int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
        richcmpfunc answer = Py_TYPE(other)->tp_richcompare;
        if (Py_TYPE(other) != arrayhub_refusing && answer != NULL) {
            PyObject *result = answer(other, x, swapped[op]);
            if (result != Py_NotImplemented) return result;
            Py_DECREF(result);
        }
        return arrayhub_refuse(symbols[op]);
    }

    /* x += y copies the result of the other operand into x, like x[...] = value. Otherwise Python would rebind the name to
       the result, and the memory would keep its values. */
    static PyObject *arrayhub_into(PyObject *x, PyObject *result) {
        int failed;
        if (result == NULL || result == Py_NotImplemented) return result;
        failed = PyObject_SetItem(x, Py_Ellipsis, result);
        Py_DECREF(result);
        return failed ? NULL : Py_NewRef(x);
    }
    #define ARRAYHUB_IN_PLACE(name, symbol)                                                                            \
        static PyObject *arrayhub_nb_inplace_##name(PyObject *x, PyObject *other) {                                    \
            return arrayhub_into(x, arrayhub_binary(x, other, offsetof(PyNumberMethods, nb_##name), symbol));          \
        }
    #define ARRAYHUB_IN_PLACES(IN_PLACE)                                                                               \
        IN_PLACE(add, "+=") IN_PLACE(subtract, "-=") IN_PLACE(multiply, "*=") IN_PLACE(remainder, "%=")                \
        IN_PLACE(floor_divide, "//=") IN_PLACE(true_divide, "/=") IN_PLACE(matrix_multiply, "@=")                      \
        IN_PLACE(lshift, "<<=") IN_PLACE(rshift, ">>=") IN_PLACE(and, "&=") IN_PLACE(xor, "^=") IN_PLACE(or, "|=")
    ARRAYHUB_IN_PLACES(ARRAYHUB_IN_PLACE)

    static PyObject *arrayhub_nb_inplace_power(PyObject *x, PyObject *exponent, PyObject *modulus) {
        return arrayhub_into(x, arrayhub_nb_power(x, exponent, modulus));
    }

    static Py_hash_t arrayhub_hash(PyObject *Py_UNUSED(x)) {
        PyErr_SetString(PyExc_TypeError, "hash: unhashable type: 'USMArray' (its elements can change); use id(x), x.item() of"
                        " one element, or arrayhub.as_numpy(x).tobytes()");
        return -1;
    }

    /* As in any class that sets `__hash__ = None`, the class attribute is None; the slot raises the message. */
    static int arrayhub_fill_slots(PyTypeObject *type, PyObject *none) {
        PyNumberMethods *number = type->tp_as_number;
        arrayhub_refusing = type;
        #define ARRAYHUB_FILL(slot, symbol) number->slot = arrayhub_##slot;
        ARRAYHUB_OPERATORS(ARRAYHUB_FILL, ARRAYHUB_FILL)
        number->nb_power = arrayhub_nb_power;
        #define ARRAYHUB_FILL_IN_PLACE(name, symbol) number->nb_inplace_##name = arrayhub_nb_inplace_##name;
        ARRAYHUB_IN_PLACES(ARRAYHUB_FILL_IN_PLACE)
        number->nb_inplace_power = arrayhub_nb_inplace_power;
        type->tp_richcompare = arrayhub_compare;
        type->tp_hash = arrayhub_hash;
        if (PyDict_SetItemString(type->tp_dict, "__hash__", none) < 0) return -1;
        PyType_Modified(type);
        return 0;
    }
    """
    ctypedef struct PyTypeObject:
        PyObject* tp_dict
    int arrayhub_fill_slots(PyTypeObject* cls, object none) except -1


# Attributes of numpy.ndarray that a USMArray does not have. Accessing one raises an explanation. Those that compute,
_COMPUTING = (
    *("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "cumsum", "cumprod", "argmin", "argmax", "round"),
    *("dot", "trace", "clip", "sort", "argsort", "searchsorted", "partition", "nonzero", "conj", "conjugate", "real", "imag"),
    *("take", "put", "fill", "repeat", "choose", "compress", "diagonal", "argpartition", "byteswap"),
)
# those that NumPy alone offers for the same memory,
_NUMPYS = ("dump", "dumps", "flat", "getfield", "mT", "setfield", "squeeze", "swapaxes", "tofile")
_VALUES = ("real", "imag", "flat", "mT")      # attributes rather than methods
# and those with another name. NumPy has the last four only up to release 2.3.
_ELSEWHERE = {
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
    """Descriptor for an attribute that only NumPy arrays have. Raises an AttributeError with the call to make instead."""
    cdef str name

    def __cinit__(self, str name):
        self.name = name

    def __get__(self, array, owner):
        call = "" if self.name in _VALUES or self.name in _ELSEWHERE else "()"
        raise AttributeError(f"{self.name}: {_ABSENT[self.name]}{call}")


def names(array):
    """Return the attributes for ``dir``, without the absent ones."""
    return [name for name in object.__dir__(array) if name not in _ABSENT]


cdef int refuse_arithmetic(type cls) except -1:
    """Fill the remaining number slots of a final class, and add the names that only NumPy arrays have."""
    cdef dict entries = <dict> (<PyTypeObject*> cls).tp_dict
    for name in _ABSENT:
        entries[name] = Absent(name)
    return arrayhub_fill_slots(<PyTypeObject*> cls, None)
