"""dpctl and dpnp: Memory objects, usm_ndarray and dpnp.ndarray, read without their interface dict where that is safe.

The dict of a usm_ndarray takes two microseconds, most of it waiting for the queue. Two other ways say the same in a few
nanoseconds. Releases that export C functions for it (dpctl up to 0.21) are asked through them, if their signatures are
those known here. Else the C struct is read, if the type has the size known here. Both hold for the exact type alone, and
only after one array of known layout has been read and compared (`reads_truly`). Otherwise the dict is the way in.
"""

import sys

from cpython.object cimport PyObject

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    CONSTRUCTED,
    COPIED,
    IMMUTABLE,
    OTHER_CONTEXT,
    PACKED,
    WRITEABLE,
    Descriptor,
    extent,
    get_dtype,
    layout_for_copy,
    new_array,
    same_layout,
    seal,
    set_type,
    size_of,
)
from arrayhub._core.allocate cimport compact
from arrayhub._core.memory cimport MemoryBlock
from arrayhub._core.cpython.atomics cimport found
from arrayhub.adapters cimport sycl_usm
from arrayhub.adapters.table cimport SYCL_DICT
from arrayhub.runtimes cimport sycl

from arrayhub._core.errors import PASSES_ON, interface_error, module_of, needed, not_there_error

cdef struct UsmNdarray:              # dpnp 0.20 and dpctl 0.17 to 0.21: tensor/_usmarray.pxd
    Py_ssize_t refcount
    void* type
    void* vtable
    char* data
    int nd
    Py_ssize_t* shape
    Py_ssize_t* strides              # elements; NULL where contiguous, in C or in Fortran order
    int typenum
    int flags                        # C 1, F 2, writable 4: the same numbers as ours
    PyObject* base
    PyObject* array_namespace
    PyObject* weak_references

# The C functions of releases that export them; none runs Python code or fails.
cdef struct ArrayFunctions:
    char* (*data)(PyObject*) noexcept
    int (*nd)(PyObject*) noexcept
    Py_ssize_t* (*shape)(PyObject*) noexcept
    Py_ssize_t* (*strides)(PyObject*) noexcept
    int (*typenum)(PyObject*) noexcept
    int (*flags)(PyObject*) noexcept
    object (*base)(PyObject*)

# Their names and results, in the order of the struct; each takes the array.
_FUNCTIONS = (
    ("UsmNDArray_GetData", "char *"),
    ("UsmNDArray_GetNDim", "int "),
    ("UsmNDArray_GetShape", "Py_ssize_t *"),
    ("UsmNDArray_GetStrides", "Py_ssize_t *"),
    ("UsmNDArray_GetTypenum", "int "),
    ("UsmNDArray_GetFlags", "int "),
    ("UsmNDArray_GetUSMData", "PyObject *"),
)
_PARAMETERS = "(struct PyUSMArrayObject *)"

cdef enum How:
    BY_DICT
    BY_STRUCT
    BY_FUNCTIONS


cdef class Reader:
    """How the arrays of one release's usm_ndarray are read."""
    cdef How how
    cdef ArrayFunctions call


# The two that there can be, once their first array has come.
cdef dict _readers = {}
cdef tuple _MODULES = ("dpnp.tensor._usmarray", "dpctl.tensor._usmarray")


cdef Descriptor parse_memory(object obj, object stream):
    """A ``dpctl.memory.MemoryUSM*`` as bytes: one dimension of uint8, writable.

    Its interface dict says True where other producers mean read-only, so it is not asked.
    """
    if not sycl.is_memory(obj):      # a class that only bears the name
        return None
    cdef MemoryBlock block = sycl.block_of_memory(obj)
    cdef Descriptor a = new_array(1)
    a.protocol_ = SYCL_DICT
    a.data_ = block.address_
    a.shape_[0] = block.nbytes_
    a.byte_strides_[0] = 1
    a.flags_ |= WRITEABLE
    set_type(a, dtypes.by_typestr(c"u", 1))
    sycl.place(a, block, sycl.memory_usm_type(obj))
    seal(a)
    return a


