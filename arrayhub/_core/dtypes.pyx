"""Table of element types, with one row per type and one column per protocol.

Conversions between type codes use this table, except for codes with parameters: adapters/format_language parses PEP 3118's
formats, and adapters/arrow/format parses Arrow's temporal formats.
"""

import sys

import numpy as np

cimport numpy as cnp
from cpython.memoryview cimport PyMemoryView_FromBuffer
from cpython.object cimport PyObject
from libc.string cimport memset

from arrayhub._core.cpython.atomics cimport found, seen, set_once

from arrayhub._core.errors import first_line, root_of, show

cnp.import_array()

# NumPy provides the typenum, kind, size, alignment and typestr of each type character. The DLPack codes are from the DLPack
# 1.3 specification, the formats from PEP 3118 and the struct module. None: the protocol cannot represent the type, or its
# code depends on the dtype.
#
#    name          NumPy  DLPack code  PEP 3118: aligned, and at an unaligned address
_NUMPY_ROWS = [
    ("bool",        "?",  6,    "?",  "?"),
    ("int8",        "b",  0,    "b",  "b"),
    ("uint8",       "B",  1,    "B",  "B"),
    ("int16",       "h",  0,    "h",  "=h"),
    ("uint16",      "H",  1,    "H",  "=H"),
    ("int32",       "i",  0,    "i",  "=i"),
    ("uint32",      "I",  1,    "I",  "=I"),
    ("long",        "l",  0,    "l",  "=q"),  # `=l` is four bytes on every platform
    ("ulong",       "L",  1,    "L",  "=Q"),
    ("longlong",    "q",  0,    "q",  "=q"),
    ("ulonglong",   "Q",  1,    "Q",  "=Q"),
    ("float16",     "e",  2,    "e",  "=e"),
    ("float32",     "f",  2,    "f",  "=f"),
    ("float64",     "d",  2,    "d",  "=d"),
    ("complex64",   "F",  5,    "Zf", "=Zf"),
    ("complex128",  "D",  5,    "Zd", "=Zd"),
    ("longdouble",  "g",  None, "g",  "^g"),  # `=` does not define its size; `^` is native size without alignment
    ("clongdouble", "G",  None, "Zg", "^Zg"),
    ("bytes",       "S",  None, None, None),  # these five types are parametric: the dtype has a length, a unit or fields
    ("str",         "U",  None, None, None),
    ("void",        "V",  None, None, None),
    ("datetime64",  "M",  None, None, None),
    ("timedelta64", "m",  None, None, None),
]

# Types that NumPy does not have. arrayhub assigns their typenums. Only DLPack can represent these types, if they have a code.
# ml_dtypes has dtypes for most of them. Elements smaller than a byte occupy one byte each, as in ml_dtypes, unless the array
# has the flag PACKED.
#
#    name                 typenum  DLPack code, bits, lanes  bytes
_OWN_ROWS = [
    ("bfloat16",           4096,   4,  16, 1,    2),
    ("float8_e3m4",        4097,   7,   8, 1,    1),
    ("float8_e4m3",        4098,   8,   8, 1,    1),
    ("float8_e4m3b11fnuz", 4099,   9,   8, 1,    1),
    ("float8_e4m3fn",      4100,   10,  8, 1,    1),
    ("float8_e4m3fnuz",    4101,   11,  8, 1,    1),
    ("float8_e5m2",        4102,   12,  8, 1,    1),
    ("float8_e5m2fnuz",    4103,   13,  8, 1,    1),
    ("float8_e8m0fnu",     4104,   14,  8, 1,    1),
    ("float6_e2m3fn",      4105,   15,  6, 1,    1),
    ("float6_e3m2fn",      4106,   16,  6, 1,    1),
    ("float4_e2m1fn",      4107,   17,  4, 1,    1),
    ("int4",               4108,   0,   4, 1,    1),
    ("uint4",              4109,   1,   4, 1,    1),
    ("int2",               4110,   0,   2, 1,    1),
    ("uint2",              4111,   1,   2, 1,    1),
    ("int1",               4112,   0,   1, 1,    1),
    ("uint1",              4113,   1,   1, 1,    1),
    ("complex32",          4114,   5,  32, 1,    4),     # NumPy reads its format `Ze` as a half float
    ("bcomplex32",         4115,   18, 32, 1,    4),     # two bfloat16 values: kDLBcomplex (dmlc/dlpack#187)
    ("float4_e2m1fn_x2",   4116,   17,  4, 2,    1),     # torch: a pair in one byte, pytorch/pytorch#146578
    ("float8_e5m3fnu",     4117, None,  8, 1,    1),     # ml_dtypes 0.7
]

