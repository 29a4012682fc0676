"""Datashape language, which describes the type of an array in one line.

    type      = { dimension "*" } element
    dimension = length | "strided" | "var"
    element   = number | "?" element | "option" "[" type "]" | "bytes" | "categorical" "[" "type" "=" type "]"
              | "extension" "[" ( name | quoted ) "," type "]"
              | "{" [ field { "," field } ] "}" | "union" "[" [ type { "," type } ] "]"
              | "complex" "[" number "]" | "unaligned" "[" element "]" | "byteswap" "[" element "]"
              | "string" [ "[" length "," encoding "]" ] | "fixed_bytes" "[" size "," alignment "]"
              | "void" "[" size "]" | ( "datetime64" | "timedelta64" ) [ "[" unit "]" ]
              | "date32" | "date64" | ( "time32" | "time64" ) "[" unit "]" | "timestamp" "[" unit "," zone "]"
              | ( "decimal32" | "decimal64" | "decimal128" | "decimal256" ) "[" precision "," scale "]"
              | "interval" "[" ( "M" | "D" | "MDn" ) "]" | "null" | "run_end" "[" type "]"
    field     = ( name | quoted ) ":" type

Source: the datashape specification, and the documentation of DyND's array. arrayhub adds ``void`` (NumPy's raw bytes)
and the units of datetimes, so that every NumPy dtype has a datashape. Some types correspond to Arrow types that NumPy
does not have: dates, times of day, timestamps with a time zone, decimals, intervals, unions, runs, null and extension
types. A timestamp without a time zone is a ``datetime64``. The type of a record does not contain the offsets of its
fields.

The type string of a `Request` follows the same grammar, with names for lengths, a leading ``...``, and a set of numbers
in place of the element type:

    pattern   = [ "..." "*" ] { ( length | "strided" | name ) "*" } ( number | "{" number { "," number } "}" )
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, FIRST_USER_TYPENUM, element_types, numpy_dtype
from arrayhub._core.errors import show
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import array_or_nested
from arrayhub.inspection.unread import array_besides

STRIDED = "strided"
VAR = "var"
MAX_RECORDS = 64  # maximum nesting of records
MAX_NESTING = 64 + MAX_RECORDS  # NumPy's maximum number of dimensions, plus the maximum nesting of records
MAX_LENGTH = 2**63 - 1
MAX_PATTERN = 64  # maximum number of lengths, and of element types, in the type string of a `Request`


# -------------------------------------------------------------------------------------------------------- the types


@dataclass(frozen=True, slots=True, repr=False)
class Type:
    """Type of an array, which consists of its dimensions and its element type. Hashable. `str` returns the datashape.

    `datashape.parse` creates a type from a string. Two types are equal if their strings are equal.

    Attributes
    ----------
    shape : tuple
        Dimensions: an int (length in elements), ``"strided"`` (length not part of the type), or ``"var"`` (rows of
        different lengths).
    dtype : numpy.dtype
        Element type. The fields of a record are packed, because their offsets are not part of the type. Raises
        TypeError if NumPy does not have an equivalent type, for example for ``var``, ``string``, ``?T`` and ``date32``.

    Examples
    --------
    >>> t = arrayhub.datashape.parse("2 * 3 * float64")
    >>> t.shape, t.dtype, str(t)
    ((2, 3), dtype('float64'), '2 * 3 * float64')
    """

    @property
    def shape(self) -> tuple[int | str, ...]:
        return ()

    @property
    def dtype(self) -> np.dtype[Any]:
        return _make_dtype(None, self)

    def __repr__(self) -> str:
        return f"datashape.parse({str(self)!r})"


def _make_dtype(spec: Any, of: Type) -> np.dtype[Any]:
    """Return ``numpy.dtype(spec)``. Raise TypeError if `spec` is None, or if NumPy rejects it."""
    if spec is None:
        raise TypeError(
            f"dtype: NumPy does not have a dtype for {of}; accepted: numbers, datetime64, timedelta64, void[size],"
            " fixed_bytes[size,1], string[length,'utf32'], and records of these"
        )
    try:
        dtype: np.dtype[Any] = np.dtype(spec)
    except (TypeError, ValueError) as error:  # fields with dimensions of unknown length, or an item size above 2 GiB
        raise TypeError(
            f"dtype: NumPy does not have a dtype for {of} ({error}); accepted: elements of less than 2 GiB, with fields"
            " of fixed dimensions"
        ) from error
    return dtype


def _part_dtype(part: Type) -> np.dtype[Any]:
    return _make_dtype((part.dtype, part.shape), part) if part.shape else part.dtype


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
        return _make_dtype(None, self) if self.length == VAR else self.inner.dtype


@dataclass(frozen=True, slots=True, repr=False)
class Record(Type):
    """``{x: int32, y: 3 * float64}``."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{spell_name(name)}: {field}" for name, field in self.fields) + "}"

    @property
    def dtype(self) -> np.dtype[Any]:
        formats = [_part_dtype(field) for _, field in self.fields]  # a list of pairs would rename an empty name
        return _make_dtype({"names": [name for name, _ in self.fields], "formats": formats}, self)


