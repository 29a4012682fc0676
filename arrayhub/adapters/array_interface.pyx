"""``__array_interface__`` version 3 and ``__array_struct__``: parse and emit. Source of every rule: NumPy's "The array
interface protocol"."""

from cpython.bytearray cimport PyByteArray_CheckExact
from cpython.buffer cimport PyBUF_SIMPLE, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.type cimport PyType_Check
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    ALIGNED,
    C_CONTIGUOUS,
    COPIED,
    F_CONTIGUOUS,
    NOTSWAPPED,
    PACKED,
    WRITEABLE,
    Descriptor,
    extent,
    get_dtype,
    host_readable,
    new_array,
    seal,
    set_dtype,
    set_type,
    shape_tuple,
    stride_tuple,
)
from arrayhub._core.device cimport DLDevice, kDLCPU
from arrayhub._core.memory cimport EXTERNAL, MemoryBlock, describe_release, new_block
from arrayhub._core.runtime cimport host_ready, place_of
from arrayhub.adapters cimport buffer
from arrayhub.adapters.interface_dict cimport new_from_dict, set_pointer
from arrayhub.adapters.interface_keys cimport DATA, OFFSET, Entries, begin, dict_error, entry, let_go, read, whole
from arrayhub.adapters.table cimport ARRAY_INTERFACE, ARRAY_STRUCT
from arrayhub.adapters.typestr cimport dtype_from_descr

from gc import get_referents

import numpy

from arrayhub._core.errors import PACKED_ELEMENTS, unreadable


cdef extern from "Python.h":
    const int INT_MAX
    Py_ssize_t Py_REFCNT(PyObject* obj) noexcept

# NumPy's PyArrayInterface, as its documentation lays it out.
cdef struct ArrayStruct:
    int two                   # 2, a sanity check
    int nd
    char typekind
    int itemsize              # bytes
    int flags
    intptr_t* shape           # elements
    intptr_t* strides         # bytes
    void* data
    PyObject* descr           # only with HAS_DESCR

# C, F, aligned, native order: the struct's numbers are those of ArrayFlags. These two are its own.
cdef enum:
    STRUCT_WRITEABLE = 0x400
    STRUCT_HAS_DESCR = 0x800

# A struct as it was when it was looked at: whatever runs afterwards may change the producer's, and free it.
cdef struct Look:
    ArrayStruct said                        # its shape and strides are those below
    intptr_t shape[layout.MAX_NDIM]
    intptr_t strides[layout.MAX_NDIM]

# What a capsule of ours carries: the struct, and the array that shape, strides and data belong to.
cdef struct OwnedStruct:
    ArrayStruct seen
    PyObject* owner


# -------------------------------------------------------------------------------------------------- the dict, inwards


cdef Descriptor parse(object obj, object stream):
    """An array on the memory that ``obj.__array_interface__`` describes, or None where `obj` has no such attribute.

    The memory is host memory, so `stream` has no meaning here and is not read.

    Raises
    ------
    InterfaceError
        A key is missing, of the wrong type, or says what cannot be.
    TypeError
        The elements are Python objects.
    BufferError
        ``data`` is an object with a buffer, and it refuses.
    """
    if PyType_Check(obj):      # the attribute of a class is meant for its instances
        return None
    return parse_as(obj, own_dtype(obj))


cdef Descriptor parse_as(object obj, object dtype):
    """The same with elements of a dtype that is known; None: of the type that the dict says."""
    interface = getattr(obj, "__array_interface__", None)
    if interface is None:
        return None
    cdef Entries entries
    cdef Descriptor a
    cdef bint copied
    begin(&entries)
    try:
        read(interface, ARRAY_INTERFACE, &entries)
        copied = is_made_for_a_look(obj, <PyObject*> interface, entries.values[<int> DATA])
        a = described(obj, &entries, dtype)
    finally:
        let_go(&entries)
    if copied:
        a.flags_ |= COPIED
    return a


