"""NumPy: import and export of ndarrays through the C API, which is several times faster than NumPy's protocols."""

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.atomics cimport read_int
from arrayhub._core.descriptor cimport (
    COPIED,
    PACKED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    bare_array,
    get_dtype,
    host_readable,
    kDLCPU,
    reserve,
    seal,
    set_dtype,
    set_type,
)
from arrayhub._core.runtime cimport host_ready, device_name
from arrayhub.adapters cimport buffer, interface_dict
from arrayhub.adapters.table cimport ARRAY_INTERFACE
from arrayhub.adapters.type_cache cimport IMPORTED, record_of
from arrayhub.runtimes.host cimport as_host, for_host_library

from arrayhub._core.errors import (
    PACKED_ELEMENTS,
    RangeRefusal,
    Refusal,
    TypeRefusal,
    ValueRefusal,
    module_of,
    show,
    unreadable,
)
from arrayhub._core.hooks import hooks

# Types whose values do not have memory to view, so NumPy copies them. Test with issubclass: isinstance also trusts
# ``__class__``, which an object can forge.
VALUES = (bool, int, float, complex, list, tuple, range, np.generic)


cpdef bint is_value(object obj) noexcept:
    """Return whether ``type(obj)`` is one of `VALUES` or derives from one. This is several times faster than issubclass."""
    return arrayhub_is_value(obj)

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(type subtype, cnp.dtype descr, int nd, const Py_ssize_t* dims,
                                const Py_ssize_t* strides, void* data, int flags, object obj)
    int PyArray_SetBaseObject(cnp.ndarray array, object base) except -1

cdef extern from *:
    """
    #define arrayhub_is_value(obj) (PyLong_Check(obj) || PyFloat_Check(obj) || PyComplex_Check(obj) || PyList_Check(obj) || \\
                                    PyTuple_Check(obj) || PyRange_Check(obj) || PyArray_IsScalar(obj, Generic))
    """
    bint arrayhub_is_value(object obj) noexcept


cdef enum:
    # Set on the results of broadcast_arrays, because their elements share memory. NumPy exports them as read-only. The C API
    # does not name this bit of flags.num (NPY_ARRAY_WARN_ON_WRITE in NumPy's multiarray/arrayobject.h).
    WARN_ON_WRITE = -2147483648


cdef Descriptor parse(object obj, object stream):
    """Import an ndarray or an instance of a subclass without a mask and a unit."""
    if not cnp.PyArray_CheckExact(obj):
        check_subclass(obj)     # first, because this runs code of the subclass, which may change the fields read below
    # Allocation can start the garbage collector, whose finalizers may change the array, so allocate before reading any field.
    # Do not bind `obj` to a typed variable: changing the reference count of an array that threads share is slow.
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
    if read_int(&buffer.expects_map) and not cnp.PyArray_FLAGS(<cnp.ndarray> obj) & cnp.NPY_ARRAY_OWNDATA:
        check_base(cnp.PyArray_BASE(<cnp.ndarray> obj))
    cdef const dtypes.ElementType* row = dtypes.by_typenum(descr.type_num)
    if row != NULL and row.typestr != NULL and descr.byteorder != c">":
        set_type(a, row)
        a.dtype_ = descr
    else:
        try:
            set_dtype(a, descr)
        except TypeError:
            raise elements_error(obj) from None
    seal(a)
    return a


cdef int check_base(PyObject* base) except -1:
    """Call `check_map` for the owner of an ndarray's memory."""
    if base != NULL and cnp.PyArray_Check(<object> base):
        base = cnp.PyArray_BASE(<cnp.ndarray> base)
    return buffer.check_map(base)


cdef object elements_error(object obj):
    from arrayhub.libraries import wrappers

    return wrappers.elements_error(obj)


cdef Descriptor parse_by_dict(object obj, object stream):
    """Import an ndarray through ``__array_interface__``, but with ``obj.dtype``: a type string cannot encode every dtype."""
    check_subclass(obj)
    cdef object dtype = obj.dtype
    if dtype.hasobject or dtypes.by_dtype(dtype) == NULL:
        raise elements_error(obj)
    return interface_dict.parse_array_interface_as(obj, dtype)


