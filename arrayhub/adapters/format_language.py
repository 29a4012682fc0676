"""Conversion between PEP 3118 formats and NumPy dtypes. NumPy reads and writes the formats of single values.

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

The module is not optimized, because the compiled adapter handles one-character formats itself and caches the results
for other formats.
"""

import re
import struct
import sys
from typing import Any

import numpy as np

from arrayhub._core.dtypes import FIRST_USER_TYPENUM, is_native, read_format_by_numpy
from arrayhub._core.errors import InterfaceError, Refusal

__all__ = ["parse_format", "write_format"]

ORDERS = "@=<>!^"
NATIVE, FOREIGN = "<>" if sys.byteorder == "little" else "><"
MAX_NESTING = 32  # maximum depth of nested records, because each level uses a few frames of Python's stack
MAX_ITEMS = 4096  # maximum number of items at all levels, because NumPy's time to name n fields grows with n**2

_SHOWN = 200  # maximum number of characters of a format or a type in an error message
_WITHOUT_SPACE = str.maketrans("", "", " \t\n\r\f\v")
_TOKEN = re.compile(
    r"\}|(?P<first>[@=<>!^]?)(?P<shape>(?:\([0-9,]+\))?)(?P<order>[@=<>!^]?)(?P<count>[0-9]{0,10})"
    r"(?P<code>T\{|Z[fdg]|[?cbBhHiIlLqQnNPefdgFDGswx])"
)
_ACCEPTED = "the codes ? c b B h H i I l L q Q n N P e f d g Zf Zd Zg F D G s w x and T{...}"

# NumPy's spelling of the codes that it does not read: the integers of the size of a pointer, and the complex types of
# struct and ctypes from Python 3.14 on.
_SIGNED = "l" if struct.calcsize("l") == struct.calcsize("P") else "q"
_IN_NUMPY = {"n": _SIGNED, "N": _SIGNED.upper(), "P": _SIGNED.upper(), "F": "Zf", "D": "Zd", "G": "Zg"}
_WITHOUT_STANDARD_SIZE = ("n", "N", "P", "g", "Zg", "G")


# ---- Reading ---------------------------------------------------------------------------------------------------------


def parse_format(format: str, itemsize: int) -> np.dtype:
    """Return the NumPy dtype that a PEP 3118 format describes.

    Parameters
    ----------
    format : str
        The format, decoded from UTF-8. Field names may be any text without a colon.
    itemsize : int
        The exporter's size of an element in bytes.

    Returns
    -------
    numpy.dtype
        A dtype of size `itemsize`. The dtype is structured if the format has several items or one named item, with or
        without enclosing ``T{...}``. Unnamed fields get NumPy's names f0, f1, ... If the format has one unnamed item,
        the result is the dtype of the item: for ``(2,3)f`` and ``3i``, a sub-array dtype of shape (2, 3) or (3,).

    Raises
    ------
    InterfaceError
        The format is invalid, NumPy does not have the type, or the size of the described type differs from `itemsize`.

    Notes
    -----
    NumPy reads the format, with these differences:

    - ``6x`` alone is ``V6``, six raw bytes. NumPy writes ``6x`` for ``V6``, but reads ``6x`` as a record without
      fields, which is ``T{6x}`` here.
    - ``n N P`` are integers of the size of a pointer, and ``F D G`` are complex. ``Ze`` alone is ml_dtypes' complex32,
      which NumPy does not have.
    - An order may precede a shape.
    - ``g Zg G n N P`` do not have a standard size. After ``=`` and the native byte order (``<`` or ``>``), they have
      the native size, because ctypes writes formats such as ``<g`` and ``<P``. In the other byte order, they raise an
      error.
    - `itemsize` may differ from the described size by the trailing padding of the outermost record:

      - The record is shortened if `itemsize` excludes the padding that the order ``@`` implies. The struct module
        computes such sizes.
      - Trailing padding is added if `itemsize` includes it, and the format does not. ctypes and NumPy write such
        formats. Such a format is accepted only if the offset of every field, at every level, is a multiple of the
        field's alignment in C. Otherwise, padding between fields might also be missing, and the offsets would be wrong.
    """
    if format.lstrip("@^=" + NATIVE) == "Ze":
        dtype = _complex32(format)
    else:
        dtype = _read_by_numpy(format)
    if dtype.names and dtype.itemsize != itemsize:
        dtype = _resize_record(dtype, itemsize)
    if dtype.itemsize != itemsize:
        raise InterfaceError(
            f"PEP 3118 format {_show(format)}: the format describes {dtype.itemsize} bytes, but the exporter's itemsize"
            f" is {itemsize}; accepted: itemsize {dtype.itemsize}, or a format with explicit padding (x)"
        )
    return dtype


def _complex32(format: str) -> np.dtype:
    """Return ml_dtypes' complex32, a pair of half floats. ml_dtypes is imported on first use."""
    try:
        from ml_dtypes import complex32
    except ImportError:
        raise _read_error(format, "is complex32", "Ze if ml_dtypes is installed and has complex32") from None
    return np.dtype(complex32)


def _read_by_numpy(format: str) -> np.dtype:
    """Return the dtype that NumPy reads, whatever its size is: NumPy reads a sub-array of length 0 of the format."""
    body, alone = _rewrite_for_numpy(format)
    # The name keeps NumPy from reading the only item as padding, or from unwrapping it.
    name = ":item:" if alone else ""
    try:
        dtype = read_format_by_numpy(f"(0)T{{{body}{name}}}")
    except (ValueError, TypeError, OverflowError, MemoryError, RuntimeError) as error:
        raise _read_error(format, "cannot be read by NumPy", _ACCEPTED) from error
    if not alone:
        return dtype
    shape, element = flatten(dtype["item"])
    return np.dtype((element, shape)) if shape else element