@dataclass(frozen=True, slots=True, repr=False)
class Element(Type):
    """An element type other than a record: its name, and its arguments in brackets.

    - ``int32``, ``bool``, ``complex[float64]``: numbers.
    - ``string``, ``bytes``: text and byte strings of any length. ``string[7,'utf32']`` is text of 7 code units in an
      encoding. ``fixed_bytes[3,1]`` has a size and an alignment in bytes, and ``void[6]`` is raw bytes.
    - ``datetime64[ns]``, ``timedelta64[3s]``. A type without a unit has NumPy's generic unit.
    - ``option``: a T or a missing value, written ``?T``, or ``option[var * T]`` if T has dimensions, as in awkward.
    - ``byteswap[T]``: T in non-native byte order. ``unaligned[T]``: T at any address. In NumPy, the alignment of an
      array is not part of the dtype.
    - ``categorical[type=T]``: each element is an index into a list of categories of type T.
    - ``extension["pandas.period", int64]``: the name of an Arrow extension type, and its storage type.
    - ``union[int32, string]``: each element has one of the types. ``run_end[T]``: runs of equal elements.
    - ``date32``, ``time32[s]``, ``timestamp[ns, UTC]``, ``decimal128[10, 2]``, ``null``: Arrow's other types.

    Arguments are types, integers, and text as it is spelled in the datashape: `spell_name` and `spell_zone` add quotes.
    """

    name: str
    arguments: tuple[Any, ...] = ()

    @property
    def inner(self) -> Type:
        """The last argument: T in ``option[T]`` or ``extension[name, T]``."""
        inner: Type = self.arguments[-1]
        return inner

    def __str__(self) -> str:
        if self.name == "option" and not isinstance(self.inner, Dimension):
            return f"?{self.inner}"
        if not self.arguments and self.name != "union":
            return self.name
        keyword = "type=" if self.name == "categorical" else ""
        separator = "," if self.name in ("string", "fixed_bytes") else ", "
        return f"{self.name}[{keyword}{separator.join(map(str, self.arguments))}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        make = _DTYPES.get(self.name)
        spec = numpy_dtype(TYPENUMS[self]) if self in TYPENUMS else None if make is None else make(*self.arguments)
        return _make_dtype(spec, self)


# Arguments of ``numpy.dtype`` for element types other than numbers. None if the arguments do not have a NumPy dtype.
_DTYPES: dict[str, Callable[..., Any]] = {
    "string": lambda length=None, encoding=None: f"U{length}" if encoding == "'utf32'" else None,
    "fixed_bytes": lambda size, alignment: f"S{size}" if alignment == 1 else None,
    "void": lambda size: f"V{size}",
    "datetime64": lambda unit="generic": f"M8[{unit}]",
    "timedelta64": lambda unit="generic": f"m8[{unit}]",
    "byteswap": lambda inner: inner.dtype.newbyteorder("S"),
    "unaligned": lambda inner: inner.dtype,
    "extension": lambda name, inner: _part_dtype(inner),
}

