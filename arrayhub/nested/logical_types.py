"""Convert Arrow's timestamps with a time zone, times of day and dates to Python objects."""

import datetime
import zoneinfo

import numpy as np

# Start of the `meaning` of a record of awkward. The parameters of the record, such as its name, follow as JSON.
AWKWARD_TUPLE, AWKWARD_RECORD = "awkward.tuple:", "awkward.record:"

NUMPY_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}  # by Arrow's unit letter
_PER_SECOND = {"s": 1, "m": 1_000, "u": 1_000_000}  # Python does not support nanoseconds
_SECONDS_PER_DAY = 86400


def list_elements(numbers, meaning):
    """Convert an ndarray to Python objects of the type that the Arrow format `meaning` describes.

    Times in nanoseconds, and dates and times outside the years 1 to 9999, become integers, as in
    ``numpy.ndarray.tolist``. Times of day that are negative, or at least 24 hours, also become integers.
    """
    kind, unit = meaning[:2], meaning[2:3]
    if meaning == "tdD":
        return numbers.astype("M8[D]").tolist()
    if kind == "ts" and unit in _PER_SECOND:
        zone = _zone(meaning[4:])
        return [_in_zone(item, zone) for item in times(numbers.astype(f"M8[{NUMPY_UNITS[unit]}]"))]
    if kind == "tt" and unit in _PER_SECOND:
        return [_time_of_day(item, _PER_SECOND[unit]) for item in numbers.astype("i8").tolist()]
    return times(numbers)


def times(numbers):
    """Convert an ndarray of Arrow's elements. Unlike in NumPy, the smallest integer is a time, not NaT.

    As a number of microseconds, it fits a timedelta. In every other unit of Arrow, it becomes an integer.
    """
    if numbers.dtype.kind not in "mM" or not np.isnat(numbers).any():
        return numbers.tolist()
    items = numbers.astype(object)
    smallest = -(2**63)
    items[np.isnat(numbers)] = datetime.timedelta(microseconds=smallest) if numbers.dtype == "m8[us]" else smallest
    return items.tolist()


def decimal_type(meaning):
    """Return (type name, precision, scale) for a decimal's Arrow format, such as ``d:10,2`` or ``d:5,2,64``."""
    precision, scale, *bits = meaning[2:].split(",")
    return f"decimal{bits[0] if bits else 128}", int(precision), int(scale)


def _zone(name):
    """Return the tzinfo of an IANA name or of an offset such as ``+02:00``. Return UTC for unknown names."""
    try:
        if name[:1] in ("+", "-"):
            return datetime.datetime.strptime(name, "%z").tzinfo
        return datetime.UTC if name == "UTC" else zoneinfo.ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return datetime.UTC


def _in_zone(item, zone):
    if not isinstance(item, datetime.datetime):
        return item
    item = item.replace(tzinfo=datetime.UTC)
    try:
        return item.astimezone(zone)
    except OverflowError:  # outside of the years 1 to 9999 in this zone
        return item


def _time_of_day(count, per_second):
    seconds, rest = divmod(count, per_second)
    if not 0 <= seconds < _SECONDS_PER_DAY:
        return count
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1_000_000 // per_second)
