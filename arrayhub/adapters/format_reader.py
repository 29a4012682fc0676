"""Convert a PEP 3118 format to a NumPy dtype: parse the format into items, then lay out the items in memory.

`format_language` describes the language.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from arrayhub._core.errors import InterfaceError
from arrayhub.adapters.format_language import BY_CODE, FOREIGN, MAX_NESTING, ORDERS, Code, c_alignment, is_encodable

__all__ = ["parse_format"]

# Codes of elements that arrays cannot hold. PEP 3118 defines all of these codes except `z`, which only ctypes writes.
_UNSUPPORTED = {
    "O": "Python objects",
    "u": "UCS-2 text",  # ctypes writes it for wchar_t, even if wchar_t has four bytes
    "&": "pointers to another type",
    "X": "function pointers",
    "t": "bit fields",
    "z": "pointers to text (ctypes)",
}

_DIGITS = "0123456789"
_SPACE = " \t\n\r\f\v"
_ACCEPTED = f"the codes {' '.join(BY_CODE)} and T{{...}}, optionally after one of {ORDERS}, a (shape) and a count"

_MAX_BYTES = 2**31 - 1  # NumPy stores the size of an element in a C int
_SHOWN = 200  # maximum number of characters of a format or a type in an error message


class _Item(NamedTuple):
    """One item of a format, before its offset in memory is known."""

    element: "np.dtype | _Record"
    shape: tuple[int, ...]
    name: str | None
    aligned: bool  # whether the order is `@`
    padding: bool  # an unnamed `x`: bytes that are not a field


class _Record(NamedTuple):
    """Items between the braces of ``T{...}``, or all items of a format."""

    items: list[_Item]
    aligned: bool  # whether the last order is `@`, so that the size is rounded up to the alignment


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
    As in NumPy:

    - ``c`` is a byte string of length one. ``5s`` and ``7w`` are one string each, ``5c`` is five strings.
    - A count of zero creates a field without elements. In the order ``@``, the field still aligns the next field.
    - A record that ends in the order ``@`` is padded to its alignment.

    Unlike in NumPy:

    - ``6x`` alone is ``V6``, six raw bytes. NumPy writes ``6x`` for ``V6``, but reads ``6x`` as a record without
      fields, which is ``T{6x}`` here.
    - ``n N P`` are integers of the size of a pointer, ``p`` is raw bytes (``V``), ``F D G`` are complex, and ``Ze`` is
      ml_dtypes' complex32. NumPy supports only ``n`` and ``N``, and only as a complete format. NumPy reads ``Ze`` as a
      half float, and rejects the other codes.
    - White space may separate items, and an order may precede a shape. NumPy rejects both in most formats.
    - ``(2,3)4i`` has the shape (2, 3, 4). NumPy creates two levels of sub-arrays.
    - ``g Zg G Ze n N P`` do not have a standard size. After ``=`` and the native byte order (``<`` or ``>``), they have
      the native size, because ctypes writes formats such as ``<g`` and ``<P``. In the other byte order, they raise an
      error.
    - `itemsize` may differ from the described size by the trailing padding of the outermost record:

      - The record is shortened if `itemsize` excludes the padding that the order ``@`` implies. The struct module
        computes such sizes.
      - Trailing padding is added if `itemsize` includes it, and the format does not. ctypes and NumPy write such
        formats. Such a format is accepted only if the offset of every field, at every level, is a multiple of the
        field's alignment in C. Otherwise, padding between fields might also be missing, and the offsets would be wrong.
    """
    top = _Reader(format).read()
    try:
        dtype = _outermost(top, itemsize)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        # the type exceeds a limit of NumPy, such as the number of dimensions, or a limit of this module
        raise InterfaceError(f"PEP 3118 format {_show(format)}: NumPy does not support this type ({error})") from None
    if dtype.itemsize != itemsize:
        raise InterfaceError(
            f"PEP 3118 format {_show(format)}: the format describes {dtype.itemsize} bytes, but the exporter's itemsize"
            f" is {itemsize}; accepted: itemsize {dtype.itemsize}, or a format with explicit padding (x)"
        )
    return dtype