_PLAIN_ZONE = re.compile(r"[\w+\-/:]+", re.ASCII)
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = r"""\"(?:[^"\\]|\\.)*"|'[^']*'"""


def spell_name(name: str) -> str:
    """Return the spelling of a name in a datashape. Names that are not identifiers are quoted as in JSON."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name)


def spell_zone(zone: str) -> str:
    """Return the spelling of a time zone in a datashape."""
    return zone if _PLAIN_ZONE.fullmatch(zone) else json.dumps(zone)


def make_option(inner: Type) -> Element:
    """Return the type of elements that are of type `inner` or missing."""
    return Element("option", (inner,))


def is_option(one: Type) -> bool:
    return isinstance(one, Element) and one.name == "option"


# --------------------------------------------------------------------------------------------- names of element types

_SIZED = {"i": "int", "u": "uint", "f": "float"}  # kinds whose names end with the number of bits
# Type of the real and imaginary parts of complex types for which ``float{half the bits}`` is wrong.
_PARTS = {"clongdouble": "longdouble", "bcomplex32": "bfloat16"}


def _type_of_row(row: dict[str, Any]) -> Element | None:
    """Return the type that a row of `element_types` describes, or None if the type depends on the dtype object."""
    name, kind, bits = row["name"], row["kind"], row["bits"]
    if kind == "c" or name in ("complex32", "bcomplex32"):  # complex32 and bcomplex32 do not have a NumPy kind
        return Element("complex", (Element(_PARTS.get(name, f"float{bits // 2}")),))
    if kind in _SIZED and name != "longdouble":
        return Element(f"{_SIZED[kind]}{bits}")
    return Element(name) if kind in "bfE" else None


_BY_TYPENUM = {row["typenum"]: one for row in element_types() if (one := _type_of_row(row)) is not None}
TYPENUMS: dict[Type, int] = {}  # type numbers of all numbers
for _typenum, _type in _BY_TYPENUM.items():
    TYPENUMS.setdefault(_type, _typenum)  # C types of equal size, such as long and long long, have one name
_NUMBERS: dict[str, Element] = {str(one): one for one in _BY_TYPENUM.values() if not one.arguments}
_COMPLEX = {row["name"]: _BY_TYPENUM[row["typenum"]] for row in element_types() if "complex" in row["name"]}
_COMPLEX_PARTS = {str(one.inner): one.inner for one in _BY_TYPENUM.values() if one.arguments}


# ----------------------------------------------------------------------------------------------- datashape of an array


def of(obj: Any, /, symbolic: bool = False) -> str:
    """Return the datashape of an array.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `asnested` accepts.
    symbolic : bool, optional
        Write ``strided *`` instead of the length of each dimension, as in DyND. For nested data, only the length of the
        first dimension is replaced.

    Returns
    -------
    str
        For example ``"2 * 3 * int32"``, or ``"strided * strided * int32"`` in symbolic form.

    Raises
    ------
    TypeError, ValueError, BufferError
        As in `asarray`. BufferError is also raised for a query or a stream that can be read only once, unless the
        object supports a protocol other than Arrow.

    Examples
    --------
    >>> arrayhub.datashape.of(numpy.zeros((2, 3), "i4"))
    '2 * 3 * int32'
    """
    besides = array_besides(obj, "datashape.of")
    x = array_or_nested(obj) if besides is None else besides
    if not isinstance(x, USMArray):
        return str(Dimension(STRIDED, x.type.inner) if symbolic else x.type)
    return str(type_of(x, symbolic))


def type_of(x: USMArray, symbolic: bool = False) -> Type:
    """Return the type of an array. See `of`."""
    element: Type | None = _BY_TYPENUM.get(x.typenum)
    if element is None or (x.typenum < FIRST_OWN_TYPENUM and not x.dtype.isnative):
        element = _type_of_dtype(x.dtype)
    if not x.flags.aligned:
        element = Element("unaligned", (element,))
    return _add_dimensions([STRIDED] * x.ndim if symbolic else x.shape, element)


def _add_dimensions(lengths: Iterable[int | str], element: Type) -> Type:
    for length in reversed(tuple(lengths)):
        element = Dimension(length, element)
    return element


def _type_of_dtype(dtype: np.dtype[Any], level: int = 0) -> Type:
    """Return the type of a NumPy dtype, including its fields and sub-arrays. `level` counts the enclosing records."""
    if level > MAX_RECORDS:
        raise ValueError(f"datashape: records are nested {level} levels deep; accepted: at most {MAX_RECORDS}")
    if dtype.subdtype is not None:
        return _add_dimensions(dtype.shape, _type_of_dtype(dtype.base, level))
    if dtype.names is not None:
        fields: Any = dtype.fields
        return Record(tuple((name, _type_of_dtype(fields[name][0], level + 1)) for name in dtype.names))
    of_kind = _OF_KIND.get(dtype.kind) if dtype.num < FIRST_USER_TYPENUM else None  # ml_dtypes' types have kind V
    element = of_kind(dtype) if of_kind else _BY_TYPENUM.get(dtype.num) or (_NUMBERS | _COMPLEX)[dtype.type.__name__]
    return element if dtype.isnative else Element("byteswap", (element,))


def _type_of_time(dtype: np.dtype[Any]) -> Element:
    unit, count = np.datetime_data(dtype)
    name = "datetime64" if dtype.kind == "M" else "timedelta64"
    return Element(name, () if unit == "generic" else (f"{'' if count == 1 else count}{unit}",))


_OF_KIND: dict[str, Callable[[np.dtype[Any]], Element]] = {
    "S": lambda dtype: Element("fixed_bytes", (dtype.itemsize, 1)),
    "U": lambda dtype: Element("string", (dtype.itemsize // 4, "'utf32'")),
    "V": lambda dtype: Element("void", (dtype.itemsize,)),
    "M": _type_of_time,
    "m": _type_of_time,
}


# --------------------------------------------------------------------------------------------------------- the parser


def parse(s: str) -> Type:
    """Parse a datashape.

    Parameters
    ----------
    s : str
        Datashape, such as ``"2 * 3 * int32"``, ``"strided * unaligned[byteswap[int32]]"``,
        ``"{x: int32, y: 3 * float64}"`` or ``"var * ?string"``. Spaces between tokens are ignored.

    Returns
    -------
    Type
        Hashable type. Its `str` is the datashape in canonical form, such as ``{c: ?int8}`` for
        ``'{"c": option[int8]}'``. Parsing this string returns an equal type.

    Raises
    ------
    TypeError
        `s` is not a string.
    ValueError
        `s` is not a datashape. The message states the position and the tokens that are accepted there.

    Examples
    --------
    >>> t = arrayhub.datashape.parse("2 * 3 * int32")
    >>> t.shape, t.dtype
    ((2, 3), dtype('int32'))
    """
    if not isinstance(s, str):
        raise TypeError(
            f"datashape.parse: s is {show(s)}, a {type(s).__name__}; accepted: a str such as '2 * 3 * int32'"
        )
    parser = _Parser(f"datashape.parse: {show(s)}", s)
    return parser.end_with(parser.read_type())


class Pattern(NamedTuple):
    """The parsed type string of a `Request`.

    Attributes
    ----------
    lengths : tuple of int or str or None
        One entry per dimension: its length, the name of its length, or None for any length.
    leading : bool
        Whether any number of further dimensions may precede `lengths`.
    elements : tuple of Element
        Accepted element types, which are numbers.
    """

    lengths: tuple[int | str | None, ...]
    leading: bool
    elements: tuple[Element, ...]

    def __str__(self) -> str:
        parts = ["any" if length is None else str(length) for length in self.lengths]
        if self.leading:
            parts.insert(0, "...")
        return f"({', '.join(parts)})"


def parse_pattern(text: str) -> Pattern:
    """Parse the type string of a `Request`. Raise ValueError if `text` does not follow the grammar.

    ``strided`` matches any length. Complex numbers may have NumPy's names, such as ``complex64``.
    """
    parser = _Parser(f"Request: type is {show(text)}", text)
    return parser.end_with(parser.read_pattern())


_TOKEN = re.compile(rf"[A-Za-z0-9_]+|{_QUOTED}|\.\.\.|[*{{}}\[\]:,?=]|\Z")
_SPACES = re.compile(r"\s*")
_ELEMENT = "an element type such as int32, complex[float64], string, fixed_bytes[3,1] or {x: int32}"
_TYPE = f"a dimension ('3 *', 'strided *', 'var *') or {_ELEMENT}"
_NUMBER = "a number such as float32 or complex[float64], or a set such as {float32, float64}"
_LENGTHS = "a length, a name for a length, 'strided', or a leading '...', as in 'n * 3 * float32' or '... * float32'"
_MOST = f"at most {MAX_PATTERN} types and {MAX_PATTERN} dimensions"

_T = TypeVar("_T")


class _Argument(NamedTuple):
    """A part of a datashape that is not a type: a length, a name, or an argument such as a unit."""

    pattern: re.Pattern[str]
    accepted: str  # description for errors
    convert: Callable[[str], Any]  # raises TypeError or ValueError for text that is not accepted


def _argument(pattern: str, accepted: str, convert: Callable[[str], Any] = str) -> _Argument:
    return _Argument(re.compile(rf"(?:{pattern})(?!\w)", re.ASCII), accepted, convert)


def _choice(what: str, *choices: str) -> _Argument:
    return _argument("|".join(choices), f"{what}: {', '.join(choices)}")


def _read_length(text: str) -> int:
    length = int(text)
    if length > MAX_LENGTH:
        raise ValueError(text)
    return length


def _read_name(text: str) -> str:
    """Return an identifier, or the content of any string in quotes."""
    if text[0] == "'":
        return text[1:-1]
    return str(json.loads(text, strict=False)) if text[0] == '"' else text


_LENGTH = _argument(r"\d+", "a length or a size, 0 to 2**63 - 1", _read_length)
_NAME = f"{_PLAIN_NAME.pattern}|{_QUOTED}"
_FIELD = _argument(
    _NAME, "a field (name: type) with an identifier or a JSON string as name, or '}' to end the record", _read_name
)


class _Parser:
    """Recursive descent parser. `position` is the start of the next token, and `subject` the start of errors."""

    def __init__(self, subject: str, text: str) -> None:
        self.subject = subject
        self.text = text
        self.depth = 0
        self.advance(0)

    # -------------------------------------------------------------------------------------------------- tokens

    @property
    def token(self) -> str:
        """The next token, or ``""`` at the end."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            self.fail("names, numbers, quoted names and * { } [ ] : , ? =")
        return found[0]

    def advance(self, position: int) -> None:
        spaces = _SPACES.match(self.text, position)
        self.position = spaces.end() if spaces is not None else position

    def take(self) -> str:
        """Return the next token, and advance to the token after it."""
        token = self.token
        self.advance(self.position + len(token))
        return token

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(repr(token))
        self.take()

    def end_with(self, result: _T) -> _T:
        """Return `result` if the text ends here."""
        if self.token:
            self.fail("the end of the type")
        return result

    def fail(self, accepted: str, position: int | None = None) -> NoReturn:
        position = self.position if position is None else position
        found = show(self.text[position : position + 40]) if position < len(self.text) else "the end"
        raise ValueError(f"{self.subject}, at position {position}: {found}; accepted: {accepted}")

    def check_depth(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"at most {MAX_NESTING} nested types and dimensions")

    def read_argument(self, argument: _Argument) -> Any:
        found = argument.pattern.match(self.text, self.position)
        try:
            value = None if found is None else argument.convert(found[0])
        except (TypeError, ValueError):
            found = None
        if found is None:
            self.fail(argument.accepted)
        self.advance(found.end())
        return value

    # --------------------------------------------------------------------------------------------------- types

    def read_type(self) -> Type:
        """Parse dimensions and an element type."""
        lengths: list[int | str] = []
        while self.token.isdecimal() or self.token in (STRIDED, VAR):
            lengths.append(self.read_argument(_LENGTH) if self.token.isdecimal() else self.take())
            self.check_depth()
            self.expect("*")
        result = _add_dimensions(lengths, self.read_element(_ELEMENT if lengths else _TYPE))
        self.depth -= len(lengths)
        return result

    def read_element(self, accepted: str = _ELEMENT) -> Type:
        self.check_depth()
        result: Type
        name = self.token
        if name == "{":
            self.take()
            result = self.read_record()
        elif name == "?":
            self.take()
            result = make_option(self.read_accepted(self.read_element, *_NO_OPTION))
        elif name in _NUMBERS:
            result = _NUMBERS[self.take()]
        elif name in _ARGUMENTS:
            self.take()
            result = Element(name, self.read_arguments(name))
        else:
            numbers = f". The numbers are {', '.join(_NUMBERS)}" if name[:1].isalpha() else ""
            self.fail(f"{accepted}{numbers}")
        self.depth -= 1
        return result

    def read_accepted(self, read: Callable[[], Type], is_accepted: Callable[[Type], bool], accepted: str) -> Type:
        """Parse a type that fulfills a condition."""
        position = self.position
        result = read()
        if not is_accepted(result):
            self.fail(accepted, position)
        return result

    def read_arguments(self, name: str) -> tuple[Any, ...]:
        """Parse the arguments of an element type in brackets."""
        accepted = _ARGUMENTS[name]
        if not accepted or (name in _WITHOUT_ARGUMENTS and self.token != "["):
            return ()
        self.expect("[")
        if name == "union":
            return tuple(self.read_items("]", self.read_type))
        arguments = []
        for number, argument in enumerate(accepted):
            if number:
                self.expect(",")
            arguments.append(self.read_argument(argument) if isinstance(argument, _Argument) else argument(self))
        self.expect("]")
        return tuple(arguments)

    def read_items(self, end: str, read: Callable[[], _T]) -> list[_T]:
        """Parse items separated by commas, and the token `end`."""
        items: list[_T] = []
        while self.token != end:
            if items:
                self.expect(",")
            items.append(read())
        self.take()
        return items

    def read_record(self) -> Record:
        names: set[str] = set()

        def read_field() -> tuple[str, Type]:
            position = self.position
            name = self.read_argument(_FIELD)
            if name in names:
                self.fail(f"a name other than {show(name)}, which the record already has", position)
            names.add(name)
            self.expect(":")
            return name, self.read_type()

        return Record(tuple(self.read_items("}", read_field)))

    def read_categories(self) -> Type:
        self.expect("type")
        self.expect("=")
        return self.read_type()

    # ------------------------------------------------------------------------------------- type strings of Request

    def read_pattern(self) -> Pattern:
        """Parse lengths and numbers."""
        leading = self.token == "..."
        if leading:
            self.take()
            self.expect("*")
        lengths: list[int | str | None] = []
        while _STAR_NEXT.match(self.text, self.position):
            if len(lengths) == MAX_PATTERN:
                self.fail(_MOST)
            lengths.append(self.read_length())
            self.expect("*")
        if self.token == "{":
            self.take()
            elements = self.read_items("}", self.read_number) or self.fail(_NUMBER, self.position - 1)
        else:
            elements = [self.read_number(f"{_LENGTHS}, or {_NUMBER}")]
        if len(elements) > MAX_PATTERN:
            self.fail(_MOST)
        return Pattern(tuple(lengths), leading, tuple(elements))

    def read_length(self) -> int | str | None:
        if self.token == VAR:
            self.fail(f"{_LENGTHS}. Rows that differ in length are for arrayhub.asnested(x)")
        if self.token == STRIDED:
            self.take()
            return None
        if _PLAIN_NAME.fullmatch(self.token):
            return self.take()
        length: int = self.read_argument(_LENGTH._replace(accepted=_LENGTHS))
        return length

    def read_number(self, accepted: str = _NUMBER) -> Element:
        if self.token in _COMPLEX:
            return _COMPLEX[self.take()]
        number: Any = self.read_accepted(partial(self.read_element, accepted), TYPENUMS.__contains__, accepted)
        return cast(Element, number)


