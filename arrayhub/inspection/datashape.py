"""The datashape language, which says in one line what an array is. `typestr` writes it, `parse_type` reads it.

    type      = { dimension "*" } element
    dimension = length | "strided" | "var"
    element   = number | "?" element | "option" "[" type "]" | "bytes" | "categorical" "[" "type" "=" type "]"
              | "{" [ field { "," field } ] "}"
              | "complex" "[" number "]" | "unaligned" "[" element "]" | "byteswap" "[" element "]"
              | "string" [ "[" length "," encoding "]" ] | "fixed_bytes" "[" size "," alignment "]"
              | "void" "[" size "]" | ( "datetime64" | "timedelta64" ) [ "[" unit "]" ]
    field     = ( name | quoted ) ":" type

Source: the datashape specification, and the documentation of DyND's array. ``void`` (NumPy's bytes without a meaning)
and the units of dates are additions, so that a NumPy dtype has a spelling of its own. Where fields lie in a record is
not part of its type.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, element_types, numpy_dtype
from arrayhub._core.errors import show
from arrayhub.conversion import array_or_nested
from arrayhub.usm_array import USMArray

STRIDED = "strided"
VAR = "var"
MAX_RECORDS = 64  # inside each other
MAX_NESTING = 64 + MAX_RECORDS  # NumPy's dimensions, and what they hold
MAX_LENGTH = 2**63 - 1


# -------------------------------------------------------------------------------------------------------- the types


@dataclass(frozen=True, slots=True, repr=False)
class Type:
    """What an array is: its dimensions and the type of its elements. Hashable; `str` gives the datashape.

    `parse_type` makes one of a string. Two types are equal where their strings are.

    Attributes
    ----------
    shape : tuple
        The dimensions: an int, the length in elements; ``"strided"``, a length that the array says and the type does
        not; ``"var"``, rows of different lengths.
    dtype : numpy.dtype
        The element type. A record's fields are packed, because the type does not say where they lie. Reading it raises
        TypeError where NumPy has none: ``var``, ``string`` and ``?T``.
    """

    @property
    def shape(self) -> tuple[int | str, ...]:
        return ()

    @property
    def dtype(self) -> np.dtype[Any]:
        raise TypeError(f"dtype: NumPy has none for {self}; accepted: types of elements with one size")

    def __repr__(self) -> str:
        return f"parse_type({str(self)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Dimension(Type):
    """``3 * T``, ``strided * T`` or ``var * T``."""

    length: int | str
    inner: Type

    def __str__(self) -> str:
        return f"{self.length} * {self.inner}"

    @property
    def shape(self) -> tuple[int | str, ...]:
        return (self.length, *self.inner.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return super(Dimension, self).dtype if self.length == VAR else self.inner.dtype


@dataclass(frozen=True, slots=True, repr=False)
class Number(Type):
    """A row of the table of element types that is no complex number, under the name that says its size."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = numpy_dtype(_TYPENUMS[self])
        return dtype


@dataclass(frozen=True, slots=True, repr=False)
class Complex(Type):
    """``complex[T]``: two T."""

    part: Number

    def __str__(self) -> str:
        return f"complex[{self.part}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = numpy_dtype(_TYPENUMS[self])
        return dtype


@dataclass(frozen=True, slots=True, repr=False)
class String(Type):
    """``string[7,'utf32']``: 7 units of an encoding; ``string``: each element as long as it likes."""

    length: int | None = None
    encoding: str | None = None

    def __str__(self) -> str:
        return "string" if self.length is None else f"string[{self.length},'{self.encoding}']"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"U{self.length}") if self.encoding == "utf32" else super(String, self).dtype


@dataclass(frozen=True, slots=True, repr=False)
class Bytes(Type):
    """``bytes``: each element as many bytes as it likes."""

    def __str__(self) -> str:
        return "bytes"


@dataclass(frozen=True, slots=True, repr=False)
class Categorical(Type):
    """``categorical[type=T]``: each element one of a few T, by its number."""

    inner: Type

    def __str__(self) -> str:
        return f"categorical[type={self.inner}]"


@dataclass(frozen=True, slots=True, repr=False)
class FixedBytes(Type):
    """``fixed_bytes[size,alignment]``, both in bytes."""

    size: int
    alignment: int

    def __str__(self) -> str:
        return f"fixed_bytes[{self.size},{self.alignment}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"S{self.size}") if self.alignment == 1 else super(FixedBytes, self).dtype


@dataclass(frozen=True, slots=True, repr=False)
class Void(Type):
    """``void[size]``: bytes of which nobody says what they mean."""

    size: int

    def __str__(self) -> str:
        return f"void[{self.size}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"V{self.size}")


