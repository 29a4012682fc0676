"""Copy Python lists of numbers, strings, None, lists and dicts to a NestedArray."""

import datetime
import decimal
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from arrayhub._core.errors import X_NAME, RangeRefusal, TypeRefusal, ValueRefusal, form_of, reason_of, show
from arrayhub.array.casting import check_common, common, ticks
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.libraries.numpy import count_elements, refuse_unit
from arrayhub.nested.array import NestedArray, ascii_texts, make, rows_of_numbers, unwrap_flat

MAX_LEVELS = 64  # maximum depth of nested lists; limits the recursion for a list that contains itself
MAX_ELEMENTS = 2**32  # a small list of repeated references to one list can have more elements than fit in memory
_LARGEST = 2**31 - 1  # largest int32 offset

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def from_python(values: Sequence[Any], level: int = 0) -> NestedArray:
    """Copy the elements of a sequence to one array. They are all of one kind, a row of `_COLUMNS`.

    None, ``pandas.NA`` and ``pandas.NaT`` are missing values. `asnested` documents the errors.
    """
    if level < MAX_LEVELS and type(values) is list and (quick := _frequent(values)) is not None:
        return quick
    if level == 0 and (elements := count_elements(values, "asnested")) > MAX_ELEMENTS:
        raise TypeRefusal(
            "asnested",
            f"the nested lists have {elements:.2g} elements; accepted: at most 2**32, counting a"
            " repeated list each time. Pass each repeated list separately",
        )
    if level > MAX_LEVELS:
        raise TypeRefusal(
            "asnested", f"lists are nested more than {MAX_LEVELS} levels deep; accepted: at most {MAX_LEVELS}"
        )
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
    if any(map(_is_array_type, types)):
        return from_python(_with_ndarrays(values, level), level)
    raise _several_kinds(present)


def _frequent(values: list[Any]) -> NestedArray | None:
    """Copy a list of ASCII strings or of rows of numbers in compiled code. Return None for other lists."""
    first = next((value for value in values if value is not None), None)
    if type(first) is str and (found := ascii_texts(values)) is not None:
        kind = "string"
    elif type(first) is list and (found := rows_of_numbers(values)) is not None:
        kind = "list"
    else:
        return None
    ends, content, mask = found
    offsets = asarray(ends.astype(np.int32) if ends[-1] <= _LARGEST else ends)
    return make(kind, len(values), offsets=offsets, content=asarray(content, copy=True), mask=mask)


def _are_all(types: set[type], kinds: Any) -> bool:
    return all(issubclass(cls, kinds) for cls in types)


def _is_array_type(cls: type) -> bool:
    """Return whether a class is an array type of a library other than NumPy, such as ``torch.Tensor``."""
    has_protocol = hasattr(cls, "__dlpack__") or hasattr(cls, "__array_interface__")
    return has_protocol and not issubclass(cls, (np.ndarray, np.generic))


def _with_ndarrays(values: Sequence[Any], level: int) -> list[Any]:
    """Replace the arrays of other libraries by ndarrays, and return the values. Raises as `as_numpy` does.

    The call in an error is an expression of the outermost list, so an inner list, at a `level` above 0, has none.
    """
    rows = []
    for value in values:
        try:
            rows.append(as_numpy(value, copy=None) if _is_array_type(type(value)) else value)
        except (BufferError, TypeError) as error:
            refusal = form_of(error)
            call = getattr(refusal, "call", "") if level == 0 and len(set(map(type, values))) == 1 else ""
            call = f"{call}.to_list()" if call == "arrayhub.asnested(x)" else call  # lists contain Python values
            call = call and f"arrayhub.asnested([{X_NAME.sub('row', call)} for row in x])"
            raise type(refusal)(f"asnested: element {len(rows)} of the list", reason_of(refusal), call=call) from error
    return rows


def _several_kinds(present: Any) -> TypeError:
    odd = next((value for value in present if type(value) is not type(present[0])), None)
    found = f"{show(present[0])} is of type {type(present[0]).__name__}"
    if odd is not None:
        found = f"{show(odd)} among elements such as {show(present[0])}"
    advice = ""
    if _are_all(set(map(type, present)), (decimal.Decimal, datetime.time)):
        advice = ". Call arrayhub.asnested(pyarrow.array(x))"
    return TypeRefusal(
        "asnested",
        f"{found}; accepted: None, and elements that are all of one kind: numbers, strings, bytes, datetimes,"
        f" dates, timedeltas, dicts, or lists and arrays{advice}",
    )


