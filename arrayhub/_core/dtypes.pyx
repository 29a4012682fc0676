"""The one table of element types: one row per type, one column per protocol. Nobody else converts type numbers.

What says more than a number has its codes elsewhere: PEP 3118's language in adapters/format_language, Arrow's times in
adapters/arrow_format.
"""

import sys

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject

from arrayhub._core.cpython.atomics cimport found, seen, set_once

from arrayhub._core.errors import first_line, show

cnp.import_array()

# Where the numbers come from: NumPy's own column (typenum, kind, sizes, typestr) from NumPy itself by its character;
# code and bits from the DLPack 1.3 specification; format from PEP 3118 and the struct module.
# None means that the protocol cannot say the type.
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
    ("long",        "l",  0,    "l",  "=q"),  # `=l` is four bytes whatever the platform
    ("ulong",       "L",  1,    "L",  "=Q"),
    ("longlong",    "q",  0,    "q",  "=q"),
    ("ulonglong",   "Q",  1,    "Q",  "=Q"),
    ("float16",     "e",  2,    "e",  "=e"),
    ("float32",     "f",  2,    "f",  "=f"),
    ("float64",     "d",  2,    "d",  "=d"),
    ("complex64",   "F",  5,    "Zf", "=Zf"),
    ("complex128",  "D",  5,    "Zd", "=Zd"),
    ("longdouble",  "g",  None, "g",  "^g"),  # `=` gives no size for it; `^` is native size without alignment
    ("clongdouble", "G",  None, "Zg", "^Zg"),
    ("bytes",       "S",  None, None, None),  # these five carry a length, a unit or fields: their dtype object says it
    ("str",         "U",  None, None, None),
    ("void",        "V",  None, None, None),
    ("datetime64",  "M",  None, None, None),
    ("timedelta64", "m",  None, None, None),
]

# Types that NumPy does not have. Only DLPack says them, and ml_dtypes has a NumPy dtype for most. The typenums are ours.
# Elements of less than a byte are kept one to a byte, as ml_dtypes keeps them, unless the memory is marked packed.
#
#    name                 typenum  DLPack code, bits  bytes  PEP 3118: aligned, unaligned
_OWN_ROWS = [
    ("bfloat16",           4096,   4,  16,  2,  None, None),
    ("float8_e3m4",        4097,   7,   8,  1,  None, None),
    ("float8_e4m3",        4098,   8,   8,  1,  None, None),
    ("float8_e4m3b11fnuz", 4099,   9,   8,  1,  None, None),
    ("float8_e4m3fn",      4100,   10,  8,  1,  None, None),
    ("float8_e4m3fnuz",    4101,   11,  8,  1,  None, None),
    ("float8_e5m2",        4102,   12,  8,  1,  None, None),
    ("float8_e5m2fnuz",    4103,   13,  8,  1,  None, None),
    ("float8_e8m0fnu",     4104,   14,  8,  1,  None, None),
    ("float6_e2m3fn",      4105,   15,  6,  1,  None, None),
    ("float6_e3m2fn",      4106,   16,  6,  1,  None, None),
    ("float4_e2m1fn",      4107,   17,  4,  1,  None, None),
    ("int4",               4108,   0,   4,  1,  None, None),
    ("uint4",              4109,   1,   4,  1,  None, None),
    ("int2",               4110,   0,   2,  1,  None, None),
    ("uint2",              4111,   1,   2,  1,  None, None),
    ("int1",               4112,   0,   1,  1,  None, None),
    ("uint1",              4113,   1,   1,  1,  None, None),
    ("complex32",          4114,   5,  32,  4,  None, None),     # `Ze` would say it, which NumPy takes for half of it
    ("bcomplex32",         4115,   18, 32,  4,  None, None),     # a pair of bfloat16: kDLBcomplex, dmlc/dlpack#187
]

cdef enum:
    MAX_ROWS = 48
    DLPACK_CODES = 19       # kDLInt, 0, to kDLBcomplex

cdef ElementType _TABLE[MAX_ROWS]
cdef int _rows = 0

