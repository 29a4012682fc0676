"""Import and export through the interface dicts of host, CUDA and SYCL memory, and ``__array_struct__``.

Each section uses only the sections above it: reading of keys, type strings, the keys that all three dicts contain, and then one
section per protocol.
"""

import operator
import re
import sys
from gc import get_referents

import numpy

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_SIMPLE, PyObject_CheckBuffer
from cpython.bytearray cimport PyByteArray_CheckExact
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Check, PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.type cimport PyType_Check
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from arrayhub._core cimport dtypes, layout
from arrayhub._core.cpython.atomics cimport find, found
from arrayhub._core.cpython.exceptions cimport drop_reference
from arrayhub._core.descriptor cimport (
    ALIGNED,
    C_CONTIGUOUS,
    COPIED,
    F_CONTIGUOUS,
    NOTSWAPPED,
    PACKED,
    UNRESOLVED_ID,
    USM_DEVICE,
    WRITEABLE,
    Descriptor,
    DLDevice,
    MemoryBlock,
    bare_array,
    block_of,
    digit,
    extent,
    get_dtype,
    hold_object,
    host_readable,
    is_bool,
    is_digit,
    kDLCPU,
    kDLCUDA,
    kDLOneAPI,
    new_array,
    reserve,
    seal,
    set_dtype,
    set_type,
    shape_tuple,
    size_of,
    stride_tuple,
)
from arrayhub._core.runtime cimport device_name, host_ready
from arrayhub.adapters cimport buffer
from arrayhub.adapters.table cimport ARRAY_INTERFACE, ARRAY_STRUCT, CUDA_DICT, PROTOCOL_NUMBERS, SYCL_DICT
from arrayhub.adapters.type_cache cimport SILENT_ON_DEFAULT, SYCL_IS_READONLY, record_of, record_of_type
from arrayhub.runtimes cimport sycl
from arrayhub.runtimes.cuda cimport LEGACY_STREAM, is_cuda, locate, safe_stream
from arrayhub.runtimes.sycl cimport NAME

from arrayhub._core.descriptor import IN_MESSAGES
from arrayhub._core.errors import DLPACK_CALL, PACKED_ELEMENTS, TOO_LARGE, interface_error, unreadable

# ------------------------------------------------------------------------------------------------------------------------- keys

# Reading of interface dicts, and the errors that name a key.
#
# `_KEYS` has one row for each of ``__array_interface__``, ``__cuda_array_interface__`` and ``__sycl_usm_array_interface__``. A
# dict that contains only these keys is iterated once, without lookups or Python calls.

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) noexcept
    Py_ssize_t PyDict_GET_SIZE(object mapping) noexcept

# Each protocol has eight keys. All three protocols share the first five. `read_entries` is fastest for dicts in this order.
cdef enum Key:
    DATA
    SHAPE
    STRIDES
    TYPESTR
    VERSION
    MASK
    SYCLOBJ = MASK            # the SYCL dict does not have a mask
    OFFSET
    STREAM = OFFSET           # the CUDA dict does not have an offset
    DESCR                     # "typedescr" in the SYCL dict
    KEYS                      # number of keys

# References to the values of one dict, held from `read` to `release_values`, because ``__index__`` of a value may change the
# dict.
cdef struct Entries:
    PyObject* values[<int> KEYS]

# Names of the keys in the order of `Key`, interned like string literals, so that keys can be compared by identity.
cdef dict _KEYS = {
    ARRAY_INTERFACE: ["data", "shape", "strides", "typestr", "version", "mask", "offset", "descr"],
    CUDA_DICT: ["data", "shape", "strides", "typestr", "version", "mask", "stream", "descr"],
    SYCL_DICT: ["data", "shape", "strides", "typestr", "version", "syclobj", "offset", "typedescr"],
}
cdef PyObject* _names[<int> PROTOCOL_NUMBERS][<int> KEYS]
cdef int _protocol, _key
cdef list _row
for _protocol, _row in _KEYS.items():
    for _key in range(<int> KEYS):
        _row[_key] = sys.intern(_row[_key])
        _names[_protocol][_key] = <PyObject*> _row[_key]


cdef inline Py_ssize_t integer(object value, int protocol, str key, int position) except? -1:
    """Convert a value to an integer with ``__index__``. Reject floats, bools, strings and integers outside int64.

    For the message, `position` is the index of the value in a tuple, or -1 if the value is not in a tuple.
    """
    return digit(value) if is_digit(value) else checked_integer(value, protocol, key, position)


cdef inline object entry(const Entries* entries, Key key):
    """Return the value of a key, or None if the key is missing. No protocol distinguishes a missing key from None."""
    cdef PyObject* value = entries.values[<int> key]
    return None if value == NULL else <object> value


cdef inline void release_values(Entries* entries) noexcept:
    """Release the values. Must be called exactly once, also after an error."""
    cdef int k
    for k in range(<int> KEYS):
        Py_XDECREF(entries.values[k])


