"""Datashape language, which describes the type of an array in one line. The module `parser` parses the language.

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
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, FIRST_USER_TYPENUM, element_types, numpy_dtype
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import array_or_nested
from arrayhub.inspection.unread import array_besides

STRIDED = "strided"
VAR = "var"
MAX_RECORDS = 64  # maximum nesting of records


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
        raise TypeError(
            f"dtype: NumPy does not have a dtype for {self}; accepted: numbers, datetime64, timedelta64, void[size],"
            " fixed_bytes[size,1], string[length,'utf32'], and records of these"
        )

    def __repr__(self) -> str:
        return f"datashape.parse({str(self)!r})"


def _numpy_dtype(spec: Any, of: Type) -> np.dtype[Any]:
    """Return ``numpy.dtype(spec)``. Raise TypeError if NumPy rejects `spec`."""
    try:
        dtype: np.dtype[Any] = np.dtype(spec)
    except (TypeError, ValueError) as error:  # fields with dimensions of unknown length, or an item size above 2 GiB
        raise TypeError(
            f"dtype: NumPy does not have a dtype for {of} ({error}); accepted: elements of less than 2 GiB, with fields"
            " of fixed dimensions"
        ) from error
    return dtype


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
    """Real or boolean element type, such as ``int32`` or ``bool``."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = numpy_dtype(_TYPENUMS[self])
        return dtype


@dataclass(frozen=True, slots=True, repr=False)
class Complex(Type):
    """``complex[T]``: a complex number with parts of type T."""

    part: Number
    dtype = Number.dtype

    def __str__(self) -> str:
        return f"complex[{self.part}]"


@dataclass(frozen=True, slots=True, repr=False)
class String(Type):
    """``string[7,'utf32']``: text of 7 code units in an encoding. ``string``: text of any length."""

    length: int | None = None
    encoding: str | None = None

    def __str__(self) -> str:
        return "string" if self.length is None else f"string[{self.length},'{self.encoding}']"

    @property
    def dtype(self) -> np.dtype[Any]:
        return _numpy_dtype(f"U{self.length}", self) if self.encoding == "utf32" else super(String, self).dtype


@dataclass(frozen=True, slots=True, repr=False)
class Bytes(Type):
    """``bytes``: byte strings of any length."""

    def __str__(self) -> str:
        return "bytes"


@dataclass(frozen=True, slots=True, repr=False)
class Categorical(Type):
    """``categorical[type=T]``: each element is an index into a list of categories of type T."""

    inner: Type

    def __str__(self) -> str:
        return f"categorical[type={self.inner}]"


@dataclass(frozen=True, slots=True, repr=False)
class Extension(Type):
    """``extension["pandas.period", int64]``: the name of an Arrow extension type, and its storage type."""

    name: str
    inner: Type

    def __str__(self) -> str:
        return f"extension[{_spell(self.name)}, {self.inner}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype


@dataclass(frozen=True, slots=True, repr=False)
class FixedBytes(Type):
    """``fixed_bytes[size,alignment]``, with size and alignment in bytes."""

    size: int
    alignment: int

    def __str__(self) -> str:
        return f"fixed_bytes[{self.size},{self.alignment}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return _numpy_dtype(f"S{self.size}", self) if self.alignment == 1 else super(FixedBytes, self).dtype


@dataclass(frozen=True, slots=True, repr=False)
class Void(Type):
    """``void[size]``: raw bytes."""

    size: int

    def __str__(self) -> str:
        return f"void[{self.size}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return _numpy_dtype(f"V{self.size}", self)


@dataclass(frozen=True, slots=True, repr=False)
class Time(Type):
    """``datetime64[ns]`` or ``timedelta64[3s]``. A type without a unit has NumPy's generic unit."""

    name: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name}[{self.unit}]" if self.unit else self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Logical(Type):
    """``date32``, ``time32[s]``, ``decimal128[10, 2]`` or ``null``: an Arrow type that NumPy lacks.

    `unit` is the text in the brackets, without the zone of a timestamp.
    """

    name: str
    unit: str = ""
    zone: str = ""

    def __str__(self) -> str:
        zone = self.zone if PLAIN_ZONE.fullmatch(self.zone) else json.dumps(self.zone)
        inside = f"{self.unit}, {zone}" if self.zone else self.unit
        return f"{self.name}[{inside}]" if inside else self.name