_STAR_NEXT = re.compile(r"\w+\s*\*", re.ASCII)
_NO_OPTION = (lambda inner: not is_option(inner), "a single '?' or option")
_SWAPPABLE = (*_NUMBERS, "complex", "string", "datetime64", "timedelta64")
_SWAPPABLE_TEXT = "a number, string, datetime64 or timedelta64"
_SCALE = _argument(r"-?\d{1,9}", "a scale (an integer)", int)
_ALIGNMENT = _argument(
    "|".join(str(2**power) for power in range(63)), "an alignment in bytes that is a power of two", int
)
_UNIT = _argument(
    r"([1-9]\d*)?[A-Za-z]{1,2}",
    "a NumPy unit, such as ns, or a multiple of a unit, such as 10ms",
    lambda text: _type_of_time(np.dtype(f"M8[{text}]")).arguments[0],
)
_TIMESTAMP_UNIT = _argument(
    r"(s|ms|us|ns)(?=\s*,)",
    "a unit: s, ms, us, ns, and a time zone; datetime64 is the type of timestamps without a time zone",
)
_ZONE = _argument(
    f"{_PLAIN_ZONE.pattern}|{_QUOTED}",
    "a time zone such as Europe/Berlin",
    lambda text: spell_zone(_read_name(text)),
)
_EXTENSION = _argument(
    _NAME,
    "the name of an extension type, quoted as in JSON unless it is an identifier",
    lambda text: spell_name(_read_name(text)),
)