cdef int read(object interface, int protocol, Entries* entries) except -1:
    """Read the values of an interface dict. `entry` returns the value of one key.

    All entries must be NULL before. Call `release_values` afterwards, even if `read` raises.

    Raises
    ------
    InterfaceError
        The attribute is not a dict.
    """
    cdef bint strange
    if not PyDict_Check(interface):
        raise dict_error(protocol, "the attribute", interface, "a dict")
    with cython.critical_section(interface):     # another thread may change the dict
        strange = read_entries(<dict> interface, _names[protocol], entries)
    if strange:
        look_up(<dict> interface, _names[protocol], entries)
    return 0


cdef bint read_entries(dict interface, PyObject** names, Entries* entries) noexcept:
    """Store new references to the values whose keys are identical to a string in `names`.

    Return True if the dict has any other key, which may be equal to a name without being the same object.
    """
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t position = 0
    cdef int _tried, row, k = 0
    cdef bint strange = False
    for _ in range(PyDict_GET_SIZE(interface)):     # saves the last call of PyDict_Next, which would return 0
        if not PyDict_Next(interface, &position, &key, &value):
            break
        for _tried in range(<int> KEYS):
            row = k
            k = k + 1 if k + 1 < KEYS else 0     # continue after the last match, because many dicts are in this order
            if key == names[row]:
                Py_INCREF(<object> value)
                entries.values[row] = value
                break
        else:
            strange = True
    return strange


cdef int look_up(dict interface, PyObject** names, Entries* entries) except -1:
    """Look up, by equality, the keys that `read_entries` did not find."""
    cdef int k
    for k in range(<int> KEYS):
        if entries.values[k] == NULL:
            entries.values[k] = find(interface, <object> names[k])
    return 0


cdef Py_ssize_t checked_integer(object value, int protocol, str key, int position) except? -1:
    """Implement `integer` for values other than an int with one internal digit."""
    cdef int overflow = 0
    cdef Py_ssize_t number
    if PyLong_CheckExact(value):      # an int with more than one internal digit, usually an address
        number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0:
            return number
    if position >= 0:
        key = f"{key}[{position}]"
    if is_bool(value):
        raise dict_error(protocol, key, value, "an integer, not a bool")
    try:
        exact = operator.index(value)
    except TypeError:
        raise dict_error(protocol, key, value, "an integer, or an object with __index__") from None
    number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(exact, &overflow)
    if overflow != 0:
        raise dict_error(protocol, key, value, "an integer from -2**63 to 2**63 - 1")
    return number


cdef object dict_error(int protocol, str key, object value, str accepted):
    """Return the error for an invalid value of a key.

    If `key` starts with ``descr``, replace this word by the protocol's name of the key.
    """
    if key.startswith("descr") and protocol in _KEYS:
        key = key.replace("descr", _KEYS[protocol][<int> KEYS - 1], 1)
    return interface_error(IN_MESSAGES[protocol], key, value, accepted)


# ---------------------------------------------------------------------------------------------------------------------- typestr

# Element types of interface dicts: type strings such as '<f8', and descriptions of fields.
#
# Numbers in native byte order are looked up in the table of element types, without a Python call. Other type strings are
# validated, parsed by NumPy and cached.

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    const char* PyUnicode_DATA(object text) noexcept

# The units are listed because numpy.dtype('m8[ns/0]') divides by zero, which ends the process. Compiled on first use.
_TYPESTR = r"[<>|=]?(?:([biufcSUV])([0-9]{1,10})|([mM])8(?:\[[0-9]{0,9}(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)"
_ACCEPTED_TYPESTR = (
    "a byte order '<', '>' or '|', a kind of b i u f c m M S U V, and a size that NumPy supports, as in '<f8', '<M8[ns]'"
)
_ACCEPTED_DESCR = "a list of (name, type) or (name, type, shape); a type is a type string or a list of fields"

# Caches of parsed type strings and records. Their size is limited, because producers can use any number of different types.
cdef dict _described = {}
cdef dict _records = {}
cdef enum:
    REMEMBERED_TYPESTRS = 256
    MAX_NESTING = 32          # levels of records
    MAX_FIELDS = 4096         # sum over all levels; lists that contain the next level twice would have 2**MAX_NESTING

cdef char _FOREIGN_ORDER = c">" if sys.byteorder == "little" else c"<"


cdef int set_typestr(Descriptor a, const Entries* entries, int protocol) except -1:
    """Set the element type from a type string and, for V, from the description of the fields."""
    cdef object typestr = entry(entries, TYPESTR)
    cdef const dtypes.ElementType* row
    if PyUnicode_Check(typestr) and PyUnicode_IS_ASCII(typestr):
        row = number_type(PyUnicode_DATA(typestr), PyUnicode_GET_LENGTH(typestr))
        if row != NULL:
            return set_type(a, row)
    dtype = found(_described, typestr) if type(typestr) is str else None
    if dtype is None:
        dtype = dtype_from_typestr(typestr, protocol, "typestr")
    if (<cnp.dtype> dtype).type_num == cnp.NPY_VOID:
        descr = entry(entries, DESCR)
        if descr is not None:
            dtype = fields_from_descr(descr, dtype, protocol)
    return set_dtype(a, dtype)


