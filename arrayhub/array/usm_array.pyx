"""The class `USMArray`: Descriptor with methods and the attributes of all protocols. Each attribute calls its adapter.

Included files:

- construction: `USMArray(...)` on new or existing memory
- flags: the attribute `flags`
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_SetObject
from cpython.iterobject cimport PySeqIter_New
from cpython.long cimport PyLong_FromSsize_t
from cpython.object cimport Py_EQ, Py_NE, PyObject, PyTypeObject, descrgetfunc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from arrayhub._core.descriptor cimport (
    C_CONTIGUOUS,
    COPIED,
    F_CONTIGUOUS,
    IMMUTABLE,
    NOTSWAPPED,
    PACKED,
    UNRESOLVED_ID,
    WRITEABLE,
    Descriptor,
    MemoryBlock,
    block_of,
    get_dtype,
    host_readable,
    index,
    kDLOneAPI,
    labels_of,
    make_device,
    name_of_elements,
    refuse_packed,
    register_class,
    reshape,
    same_layout,
    seal,
    set_dtype,
    set_labels,
    size_of,
    transpose,
    view_of,
)
from arrayhub._core.dtypes cimport bits_of
from arrayhub._core.runtime cimport device_name, device_of, host_ready
from arrayhub.adapters cimport arrow, buffer as buffer_adapter, dlpack, interface_dict
from arrayhub.libraries cimport numpy as numpy_library
from arrayhub.runtimes cimport sycl

from arrayhub import transfer
from arrayhub._core.copying import check_copy
from arrayhub._core.descriptor import PROTOCOL_NAMES, USM_NAMES, relabel, slowest_first
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub._core.errors import PACKED_ELEMENTS, dimensions, reason_of, show, unreadable
from arrayhub._core.hooks import hooks
from arrayhub._core.strides import Strides
from arrayhub.array import assignment
from arrayhub.transfer.host_copies import footprint_bytes, gather, row_boundary

include "construction.pxi"
include "flags.pxi"

# ------------------------------------------------------------------------------------------------------------ order of elements


cdef object stored_dtype(Descriptor a):
    """Return the dtype of `a`, or a void dtype of the same size if neither NumPy nor ml_dtypes has the type."""
    try:
        return get_dtype(a)
    except TypeError:
        pass
    return np.dtype((np.void, a.itemsize_))


cdef bint in_fortran_order(Descriptor a, object order, str call) except -1:
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{call}: order is {show(order)}; accepted: 'C', 'F', 'A' or 'K'")
    return order == "F" or order != "C" and a.flags_ & F_CONTIGUOUS and not a.flags_ & C_CONTIGUOUS


cdef Descriptor order_elements(Descriptor a, object order, str call):
    """Return a view whose elements have in C order the requested order. Raise BufferError for packed elements."""
    refuse_packed(a, call)
    cdef bint reversed_order = in_fortran_order(a, order, call)
    if order == "K" and 0 not in (<object> a).byte_strides:
        return transpose(a, slowest_first(a))
    return transpose(a, None) if reversed_order else a


# -------------------------------------------------------------------------------------------------------------- elements

# Conversion of elements to Python values. NumPy reads the elements.


cdef object readable(Descriptor a, str call):
    """Return an ndarray that shares the memory. Raise TypeError for device memory, which is not copied implicitly."""
    if not host_readable(a):
        raise TypeError(unreadable(call, device_name(a)))
    return numpy_library.emit(a)


cdef object read_element(Descriptor a, str call):
    """Return the only element of an array as an ndarray without dimensions, which converts it to Python's types."""
    if size_of(a) != 1:
        raise TypeError(f"{call}: the array has {size_of(a)} elements; accepted: exactly one. Use arrayhub.as_numpy(x)")
    return readable(a, call).reshape(())


cdef object iterate(Descriptor a):
    """Return an iterator over the first dimension. The items are NumPy scalars for a 1-d array, and views otherwise."""
    if a.nd_ == 0:
        raise TypeError("iteration over an array without dimensions; use x.item() for its element")
    return PySeqIter_New(a) if a.nd_ > 1 else iter(readable(a, "iteration"))


# -------------------------------------------------------------------------------------------------------------- unsupported ops

# Errors for comparisons, in-place operators and attributes that USMArray lacks. Each error names a call to use.
#
# Arithmetic raises Python's own TypeError, because USMArray does not have the methods.