def _without_marks(values: Sequence[Any]) -> tuple[Sequence[Any], set[type]]:
    """Replace ``pandas.NA`` and ``pandas.NaT`` by None, and return the values and the set of their types.

    NaT would otherwise be imported as a time, because it is an instance of datetime.
    """
    types = set(map(type, values))
    pandas = sys.modules.get("pandas")
    marks = [getattr(pandas, "NA", None), getattr(pandas, "NaT", None)]
    if pandas is None or types.isdisjoint(map(type, marks)) or marks == [None, None]:
        return values, types
    addresses = set(map(id, marks))
    values = [None if id(value) in addresses else value for value in values]
    return values, set(map(type, values))


def _numbers(values: Any, present: Any, mask: Any, level: int, meaning: str | None = None) -> NestedArray:
    """Copy numbers to a flat node, with the logical type `meaning` of Arrow. Missing elements are stored as zero."""
    numbers = present if isinstance(present, np.ndarray) else common(present, "asnested")
    if numbers.dtype == object or numbers.ndim != 1:
        large = level == 0 and numbers.ndim == 1 and _are_all(set(map(type, present)), int) and mask is None
        advice = "; convert the values, as in arrayhub.asnested([float(value) for value in x])" if large else ""
        raise TypeRefusal("asnested", f"{show(present[:3])} do not have a common numeric dtype in NumPy{advice}")
    if mask is not None:
        full = np.zeros(len(values), numbers.dtype)
        full[mask] = numbers
        numbers = full
    return make("flat", len(values), content=asarray(numbers, copy=True), mask=mask, meaning=meaning)


