"""Table of Arrow's format strings. The formats of numbers are in _core/dtypes.

Source: "Data type description -- format strings" of the C data interface's specification.
"""

import numpy as np

from libc.string cimport strcmp, strlen, strncmp

from arrayhub._core cimport dtypes
from arrayhub._core.tree cimport (
    ANY,
    BITS,
    BYTES,
    BYTES_VIEW,
    FLAT,
    FOREIGN,
    LIST,
    NODE_KINDS,
    OPAQUE,
    RECORD,
    REGULAR,
    STRING,
    STRING_VIEW,
)

from arrayhub._core.errors import interface_error

cdef struct Format:
    const char* text         # the format, or its prefix
    bint exact               # whether `text` is the complete format
    int kind                 # kind of node in _core/kinds, or REFUSED
    int width                # size in bytes of an offset, or the largest size of an element
    const char* number       # FLAT: NumPy dtype of the elements, without the size of V; OPAQUE: buffers
    const char* words        # name of the type in messages

# For an opaque format, `number` contains "?" for a bitmap, and a letter for each other buffer. The letter is the size in bytes
# of an item: a digit, G for 16, or d if the format contains the size (see `decimal_width`).

cdef enum:
    REFUSED = -1
    ROWS = 38

cdef Format[ROWS] _TABLE
#                   text     exact  kind         width  number     words
_TABLE[0] = Format(b"b",     True,  BITS,        0,     NULL,      b"bool in bits")
_TABLE[1] = Format(b"u",     True,  STRING,      4,     NULL,      b"utf8")
_TABLE[2] = Format(b"U",     True,  STRING,      8,     NULL,      b"large_utf8")
_TABLE[3] = Format(b"z",     True,  BYTES,       4,     NULL,      b"binary")
_TABLE[4] = Format(b"Z",     True,  BYTES,       8,     NULL,      b"large_binary")
_TABLE[5] = Format(b"vu",    True,  STRING_VIEW, 16,    NULL,      b"utf8_view")
_TABLE[6] = Format(b"vz",    True,  BYTES_VIEW,  16,    NULL,      b"binary_view")
_TABLE[7] = Format(b"+l",    True,  LIST,        4,     NULL,      b"list")
_TABLE[8] = Format(b"+L",    True,  LIST,        8,     NULL,      b"large_list")
_TABLE[9] = Format(b"+vl",   True,  OPAQUE,      4,     b"?44",    b"list_view")
_TABLE[10] = Format(b"+vL",  True,  OPAQUE,      8,     b"?88",    b"large_list_view")
_TABLE[11] = Format(b"+w:",  False, REGULAR,     0,     NULL,      b"fixed_size_list")
_TABLE[12] = Format(b"+s",   True,  RECORD,      0,     NULL,      b"struct")
_TABLE[13] = Format(b"w:",   False, FLAT,        0,     b"V",      b"fixed_size_binary")
_TABLE[14] = Format(b"tdD",  True,  FLAT,        4,     b"i4",     b"date32")
_TABLE[15] = Format(b"tdm",  True,  FLAT,        8,     b"M8[ms]", b"date64")
_TABLE[16] = Format(b"tts",  True,  FLAT,        4,     b"i4",     b"time32[s]")
_TABLE[17] = Format(b"ttm",  True,  FLAT,        4,     b"i4",     b"time32[ms]")
_TABLE[18] = Format(b"ttu",  True,  FLAT,        8,     b"m8[us]", b"time64[us]")
_TABLE[19] = Format(b"ttn",  True,  FLAT,        8,     b"m8[ns]", b"time64[ns]")
_TABLE[20] = Format(b"tss:", False, FLAT,        8,     b"M8[s]",  b"timestamp[s]")
_TABLE[21] = Format(b"tsm:", False, FLAT,        8,     b"M8[ms]", b"timestamp[ms]")
_TABLE[22] = Format(b"tsu:", False, FLAT,        8,     b"M8[us]", b"timestamp[us]")
_TABLE[23] = Format(b"tsn:", False, FLAT,        8,     b"M8[ns]", b"timestamp[ns]")
_TABLE[24] = Format(b"tDs",  True,  FLAT,        8,     b"m8[s]",  b"duration[s]")
_TABLE[25] = Format(b"tDm",  True,  FLAT,        8,     b"m8[ms]", b"duration[ms]")
_TABLE[26] = Format(b"tDu",  True,  FLAT,        8,     b"m8[us]", b"duration[us]")
_TABLE[27] = Format(b"tDn",  True,  FLAT,        8,     b"m8[ns]", b"duration[ns]")
_TABLE[28] = Format(b"tiM",  True,  OPAQUE,      4,     b"?4",     b"interval[months]")
_TABLE[29] = Format(b"d:",   False, OPAQUE,      32,    b"?d",     b"decimal")
_TABLE[30] = Format(b"+ud:", False, OPAQUE,      4,     b"14",     b"dense_union")
_TABLE[31] = Format(b"+r",   True,  OPAQUE,      0,     b"",       b"run_end_encoded")
_TABLE[32] = Format(b"n",    True,  OPAQUE,      0,     b"",       b"null")
_TABLE[33] = Format(b"+m",   True,  LIST,        4,     NULL,      b"map")     # imported as a list
_TABLE[34] = Format(b"_pl",  False, REFUSED,     0,     NULL,      b"a type that only polars defines")
_TABLE[35] = Format(b"+us:", False, OPAQUE,      1,     b"1",      b"sparse_union")
_TABLE[36] = Format(b"tiD",  True,  OPAQUE,      8,     b"?8",     b"interval[days, milliseconds]")
_TABLE[37] = Format(b"tin",  True,  OPAQUE,      16,    b"?G",     b"interval[months, days, nanoseconds]")