cdef Descriptor parse_dpnp(object obj, object stream):
    """A ``dpnp.ndarray``, which is a usm_ndarray in a Python wrapper."""
    inner = getattr(obj, "_array_obj", None)      # private, so a later release may have none
    return parse_by_dict(obj, stream) if inner is None else parse_usm_ndarray(inner, stream)


cdef Descriptor parse_usm_ndarray(object obj, object stream):
    """A ``usm_ndarray``: by C functions or its struct where these are known, else by its interface dict."""
    cdef UsmNdarray fields
    cdef Descriptor a = None
    cdef Reader reader = <Reader> found(_readers, type(obj))
    if reader is None:
        reader = reader_of(type(obj))
    if reader.how == BY_STRUCT:
        a = describe(<UsmNdarray*> <PyObject*> obj)
    elif reader.how == BY_FUNCTIONS:
        _base = call_all(reader, obj, &fields)      # held while `fields` borrows it
        a = describe(&fields)
    return parse_by_dict(obj, stream) if a is None else a


cdef Descriptor parse_by_dict(object obj, object stream):
    """Any of these by ``__sycl_usm_array_interface__``; the block is the whole allocation, which the dict does not say.

    The two are asked one after the other, so the array must be seen to lie in what the second answer names.
    """
    cdef Descriptor a = sycl_usm.parse(obj, stream)
    array = getattr(obj, "_array_obj", obj)      # what a dpnp.ndarray wraps
    memory = getattr(array, "usm_data", array)
    if a is not None and sycl.is_memory(memory) and lies_in(a, memory):
        sycl.place(a, sycl.block_of_memory(memory), a.usm_type_)
    return a


cdef bint lies_in(Descriptor a, object memory) except -1:
    """Whether all bytes of a complete array are those of a Memory object."""
    cdef Py_ssize_t low, high
    cdef char* start = sycl.memory_pointer(memory)
    extent(a, &low, &high)
    return high == low or (a.data_ + low >= start and a.data_ + high <= start + sycl.memory_nbytes(memory))