def _rewrite_for_numpy(format: str) -> tuple[str, bool]:
    """Validate a format, and return it in the form that NumPy reads, and whether it is one item without a name.

    Every item gets its order, after the shape. The number of items and the depth of records are limited.
    """
    order, depth, items, count = "@", 0, 0, 0
    parts = format.split(":")
    if len(parts) % 2 == 0:
        raise _read_error(format, "has a name without a closing colon", ":name:")
    for k, part in enumerate(parts):
        if k % 2 == 1:
            if not is_encodable(part):
                raise _read_error(format, f"has the name {_show(part)}", "names in UTF-8, without null characters")
            continue
        text, rewritten, position = part.translate(_WITHOUT_SPACE), [], 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise _read_error(format, f"has {_show(text[position : position + 9])} where an item starts", _ACCEPTED)
            position = token.end()
            if token["code"] is None:
                depth -= 1
                rewritten.append("}")
            else:
                order = token["order"] or token["first"] or order
                items += depth == 0
                count += 1
                depth += token["code"] == "T{"
                rewritten.append(_rewrite_item(format, token, order))
            if count > MAX_ITEMS:
                raise _read_error(format, "has too many items", f"at most {MAX_ITEMS}")
            if not 0 <= depth <= MAX_NESTING:
                raise _read_error(format, "has unbalanced or too many braces", f"at most {MAX_NESTING} levels of T{{}}")
        parts[k] = "".join(rewritten)
    if depth != 0:
        raise _read_error(format, "has a record without a closing brace", "T{...}")
    alone = items == 1 and (len(parts) == 1 or parts[-1] != "")
    return ":".join(parts), alone


def _rewrite_item(format: str, token: re.Match[str], order: str) -> str:
    """Return an item in the form that NumPy reads. `order` applies to the item."""
    code = token["code"]
    if code in _WITHOUT_STANDARD_SIZE and order not in "@^":
        if order not in ("=", NATIVE) and (order, NATIVE) != ("!", ">"):
            accepted = f"{code!r} after '@', '^' or '='"
            raise _read_error(format, f"has {order + code}, which does not have a standard size", accepted)
        order = "^"
    return f"{token['shape']}{order}{token['count']}{_IN_NUMPY.get(code, code)}"


def _resize_record(dtype: np.dtype, itemsize: int) -> np.dtype:
    """Return a record with another size if the sizes differ by trailing padding, else the record itself."""
    fields = [dtype.fields[name][:2] for name in dtype.names]  # type: ignore[index, union-attr]
    formats, offsets = zip(*fields, strict=True)
    end = max(offset + field.itemsize for field, offset in fields)
    if not end <= itemsize < 2**31:
        return dtype
    parts: Any = {"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
    resized = np.dtype(parts)
    alignment = c_alignment(resized)
    return resized if itemsize == end or (alignment is not None and itemsize - end < alignment) else dtype


def _read_error(format: str, why: str, accepted: str) -> InterfaceError:
    return InterfaceError(f"PEP 3118 format {_show(format)}: the format {why}; accepted: {accepted}")


def _show(value: object) -> str:
    """Return the repr of `value` for an error message, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


# ---- Writing ---------------------------------------------------------------------------------------------------------


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
        text = _write_by_numpy(dtype, self.native)
        order = text[0] if text[0] in ORDERS else "@"
        if order == self.order or dtype.alignment == 1:
            return text.lstrip(order)
        self.order = order
        return order + text.lstrip(order)


def _padding(size: int) -> str:
    """Return the code of `size` bytes of padding."""
    return {0: "", 1: "x"}.get(size, f"{size}x")


def _write_by_numpy(dtype: np.dtype, native: bool) -> str:
    """Return NumPy's format of a single value. The value is the last field of a record, which can be unaligned."""
    if dtype.char == "c":
        return "c"  # memoryview can index this code, but not NumPy's 1s
    # The character of a user-defined dtype is arbitrary. NumPy would write complex32 of ml_dtypes as Python objects.
    # complex32 is not exported as `Ze` either, because NumPy tries the buffer protocol first and reads a half float.
    if dtype.num >= FIRST_USER_TYPENUM or dtype.hasobject:
        raise _write_error(dtype, _alternatives(dtype))
    before, prefix = ([], "T{") if native else ([("p", "i1")], "T{b:p:")
    try:
        record: Any = np.empty(0, [*before, ("v", dtype)])
        text = memoryview(record).format
    except ValueError:
        raise _write_error(dtype, _alternatives(dtype)) from None
    return text[len(prefix) : -len(":v:}")]


def _alternatives(dtype: np.dtype) -> str:
    """Return the end of an error text: the protocols that can represent a type that PEP 3118 cannot."""
    if dtype.kind == "M":
        return f"__array_interface__ (typestr {dtype.str!r}) and Arrow (timestamp) can"
    if dtype.kind == "m":
        return f"__array_interface__ (typestr {dtype.str!r}) and Arrow (duration) can"
    if not dtype.isnative:
        return f"__array_interface__ can (typestr {dtype.str!r})"
    if dtype.type.__module__ == "ml_dtypes":
        return "DLPack can (__dlpack__)"
    if dtype.kind == "T":
        return "no array protocol can; convert it with astype('U') or astype('S')"
    if dtype.hasobject:
        return "no array protocol can; convert it to a type without references"
    return "no array protocol can; convert it with astype to a type of NumPy's own"


# ---- Both ------------------------------------------------------------------------------------------------------------


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