cdef const dtypes.ElementType* number_type(const char* text, Py_ssize_t length) noexcept:
    """Return the table row for the type string of a number in native byte order, such as '<f8', else NULL.

    '|' and a missing byte order mean native order, as in NumPy. dpctl writes '|f8'.
    """
    cdef Py_ssize_t size
    cdef bint foreign = False
    if length > 0 and text[0] in (c"<", c">", c"|", c"="):
        foreign = text[0] == _FOREIGN_ORDER
        text += 1
        length -= 1
    if length < 2 or length > 3 or not c"1" <= text[1] <= c"9":
        return NULL
    size = text[1] - c"0"
    if length == 3:
        if not c"0" <= text[2] <= c"9":
            return NULL
        size = 10 * size + text[2] - c"0"
    if foreign and size > 1:
        return NULL
    return dtypes.by_typestr(text[0], size)


cdef object dtype_from_typestr(object typestr, int protocol, str key):
    """Return the NumPy dtype of a type string, and add it to the cache `_described`.

    The syntax is validated first, because `numpy.dtype` accepts more than the protocol permits ('f8,f8', 'float',
    'StringDType()'), including types whose values are outside of the memory of the array.
    """
    cdef object dtype
    match = re.fullmatch(_TYPESTR, typestr, re.ASCII) if isinstance(typestr, str) else None
    if match is None:
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR)
    try:
        dtype = numpy.dtype(match[0])
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR) from None
    kind, size = match[1] or match[3], int(match[2] or 8) * (4 if match[1] == "U" else 1)
    if dtype.kind != kind or dtype.itemsize != size:    # for example, NumPy reads 'c1' as a string
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR)
    if len(_described) >= REMEMBERED_TYPESTRS:
        _described.clear()
    _described[match[0]] = dtype
    return dtype


cdef object fields_from_descr(object descr, object void, int protocol):
    """Return the structured dtype for `descr`, which must have the size of the dtype `void`.

    The last result is cached for each size.
    """
    cdef tuple last = found(_records, void)
    if last is not None and type(descr) is list and last[0] == descr:
        return last[1]
    dtype = dtype_from_descr(descr, protocol)
    if dtype.itemsize != void.itemsize:
        raise dict_error(protocol, "descr", descr, f"fields that add up to the {void.itemsize} bytes of typestr, not"
                         f" {dtype.itemsize}")
    import copy

    if len(_records) >= REMEMBERED_TYPESTRS:
        _records.clear()
    _records[void] = (copy.deepcopy(descr), dtype)    # a copy, because the producer may change the list
    return dtype


cdef object dtype_from_descr(object descr, int protocol):
    """Return the NumPy dtype of a description: a list of (name, type) or (name, type, shape).

    Unnamed void is padding, which `numpy.dtype` would convert to fields, but not `descr_to_dtype`. A single entry without a
    name or a shape is a plain type, not a record.
    """
    if isinstance(descr, list) and len(descr) == 1:
        single = descr[0]
        if isinstance(single, tuple) and len(single) == 2 and single[0] == "" and isinstance(single[1], str):
            return dtype_from_typestr(single[1], protocol, "descr")
    cdef int fields = 0
    checked = check_fields(descr, protocol, 0, &fields)
    try:
        return numpy.lib.format.descr_to_dtype(checked)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise dict_error(protocol, "descr", descr, _ACCEPTED_DESCR) from error


cdef list check_fields(object descr, int protocol, int depth, int* fields):
    """Return a copy of a list of fields with valid types, and with NumPy's default names for fields other than padding.

    `fields` counts the fields of all nested records.
    """
    cdef list checked = []
    if not isinstance(descr, list) or depth > MAX_NESTING:
        raise dict_error(protocol, "descr", descr, _ACCEPTED_DESCR)
    for k, field in enumerate(list(descr)):
        if not isinstance(field, tuple) or not 2 <= len(field) <= 3:
            raise dict_error(protocol, "descr", descr, _ACCEPTED_DESCR)
        fields[0] += 1
        if fields[0] > MAX_FIELDS:
            raise dict_error(protocol, "descr", descr, f"at most {MAX_FIELDS} fields, including those of nested records")
        name, spec, is_void = field[0], field[1], False
        if isinstance(spec, str):
            is_void = dtype_from_typestr(spec, protocol, "descr, type of a field").kind == "V"
        else:
            spec = check_fields(spec, protocol, depth + 1, fields)
        shape = ()
        if len(field) == 3:
            if not isinstance(field[2], tuple):
                raise dict_error(protocol, "descr, shape of a field", field[2], "a tuple of integers")
            shape = tuple([integer(length, protocol, "descr, shape of a field", k) for k, length in enumerate(field[2])])
        checked.append((f"f{k}" if name == "" and not is_void else name, spec, shape))
    return checked


