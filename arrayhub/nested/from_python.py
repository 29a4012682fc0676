"""Python's lists of lists, of strings, of None and of dicts as a NestedArray: a copy, as all that comes from lists."""

import datetime
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.array.casting import check_common, common, microseconds, ticks
from arrayhub.convert.functions import asarray
from arrayhub.libraries.numpy import count_elements, refuse_unit
from arrayhub.nested.array import NestedArray, bitmap_of, make, unwrapped

MAX_LEVELS = 64  # lists inside each other: one that contains itself has no end
MAX_ELEMENTS = 2**32  # lists that share their elements have more of them than there is memory for
_LARGEST = 2**31 - 1  # of an offset of four bytes

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def from_python(values: Sequence[Any], level: int = 0) -> NestedArray:
    """Return the elements of a sequence as one array.

    Parameters
    ----------
    values : sequence
        Numbers, strings, bytes, times, sequences, dicts; None, or pandas' NA and NaT, for what is missing. All of one
        kind.

    Raises
    ------
    TypeError
        Elements of several kinds, or of one that no array has; the message names the first.
    OverflowError
        A time beyond the 64 bits of its unit.
    """
    if level == 0 and (elements := count_elements(values, "asnested")) > MAX_ELEMENTS:
        raise TypeError(
            f"asnested: {elements:.2g} elements in lists inside each other; accepted: at most 2**32, those of a shared"
            " list counted each time. Pass each shared list by itself"
        )
    if level > MAX_LEVELS:
        raise TypeError(f"asnested: lists inside each other, more than {MAX_LEVELS} levels")
    values, types = _without_marks(values)
    present, mask = values, None
    if type(None) in types:
        types.remove(type(None))
        present = [value for value in values if value is not None]
        mask = np.array([value is not None for value in values], bool)
    for kinds, column in _COLUMNS:
        if types and _are_all(types, kinds):
            return column(values, present, mask, level)
    if not present:
        return _numbers(values, present, mask, level)
    raise _several_kinds(present)


def _are_all(types: set[type], kinds: Any) -> bool:
    return all(issubclass(cls, kinds) for cls in types)


def _several_kinds(present: Any) -> TypeError:
    odd = next(_of_another_type(present), present[0])
    return TypeError(
        f"asnested: {show(odd)} among elements such as {show(present[0])}; accepted: numbers, strings, bytes, times,"
        " lists or dicts, all of one kind, and None"
    )


def _of_another_type(values: Any) -> Iterator[Any]:
    """Yield the values of another type than the first."""
    for value in values:
        if type(value) is not type(values[0]):
            yield value


def _without_marks(values: Sequence[Any]) -> tuple[Sequence[Any], set[type]]:
    """The same values with None for each mark of pandas' for what is missing, NaT being a datetime; and their types."""
    types = set(map(type, values))
    pandas = sys.modules.get("pandas")
    marks = [getattr(pandas, "NA", None), getattr(pandas, "NaT", None)]
    if pandas is None or types.isdisjoint(map(type, marks)) or marks == [None, None]:
        return values, types
    values = list(_without(values, set(map(id, marks))))
    return values, set(map(type, values))


def _without(values: Sequence[Any], addresses: set[int]) -> Iterator[Any]:
    """Yield the values, and None for those at `addresses`."""
    for value in values:
        yield None if id(value) in addresses else value


def _bits(mask: Any) -> Any:
    return None if mask is None else bitmap_of(mask)