@dataclass(frozen=True, slots=True, repr=False)
class Time(Type):
    """``datetime64[ns]`` and ``timedelta64[3s]``; without a unit where NumPy has none."""

    name: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name}[{self.unit}]" if self.unit else self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Structure(Type):
    """``{x: int32, y: 3 * float64}``: a record."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{_spell(name)}: {field}" for name, field in self.fields) + "}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([(name, field.dtype, field.shape) for name, field in self.fields])


@dataclass(frozen=True, slots=True, repr=False)
class Byteswap(Type):
    """``byteswap[T]``: T with its bytes in the other order than the machine's."""

    inner: Type

    def __str__(self) -> str:
        return f"byteswap[{self.inner}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype.newbyteorder("S")


@dataclass(frozen=True, slots=True, repr=False)
class Unaligned(Type):
    """``unaligned[T]``: T at any address. NumPy does not count alignment as part of the type."""

    inner: Type

    def __str__(self) -> str:
        return f"unaligned[{self.inner}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype


@dataclass(frozen=True, slots=True, repr=False)
class Option(Type):
    """``?T``: a T, or nothing; of dimensions ``option[var * T]``, as awkward writes it."""

    inner: Type

    def __str__(self) -> str:
        return f"option[{self.inner}]" if isinstance(self.inner, Dimension) else f"?{self.inner}"


_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _spell(name: str) -> str:
    """A field's name as the language has it: plain where it looks like one, else quoted as in JSON."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name)


# ------------------------------------------------------------------------- what the table of element types calls them

_SIZED = {"i": "int", "u": "uint", "f": "float"}  # kinds whose name is completed by a number of bits
_COMPLEX_CODE = 5  # DLPack's; it tells complex32, which has no kind of NumPy's


def _named(row: dict[str, Any]) -> Type | None:
    """The type of one row; None for those that their dtype has to say."""
    name, kind, bits = row["name"], row["kind"], row["bits"]
    if kind == "c" or (row["dlpack"] or (None,))[0] == _COMPLEX_CODE:
        return Complex(Number("longdouble" if name == "clongdouble" else f"float{bits // 2}"))
    if kind in _SIZED and name != "longdouble":
        return Number(f"{_SIZED[kind]}{bits}")
    return Number(name) if kind in "bfE" else None


_BY_TYPENUM = {row["typenum"]: named for row in element_types() if (named := _named(row)) is not None}
_TYPENUMS: dict[Type, int] = {}
for _typenum, _type in _BY_TYPENUM.items():
    _TYPENUMS.setdefault(_type, _typenum)  # C may have two names for one size
_NUMBERS = {str(named): named for named in _TYPENUMS if isinstance(named, Number)}
_PARTS = {str(named.part): named.part for named in _TYPENUMS if isinstance(named, Complex)}


# -------------------------------------------------------------------------------------------------------- of an array


def typestr(x: Any, symbolic: bool = False) -> str:
    """Return what an array is, as a datashape.

    Parameters
    ----------
    x : object
        Anything `asarray` or `asnested` takes.
    symbolic : bool, optional
        Say ``strided *`` for each dimension, as DyND prints it, in place of its length.

    Returns
    -------
    str
        ``"2 * 3 * int32"``; in symbolic form ``"strided * strided * int32"``.

    Raises
    ------
    TypeError, ValueError, BufferError
        As `asarray`.
    """
    x = array_or_nested(x)
    if not isinstance(x, USMArray):
        return str(Dimension(STRIDED, x.type.inner) if symbolic else x.type)
    return str(type_of(x, symbolic))


def type_of(x: USMArray, symbolic: bool = False) -> Type:
    """Return the type of an array; see `typestr`."""
    element = _BY_TYPENUM.get(x.typenum)
    if element is None or (x.typenum < FIRST_OWN_TYPENUM and not x.dtype.isnative):
        element = _of_dtype(x.dtype)
    if not x.flags.aligned:
        element = Unaligned(element)
    return _with_dimensions([STRIDED] * x.ndim if symbolic else list(x.shape), element)


def _with_dimensions(lengths: list[Any], element: Type) -> Type:
    for length in reversed(lengths):
        element = Dimension(length, element)
    return element


def _of_dtype(dtype: np.dtype[Any], level: int = 0) -> Type:
    """The type of a NumPy dtype, fields and subarrays included; it lies in `level` records."""
    if level > MAX_RECORDS:
        raise ValueError(f"typestr: records inside records, {level} levels; accepted: at most {MAX_RECORDS}")
    if dtype.subdtype is not None:
        return _with_dimensions(list(dtype.shape), _of_dtype(dtype.base, level))
    if dtype.names is not None:
        fields: Any = dtype.fields
        return Structure(tuple((name, _of_dtype(fields[name][0], level + 1)) for name in dtype.names))
    element = _OF_KIND[dtype.kind](dtype) if dtype.kind in _OF_KIND and dtype.num < _FIRST_USER else _of_number(dtype)
    return element if dtype.isnative else Byteswap(element)


_FIRST_USER = 256  # NumPy's numbers of types that other libraries define; ml_dtypes gives them the kind V


def _of_number(dtype: np.dtype[Any]) -> Type:
    return _BY_TYPENUM.get(dtype.num) or _NUMBERS[dtype.type.__name__]


def _of_time(dtype: np.dtype[Any]) -> Type:
    unit, count = np.datetime_data(dtype)
    name = "datetime64" if dtype.kind == "M" else "timedelta64"
    return Time(name, "" if unit == "generic" else f"{'' if count == 1 else count}{unit}")


_OF_KIND: dict[str, Callable[[np.dtype[Any]], Type]] = {
    "S": lambda dtype: FixedBytes(dtype.itemsize, 1),
    "U": lambda dtype: String(dtype.itemsize // 4, "utf32"),
    "V": lambda dtype: Void(dtype.itemsize),
    "M": _of_time,
    "m": _of_time,
}


# -------------------------------------------------------------------------------------------------------- of a string


def parse_type(s: str) -> Type:
    """Read a datashape.

    Parameters
    ----------
    s : str
        Such as ``"2 * 3 * int32"``, ``"strided * unaligned[byteswap[int32]]"``, ``"{x: int32, y: 3 * float64}"``,
        ``"var * ?string"``. Spaces are free.

    Returns
    -------
    Type
        Hashable; its `str` is `s`, spaces apart.

    Raises
    ------
    TypeError
        `s` is no string.
    ValueError
        `s` is no type; the message names the position and what is accepted there.

    Examples
    --------
    >>> t = parse_type("2 * 3 * int32")
    >>> t.shape, t.dtype
    ((2, 3), dtype('int32'))
    """
    if not isinstance(s, str):
        raise TypeError(f"parse_type: s is {show(s)}, a {type(s).__name__}; accepted: a str such as '2 * 3 * int32'")
    return _Parser(s).parse()


_TOKEN = re.compile(r"""\s*(?P<text>[A-Za-z0-9_]+|"(?:[^"\\]|\\.)*"|'[^']*'|[*{}\[\]:,?=]|\Z)""")
_ELEMENT = "an element type such as int32, complex[float64], string, fixed_bytes[3,1] or {x: int32}"
_TYPE = f"a dimension ('3 *', 'strided *', 'var *') or {_ELEMENT}"


