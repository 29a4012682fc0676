"""NumPy: ndarrays in and out through its C API, which is several times faster than any of its protocols."""

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    COPIED,
    PACKED,
    WRITEABLE,
    Descriptor,
    bare_array,
    get_dtype,
    host_readable,
    reserve,
    seal,
    set_dtype,
    set_type,
)
from arrayhub._core.device cimport DLDevice, kDLCPU
from arrayhub._core.runtime cimport host_ready, place_of
from arrayhub.adapters cimport array_interface
from arrayhub.adapters.table cimport ARRAY_INTERFACE
from arrayhub.runtimes.host cimport as_host, for_host_library

from arrayhub._core.errors import PACKED_ELEMENTS, PASSES_ON, module_of, show
from arrayhub.libraries import wrappers

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(type subtype, cnp.dtype descr, int nd, const Py_ssize_t* dims,
                                const Py_ssize_t* strides, void* data, int flags, object obj)
    int PyArray_SetBaseObject(cnp.ndarray array, object base) except -1


cdef enum:
    # Set on the results of broadcast_arrays, whose elements share memory. NumPy's buffer and interfaces then say read-only;
    # the C API has no name for the bit, which flags.num shows (NPY_ARRAY_WARN_ON_WRITE in NumPy's multiarray/arrayobject.h).
    WARN_ON_WRITE = -2147483648


cdef Descriptor parse(object obj, object stream):
    """An array on the memory of an ndarray or of an instance of one of its subclasses.

    Raises
    ------
    TypeError
        The array holds Python objects, or has a mask, which no protocol could carry on.
    """
    if not cnp.PyArray_CheckExact(obj):
        refuse_mask(obj)     # first: it runs code of the subclass, which may change what is read below
    # What the collector runs may change the array too: nothing is read before the descriptor stands. And no name for the
    # ndarray itself: it would be one more reference, whose count threads may share.
    cdef Descriptor a = bare_array()
    cdef cnp.dtype descr = <cnp.dtype> <PyObject*> cnp.PyArray_DESCR(<cnp.ndarray> obj)
    cdef int k, nd = cnp.PyArray_NDIM(<cnp.ndarray> obj)
    reserve(a, nd)
    a.protocol_ = ARRAY_INTERFACE
    a.base_ = obj
    a.data_ = <char*> cnp.PyArray_DATA(<cnp.ndarray> obj)
    a.device_ = DLDevice(kDLCPU, 0)
    for k in range(nd):
        a.shape_[k] = cnp.PyArray_DIMS(<cnp.ndarray> obj)[k]
        a.byte_strides_[k] = cnp.PyArray_STRIDES(<cnp.ndarray> obj)[k]
    if cnp.PyArray_FLAGS(<cnp.ndarray> obj) & (cnp.NPY_ARRAY_WRITEABLE | WARN_ON_WRITE) == cnp.NPY_ARRAY_WRITEABLE:
        a.flags_ |= WRITEABLE
    cdef const dtypes.ElementType* row = dtypes.by_typenum(descr.type_num)
    if row != NULL and row.typestr != NULL and descr.byteorder != c">":
        set_type(a, row)
        a.dtype_ = descr
    else:
        try:
            set_dtype(a, descr)
        except TypeError:
            raise wrappers.elements_error(obj) from None
    seal(a)
    return a


cdef Descriptor parse_by_dict(object obj, object stream):
    """Import an ndarray through ``__array_interface__``, with its own dtype, since a type string cannot express every dtype."""
    refuse_mask(obj)
    cdef object dtype = obj.dtype
    if dtype.hasobject or dtypes.by_dtype(dtype) == NULL:
        raise wrappers.elements_error(obj)
    return array_interface.parse_as(obj, dtype)


