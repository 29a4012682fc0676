"""Element types of interface dicts: type strings such as '<f8', and descriptions of fields.

Numbers in native byte order are looked up in the table of element types, without a Python call. Other type strings are
validated, parsed by NumPy and cached.
"""

import re
import sys

import numpy

cimport numpy as cnp
from cpython.unicode cimport PyUnicode_Check

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport Descriptor, get_dtype, set_dtype, set_type
from arrayhub._core.cpython.atomics cimport found

from arrayhub._core.errors import InterfaceError

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    const char* PyUnicode_DATA(object text) noexcept

# The units are listed because numpy.dtype('m8[ns/0]') divides by zero, which ends the process. Compiled on first use.
_TYPESTR = r"[<>|=]?(?:([biufcSUV])([0-9]{1,10})|([mM])8(?:\[[0-9]{0,9}(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)"
_ACCEPTED_TYPESTR = (
    "a byte order '<', '>' or '|', a kind of b i u f c m M S U V, and a size that NumPy supports, as in '<f8', '<M8[ns]'"
)

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

    Unnamed void is padding, which `numpy.dtype` would convert to fields. A single entry without a name or a shape is a plain
    type, not a record.
    """
    if isinstance(descr, list) and len(descr) == 1:
        single = descr[0]
        if isinstance(single, tuple) and len(single) == 2 and single[0] == "" and isinstance(single[1], str):
            return dtype_from_typestr(single[1], protocol, "descr")
    cdef int fields = 0
    return record_from_descr(descr, protocol, 0, &fields)


cdef object record_from_descr(object descr, int protocol, int depth, int* fields):
    """Return the structured dtype of a list of consecutive fields. `fields` counts the fields of all nested records."""
    cdef str accepted = "a list of (name, type) or (name, type, shape); a type is a type string or a list of fields"
    cdef list names = [], formats = [], offsets = [], titles = []
    offset = 0
    if not isinstance(descr, list) or depth > MAX_NESTING:
        raise dict_error(protocol, "descr", descr, accepted)
    for k, field in enumerate(list(descr)):
        if not isinstance(field, tuple) or not 2 <= len(field) <= 3:
            raise dict_error(protocol, "descr", descr, accepted)
        fields[0] += 1
        if fields[0] > MAX_FIELDS:
            raise dict_error(protocol, "descr", descr, f"at most {MAX_FIELDS} fields, including those of nested records")
        element = field_type(field, protocol, depth, fields)
        # A title precedes the name. A field without a name gets NumPy's default name.
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
    """Return the type of one field, including its shape."""
    spec = field[1]
    if isinstance(spec, str):
        element = dtype_from_typestr(spec, protocol, "descr, type of a field")
    else:
        element = record_from_descr(spec, protocol, depth + 1, fields)
    if len(field) == 2:
        return element
    lengths = field[2]
    if not isinstance(lengths, tuple):
        raise dict_error(protocol, "descr, shape of a field", lengths, "a tuple of integers")
    try:
        return numpy.dtype((element, tuple([integer(lengths[k], protocol, "descr, shape of a field", k)
                                            for k in range(len(lengths))])))
    except InterfaceError:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise dict_error(protocol, "descr, shape of a field", lengths, "lengths whose product is below 2**31 bytes") from None


cdef int check_descr(Descriptor a, object descr, int protocol) except -1:
    """Raise InterfaceError if a description contradicts the type string."""
    if descr is not None and dtype_from_descr(descr, protocol) != get_dtype(a):
        raise dict_error(protocol, "typedescr", descr, f"the type of typestr: [('', '{get_dtype(a).str}')]")
    return 0