# Indexes into the table, each filled from it. 0 marks "no such type", so row numbers are stored plus one.
cdef uint8_t _BY_OWN[MAX_ROWS]
cdef uint8_t _BY_DLPACK[DLPACK_CODES][129]     # [code][bits]
cdef uint8_t _BY_FORMAT[128]         # a single native character
cdef uint8_t _BY_KIND[128][33]       # [kind letter][item size in bytes]

# Arrow's letters by NumPy's kind and the power of two that is the size: C's several names for one size are one type there.
# Its own "b" is bits, which no array of a byte an element is.
_ARROW = {"i": "csil", "u": "CSIL", "f": " efg"}
cdef uint8_t _BY_ARROW[128]

_strings = []                        # keeps the table's C strings alive
cdef PyObject* _dtypes[MAX_ROWS]     # of each row the NumPy dtype, made on first use
cdef dict _own_typenums = {}                   # ml_dtypes' scalar type -> our typenum, met so far


cdef const char* _keep(object text):
    if text is None:
        return NULL
    encoded = text.encode()
    _strings.append(encoded)
    return encoded


cdef ElementType* _new_row(str name, int typenum, code, int bits, Py_ssize_t itemsize, fmt, packed):
    global _rows
    cdef ElementType* row = &_TABLE[_rows]
    _rows += 1
    row.name = _keep(name)
    row.typenum = typenum
    row.bits = bits
    row.itemsize = itemsize
    row.dlpack = DLDataType(NO_DLPACK if code is None else code, 0 if code is None else bits, 1)
    row.format = _keep(fmt)
    row.packed_format = _keep(packed)
    return row


cdef int _add_numpy_row(name, char, code, fmt, packed) except -1:
    dtype = np.dtype(char)
    if char in "lL" and dtype.itemsize == 4:
        packed = {"l": "=i", "L": "=I"}[char]
    cdef ElementType* row = _new_row(name, dtype.num, code, dtype.itemsize * 8, dtype.itemsize, fmt, packed)
    row.kind = ord(dtype.kind)
    row.alignment = dtype.alignment
    row.typestr = _keep(dtype.str[1:]) if dtype.kind in "biufc" else NULL
    row.arrow = 0
    if dtype.kind in _ARROW and dtype.itemsize in (1, 2, 4, 8):
        row.arrow = ord(_ARROW[dtype.kind][dtype.itemsize.bit_length() - 1])
    numpy_rows[dtype.num] = row
    if row.typestr == NULL:
        return 0
    # Where C has two names for one size, NumPy's canonical one (np.dtype("int64").num) stands for it.
    if dtype.num == np.dtype(dtype.str).num:
        _BY_KIND[<uint8_t> row.kind][dtype.itemsize] = _rows
        _BY_ARROW[<uint8_t> row.arrow] = _rows
        if code is not None:
            _BY_DLPACK[row.dlpack.code][row.dlpack.bits] = _rows
    if len(fmt) == 1:
        _BY_FORMAT[ord(fmt)] = _rows
    return 0


cdef int _add_own_row(name, typenum, code, bits, itemsize, fmt, packed) except -1:
    cdef ElementType* row = _new_row(name, typenum, code, bits, itemsize, fmt, packed)
    row.kind = c"E"
    row.alignment = 2 if itemsize == 4 else itemsize   # both are pairs of two-byte numbers
    row.typestr = NULL
    row.arrow = 0
    _BY_OWN[typenum - FIRST_OWN_TYPENUM] = _rows
    _BY_DLPACK[code][bits] = _rows
    return 0


for _name, _char, _code, _format, _packed in _NUMPY_ROWS:
    _add_numpy_row(_name, _char, _code, _format, _packed)
for _name, _typenum, _code, _bits, _itemsize, _format, _packed in _OWN_ROWS:
    _add_own_row(_name, _typenum, _code, _bits, _itemsize, _format, _packed)


cdef inline const ElementType* _at(int number) noexcept nogil:
    return NULL if number == 0 else &_TABLE[number - 1]