# Rows for the formats of numbers, indexed by the letter of the format. Generated from the table of element types.
cdef Format[128] _NUMBERS
cdef const dtypes.ElementType* _row
cdef int _letter
for _letter in range(1, 128):
    _row = dtypes.by_arrow(_letter)
    if _row != NULL:
        _NUMBERS[_letter] = Format(NULL, True, FLAT, <int> _row.itemsize, NULL, _row.name)

# NumPy's dtypes of the rows of kind FLAT, created once: `numpy.dtype(name)` took 0.13 of the 0.6 us in which a short chunk of
# dates was imported (a loop over 10,000 chunks, 2026-11-27). The formats of datetime64 and timedelta64 by dtype.
cdef dict _DTYPES = {}
cdef dict _TIME_FORMATS = {}
cdef const Format* _format
for _number in range(ROWS):
    _format = &_TABLE[_number]
    if _format.number != NULL and not is_opaque(_format) and _format.number[0] != c"V":
        _DTYPES[_format.number] = np.dtype(_format.number.decode())
        if not has_logical_type(_format.text, _format):
            _TIME_FORMATS[_DTYPES[_format.number]] = <bytes> _format.text


cdef const Format* find_format(const char* text) noexcept nogil:
    """Return the table row of a format string, or NULL if the format is unknown."""
    cdef int k
    if text == NULL or text[0] <= 0:      # formats are ASCII
        return NULL
    if text[1] == 0 and _NUMBERS[<int> text[0]].words != NULL:
        return &_NUMBERS[<int> text[0]]
    for k in range(ROWS):
        if text[0] != _TABLE[k].text[0]:
            continue
        if strcmp(text, _TABLE[k].text) == 0:
            return &_TABLE[k]
        if not _TABLE[k].exact and strncmp(text, _TABLE[k].text, strlen(_TABLE[k].text)) == 0:
            return &_TABLE[k]
    return NULL


cdef const Format* format_of_kind(int kind, Py_ssize_t width) noexcept nogil:
    """Return the first row of a kind with the given width, or with any width if `width` is 0."""
    cdef int k
    for k in range(ROWS):
        if _TABLE[k].kind == kind and (width == 0 or _TABLE[k].width == width):
            return &_TABLE[k]
    return NULL


