"""Parser of the datashape language. The docstring of the module `types` contains the grammar."""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from arrayhub._core.errors import show
from arrayhub.inspection.datashape.types import (
    MAX_RECORDS,
    NUMBERS,
    PARTS,
    PLAIN_NAME,
    PLAIN_ZONE,
    STRIDED,
    VAR,
    Bytes,
    Byteswap,
    Categorical,
    Complex,
    Extension,
    FixedBytes,
    Logical,
    Number,
    Option,
    RunEnd,
    String,
    Structure,
    Time,
    Type,
    Unaligned,
    Union,
    Void,
    with_dimensions,
)

MAX_NESTING = 64 + MAX_RECORDS  # NumPy's maximum number of dimensions, plus the maximum nesting of records
MAX_LENGTH = 2**63 - 1


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
    return _Parser(s).parse()


_TOKEN = re.compile(r"""\s*(?P<text>[A-Za-z0-9_]+|"(?:[^"\\]|\\.)*"|'[^']*'|[*{}\[\]:,?=]|\Z)""")
_FIELD = "a field (name: type) with an identifier or a JSON string as name, or '}' to end the record"
_ELEMENT = "an element type such as int32, complex[float64], string, fixed_bytes[3,1] or {x: int32}"
_TYPE = f"a dimension ('3 *', 'strided *', 'var *') or {_ELEMENT}"


class _Parser:
    """Recursive descent parser. `position` is the start of the current token."""

    def __init__(self, s: str) -> None:
        self.s = s
        self.end = 0
        self.depth = 0
        self.take()

    def take(self) -> str:
        """Advance to the next token, and return the previous token."""
        left = getattr(self, "token", "")
        found = _TOKEN.match(self.s, self.end)
        if found is None:
            self.position = self.end + len(self.s[self.end :]) - len(self.s[self.end :].lstrip())
            self.token = self.s[self.position]
            self.fail("names, numbers, quoted names and * { } [ ] : , ? =")
        self.position, self.end = found.span("text")
        self.token = found["text"]
        return left

    def fail(self, accepted: str, position: int | None = None) -> NoReturn:
        position = self.position if position is None else position
        found = show(self.s[position : position + 40]) if position < len(self.s) else "the end"
        raise ValueError(f"datashape.parse: {show(self.s)}, at position {position}: {found}; accepted: {accepted}")

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(repr(token))
        self.take()

    def read_integer(self, what: str) -> int:
        """Parse a length or a size."""
        if not self.token.isdecimal() or len(self.token) > 19 or int(self.token) > MAX_LENGTH:
            self.fail(f"{what}, 0 to 2**63 - 1")
        return int(self.take())

    def parse(self) -> Type:
        result = self.read_type()
        if self.token:
            self.fail("the end of the type")
        return result

    def read_type(self) -> Type:
        """Parse dimensions and an element type."""
        lengths: list[int | str] = []
        while self.token.isdecimal() or self.token in (STRIDED, VAR):
            lengths.append(self.read_integer("a length") if self.token.isdecimal() else self.take())
            self.deeper()
            self.expect("*")
        result = with_dimensions(lengths, self.read_element(_ELEMENT if lengths else _TYPE))
        self.depth -= len(lengths)
        return result

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"at most {MAX_NESTING} nested types and dimensions")

    def read_element(self, accepted: str = _ELEMENT) -> Type:
        self.deeper()
        kind = self.token
        if kind in _WITH_BRACKETS:
            self.take()
            self.expect("[")
            result = _WITH_BRACKETS[kind](self, kind)
            self.expect("]")
        elif kind in _CONSTRUCTORS:
            self.take()
            result = _CONSTRUCTORS[kind](self, kind)
        elif self.token in NUMBERS:
            result = NUMBERS[self.take()]
        else:
            self.fail(f"{accepted}. The numbers are {', '.join(NUMBERS)}")
        self.depth -= 1
        return result

    def read_inner(self, kinds: tuple[type[Type], ...], accepted: str) -> Type:
        """Parse an element type, which must be an instance of one of `kinds`."""
        position = self.position
        result = self.read_element()
        if not isinstance(result, kinds):
            self.fail(accepted, position)
        return result

    def read_choice(self, choices: dict[str, Any], what: str) -> Any:
        if self.token not in choices:
            self.fail(f"{what}: {', '.join(choices)}")
        return choices[self.take()]

    def read_complex(self, kind: str) -> Type:
        return Complex(self.read_choice(PARTS, "the type of the real and imaginary parts"))

    def read_unaligned(self, kind: str) -> Type:
        return Unaligned(
            self.read_inner((*_SWAPPABLE, Byteswap, Structure), f"{_SWAPPABLE_NAMES}, a record or byteswap[T]")
        )

    def read_byteswap(self, kind: str) -> Type:
        accepted = f"{_SWAPPABLE_NAMES}. Write unaligned[byteswap[T]] if T is also unaligned"
        return Byteswap(self.read_inner(_SWAPPABLE, accepted))

    def read_option(self, kind: str) -> Type:
        position = self.position
        inner = self.read_element()
        if isinstance(inner, Option):
            self.fail("a single '?'", position)
        return Option(inner)

    def read_bracketed_option(self, kind: str) -> Type:
        """Parse the T of ``option[T]``, which may have dimensions."""
        position = self.position
        inner = self.read_type()
        if isinstance(inner, Option):
            self.fail("a single option", position)
        return Option(inner)

    def read_categorical(self, kind: str) -> Type:
        self.expect("type")
        self.expect("=")
        return Categorical(self.read_type())

    def read_extension(self, kind: str) -> Type:
        name = self.read_name("the name of an extension type, quoted as in JSON unless it is an identifier")
        self.expect(",")
        return Extension(name, self.read_type())

    def read_string(self, kind: str) -> Type:
        if self.token != "[":
            return String()
        self.take()
        length = self.read_integer("a length in code units of the encoding")
        self.expect(",")
        encoding = self.read_choice(_ENCODINGS, "an encoding")
        self.expect("]")
        return String(length, encoding)

    def read_fixed_bytes(self, kind: str) -> Type:
        size = self.read_integer("a size in bytes")
        self.expect(",")
        position = self.position
        alignment = self.read_integer("an alignment in bytes")
        if alignment.bit_count() != 1:
            self.fail("an alignment in bytes that is a power of two", position)
        return FixedBytes(size, alignment)

    def read_time(self, kind: str) -> Type:
        if self.token != "[":
            return Time(kind)
        self.take()
        found = _UNIT.fullmatch(self.token)
        if found is None or int(found[1] or 1) >= 2**31:
            self.fail("a NumPy unit, such as ns, or a multiple of a unit, such as 10ms")
        unit = self.take()
        self.expect("]")
        return Time(kind, unit)

    def read_time_of_day(self, kind: str) -> Type:
        return Logical(kind, self.read_unit(kind))

    def read_unit(self, kind: str) -> Any:
        return self.read_choice({unit: unit for unit in _UNITS[kind]}, "a unit")

    def read_timestamp(self, kind: str) -> Type:
        """Parse ``timestamp[unit, zone]``. A zone that does not match `PLAIN_ZONE` must be quoted."""
        unit = self.read_unit(kind)
        if self.token != ",":
            self.fail("',' and a time zone; datetime64 is the type of timestamps without a time zone")
        plain = _PLAIN_ZONE.match(self.s, self.end)
        if plain is None:
            self.take()
            zone = self.read_name("a time zone such as Europe/Berlin")
        else:
            zone, self.end = plain[1], plain.end()
            self.take()
        return Logical(kind, unit, zone)

    def read_decimal(self, kind: str) -> Type:
        precision = self.read_integer("a number of digits")
        if self.token != ",":
            self.fail("','")
        scale = _SCALE.match(self.s, self.end)
        if scale is None:
            self.take()
            self.fail("a scale (an integer)")
        self.end = scale.end()
        self.take()
        return Logical(kind, f"{precision}, {int(scale[1])}")

    def read_structure(self, kind: str) -> Type:
        fields: dict[str, Type] = {}
        while self.token != "}":
            if fields:
                self.expect(",")
            position = self.position
            name = self.read_name(_FIELD)
            if name in fields:
                self.fail(f"a name other than {show(name)}, which the record already has", position)
            self.expect(":")
            fields[name] = self.read_type()
        self.take()
        return Structure(tuple(fields.items()))

    def read_union(self, kind: str) -> Type:
        types: list[Type] = []
        while self.token != "]":
            if types:
                self.expect(",")
            types.append(self.read_type())
        return Union(tuple(types))

    def read_name(self, accepted: str) -> str:
        """Parse an identifier, or any string in quotes."""
        if PLAIN_NAME.fullmatch(self.token):
            return self.take()
        if self.token[:1] == "'":
            return self.take()[1:-1]
        try:
            name = json.loads(self.token, strict=False)
        except ValueError:
            name = None
        if not isinstance(name, str):
            self.fail(accepted)
        self.take()
        return name