cdef Descriptor copy_values(object obj):
    """Python numbers and nested sequences, through NumPy: the one copy that nobody has to ask for."""
    refuse_endless(obj, "asarray")
    try:
        array = array_of(obj, None)
    except PASSES_ON:
        raise
    except (RuntimeError, TypeError, ValueError) as error:      # the first two are those of arrays in a list
        helps = "arrayhub.asnested takes lists of different length" if isinstance(error, ValueError) else \
            "take its elements one by one"
        raise TypeError(f"asarray: {show(obj)} is no regular nested sequence of numbers ({error}); {helps}") from error
    if array.dtype == object:
        raise TypeError(f"asarray: {show(obj)} would become an array of Python objects; accepted: numbers of one type")
    cdef Descriptor a = parse(array, None)
    a.flags_ |= COPIED
    return a


cdef Descriptor copy_values_as(object obj, object dtype):
    """The same with elements of a type that the caller chose: NumPy refuses integers that it does not hold, which a copy
    of the array from above would wrap."""
    refuse_endless(obj, "asarray")
    try:
        array = array_of(obj, dtype)
    except OverflowError as error:
        raise OverflowError(f"asarray: dtype is {dtype!r}: {error}") from None
    except ValueError as error:      # text that is no number, or not ASCII; no number among integers
        raise ValueError(f"asarray: dtype is {dtype!r}: {error}") from None
    cdef Descriptor a = parse(array, None)
    a.flags_ |= COPIED
    return a


cdef object array_of(object obj, object dtype):
    """What NumPy makes of values, among which may be arrays of ours: those of one element it knows by numbers alone."""
    try:
        array = np.array(obj, dtype)
    except (TypeError, ValueError):
        shown = with_ndarrays(obj)
        if shown is obj:
            raise
        array = np.array(shown, dtype)
    return array if array.base is None else array.copy()     # of a record's scalar NumPy gives a view


cdef frozenset _PLAIN = frozenset((bool, int, float, complex, str, bytes))     # as most values are; no array among them


# Of an array that no machine has memory for. Lists that share their elements can name as many.
cdef double MANY_ELEMENTS = 2.0 ** 40


cpdef int refuse_endless(object obj, str call) except -1:
    """Refuse sequences in which NumPy would look for elements without end: those nested too deeply, those that contain
    themselves and those that share their elements.

    NumPy takes the number of dimensions and their lengths from the first elements, and leaves a sequence in which others
    differ. Only the first elements have to be followed.
    """
    cdef double elements = 1
    cdef int levels = 0
    cdef Py_ssize_t length
    while isinstance(obj, (list, tuple)):
        length = len(<list> obj) if isinstance(obj, list) else len(<tuple> obj)
        if length == 0:
            break
        levels += 1
        elements *= length
        if levels > layout.MAX_NDIM:
            raise TypeError(
                f"{call}: sequences inside each other, more than {layout.MAX_NDIM} levels; accepted: at most"
                f" {layout.MAX_NDIM}, in none of which a sequence contains itself"
            )
        if elements > MANY_ELEMENTS:
            raise TypeError(
                f"{call}: sequences inside each other with {elements:.2g} elements; accepted: at most 2**40, those of a"
                " shared sequence counted each time. numpy.broadcast_to(x, shape) repeats x without a copy"
            )
        obj = (<list> obj)[0] if isinstance(obj, list) else (<tuple> obj)[0]
    return 0


cpdef double count_elements(object obj, str call) except -1:
    """Return how many elements there are in lists, tuples and dicts inside each other, those of a shared one counted each
    time; TypeError where one contains itself."""
    return counted(obj, 0, {}, call)


cdef double counted(object obj, int level, dict seen, str call) except -1:
    cdef double elements = len(obj)
    values = obj.values() if isinstance(obj, dict) else obj
    if _PLAIN.issuperset(map(type, values)):
        return elements
    if level > layout.MAX_NDIM:
        raise TypeError(f"{call}: lists inside each other, more than {layout.MAX_NDIM} levels")
    before = seen.get(id(obj), obj)
    if before is None:
        raise TypeError(f"{call}: lists inside each other, more than {layout.MAX_NDIM} levels, since {show(obj)} contains"
                        " itself")
    if before is not obj:
        return before[1]
    seen[id(obj)] = None
    for item in values:
        if isinstance(item, (list, tuple, dict)):
            elements += counted(item, level + 1, seen, call)
    seen[id(obj)] = (obj, elements)
    return elements


