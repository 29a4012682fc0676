"""The datashape language, which says in one line what an array is. `datashape` writes it, `datashape_parser` reads it.

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
from typing import Any

import numpy as np

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, FIRST_USER_TYPENUM, element_types, numpy_dtype
from arrayhub.conversion import array_or_nested
from arrayhub.usm_array import USMArray

STRIDED = "strided"
VAR = "var"
MAX_RECORDS = 64  # inside each other


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


def _numpys(said: Any, of: Type) -> np.dtype[Any]:
    """Return the dtype that NumPy makes of what is said to it; TypeError where it makes none."""
    try:
        dtype: np.dtype[Any] = np.dtype(said)
    except (TypeError, ValueError) as error:  # fields' dimensions without a length, or more bytes than a dtype counts
        raise TypeError(
            f"dtype: NumPy has none for {of} ({error}); accepted: elements of less than 2 GiB, of which each field's"
            " dimensions have a length"
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
        return _numpys(f"U{self.length}", self) if self.encoding == "utf32" else super(String, self).dtype


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
        return _numpys(f"S{self.size}", self) if self.alignment == 1 else super(FixedBytes, self).dtype


@dataclass(frozen=True, slots=True, repr=False)
class Void(Type):
    """``void[size]``: bytes of which nobody says what they mean."""

    size: int

    def __str__(self) -> str:
        return f"void[{self.size}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        return _numpys(f"V{self.size}", self)


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
        return _numpys([(name, field.dtype, field.shape) for name, field in self.fields], self)


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


PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _spell(name: str) -> str:
    """A field's name as the language has it: plain where it looks like one, else quoted as in JSON."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


# ------------------------------------------------------------------------- what the table of element types calls them

_SIZED = {"i": "int", "u": "uint", "f": "float"}  # kinds whose name is completed by a number of bits
# DLPack's code, as the table has it: it tells complex32, which has no kind of NumPy's.
_COMPLEX_CODE = next(row["dlpack"][0] for row in element_types() if row["name"] == "complex64")


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
NUMBERS = {str(named): named for named in _TYPENUMS if isinstance(named, Number)}
PARTS = {str(named.part): named.part for named in _TYPENUMS if isinstance(named, Complex)}


# -------------------------------------------------------------------------------------------------------- of an array


def datashape(obj: Any, /, symbolic: bool = False) -> str:
    """Return what an array is, as a datashape.

    Parameters
    ----------
    obj : object
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
    x = array_or_nested(obj)
    if not isinstance(x, USMArray):
        return str(Dimension(STRIDED, x.type.inner) if symbolic else x.type)
    return str(type_of(x, symbolic))


def type_of(x: USMArray, symbolic: bool = False) -> Type:
    """Return the type of an array; see `datashape`."""
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
    """The type of a NumPy dtype, fields and subarrays included; it lies in `level` records."""
    if level > MAX_RECORDS:
        raise ValueError(f"datashape: records inside records, {level} levels; accepted: at most {MAX_RECORDS}")
    if dtype.subdtype is not None:
        return with_dimensions(list(dtype.shape), _of_dtype(dtype.base, level))
    if dtype.names is not None:
        fields: Any = dtype.fields
        return Structure(tuple((name, _of_dtype(fields[name][0], level + 1)) for name in dtype.names))
    of_kind = _OF_KIND.get(dtype.kind) if dtype.num < FIRST_USER_TYPENUM else None  # ml_dtypes' types have the kind V
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