# ------------------------------------------------------------------------------------------------------------------ shared keys

# The keys that the three interface dicts (host, CUDA, SYCL) share: shape, type, strides, version and data.
#
# This section also handles the key ``mask``, which the SYCL dict does not have. `_DIALECTS` contains the differences between
# the three protocols. The section of each protocol handles its other keys.

cdef struct Dialect:
    bint in_elements          # whether strides count elements, not bytes
    bint has_mask             # whether the protocol has the key `mask`
    bint descr_must_agree     # whether `descr` is validated for every type; if not, it is read only for type V
    bint needs_version        # whether a dict without a version is rejected
    Py_ssize_t oldest, newest  # accepted versions

cdef enum:
    ANY_LATER = 1 << 30       # "be careful not to use this to invalidate objects exposing future versions" (NumPy)

cdef Dialect _DIALECTS[<int> PROTOCOL_NUMBERS]
# in_elements, has_mask, descr_must_agree, needs_version, oldest, newest
_DIALECTS[<int> ARRAY_INTERFACE] = Dialect(False, True, False, False, 1, ANY_LATER)
_DIALECTS[<int> CUDA_DICT] = Dialect(False, True, False, True, 0, ANY_LATER)
_DIALECTS[<int> SYCL_DICT] = Dialect(True, False, True, True, 1, 1)


cdef Descriptor new_from_dict(const Entries* entries, int protocol, object dtype):
    """Create an array with the shape, byte strides and type of an interface dict.

    The caller must then set pointer, owner, device and access, and call `seal`, which validates all fields together.

    Parameters
    ----------
    entries : const Entries*
        The values that `read` stored.
    protocol : int
        ARRAY_INTERFACE, CUDA_DICT or SYCL_DICT. Strides are in elements for SYCL_DICT, otherwise in bytes.
    dtype : numpy.dtype or None
        The element type, if the caller knows it. If it is None, ``typestr`` determines the type, and ``descr`` determines
        the fields of the type V.

    Raises
    ------
    InterfaceError
        A key is missing, or its value is invalid or has the wrong type.
    """
    cdef const Dialect* dialect = &_DIALECTS[protocol]
    check_version(entry(entries, VERSION), protocol, dialect)
    if dialect.has_mask:
        mask = entry(entries, MASK)
        if mask is not None:
            raise dict_error(protocol, "mask", mask, "None, because arrays do not have masks. Fill the masked elements first")
    lengths = entry(entries, SHAPE)
    if not isinstance(lengths, tuple):
        raise dict_error(protocol, "shape", lengths, "a tuple of integers, lengths in elements")
    if len(<tuple> lengths) > layout.MAX_NDIM:
        raise dict_error(protocol, "shape", lengths, f"at most {layout.MAX_NDIM} dimensions, as in NumPy")
    cdef Descriptor a = new_array(<int> len(<tuple> lengths))
    a.protocol_ = protocol
    cdef int k
    for k in range(a.nd_):
        a.shape_[k] = integer((<tuple> lengths)[k], protocol, "shape", k)
    if dtype is None:
        set_typestr(a, entries, protocol)
    else:
        set_dtype(a, dtype)
    descr = entry(entries, DESCR) if dialect.descr_must_agree else None
    if descr is not None and dtype_from_descr(descr, protocol) != get_dtype(a):
        raise dict_error(protocol, "typedescr", descr, f"the type of typestr: [('', '{get_dtype(a).str}')]")
    set_strides(a, entry(entries, STRIDES), protocol, dialect)
    return a


# Returns the array that the entries of the dict `interface` of `obj` describe. Unless `dtype` is None, it replaces the element
# type of the dict.
ctypedef Descriptor (*Describe)(object obj, object interface, const Entries* entries, object dtype)


cdef Descriptor parse_dict(object interface, int protocol, Describe describe_entries, object obj, object dtype):
    """Read an interface dict once, and return the array that `describe_entries` makes of its values."""
    cdef Entries entries
    memset(&entries, 0, sizeof(Entries))
    try:
        read(interface, protocol, &entries)
        return describe_entries(obj, interface, &entries, dtype)
    finally:
        release_values(&entries)