cpdef object with_ndarrays(object obj):
    """Return `obj` with an ndarray in place of each array of ours in it, or `obj` itself where there is none."""
    return replaced(obj, 0, {})


cdef object replaced(object obj, int level, dict seen):
    """`seen` has the sequences that were visited, by their identity: they may share their elements, or contain themselves,
    which NumPy refuses. It refuses more levels than it has dimensions, too."""
    if isinstance(obj, Descriptor):
        return emit(obj)
    if level > layout.MAX_NDIM or not isinstance(obj, (list, tuple)) or _PLAIN.issuperset(map(type, obj)):
        return obj
    before = seen.get(id(obj))
    if before is not None:
        return before[1]
    seen[id(obj)] = (obj, obj)
    items = [replaced(item, level + 1, seen) for item in obj]
    result = items if any([new is not old for new, old in zip(items, obj)]) else obj
    seen[id(obj)] = (obj, result)
    return result


cdef Descriptor copy_scalar(object obj, object stream):
    """A NumPy scalar: its buffer calls dates bytes, and its dict knows nothing of ml_dtypes."""
    return copy_values(obj)


cdef int refuse_mask(object obj) except -1:
    """A mask says which elements are valid; no protocol here can carry it, and dropping it would change the values."""
    cls = type(obj)
    if not is_attribute(obj, "mask"):
        return 0
    mask = obj.mask
    if mask is None or mask is False or mask is np.ma.nomask or callable(mask):
        return 0
    bare = "x.unmasked" if hasattr(cls, "unmasked") else "x.view(numpy.ndarray)"
    helps = f"x.filled(value), or {bare} to ignore it"
    if isinstance(obj, np.ma.MaskedArray):
        bare = "x.data" if cls.data is np.ma.MaskedArray.data else "numpy.ma.getdata(x)"     # astropy's has the mask too
        hides = mask.dtype.names is not None or mask.any()     # of records NumPy keeps a mask that hides nothing
        helps = f"x.filled(value), or {bare} to ignore it" if hides else "x.shrink_mask(), since it hides nothing"
    raise TypeError(f"{module_of(cls)}.{cls.__name__}: mask is set; accepted: arrays without one. Take {helps}")


cdef bint is_attribute(object obj, str name) except -1:
    """Whether the type or the object itself has an attribute; a field of a record that is called so is none."""
    return hasattr(type(obj), name) or name in getattr(obj, "__dict__", ())


# How libraries write that a quantity has no unit.
cdef frozenset _NO_UNITS = frozenset(("", "dimensionless", "1.0 dimensionless", "1 (dimensionless)"))


cpdef int refuse_unit(object obj) except -1:
    """Refuse an ndarray that counts a unit, among others: those of the others may differ, and none would be kept."""
    cdef type cls = type(obj)
    if cls is np.ndarray or not isinstance(obj, np.ndarray):
        return 0
    for name in ("unit", "units"):
        unit = getattr(obj, name, None) if is_attribute(obj, name) else None
        if unit is not None and not callable(unit) and str(unit) not in _NO_UNITS:
            raise TypeError(
                f"{module_of(cls)}.{cls.__name__}: {name} is {show(str(unit))}, which a list of them would lose; accepted:"
                " numbers without one. Convert each to one unit, and take numpy.asarray(x) of it"
            )
    return 0