cdef enum:
    MAX_ROWS = 48
    COMPLEX = 5             # kDLComplex
    BCOMPLEX = 18           # kDLBcomplex
    DLPACK_CODES = 19       # kDLInt (0) to kDLBcomplex

cdef ElementType _TABLE[MAX_ROWS]
cdef int _rows = 0

# Indexes of the table, filled below. They contain row numbers plus one, so that 0 marks an unknown type.
cdef uint8_t _BY_OWN[MAX_ROWS]
cdef uint8_t _BY_DLPACK[DLPACK_CODES][129]     # [code][bits] of DLPack; the first row with this code and size
cdef uint8_t _BY_FORMAT[128]         # [native character]
cdef uint8_t _BY_KIND[128][33]       # [kind letter][item size in bytes]

# Arrow's letters by NumPy's kind and log2 of the item size. Arrow has one type for C types of equal size. Arrow's "b" is not
# listed, because it stands for booleans that are stored as bits.
_ARROW = {"i": "csil", "u": "CSIL", "f": " efg"}
cdef uint8_t _BY_ARROW[128]

_strings = []                        # owns the table's C strings
cdef PyObject* _dtypes[MAX_ROWS]     # NumPy dtype of each row, created on first use
cdef dict _own_typenums = {}                   # scalar type of ml_dtypes -> typenum, filled on first use


cdef const char* _keep(object text):
    if text is None:
        return NULL
    encoded = text.encode()
    _strings.append(encoded)
    return encoded


cdef ElementType* _new_row(
    str name, int typenum, code, int bits, int lanes, Py_ssize_t itemsize, fmt=None, packed=None
) except NULL:
    global _rows
    if _rows == MAX_ROWS or typenum >= FIRST_OWN_TYPENUM + MAX_ROWS:
        raise SystemError(f"the table of element types does not have space for {name}; increase MAX_ROWS")
    cdef ElementType* row = &_TABLE[_rows]
    _rows += 1
    row.name = _keep(name)
    row.typenum = typenum
    row.bits = bits * lanes
    row.itemsize = itemsize
    row.dlpack = DLDataType(NO_DLPACK if code is None else code, 0 if code is None else bits, lanes)
    row.format = _keep(fmt)
    row.packed_format = _keep(packed)
    return row


cdef int _add_numpy_row(name, char, code, fmt, packed) except -1:
    dtype = np.dtype(char)
    if char in "lL" and dtype.itemsize == 4:
        packed = {"l": "=i", "L": "=I"}[char]
    cdef ElementType* row = _new_row(name, dtype.num, code, dtype.itemsize * 8, 1, dtype.itemsize, fmt, packed)
    row.kind = ord(dtype.kind)
    row.alignment = dtype.alignment
    row.typestr = _keep(dtype.str[1:]) if dtype.kind in "biufc" else NULL
    if dtype.kind in _ARROW and dtype.itemsize in (1, 2, 4, 8):
        row.arrow = ord(_ARROW[dtype.kind][dtype.itemsize.bit_length() - 1])
    numpy_rows[dtype.num] = row
    if row.typestr == NULL:
        return 0
    # If two C types have the same size, a lookup by size finds NumPy's canonical type (np.dtype("int64").num).
    if dtype.num == np.dtype(dtype.str).num:
        _BY_KIND[<uint8_t> row.kind][dtype.itemsize] = _rows
        _BY_ARROW[<uint8_t> row.arrow] = _rows
        if code is not None:
            _BY_DLPACK[row.dlpack.code][row.dlpack.bits] = _rows
    if len(fmt) == 1:
        _BY_FORMAT[ord(fmt)] = _rows
    return 0


cdef int _add_own_row(name, typenum, code, bits, lanes, itemsize) except -1:
    cdef ElementType* row = _new_row(name, typenum, code, bits, lanes, itemsize)
    row.kind = c"E"
    row.alignment = bits // 16 if code in (COMPLEX, BCOMPLEX) else max(bits // 8, 1)     # the size of one number
    _BY_OWN[typenum - FIRST_OWN_TYPENUM] = _rows
    if code is not None and _BY_DLPACK[code][bits] == 0:
        _BY_DLPACK[code][bits] = _rows
    return 0