cdef Descriptor describe(UsmNdarray* u):
    """An array from its fields, or None where its owner or its type number is none that is known here."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(u.typenum)
    if row == NULL or row.typestr == NULL or u.base == NULL or not sycl.is_memory(<object> u.base):
        return None
    cdef object memory = <object> u.base
    cdef int usm_type = sycl.memory_usm_type(memory)     # also refuses what is no Memory object
    cdef Descriptor a = new_array(u.nd)
    cdef int k
    a.protocol_ = SYCL_DICT
    a.data_ = u.data
    a.flags_ |= u.flags & WRITEABLE
    set_type(a, row)
    for k in range(u.nd):
        a.shape_[k] = u.shape[k]
    if u.strides == NULL:
        layout.fill_strides(u.nd, a.shape_, a.itemsize_, not u.flags & 1, a.byte_strides_)
    else:
        for k in range(u.nd):
            a.byte_strides_[k] = u.strides[k] * a.itemsize_
    sycl.place_in(a, memory, usm_type)
    seal(a)
    if not lies_in(a, memory):
        raise interface_error("usm_ndarray", "shape and strides", (a.shape, a.byte_strides),
                              f"a view inside the {sycl.memory_nbytes(memory)} bytes of its memory")
    return a


cdef Reader reader_of(object cls):
    """Find out how a type's arrays are read, and remember it of the libraries' own two."""
    cdef Reader reader = Reader()      # by the dict
    name = module_of(cls)
    module = sys.modules.get(name) if name in _MODULES else None
    if cls is not getattr(module, "usm_ndarray", None) or not sycl.available():
        return reader
    try_out(reader, cls, module)
    _readers[cls] = reader      # now, when nobody changes it any more; not where an interrupt came in between
    return reader


cdef int try_out(Reader reader, object cls, object module) except -1:
    """Find out on an array which of the quicker ways reads it truly."""
    cdef UsmNdarray fields
    try:
        array = cls((3, 7), dtype="<i4", buffer="device")[1:, ::2]
    except PASSES_ON:
        raise
    except Exception:      # no default device to try it on
        return 0
    if find_functions(reader, module):
        _base = call_all(reader, array, &fields)
        if reads_truly(&fields, array):
            reader.how = BY_FUNCTIONS
    if reader.how == BY_DICT and cls.__basicsize__ == sizeof(UsmNdarray) \
            and reads_truly(<UsmNdarray*> <PyObject*> array, array):
        reader.how = BY_STRUCT
    return 0


cdef bint find_functions(Reader reader, object module) except -1:
    """Whether a release has the C functions, each with the signature known here."""
    cdef void** slots = <void**> &reader.call
    cdef int k
    try:
        for k, (name, result) in enumerate(_FUNCTIONS):
            slots[k] = sycl.declared(module, name, result + _PARAMETERS)
    except (AttributeError, ImportError):
        return False
    return True


cdef object call_all(Reader reader, object array, UsmNdarray* u):
    """Fill in what `describe` reads by calling the functions; the base, to be held as long as the fields are used."""
    cdef PyObject* obj = <PyObject*> array
    base = reader.call.base(obj)
    u.base = <PyObject*> base
    u.data = reader.call.data(obj)
    u.nd = reader.call.nd(obj)
    u.shape = reader.call.shape(obj)
    u.strides = reader.call.strides(obj)
    u.typenum = reader.call.typenum(obj)
    u.flags = reader.call.flags(obj)
    return base


cdef bint reads_truly(UsmNdarray* u, object array) except -1:
    """Whether the fields of the array of known layout are what they should be, each compared before the next is trusted."""
    memory = array.usm_data
    return (
        u.nd == 2
        and u.typenum == get_typenum(array.dtype)
        and u.flags == WRITEABLE
        and u.base == <PyObject*> memory
        and u.data == sycl.memory_pointer(memory) + 7 * 4
        and u.shape != NULL and u.shape[0] == 2 and u.shape[1] == 4
        and u.strides != NULL and u.strides[0] == 7 and u.strides[1] == 2
    )


cdef int get_typenum(object dtype) except -1:
    return dtype.num


cdef object emit_attribute(Descriptor a):
    """The attribute ``__usm_ndarray__``, which dpnp asks first: it is there only for USM that dpnp's type can say."""
    try:
        return emit(a)
    except (BufferError, ImportError, TypeError) as error:
        raise AttributeError(f"__usm_ndarray__: {error}") from error


cdef object emit(Descriptor a):
    """A ``dpnp.tensor.usm_ndarray`` on the memory of `a`, and on its queue.

    Raises
    ------
    BufferError
        The memory is not USM, or the type or the strides are none that usm_ndarray has.
    """
    if a.usm_type_ == 0:
        raise BufferError("dpnp: the memory is not SYCL USM; call arrayhub.to_device(x, 'oneapi:0'), or pass copy=True")
    if dtypes.by_typenum(a.typenum_).typestr == NULL:
        raise BufferError(f"dpnp: usm_ndarray has no element type {get_dtype(a)!r}; convert the array first")
    if a.strides_ == NULL:
        raise BufferError(
            f"dpnp: usm_ndarray steps by whole elements, and byte strides {a.byte_strides} are no multiples of"
            f" {a.itemsize}; call x.copy()"
        )
    usm_ndarray = needed("dpnp.tensor", "for usm_ndarray").tensor.usm_ndarray
    memory = sycl.memory_on_queue(a)
    try:
        if size_of(a) == 0:
            array = usm_ndarray(a.shape, dtype=get_dtype(a), buffer=memory)
        else:
            array = usm_ndarray(a.shape, dtype=get_dtype(a), buffer=memory, strides=a.strides, offset=a.offset)
    except (TypeError, ValueError) as error:
        raise BufferError(f"dpnp: usm_ndarray refuses this array ({error}); {advice(get_dtype(a))}") from error
    if not a.flags_ & WRITEABLE:
        array.flags.writable = False
    return array


