"""Convert a NumPy dtype to a PEP 3118 format. `format_language` describes the language."""

import numpy as np

from arrayhub._core.dtypes import FIRST_USER_TYPENUM, is_native
from arrayhub._core.errors import Refusal
from arrayhub.adapters.format_language import (
    BY_NATIVE,
    BY_STANDARD,
    FOREIGN,
    MAX_NESTING,
    c_alignment,
    flatten,
    is_encodable,
)

__all__ = ["write_format"]


def write_format(dtype: np.dtype, aligned: bool = True) -> str:
    """Return the PEP 3118 format of a NumPy dtype.

    Parameters
    ----------
    dtype : numpy.dtype
        The type of an element.
    aligned : bool, default True
        Whether every element is aligned. Native codes imply alignment, so they are used only for aligned elements.

    Returns
    -------
    str
        - A type in native byte order, aligned as in C, has native codes without an order, such as ``l`` for a C long.
          ``memoryview`` can index elements with such a code.
        - Other types have codes of standard size after an order, such as ``>i``, or ``=q`` for int64 (``=l`` has four
          bytes). Codes without a standard size follow ``^``, as in ``^g``. Codes of one byte do not need an order.
        - In records, all padding is explicit, as in ``T{b:a:3xi:b:}``. Trailing padding is inside the braces, so that
          every reader computes the same size. Plain void ``V6`` is ``6x``, as in NumPy.

    Raises
    ------
    BufferError
        The language cannot represent the type. The message names a protocol or a conversion to use instead.

    Notes
    -----
    The format does not include titles and metadata of fields, or the subclass of a record. Field names are encoded in
    UTF-8.
    """
    native = aligned and c_alignment(dtype) is not None and is_native(dtype)
    return _Writer(native).element(dtype, depth=0)


def _write_error(what: object, instead: str) -> BufferError:
    return Refusal("PEP 3118 format", f"cannot represent {what}; {instead}")


class _Writer:
    """Writer of one format. An order character such as ``<`` is written only where the order changes.

    Parameters
    ----------
    native : bool
        Whether to write native codes, which imply alignment. If false, the codes follow an order without alignment.
    """

    def __init__(self, native: bool):
        self.native = native
        self.order = "@"

    def element(self, dtype: np.dtype, depth: int) -> str:
        """Return the format of any type: a sub-array, a record or a single value."""
        if dtype.subdtype is not None:
            shape, base = flatten(dtype)
            lengths = ",".join(map(str, shape))
            return f"({lengths}){self.element(base, depth)}"  # NumPy's reader expects the order after the shape
        if dtype.names is not None:
            return self.record(dtype, depth + 1)
        return self.value(dtype)

    def record(self, dtype: np.dtype, depth: int) -> str:
        """Return the format of a record, with explicit padding."""
        if depth > MAX_NESTING:
            raise _write_error(f"more than {MAX_NESTING} levels of records", f"accepted: at most {MAX_NESTING}")
        parts, end = [], 0
        for name in dtype.names:  # type: ignore[union-attr]
            field, offset = dtype.fields[name][:2]  # type: ignore[index]
            if offset < end:
                raise _write_error(
                    "fields that overlap or are out of order", "copy the array to a dtype with increasing offsets"
                )
            if not is_encodable(name):
                raise _write_error(
                    f"the field name {name!r}", "rename the field; accepted: text without a colon or a null character"
                )
            parts += [_padding(offset - end), self.element(field, depth), f":{name}:"]
            end = offset + field.itemsize
        return "".join(["T{", *parts, _padding(dtype.itemsize - end), "}"])

    def value(self, dtype: np.dtype) -> str:
        """Return the code of a single value, preceded by its order if the order differs from the current order."""
        order, code = _code_of(dtype, self.native)
        if order == self.order or dtype.alignment == 1:
            return code
        self.order = order
        return order + code


def _padding(size: int) -> str:
    """Return the code of `size` bytes of padding."""
    return {0: "", 1: "x"}.get(size, f"{size}x")


def _code_of(dtype: np.dtype, native: bool) -> tuple[str, str]:
    """Return the order and the code of a single value."""
    unaligned = "=" if dtype.isnative else FOREIGN  # an order whose codes have standard sizes
    order = "@" if native else unaligned
    # The character of a user-defined dtype is arbitrary, so it does not determine the code. For example, ml_dtypes'
    # complex32 has the character of Python objects. complex32 is not exported, although the code `Ze` exists, because
    # NumPy tries the buffer protocol first and reads `Ze` as a half float.
    char = "S1" if dtype.char == "c" else dtype.char  # NumPy's name for the code `c`, which memoryview can index
    if dtype.num >= FIRST_USER_TYPENUM or char not in BY_NATIVE:
        raise _write_error(dtype, _alternatives(dtype))
    row = BY_NATIVE[char]
    if row.count_is_length:
        unit = np.dtype(row.native + "1").itemsize
        return order, f"{dtype.itemsize // unit}{row.code}"
    if native:
        return order, row.code
    # Look up kind and size, so that a C long becomes the code with the same standard size.
    standard = BY_STANDARD.get(dtype.str[1:])
    if standard is not None:
        return unaligned, standard.code
    if not dtype.isnative:
        raise _write_error(f"{dtype} in swapped byte order", f"__array_interface__ can (typestr {dtype.str!r})")
    return "^", row.code


def _alternatives(dtype: np.dtype) -> str:
    """Return the end of an error text: the protocols that can represent a type that PEP 3118 cannot."""
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