def _numbers(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """What is missing has a zero's bytes."""
    numbers = present if isinstance(present, np.ndarray) else common(present, "asnested")
    if numbers.dtype == object or numbers.ndim != 1:
        raise TypeError(f"asnested: {show(present[:3])} are no numbers of one type of NumPy's")
    if mask is not None:
        full = np.zeros(len(values), numbers.dtype)
        full[mask] = numbers
        numbers = full
    return make("flat", len(values), content=asarray(numbers, copy=True), validity=_bits(mask))


def _counts(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Numbers of Python's or NumPy's; of whole ones that no integer type holds, NumPy would make floats."""
    numbers = np.array(present)
    if numbers.dtype.kind == "m":  # of numbers among durations
        raise _several_kinds(present)
    if numbers.dtype.kind == "f" and all(isinstance(value, (int, np.integer)) for value in present):
        least, most = int(min(present)), int(max(present))
        unsigned = least >= 0
        if least < -(2**63) or most >= 2 ** (64 if unsigned else 63):
            raise TypeError(
                f"asnested: no integer type holds {least} and {most}; accepted: -2**63 to 2**63 - 1, or 0 to 2**64 - 1."
                " Make them float, as in [float(value) for value in x]"
            )
        numbers = np.array(list(map(int, present)), np.uint64 if unsigned else np.int64)
    else:
        check_common(present, numbers, "asnested")
    return _numbers(values, numbers if numbers.dtype != object else present, mask, level)


def _moments(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Points in time, of one zone or of none."""
    zones = {_zone_of(value) for value in present}
    if len(zones) > 1:
        raise TypeError(
            "asnested: times of several zones, or some of none; accepted: of one, as x.astimezone(zone) gives"
        )
    (zone,) = zones
    if zone is None:
        return _numbers(values, ticks(present, "M8", "asnested"), mask, level)
    times = ticks([_in_utc(value) for value in present], "M8", "asnested")
    unit = np.datetime_data(times.dtype)[0][0]  # Arrow's letter
    return _meaning(f"ts{unit}:{zone}", _numbers(values, times.astype(np.int64), mask, level))


def _in_utc(value: Any) -> Any:
    try:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise OverflowError(
            f"asnested: {value.isoformat()} is before the year 1 or after 9999 in UTC, in which times of a zone are"
            " counted; accepted: times of the years 1 to 9999 there"
        ) from error


def _zone_of(value: datetime.datetime) -> str | None:
    """The name that Arrow has for the zone of a point in time: that of its data base, or a fixed offset."""
    zone = value.tzinfo
    if zone is None:
        return None
    if zone == datetime.UTC:
        return "UTC"
    if isinstance(zone, datetime.timezone):
        return _fixed(value)
    name = getattr(zone, "key", getattr(zone, "zone", None))  # zoneinfo's, pytz's
    if not isinstance(name, str):
        raise TypeError(
            f"asnested: the zone of {show(value)} has no name; accepted: times as x.astimezone(zone) gives them"
        )
    return name


def _fixed(value: datetime.datetime) -> str:
    """An offset from UTC as Arrow has it, ``+02:00``, whatever it is called."""
    seconds = int(microseconds(value.utcoffset())) // 1_000_000
    if seconds % 60 or microseconds(value.utcoffset()) % 1_000_000:
        raise TypeError(
            f"asnested: the zone of {show(value)} is no whole minutes from UTC; accepted: hours and minutes"
        )
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"


def _durations(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    return _numbers(values, ticks(present, "m8", "asnested"), mask, level)


def _days(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Days of four bytes, as Arrow has them. A point in time is a day to Python, which would lose its hours."""
    if any(isinstance(value, datetime.datetime) for value in present):
        raise _several_kinds(present)
    return _meaning("tdD", _numbers(values, np.array(present, "M8[D]").astype(np.int32), mask, level))


def _meaning(meaning: str, numbers: NestedArray) -> NestedArray:
    """The same numbers, as what Arrow calls so."""
    return make("flat", len(numbers), content=numbers.content, validity=numbers.validity, meaning=meaning)


def offsets_of(lengths: Any) -> Any:
    """Return the offsets of rows of these lengths, of four bytes where they fit."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return asarray(ends.astype(np.int32) if ends[-1] <= _LARGEST else ends)


def _texts(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    texts = values if mask is None else ["" if value is None else value for value in values]
    content = "".join(texts)
    if content.isascii():  # a byte a character
        return _of_parts("string", content.encode(), list(map(str.__len__, texts)), mask)
    return characters("string", [_utf8(text) for text in texts], mask)


def _utf8(text: str) -> bytes:
    try:
        return str.encode(text)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"asnested: {show(text)} is no text that UTF-8 has ({error}); as bytes it is"
            " text.encode(errors='surrogatepass')"
        ) from None


def _bytes(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    return characters("bytes", [b"" if value is None else bytes(value) for value in values], mask)


def characters(kind: str, parts: list[bytes], mask: Any = None) -> NestedArray:
    """Return what lies behind strings or bytes, one after another; `mask` says which are there."""
    return _of_parts(kind, b"".join(parts), list(map(len, parts)), mask)


def _of_parts(kind: str, joined: bytes, lengths: list[int], mask: Any) -> NestedArray:
    content = asarray(np.frombuffer(joined, np.uint8))
    return make(kind, len(lengths), offsets=offsets_of(lengths), content=content, validity=_bits(mask))


def _lists(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    arrays = [row for row in present if isinstance(row, np.ndarray)]
    if any(row.ndim == 0 for row in arrays):
        raise TypeError("asnested: arrays without dimensions in a list; accepted: their values, as x.item() gives them")
    for row in arrays:
        refuse_unit(row)
    lengths = [0 if value is None else len(value) for value in values]
    if any(isinstance(row, np.ma.MaskedArray) for row in arrays):
        present = [row.tolist() if isinstance(row, np.ma.MaskedArray) else row for row in present]  # None where masked
    alike = _are_alike(present)
    content = _joined(present) if alike else unwrapped(from_python(list(chain.from_iterable(present)), level + 1))
    return make("list", len(values), offsets=offsets_of(lengths), content=content, validity=_bits(mask))


def _are_alike(rows: Any) -> bool:
    """Whether rows are ndarrays of numbers that differ in their lengths alone."""
    if not all(isinstance(row, np.ndarray) for row in rows):
        return False
    if len({(row.dtype, row.shape[1:]) for row in rows}) != 1:
        return False
    dtype = rows[0].dtype
    return dtype.kind in "biufcmM" or dtype.isbuiltin == 2  # a type that a library has registered, as ml_dtypes does


def _joined(rows: Any) -> Any:
    return asarray(np.ascontiguousarray(np.concatenate(rows)))


def _records(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """The fields are those of all dicts, in the order in which they are met; one that is not there is missing."""
    names = tuple(dict.fromkeys(chain.from_iterable(present)))
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"asnested: {show(names)} are no names of fields; accepted: dicts with keys that are str")
    columns = tuple(map(unwrapped, _columns(values, names, level)))
    return make("record", len(values), parts=columns, names=names, validity=_bits(mask))


def _columns(rows: Any, names: tuple[str, ...], level: int) -> Iterator[NestedArray]:
    for name in names:
        yield from_python(list(_column(rows, name)), level + 1)


def _column(rows: Any, name: str) -> Iterator[Any]:
    for row in rows:
        yield None if row is None else row.get(name)


_COLUMNS = (
    (np.timedelta64, _numbers),
    (np.datetime64, _numbers),
    (_NUMBERS, _counts),
    (str, _texts),
    ((bytes, bytearray), _bytes),
    ((list, tuple, np.ndarray), _lists),
    (dict, _records),
    (datetime.datetime, _moments),
    (datetime.date, _days),
    (datetime.timedelta, _durations),
)
