"""From a NumPy dtype to a format of PEP 3118; `format_language` has the language."""

import numpy as np

from arrayhub._core.dtypes import FIRST_USER_TYPENUM, is_native
from arrayhub.adapters.format_language import (
    BY_NATIVE,
    BY_STANDARD,
    FOREIGN,
    MAX_NESTING,
    c_alignment,
    flatten,
    is_sayable,
)

__all__ = ["write_format"]


def write_format(dtype: np.dtype, aligned: bool = True) -> str:
    """Return the PEP 3118 format of a NumPy dtype.

    Parameters
    ----------
    dtype : numpy.dtype
        The type of an element.
    aligned : bool, default True
        Whether every element lies at a multiple of its alignment. Only then may native codes be used, which promise it.

    Returns
    -------
    str
        Native codes without an order (``l`` for a C long) where the type is native, aligned and laid out as in C, so
        that ``memoryview`` can read the elements. Otherwise codes of standard size with their order: ``=q`` for an
        eight-byte integer, because ``=l`` has four bytes; ``>i``; and ``^g`` for what has no standard size. Types of
        one byte have neither order nor alignment. In records all padding is spelled out, ``T{b:a:3xi:b:}``, inside the
        braces where it is trailing, so that every reader finds the size. Plain void ``V6`` is ``6x``, as NumPy writes
        it: the size is true, and nothing else is known.

    Raises
    ------
    BufferError
        The language cannot say the type; the message names the protocols that can.

    Notes
    -----
    Titles and metadata of fields are left out, and so is the subclass of a record. Field names go out in UTF-8.
    """
    native = aligned and c_alignment(dtype) is not None and is_native(dtype)
    return _Writer(native).element(dtype, depth=0)


def _write_error(what: object, instead: str) -> BufferError:
    return BufferError(f"PEP 3118 format: cannot say {what}; {instead}")


class _Writer:
    """Writes formats, remembering the order in force.

    Parameters
    ----------
    native : bool
        Use native codes, whose alignment readers restore; otherwise codes that say size and order, without alignment.
    """

    def __init__(self, native: bool):
        self.native = native
        self.order = "@"

    def element(self, dtype: np.dtype, depth: int) -> str:
        """Return the format of any type: a sub-array, a record or a single value."""
        if dtype.subdtype is not None:
            shape, base = flatten(dtype)
            lengths = ",".join(map(str, shape))
            return f"({lengths}){self.element(base, depth)}"  # the order comes behind the shape, where NumPy looks
        if dtype.names is not None:
            return self.record(dtype, depth + 1)
        return self.value(dtype)

    def record(self, dtype: np.dtype, depth: int) -> str:
        """Return the format of a record, with every byte accounted for."""
        if depth > MAX_NESTING:
            raise _write_error("so many levels of records", f"accepted: at most {MAX_NESTING}")
        parts, end = [], 0
        for name in dtype.names:  # type: ignore[union-attr]
            field, offset = dtype.fields[name][:2]  # type: ignore[index]
            if offset < end:
                raise _write_error(
                    "fields that overlap or are out of order", "copy the array with a dtype whose offsets only grow"
                )
            if not is_sayable(name):
                raise _write_error(f"the field name {name!r}", "rename it: accepted is text without a colon or a null")
            parts += [_padding(offset - end), self.element(field, depth), f":{name}:"]
            end = offset + field.itemsize
        return "".join(["T{", *parts, _padding(dtype.itemsize - end), "}"])

    def value(self, dtype: np.dtype) -> str:
        """Return the code of a single value, with an order where it differs from the one in force."""
        order, code = _code_of(dtype, self.native)
        if order == self.order or dtype.alignment == 1:
            return code
        self.order = order
        return order + code


def _padding(size: int) -> str:
    """Return the code of `size` bytes that are no field."""
    return {0: "", 1: "x"}.get(size, f"{size}x")


def _code_of(dtype: np.dtype, native: bool) -> tuple[str, str]:
    """Return the order and the code of a single value."""
    unaligned = "=" if dtype.isnative else FOREIGN  # an order whose codes have standard sizes
    order = "@" if native else unaligned
    # From that number on, a character is the user type's own affair: ml_dtypes' complex32 has that of Python objects.
    # Its format would be `Ze`, which is read here; NumPy takes it for a half, and tries the buffer first.
    char = "S1" if dtype.char == "c" else dtype.char  # NumPy's name for the code `c`, which memoryview can index
    if dtype.num >= FIRST_USER_TYPENUM or char not in BY_NATIVE:
        raise _write_error(dtype, _who_can_say(dtype))
    row = BY_NATIVE[char]
    if row.says_length:
        unit = np.dtype(row.native + "1").itemsize
        return order, f"{dtype.itemsize // unit}{row.code}"
    if native:
        return order, row.code
    # By kind and size, so that a C long becomes the code that has its size by the standard.
    standard = BY_STANDARD.get(dtype.str[1:])
    if standard is not None:
        return unaligned, standard.code
    if not dtype.isnative:
        raise _write_error(f"{dtype} in foreign byte order", f"__array_interface__ can (typestr {dtype.str!r})")
    return "^", row.code


def _who_can_say(dtype: np.dtype) -> str:
    """Return which protocols can say a type that PEP 3118 cannot, for an error."""
    if dtype.kind == "M":
        return f"__array_interface__ (typestr {dtype.str!r}) and Arrow (timestamp) can"
    if dtype.kind == "m":
        return f"__array_interface__ (typestr {dtype.str!r}) and Arrow (duration) can"
    if dtype.type.__module__ == "ml_dtypes":
        return "DLPack can (__dlpack__)"
    if dtype.kind == "T":
        return "no array protocol can; convert it with astype('U') or astype('S')"
    if dtype.hasobject:
        return "no array protocol can; convert it to a type without references"
    return "no array protocol can; convert it with astype to a type of NumPy's own"