# ---- Parsing ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Recursive descent parser of a format."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.order = "@"

    def read(self) -> _Record:
        """Parse the complete format as the items of one record."""
        return self.record(start=0, depth=0)

    def record(self, start: int, depth: int) -> _Record:
        """Parse the items of the record that opens at `start`, up to its closing brace, or up to the end at depth 0."""
        if depth > MAX_NESTING:
            raise self.error_at(start, "opens too many nested records", f"at most {MAX_NESTING} levels of T{{...}}")
        items: list[_Item] = []
        names: set[str] = set()
        while True:
            self.read_run(_SPACE)
            if depth > 0 and self.accept("}"):
                break
            if self.position == len(self.text):
                if depth == 0:
                    break
                raise self.error_at(start, "opens a record without a closing brace", "T{...}")
            items.append(self.item(depth, names))
        return _Record(items, aligned=self.order == "@")

    def item(self, depth: int, names: set[str]) -> _Item:
        """Parse one item. Add its name to `names`, the names of the preceding fields of the record."""
        self.read_order()
        shape = self.read_shape()
        self.read_order()  # NumPy and ctypes write the order after the shape, other exporters before the shape
        count = self.read_number() if self.peek() in _DIGITS else 1
        start, padding = self.position, False
        if self.accept("T{"):
            element = self.record(start, depth + 1)
        else:
            row = self.read_code()
            padding = row.code == "x"
            element = self.element(row, count, start)  # type: ignore[assignment]
            count = 1 if row.count_is_length else count
        if count != 1:
            shape += (count,)
        name = self.read_name(names)
        return _Item(element, shape, name, aligned=self.order == "@", padding=padding and name is None)

    def element(self, row: Code, count: int, start: int) -> np.dtype:
        """Return the dtype of the code at position `start`, with the size and byte order of the current order."""
        if row.standard is None and self.order == FOREIGN:
            raise self.error_at(
                start,
                f"does not have the standard size that {self.order!r} requires",
                f"{row.code!r} after '@', '^' or '='",
            )
        if row.native == "complex32":
            return self.half_complex(start)
        name = row.native if self.order in "@^" or row.standard is None else row.standard
        if row.count_is_length:
            if count * np.dtype(name + "1").itemsize > _MAX_BYTES:
                raise self.error_at(start, f"has a length of {count}", f"at most {_MAX_BYTES} bytes")
            name += str(count)
        return np.dtype(name).newbyteorder(self.order if self.order in "<>" else "=")  # type: ignore[arg-type]

    def half_complex(self, start: int) -> np.dtype:
        """Return ml_dtypes' complex32, a pair of half floats. ml_dtypes is imported on first use."""
        try:
            from ml_dtypes import complex32
        except ImportError:
            accepted = "Ze if ml_dtypes is installed and has complex32"
            raise self.error_at(start, "begins Ze (complex32), which NumPy does not have", accepted) from None
        return np.dtype(complex32)

    # -- tokens; each method except `peek` advances the position past the token that it reads

    def peek(self) -> str:
        """Return the next character. Raise an error at the end of the format, where callers expect an element."""
        if self.position == len(self.text):
            raise self.error_at(self.position, "was reached where an element is expected", _ACCEPTED)
        return self.text[self.position]

    def accept(self, token: str) -> bool:
        """Advance past `token` and return True if it is next, else return False."""
        matches = self.text.startswith(token, self.position)
        if matches:
            self.position += len(token)
        return matches

    def read_run(self, characters: str) -> str:
        """Read the longest run of characters from the string `characters`. The run may be empty."""
        start = self.position
        while self.position < len(self.text) and self.text[self.position] in characters:
            self.position += 1
        return self.text[start : self.position]

    def read_order(self) -> None:
        """Read an order if one is next. The order applies to the following items."""
        if self.peek() in ORDERS:
            mark = self.text[self.position]
            self.order = ">" if mark == "!" else mark
            self.position += 1

    def read_number(self) -> int:
        """Read a count or a length."""
        start = self.position
        digits = self.read_run(_DIGITS)
        if not digits:
            raise self.error_at(start, "is not a length", "a shape such as (2,3)")
        # Check the number of digits first, because Python raises an error for thousands of digits.
        if len(digits) > len(str(_MAX_BYTES)) or int(digits) > _MAX_BYTES:
            raise self.error_at(start, "begins a number that is too large", f"at most {_MAX_BYTES}")
        return int(digits)

    def read_shape(self) -> tuple[int, ...]:
        """Read the shape of a sub-array if one is next, else return ()."""
        if not self.accept("("):
            return ()
        shape = []
        while True:
            self.read_run(_SPACE)
            shape.append(self.read_number())
            self.read_run(_SPACE)
            if self.accept(")"):
                return tuple(shape)
            if not self.accept(","):
                raise self.error_at(self.position, "is not part of a shape", "lengths, commas and a closing )")

    def read_code(self) -> Code:
        """Read the code of an element."""
        start, letter = self.position, self.peek()
        code = self.text[start : start + 2] if letter == "Z" else letter
        if code in _UNSUPPORTED:
            raise self.error_at(start, f"means {_UNSUPPORTED[code]}, which arrays cannot hold", _ACCEPTED)
        if code not in BY_CODE:
            raise self.error_at(start, "is not the code of an element", _ACCEPTED)
        self.position += len(code)
        return BY_CODE[code]

    def read_name(self, names: set[str]) -> str | None:
        """Read the name of a field if one is next, and add it to `names`."""
        start = self.position
        if not self.accept(":"):
            return None
        end = self.text.find(":", self.position)
        if end < 0:
            raise self.error_at(start, "begins a name without a closing colon", ":name:")
        name = self.text[self.position : end]
        if not is_encodable(name):
            raise self.error_at(start, "begins a name that is not valid UTF-8", "names in UTF-8")
        if name in names:
            raise self.error_at(start, f"begins the name {_show(name)} a second time", "a name for each field")
        names.add(name)
        self.position = end + 1
        return name

    def error_at(self, position: int, why: str, accepted: str) -> InterfaceError:
        """Return an error about the character at `position`, counted from 0."""
        what = repr(self.text[position]) if position < len(self.text) else "the end"
        return InterfaceError(
            f"PEP 3118 format {_show(self.text)}: {what} at position {position} {why}; accepted: {accepted}"
        )