cdef bint is_made_for_a_look(object obj, PyObject* interface, PyObject* data) except -1:
    """Whether `data` are bytes that nobody has but a dict which nobody has but the caller, as an image of PIL's gives them.

    Python has one object for each ``bytes`` of one byte, so that its references say nothing: those are the producer's own
    where it refers to the object itself. Of no bytes there is no copy.
    """
    if data == NULL or not (PyBytes_CheckExact(<object> data) or PyByteArray_CheckExact(<object> data)):
        return False
    if Py_REFCNT(interface) > 1:
        return False
    if PyBytes_CheckExact(<object> data) and PyBytes_GET_SIZE(<object> data) <= 1:
        return PyBytes_GET_SIZE(<object> data) == 1 and not refers_to(obj, <object> data)
    return Py_REFCNT(data) <= 2      # the dict's reference and that of the entries


cdef bint refers_to(object obj, object held) except -1:
    """Whether an object, or the dict of its attributes, has `held`."""
    for found in get_referents(obj):
        if found is held or type(found) is dict and any([value is held for value in list((<dict> found).values())]):
            return True
    return False


cdef Descriptor described(object obj, const Entries* entries, object dtype):
    """The array that the entries of an interface dict describe."""
    cdef Descriptor a = new_from_dict(entries, ARRAY_INTERFACE, dtype)
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    a.device_ = DLDevice(kDLCPU, 0)
    if not isinstance(data, tuple):
        fill_from_buffer(a, obj if data is None else data, 0 if offset is None else offset)
        return a
    set_pointer(a, data)
    if offset is not None and whole(offset, ARRAY_INTERFACE, "offset", -1) != 0:
        raise dict_error(ARRAY_INTERFACE, "offset", offset, "none or 0 where data is an address: add it to the address")
    a.base_ = obj
    seal(a)
    return a


cdef object own_dtype(object obj):
    """The dtype of an ndarray of one of ml_dtypes' types, or of records with such fields, else None: its dict says ``<V2``,
    or ``<f1`` for a float8."""
    if not isinstance(obj, numpy.ndarray):
        return None
    dtype = obj.dtype
    return dtype if dtypes.has_user_types(dtype) and dtypes.by_dtype(dtype) != NULL else None


cdef int fill_from_buffer(Descriptor a, object exporter, object offset) except -1:
    """Lay the array over the buffer of `exporter`, which is held; `offset` is where element zero starts, in bytes."""
    cdef Py_ssize_t low, high
    cdef Py_ssize_t start = whole(offset, ARRAY_INTERFACE, "offset", -1)
    if not PyObject_CheckBuffer(exporter):
        raise dict_error(ARRAY_INTERFACE, "data", exporter,
                         "a pair (address, read-only), an object with a buffer, or nothing where the producer has one")
    cdef MemoryBlock block = buffer.hold(exporter, PyBUF_SIMPLE)
    cdef Py_buffer* view = <Py_buffer*> block.resource
    if start < 0 or start > view.len:
        raise dict_error(ARRAY_INTERFACE, "offset", start, f"0 to the {view.len} bytes of the buffer")
    a.block_ = block
    a.base_ = exporter
    a.data_ = <char*> view.buf + start
    a.flags_ |= buffer.access_of(buffer.first_exporter(exporter), view)
    seal(a)
    extent(a, &low, &high)
    if start + low < 0 or high > view.len - start:
        raise dict_error(
            ARRAY_INTERFACE, "shape", shape_tuple(a),
            f"what fits the buffer: its {view.len} bytes end before byte {start + high}" if high > view.len - start
            else f"what fits the buffer: with these strides it starts {-low - start} bytes before it",
        )
    return 0


# ------------------------------------------------------------------------------------------------- the dict, outwards