cdef int set_pointer(Descriptor a, object data) except -1:
    """Read ``data`` as the pair (address, read-only)."""
    if not isinstance(data, tuple) or len(<tuple> data) != 2:
        raise dict_error(a.protocol_, "data", data, "a pair (address as an integer, read-only as a bool)")
    cdef Py_ssize_t address = integer((<tuple> data)[0], a.protocol_, "data[0]", -1)
    if address < 0:
        raise dict_error(a.protocol_, "data[0]", address, "an address from 0 to 2**63 - 1")
    a.data_ = <char*> address
    read_only = (<tuple> data)[1]
    if type(read_only) is not bool and not isinstance(read_only, numpy.bool_) \
            and not (type(read_only) is int and read_only in (0, 1)):      # 0 and 1 are written by C extensions
        raise dict_error(a.protocol_, "data[1]", read_only, "True (read-only) or False")
    if not read_only:
        a.flags_ |= WRITEABLE
    return 0


cdef int check_version(object version, int protocol, const Dialect* dialect) except -1:
    cdef Py_ssize_t number
    cdef str accepted
    if version is None and not dialect.needs_version:
        return 0
    if version is not None:
        number = integer(version, protocol, "version", -1)
        if dialect.oldest <= number <= dialect.newest:
            return 0
    accepted = f"{dialect.oldest}" + (" or later" if dialect.newest == ANY_LATER else "")
    raise dict_error(protocol, "version", version, accepted)


cdef int set_strides(Descriptor a, object strides, int protocol, const Dialect* dialect) except -1:
    """Set the byte strides from strides in the protocol's unit. None means C order."""
    cdef Py_ssize_t unit = a.itemsize_ if dialect.in_elements else 1
    cdef bint overflow = False
    cdef int k
    if strides is None:
        if layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_):
            raise dict_error(protocol, "shape", shape_tuple(a), TOO_LARGE)
        return 0
    if not isinstance(strides, tuple) or len(<tuple> strides) != a.nd_:
        raise dict_error(protocol, "strides", strides, f"None, or a tuple of {a.nd_} integers in units of"
                         f" {'elements' if dialect.in_elements else 'bytes'}")
    for k in range(a.nd_):
        overflow |= layout.checked_mul(integer((<tuple> strides)[k], protocol, "strides", k), unit, &a.byte_strides_[k])
    if overflow:
        raise dict_error(protocol, "strides", strides, "strides of less than 2**63 bytes")
    return 0


# -------------------------------------------------------------------------------------------------------------- array interface

# Import ``__array_interface__`` of any version, and export version 3. Import and export ``__array_struct__``.
#
# Source of the rules: "The array interface protocol" in NumPy's documentation.

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
    return parse_dict(interface, ARRAY_INTERFACE, describe_host_entries, obj, dtype)


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


cdef Descriptor describe_host_entries(object obj, object interface, const Entries* entries, object dtype):
    cdef bint copied = is_temporary(obj, <PyObject*> interface, entries.values[<int> DATA])
    cdef Descriptor a = new_from_dict(entries, ARRAY_INTERFACE, dtype)
    if copied:
        a.flags_ |= COPIED
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    a.device_ = DLDevice(kDLCPU, 0)
    if not isinstance(data, tuple):
        fill_from_buffer(a, obj, data, 0 if offset is None else integer(offset, ARRAY_INTERFACE, "offset", -1))
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


