"""Element types as the interface dicts say them: type strings such as '<f8', and descriptions of fields.

A native number is a row of the table of element types and needs no Python call. All else is NumPy's to read, once its form
is checked; what NumPy made of it is remembered.
"""

import copy
import re
import sys

import numpy

cimport numpy as cnp
from cpython.unicode cimport PyUnicode_Check

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport get_dtype, set_dtype, set_type
from arrayhub._core.cpython.atomics cimport found
from arrayhub.adapters.interface_keys cimport DESCR, TYPESTR, dict_error, entry, whole

from arrayhub._core.errors import InterfaceError

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    const char* PyUnicode_DATA(object text) noexcept

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