cdef Descriptor copy_values(object obj):
    """Import Python numbers and nested sequences through NumPy. `asarray` copies other objects only on request."""
    refuse_endless(obj, "asarray")
    try:
        array = array_of(obj, None)
    except (RuntimeError, TypeError, ValueError) as error:      # RuntimeError and TypeError are raised for arrays in a list
        reason = f"{show(obj)} is not a regular nested sequence of numbers"
        if isinstance(error, ValueError):
            from arrayhub.libraries import wrappers

            call = wrappers.nested_call(obj) if issubclass(type(obj), (list, tuple)) else ""
            raise TypeRefusal("asarray", reason, "rows of equal lengths, and arrays of equal shapes", call) from error
        raise TypeRefusal("asarray", f"{reason} ({error}); pass its elements one by one") from error
    if array.dtype == object:
        from arrayhub.libraries import wrappers

        raise wrappers.values_error(obj, array.ravel())
    cdef Descriptor a = parse(array, None)
    a.flags_ |= COPIED
    return a


cdef Descriptor copy_values_as(object obj, object dtype):
    """Import values as elements of the requested type.

    NumPy rejects integers that are out of range, whereas casting the result of `copy_values` would wrap such integers.
    NumPy would also wrap a NumPy scalar, unless the scalar is in a list. A scalar is therefore passed in a list.
    """
    refuse_endless(obj, "asarray")
    cdef bint is_scalar = isinstance(obj, np.generic) and obj.dtype.kind not in "mM"
    try:
        array = array_of([obj], dtype).reshape(()) if is_scalar else array_of(obj, dtype)
    except OverflowError as error:
        raise RangeRefusal("asarray", f"dtype is {dtype!r}: {error}") from None
    except ValueError as error:      # text that is not a number or not ASCII, or a non-number among integers
        raise ValueRefusal("asarray", f"dtype is {dtype!r}: {error}") from None
    except TypeError as error:       # for example, times that are not in an array
        raise TypeRefusal("asarray", f"dtype is {dtype!r}: {error}. Use numpy.asarray(x).astype(dtype)") from None
    cdef Descriptor a = parse(array, None)
    a.flags_ |= COPIED
    return a


cdef object array_of(object obj, object dtype):
    """Return NumPy's array of values, whose arrays are ndarrays."""
    array = np.array(obj, dtype)
    return array if array.base is None else array.copy()     # np.array of a record scalar is a view


cdef frozenset _PLAIN = frozenset((bool, int, float, complex, str, bytes))     # the usual types of values; none is an array


# Types of elements that NumPy converts as `asarray` does, or to text.
cdef tuple _READ_BY_NUMPY = (*VALUES, np.ndarray, str, bytes, bytearray, memoryview)

# Nested lists that share sublists can represent more elements than any machine can store.
cdef double MANY_ELEMENTS = 2.0 ** 40