cdef inline bint is_opaque(const Format* row) noexcept nogil:
    return NODE_KINDS[row.kind].properties & FOREIGN != 0


cdef int buffers_of(const Format* row) noexcept nogil:
    """Return the number of buffers of a format, or ANY if the number varies."""
    return <int> strlen(row.number) if is_opaque(row) else NODE_KINDS[row.kind].buffers


cdef int children_of(const Format* row) noexcept nogil:
    """Return the number of children of a format, or ANY if the number varies."""
    if not is_opaque(row):
        return NODE_KINDS[row.kind].children
    if row.text[0] != c"+":
        return 0
    return ANY if row.text[1] == c"u" else 2 if row.text[1] == c"r" else 1


cdef bint has_bitmap(const Format* row) noexcept nogil:
    """Return whether the first buffer of a format is a validity bitmap."""
    return not is_opaque(row) or row.number[0] == c"?"


cdef Py_ssize_t item_size(char letter, const char* text) except -1:
    """Return the size in bytes of an item of a buffer of an opaque format."""
    return decimal_width(text) if letter == c"d" else 16 if letter == c"G" else letter - c"0"


cdef int decimal_width(const char* format) except -1:
    """Return the size in bytes of a decimal with the format ``d:precision,scale`` or ``d:precision,scale,bits``."""
    text = format[: min(<Py_ssize_t> strlen(format), 80)]
    numbers = text[2:].split(b",")
    if len(numbers) not in (2, 3) or any([len(n) > 9 or not n.removeprefix(b"-").isdigit() for n in numbers]):
        raise interface_error("Arrow", "format", text, "'d:precision,scale' or 'd:precision,scale,bits'")
    bits = int(numbers[2]) if len(numbers) == 3 else 128
    if bits not in (32, 64, 128, 256):
        raise interface_error("Arrow", "format", text, "a size of 32, 64, 128 or 256 bits")
    if not 1 <= int(numbers[0]) <= 76:
        raise interface_error("Arrow", "format", text, "a precision of 1 to 76 digits")
    return bits // 8


def layout_of(str meaning not None):
    """Return the layout of an opaque format: whether it has a bitmap, the size of an item of each other buffer, and children.

    The number of children is None for unions.

    Raises
    ------
    InterfaceError
        The format is not the format of an opaque kind.
    """
    cdef bytes text = meaning.encode()
    cdef const Format* row = find_format(text)
    if row == NULL or row.kind == REFUSED or not is_opaque(row):
        raise interface_error("Arrow", "format", meaning, "the format of an opaque array, such as 'n' or '+r'")
    letters = (<bytes> row.number).lstrip(b"?")
    children = children_of(row)
    return has_bitmap(row), tuple([item_size(letter, text) for letter in letters]), None if children < 0 else children


cdef bint has_logical_type(const char* text, const Format* row) noexcept:
    """Return whether the NumPy dtype of the elements does not determine the format.

    This is the case for dates, times of day and timestamps with a time zone.
    """
    if row.number[0] == c"V":
        return False
    return text[1] == c"d" or text[1] == c"t" or (text[1] == c"s" and text[4] != 0)


def type_name(str meaning not None):
    """Return the type name of an Arrow format for messages, such as ``date32`` or ``timestamp[us, UTC]``.

    For an unknown format, return the repr of the format.
    """
    cdef bytes text = meaning.encode()
    cdef const Format* row = find_format(text)
    if row == NULL:
        return repr(meaning)
    cdef str name = row.words.decode()
    return f"{name[:len(name) - 1]}, {meaning[4:]}]" if meaning[:2] == "ts" and meaning[4:] else name


cdef str text_of(const char* text):
    """Return the repr of a format for messages, truncated to 80 characters."""
    if text == NULL:
        return "a NULL format"
    return repr(text[:strlen(text) if strlen(text) < 80 else 80].decode("utf-8", "replace"))
