"""Table of Arrow's format strings. The formats of numbers are in _core/dtypes.

Source: "Data type description -- format strings" of the C data interface's specification.
"""

from libc.string cimport strcmp, strlen, strncmp

from arrayhub._core cimport dtypes
from arrayhub._core.tree cimport (
    BITS,
    BYTES,
    BYTES_VIEW,
    DECIMAL,
    FLAT,
    INTERVAL,
    LIST,
    LIST_VIEW,
    NODE_KINDS,
    NULLS,
    RECORD,
    REGULAR,
    RUN_END,
    STRING,
    STRING_VIEW,
    TYPES,
    UNION,
)

cdef struct Format:
    const char* text         # the format, or its prefix
    bint exact               # whether `text` is the complete format
    int kind                 # kind of node in _core/kinds, or REFUSED
    int width                # size in bytes of an offset, or of an element of fixed size; UNION: 4 if dense, 1 if sparse
    const char* number       # dtype that `build_flat` creates: V bytes, i int32, M and m times, I interval, d decimal
    const char* words        # name of the type in messages

cdef enum:
    REFUSED = -1
    ROWS = 38

cdef Format[ROWS] _TABLE
#                   text    exact  kind         width  number   words
_TABLE[0] = Format(b"b",    True,  BITS,        0,     NULL,    b"bool in bits")
_TABLE[1] = Format(b"u",    True,  STRING,      4,     NULL,    b"utf8")
_TABLE[2] = Format(b"U",    True,  STRING,      8,     NULL,    b"large_utf8")
_TABLE[3] = Format(b"z",    True,  BYTES,       4,     NULL,    b"binary")
_TABLE[4] = Format(b"Z",    True,  BYTES,       8,     NULL,    b"large_binary")
_TABLE[5] = Format(b"vu",   True,  STRING_VIEW, 16,    NULL,    b"utf8_view")
_TABLE[6] = Format(b"vz",   True,  BYTES_VIEW,  16,    NULL,    b"binary_view")
_TABLE[7] = Format(b"+l",   True,  LIST,        4,     NULL,    b"list")
_TABLE[8] = Format(b"+L",   True,  LIST,        8,     NULL,    b"large_list")
_TABLE[9] = Format(b"+vl",  True,  LIST_VIEW,   4,     NULL,    b"list_view")
_TABLE[10] = Format(b"+vL", True,  LIST_VIEW,   8,     NULL,    b"large_list_view")
_TABLE[11] = Format(b"+w:", False, REGULAR,     0,     NULL,    b"fixed_size_list")
_TABLE[12] = Format(b"+s",  True,  RECORD,      0,     NULL,    b"struct")
_TABLE[13] = Format(b"w:",  False, FLAT,        0,     b"V",    b"fixed_size_binary")
_TABLE[14] = Format(b"tdD", True,  FLAT,        4,     b"i",    b"date32")
_TABLE[15] = Format(b"tdm", True,  FLAT,        8,     b"M",    b"date64")
_TABLE[16] = Format(b"tts", True,  FLAT,        4,     b"i",    b"time32[s]")
_TABLE[17] = Format(b"ttm", True,  FLAT,        4,     b"i",    b"time32[ms]")
_TABLE[18] = Format(b"ttu", True,  FLAT,        8,     b"m",    b"time64[us]")
_TABLE[19] = Format(b"ttn", True,  FLAT,        8,     b"m",    b"time64[ns]")
_TABLE[20] = Format(b"tss:", False, FLAT,       8,     b"M",    b"timestamp[s]")
_TABLE[21] = Format(b"tsm:", False, FLAT,       8,     b"M",    b"timestamp[ms]")
_TABLE[22] = Format(b"tsu:", False, FLAT,       8,     b"M",    b"timestamp[us]")
_TABLE[23] = Format(b"tsn:", False, FLAT,       8,     b"M",    b"timestamp[ns]")
_TABLE[24] = Format(b"tDs", True,  FLAT,        8,     b"m",    b"duration[s]")
_TABLE[25] = Format(b"tDm", True,  FLAT,        8,     b"m",    b"duration[ms]")
_TABLE[26] = Format(b"tDu", True,  FLAT,        8,     b"m",    b"duration[us]")
_TABLE[27] = Format(b"tDn", True,  FLAT,        8,     b"m",    b"duration[ns]")
_TABLE[28] = Format(b"tiM", True,  INTERVAL,    4,     b"I",    b"interval[months]")
_TABLE[29] = Format(b"d:",  False, DECIMAL,     32,    b"d",    b"decimal")      # the maximum width, see `decimal_width`
_TABLE[30] = Format(b"+ud:", False, UNION,      4,     NULL,    b"dense_union")
_TABLE[31] = Format(b"+r",  True,  RUN_END,     0,     NULL,    b"run_end_encoded")
_TABLE[32] = Format(b"n",   True,  NULLS,       0,     NULL,    b"null")
_TABLE[33] = Format(b"+m",  True,  LIST,        4,     NULL,    b"map")     # imported as a list
_TABLE[34] = Format(b"_pl", False, REFUSED,     0,     NULL,    b"a type that only polars defines")
_TABLE[35] = Format(b"+us:", False, UNION,      1,     NULL,    b"sparse_union")
_TABLE[36] = Format(b"tiD", True,  INTERVAL,    8,     b"I",    b"interval[days, milliseconds]")
_TABLE[37] = Format(b"tin", True,  INTERVAL,    16,    b"I",    b"interval[months, days, nanoseconds]")

# Rows for the formats of numbers, indexed by the letter of the format. Generated from the table of element types.
cdef Format[128] _NUMBERS
cdef const dtypes.ElementType* _row
cdef int _letter
for _letter in range(1, 128):
    _row = dtypes.by_arrow(_letter)
    if _row != NULL:
        _NUMBERS[_letter] = Format(NULL, True, FLAT, <int> _row.itemsize, NULL, _row.name)

# NumPy's units by Arrow's letters.
cdef dict _UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


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


cdef int buffers_of(const Format* row) noexcept nogil:
    """Return the number of buffers of a format, or ANY if the number varies. A sparse union does not have offsets."""
    return 1 if NODE_KINDS[row.kind].properties & TYPES and row.width == 1 else NODE_KINDS[row.kind].buffers


cdef str unit_of(const char* text):
    """Return NumPy's unit for the format of a time."""
    return _UNITS[chr(text[2])]


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