cpdef int refuse_endless(object obj, str call) except -1:
    """Reject nested sequences that are too deep, contain themselves, or represent too many elements by sharing lists.

    Only the first element of each level is followed, because NumPy determines the shape from these elements and stops at a
    sequence of a different length.
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
                f"{call}: sequences are nested more than {layout.MAX_NDIM} levels deep; accepted: at most"
                f" {layout.MAX_NDIM}, without a sequence that contains itself"
            )
        if elements > MANY_ELEMENTS:
            raise TypeError(
                f"{call}: nested sequences have {elements:.2g} elements; accepted: at most 2**40, counting a shared sequence"
                " at each occurrence. numpy.broadcast_to(x, shape) repeats x without a copy"
            )
        obj = (<list> obj)[0] if isinstance(obj, list) else (<tuple> obj)[0]
    return 0


cpdef double count_elements(object obj, str call) except -1:
    """Return the number of elements in nested lists, tuples and dicts. Shared containers count at each occurrence.

    Raise TypeError if a container contains itself, or if containers are nested too deeply.
    """
    return count_below(obj, 0, {}, call)


cdef enum:
    WIDE = 64       # from this length on, the count of a container of plain values is cached


cdef double count_below(object obj, int level, dict seen, str call) except -1:
    cdef double elements = len(obj)
    cdef bint wide = elements >= WIDE
    if wide and id(obj) in seen and seen[id(obj)] is not None:
        return seen[id(obj)][1]
    values = obj.values() if isinstance(obj, dict) else obj
    if _PLAIN.issuperset(map(type, values)):
        if wide:
            seen[id(obj)] = (obj, elements)
        return elements
    if level > layout.MAX_NDIM:
        raise TypeError(f"{call}: lists are nested more than {layout.MAX_NDIM} levels deep")
    before = seen.get(id(obj), obj)
    if before is None:
        raise TypeError(f"{call}: lists are nested more than {layout.MAX_NDIM} levels deep, because {show(obj)} contains"
                        " itself")
    if before is not obj:
        return before[1]
    seen[id(obj)] = None
    for item in values:
        if isinstance(item, (list, tuple, dict)):
            elements += count_below(item, level + 1, seen, call)
    seen[id(obj)] = (obj, elements)
    return elements


cpdef object with_ndarrays(object obj):
    """Return `obj` with each USMArray, and each other array in a list, replaced by an ndarray, or `obj` itself.

    NumPy would convert a 0-d USMArray to a Python number, and lacks the importers of libraries.
    """
    return replace_arrays(obj, 0, {})


cdef object replace_arrays(object obj, int level, dict seen):
    """Replace arrays recursively.

    `seen` contains the visited sequences by identity, because sequences may share elements or contain themselves. Sequences
    that contain themselves or have too many levels are returned unchanged, and NumPy rejects them later.
    """
    if isinstance(obj, Descriptor):
        if not host_readable(obj):      # the error of `emit` names copy=True, which not every caller has
            raise BufferError(unreadable("numpy", device_name(obj)))
        return emit(obj)
    if not isinstance(obj, (list, tuple)):
        if level > 0 and not issubclass(type(obj), _READ_BY_NUMPY) and record_of(obj) & IMPORTED:
            return replace_arrays(hooks.functions.import_unadvised(obj, copy=None), level, seen)      # the list is copied, too
        return obj
    if level > layout.MAX_NDIM or _PLAIN.issuperset(map(type, obj)):
        return obj
    before = seen.get(id(obj))
    if before is not None:
        return before[1]
    seen[id(obj)] = (obj, obj)
    items = [replace_arrays(item, level + 1, seen) for item in obj]
    result = items if any([new is not old for new, old in zip(items, obj)]) else obj
    seen[id(obj)] = (obj, result)
    return result


cdef Descriptor copy_scalar(object obj, object stream):
    """Import a NumPy scalar by value, because its buffer exports dates as bytes, and its dict does not support ml_dtypes."""
    return copy_values(obj)


cdef int check_subclass(object obj) except -1:
    """Reject an array with a mask or a unit, which its memory does not contain."""
    refuse_mask(obj)
    return refuse_unit(obj, "numpy.asarray(x)")


cdef int refuse_mask(object obj) except -1:
    """Reject arrays with a mask. Protocols would export the values without the mask, so masked values would look valid."""
    cls = type(obj)
    if not is_attribute(obj, "mask"):
        return 0
    mask = obj.mask
    if mask is None or mask is False or mask is np.ma.nomask or callable(mask):
        return 0
    bare, call = "x.unmasked" if hasattr(cls, "unmasked") else "x.view(numpy.ndarray)", ""
    if issubclass(cls, np.ma.MaskedArray):
        bare = "numpy.ma.getdata(x)"      # the data of astropy's columns includes the mask
        if mask.dtype.names is None and mask.ndim and getattr(obj, "unit", None) is None:
            call = "arrayhub.asnested(x)" if mask.any() else "arrayhub.asarray(x, copy=None)"
    raise TypeRefusal(f"{module_of(cls)}.{cls.__name__}", "mask is set",
                      f"arrays without a mask, such as x.filled(value), or {bare}, which ignores the mask", call)


cdef bint is_attribute(object obj, str name) except -1:
    """Return whether the type or the instance has an attribute. Fields of a structured dtype are not attributes."""
    return hasattr(type(obj), name) or name in getattr(obj, "__dict__", ())


# Texts by which different libraries denote the unit of dimensionless quantities.
cdef frozenset _NO_UNITS = frozenset(("", "dimensionless", "1.0 dimensionless", "1 (dimensionless)"))


cpdef int refuse_unit(object obj, str call="") except -1:
    """Reject an ndarray with a unit, which would be lost. `call` is an expression of `obj` without the unit."""
    cdef type cls = type(obj)
    if cls is np.ndarray or not issubclass(cls, np.ndarray):
        return 0
    for name in ("unit", "units"):
        unit = getattr(obj, name, None) if is_attribute(obj, name) else None
        if unit is not None and not callable(unit) and str(unit) not in _NO_UNITS:
            raise TypeRefusal(
                f"{module_of(cls)}.{cls.__name__}", f"{name} is {show(str(unit))}, which the result cannot keep",
                "numbers without a unit" if call else "numbers without a unit. Convert all values to one unit, then call"
                " numpy.asarray(x)", call,
            )
    return 0


cdef object emit(Descriptor a):
    """Export `a` as an ndarray that shares its memory. The base of the ndarray keeps `a` alive."""
    if not host_readable(a) or a.flags_ & PACKED:
        check_memory(a, False)
        check_elements(a)
    host_ready(a)
    return array_over(a, get_dtype(a))


cdef object find_source(Descriptor a):
    """Return the ndarray that `a` was imported from, or None if `a` differs from it.

    A read-only ndarray is not returned, because NumPy permits making a view of writable memory writable again.
    """
    if not cnp.PyArray_CheckExact(a.base_) or not a.flags_ & WRITEABLE:
        return None
    cdef cnp.ndarray array = <cnp.ndarray> a.base_
    cdef int k, nd = cnp.PyArray_NDIM(array)
    if nd != a.nd_ or cnp.PyArray_DATA(array) != a.data_ or <PyObject*> cnp.PyArray_DESCR(array) != <PyObject*> a.dtype_:
        return None
    if cnp.PyArray_FLAGS(array) & (cnp.NPY_ARRAY_WRITEABLE | WARN_ON_WRITE) != cnp.NPY_ARRAY_WRITEABLE:
        return None
    for k in range(nd):
        if cnp.PyArray_DIMS(array)[k] != a.shape_[k] or cnp.PyArray_STRIDES(array)[k] != a.byte_strides_[k]:
            return None
    host_ready(a)
    return array


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that the host cannot read."""
    if not host_readable(a):
        raise Refusal("numpy", f"the memory is on {device_name(a)}, which the host cannot read", call="arrayhub.to_host(x)")
    return 0