cdef object emit(Descriptor a):
    """The dict that ``__array_interface__`` gives.

    ``strides`` is None for C order, as in NumPy's own dict: that is the form which every reader understands.

    Raises
    ------
    AttributeError
        The host cannot read the memory, or the protocol cannot say the elements.
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
    """The fields of a record, padding as unnamed void, which is how the protocol has it.

    NumPy's reader makes fields of that padding. It asks for a buffer first, so it comes here only for a record that has
    no format: then no dict at all leads it to ``__array__``, which gives the right type.
    """
    from arrayhub.adapters.format_writer import write_format

    if dtypes.has_user_types(dtype):
        raise emit_error(a, "__array_interface__")
    try:
        descr = dtype.descr
        if numpy.dtype(descr) != dtype:
            write_format(dtype)
    except (ValueError, BufferError):      # fields that overlap or are out of order; no format
        raise emit_error(a, "__array_interface__") from None
    return descr


cdef int check_host(Descriptor a, str attribute) except -1:
    if not host_readable(a):
        raise AttributeError(unreadable(attribute, place_of(a)))
    if a.flags_ & PACKED:
        raise AttributeError(f"{attribute}: {PACKED_ELEMENTS}")
    return 0


cdef object emit_error(Descriptor a, str attribute):
    """The error where a protocol has no words for the elements."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    kind = row.name.decode() if a.dtype_ is None else repr(a.dtype_)
    return AttributeError(f"{attribute}: cannot say {kind} without losing something; call arrayhub.as_numpy(x)")


# ------------------------------------------------------------------------------------------------ the struct, inwards


cdef Descriptor parse_struct(object obj, object stream):
    """An array on the memory that ``obj.__array_struct__`` describes, or None where `obj` has no such attribute.

    The struct has no words for units, and fields only with HAS_DESCR: where it does not say them, the producer's dict
    is read instead.

    Raises
    ------
    InterfaceError
        No capsule without a name, or a struct that says what cannot be.
    TypeError
        The elements are Python objects.
    """
    if PyType_Check(obj):
        return None
    cdef MemoryBlock block = capsule_of(obj)
    if block is None:
        return None
    if not PyCapsule_CheckExact(<object> block.resource) or not PyCapsule_IsValid(<object> block.resource, NULL):
        raise dict_error(ARRAY_STRUCT, "the attribute", <object> block.resource, "a capsule without a name")
    cdef Look look
    take(&look, <ArrayStruct*> PyCapsule_GetPointer(<object> block.resource, NULL))
    cdef ArrayStruct* seen = &look.said
    descr = <object> seen.descr if seen.flags & STRUCT_HAS_DESCR and seen.descr != NULL else None
    if seen.typekind in (c"V", c"M", c"m") and descr is None or own_dtype(obj) is not None:
        a = parse(obj, stream)
        if a is not None:
            return a
    return describe(obj, block, seen, descr)


cdef int take(Look* look, const ArrayStruct* seen) except -1:
    """Look at a struct once, before anything runs that could change it."""
    check_struct(seen)
    look.said = seen[0]
    if seen.shape != NULL:
        memcpy(look.shape, seen.shape, seen.nd * sizeof(intptr_t))
        look.said.shape = look.shape
    if seen.strides != NULL:
        memcpy(look.strides, seen.strides, seen.nd * sizeof(intptr_t))
        look.said.strides = look.strides
    return 0


cdef int check_struct(const ArrayStruct* seen) except -1:
    """Refuse what must not even be read."""
    if seen.two != 2:
        raise dict_error(ARRAY_STRUCT, "two", seen.two, "2: anything else is another struct")
    if seen.nd < 0 or seen.nd > layout.MAX_NDIM:
        raise dict_error(ARRAY_STRUCT, "nd", seen.nd, f"0 to {layout.MAX_NDIM}")
    if seen.nd > 0 and seen.shape == NULL:
        raise dict_error(ARRAY_STRUCT, "shape", None, f"a pointer to {seen.nd} lengths")
    if seen.itemsize < 0:
        raise dict_error(ARRAY_STRUCT, "itemsize", seen.itemsize, "a size in bytes")
    return 0


cdef void _drop_capsule(void* capsule) noexcept:
    Py_DECREF(<object> capsule)


cdef PyObject* _capsule_itself(void* capsule) noexcept:
    return <PyObject*> capsule


describe_release(_drop_capsule, b"Py_DECREF", _capsule_itself)