cdef MemoryBlock fill_from_buffer(Descriptor a, object obj, object data, Py_ssize_t start):
    """Set the memory of `a` to the buffer of `data`, or of `obj` if ``data`` is missing. Return the block of the buffer.

    Element zero is `start` bytes after the start of the buffer.
    """
    cdef Py_ssize_t low = 0, high = 0
    exporter = obj if data is None else data
    if not PyObject_CheckBuffer(exporter):
        raise dict_error(a.protocol_, "data", data,
                         "a pair (address, read-only), an object that supports the buffer protocol, or None if the"
                         " producer itself supports it")
    cdef MemoryBlock block = buffer.hold(exporter, PyBUF_SIMPLE)
    cdef Py_buffer* view = <Py_buffer*> block.resource
    cdef bint inside = 0 <= start <= view.len
    if inside:
        a.data_ = <char*> view.buf + start
        seal(a)
        extent(a, &low, &high)
    if not inside or start + low < 0 or high > view.len - start:
        raise dict_error(a.protocol_, "(shape, strides, offset)", (shape_tuple(a), stride_tuple(a), start),
                         f"a view within the {view.len} bytes of the buffer")
    a.block_ = block
    a.base_ = exporter
    a.flags_ |= buffer.access_of(exporter, view)
    return block


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
    from arrayhub.adapters.format_language import write_format

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

    Without HAS_DESCR, the struct contains neither the units of times nor the fields of records, and NumPy clears all flags
    of a dtype with fields. Such arrays, and those of ml_dtypes, are imported by ``__array_interface__`` if possible.

    Raises
    ------
    InterfaceError
        The attribute is not an unnamed capsule, the struct is invalid, or the elements are Python objects.
    """
    if PyType_Check(obj):
        return None
    cdef Descriptor a = holder_of_capsule(obj)
    if a is None:
        return None
    if not PyCapsule_CheckExact(<object> a.resource) or not PyCapsule_IsValid(<object> a.resource, NULL):
        raise dict_error(ARRAY_STRUCT, "the attribute", <object> a.resource, "a capsule without a name")
    cdef StructCopy copied
    copy_struct(&copied, <ArrayStruct*> PyCapsule_GetPointer(<object> a.resource, NULL))
    cdef ArrayStruct* seen = &copied.fields
    descr = <object> seen.descr if seen.flags & STRUCT_HAS_DESCR and seen.descr != NULL else None
    if seen.flags == 0 or seen.typekind in (c"V", c"M", c"m") and descr is None or own_dtype(obj) is not None:
        by_dict = parse_array_interface(obj, stream)
        if by_dict is not None:
            return by_dict
    describe(a, seen, descr)
    return a


cdef int copy_struct(StructCopy* target, const ArrayStruct* source) except -1:
    """Validate the fields that are needed to read a struct, and copy it. Code that runs later could change the original."""
    if source.two != 2:
        raise dict_error(ARRAY_STRUCT, "two", source.two, "2, which every PyArrayInterface has")
    if source.nd < 0 or source.nd > layout.MAX_NDIM:
        raise dict_error(ARRAY_STRUCT, "nd", source.nd, f"0 to {layout.MAX_NDIM}")
    if source.nd > 0 and source.shape == NULL:
        raise dict_error(ARRAY_STRUCT, "shape", None, f"a pointer to {source.nd} lengths")
    if source.itemsize < 0:
        raise dict_error(ARRAY_STRUCT, "itemsize", source.itemsize, "a size in bytes")
    target.fields = source[0]
    if source.shape != NULL:
        memcpy(target.shape, source.shape, source.nd * sizeof(intptr_t))
        target.fields.shape = target.shape
    if source.strides != NULL:
        memcpy(target.strides, source.strides, source.nd * sizeof(intptr_t))
        target.fields.strides = target.strides
    return 0


cdef Descriptor holder_of_capsule(object obj):
    """Return a bare array that keeps `obj` and its capsule alive, because either may own the memory.

    Return None if `obj` does not have ``__array_struct__``. No variable refers to the capsule, so that a pending exception
    survives its release.
    """
    capsule = getattr(obj, "__array_struct__", None)
    if capsule is None:
        return None
    cdef Descriptor a = bare_array()
    a.base_ = obj
    hold_object(a, capsule)
    return a


cdef int describe(Descriptor a, const ArrayStruct* seen, object descr) except -1:
    """Fill a bare array from a struct. `descr` describes the fields or is None."""
    reserve(a, seen.nd)
    a.protocol_ = ARRAY_STRUCT
    a.device_ = DLDevice(kDLCPU, 0)
    a.data_ = <char*> seen.data
    if seen.flags & STRUCT_WRITEABLE:
        a.flags_ |= WRITEABLE
    if seen.nd > 0:       # without dimensions the pointers may be NULL, which is invalid for memcpy
        memcpy(a.shape_, seen.shape, seen.nd * sizeof(Py_ssize_t))
    set_struct_type(a, seen, descr)
    set_struct_strides(a, seen)
    return seal(a)


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


# ------------------------------------------------------------------------------------------------------------------- cuda array

# Import ``__cuda_array_interface__`` of any version, and export version 3. Source: numba's specification.
#
# The import does not require a driver or a GPU. If a driver is available, it determines the kind of memory.

cdef enum:
    EMITTED_VERSION = 3
    FIRST_WITH_STREAM = 3


cdef Descriptor parse_cuda_array(object obj, object stream):
    """Import the memory that ``obj.__cuda_array_interface__`` describes, or return None without the attribute.

    Parameters
    ----------
    obj : object
        The producer. The array keeps the producer alive. The specification requires that the producer keeps its memory and
        stream alive.
    stream : object
        Not used. The caller of this function makes `stream` wait for the producer's stream, which the dict contains.

    Raises
    ------
    InterfaceError
        A key is missing, or its value is invalid or has the wrong type.
    """
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is None:
        return None
    return parse_cuda_array_as(interface, obj, None)


cdef Descriptor parse_cuda_array_as(object interface, object obj, object dtype):
    """Import an interface dict. Unless `dtype` is None, it replaces the element type of the dict."""
    return parse_dict(interface, CUDA_DICT, describe_cuda_entries, obj, dtype)


cdef Descriptor describe_cuda_entries(object obj, object interface, const Entries* entries, object dtype):
    cdef Descriptor a = new_from_dict(entries, CUDA_DICT, dtype)
    if a.typenum_ == cnp.NPY_VOID and get_dtype(a).names is None:
        # numba's device arrays omit `descr`, without which the fields of records are unknown (numba 0.66).
        own = getattr(obj, "dtype", None)
        if isinstance(own, numpy.dtype) and own.names is not None and own.itemsize == a.itemsize_ and not own.hasobject:
            set_dtype(a, own)
    a.base_ = obj
    a.device_.device_type = kDLCUDA
    set_pointer(a, entry(entries, DATA))
    seal(a)
    locate(a)
    set_stream(a, entries, obj)
    return a


cdef int set_stream(Descriptor a, const Entries* entries, object obj) except -1:
    """Set the producer's stream. A dict from before version 3 does not contain a stream, so store the producer instead."""
    cdef Py_ssize_t handle
    if integer(entry(entries, VERSION), CUDA_DICT, "version", -1) < FIRST_WITH_STREAM:
        a.producer_ = obj
        return 0
    named = entry(entries, STREAM)
    if named is not None:
        handle = integer(named, CUDA_DICT, "stream", -1)
        if handle <= 0:
            raise dict_error(CUDA_DICT, "stream", named, "None (no pending work), 1 (legacy default stream), 2"
                             " (per-thread default stream) or the handle of a stream; 0 could mean either default stream")
        a.stream_ = <void*> <intptr_t> handle
        return 0
    cls = type(obj)      # keep a reference, because a metaclass may assign another class to the object
    if record_of_type(cls) & SILENT_ON_DEFAULT:      # for other producers, None means that no work is pending (version 3)
        a.stream_ = <void*> <intptr_t> LEGACY_STREAM
    return 0


