"""The format language of PEP 3118: its codes, and what its reader and its writer both ask of a type.

The letter of a lone number is a column of the table of element types too, in _core/dtypes.

The language is that of the ``struct`` module with the additions of PEP 3118::

    format  = { item }
    item    = [ order ] [ shape ] [ order ] [ count ] element [ ":" name ":" ]
    shape   = "(" length { "," length } ")"
    element = code | "T{" { item } "}"
    order   = "@" | "=" | "<" | ">" | "!" | "^"

White space may stand between items. An order holds until the next one, also across braces:

===============  ================  ==============================  ==========
order            byte order        sizes                           alignment
===============  ================  ==============================  ==========
``@``, or none   the machine's     those of the C compiler         as in C
``^``            the machine's     those of the C compiler         none
``=``            the machine's     standard                        none
``<``            little-endian     standard                        none
``>``, ``!``     big-endian        standard                        none
===============  ================  ==============================  ==========

`format_reader` goes from a format to a NumPy dtype, and `format_writer` from a dtype to a format. Where PEP 3118 leaves
a question open, NumPy's reader decides, because most formats are written for it. The compiled adapter answers
one-character formats by itself and remembers what it gets from here, so nothing here is fast.
"""

import sys
from typing import NamedTuple

import numpy as np


class Code(NamedTuple):
    """A row of the table of codes: how the element is called here and in NumPy."""

    code: str
    native: str  # NumPy's name at native size, after `@` and `^`
    standard: str | None  # NumPy's name at standard size, after `=`, `<`, `>` and `!`; None: the size has no standard
    says_length: bool = False  # the number before the code is a length in elements of NumPy's name, not a repetition


# The codes. Standard sizes are those of the struct module; the Z codes, g and w are PEP 3118's own. Where two rows lead
# to the same NumPy name, the first is the one that is written.
CODES = (
    Code("?", "?", "b1"),
    Code("b", "b", "i1"),
    Code("B", "B", "u1"),
    Code("h", "h", "i2"),
    Code("H", "H", "u2"),
    Code("i", "i", "i4"),
    Code("I", "I", "u4"),
    Code("l", "l", "i4"),  # four bytes by the standard, whatever a C long is on the machine
    Code("L", "L", "u4"),
    Code("q", "q", "i8"),
    Code("Q", "Q", "u8"),
    Code("n", "p", None),  # Py_ssize_t and size_t
    Code("N", "P", None),
    Code("P", "P", None),  # void*: the address as a number
    Code("e", "e", "f2"),
    Code("f", "f", "f4"),
    Code("d", "d", "f8"),
    Code("g", "g", None),
    Code("Ze", "complex32", None),  # ml_dtypes' name: the one element here that NumPy does not have
    Code("Zf", "F", "c8"),
    Code("Zd", "D", "c16"),
    Code("Zg", "G", None),
    Code("F", "F", "c8"),  # struct and ctypes from Python 3.14 on call the complex types so
    Code("D", "D", "c16"),
    Code("G", "G", None),
    Code("c", "S1", "S1"),
    Code("s", "S", "S", says_length=True),
    Code("w", "U", "U", says_length=True),
    Code("x", "V", "V", says_length=True),
    Code("p", "V", "V", says_length=True),  # its first byte is a length, which no NumPy type knows: raw bytes
)
BY_CODE = {row.code: row for row in CODES}
BY_NATIVE = {row.native: row for row in reversed(CODES)}
BY_STANDARD = {row.standard: row for row in reversed(CODES) if row.standard is not None}

ORDERS = "@=<>!^"
FOREIGN = ">" if sys.byteorder == "little" else "<"  # the order that is not the machine's
MAX_NESTING = 32  # records within records; each costs a few frames of Python's stack


def flatten(dtype: np.dtype) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and the element of a type; NumPy keeps a sub-array of sub-arrays as two levels."""
    shape: tuple[int, ...] = ()
    while dtype.subdtype is not None:
        dtype, inner = dtype.subdtype
        shape += inner
    return shape, dtype


def c_alignment(dtype: np.dtype, depth: int = 0) -> int | None:
    """Return the alignment that C gives a type, or None where C would lay it out otherwise.

    NumPy's own ``alignment`` does not do: it is 1 for every record that was not made with ``align=True``. A type that
    nests too deeply for a format is not looked into further, and counts as laid out otherwise.
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


def is_sayable(name: str) -> bool:
    """Whether a C string in UTF-8 can carry the name of a field."""
    return not any(letter in ":\0" or "\ud800" <= letter <= "\udfff" for letter in name)