def _one_of(names: Iterable[str], accepted: str) -> Callable[[_Parser], Type]:
    """Return a function that parses an element type with one of `names`, or a record if they contain ``"record"``."""

    def is_accepted(element: Type) -> bool:
        return (element.name if isinstance(element, Element) else "record") in names

    return lambda parser: parser.read_accepted(parser.read_element, is_accepted, accepted)


# For each element type other than a number: its arguments, or functions that parse them if they are types.
_ARGUMENTS: dict[str, tuple[_Argument | Callable[[_Parser], Type], ...]] = {
    **dict.fromkeys(("bytes", "date32", "date64", "null"), ()),
    **dict.fromkeys(("datetime64", "timedelta64"), (_UNIT,)),
    **dict.fromkeys(("decimal32", "decimal64", "decimal128", "decimal256"), (_LENGTH, _SCALE)),
    "string": (_LENGTH, _choice("an encoding", "'ascii'", "'utf8'", "'utf16'", "'utf32'")),
    "complex": (_choice("the type of the parts", *_COMPLEX_PARTS)._replace(convert=_COMPLEX_PARTS.__getitem__),),
    "unaligned": (_one_of((*_SWAPPABLE, "record", "byteswap"), f"{_SWAPPABLE_TEXT}, a record or byteswap[T]"),),
    "byteswap": (_one_of(_SWAPPABLE, f"{_SWAPPABLE_TEXT}. Write unaligned[byteswap[T]] if T is also unaligned"),),
    "categorical": (_Parser.read_categories,),
    "extension": (_EXTENSION, _Parser.read_type),
    "fixed_bytes": (_LENGTH, _ALIGNMENT),
    "void": (_LENGTH,),
    "time32": (_choice("a unit", "s", "ms"),),
    "time64": (_choice("a unit", "us", "ns"),),
    "interval": (_choice("a unit", "M", "D", "MDn"),),
    "timestamp": (_TIMESTAMP_UNIT, _ZONE),
    "run_end": (_Parser.read_type,),
    "union": (_Parser.read_type,),  # and any number of further types
    "option": (lambda parser: parser.read_accepted(parser.read_type, *_NO_OPTION),),
}
_WITHOUT_ARGUMENTS = ("string", "datetime64", "timedelta64")  # may have no brackets