cdef extern from *:
    """
    static PyObject *arrayhub_refuse_in_place(PyObject *array, PyObject *other) {
        (void) array;
        (void) other;
        PyErr_SetString(PyExc_TypeError,
                        "in-place operator: USMArray does not implement arithmetic; use x[...] = arrayhub.as_numpy(x) + y");
        return NULL;
    }

    static PyObject *arrayhub_refuse_in_place_power(PyObject *array, PyObject *other, PyObject *modulo) {
        (void) modulo;
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
_NUMPYS = ("dump", "dumps", "getfield", "setfield", "squeeze", "swapaxes", "tofile", "real", "imag", "flat", "mT")
_LIBRARIES = ("arrow", "awkward", "cupy", "dpnp", "jax", "numba", "pandas", "polars", "scipy", "torch")

# Attributes of ndarrays, tensors and SYCL arrays that USMArray lacks, and the call to use instead.
cdef dict HINTS = {
    **{name: f"arrayhub.as_numpy(x).{name}" for name in (*_NUMPYS, *_COMPUTING)},
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


cdef extern from *:
    """
    /* Set the classes in which attributes of a static class are looked up. The class must not be in use yet. */
    static void arrayhub_set_lookup_order(PyTypeObject *cls, PyObject *order) {
        Py_INCREF(order);
        Py_SETREF(cls->tp_mro, order);
        PyType_Modified(cls);
    }
    """
    void set_lookup_order "arrayhub_set_lookup_order"(type cls, tuple order)


cdef class _Hint:
    """Class attribute that raises an AttributeError with a given text."""
    cdef str text


cdef PyObject* raise_hint(PyObject* hint, PyObject* instance, PyObject* cls) noexcept:
    # Unlike `__get__` of a cdef class, the slot does not make a traceback, which `hasattr` would discard.
    PyErr_SetObject(AttributeError, (<_Hint> hint).text)
    return NULL


(<PyTypeObject*> _Hint).tp_descr_get = <descrgetfunc> raise_hint


cdef _Hint make_hint(str name, str call):
    cdef _Hint hint = _Hint.__new__(_Hint)
    hint.text = f"{name}: USMArray does not have this attribute; use {call}"
    return hint


class _Unlisted(type):
    """Metaclass of a class whose attributes `dir`, `inspect` and protocols of `typing` do not find."""

    @property
    def __dict__(cls):
        return {}


# A class before `object` in USMArray's lookup order. USMArray itself does not contain the hints, because `dir` would list
# them. A method `__getattr__` or the slot `tp_getattro` would take less code, but CPython caches the lookup of methods, and
# of missing attributes, only for classes without these.
_Absent = _Unlisted("_Absent", (), {"__module__": __name__, **{name: make_hint(name, call) for name, call in HINTS.items()}})


cdef extern from *:
    """
    /* Allocate an instance of a tuple subclass. tuple.__new__ would require another tuple, and copy its items. The garbage
       collector does not track the instance, as it untracks tuples of integers. */
    static PyObject *arrayhub_new_strides(PyTypeObject *cls, Py_ssize_t nd) {
        PyTupleObject *steps = PyObject_GC_NewVar(PyTupleObject, cls, nd);
        if (steps == NULL) return NULL;
        for (Py_ssize_t k = 0; k < nd; k++) steps->ob_item[k] = NULL;
    #if PY_VERSION_HEX >= 0x030E0000
        steps->ob_hash = -1; /* not computed yet */
    #endif
        return (PyObject *)steps;
    }
    """
    object new_strides "arrayhub_new_strides"(type cls, Py_ssize_t nd)

cdef tuple HOST_PAIR = (1, 0)      # DLPack's kDLCPU


# Without binding, methods check the class of `self`, like those of built-in classes.
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.final
cdef class USMArray(Descriptor):
    """USMArray(shape, dtype="|f8", buffer="device", strides=None, offset=0, order="C", buffer_ctor_kwargs={})