def _counts(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Copy Python or NumPy numbers. Reject integers without a common integer type, which NumPy would round."""
    numbers = np.array(present)
    if numbers.dtype.kind == "m":  # numbers mixed with durations
        raise _several_kinds(present)
    if numbers.dtype.kind == "f" and all(isinstance(value, (int, np.integer)) for value in present):
        least, most = int(min(present)), int(max(present))
        unsigned = least >= 0
        if least < -(2**63) or most >= 2 ** (64 if unsigned else 63):
            raise TypeRefusal(
                "asnested",
                f"no integer type holds {least} and {most}; accepted: -2**63 to 2**63 - 1, or 0 to 2**64 - 1."
                " Convert the values, as in [float(value) for value in x]",
            )
        numbers = np.array(list(map(int, present)), np.uint64 if unsigned else np.int64)
    else:
        check_common(present, numbers, "asnested")
    return _numbers(values, numbers if numbers.dtype != object else present, mask, level)


def _moments(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Copy datetime objects that are all naive, or that all have the same time zone."""
    zones = {_zone_of(value) for value in present}
    if len(zones) > 1:
        raise TypeRefusal(
            "asnested",
            "the times have several time zones, or only some have a time zone; accepted: one time zone."
            " Convert each value by value.astimezone(zone)",
        )
    (zone,) = zones
    if zone is None:
        return _numbers(values, ticks(present, "M8", "asnested"), mask, level)
    times = ticks([_in_utc(value) for value in present], "M8", "asnested")
    unit = np.datetime_data(times.dtype)[0][0]  # Arrow's unit letter
    return _numbers(values, times.astype(np.int64), mask, level, f"ts{unit}:{zone}")


def _in_utc(value: Any) -> Any:
    try:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise RangeRefusal(
            "asnested",
            f"{value.isoformat()} is outside of the years 1 to 9999 in UTC; accepted: years 1 to 9999,"
            " because times with a time zone are converted to UTC",
        ) from error


def _zone_of(value: datetime.datetime) -> str | None:
    """Return the Arrow name of a datetime's time zone, an IANA name or a fixed offset. Return None for naive values."""
    zone = value.tzinfo
    if zone is None:
        return None
    if zone == datetime.UTC:
        return "UTC"
    if isinstance(zone, datetime.timezone):
        return _format_utc_offset(value)
    name = getattr(zone, "key", getattr(zone, "zone", None))  # zoneinfo, pytz
    if not isinstance(name, str):
        raise TypeRefusal(
            "asnested",
            f"the time zone of {show(value)} does not have a name; accepted: zones of zoneinfo, pytz and"
            " datetime.timezone. Convert by value.astimezone(zone)",
        )
    return name


def _format_utc_offset(value: datetime.datetime) -> str:
    """Return the offset from UTC in Arrow's format, such as ``+02:00``. Arrow does not store names of fixed offsets."""
    offset = value.isoformat()[-6:]
    if offset[0] not in "+-":
        raise TypeRefusal("asnested", f"the UTC offset of {show(value)} has seconds; accepted: hours and minutes")
    return offset


def _durations(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    return _numbers(values, ticks(present, "m8", "asnested"), mask, level)


def _days(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Copy date objects as Arrow's date32. Reject datetime objects, which are dates too, but would lose their time."""
    if any(isinstance(value, datetime.datetime) for value in present):
        raise _several_kinds(present)
    return _numbers(values, np.array(present, "M8[D]").astype(np.int32), mask, level, "tdD")


def offsets_of(lengths: Any, dtype: Any = np.int32) -> Any:
    """Return the offsets of rows with the given lengths, as `dtype` (int32 or int64) if they fit, else as int64."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.asarray(lengths).cumsum(out=ends[1:])
    return asarray(ends.astype(dtype) if ends[-1] <= _LARGEST else ends)


def _texts(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    quick = _frequent(list(values))
    if quick is not None:
        return quick
    return characters("string", [b"" if value is None else _utf8(value) for value in values], mask)


def _utf8(text: str) -> bytes:
    try:
        return str.encode(text)
    except UnicodeEncodeError as error:
        reason = f"{show(text)} cannot be encoded as UTF-8 ({error})"
        raise ValueRefusal("asnested", reason, "the bytes of text.encode(errors='surrogatepass')") from None


def _bytes(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    return characters("bytes", [b"" if value is None else bytes(value) for value in values], mask)


def characters(kind: str, parts: list[bytes], mask: Any = None) -> NestedArray:
    """Return a node of strings or bytes, given the encoded elements. `mask` is False for missing elements."""
    content = asarray(np.frombuffer(b"".join(parts), np.uint8))
    return make(kind, len(parts), offsets=offsets_of(list(map(len, parts))), content=content, mask=mask)


def _lists(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    arrays = [row for row in present if isinstance(row, np.ndarray)]
    if any(row.ndim == 0 for row in arrays):
        raise TypeRefusal(
            "asnested", "the list contains arrays of 0 dimensions; accepted: their values, from array.item()"
        )
    for row in arrays:
        refuse_unit(row)
    lengths = [0 if value is None else len(value) for value in values]
    if any(isinstance(row, np.ma.MaskedArray) for row in arrays):
        present = [row.tolist() if isinstance(row, np.ma.MaskedArray) else row for row in present]  # None where masked
    alike = _are_alike(present)
    content: Any
    if alike:
        content = asarray(np.ascontiguousarray(np.concatenate(present)))
    else:
        content = unwrap_flat(from_python(list(chain.from_iterable(present)), level + 1))
    return make("list", len(values), offsets=offsets_of(lengths), content=content, mask=mask)


def _are_alike(rows: Any) -> bool:
    """Return whether all rows are ndarrays of one dtype of numbers or times, and differ only in length."""
    if not all(isinstance(row, np.ndarray) for row in rows):
        return False
    if len({(row.dtype, row.shape[1:]) for row in rows}) != 1:
        return False
    dtype = rows[0].dtype
    return dtype.kind in "biufcmM" or dtype.isbuiltin == 2  # 2: registered by a library, such as ml_dtypes


def _records(values: Any, present: Any, mask: Any, level: int) -> NestedArray:
    """Copy dicts to a record node with the keys of all dicts, in order of appearance.

    If a dict lacks a key, the field of this name is missing in its record.
    """
    names = tuple(dict.fromkeys(chain.from_iterable(present)))
    if not all(isinstance(name, str) for name in names):
        raise TypeRefusal("asnested", f"the dict keys are {show(names)}; accepted: keys of type str")
    columns = ([None if row is None else row.get(name) for row in values] for name in names)
    parts = tuple(unwrap_flat(from_python(column, level + 1)) for column in columns)
    return make("record", len(values), parts=parts, names=names, mask=mask)


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