class _Parser:
    """One pass over a string, a token at a time; `position` is where the present token starts."""

    def __init__(self, s: str) -> None:
        self.s = s
        self.end = 0
        self.depth = 0
        self.take()

    def take(self) -> str:
        """Go on to the next token, and return the one left behind."""
        left = getattr(self, "token", "")
        found = _TOKEN.match(self.s, self.end)
        if found is None:
            self.position = self.end + len(self.s[self.end :]) - len(self.s[self.end :].lstrip())
            self.token = self.s[self.position]
            self.fail("names, numbers, quoted names and * { } [ ] : , ?")
        self.position, self.end = found.span("text")
        self.token = found["text"]
        return left

    def fail(self, accepted: str, position: int | None = None) -> NoReturn:
        position = self.position if position is None else position
        found = show(self.s[position : position + 40]) if position < len(self.s) else "the end"
        raise ValueError(f"parse_type: {show(self.s)}, at position {position}: {found}; accepted: {accepted}")

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(repr(token))
        self.take()

    def read_integer(self, what: str) -> int:
        """A length or a size."""
        if not self.token.isdecimal() or len(self.token) > 19 or int(self.token) > MAX_LENGTH:
            self.fail(f"{what}, 0 to 2**63 - 1")
        return int(self.take())

    def parse(self) -> Type:
        result = self.read_type()
        if self.token:
            self.fail("the end of the type")
        return result

    def read_type(self) -> Type:
        """Dimensions and an element."""
        lengths: list[int | str] = []
        while self.token.isdecimal() or self.token in (STRIDED, VAR):
            lengths.append(self.read_integer("a length") if self.token.isdecimal() else self.take())
            self.deeper()
            self.expect("*")
        result = _with_dimensions(lengths, self.read_element(_ELEMENT if lengths else _TYPE))
        self.depth -= len(lengths)
        return result

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"at most {MAX_NESTING} types and dimensions inside each other")

    def read_element(self, accepted: str = _ELEMENT) -> Type:
        self.deeper()
        kind = self.token if self.token in _CONSTRUCTORS else None
        if kind is not None:
            self.take()
            result = _CONSTRUCTORS[kind](self, kind)
        elif self.token in _NUMBERS:
            result = _NUMBERS[self.take()]
        else:
            self.fail(f"{accepted}. The numbers are {', '.join(_NUMBERS)}")
        self.depth -= 1
        return result

    def read_inner(self, kinds: tuple[type[Type], ...], accepted: str) -> Type:
        """The element in the brackets of another, which takes some kinds only."""
        self.expect("[")
        position = self.position
        result = self.read_element()
        if not isinstance(result, kinds):
            self.fail(accepted, position)
        self.expect("]")
        return result

    def read_choice(self, choices: dict[str, Any], what: str) -> Any:
        if self.token not in choices:
            self.fail(f"{what}: {', '.join(choices)}")
        return choices[self.take()]

    def read_complex(self, kind: str) -> Type:
        self.expect("[")
        part = self.read_choice(_PARTS, "the type of each part")
        self.expect("]")
        return Complex(part)

    def read_unaligned(self, kind: str) -> Type:
        return Unaligned(
            self.read_inner((*_SWAPPABLE, Byteswap, Structure), "a number, string, date or record, swapped or not")
        )

    def read_byteswap(self, kind: str) -> Type:
        return Byteswap(self.read_inner(_SWAPPABLE, "a number, string or date; unaligned[byteswap[T]] in this order"))

    def read_option(self, kind: str) -> Type:
        position = self.position
        inner = self.read_element()
        if isinstance(inner, Option):
            self.fail("one '?' only", position)
        return Option(inner)

    def read_bracketed_option(self, kind: str) -> Type:
        """``option[T]``, where T may have dimensions."""
        self.expect("[")
        position = self.position
        inner = self.read_type()
        if isinstance(inner, Option):
            self.fail("one option only", position)
        self.expect("]")
        return Option(inner)

    def read_bytes(self, kind: str) -> Type:
        return Bytes()

    def read_categorical(self, kind: str) -> Type:
        self.expect("[")
        self.expect("type")
        self.expect("=")
        inner = self.read_type()
        self.expect("]")
        return Categorical(inner)

    def read_string(self, kind: str) -> Type:
        if self.token != "[":
            return String()
        self.take()
        length = self.read_integer("a length in units of the encoding")
        self.expect(",")
        encoding = self.read_choice(_ENCODINGS, "an encoding")
        self.expect("]")
        return String(length, encoding)

    def read_fixed_bytes(self, kind: str) -> Type:
        self.expect("[")
        size = self.read_integer("a size in bytes")
        self.expect(",")
        position = self.position
        alignment = self.read_integer("an alignment in bytes")
        if alignment.bit_count() != 1:
            self.fail("an alignment in bytes that is a power of two", position)
        self.expect("]")
        return FixedBytes(size, alignment)

    def read_void(self, kind: str) -> Type:
        self.expect("[")
        size = self.read_integer("a size in bytes")
        self.expect("]")
        return Void(size)

    def read_time(self, kind: str) -> Type:
        if self.token != "[":
            return Time(kind)
        self.take()
        found = _UNIT.fullmatch(self.token)
        if found is None or int(found[1] or 1) >= 2**31:
            self.fail("a unit of NumPy's, such as ns, or a multiple of one, such as 10ms")
        unit = self.take()
        self.expect("]")
        return Time(kind, unit)

    def read_structure(self, kind: str) -> Type:
        fields: dict[str, Type] = {}
        while self.token != "}":
            if fields:
                self.expect(",")
            position = self.position
            name = self.read_name()
            if name in fields:
                self.fail(f"another name than {show(name)}, which the record has already", position)
            self.expect(":")
            fields[name] = self.read_type()
        self.take()
        return Structure(tuple(fields.items()))

    def read_name(self) -> str:
        """A field's name; a quoted one may be anything."""
        if _PLAIN_NAME.fullmatch(self.token):
            return self.take()
        if self.token[:1] == "'":
            return self.take()[1:-1]
        try:
            name = json.loads(self.token, strict=False)
        except ValueError:
            name = None
        if not isinstance(name, str):
            self.fail(
                "a field (name: type), its name of letters, digits and '_' or quoted as in JSON; '}' ends the record"
            )
        self.take()
        return name


_ENCODINGS = {repr(name): name for name in ("ascii", "utf8", "utf16", "utf32")}
_UNIT = re.compile(r"([2-9]|[1-9]\d{1,9})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)", re.ASCII)
_SWAPPABLE = (Number, Complex, String, Time)
_CONSTRUCTORS: dict[str, Callable[[_Parser, str], Type]] = {
    "complex": _Parser.read_complex,
    "unaligned": _Parser.read_unaligned,
    "byteswap": _Parser.read_byteswap,
    "string": _Parser.read_string,
    "bytes": _Parser.read_bytes,
    "categorical": _Parser.read_categorical,
    "fixed_bytes": _Parser.read_fixed_bytes,
    "void": _Parser.read_void,
    "datetime64": _Parser.read_time,
    "timedelta64": _Parser.read_time,
    "{": _Parser.read_structure,
    "?": _Parser.read_option,
    "option": _Parser.read_bracketed_option,
}