for _name, _char, _code, _format, _packed in _NUMPY_ROWS:
    _add_numpy_row(_name, _char, _code, _format, _packed)
for _name, _typenum, _code, _bits, _lanes, _itemsize in _OWN_ROWS:
    _add_own_row(_name, _typenum, _code, _bits, _lanes, _itemsize)


cdef inline const ElementType* _at(int number) noexcept nogil:
    return NULL if number == 0 else &_TABLE[number - 1]


cdef const ElementType* by_own_typenum(int typenum) noexcept nogil:
    """Return the row of an arrayhub typenum, or NULL if unknown."""
    if FIRST_OWN_TYPENUM <= typenum < FIRST_OWN_TYPENUM + MAX_ROWS:
        return _at(_BY_OWN[typenum - FIRST_OWN_TYPENUM])
    return NULL


_OWN_NAMES = {name: typenum for name, typenum, *_ in _OWN_ROWS}


cdef const ElementType* by_own_name(str name):
    """Return the row with a given name among the types that NumPy does not have, or NULL if the name is unknown."""
    return by_typenum(_OWN_NAMES.get(name, -1))


cdef const ElementType* by_dlpack(DLDataType wanted) noexcept nogil:
    """Return the row of a DLPack type, or NULL if unknown."""
    cdef const ElementType* row
    cdef int k
    row = similar_to_dlpack(wanted)
    if row == NULL or row.dlpack.lanes == wanted.lanes:
        return row
    for k in range(_rows):     # types with the same code and bits, but a different number of lanes
        row = &_TABLE[k]
        if row.dlpack.code == wanted.code and row.dlpack.bits == wanted.bits and row.dlpack.lanes == wanted.lanes:
            return row
    return NULL


cdef const ElementType* similar_to_dlpack(DLDataType wanted) noexcept nogil:
    """Return the first row with the code and the bits of a DLPack type, ignoring lanes, or NULL if unknown."""
    return _at(_BY_DLPACK[wanted.code][wanted.bits]) if wanted.code < DLPACK_CODES and wanted.bits <= 128 else NULL


cdef const ElementType* by_format(int letter) noexcept nogil:
    """Return the row for a native PEP 3118 format character, or NULL if unknown."""
    return _at(_BY_FORMAT[letter]) if 0 <= letter < 128 else NULL


cdef const ElementType* by_arrow(int letter) noexcept nogil:
    """Return the row of a numeric Arrow format (one letter), or NULL if unknown."""
    return _at(_BY_ARROW[letter]) if 0 < letter < 128 else NULL


cdef const ElementType* by_typestr(int kind, Py_ssize_t itemsize) noexcept nogil:
    """Return the row of a numeric typestr in native byte order, or NULL for types that require a dtype object."""
    return _at(_BY_KIND[kind][itemsize]) if 0 <= kind < 128 and 0 <= itemsize <= 32 else NULL


cdef const ElementType* by_plain_dtype(object dtype) noexcept:
    """Return the row of a NumPy dtype of numbers in native byte order, or NULL for any other object.

    The function reads only the dtype's C struct.
    """
    cdef const ElementType* row
    if not isinstance(dtype, cnp.dtype) or (<cnp.dtype> dtype).byteorder == c">":
        return NULL
    row = by_typenum((<cnp.dtype> dtype).type_num) if (<cnp.dtype> dtype).type_num < NUMPY_TYPENUMS else NULL
    return row if row != NULL and row.typestr != NULL else NULL


cdef const ElementType* by_dtype(object dtype):
    """Return the row of a NumPy dtype, or NULL for StringDType, Python objects and unknown user-defined types.

    Types of ml_dtypes are identified by their scalar type, because kind and character are ambiguous: most have the kind V, and
    several types share a character.
    """
    cdef int typenum = dtype.num
    if typenum < NUMPY_TYPENUMS:
        return by_typenum(typenum)
    scalar = dtype.type
    own = found(_own_typenums, scalar)
    if own is None:
        if scalar.__module__ != "ml_dtypes" or scalar is not getattr(sys.modules.get("ml_dtypes"), scalar.__name__, None):
            return NULL
        own = next((row[1] for row in _OWN_ROWS if row[0] == scalar.__name__), None)
        if own is None:
            return NULL
        _own_typenums[scalar] = own
    return by_typenum(own)


