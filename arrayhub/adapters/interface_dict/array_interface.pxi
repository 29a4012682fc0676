"""Import ``__array_interface__`` of any version, and export version 3. Import and export ``__array_struct__``.

Source of the rules: "The array interface protocol" in NumPy's documentation.
"""

from cpython.bytearray cimport PyByteArray_CheckExact
from cpython.buffer cimport PyBUF_SIMPLE, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_INCREF
from cpython.type cimport PyType_Check
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.exceptions cimport drop_reference
from arrayhub._core.descriptor cimport (
    ALIGNED,
    C_CONTIGUOUS,
    COPIED,
    EXTERNAL,
    F_CONTIGUOUS,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    describe_release,
    extent,
    get_dtype,
    host_readable,
    kDLCPU,
    new_array,
    new_block,
    seal,
    set_dtype,
    set_type,
    shape_tuple,
    stride_tuple,
)
from arrayhub._core.runtime cimport host_ready, device_name
from arrayhub.adapters cimport buffer
from arrayhub.adapters.table cimport ARRAY_INTERFACE, ARRAY_STRUCT

from gc import get_referents

import numpy

from arrayhub._core.errors import PACKED_ELEMENTS, TOO_LARGE, unreadable


cdef extern from "Python.h":
    const int INT_MAX
    Py_ssize_t Py_REFCNT(PyObject* obj) noexcept

# NumPy's PyArrayInterface
cdef struct ArrayStruct:
    int two                   # always 2, to validate the struct
    int nd
    char typekind
    int itemsize              # bytes
    int flags
    intptr_t* shape           # elements
    intptr_t* strides         # bytes
    void* data
    PyObject* descr           # only with HAS_DESCR

# Flags whose values differ between NumPy and ArrayFlags. The flags for C order, F order, alignment and native byte order have
# the same values in both.
cdef enum:
    STRUCT_WRITEABLE = 0x400
    STRUCT_HAS_DESCR = 0x800

# The producer's struct is copied, because code that runs later may change or free the original.
cdef struct StructCopy:
    ArrayStruct fields                      # its shape and strides point to the arrays below
    intptr_t shape[layout.MAX_NDIM]
    intptr_t strides[layout.MAX_NDIM]

# An exported capsule contains the struct and the array that owns shape, strides and data.
cdef struct OwnedStruct:
    ArrayStruct fields
    PyObject* owner


# -------------------------------------------------------------------------------------------------- import of the dict


cdef Descriptor parse_array_interface(object obj, object stream):
    """Import the memory that ``obj.__array_interface__`` describes. Return None if `obj` does not have the attribute.

    The protocol describes host memory, so `stream` is not used.

    Raises
    ------
    InterfaceError
        A key is missing, its value is invalid or has the wrong type, or the elements are Python objects.
    BufferError
        The object in ``data`` cannot export its buffer.
    """
    if PyType_Check(obj):      # the attribute of a class describes its instances, not the class
        return None
    return parse_array_interface_as(obj, own_dtype(obj))


cdef Descriptor parse_array_interface_as(object obj, object dtype):
    """Import an interface dict. Unless `dtype` is None, it replaces the element type of the dict."""
    interface = getattr(obj, "__array_interface__", None)
    if interface is None:
        return None
    cdef Entries entries
    cdef Descriptor a
    cdef bint copied
    begin(&entries)
    try:
        read(interface, ARRAY_INTERFACE, &entries)
        copied = is_temporary(obj, <PyObject*> interface, entries.values[<int> DATA])
        a = described_array_interface(obj, &entries, dtype)
    finally:
        release_values(&entries)
    if copied:
        a.flags_ |= COPIED
    return a


cdef bint is_temporary(object obj, PyObject* interface, PyObject* data) except -1:
    """Return whether `data` is a bytes object or bytearray that exists only for this access.

    ``PIL.Image`` copies its pixels to a new ``bytes`` object on each access. Only the dict refers to this object, and only the
    caller refers to the dict. Python shares ``bytes`` objects of length 1, so their reference count is not conclusive. An
    object of length 1 is considered temporary if `obj` does not refer to it.
    """
    if data == NULL or not (PyBytes_CheckExact(<object> data) or PyByteArray_CheckExact(<object> data)):
        return False
    if Py_REFCNT(interface) > 1:
        return False
    if PyBytes_CheckExact(<object> data) and PyBytes_GET_SIZE(<object> data) <= 1:
        return PyBytes_GET_SIZE(<object> data) == 1 and not refers_to(obj, <object> data)
    return Py_REFCNT(data) <= 2      # the dict and the entries each have one reference


cdef bint refers_to(object obj, object held) except -1:
    """Return whether an object or the dict of its attributes refers to `held`."""
    for other in get_referents(obj):
        if other is held or type(other) is dict and any([value is held for value in list((<dict> other).values())]):
            return True
    return False