cdef object emit_cuda_array(Descriptor a):
    """Return the dict of version 3.

    Raise AttributeError if CUDA kernels cannot access the memory, or if the dict cannot represent the element type or the
    stream, because consumers test the attribute with ``hasattr``. ``stream`` is a stream on which the memory can be read in
    stream order, or None if no work is pending.
    """
    cdef intptr_t stream
    if not is_cuda(a.device_.device_type):
        raise AttributeError("__cuda_array_interface__: CUDA kernels cannot access this memory; call"
                             " x.to_device('cuda:0'), which copies it")
    typestr, descr = type_keys(a)
    try:
        stream = safe_stream(a)
    except BufferError as error:
        raise AttributeError(f"__cuda_array_interface__: the stream cannot be exported; {error}") from error
    cdef dict keys = {
        "shape": shape_tuple(a),
        "typestr": typestr,
        "data": (<size_t> a.data_ if size_of(a) != 0 else 0, not a.flags_ & WRITEABLE),
        "strides": None if a.flags_ & C_CONTIGUOUS else stride_tuple(a),
        "version": EMITTED_VERSION,
        "stream": stream if stream != 0 else None,
    }
    if descr is not None:
        keys["descr"] = descr
    return keys


cdef tuple type_keys(Descriptor a):
    """Return typestr and descr (None without fields). Raise AttributeError if the dict cannot represent the type."""
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.kind == c"E" or a.flags_ & PACKED:
        raise AttributeError(f"__cuda_array_interface__: typestr cannot represent {row.name.decode()};"
                             f" use {DLPACK_CALL}")
    dtype = get_dtype(a)
    if dtype.names is None:
        return dtype.str, None
    if dtypes.has_user_types(dtype):
        raise AttributeError(f"__cuda_array_interface__: descr cannot represent {dtype!r}; export the fields one by one, or"
                             " view the memory as bytes")
    try:
        return dtype.str, dtype.descr
    except ValueError as error:      # overlapping fields, or fields out of order
        raise AttributeError(f"__cuda_array_interface__: descr cannot represent {dtype!r}; {error}") from None


# --------------------------------------------------------------------------------------------------------------------- sycl usm

# Import and export ``__sycl_usm_array_interface__`` version 1.
#
# Sources: dpctl's documentation of the attribute, and dpctl's page on zero-copy data exchange with SYCL USM.

cdef Descriptor parse_sycl_usm(object obj, object stream):
    """Import the USM that an object's interface dict describes. Return None if the object does not have the attribute.

    The pointer is validated before it is used: all bytes that the view reaches must be in one USM allocation of the context
    of ``syclobj``.

    Raises
    ------
    InterfaceError
        A key is missing, a value is invalid, has the wrong type or contradicts another value, or the pointer is not USM of
        this context.
    """
    interface = getattr(obj, NAME, None)
    return None if interface is None else parse_dict(interface, SYCL_DICT, describe_sycl_entries, obj, None)