@dataclass(frozen=True, slots=True, repr=False)
class Structure(Type):
    """``{x: int32, y: 3 * float64}``: a record."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{_spell(name)}: {field}" for name, field in self.fields) + "}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return _numpy_dtype([(name, field.dtype, field.shape) for name, field in self.fields], self)


@dataclass(frozen=True, slots=True, repr=False)
class RunEnd(Type):
    """``run_end[T]``: runs of equal elements of type T."""

    inner: Type

    def __str__(self) -> str:
        return f"run_end[{self.inner}]"


@dataclass(frozen=True, slots=True, repr=False)
class Union(Type):
    """``union[int32, string]``: each element has one of the types."""

    types: tuple[Type, ...]

    def __str__(self) -> str:
        return f"union[{', '.join(map(str, self.types))}]"


@dataclass(frozen=True, slots=True, repr=False)
class Byteswap(Type):
    """``byteswap[T]``: T in non-native byte order."""

    inner: Type

    def __str__(self) -> str:
        return f"byteswap[{self.inner}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype.newbyteorder("S")


@dataclass(frozen=True, slots=True, repr=False)
class Unaligned(Type):
    """``unaligned[T]``: T at any address. In NumPy, the alignment of an array is not part of the dtype."""

    inner: Type
    dtype = Extension.dtype

    def __str__(self) -> str:
        return f"unaligned[{self.inner}]"


@dataclass(frozen=True, slots=True, repr=False)
class Option(Type):
    """``?T``: a T or a missing value. Written ``option[var * T]`` if T has dimensions, as in awkward."""

    inner: Type

    def __str__(self) -> str:
        return f"option[{self.inner}]" if isinstance(self.inner, Dimension) else f"?{self.inner}"


PLAIN_ZONE = re.compile(r"[\w+\-/:]+", re.ASCII)
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _spell(name: str) -> str:
    """Return the spelling of a name in a datashape. Names that are not identifiers are quoted as in JSON."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


# --------------------------------------------------------------------------------------------- names of element types

_SIZED = {"i": "int", "u": "uint", "f": "float"}  # kinds whose names end with the number of bits
# Type of the real and imaginary parts of complex types for which ``float{half the bits}`` is wrong.
_PARTS = {"clongdouble": "longdouble", "bcomplex32": "bfloat16"}


def _named(row: dict[str, Any]) -> Type | None:
    """Return the type that a row of `element_types` describes, or None if the type depends on the dtype object."""
    name, kind, bits = row["name"], row["kind"], row["bits"]
    if kind == "c" or name in ("complex32", "bcomplex32"):  # complex32 and bcomplex32 do not have a NumPy kind
        return Complex(Number(_PARTS.get(name, f"float{bits // 2}")))
    if kind in _SIZED and name != "longdouble":
        return Number(f"{_SIZED[kind]}{bits}")
    return Number(name) if kind in "bfE" else None


_BY_TYPENUM = {row["typenum"]: named for row in element_types() if (named := _named(row)) is not None}
_TYPENUMS: dict[Type, int] = {}
for _typenum, _type in _BY_TYPENUM.items():
    _TYPENUMS.setdefault(_type, _typenum)  # C types of equal size, such as long and long long, have one name
NUMBERS = {str(named): named for named in _TYPENUMS if isinstance(named, Number)}
PARTS = {str(named.part): named.part for named in _TYPENUMS if isinstance(named, Complex)}


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
    element = _BY_TYPENUM.get(x.typenum)
    if element is None or (x.typenum < FIRST_OWN_TYPENUM and not x.dtype.isnative):
        element = _of_dtype(x.dtype)
    if not x.flags.aligned:
        element = Unaligned(element)
    return with_dimensions([STRIDED] * x.ndim if symbolic else list(x.shape), element)


def with_dimensions(lengths: list[Any], element: Type) -> Type:
    for length in reversed(lengths):
        element = Dimension(length, element)
    return element


def _of_dtype(dtype: np.dtype[Any], level: int = 0) -> Type:
    """Return the type of a NumPy dtype, including its fields and sub-arrays. `level` counts the enclosing records."""
    if level > MAX_RECORDS:
        raise ValueError(f"datashape: records are nested {level} levels deep; accepted: at most {MAX_RECORDS}")
    if dtype.subdtype is not None:
        return with_dimensions(list(dtype.shape), _of_dtype(dtype.base, level))
    if dtype.names is not None:
        fields: Any = dtype.fields
        return Structure(tuple((name, _of_dtype(fields[name][0], level + 1)) for name in dtype.names))
    of_kind = _OF_KIND.get(dtype.kind) if dtype.num < FIRST_USER_TYPENUM else None  # ml_dtypes' types have kind V
    element = of_kind(dtype) if of_kind is not None else _of_number(dtype)
    return element if dtype.isnative else Byteswap(element)


def _of_number(dtype: np.dtype[Any]) -> Type:
    return _BY_TYPENUM.get(dtype.num) or NUMBERS[dtype.type.__name__]


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