cdef const ElementType* by_own_typenum(int typenum) noexcept nogil:
    """The row of a type number of ours; NULL where there is none."""
    if FIRST_OWN_TYPENUM <= typenum < FIRST_OWN_TYPENUM + MAX_ROWS:
        return _at(_BY_OWN[typenum - FIRST_OWN_TYPENUM])
    return NULL


cdef const ElementType* by_dlpack(int code, int bits) noexcept nogil:
    """The row of a DLPack type of one lane; NULL where there is none."""
    return _at(_BY_DLPACK[code][bits]) if 0 <= code < DLPACK_CODES and 0 <= bits <= 128 else NULL


cdef const ElementType* by_format(int letter) noexcept nogil:
    """The row of a single native PEP 3118 character; NULL where there is none."""
    return _at(_BY_FORMAT[letter]) if 0 <= letter < 128 else NULL


cdef const ElementType* by_arrow(int letter) noexcept nogil:
    """The row of a number that Arrow's format gives by one letter; NULL where there is none."""
    return _at(_BY_ARROW[letter]) if 0 < letter < 128 else NULL


cdef const ElementType* by_typestr(int kind, Py_ssize_t itemsize) noexcept nogil:
    """The row of a numeric typestr in native byte order; NULL where the dtype object must say it."""
    return _at(_BY_KIND[kind][itemsize]) if 0 <= kind < 128 and 0 <= itemsize <= 32 else NULL


cdef const ElementType* by_plain_dtype(object dtype) noexcept:
    """The row of a NumPy dtype of numbers in native byte order, read off its struct; NULL for every other dtype."""
    cdef const ElementType* row
    if not isinstance(dtype, cnp.dtype) or (<cnp.dtype> dtype).byteorder == c">":
        return NULL
    row = by_typenum((<cnp.dtype> dtype).type_num) if (<cnp.dtype> dtype).type_num < NUMPY_TYPENUMS else NULL
    return row if row != NULL and row.typestr != NULL else NULL


cdef const ElementType* by_dtype(object dtype):
    """The row of a NumPy dtype; NULL for objects, StringDType and foreign user types.

    ml_dtypes' types are known by their scalar type, because everything else about them lies: their kind is V and
    their character is shared.
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
    """Whether an element is of a type that another library has added to NumPy, or a field of it is. Their type strings say
    something else: '<V2' of ml_dtypes' bfloat16, '<f1' of its float8_e5m2."""
    dtype = dtype.base
    if dtype.names is None:
        return not 0 <= (<int> dtype.num) < FIRST_USER_TYPENUM
    for name in dtype.names:
        if has_user_types(dtype.fields[name][0]):
            return True
    return False


cpdef bint is_native(object dtype) except -1:
    """Whether every value of a NumPy dtype is in the machine's byte order, those of sub-arrays too, which NumPy's own
    ``isnative`` overlooks."""
    dtype = dtype.base
    if dtype.names is None:
        return dtype.isnative
    for name in dtype.names:
        if not is_native(dtype.fields[name][0]):
            return False
    return True


def shares_bytes(dtype):
    """Whether fields of a record lie in the same bytes: swapped in one they would be in the other, too."""
    if dtype.base.names is None:
        return False
    named = [dtype.base.fields[name] for name in dtype.base.names]
    fields = sorted([(offset, field) for field, offset, *_ in named], key=lambda entry: entry[0])
    ends = [offset + field.itemsize for offset, field in fields]
    apart = all([end <= offset for end, (offset, _) in zip(ends, fields[1:], strict=False)])
    return not apart or any([shares_bytes(field) for _, field in fields])


cdef object dtype_of(const ElementType* row):
    """The NumPy dtype of a row, made on first use.

    Raises
    ------
    TypeError
        NumPy has no such type, and neither has ml_dtypes, or ml_dtypes is not installed.
    """
    cdef Py_ssize_t number = row - _TABLE
    cdef PyObject* dtype = seen(&_dtypes[number])
    return <object> (set_once(&_dtypes[number], NULL, _make_dtype(row)) if dtype == NULL else dtype)


