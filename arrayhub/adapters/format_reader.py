"""From a format of PEP 3118 to a NumPy dtype: the sentence is read first, then its items are laid out in memory.

`format_language` has the language.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from arrayhub._core.errors import InterfaceError
from arrayhub.adapters.format_language import BY_CODE, FOREIGN, MAX_NESTING, ORDERS, Code, c_alignment, is_sayable

__all__ = ["parse_format"]

# Codes of the language that have no NumPy type, and of ctypes that are not in the language.
_UNSAYABLE = {
    "O": "Python objects",
    "u": "UCS-2 text",  # ctypes writes it for wchar_t even where that has four bytes
    "&": "pointers to another type",
    "X": "function pointers",
    "t": "bit fields",
    "z": "pointers to text (ctypes)",
}

_DIGITS = "0123456789"
_SPACE = " \t\n\r\f\v"
_ACCEPTED = f"the codes {' '.join(BY_CODE)}, T{{...}}, and before them one of {ORDERS}, a (shape), a count"

_MAX_BYTES = 2**31 - 1  # NumPy keeps the size of an element in a C int
_SHOWN = 200  # characters of a format, and of a type, that an error repeats


class _Item(NamedTuple):
    """One item of a format, before anybody knows where in memory it lies."""

    element: "np.dtype | _Record"
    shape: tuple[int, ...]
    name: str | None
    aligned: bool  # read under `@`
    padding: bool  # an unnamed `x`: bytes that are no field


class _Record(NamedTuple):
    """The items between two braces, or of a whole format."""

    items: list[_Item]
    aligned: bool  # ends under `@`, so that its size is rounded up to its alignment


def parse_format(format: str, itemsize: int) -> np.dtype:
    """Return the NumPy dtype that a PEP 3118 format describes.

    Parameters
    ----------
    format : str
        The format, decoded as UTF-8 (field names may be any text without a colon).
    itemsize : int
        The size of an element in bytes that the exporter gives beside the format.

    Returns
    -------
    numpy.dtype
        Its ``itemsize`` is `itemsize`. A format of several items, or of one named item, is a record, with or without
        ``T{...}`` around it; unnamed fields are called f0, f1, ... as NumPy calls them. A single unnamed item is that
        element itself: ``(2,3)f`` and ``3i`` are sub-array dtypes of shapes (2, 3) and (3,).

    Raises
    ------
    InterfaceError
        The format is no sentence of the language, NumPy has no type for what it says, or it describes another number
        of bytes than `itemsize`.

    Notes
    -----
    Read as NumPy reads them:

    - ``c`` is a byte string of length one; ``5s`` and ``7w`` are strings, ``5c`` is five of them.
    - A count of zero gives a field without elements, which still aligns what follows it under ``@``.
    - A record that ends under ``@`` is padded up to its alignment.

    Read otherwise than NumPy reads them:

    - ``6x`` alone is ``V6``, six bytes about which nothing is said, which is what NumPy itself writes for it; NumPy
      reads it back as a record without fields. ``T{6x}`` is that record.
    - ``n N P`` are integers of the size of a pointer, ``p`` is raw bytes (``V``), ``F D G`` are complex and ``Ze`` is
      ml_dtypes' complex32. NumPy knows none of them, nor white space, nor an order before a shape.
    - ``(2,3)4i`` has the one shape (2, 3, 4), where NumPy keeps two levels of sub-arrays.
    - ``g Zg G n N P`` have no standard size. They are read at native size after ``=`` and the machine's own ``<`` or
      ``>``, where they can mean nothing else and ctypes writes them so, and refused in the other byte order.
    - The outermost record may leave out its trailing padding, as the struct module does under ``@``, and ctypes and
      NumPy do in other orders. It is accepted only where every field, at every level, lies where a C compiler puts
      it: padding that is missing in the middle cannot be told from a packed record, and guessing moves the fields.
    """
    top = _Reader(format).whole()
    try:
        dtype = _outermost(top, itemsize)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        # NumPy's own limits, such as the number of dimensions, and ours.
        raise InterfaceError(f"PEP 3118 format {_show(format)}: NumPy has no such type ({error})") from None
    if dtype.itemsize != itemsize:
        raise InterfaceError(
            f"PEP 3118 format {_show(format)}: describes {dtype.itemsize} bytes, and the exporter's itemsize is "
            f"{itemsize}; accepted: itemsize {dtype.itemsize}, or a format that spells out its padding (x)"
        )
    return dtype


# ---- What a format says ---------------------------------------------------------------------------------------------


class _Reader:
    """Reads a format from left to right.

    Parameters
    ----------
    text : str
        The whole format.
    """

    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.order = "@"

    def whole(self) -> _Record:
        """Read the whole format as the items of one record."""
        return self.record(start=0, depth=0)

    def record(self, start: int, depth: int) -> _Record:
        """Read items up to the closing brace of the record that opened at `start`; at depth 0, up to the end."""
        if depth > MAX_NESTING:
            raise self.error_at(start, "nests too deeply", f"at most {MAX_NESTING} levels of T{{...}}")
        items: list[_Item] = []
        names: set[str] = set()
        while True:
            self.take_all(_SPACE)
            if depth > 0 and self.take("}"):
                break
            if self.position == len(self.text):
                if depth == 0:
                    break
                raise self.error_at(start, "opens a record that does not end", "T{...} with a closing brace")
            items.append(self.item(depth, names))
        return _Record(items, aligned=self.order == "@")

    def item(self, depth: int, names: set[str]) -> _Item:
        """Read one item; `names` are those of the record so far, and take in this one's."""
        self.take_order()
        shape = self.take_shape()
        self.take_order()  # NumPy and ctypes write the order behind the shape, others before it
        count = self.take_number() if self.peek() in _DIGITS else 1
        start, padding = self.position, False
        if self.take("T{"):
            element = self.record(start, depth + 1)
        else:
            row = self.take_code()
            padding = row.code == "x"
            element = self.element(row, count, start)  # type: ignore[assignment]
            count = 1 if row.says_length else count
        if count != 1:
            shape += (count,)
        name = self.take_name(names)
        return _Item(element, shape, name, aligned=self.order == "@", padding=padding and name is None)

    def element(self, row: Code, count: int, start: int) -> np.dtype:
        """Return the dtype of one code under the order in force; `start` is where the code stands."""
        if row.standard is None and self.order == FOREIGN:
            raise self.error_at(start, f"has no size in the byte order {self.order}", f"{row.code} after @ ^ or =")
        if row.native == "complex32":
            return self.half_complex(start)
        name = row.native if self.order in "@^" or row.standard is None else row.standard
        if row.says_length:
            if count * np.dtype(name + "1").itemsize > _MAX_BYTES:
                raise self.error_at(start, f"has a length of {count}", f"at most {_MAX_BYTES} bytes")
            name += str(count)
        return np.dtype(name).newbyteorder(self.order if self.order in "<>" else "=")  # type: ignore[arg-type]

    def half_complex(self, start: int) -> np.dtype:
        """Return the dtype of complex32, a pair of halves, from ml_dtypes, which is imported on first need."""
        try:
            from ml_dtypes import complex32
        except ImportError:
            accepted = "it where ml_dtypes is installed and has complex32"
            raise self.error_at(start, "begins Ze, complex32, which NumPy does not have", accepted) from None
        return np.dtype(complex32)  # type: ignore[no-any-return]

    # -- the words of the language, each leaving the position behind what it took

    def peek(self) -> str:
        """Return the next character; at the end raise, because every caller still needs an element."""
        if self.position == len(self.text):
            raise self.error_at(self.position, "is where an element is missing", _ACCEPTED)
        return self.text[self.position]

    def take(self, word: str) -> bool:
        """Take `word` if it is next."""
        found = self.text.startswith(word, self.position)
        if found:
            self.position += len(word)
        return found

    def take_all(self, characters: str) -> str:
        """Take the longest run of `characters`, which may be empty."""
        start = self.position
        while self.position < len(self.text) and self.text[self.position] in characters:
            self.position += 1
        return self.text[start : self.position]

    def take_order(self) -> None:
        """Take an order if one is next, and keep to it from here on."""
        if self.peek() in ORDERS:
            mark = self.text[self.position]
            self.order = ">" if mark == "!" else mark
            self.position += 1

    def take_number(self) -> int:
        """Take a count or a length."""
        start = self.position
        digits = self.take_all(_DIGITS)
        if not digits:
            raise self.error_at(start, "is no length", "a shape such as (2,3)")
        # The number of digits first: Python refuses to convert thousands of them.
        if len(digits) > len(str(_MAX_BYTES)) or int(digits) > _MAX_BYTES:
            raise self.error_at(start, "begins a number that is too large", f"at most {_MAX_BYTES}")
        return int(digits)

    def take_shape(self) -> tuple[int, ...]:
        """Take the lengths of a sub-array; none where no shape is next."""
        if not self.take("("):
            return ()
        shape = []
        while True:
            self.take_all(_SPACE)
            shape.append(self.take_number())
            self.take_all(_SPACE)
            if self.take(")"):
                return tuple(shape)
            if not self.take(","):
                raise self.error_at(self.position, "does not belong in a shape", "lengths, commas and a closing )")

    def take_code(self) -> Code:
        """Take the code of an element."""
        start, letter = self.position, self.peek()
        code = self.text[start : start + 2] if letter == "Z" else letter
        if code in _UNSAYABLE:
            raise self.error_at(start, f"means {_UNSAYABLE[code]}, which no array here can hold", _ACCEPTED)
        if code not in BY_CODE:
            raise self.error_at(start, "is no code of an element", _ACCEPTED)
        self.position += len(code)
        return BY_CODE[code]

    def take_name(self, names: set[str]) -> str | None:
        """Take the name of a field if one is next, and enter it in `names`."""
        start = self.position
        if not self.take(":"):
            return None
        end = self.text.find(":", self.position)
        if end < 0:
            raise self.error_at(start, "begins a name that does not end", ":name: with a closing colon")
        name = self.text[self.position : end]
        if not is_sayable(name):
            raise self.error_at(start, "begins a name that is no text", "names in UTF-8")
        if name in names:
            raise self.error_at(start, f"begins the name {_show(name)} a second time", "a name for each field")
        names.add(name)
        self.position = end + 1
        return name

    def error_at(self, position: int, why: str, accepted: str) -> InterfaceError:
        """Return the error about the character at `position`, counted from 0."""
        what = repr(self.text[position]) if position < len(self.text) else "the end"
        return InterfaceError(
            f"PEP 3118 format {_show(self.text)}: {what} at position {position} {why}; accepted: {accepted}"
        )