cdef Descriptor described_array_interface(object obj, const Entries* entries, object dtype):
    """Return the array that the entries of an interface dict describe."""
    cdef Descriptor a = new_from_dict(entries, ARRAY_INTERFACE, dtype)
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    a.device_ = DLDevice(kDLCPU, 0)
    if not isinstance(data, tuple):
        fill_from_buffer(a, obj if data is None else data, 0 if offset is None else offset)
        return a
    set_pointer(a, data)
    if offset is not None and integer(offset, ARRAY_INTERFACE, "offset", -1) != 0:
        raise dict_error(ARRAY_INTERFACE, "offset", offset, "None or 0 if data is an address. Add the offset to the address")
    a.base_ = obj
    seal(a)
    return a


cdef object own_dtype(object obj):
    """Return the dtype of an ndarray whose elements or fields have types of ml_dtypes, else None.

    NumPy's dict represents these types by the wrong type strings, such as ``<V2`` for bfloat16 and ``<f1`` for float8_e5m2.
    """
    if not issubclass(type(obj), numpy.ndarray):      # not isinstance, because __class__ may be overridden
        return None
    dtype = obj.dtype
    return dtype if dtypes.has_user_types(dtype) and dtypes.by_dtype(dtype) != NULL else None


cdef int fill_from_buffer(Descriptor a, object exporter, object offset) except -1:
    """Set the memory of `a` to the buffer of `exporter`. Element zero is `offset` bytes after the start of the buffer."""
    cdef Py_ssize_t low, high
    cdef Py_ssize_t start = integer(offset, ARRAY_INTERFACE, "offset", -1)
    if not PyObject_CheckBuffer(exporter):
        raise dict_error(ARRAY_INTERFACE, "data", exporter,
                         "a pair (address, read-only), an object that supports the buffer protocol, or None if the"
                         " producer itself supports it")
    cdef MemoryBlock block = buffer.hold(exporter, PyBUF_SIMPLE)
    cdef Py_buffer* view = <Py_buffer*> block.resource
    if start < 0 or start > view.len:
        raise dict_error(ARRAY_INTERFACE, "offset", start, f"0 to {view.len}, the size of the buffer in bytes")
    a.block_ = block
    a.base_ = exporter
    a.data_ = <char*> view.buf + start
    a.flags_ |= buffer.access_of(buffer.first_exporter(exporter), view)
    seal(a)
    extent(a, &low, &high)
    if start + low < 0 or high > view.len - start:
        raise dict_error(
            ARRAY_INTERFACE, "shape", shape_tuple(a),
            f"a shape that needs at most the {view.len} bytes of the buffer, not {start + high}" if high > view.len - start
            else f"a shape within the buffer; with these strides, the array starts {-low - start} bytes before the buffer",
        )
    return 0


# ------------------------------------------------------------------------------------------------- export of the dict


cdef object emit_array_interface(Descriptor a):
    """Return the value of ``__array_interface__``.

    ``strides`` is None for C order, as in NumPy's dict, because every consumer supports None.

    Raises
    ------
    AttributeError
        The host cannot read the memory, or the protocol cannot represent the elements.
    """
    check_host(a, "__array_interface__")
    if a.typenum_ >= dtypes.FIRST_OWN_TYPENUM:
        raise emit_error(a, "__array_interface__")
    dtype = get_dtype(a)
    cdef object descr = [("", dtype.str)] if dtype.names is None else record_descr(a, dtype)
    host_ready(a)
    return {
        "shape": shape_tuple(a),
        "typestr": dtype.str,
        "data": (<size_t> a.data_, not a.flags_ & WRITEABLE),
        "strides": None if a.flags_ & C_CONTIGUOUS else stride_tuple(a),
        "descr": descr,
        "version": 3,
    }


cdef list record_descr(Descriptor a, object dtype):
    """Return the fields of a structured dtype, with padding as unnamed void, as the protocol requires.

    NumPy would read the padding as fields. However, NumPy tries the buffer protocol first, and reads the dict only if the
    dtype does not have a PEP 3118 format. Raise AttributeError for a dtype with padding and without a format, so that NumPy
    calls ``__array__``, which returns the correct dtype.
    """
    from arrayhub.adapters.format_writer import write_format

    if dtypes.has_user_types(dtype):
        raise emit_error(a, "__array_interface__")
    try:
        descr = dtype.descr
        if numpy.dtype(descr) != dtype:
            write_format(dtype)
    except (ValueError, BufferError):      # fields overlap or are out of order, or the dtype does not have a format
        raise emit_error(a, "__array_interface__") from None
    return descr