cdef bint has_user_types(object dtype) except -1:
    """Return whether a dtype, or one of its fields, is a user-defined type such as those of ml_dtypes.

    The type strings of user-defined types are wrong: '<V2' for ml_dtypes' bfloat16, and '<f1' for its float8_e5m2.
    """
    dtype = dtype.base
    if dtype.names is None:
        return not 0 <= (<int> dtype.num) < FIRST_USER_TYPENUM
    for name in dtype.names:
        if has_user_types(dtype.fields[name][0]):
            return True
    return False


cpdef bint is_native(object dtype) except -1:
    """Return whether all values of a NumPy dtype have native byte order.

    Unlike NumPy's ``isnative``, examine sub-arrays, too.
    """
    dtype = dtype.base
    if dtype.names is None:
        return dtype.isnative
    for name in dtype.names:
        if not is_native(dtype.fields[name][0]):
            return False
    return True


cdef bint is_empty_record(str format) except -1:
    """Return whether the first brace of ``(0)T{...}`` closes at the end, so that elements have 0 bytes. Names are skipped."""
    cdef int depth = 0
    cdef list parts = format.split(":")
    if not format.startswith("(0)T{") or not parts[len(parts) - 1].endswith("}"):
        return False
    cdef str text = "".join(parts[::2])
    for k, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0 and k > 4 and k < len(text) - 1:
            return False
    return depth == 0


def read_format_by_numpy(str format not None):
    """Return the dtype that NumPy reads from a PEP 3118 format of elements of 0 bytes, such as ``(0)T{i:x:}``."""
    if not is_empty_record(format):
        raise ValueError("the format is not a single record of 0 bytes")
    cdef bytes text = format.encode()
    cdef Py_buffer view
    memset(&view, 0, sizeof(Py_buffer))
    view.format = text
    view.buf = <void*> view.format
    view.readonly = True
    return np.asarray(PyMemoryView_FromBuffer(&view)).dtype


def find_borders(dtype):
    """Return for each field of a structured dtype, and for its end, where the fields before it end and where it starts."""
    if dtype.base.names is None:
        return []
    end, borders = 0, []
    for field, offset, *_ in sorted([dtype.base.fields[name] for name in dtype.base.names], key=lambda entry: entry[1]):
        borders += [*find_borders(field), (end, offset)]
        end = max(end, offset + field.itemsize)
    return [*borders, (end, dtype.base.itemsize)]


cdef object dtype_of(const ElementType* row):
    """Return the NumPy dtype of a row, which is created on first use. Raise TypeError if neither NumPy nor ml_dtypes has it."""
    cdef Py_ssize_t number = row - _TABLE
    cdef PyObject* dtype = seen(&_dtypes[number])
    return <object> (set_once(&_dtypes[number], NULL, _make_dtype(row)) if dtype == NULL else dtype)


def numpy_dtype(int typenum):
    """Return the NumPy dtype of a typenum, as `dtype_of`."""
    cdef const ElementType* row = by_typenum(typenum)
    if row == NULL:
        raise TypeError(f"dtype: typenum is {typenum}; accepted: the typenums in element_types()")
    return dtype_of(row)


cdef object _make_dtype(const ElementType* row):
    if row.typenum < NUMPY_TYPENUMS:
        return cnp.PyArray_DescrFromType(row.typenum)
    name = row.name.decode()
    try:
        ml_dtypes = __import__("ml_dtypes")     # Cython's import statement does not raise for None in sys.modules
    except ImportError:
        raise TypeError(
            f"dtype: NumPy does not have {name}; install ml_dtypes, which has it. Shape, strides and DLPack work without"
            " ml_dtypes"
        ) from None
    if not hasattr(ml_dtypes, name):
        raise TypeError(
            f"dtype: neither NumPy nor ml_dtypes {ml_dtypes.__version__} has {name}; use DLPack, or call"
            " arrayhub.asarray(x).view('uint8') for the bytes"
        )
    return np.dtype(getattr(ml_dtypes, name))