cdef int check_elements(Descriptor a) except -1:
    """Raise Refusal for packed elements, and TypeError for other element types that NumPy does not have."""
    if a.flags_ & PACKED:
        raise Refusal("numpy", PACKED_ELEMENTS)
    get_dtype(a)
    return 0


# Address of empty arrays. For a null pointer NumPy would allocate memory and make the array writeable.
cdef char[16] _NOTHING


cdef object array_over(Descriptor a, object dtype):
    """Create an ndarray that shares the memory of `a`, with its layout, and keeps `a` alive."""
    return array_at(a, dtype, a.nd_, a.shape_, a.byte_strides_, a.data_, a)


cdef object array_at(Descriptor a, object dtype, int nd, Py_ssize_t* shape, Py_ssize_t* strides, char* data,
                     object owner):
    """Create an ndarray with the access of `a` at an address in its memory. The ndarray keeps `owner` alive."""
    Py_INCREF(dtype)     # PyArray_NewFromDescr steals this reference
    cdef cnp.ndarray array = PyArray_NewFromDescr(
        cnp.ndarray, dtype, nd, shape, strides, data if data != NULL else _NOTHING,
        cnp.NPY_ARRAY_WRITEABLE if a.flags_ & WRITEABLE else 0, None,
    )
    Py_INCREF(owner)     # PyArray_SetBaseObject steals this reference
    PyArray_SetBaseObject(array, owner)
    return array


cdef object emit_raw(Descriptor a):
    """Export `a` as an ndarray of opaque items (dtype void), which NumPy copies as bytes.

    Packed elements are exported as a flat array of bytes.
    """
    if a.flags_ & PACKED:
        return emit_run(a, a.data_, a.nbytes, a)
    # np.dtype((np.void, n)) would call Python code, in which NumPy discards a KeyboardInterrupt.
    return array_over(a, np.dtype(f"V{a.itemsize_}"))


cdef cnp.dtype _UINT8 = np.dtype(np.uint8)


cdef object emit_run(Descriptor a, char* data, Py_ssize_t nbytes, object owner):
    """Export the `nbytes` bytes at `data`, a part of `a`, as a flat ndarray of ``uint8`` that keeps `owner` alive."""
    return array_at(a, _UINT8, 1, &nbytes, NULL, data if nbytes else NULL, owner)


cdef object emit_array(Descriptor a, object dtype, object copy):
    """Implement ``__array__``: return the result of `emit`, converted by NumPy if requested.

    NumPy propagates the TypeError for memory that the host cannot read. Without ``__array__``, NumPy would discard the error of
    the buffer protocol, and create a zero-dimensional array that contains the object.
    """
    if not host_readable(a):
        raise TypeError(
            unreadable("numpy", device_name(a), call="call arrayhub.to_host(x), or arrayhub.as_numpy(x, copy=True)")
        )
    return np.array(emit(a), dtype=dtype, copy=copy)


# ------------------------------------------------------------------------------------- for libraries and the engines


def ndarray(Descriptor array):
    """Return host-readable memory as an ndarray that keeps `array` alive. Raise BufferError for other memory."""
    return emit(for_host_library(array, "numpy", 0))


def addresses(Descriptor array):
    """Return an ndarray with the addresses and strides of `array`, to compare addresses. The elements must not be read."""
    return emit_raw(array)


def raw(Descriptor array):
    """Return host-readable memory as an ndarray of opaque items, for copies that do not interpret the elements.

    Packed elements are returned as a flat array of bytes.
    """
    return emit_raw(as_host(array))