# ---- Where it lies in memory ----------------------------------------------------------------------------------------


def _outermost(top: _Record, itemsize: int) -> np.dtype:
    """Return the dtype of a whole format, with trailing padding as `itemsize` has it where that is legal."""
    if len(top.items) == 1 and top.items[0].name is None:
        lone = top.items[0]
        if not isinstance(lone.element, _Record) or lone.shape:
            return _item_dtype(lone)[0]
        top = lone.element
    return _record_dtype(top, itemsize)[0]


def _item_dtype(item: _Item) -> tuple[np.dtype, int]:
    """Return the dtype of an item, with its shape, and its alignment in bytes."""
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
        What the format says.
    itemsize : int, optional
        For the outermost record, its size in bytes by the exporter's word, which settles whether the format left out
        the trailing padding.
    """
    fields, end, alignment = _place(record)
    written = _round_up(end, alignment) if record.aligned else end
    _check_bytes(written)
    if itemsize is not None and itemsize != written and end <= itemsize <= _MAX_BYTES:
        resized = np.dtype({**fields, "itemsize": itemsize})  # type: ignore[call-overload]
        in_c = c_alignment(resized)
        if itemsize == end or (in_c is not None and itemsize == _round_up(end, in_c)):
            return resized, alignment
    return np.dtype({**fields, "itemsize": written}), alignment  # type: ignore[call-overload]


def _place(record: _Record) -> tuple[dict[str, list[Any]], int, int]:
    """Lay the items of a record one behind the other.

    Returns
    -------
    fields : dict
        The names, formats and offsets (bytes) that the constructor of a dtype takes.
    end : int
        Bytes up to the end of the last item.
    alignment : int
        Of the record, in bytes: the largest of its items'.
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
    """Return `names` with each None replaced by the first of f0, f1, ... that is still free, as NumPy does."""
    taken, number, filled = set(names), 0, []
    for name in names:
        if name is None:
            while (name := f"f{number}") in taken:
                number += 1
            taken.add(name)
        filled.append(name)
    return filled  # type: ignore[return-value]


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _check_bytes(size: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(f"an element of {size} bytes; accepted: at most {_MAX_BYTES}")


def _show(value: object) -> str:
    """Return `value` for an error message: whole, unless that would drown the message."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