_REFUSALS = (TypeError, ValueError, OverflowError, SyntaxError)     # raised by numpy.dtype; SyntaxError for "f4,,"
_DTYPE_FORMS = (str, type, np.dtype, tuple, list, dict, bytes, type(None))


# Functions that convert the element types of a library, by its top-level module. libraries/dtypes fills in the table.
TYPE_READERS = {}


cdef object of_library(object spec):
    """Return the NumPy dtype or the name of another library's element type. Return None for other objects.

    The method ``__dlpack_data_type__``, which dmlc/dlpack#172 proposes, returns (code, bits, lanes).
    """
    cdef const ElementType* row
    cdef bint is_type = isinstance(spec, type)
    reader = TYPE_READERS.get(root_of(spec if is_type else type(spec)))
    dtype = None if reader is None else reader(spec)
    if dtype is not None or is_type or not hasattr(type(spec), "__dlpack_data_type__"):
        return dtype
    code, bits, lanes = spec.__dlpack_data_type__()
    row = by_dlpack(DLDataType(code, bits, lanes))
    return None if row == NULL else dtype_of(row)


def requested_dtype(object spec):
    """Return ``numpy.dtype(spec)``. `spec` may also be an element type of another library, or a name such as "bfloat16".

    Objects that NumPy would reject are rejected here, because NumPy's error message calls their ``repr``.
    """
    if type(spec) is not str and not isinstance(spec, np.dtype):
        own = of_library(spec)
        if own is not None:
            spec = own
    if isinstance(spec, _DTYPE_FORMS) or hasattr(spec, "dtype") or hasattr(spec, "__numpy_dtype__"):
        try:
            return np.dtype(spec)
        except UnicodeError:     # raised by NumPy for a string that cannot be encoded
            pass
        except _REFUSALS as error:
            if type(spec) is not str or by_own_name(spec) == NULL:
                if not isinstance(spec, _DTYPE_FORMS):     # an exception raised by the object's code
                    raise
                raise dtype_error(spec, error) from error
        if type(spec) is str and by_own_name(spec) != NULL:
            return _make_dtype(by_own_name(spec))
    raise TypeError(
        f"dtype: {show(spec)} is not a data type; accepted: arguments of numpy.dtype, such as 'f4' or numpy.float32, and"
        " element types of torch, jax, pyarrow, polars and pandas"
    )


cdef object dtype_error(object spec, object error):
    """Return an error with the class of NumPy's `error` and a message that names the argument and the value."""
    for kind in _REFUSALS:
        if isinstance(error, kind):
            return kind(
                f"dtype: {show(spec)} is not a data type ({first_line(error)}); accepted: arguments of numpy.dtype, such as"
                " 'f4'"
            )
    return MemoryError()      # `error` is a MemoryError if Cython could not allocate the traceback of the original exception


def satisfies(own, wanted):
    """Return whether the dtype `own` satisfies the requested dtype `wanted`.

    A requested string or void type without a length, such as ``U``, is satisfied by any length. A requested time type without a
    unit is satisfied by any unit.
    """
    if own == wanted:
        return True
    if own.kind != wanted.kind or wanted.names is not None:
        return False
    return np.datetime_data(wanted)[0] == "generic" if wanted.kind in "mM" else wanted.kind in "SUV" and not wanted.itemsize


def element_types():
    """Return the table of element types.

    Returns
    -------
    list of dict
        One dict per type, with the keys name, typenum, kind, bits (of all lanes of an element), itemsize (bytes), dlpack
        (code, bits, lanes), typestr, format and packed_format (PEP 3118), and arrow (a letter). A value is None if the
        protocol cannot represent the type, or if its code depends on the length, unit or fields of the dtype.
    """
    rows = []
    cdef ElementType* row
    for i in range(_rows):
        row = &_TABLE[i]
        rows.append({
            "name": row.name.decode(),
            "typenum": row.typenum,
            "kind": chr(row.kind),
            "bits": row.bits,
            "itemsize": row.itemsize,
            "dlpack": None if row.dlpack.code == NO_DLPACK else (row.dlpack.code, row.dlpack.bits, row.dlpack.lanes),
            "typestr": None if row.typestr == NULL else row.typestr.decode(),
            "format": None if row.format == NULL else row.format.decode(),
            "arrow": None if row.arrow == 0 else chr(row.arrow),
            "packed_format": None if row.packed_format == NULL else row.packed_format.decode(),
        })
    return rows