cdef object emit(Descriptor a):
    """An ndarray on the memory of `a`, which it keeps alive as its base.

    Raises
    ------
    BufferError
        The host cannot read the memory, or elements are packed.
    TypeError
        NumPy has no dtype for the elements.
    """
    if not host_readable(a):
        raise BufferError(
            f"numpy: the memory is on {place_of(a)}, which the host cannot"
            " read; call arrayhub.to_host(x), or pass copy=True"
        )
    if a.flags_ & PACKED:
        raise BufferError(f"numpy: {PACKED_ELEMENTS}")
    host_ready(a)
    return lay_over(a, get_dtype(a), a.nd_, a.shape_, a.byte_strides_)


# Where an array without elements points: NumPy allocates, and makes writable, what it gets no pointer for.
cdef char[16] _NOTHING


cdef object lay_over(Descriptor a, object dtype, int nd, Py_ssize_t* shape, Py_ssize_t* strides):
    """An ndarray on the memory of `a`, which it keeps alive."""
    cdef void* data = a.data_ if a.data_ != NULL else <void*> _NOTHING
    Py_INCREF(dtype)     # PyArray_NewFromDescr takes this reference over
    cdef cnp.ndarray array = PyArray_NewFromDescr(
        np.ndarray, dtype, nd, shape, strides, data, cnp.NPY_ARRAY_WRITEABLE if a.flags_ & WRITEABLE else 0, None
    )
    Py_INCREF(a)         # and PyArray_SetBaseObject this one
    PyArray_SetBaseObject(array, a)
    return array


cdef object emit_raw(Descriptor a):
    """The same with opaque items, so that NumPy copies bytes and interprets nothing; packed elements as one run."""
    cdef Py_ssize_t nbytes = a.nbytes
    if a.flags_ & PACKED:
        return lay_over(a, np.dtype(np.uint8), 1, &nbytes, NULL)
    # Not np.dtype((np.void, n)): what that calls in between may be interrupted, and it takes the interrupt for an answer.
    return lay_over(a, np.dtype(f"V{a.itemsize_}"), a.nd_, a.shape_, a.byte_strides_)


cdef cnp.dtype _UINT8 = np.dtype(np.uint8)


cdef object emit_run(Descriptor a, char* data, Py_ssize_t nbytes, object owner):
    """Some bytes of `a` as a flat ndarray of ``uint8``, which keeps `owner` alive and not the array."""
    Py_INCREF(_UINT8)     # as above
    cdef cnp.ndarray array = PyArray_NewFromDescr(
        np.ndarray, _UINT8, 1, &nbytes, NULL, data if nbytes else _NOTHING,
        cnp.NPY_ARRAY_WRITEABLE if a.flags_ & WRITEABLE else 0, None,
    )
    Py_INCREF(owner)
    PyArray_SetBaseObject(array, owner)
    return array


cdef object emit_array(Descriptor a, object dtype, object copy):
    """What ``__array__`` gives: `emit`, and where asked for, NumPy's own conversion of it.

    Raises
    ------
    TypeError
        The host cannot read the memory. NumPy lets a TypeError through; after a BufferError it would make a
        zero-dimensional array of the object itself.
    """
    if not host_readable(a):
        raise TypeError(
            f"numpy: the memory is on {place_of(a)}; NumPy reads host"
            " memory, and nothing is copied implicitly. Call arrayhub.to_host(x), or arrayhub.as_numpy(x, copy=True)"
        )
    return np.array(emit(a), dtype=dtype, copy=copy)


# ------------------------------------------------------------------------------------- for libraries and the engines


def ndarray(Descriptor array):
    """Return host-readable memory as an ndarray of its own element type, which keeps it alive; BufferError where it is not."""
    return emit(for_host_library(array, "numpy", 0))


def raw(Descriptor array, writable=False):
    """Return host-readable memory as an ndarray of opaque items, for copies that must not interpret the elements.

    Packed elements come as one run of bytes.
    """
    cdef Descriptor view = as_host(array)
    if writable and not array.flags_ & WRITEABLE:
        raise ValueError("out: the array is read-only; accepted: a writable one")
    return emit_raw(view)