# ---- Layout in memory -----------------------------------------------------------------------------------------------


def _outermost(top: _Record, itemsize: int) -> np.dtype:
    """Return the dtype of a complete format. Resize a record to `itemsize` if only trailing padding differs."""
    if len(top.items) == 1 and top.items[0].name is None:
        item = top.items[0]
        if not isinstance(item.element, _Record) or item.shape:
            return _item_dtype(item)[0]
        top = item.element
    return _record_dtype(top, itemsize)[0]


def _item_dtype(item: _Item) -> tuple[np.dtype, int]:
    """Return the dtype of an item, including its shape, and the alignment of the item in bytes."""
    if isinstance(item.element, _Record):
        dtype, alignment = _record_dtype(item.element)
    else:
        dtype, alignment = item.element, item.element.alignment
    if item.shape:
        _check_bytes(dtype.itemsize * math.prod(item.shape))
        dtype = np.dtype((dtype, item.shape))
    return dtype, alignment if item.aligned else 1


def _record_dtype(record: _Record, itemsize: int | None = None) -> tuple[np.dtype, int]:
    """Return the dtype of a record and its alignment in bytes.

    Parameters
    ----------
    record : _Record
        The parsed items.
    itemsize : int, optional
        For the outermost record, the exporter's item size in bytes. Its trailing padding may differ from the format's.
    """
    fields, end, alignment = _layout(record)
    size = _round_up(end, alignment) if record.aligned else end
    _check_bytes(size)
    if itemsize is not None and itemsize != size and end <= itemsize <= _MAX_BYTES:
        resized = np.dtype({**fields, "itemsize": itemsize})  # type: ignore[call-overload]
        in_c = c_alignment(resized)
        if itemsize == end or (in_c is not None and itemsize == _round_up(end, in_c)):
            return resized, alignment
    return np.dtype({**fields, "itemsize": size}), alignment  # type: ignore[call-overload]


def _layout(record: _Record) -> tuple[dict[str, list[Any]], int, int]:
    """Lay out the items of a record in sequence.

    Returns
    -------
    fields : dict
        The names, formats and offsets (in bytes) for ``numpy.dtype``.
    end : int
        End of the last item, in bytes.
    alignment : int
        Alignment of the record, in bytes: the largest alignment of its items.
    """
    names: list[str | None] = []
    formats: list[np.dtype] = []
    offsets: list[int] = []
    end, alignment = 0, 1
    for item in record.items:
        dtype, own = _item_dtype(item)
        end = _round_up(end, own)
        if not item.padding:
            names.append(item.name)
            formats.append(dtype)
            offsets.append(end)
        end += dtype.itemsize
        _check_bytes(end)
        alignment = max(alignment, own)
    return {"names": _fill_names(names), "formats": formats, "offsets": offsets}, end, alignment


def _fill_names(names: list[str | None]) -> list[str]:
    """Replace each None with the first unused name of f0, f1, ..., as NumPy does."""
    used, number, filled = set(names), 0, []
    for name in names:
        if name is None:
            while (name := f"f{number}") in used:
                number += 1
            used.add(name)
        filled.append(name)
    return filled  # type: ignore[return-value]


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _check_bytes(size: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(f"the element has {size} bytes; accepted: at most {_MAX_BYTES}")


def _show(value: object) -> str:
    """Return `value` for an error message, truncated if it is long."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