cdef str advice(dtype):
    """What helps with an element type that is NumPy's and not dpnp's, which nothing here converts on a device."""
    if not dtype.isnative:
        call = "native()"
    elif dtype.char in "gG":     # long double
        call = 'astype("f8")' if dtype.char == "g" else 'astype("c16")'
    else:
        return "convert it first"
    return f"take arrayhub.to_host(x).{call}, and pass copy=True"


cdef int see_dpnp() except -1:
    """ImportError where dpnp is not installed: then nothing else that could be said of memory would help."""
    from importlib.util import find_spec

    if find_spec("dpnp") is None:
        raise not_there_error("dpnp", "for its arrays")
    return 0


cdef object emit_dpnp(Descriptor a):
    """A ``dpnp.ndarray`` on the memory of `a`; see `emit`. ImportError where dpnp is not installed."""
    if a.usm_type_ == 0:
        see_dpnp()
    array = emit(a)
    import dpnp

    create = getattr(dpnp.ndarray, "_create_from_usm_ndarray", None)     # private; the public way takes longer
    return dpnp.asarray(array, copy=False) if create is None else create(array)


# ----------------------------------------------------------------------------------------- for the transfer engine


def on_memory(Descriptor model, memory, order):
    """Return a writable array with the type and shape of `model` on fresh USM.

    Parameters
    ----------
    model : USMArray
        Its memory is not looked at.
    memory : dpctl.memory.MemoryUSM*
        At least ``model.nbytes`` bytes.
    order : {"C", "F", "K"}
        How the elements are laid out; "K" keeps the order of the dimensions in `model`.
    """
    cdef Descriptor fresh = layout_for_copy(model)
    cdef MemoryBlock block = sycl.block_of_memory(memory)
    block.nbytes_ = model.nbytes
    fresh.protocol_ = CONSTRUCTED
    fresh.producer_ = None
    fresh.stream_ = NULL
    fresh.data_ = block.address_
    fresh.flags_ |= WRITEABLE | COPIED
    fresh.flags_ &= ~(IMMUTABLE | OTHER_CONTEXT)
    fresh.block_ = None
    sycl.place(fresh, block, sycl.memory_usm_type(memory))
    if not model.flags_ & PACKED:
        compact(fresh, model, order)
        seal(fresh)
    return fresh


# Types of dpnp by how many bytes their elements have: as good as any other of that size where elements only move.
cdef dict _WORDS = {1: b"u", 2: b"u", 4: b"u", 8: b"u", 16: b"c"}


def can_pack(Descriptor array):
    """Return whether dpnp is loaded and has elements of that size."""
    return "dpnp.tensor" in sys.modules and array.itemsize_ in _WORDS and array.strides_ != NULL


def pack(Descriptor array, Descriptor target):
    """Have dpnp's kernel copy `array` into `target`, of the same shape and on the same queue; both must be ready.

    The copy may still be under way on return.
    """
    emit(as_words(target))[...] = emit(as_words(array))


cdef Descriptor as_words(Descriptor array):
    cdef bytes kind = _WORDS.get(array.itemsize_)
    if kind is None or array.strides_ == NULL:
        raise BufferError(f"dpnp: no type of elements of {array.itemsize_} bytes; see can_pack")
    cdef Descriptor words = same_layout(array)
    words.dtype_ = None
    set_type(words, dtypes.by_typestr(kind[0], array.itemsize_))
    return words