cdef MemoryBlock capsule_of(object obj):
    """A block that holds `obj` and what it gave as ``__array_struct__``: the memory may belong to either. None without
    the attribute.

    Nothing else holds the capsule, so its end is the block's, which keeps an exception on its way from the producer's
    destructor.
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
    """The array of a struct that `block` holds, and of its description, None where it has none."""
    cdef Py_ssize_t low, high
    cdef Descriptor a = new_array(seen.nd)
    a.protocol_ = ARRAY_STRUCT
    a.device_ = DLDevice(kDLCPU, 0)
    a.base_ = obj
    a.data_ = <char*> seen.data
    if seen.flags & STRUCT_WRITEABLE:
        a.flags_ |= WRITEABLE
    if seen.nd > 0:       # without dimensions the pointers may be NULL, which memcpy must not get
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
    """Byte strides; none at all means compact order, and only then a flag decides which."""
    cdef bint fortran = seen.flags & F_CONTIGUOUS and not seen.flags & C_CONTIGUOUS
    if seen.strides != NULL and seen.nd > 0:
        memcpy(a.byte_strides_, seen.strides, seen.nd * sizeof(Py_ssize_t))
    elif layout.fill_strides(a.nd_, a.shape_, a.itemsize_, fortran, a.byte_strides_):
        raise dict_error(ARRAY_STRUCT, "shape", shape_tuple(a),
                         "sizes whose product in bytes stays below 2**63")
    return 0


cdef int set_struct_type(Descriptor a, const ArrayStruct* seen, object descr) except -1:
    """The element type of kind, size and byte order; for V, M and m the description where there is one."""
    cdef bint native = seen.flags & NOTSWAPPED or seen.itemsize == 1
    cdef const dtypes.ElementType* row = dtypes.by_typestr(seen.typekind, seen.itemsize)
    cdef int kind = seen.typekind & 0xFF
    cdef int unit = 4 if kind == c"U" else 1       # NumPy counts characters, the struct bytes
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
            "a kind of b i u f c S U V and a size NumPy has for it; M and m need a unit: see __array_interface__",
        )
    dtype = numpy.dtype(f"{chr(kind)}{seen.itemsize // unit}")
    return set_dtype(a, dtype if native or kind == c"V" else dtype.newbyteorder("S"))


# ----------------------------------------------------------------------------------------------- the struct, outwards


cdef object emit_struct(Descriptor a):
    """The capsule that ``__array_struct__`` gives; it keeps the array alive.

    Only for numbers and byte strings. NumPy prefers this struct to the dict, and the struct cannot say units or fields;
    for U NumPy reads the size in bytes as a number of characters, four times the memory.

    Raises
    ------
    AttributeError
        The host cannot read the memory, or the struct cannot say the elements.
    """
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    check_host(a, "__array_struct__")
    if row.kind not in (c"b", c"i", c"u", c"f", c"c", c"S") or a.itemsize_ > INT_MAX:
        raise emit_error(a, "__array_struct__")
    host_ready(a)
    cdef OwnedStruct* said = <OwnedStruct*> PyMem_RawMalloc(sizeof(OwnedStruct))
    if said == NULL:
        raise MemoryError
    said.seen = ArrayStruct(
        two=2, nd=a.nd_, typekind=row.kind, itemsize=<int> a.itemsize_,
        flags=a.flags_ & (C_CONTIGUOUS | F_CONTIGUOUS | ALIGNED | NOTSWAPPED),
        shape=<intptr_t*> a.shape_, strides=<intptr_t*> a.byte_strides_, data=a.data_, descr=NULL,
    )
    if a.flags_ & WRITEABLE:
        said.seen.flags |= STRUCT_WRITEABLE
    said.owner = <PyObject*> a
    try:
        capsule = PyCapsule_New(said, NULL, _free_struct)
    except BaseException:
        PyMem_RawFree(said)
        raise
    Py_INCREF(a)
    return capsule


cdef void _free_struct(object capsule) noexcept:
    """Give back what a capsule carries; Python calls it once."""
    cdef OwnedStruct* said = <OwnedStruct*> PyCapsule_GetPointer(capsule, NULL)
    Py_DECREF(<object> said.owner)
    PyMem_RawFree(said)