def numpy_dtype(int typenum):
    """Return the NumPy dtype of a row's `typenum`; TypeError where neither NumPy nor ml_dtypes has one."""
    cdef const ElementType* row = by_typenum(typenum)
    if row == NULL:
        raise TypeError(f"dtype: typenum is {typenum}; accepted: those of element_types()")
    return dtype_of(row)


cdef object _make_dtype(const ElementType* row):
    if row.typenum < NUMPY_TYPENUMS:
        return cnp.PyArray_DescrFromType(row.typenum)
    name = row.name.decode()
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            f"dtype: NumPy has no {name}; install ml_dtypes for one. Shape, strides and DLPack work without it"
        ) from None
    if not hasattr(ml_dtypes, name):
        raise TypeError(f"dtype: neither NumPy nor ml_dtypes {ml_dtypes.__version__} has {name}; DLPack can still say it")
    return np.dtype(getattr(ml_dtypes, name))


_OWN_NAMES = {name: typenum for name, typenum, *_ in _OWN_ROWS}
_REFUSALS = (TypeError, ValueError, OverflowError, SyntaxError)     # of numpy.dtype; the last one of strings such as "f4,,"
_DTYPE_FORMS = (str, type, np.dtype, tuple, list, dict, bytes, type(None))


def requested_dtype(object said):
    """Return ``numpy.dtype(said)``; what is no dtype is refused here, since NumPy's refusal asks for its representation."""
    if isinstance(said, _DTYPE_FORMS) or hasattr(said, "dtype") or hasattr(said, "__numpy_dtype__"):
        try:
            return np.dtype(said)
        except UnicodeError:     # a string that is no text, which NumPy tries to encode
            pass
        except _REFUSALS as error:
            if type(said) is not str or said not in _OWN_NAMES:
                if not isinstance(said, _DTYPE_FORMS):     # an error of its own
                    raise
                raise refused(said, error) from error
        if type(said) is str and said in _OWN_NAMES:
            return _make_dtype(by_typenum(_OWN_NAMES[said]))
    cls = type(said)
    another = f" (for {cls.__module__}.float32 that is the string float32)" if cls.__name__ == "dtype" else ""
    raise TypeError(
        f"dtype: {show(said)} is no data type; accepted: what numpy.dtype takes, such as 'f4' or numpy.float32{another}"
    )


cdef object refused(object said, object error):
    """NumPy's refusal of a dtype, of the same class, with the argument's name and value."""
    for kind in _REFUSALS:
        if isinstance(error, kind):
            return kind(
                f"dtype: {show(said)} is no data type ({first_line(error)}); accepted: what numpy.dtype takes, such as 'f4'"
            )
    return MemoryError()      # Cython puts one in the place of the exception where it has no memory for the traceback


def satisfies(own, wanted):
    """Whether elements of a dtype are what is asked for, which may be strings of any length, or times of any unit."""
    if own == wanted:
        return True
    if own.kind != wanted.kind or wanted.names is not None:
        return False
    return np.datetime_data(wanted)[0] == "generic" if wanted.kind in "mM" else wanted.kind in "SUV" and not wanted.itemsize


_SPEAKERS = {
    "numbers": "every protocol",
    "own": "DLPack (USMArray.__dlpack__, asarray(x, via='dlpack'))",
    "host": "the array interface and, units aside, PEP 3118 (numpy.asarray)",
}


cdef str names_of(str protocol):
    """Which protocols can say a group of types, in words for an error message."""
    return _SPEAKERS[protocol]


def element_types():
    """Return the table as Python sees it.

    Returns
    -------
    list of dict
        A row per type: name, typenum, kind, bits (of one element), itemsize (bytes), dlpack (code, bits, lanes) or
        None, typestr or None, format and packed_format (PEP 3118) or None, arrow (a letter) or None.
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
            "dlpack": None if row.dlpack.code == NO_DLPACK else (row.dlpack.code, row.dlpack.bits, 1),
            "typestr": None if row.typestr == NULL else row.typestr.decode(),
            "format": None if row.format == NULL else row.format.decode(),
            "arrow": None if row.arrow == 0 else chr(row.arrow),
            "packed_format": None if row.packed_format == NULL else row.packed_format.decode(),
        })
    return rows