--

    Array that other array libraries can import through their protocols.

    ``arrayhub.asarray`` imports any foreign array as a USMArray. The constructor, whose arguments follow the USM array
    specification, creates an array on new or existing memory. `USMArray` does not implement arithmetic. Convert it first,
    for example with ``arrayhub.as_numpy(x)``.

    Parameters
    ----------
    shape : int or tuple of int
        Lengths of the dimensions, in elements.
    dtype : str or numpy.dtype, optional
        Element type, ``"|f8"`` by default.
    buffer : str or object, optional
        - ``"device"``, ``"shared"`` or ``"host"``: new USM of this type. ``"usm_device"``, ``"usm_shared"`` and
          ``"usm_host"`` are synonyms.
        - ``"cpu"``: new host memory, without SYCL.
        - A ``dpctl.memory.MemoryUSM*``.
        - A USMArray: its complete memory block is used, with the same access.
        - An object with a writable buffer.
    strides : tuple of int, optional
        Strides in elements. By default, the array is compact in `order`.
    offset : int, optional
        Number of elements from the start of the memory to element zero. For new memory and negative strides, 0 is
        replaced by the smallest valid offset.
    order : {"C", "F"}, optional
        Order of the array if `strides` is None.
    buffer_ctor_kwargs : dict, optional
        Further arguments of ``dpctl.memory.MemoryUSM*``: ``queue``, ``alignment`` (bytes), ``copy``.

    Raises
    ------
    ValueError
        An element would be outside of the memory, strides and shape differ in length, or `buffer` is an unknown string.
    BufferError
        The buffer is read-only.
    ImportError
        USM is requested, and dpctl is not installed. The message names the extra to install.
    MemoryError
        The memory cannot be allocated, or the requested ``alignment`` is not supported.

    Examples
    --------
    >>> x = arrayhub.USMArray((2, 3), dtype="i4", buffer="cpu")
    >>> x.shape, x.strides, x.byte_strides, x.nbytes
    ((2, 3), (3, 1), (12, 4), 24)
    >>> memory = bytearray(16)
    >>> y = arrayhub.USMArray(2, dtype="f8", buffer=memory)
    >>> y[0] = 1.5
    >>> y.tolist(), memory[7]
    ([1.5, 0.0], 63)
    """

    # `inspect.getmodule` looks up this attribute on the instance. Without the attribute, getmodule searches the files of all
    # modules for half a second, during which a dask worker does not respond.
    __module__ = "arrayhub.array.usm_array"

    __dlpack_c_exchange_api__ = dlpack.exchange_capsule()

    # Not `__init__`, which a caller can skip. An array must never exist without memory.
    def __cinit__(self, shape=None, dtype="|f8", buffer="device", strides=None, offset=0, order="C",
                  buffer_ctor_kwargs=dict()):
        fill_new(self, shape, dtype, buffer, strides, offset, order, buffer_ctor_kwargs)

    # ---------------------------------------------------------------------------------------------- attributes

    @property
    def shape(self):
        """tuple of int : length of each dimension, in elements."""
        return integers(self.nd_, self.shape_)

    @property
    def strides(self):
        """tuple of int : strides in elements. NumPy's strides are `byte_strides`.

        Converting this tuple to a NumPy array raises TypeError, because code for NumPy arrays would interpret the strides as
        bytes. Reading the attribute raises ValueError if a byte stride is not a multiple of the item size, as in a field of a
        packed record.
        """
        if self.strides_ == NULL and self.nd_ > 0:
            raise ValueError(
                f"strides: byte strides {self.byte_strides} are not multiples of the item size {self.itemsize_}; use"
                " byte_strides"
            )
        return step_tuple(self.nd_, self.strides_)

    @property
    def byte_strides(self):
        """tuple of int : strides in bytes.

        Raises ValueError for packed elements smaller than a byte.
        """
        if self.byte_strides_ == NULL and self.nd_ > 0:
            raise ValueError("byte_strides: elements of less than a byte are packed; use strides")
        return integers(self.nd_, self.byte_strides_)

    @property
    def offset(self):
        """int : distance from the start of the memory block to element zero, in elements.

        Raises ValueError if the distance is not a whole number of elements.
        """
        cdef Py_ssize_t distance = self.data_ - block_of(self).address_
        if self.itemsize_ == 0 or distance == 0:
            return 0
        if distance % self.itemsize_ != 0:
            raise ValueError(
                f"offset: element zero is {distance} bytes after the start of its memory block, which is not a multiple of the"
                f" item size {self.itemsize_}; use ptr and memory.address"
            )
        return distance // self.itemsize_

    @property
    def ndim(self):
        """int : number of dimensions."""
        return self.nd_

    @property
    def size(self):
        """int : number of elements."""
        return size_of(self)

    @property
    def itemsize(self):
        """int : size of one element, in bytes."""
        return self.itemsize_

    @property
    def nbytes(self):
        """int : size of all elements in bytes. The bits of packed elements are rounded up to bytes."""
        if self.byte_strides_ == NULL and bits_of(self.dl_dtype_) < 8:
            return (size_of(self) * bits_of(self.dl_dtype_) + 7) // 8
        return size_of(self) * self.itemsize_

    @property
    def dtype(self):
        """numpy.dtype : element type. For types that NumPy does not support, the dtype is from ml_dtypes.

        Raises TypeError if neither library has the type. Shape, strides and DLPack work without a dtype.
        """
        return get_dtype(self)

    @property
    def typenum(self):
        """int : NumPy's type number, or arrayhub's own number (4096 or more) for types that NumPy does not have."""
        return self.typenum_

    @property
    def ptr(self):
        """int : address of element zero."""
        return <size_t> self.data_

    @property
    def device(self):
        """Device : device that holds the memory."""
        return make_device(device_of(self))

    @property
    def usm_type(self):
        """str or None : 'host', 'shared' or 'device' for SYCL USM, None for all other memory."""
        return USM_NAMES[self.usm_type_]

    @property
    def base(self):
        """object : owner of the memory. For USM, a ``dpctl.memory.MemoryUSM*``. Otherwise, any object or the memory block."""
        if self.usm_type_:
            return sycl.base_of(self)
        return block_of(self) if self.base_ is None else self.base_

    @property
    def memory(self):
        """MemoryBlock : owner, address, device and size of the memory. All views share the block."""
        cdef MemoryBlock block = block_of(self)
        cdef Descriptor whole
        if block.device_.device_id == UNRESOLVED_ID:      # the ordinal is determined on first use
            whole = same_layout(self)
            whole.device_ = block.device_      # not the device of this array if it is a host view of USM
            block.device_ = device_of(whole)
        return block

    @property
    def flags(self):
        """Flags : contiguity, alignment and access, with the attributes and keys of ``numpy.ndarray.flags``."""
        return flags_of(self)

    @property
    def access(self):
        """str : 'readwrite', 'readonly' (other owners may write) or 'immutable' (the memory never changes)."""
        if self.flags_ & WRITEABLE:
            return "readwrite"
        return "immutable" if self.flags_ & IMMUTABLE else "readonly"

    @property
    def is_copy(self):
        """bool : whether the memory is a copy, so that writes do not change the original object.

        True for arrays made from lists, numbers and scalars, and for the results of ``copy=True``, ``copy()``, type
        conversions and copies between devices. Views of a copy are copies, too. A producer's copy is recognized in two
        cases:

        - The DLPack capsule has the flag IS_COPIED.
        - The memory belongs to an object that only the dict of ``__array_interface__`` refers to, such as the ``bytes`` object
          that a PIL image creates on each access.
        """
        return bool(self.flags_ & COPIED)

    @property
    def protocol(self):
        """str : protocol through which the memory was imported, as in ``asarray(via=)``, or 'constructed'."""
        return PROTOCOL_NAMES[self.protocol_]

    @property
    def picture(self):
        """Picture : layout of the elements in the memory block, drawn by ``text()`` and ``svg()`` without reading elements."""
        return hooks.inspection.picture_of(self)

    def _repr_html_(self):
        return hooks.inspection.page_of(self)

    def _describe(self, refcount):
        """Return the lines of `debug_repr`. NestedArray and SparseArray have this method, too."""
        return hooks.inspection.lines_of(self, refcount)

    # ------------------------------------------------------------------------------------------------ labels

    @property
    def dims(self):
        """tuple of (str or None) or None : names of the dimensions, with None for each dimension without a name.

        Views inherit the names. A reshape, a new axis, or a view as elements of a different size removes the names.
        """
        return getattr(labels_of(self), "dims", None)

    @property
    def origin(self):
        """tuple of int or None : index of the first element of a stencil's domain.

        The origin of a view refers to the same element, which may be outside of the view. Reshaping, or slicing with a step
        other than 1, removes the origin.
        """
        return getattr(labels_of(self), "origin", None)

    @property
    def halo(self):
        """tuple of (int, int) or None : for each dimension, the halo widths below and above the domain, in elements.

        A slice keeps the part of the halo that it contains. Reshape and steps other than 1 remove the halo.
        """
        return getattr(labels_of(self), "halo", None)

    @property
    def aligned_index(self):
        """tuple of int or None : index of an aligned element. In a view, the index may be out of bounds.

        Every element with this index along the fastest-varying dimension is aligned to the boundary that `alignment` or
        `backend` of `arrayhub.empty` requested. The index is None if no alignment was requested, or if neither `aligned_index`
        nor `halo` was given. Reshape, copies and steps other than 1 remove the index, and so does indexing this dimension with
        a different integer.
        """
        return getattr(labels_of(self), "aligned_index", None)

    def __repr__(self):
        try:
            dtype = get_dtype(self).__repr__().removeprefix("dtype(").removesuffix(")")
        except TypeError:
            dtype = repr(name_of_elements(self))     # neither NumPy nor ml_dtypes has the type
        dims = getattr(labels_of(self), "dims", None)
        named = "" if dims is None else f"dims={dims}, "
        steps = "" if self.flags_ & C_CONTIGUOUS or self.byte_strides_ == NULL else f", byte_strides={self.byte_strides}"
        halo = "" if self.halo is None else f", halo={self.halo}"
        return (
            f"USMArray(shape={self.shape}, {named}dtype={dtype}, device='{self.device}', access='{self.access}'{steps}{halo})"
        )

    # ------------------------------------------------------------------------------------- pickle, copy and dask

    def __reduce_ex__(self, protocol):
        """Support pickle. Elements are pickled as bytes, out of band from protocol 5 on. See ``transport.pickling``."""
        return hooks.transport.reduce(self, protocol)

    def __reduce__(self):
        return hooks.transport.reduce(self, 0)

    def __copy__(self):
        """Return a view, for ``copy.copy``."""
        return same_layout(self)

    def __deepcopy__(self, memo):
        """Return a copy in the same kind of memory, with the same layout and access, for ``copy.deepcopy``."""
        boundary = row_boundary(self)
        return hooks.transport.padded_copy(self, boundary) if boundary else gather(self, transfer.copy)

    def __sizeof__(self):
        """Return the size in bytes, including elements. dask uses this size to decide which arrays to move and to spill."""
        return object.__sizeof__(self) + footprint_bytes(self)

    # ----------------------------------------------------------------------------------------------- elements

    def __len__(self):
        if self.nd_ == 0:
            raise TypeError(
                "len(): the array does not have dimensions; use x.item() for its value. Pass arrayhub.as_numpy(x) to functions"
                " that index arrays element by element"
            )
        return self.shape_[0]

    def __iter__(self):
        """Iterate over the first dimension. The items are NumPy scalars for a 1-d array, and views otherwise."""
        return iterate(self)

    def __reversed__(self):
        """Iterate over the first dimension in reverse."""
        return iterate(self[::-1] if self.nd_ else self)

    def __contains__(self, value):
        raise TypeError("in: a USMArray does not compare elements; test (arrayhub.as_numpy(x) == value).any() instead")

    def __eq__(self, other):
        return compare(self, other, Py_EQ, NO_COMPARISON)

    def __ne__(self, other):
        return compare(self, other, Py_NE, NO_COMPARISON)

    __hash__ = None     # the elements can change

    def __bool__(self):
        """Return the truth value of the only element, as in NumPy."""
        if size_of(self) != 1:
            raise ValueError(
                f"bool: the truth value of an array of {size_of(self)} elements is ambiguous; use x.size, or"
                " arrayhub.as_numpy(x).any() or .all()"
            )
        return bool(read_element(self, "bool"))

    def __int__(self):
        return int(read_element(self, "int"))

    def __float__(self):
        return float(read_element(self, "float"))

    def __complex__(self):
        return complex(read_element(self, "complex"))

    def __index__(self):
        """Return the element of an integer array without dimensions.

        Like NumPy, reject an array with dimensions, which a caller could also interpret as a sequence of sizes.
        """
        if self.nd_ != 0 or not (self.typenum_ != cnp.NPY_BOOL and cnp.PyTypeNum_ISINTEGER(self.typenum_)):
            raise TypeError(
                f"index: the array has {dimensions(self.nd_)} and elements of {name_of_elements(self)}; accepted: arrays of"
                " integers without dimensions. Use arrayhub.as_numpy(x)"
            )
        return read_element(self, "index").item()

    def __format__(self, spec):
        """Return ``str(x)`` if `spec` is empty, otherwise the formatted value of the only element."""
        return format(read_element(self, f"format {spec!r}"), spec) if spec else str(self)

    def item(self, *args):
        """Return one element as a Python value, like ``numpy.ndarray.item``.

        Parameters
        ----------
        *args : int or tuple of int, optional
            Without arguments, return the only element. A single integer is a position in C order. Several integers, or a
            tuple, contain one index per dimension.

        Raises
        ------
        ValueError
            No index is given for an array that does not have exactly one element, or the number of indices differs from the
            number of dimensions.
        IndexError
            An index is out of bounds.
        TypeError
            An index is not an integer, or the host cannot read the memory (call ``to_host`` first).

        Examples
        --------
        >>> x = arrayhub.asarray([[1, 2], [3, 4]])
        >>> x.item(3), x.item(1, 0)
        (4, 3)
        """
        return readable(self, "item").item(*args)

    def tolist(self):
        """Return the elements as nested lists of Python values, or the value of an array without dimensions.

        Raises
        ------
        TypeError
            The host cannot read the memory. Call ``to_host`` first.

        Examples
        --------
        >>> arrayhub.asarray(numpy.eye(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return readable(self, "tolist").tolist()

    def tobytes(self, order="C"):
        """Return the elements as bytes, without gaps.

        Parameters
        ----------
        order : {"C", "F", "A"}, optional
            Order of the elements. "A" is "F" for an array that is contiguous only in this order, else "C".

        Raises
        ------
        TypeError
            The host cannot read the memory. Call ``to_host`` first.

        Examples
        --------
        >>> arrayhub.asarray(numpy.array([1, 2], "u1")).tobytes()
        b'\\x01\\x02'
        """
        if order not in ("C", "F", "A"):
            raise ValueError(f"tobytes: order is {show(order)}; accepted: 'C', 'F' or 'A'")
        if not host_readable(self):
            raise TypeError(unreadable("tobytes", device_name(self)))
        host_ready(self)
        return numpy_library.emit_raw(self).tobytes(order)

    # -------------------------------------------------------------------------------------------------- views

    def __getitem__(self, key):
        """Return a view for a basic index: integers, slices, Ellipsis and newaxis, or the name of a field of records.

        The view shares the memory block.
        """
        return index(self, key)

    @property
    def T(self):
        """USMArray : view with the dimensions in reverse order."""
        return transpose(self, None)

    def transpose(self, *axes):
        """Return a view with the dimensions in a different order.

        Parameters
        ----------
        *axes : int or tuple of int, optional
            A permutation of the dimensions. By default, the order is reversed.

        Examples
        --------
        >>> arrayhub.asarray(numpy.zeros((2, 3, 4))).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        return transpose(self, None if not axes or len(axes) == 1 and axes[0] is None else sequence(axes))

    def align(self, *names):
        """Return a view with the dimensions in the order of `names`.

        Parameters
        ----------
        *names : str or tuple of str
            A permutation of ``dims``. A single string that is not one of ``dims`` is a sequence of one-letter names, as in
            ``"KJI"``.

        Raises
        ------
        ValueError
            The dimensions do not have names, or `names` is not a permutation of the names.

        Examples
        --------
        >>> x = arrayhub.asarray(numpy.zeros((2, 3, 4))).with_dims("IJK")
        >>> x.align("KIJ").shape
        (4, 2, 3)
        """
        present = self.dims
        if present is None:
            raise ValueError("align: the dimensions do not have names; call with_dims(...) first")
        one = len(names) == 1 and (isinstance(names[0], (tuple, list)) or isinstance(names[0], str) and names[0] not in present)
        order = tuple(names[0]) if one else names
        if len(order) != len(present) or not all([name in order for name in present]):
            raise ValueError(f"align: names are {show(order)}; accepted: a permutation of {present}")
        refuse_packed(self, "align")
        return transpose(self, [present.index(name) for name in order])

    def with_dims(self, dims, origin=None):
        """Return a view with named dimensions.

        Parameters
        ----------
        dims : sequence of (str or None), or mapping
            One distinct name per dimension, or a mapping from old names to new names. None stands for a dimension without a
            name. GT4Py's stencils use ``"I"``, ``"J"``, ``"K"``, and ``"0"``, ``"1"``, ... for data dimensions.
        origin : sequence of int, optional
            The index of the first element of a stencil's domain, in the order of the dimensions. By default, the origin does
            not change.

        Raises
        ------
        ValueError
            The number of names differs from the number of dimensions, a name is repeated, or a name to replace does not exist.
        TypeError
            A name is neither a string nor None, or an index is not an integer.

        Examples
        --------
        >>> x = arrayhub.asarray(numpy.zeros((2, 3))).with_dims("IJ", origin=(1, 1))
        >>> x.dims, x[1:].origin
        (('I', 'J'), (0, 1))
        """
        return relabel(self, dims, origin)

    def reshape(self, *shape, order="C"):
        """Return a view of the same elements with a different shape.

        Parameters
        ----------
        *shape : int or tuple of int
            The new lengths in elements. One length may be -1, and is then computed from the number of elements.
        order : {"C", "F", "A"}, optional
            The index order of the elements in both shapes, as in ``numpy.reshape``.

        Raises
        ------
        ValueError
            The number of elements differs, or several lengths are -1.
        BufferError
            The new shape would need a copy (call ``copy()`` first), or elements of less than a byte are packed.

        Examples
        --------
        >>> arrayhub.asarray(numpy.arange(6)).reshape(2, -1).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        cdef tuple lengths = sequence(shape)
        if type(order) is str and order == "C":      # the usual case
            return reshape(self, lengths)
        if order not in ("C", "F", "A"):      # NumPy's reshape does not accept "K", either
            raise ValueError(f"reshape: order is {show(order)}; accepted: 'C', 'F' or 'A'")
        if not in_fortran_order(self, order, "reshape"):
            return reshape(self, lengths)
        refuse_packed(self, "reshape")
        try:
            return transpose(reshape(transpose(self, None), lengths[::-1]), None)
        except BufferError:
            raise BufferError(
                f"reshape: strides cannot represent the shape {lengths} in Fortran order; call copy(order='F') first"
            ) from None

    def view(self, dtype=None):
        """Return a view of the same bytes as elements of a different type, like ``numpy.ndarray.view``.

        Parameters
        ----------
        dtype : optional
            The new element type. By default, the type does not change. A type of a different size changes the length of the
            last dimension, which must be contiguous.

        Raises
        ------
        ValueError
            Neither item size is a multiple of the other, or the last dimension is not contiguous.

        Examples
        --------
        >>> arrayhub.asarray(numpy.array([1.0, 2.0])).view("u1").shape
        (16,)
        """
        if dtype is None:
            return same_layout(self)
        if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
            raise TypeError(f"view: {show(dtype)} is a class of arrays; call arrayhub.as_numpy(x).view({dtype.__name__})")
        refuse_packed(self, "view")
        # NumPy computes shape and strides from an ndarray of the same layout, without access to the memory.
        whole = numpy_library.array_over(self, stored_dtype(self))
        shown = whole.view(requested_dtype(dtype))
        cdef Descriptor view = view_of(self, shown.ndim)     # more dimensions if the dtype has a shape
        cdef int k
        for k in range(view.nd_):
            view.shape_[k] = shown.shape[k]
            view.byte_strides_[k] = shown.strides[k]
        view.flags_ &= ~NOTSWAPPED
        view.dtype_ = None
        set_dtype(view, shown.dtype)
        seal(view)
        if self.labels != NULL and self.itemsize_ == view.itemsize_ and self.nd_ == view.nd_:
            set_labels(view, labels_of(self))
        return view

    def ravel(self, order="C"):
        """Return a view with one dimension.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements. "A" is "F" for an array that is contiguous only in this order, else "C". "K" takes the
            dimensions in the order of decreasing strides, and is "A" for arrays with a stride of 0.

        Raises
        ------
        BufferError
            The result would need a copy, and writes to a copy would not change the array. Call ``flatten()`` for a copy.
            NumPy's ``ravel`` copies implicitly.

        Examples
        --------
        >>> arrayhub.asarray(numpy.zeros((2, 3))).ravel().shape
        (6,)
        """
        cdef Descriptor ordered = order_elements(self, order, "ravel")
        try:
            return reshape(ordered, (-1,) if ordered.size else (0,))
        except BufferError:
            raise BufferError(
                f"ravel: shape {self.shape} with byte strides {self.byte_strides} cannot be viewed as one dimension; call"
                " flatten(), which copies"
            ) from None

    # ------------------------------------------------------------------------------------------------- copies

    def __setitem__(self, key, value):
        """Copy `value`, which is an array of any library or a value that NumPy accepts, into the elements of ``x[key]``.

        The array and `value` may be in device memory. If the element types differ, `value` is cast on the host. If `value`
        overlaps ``x[key]`` in memory, the result is the same as with a temporary copy.

        Raises
        ------
        ValueError
            The array is read-only, an array is assigned to elements that overlap each other, the shapes are incompatible, text
            is too long, or a time is not a multiple of the unit.
        TypeError
            The elements cannot represent the kind of the values, such as floats for integers.
        OverflowError
            A number is out of the range of the elements.
        BufferError
            No copy engine supports the device of the memory.
        """
        assignment.assign(self, key, value)

    def __delitem__(self, key):
        raise TypeError("del x[...]: elements of an array cannot be deleted; use a slice instead")

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """Return a copy with a different element type, like ``numpy.ndarray.astype``. The host casts the elements.

        Parameters
        ----------
        dtype : optional
            The element type.
        order : {"C", "F", "A", "K"}, optional
            Layout of the copy. "A" and "K" are "F" for an array that is contiguous only in this order, else "C".
        casting : str, optional
            Permitted conversions, as in ``numpy.can_cast``.
        subok : bool, optional
            Ignored. Accepted for compatibility with NumPy.
        copy : bool, optional
            If False or None, return the array itself if it already has this type.

        Raises
        ------
        TypeError
            `casting` forbids the conversion.

        Examples
        --------
        >>> arrayhub.asarray(numpy.array([1, 2])).astype("f4").tolist()
        [1.0, 2.0]
        """
        cdef bint fortran = in_fortran_order(self, order, "astype")
        copy = check_copy(copy, "astype")
        dtype = requested_dtype(dtype)
        if not np.can_cast(get_dtype(self), dtype, casting):
            raise TypeError(
                f"astype: casting={casting!r} forbids converting {get_dtype(self)!r} to {dtype!r}; accepted: conversions that"
                " numpy.can_cast allows"
            )
        if satisfies(get_dtype(self), dtype):
            return transfer.copy(self, order="F" if fortran else "C") if copy else self
        if self.flags_ & PACKED:
            raise BufferError(f"astype: {PACKED_ELEMENTS}")
        return transpose(transfer.astype(transpose(self, None), dtype), None) if fortran else transfer.astype(self, dtype)

    def flatten(self, order="C"):
        """Return a 1-d copy on the same device. `ravel` returns a view instead.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}, optional
            The order of the elements. "A" is "F" for an array that is contiguous only in this order, else "C". "K" takes the
            dimensions in the order of decreasing strides, and is "A" for arrays with a stride of 0.

        Examples
        --------
        >>> arrayhub.asarray(numpy.array([[1, 2], [3, 4]])).flatten("F").tolist()
        [1, 3, 2, 4]
        """
        cdef Descriptor ordered = order_elements(self, order, "flatten")
        return reshape(transfer.copy(ordered), (ordered.size,))

    def copy(self, order="C"):
        """Return a writable copy on the same device.

        Parameters
        ----------
        order : {"C", "F", "K"}, optional
            Layout of the copy. "K" keeps the order of the dimensions in memory.

        Examples
        --------
        >>> x = arrayhub.asarray(b"abc")
        >>> x.access, x.copy().access
        ('immutable', 'readwrite')
        """
        return transfer.copy(self, order=order)

    def aligned(self, *, copy=None):
        """Return the array itself if all elements are aligned for their type, otherwise an aligned copy.

        Parameters
        ----------
        copy : bool, optional
            None: copy if elements are not aligned. True: always copy. False: raise BufferError instead of copying.

        Returns
        -------
        USMArray
            The array itself, or a writable copy in C order on the same device.

        Examples
        --------
        >>> x = arrayhub.asarray(numpy.zeros(3, "u1, f8"))
        >>> values = arrayhub.asarray(arrayhub.as_numpy(x)["f1"])
        >>> values.flags.aligned, values.aligned().flags.aligned
        (False, True)
        """
        return transfer.aligned(self, copy=copy)

    def native(self, *, copy=None):
        """Return the array itself if it is in native byte order, otherwise a copy in native byte order.

        Parameters
        ----------
        copy : bool, optional
            None: copy if elements or fields are byte-swapped. True: always copy. False: raise BufferError instead of copying.

        Returns
        -------
        USMArray
            The array itself, or a writable copy in C order. If elements are byte-swapped, the copy is in host memory.

        Raises
        ------
        BufferError
            The elements are byte-swapped, and the host cannot read the memory. Call ``to_host()`` first.

        Examples
        --------
        >>> x = arrayhub.asarray(numpy.array([1, 2], ">i4"))
        >>> x.native().dtype.isnative, x.native().tolist()
        (True, [1, 2])
        """
        return transfer.native(self, copy=copy)

    def to_host(self, *, out=None, copy=None, stream=None, progress=None):
        """Return the array in host memory, as a view if the host can read the memory. See ``arrayhub.to_host``."""
        return hooks.functions.to_host(self, out=out, copy=copy, stream=stream, progress=progress)

    def to_device(self, device, /, *, out=None, copy=None, stream=None, progress=None):
        """Return a copy on `device`, or the array itself if it is on this device. See ``arrayhub.to_device``.

        For the device "cpu", return a view if the host can read the memory.
        """
        return hooks.functions.to_device(self, device, out=out, copy=copy, stream=stream, progress=progress)

    def to_numpy(self, dtype=None, copy=False):
        """Return a ``numpy.ndarray`` that shares the memory. matplotlib calls this method. See ``arrayhub.as_numpy``.

        Parameters
        ----------
        dtype : optional
            Element type to convert to, with a copy. Accepts the types that `asarray` accepts.
        copy : {False, None, True}, optional
            As in ``arrayhub.as_numpy``.

        Raises
        ------
        BufferError
            The host cannot read the memory. Call ``to_host()`` first.

        Examples
        --------
        >>> arrayhub.asarray([1.0, 2.0]).to_numpy()
        array([1., 2.])
        """
        return hooks.functions.as_numpy(self, copy=copy, dtype=dtype)

    def to_xarray(self):
        """Return an ``xarray.DataArray`` that shares the memory, with the same dimension names.

        Raises
        ------
        BufferError
            Neither the host nor CUDA can read the memory. Call ``to_host()`` first.
        ImportError
            xarray is not installed.

        Examples
        --------
        >>> arrayhub.empty((2, 3), dims=("x", "y")).to_xarray().dims
        ('x', 'y')
        """
        from arrayhub.libraries import xarray

        return xarray.emit(self)

    # ---------------------------------------------------------------------------------------------- protocols

    @property
    def data(self):
        """memoryview : the memory, exported through the buffer protocol, like ``numpy.ndarray.data``.

        GT4Py's frozen NumPy stencils use this attribute. Raises AttributeError if the host cannot read the memory or PEP 3118
        does not have a format for the element type.
        """
        try:
            return memoryview(self)
        except BufferError as error:
            raise AttributeError(f"data: {reason_of(error)}") from error

    @property
    def ctypes(self):
        """numpy.ndarray.ctypes : ``data``, ``data_as``, ``shape`` and ``strides`` (in bytes) for foreign functions.

        Raises AttributeError if the host cannot read the memory.
        """
        interface_dict.check_host(self, "ctypes")
        return numpy_library.emit(self).ctypes

    def __getbuffer__(self, Py_buffer* view, int request):
        buffer_adapter.emit(self, view, request)

    def __releasebuffer__(self, Py_buffer* view):
        buffer_adapter.release(view)

    @property
    def __array_interface__(self):
        return interface_dict.emit_array_interface(self)

    @property
    def __array_struct__(self):
        return interface_dict.emit_struct(self)

    def __array__(self, dtype=None, copy=None):
        """Return an ndarray that shares the memory, for element types that ``__array_interface__`` cannot represent."""
        return numpy_library.emit_array(self, dtype, copy)

    @property
    def __cuda_array_interface__(self):
        return interface_dict.emit_cuda_array(self)

    @property
    def __sycl_usm_array_interface__(self):
        return interface_dict.emit_sycl_usm(self)

    @property
    def __usm_ndarray__(self):
        """usm_ndarray : array of dpnp that shares the memory. dpnp imports an object through this attribute if it exists."""
        if not self.usm_type_:
            raise AttributeError("__usm_ndarray__: the memory is not SYCL USM; call arrayhub.to_device(x, 'oneapi:0')")
        from arrayhub.libraries.dpctl import bind_export

        return bind_export(self)

    @property
    def __gt_dims__(self):
        """tuple of str : names of the dimensions for GT4Py. The attribute exists only if GT4Py supports all names."""
        from arrayhub.adapters.dimensions import emit_dims

        return emit_dims(self)

    @property
    def __gt_origin__(self):
        """tuple of int : origin in the dimension order of GT4Py's stencils: I, J, K, data dimensions."""
        from arrayhub.adapters.dimensions import emit_origin

        return emit_origin(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Export the array through DLPack, as in the array API standard.

        Parameters
        ----------
        stream : optional
            The consumer's stream. Must be None or -1 for host memory.
        max_version : tuple of int, optional
            The newest DLPack version that the consumer supports. By default, the result is a legacy capsule.
        dl_device : tuple of int, optional
            The device that the consumer requests. ``(1, 0)`` is host memory.
        copy : bool, optional
            True: always copy. False: never copy. None: copy only if `dl_device` requires a copy.

        Raises
        ------
        BufferError
            DLPack cannot represent the memory, type or layout, or ``copy=False`` forbids a required copy.
        """
        # Consumers from before DLPack 1.0 support only the host and CUDA, and reject oneAPI devices (onnxruntime: "Unsupported
        # device type"), so host-readable USM is exported to them as host memory.
        if (max_version is None and dl_device is None and stream is None and self.device_.device_type == kDLOneAPI
                and host_readable(self)):
            dl_device = HOST_PAIR
        if dl_device is None and (copy is None or copy is False):
            return dlpack.emit(self, stream, max_version, False)
        cdef Descriptor export = transfer.for_dlpack(self, dl_device, copy, stream)
        cdef bint own = block_of(export) is not block_of(self)
        # A copy to the host is complete on return. For a copy on a device, the consumer's stream must still wait.
        return dlpack.emit(export, None if dl_device == HOST_PAIR else stream, max_version, own)

    @property
    def __arrow_c_schema__(self):
        return arrow.bind_export(self, arrow.SCHEMA)

    @property
    def __arrow_c_array__(self):
        return arrow.bind_export(self, arrow.ARRAY)

    @property
    def __arrow_c_device_array__(self):
        return arrow.bind_export(self, arrow.DEVICE_ARRAY)

    @property
    def __arrow_c_stream__(self):
        return arrow.bind_export(self, arrow.STREAM)

    @property
    def __arrow_c_device_stream__(self):
        return arrow.bind_export(self, arrow.DEVICE_STREAM)

    def __dlpack_device__(self):
        """Return the pair (device_type, device_id) of DLPack's DLDevice."""
        device = device_of(self)
        return (device.device_type, device.device_id)


cdef inline object fill_tuple(object fresh, int nd, Py_ssize_t* values):
    """Fill a new tuple, or a new instance of a subclass of tuple, with integers."""
    cdef int k
    for k in range(nd):
        value = PyLong_FromSsize_t(values[k])
        Py_INCREF(value)        # PyTuple_SET_ITEM steals the reference
        PyTuple_SET_ITEM(<tuple> fresh, k, value)
    return fresh


cdef tuple integers(int nd, Py_ssize_t* values):
    return <tuple> fill_tuple(PyTuple_New(nd), nd, values)


cdef type _Strides = Strides


cdef object step_tuple(int nd, Py_ssize_t* values):
    return fill_tuple(new_strides(_Strides, nd), nd, values)


cdef object sequence(tuple arguments):
    """Return integers that the caller passed as several arguments or as one sequence."""
    if len(arguments) != 1:
        return arguments
    try:
        return tuple(arguments[0])
    except TypeError:      # an integer, or an array without dimensions
        return arguments


register_class(USMArray)
refuse_in_place_operators(USMArray)
set_lookup_order(USMArray, (USMArray, Descriptor, _Absent, object))