cdef Descriptor describe_sycl_entries(object obj, object interface, const Entries* entries, object dtype):
    cdef Py_ssize_t distance
    cdef Descriptor a = new_from_dict(entries, SYCL_DICT, None)
    data = entry(entries, DATA)
    offset = entry(entries, OFFSET)
    if layout.checked_mul(0 if offset is None else integer(offset, SYCL_DICT, "offset", -1), a.itemsize_, &distance):
        raise dict_error(SYCL_DICT, "offset", offset, "an offset in elements, of less than 2**63 bytes")
    if a.dl_dtype_.code == dtypes.NO_DLPACK:     # a type string can name types that SYCL lacks, such as f16
        raise dict_error(SYCL_DICT, "typestr", entry(entries, TYPESTR),
                         "a bool, integer, floating-point or complex type of SYCL in native byte order, such as '|f8'")
    if data is None:      # the specification then requires the buffer of the object
        set_usm_of_buffer(a, fill_from_buffer(a, obj, None, distance), entry(entries, SYCLOBJ))
        return a
    set_pointer(a, tuple(data) if type(data) is list else data)     # oneDAL's tables use a list
    if a.data_ != NULL:
        if layout.checked_add(<Py_ssize_t> a.data_, distance, &distance):
            raise dict_error(SYCL_DICT, "offset", offset, "an offset within the address space")
        a.data_ = <char*> distance
    seal(a)
    on_pointer(a, obj, entry(entries, SYCLOBJ))
    # In dpctl's Memory classes, the second item of "data" is True for writable memory. The specification defines True as
    # read-only.
    if not a.flags_ & WRITEABLE and sycl.speaks_as_memory(obj):
        a.flags_ |= WRITEABLE
    if record_of(obj) & SYCL_IS_READONLY:
        a.flags_ &= ~WRITEABLE
    return a


cdef int on_pointer(Descriptor a, object obj, object syclobj) except -1:
    """Set the queue, the USM type and the owner of an array on a foreign pointer."""
    cdef Py_ssize_t low, high
    cdef int usm_type
    cdef char* lowest
    extent(a, &low, &high)
    lowest = a.data_ + low
    queue = sycl.queue_from(syclobj, NULL if high == low else lowest)
    if high > low:
        usm_type = checked_usm_type(lowest, high - low, queue)
    else:      # the pointer of an array without elements may be invalid; if it is USM, use its USM type
        usm_type = sycl.usm_type_of(lowest, queue) or USM_DEVICE
    sycl.set_usm(a, obj, usm_type)
    a.producer_ = queue
    return 0


cdef int checked_usm_type(char* lowest, Py_ssize_t nbytes, object queue) except -1:
    """Return the USM type of a range of bytes. Raise InterfaceError unless the range is in one allocation."""
    cdef bint inside
    cdef int usm_type = sycl.usm_type_of(lowest, queue, nbytes, &inside)
    if usm_type == 0:
        raise dict_error(
            SYCL_DICT, "data", f"{<size_t> lowest:#x}",
            "a pointer to USM of the context of syclobj. For host memory use the buffer protocol",
        )
    if not inside:
        raise dict_error(
            SYCL_DICT, "(shape, strides, offset)", f"{nbytes} bytes from {<size_t> lowest:#x}",
            "a view within one USM allocation",
        )
    return usm_type


cdef int set_usm_of_buffer(Descriptor a, MemoryBlock block, object syclobj) except -1:
    """Set the device of an array on a buffer.

    The memory is host-readable USM if the buffer is USM of the context of ``syclobj``, else ordinary host memory.
    """
    if syclobj is not None and block.nbytes_ > 0:
        queue = sycl.queue_from(syclobj, block.address_)
        a.usm_type_ = sycl.usm_type_of(block.address_, queue)
    if a.usm_type_ != 0:
        a.producer_ = queue
        block.device_ = DLDevice(kDLOneAPI, UNRESOLVED_ID)
    a.device_ = block.device_
    return 0


cdef object emit_sycl_usm(Descriptor a):
    """Return the interface dict of `a`, after waiting for the work submitted to its queue.

    As in dpctl, ``data`` is the start of the memory block, and ``offset`` is the distance to element zero. If this distance is
    not a multiple of the item size, ``data`` is the address of element zero, and ``offset`` is 0.

    Raises
    ------
    AttributeError
        The memory is not USM, or the interface cannot represent the type or the strides.
    """
    if not a.usm_type_:
        raise AttributeError(f"{NAME}: the memory is not SYCL USM; call arrayhub.to_device(x, 'oneapi:0'), which copies it")
    cdef const dtypes.ElementType* row = dtypes.by_typenum(a.typenum_)
    if row.typestr == NULL or a.strides_ == NULL or a.dl_dtype_.code == dtypes.NO_DLPACK:
        raise AttributeError(
            f"{NAME}: the interface cannot represent elements of type {get_dtype(a)!r} with byte strides {a.byte_strides};"
            " use DLPack or x.copy()"
        )
    host_ready(a)
    cdef MemoryBlock block = block_of(a)
    cdef Py_ssize_t distance = a.data_ - block.address_
    cdef bint countable = distance % a.itemsize_ == 0     # the offset is in elements
    return {
        "data": (<size_t> (block.address_ if countable else a.data_), not a.flags_ & WRITEABLE),
        "shape": a.shape,
        "strides": None if a.flags_ & C_CONTIGUOUS else a.strides,
        "typestr": "|" + row.typestr.decode(),
        "version": 1,
        "syclobj": sycl.queue_of(a),
        "offset": distance // a.itemsize_ if countable else 0,
    }