_ENCODINGS = {repr(name): name for name in ("ascii", "utf8", "utf16", "utf32")}
_UNIT = re.compile(r"([2-9]|[1-9]\d{1,9})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)", re.ASCII)
_PLAIN_ZONE = re.compile(rf"\s*({PLAIN_ZONE.pattern})", re.ASCII)
_SCALE = re.compile(r"\s*(-?\d{1,9})", re.ASCII)
_UNITS = {
    "interval": ("M", "D", "MDn"),
    "time32": ("s", "ms"),
    "time64": ("us", "ns"),
    "timestamp": ("s", "ms", "us", "ns"),
}
_SWAPPABLE = (Number, Complex, String, Time)
_SWAPPABLE_NAMES = "a number, string, datetime64 or timedelta64"
# Functions that parse an element type after its first token, and after "[" if the token is in `_WITH_BRACKETS`.
_CONSTRUCTORS: dict[str, Callable[[_Parser, str], Type]] = {
    "string": _Parser.read_string,
    "bytes": lambda parser, kind: Bytes(),
    **dict.fromkeys(("datetime64", "timedelta64"), _Parser.read_time),
    **dict.fromkeys(("date32", "date64", "null"), lambda parser, kind: Logical(kind)),
    "{": _Parser.read_structure,
    "?": _Parser.read_option,
}
_WITH_BRACKETS: dict[str, Callable[[_Parser, str], Type]] = {
    "complex": _Parser.read_complex,
    "unaligned": _Parser.read_unaligned,
    "byteswap": _Parser.read_byteswap,
    "categorical": _Parser.read_categorical,
    "extension": _Parser.read_extension,
    "fixed_bytes": _Parser.read_fixed_bytes,
    "void": lambda parser, kind: Void(parser.read_integer("a size in bytes")),
    **dict.fromkeys(("time32", "time64", "interval"), _Parser.read_time_of_day),
    "timestamp": _Parser.read_timestamp,
    **dict.fromkeys(("decimal32", "decimal64", "decimal128", "decimal256"), _Parser.read_decimal),
    "run_end": lambda parser, kind: RunEnd(parser.read_type()),
    "union": _Parser.read_union,
    "option": _Parser.read_bracketed_option,
}