cdef int check_host(Descriptor a, str attribute) except -1:
    """Raise AttributeError unless the host can read the memory and every element has its own bytes."""
    if not host_readable(a):
        raise AttributeError(unreadable(attribute, device_name(a)))
    if a.flags_ & PACKED:
        raise AttributeError(f"{attribute}: {PACKED_ELEMENTS}")
    return 0


cdef object emit_error(Descriptor a, str attribute):
    """Return the AttributeError for elements that a protocol cannot represent."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    try:
        kind, call = repr(get_dtype(a)), "arrayhub.as_numpy(x)"
    except TypeError:      # neither NumPy nor ml_dtypes has the type
        kind, call = row.name.decode(), "arrayhub.asarray(x).view('uint8') for the bytes"
    return AttributeError(f"{attribute}: the protocol cannot represent elements of {kind}; call {call}")


# ------------------------------------------------------------------------------------------------ import of the struct


cdef Descriptor parse_struct(object obj, object stream):
    """Import the memory that ``obj.__array_struct__`` describes. Return None if `obj` does not have the attribute.

    Without HAS_DESCR, the struct contains neither the units of times nor the fields of records. Times and records without
    HAS_DESCR, and types of ml_dtypes, are imported through ``__array_interface__`` if the producer has it.

    Raises
    ------
    InterfaceError
        The attribute is not an unnamed capsule, the struct is invalid, or the elements are Python objects.
    """
    if PyType_Check(obj):
        return None
    cdef MemoryBlock block = capsule_of(obj)
    if block is None:
        return None
    if not PyCapsule_CheckExact(<object> block.resource) or not PyCapsule_IsValid(<object> block.resource, NULL):
        raise dict_error(ARRAY_STRUCT, "the attribute", <object> block.resource, "a capsule without a name")
    cdef StructCopy copied
    copy_struct(&copied, <ArrayStruct*> PyCapsule_GetPointer(<object> block.resource, NULL))
    cdef ArrayStruct* seen = &copied.fields
    descr = <object> seen.descr if seen.flags & STRUCT_HAS_DESCR and seen.descr != NULL else None
    if seen.typekind in (c"V", c"M", c"m") and descr is None or own_dtype(obj) is not None:
        a = parse_array_interface(obj, stream)
        if a is not None:
            return a
    return describe(obj, block, seen, descr)


cdef int copy_struct(StructCopy* target, const ArrayStruct* source) except -1:
    """Validate and copy a struct. Code that runs later could change the original."""
    check_struct(source)
    target.fields = source[0]
    if source.shape != NULL:
        memcpy(target.shape, source.shape, source.nd * sizeof(intptr_t))
        target.fields.shape = target.shape
    if source.strides != NULL:
        memcpy(target.strides, source.strides, source.nd * sizeof(intptr_t))
        target.fields.strides = target.strides
    return 0


cdef int check_struct(const ArrayStruct* seen) except -1:
    """Validate the fields that are needed to read the struct."""
    if seen.two != 2:
        raise dict_error(ARRAY_STRUCT, "two", seen.two, "2, which every PyArrayInterface has")
    if seen.nd < 0 or seen.nd > layout.MAX_NDIM:
        raise dict_error(ARRAY_STRUCT, "nd", seen.nd, f"0 to {layout.MAX_NDIM}")
    if seen.nd > 0 and seen.shape == NULL:
        raise dict_error(ARRAY_STRUCT, "shape", None, f"a pointer to {seen.nd} lengths")
    if seen.itemsize < 0:
        raise dict_error(ARRAY_STRUCT, "itemsize", seen.itemsize, "a size in bytes")
    return 0


cdef void _drop_capsule(void* capsule) noexcept:
    drop_reference(<PyObject*> capsule)


cdef PyObject* _capsule_itself(void* capsule) noexcept:
    return <PyObject*> capsule


describe_release(_drop_capsule, b"Py_DECREF", _capsule_itself)


cdef MemoryBlock capsule_of(object obj):
    """Return a block that keeps `obj` and its capsule alive. Return None if `obj` does not have ``__array_struct__``.

    The block keeps both alive, because either may own the memory. A pending exception survives the release of the capsule.
    """
    capsule = getattr(obj, "__array_struct__", None)
    if capsule is None:
        return None
    cdef MemoryBlock block = new_block(EXTERNAL, obj, NULL, -1, DLDevice(kDLCPU, 0))
    Py_INCREF(capsule)
    block.resource = <void*> capsule
    block.release = _drop_capsule
    return block


cdef Descriptor describe(object obj, MemoryBlock block, const ArrayStruct* seen, object descr):
    """Return the array that a struct describes. `block` holds the struct, and `descr` describes the fields or is None."""
    cdef Py_ssize_t low, high
    cdef Descriptor a = new_array(seen.nd)
    a.protocol_ = ARRAY_STRUCT
    a.device_ = DLDevice(kDLCPU, 0)
    a.base_ = obj
    a.data_ = <char*> seen.data
    if seen.flags & STRUCT_WRITEABLE:
        a.flags_ |= WRITEABLE
    if seen.nd > 0:       # without dimensions the pointers may be NULL, which is invalid for memcpy
        memcpy(a.shape_, seen.shape, seen.nd * sizeof(Py_ssize_t))
    set_struct_type(a, seen, descr)
    set_struct_strides(a, seen)
    seal(a)
    extent(a, &low, &high)
    block.address_ = a.data_ + low
    block.nbytes_ = high - low
    a.block_ = block
    return a


cdef int set_struct_strides(Descriptor a, const ArrayStruct* seen) except -1:
    """Set the byte strides. Without strides, the array is contiguous in the order that the flags specify."""
    cdef bint fortran = seen.flags & F_CONTIGUOUS and not seen.flags & C_CONTIGUOUS
    if seen.strides != NULL and seen.nd > 0:
        memcpy(a.byte_strides_, seen.strides, seen.nd * sizeof(Py_ssize_t))
    elif layout.fill_strides(a.nd_, a.shape_, a.itemsize_, fortran, a.byte_strides_):
        raise dict_error(ARRAY_STRUCT, "shape", shape_tuple(a), TOO_LARGE)
    return 0


cdef int set_struct_type(Descriptor a, const ArrayStruct* seen, object descr) except -1:
    """Set the element type from kind, size and byte order, or from the description for V, M and m."""
    cdef bint native = seen.flags & NOTSWAPPED or seen.itemsize == 1
    cdef const dtypes.ElementType* row = dtypes.by_typestr(seen.typekind, seen.itemsize)
    cdef int kind = seen.typekind & 0xFF
    cdef int unit = 4 if kind == c"U" else 1       # for U, NumPy's type strings count characters, and `itemsize` bytes
    if row != NULL and native:
        return set_type(a, row)
    if kind in (c"V", c"M", c"m") and descr is not None:
        dtype = dtype_from_descr(descr, ARRAY_STRUCT)
        if dtype.itemsize != seen.itemsize:
            raise dict_error(ARRAY_STRUCT, "descr", descr, f"fields that add up to {seen.itemsize} bytes")
        return set_dtype(a, dtype)
    if row == NULL and (kind not in (c"S", c"U", c"V") or seen.itemsize % unit != 0):
        raise dict_error(
            ARRAY_STRUCT, "typekind and itemsize", (chr(kind), seen.itemsize),
            "a kind of b i u f c S U V with a size that NumPy supports. M and m need a unit: use __array_interface__",
        )
    dtype = numpy.dtype(f"{chr(kind)}{seen.itemsize // unit}")
    return set_dtype(a, dtype if native or kind == c"V" else dtype.newbyteorder("S"))


# ----------------------------------------------------------------------------------------------- export of the struct


cdef object emit_struct(Descriptor a):
    """Return the capsule of ``__array_struct__``, which keeps the array alive.

    Only numbers and byte strings are exported. NumPy prefers the struct to the dict, and this function does not export
    ``descr``, so NumPy would lose the units of times and the fields of records. For U, NumPy would interpret the size in
    bytes as a number of characters and read beyond the memory.

    Raises
    ------
    AttributeError
        The host cannot read the memory, or the struct cannot represent the elements.
    """
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    check_host(a, "__array_struct__")
    if row.kind not in (c"b", c"i", c"u", c"f", c"c", c"S") or a.itemsize_ > INT_MAX:
        raise emit_error(a, "__array_struct__")
    host_ready(a)
    cdef OwnedStruct* exported = <OwnedStruct*> PyMem_RawMalloc(sizeof(OwnedStruct))
    if exported == NULL:
        raise MemoryError
    exported.fields = ArrayStruct(
        two=2, nd=a.nd_, typekind=row.kind, itemsize=<int> a.itemsize_,
        flags=a.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS | ALIGNED | NOTSWAPPED),
        shape=<intptr_t*> a.shape_, strides=<intptr_t*> a.byte_strides_, data=a.data_, descr=NULL,
    )
    if a.flags_ & WRITEABLE:
        exported.fields.flags |= STRUCT_WRITEABLE
    exported.owner = <PyObject*> a
    try:
        capsule = PyCapsule_New(exported, NULL, _free_struct)
    except BaseException:
        PyMem_RawFree(exported)
        raise
    Py_INCREF(a)
    return capsule


cdef void _free_struct(object capsule) noexcept:
    """Release the struct in a capsule, and its reference to the array."""
    cdef OwnedStruct* exported = <OwnedStruct*> PyCapsule_GetPointer(capsule, NULL)
    drop_reference(exported.owner)
    PyMem_RawFree(exported)
