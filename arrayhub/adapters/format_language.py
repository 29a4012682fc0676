"""Format language of PEP 3118: the table of codes, and functions that the reader and the writer share.

The table of element types in _core/dtypes also contains the codes of numbers.

The language is that of the ``struct`` module with the additions of PEP 3118::

    format  = { item }
    item    = [ order ] [ shape ] [ order ] [ count ] element [ ":" name ":" ]
    shape   = "(" length { "," length } ")"
    element = code | "T{" { item } "}"
    order   = "@" | "=" | "<" | ">" | "!" | "^"

White space is allowed between items and around the lengths of a shape. An order applies until the next order, also
across braces:

===============  ================  ==============================  ==========
order            byte order        sizes                           alignment
===============  ================  ==============================  ==========
``@``, or none   native            native (of the C compiler)      as in C
``^``            native            native (of the C compiler)      none
``=``            native            standard                        none
``<``            little-endian     standard                        none
``>``, ``!``     big-endian        standard                        none
===============  ================  ==============================  ==========

`format_reader` converts a format to a NumPy dtype, and `format_writer` converts a dtype to a format. Where PEP 3118 is
ambiguous, these modules follow NumPy's reader, because most formats are written for it. The modules are not optimized,
because the compiled adapter handles one-character formats itself and caches the results for other formats.
"""

import sys
from typing import NamedTuple

import numpy as np


class Code(NamedTuple):
    """Row of the table of codes: the code of an element type, and NumPy's name of the type."""

    code: str
    native: str  # NumPy's name at native size, after `@` and `^`
    standard: str | None  # NumPy's name at standard size, after `=`, `<`, `>` and `!`, or None
    count_is_length: bool = False  # the number before the code is the length of one element, not a repetition


# Standard sizes are defined by the struct module. PEP 3118 adds the Z codes, g and w. If two rows have the same NumPy
# name, the writer uses the first row.
CODES = (
    Code("?", "?", "b1"),
    Code("b", "b", "i1"),
    Code("B", "B", "u1"),
    Code("h", "h", "i2"),
    Code("H", "H", "u2"),
    Code("i", "i", "i4"),
    Code("I", "I", "u4"),
    Code("l", "l", "i4"),  # four bytes by the standard, independent of the size of a C long
    Code("L", "L", "u4"),
    Code("q", "q", "i8"),
    Code("Q", "Q", "u8"),
    Code("n", "p", None),  # Py_ssize_t and size_t
    Code("N", "P", None),
    Code("P", "P", None),  # void*, read as an integer
    Code("e", "e", "f2"),
    Code("f", "f", "f4"),
    Code("d", "d", "f8"),
    Code("g", "g", None),
    Code("Ze", "complex32", None),  # ml_dtypes' name; NumPy does not have this type
    Code("Zf", "F", "c8"),
    Code("Zd", "D", "c16"),
    Code("Zg", "G", None),
    Code("F", "F", "c8"),  # complex types in struct and ctypes from Python 3.14 on
    Code("D", "D", "c16"),
    Code("G", "G", None),
    Code("c", "S1", "S1"),
    Code("s", "S", "S", count_is_length=True),
    Code("w", "U", "U", count_is_length=True),
    Code("x", "V", "V", count_is_length=True),
    Code("p", "V", "V", count_is_length=True),  # Pascal string, read as raw bytes because NumPy does not support it
)
BY_CODE = {row.code: row for row in CODES}
BY_NATIVE = {row.native: row for row in reversed(CODES)}
BY_STANDARD = {row.standard: row for row in reversed(CODES) if row.standard is not None}

ORDERS = "@=<>!^"
FOREIGN = ">" if sys.byteorder == "little" else "<"  # the non-native byte order
MAX_NESTING = 32  # maximum depth of nested records, because each level uses a few frames of Python's stack


def flatten(dtype: np.dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and the element type of a sub-array dtype, including the dimensions of nested sub-arrays."""
    shape: tuple[int, ...] = ()
    while dtype.subdtype is not None:
        dtype, inner = dtype.subdtype
        shape += inner
    return shape, dtype


def c_alignment(dtype: np.dtype, depth: int = 0) -> int | None:
    """Return the alignment of a type in C, or None if a C compiler would not align all fields at their offsets.

    Return None if the offset of a field, or the size of a record, is not a multiple of the alignment. Also return None
    if records are nested more than `MAX_NESTING` levels deep. ``numpy.dtype.alignment`` is not sufficient, because it
    is 1 for every structured dtype that was created without ``align=True``.
    """
    _, dtype = flatten(dtype)
    if dtype.names is None:
        return dtype.alignment
    if depth > MAX_NESTING:
        return None
    alignment = 1
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]  # type: ignore[index]
        own = c_alignment(field, depth + 1)
        if own is None or offset % own:
            return None
        alignment = max(alignment, own)
    return alignment if dtype.itemsize % alignment == 0 else None


def is_encodable(name: str) -> bool:
    """Return whether a field name can appear in a format string.

    The name must be encodable as UTF-8 and contain no colon or NUL.
    """
    return not any(letter in ":\0" or "\ud800" <= letter <= "\udfff" for letter in name)
