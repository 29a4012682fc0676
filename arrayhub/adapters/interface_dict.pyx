"""The keys that ``__array_interface__``, ``__cuda_array_interface__`` and ``__sycl_usm_array_interface__`` share.

One function reads shape, typestr, descr, strides, mask and version for all three; what differs is a row of a table.
The modules of the protocols add what is theirs: the pointer or buffer, offset, stream, queue. On the good path the dict
is gone through once, with no look-up and no Python call; errors may take their time.
"""

import copy
import operator
import re
import sys

import numpy

cimport cython
cimport numpy as cnp
from cpython.dict cimport PyDict_Check, PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_Check

from arrayhub._core cimport dtypes, layout
from arrayhub._core.descriptor cimport (
    ARRAY_INTERFACE,
    ARRAY_STRUCT,
    CUDA_DICT,
    SYCL_DICT,
    WRITEABLE,
    get_dtype,
    new_array,
    set_dtype,
    set_type,
    shape_tuple,
)
from arrayhub._core.integers cimport is_bool
from arrayhub._core.shared cimport find, found

from arrayhub._core.errors import InterfaceError, interface_error

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) noexcept
    int PyUnicode_IS_ASCII(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    const char* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyDict_GET_SIZE(object mapping) noexcept

cdef struct Dialect:
    bint in_elements          # strides count elements, not bytes
    bint has_mask             # the protocol has the key
    bint descr_must_agree     # the description is checked for numbers too, not only read for V
    bint needs_version        # a dict without one is refused
    Py_ssize_t oldest, newest  # versions

cdef enum:
    DIALECTS = 8
    ANY_LATER = 1 << 30       # "be careful not to use this to invalidate objects exposing future versions" (NumPy)

cdef Dialect _DIALECTS[DIALECTS]
# elements, mask, must agree, needs version, versions
_DIALECTS[<int> ARRAY_INTERFACE] = Dialect(False, True, False, False, 1, ANY_LATER)
_DIALECTS[<int> CUDA_DICT] = Dialect(False, True, False, True, 0, ANY_LATER)
_DIALECTS[<int> SYCL_DICT] = Dialect(True, False, True, True, 1, 1)

# The names in messages, and of the key that describes fields.
_ATTRIBUTES = {
    ARRAY_INTERFACE: "__array_interface__",
    ARRAY_STRUCT: "__array_struct__",
    CUDA_DICT: "__cuda_array_interface__",
    SYCL_DICT: "__sycl_usm_array_interface__",
}

# What each protocol calls its keys, in the order of `Key`; interned, as the keys of a dict in source code are.
cdef dict _KEYS = {
    ARRAY_INTERFACE: ["data", "shape", "strides", "typestr", "version", "mask", "offset", "descr"],
    CUDA_DICT: ["data", "shape", "strides", "typestr", "version", "mask", "stream", "descr"],
    SYCL_DICT: ["data", "shape", "strides", "typestr", "version", "syclobj", "offset", "typedescr"],
}
cdef PyObject* _names[DIALECTS][<int> KEYS]
cdef int _protocol, _key
cdef list _row
for _protocol, _row in _KEYS.items():
    for _key in range(<int> KEYS):
        _row[_key] = sys.intern(_row[_key])
        _names[_protocol][_key] = <PyObject*> _row[_key]

# Units are spelt out: numpy.dtype divides by the 0 of 'm8[ns/0]', which ends the process.
_TYPESTR = re.compile(
    r"[<>|=]?(?:([biufcSUV])([0-9]{1,10})|([mM])8(?:\[[0-9]{0,9}(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)", re.ASCII
)
_ACCEPTED_TYPESTR = (
    "a byte order '<', '>' or '|', a kind of b i u f c m M S U V and a size NumPy has for it: '<f8', '<M8[ns]'"
)

# What NumPy made of the type strings met so far that the table has no row for. Bounded: a producer can invent them.
cdef dict _described = {}
cdef dict _records = {}
cdef enum:
    REMEMBERED_TYPESTRS = 256
    MAX_NESTING = 32          # records within records
    MAX_FIELDS = 4096         # with those of records within: lists that share lists name 2**MAX_NESTING

cdef char _FOREIGN_ORDER = c">" if sys.byteorder == "little" else c"<"


cdef int read(object interface, int protocol, Entries* entries) except -1:
    """Read the values of an interface dict in one pass; `entry` gives one.

    `begin` comes before it, and `let_go` after it, also where it raises.

    Raises
    ------
    InterfaceError
        The attribute gave no dict.
    """
    cdef bint strange
    if not PyDict_Check(interface):
        raise dict_error(protocol, "the attribute", interface, "a dict")
    with cython.critical_section(interface):     # another thread may be changing it
        strange = go_through(<dict> interface, _names[protocol], entries)
    if strange:
        look_up(<dict> interface, _names[protocol], entries)
    return 0


cdef bint go_through(dict interface, PyObject** names, Entries* entries) noexcept:
    """Hold the values of the keys that are the very strings in `names`; True where there is a key that is none of them:
    a strange one, or one of them in another string object."""
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t position = 0
    cdef int _tried, place, k = 0
    cdef bint strange = False
    for _ in range(PyDict_GET_SIZE(interface)):     # which saves the call that finds no more
        if not PyDict_Next(interface, &position, &key, &value):
            break
        for _tried in range(<int> KEYS):
            place = k
            k = k + 1 if k + 1 < KEYS else 0     # on from the last one: most dicts have them in much this order
            if key == names[place]:
                Py_INCREF(<object> value)
                entries.values[place] = value
                break
        else:
            strange = True
    return strange


cdef int look_up(dict interface, PyObject** names, Entries* entries) except -1:
    """Look the missing keys up by what they say, not by which objects they are."""
    cdef int k
    for k in range(<int> KEYS):
        if entries.values[k] == NULL:
            entries.values[k] = find(interface, <object> names[k])
    return 0


cdef Descriptor new_from_dict(const Entries* entries, int protocol, object dtype):
    """An array with the shape, byte strides and type of an interface dict; pointer, owner, device and access are left
    to the caller, and so is `seal`, which checks what is written here against the pointer.

    Parameters
    ----------
    entries : const Entries*
        What `read` found.
    protocol : int
        ARRAY_INTERFACE, CUDA_DICT or SYCL_DICT: also says whether strides are in bytes (the first two) or elements.
    dtype : numpy.dtype or None
        The type of a producer that is known to have one, in place of a type string that may tell no more than its size.

    Raises
    ------
    InterfaceError
        A key is missing, of the wrong type, or says what cannot be.
    """
    cdef const Dialect* dialect = &_DIALECTS[protocol]
    check_version(entry(entries, VERSION), protocol, dialect)
    if dialect.has_mask:
        mask = entry(entries, MASK)
        if mask is not None:
            raise dict_error(protocol, "mask", mask, "None: no protocol can carry a mask. Fill the masked ones first")
    lengths = entry(entries, SHAPE)
    if not isinstance(lengths, tuple):
        raise dict_error(protocol, "shape", lengths, "a tuple of integers, lengths in elements")
    if len(<tuple> lengths) > layout.MAX_NDIM:
        raise dict_error(protocol, "shape", lengths, f"at most {layout.MAX_NDIM} dimensions, as in NumPy")
    cdef Descriptor a = new_array(<int> len(<tuple> lengths))
    a.protocol_ = protocol
    cdef int k
    for k in range(a.nd_):
        a.shape_[k] = whole((<tuple> lengths)[k], protocol, "shape", k)
    if dtype is None:
        set_typestr(a, entries, protocol)
    else:
        set_dtype(a, dtype)
    if dialect.descr_must_agree:
        check_descr(a, entry(entries, DESCR), protocol)
    set_strides(a, entry(entries, STRIDES), protocol, dialect)
    return a


cdef int set_pointer(Descriptor a, object data) except -1:
    """Read ``data`` where it is the pair (address, read-only)."""
    if not isinstance(data, tuple) or len(<tuple> data) != 2:
        raise dict_error(a.protocol_, "data", data, "a pair (address as an integer, read-only as a bool)")
    cdef Py_ssize_t address = whole((<tuple> data)[0], a.protocol_, "data[0]", -1)
    if address < 0:
        raise dict_error(a.protocol_, "data[0]", address, "an address from 0 to 2**63 - 1")
    a.data_ = <char*> address
    read_only = (<tuple> data)[1]
    if read_only is False:
        a.flags_ |= WRITEABLE
    elif read_only is not True:
        set_access(a, read_only)
    return 0


cdef int set_access(Descriptor a, object read_only) except -1:
    """Read-only flags that are not Python's bool: NumPy's, and the integers that C code writes."""
    if not isinstance(read_only, numpy.bool_) and (type(read_only) is not int or read_only not in (0, 1)):
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
        number = whole(version, protocol, "version", -1)
        if dialect.oldest <= number <= dialect.newest:
            return 0
    accepted = f"{dialect.oldest}" + (" or later" if dialect.newest == ANY_LATER else "")
    raise dict_error(protocol, "version", version, accepted)


cdef Py_ssize_t whole_slowly(object value, int protocol, str key, int position) except? -1:
    """`whole` of what is no int of one digit."""
    cdef int overflow = 0
    cdef Py_ssize_t number
    if PyLong_CheckExact(value):      # a pointer
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
        raise dict_error(protocol, key, value, "an integer, or what __index__ makes one of") from None
    number = <Py_ssize_t> PyLong_AsLongLongAndOverflow(exact, &overflow)
    if overflow != 0:
        raise dict_error(protocol, key, value, "an integer from -2**63 to 2**63 - 1")
    return number


cdef int set_strides(Descriptor a, object strides, int protocol, const Dialect* dialect) except -1:
    """Byte strides from the protocol's unit; None or missing means C order."""
    cdef Py_ssize_t unit = a.itemsize_ if dialect.in_elements else 1
    cdef bint overflow = False
    cdef int k
    if strides is None:
        if layout.fill_strides(a.nd_, a.shape_, a.itemsize_, False, a.byte_strides_):
            raise dict_error(protocol, "shape", shape_tuple(a),
                             "sizes whose product in bytes stays below 2**63")
        return 0
    if not isinstance(strides, tuple) or len(<tuple> strides) != a.nd_:
        raise dict_error(protocol, "strides", strides, f"None, or a tuple of {a.nd_} integers, steps in"
                         f" {'elements' if dialect.in_elements else 'bytes'}")
    for k in range(a.nd_):
        overflow |= layout.checked_mul(whole((<tuple> strides)[k], protocol, "strides", k), unit, &a.byte_strides_[k])
    if overflow:
        raise dict_error(protocol, "strides", strides, "steps that stay below 2**63 in bytes")
    return 0


# -------------------------------------------------------------------------------------------------- element types


cdef int set_typestr(Descriptor a, const Entries* entries, int protocol) except -1:
    """The element type of a type string; for V the fields that the description adds."""
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
    """The row of a type string such as '<f8': a number in native byte order. NULL for all else.

    '|' and a missing byte order are taken as native, as NumPy takes them; DPCTL writes '|f8'.
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
    """The NumPy dtype of a type string that is no native number; remembered.

    The form is checked before NumPy sees it, because `numpy.dtype` understands far more than the protocol has
    ('StringDType()', 'f8,f8', 'float') and some of that means memory that is not in the array.
    """
    cdef object dtype
    match = _TYPESTR.fullmatch(typestr) if isinstance(typestr, str) else None
    if match is None:
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR)
    try:
        dtype = numpy.dtype(match[0])
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR) from None
    kind, size = match[1] or match[3], int(match[2] or 8) * (4 if match[1] == "U" else 1)
    if dtype.kind != kind or dtype.itemsize != size:    # NumPy reads 'c1' as a string, for one
        raise dict_error(protocol, key, typestr, _ACCEPTED_TYPESTR)
    if len(_described) >= REMEMBERED_TYPESTRS:
        _described.clear()
    _described[match[0]] = dtype
    return dtype


cdef object fields_from_descr(object descr, object void, int protocol):
    """The record that a description makes of plain void of the same size; the last one of each size is remembered."""
    cdef tuple last = found(_records, void)
    if last is not None and type(descr) is list and last[0] == descr:
        return last[1]
    dtype = dtype_from_descr(descr, protocol)
    if dtype.itemsize != void.itemsize:
        raise dict_error(protocol, "descr", descr, f"fields that add up to the {void.itemsize} bytes of typestr, not"
                         f" {dtype.itemsize}")
    if len(_records) >= REMEMBERED_TYPESTRS:
        _records.clear()
    _records[void] = (copy.deepcopy(descr), dtype)    # the producer may change its list
    return dtype


cdef object dtype_from_descr(object descr, int protocol):
    """The NumPy dtype of a description: a list of (name, type) or (name, type, shape), unnamed void being padding.

    `numpy.dtype` itself would make fields of the padding. A single entry without a name is no record but the type.
    """
    if isinstance(descr, list) and len(descr) == 1:
        single = descr[0]
        if isinstance(single, tuple) and len(single) == 2 and single[0] == "" and isinstance(single[1], str):
            return dtype_from_typestr(single[1], protocol, "descr")
    cdef int fields = 0
    return record_from_descr(descr, protocol, 0, &fields)


cdef object record_from_descr(object descr, int protocol, int depth, int* fields):
    """The record of a list of fields, which lie one after the other; `fields` counts those of all records."""
    cdef str accepted = "a list of (name, type) or (name, type, shape); a type is a type string or such a list"
    cdef list names = [], formats = [], offsets = [], titles = []
    offset = 0
    if not isinstance(descr, list) or depth > MAX_NESTING:
        raise dict_error(protocol, "descr", descr, accepted)
    for k, field in enumerate(list(descr)):
        if not isinstance(field, tuple) or not 2 <= len(field) <= 3:
            raise dict_error(protocol, "descr", descr, accepted)
        fields[0] += 1
        if fields[0] > MAX_FIELDS:
            raise dict_error(protocol, "descr", descr, f"at most {MAX_FIELDS} fields, those of records within included")
        element = field_type(field, protocol, depth, fields)
        # A title comes before the name; a field without a name gets NumPy's.
        title, name = field[0] if isinstance(field[0], tuple) and len(field[0]) == 2 else (None, field[0])
        if name != "" or element.base.kind != "V" or element.base.names is not None:
            names.append(f"f{k}" if name == "" else name)
            formats.append(element)
            offsets.append(offset)
            titles.append(title)
        offset += element.itemsize
    try:
        return numpy.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "titles": titles, "itemsize": offset}
        )
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise dict_error(protocol, "descr", descr, f"{accepted} ({error})") from None


cdef object field_type(object field, int protocol, int depth, int* fields):
    """The type of one field, its shape included."""
    said = field[1]
    if isinstance(said, str):
        element = dtype_from_typestr(said, protocol, "descr, type of a field")
    else:
        element = record_from_descr(said, protocol, depth + 1, fields)
    if len(field) == 2:
        return element
    lengths = field[2]
    if not isinstance(lengths, tuple):
        raise dict_error(protocol, "descr, shape of a field", lengths, "a tuple of integers")
    try:
        return numpy.dtype((element, tuple([whole(lengths[k], protocol, "descr, shape of a field", k)
                                            for k in range(len(lengths))])))
    except InterfaceError:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise dict_error(protocol, "descr, shape of a field", lengths, "lengths below 2**31 bytes in all") from None


cdef int check_descr(Descriptor a, object descr, int protocol) except -1:
    """Refuse a description that contradicts the type string."""
    if descr is not None and dtype_from_descr(descr, protocol) != get_dtype(a):
        raise dict_error(protocol, "typedescr", descr, f"what typestr says: [('', '{get_dtype(a).str}')]")
    return 0


cdef object dict_error(int protocol, str key, object value, str accepted):
    """The error about a key, to be raised; see `interface_error`. What describes fields has each protocol's own name."""
    if key.startswith("descr") and protocol in _KEYS:
        key = key.replace("descr", _KEYS[protocol][<int> KEYS - 1], 1)
    return interface_error(_ATTRIBUTES[protocol], key, value, accepted)
