"""What Python has for numbers to which Arrow gives a meaning: points in time of a zone, times of a day, days."""

import datetime
import zoneinfo

_PER_SECOND = {"s": 1, "m": 1_000, "u": 1_000_000}  # by Arrow's letter; Python counts no nanoseconds
_NUMPYS = {"s": "s", "m": "ms", "u": "us"}
_A_DAY = 86400


def listed(numbers, meaning):
    """Return the numbers of an ndarray as Python's objects of what Arrow's format says they are, as far as it has them.

    Nanoseconds, and times outside of the years 1 to 9999, are counts, as in NumPy's ``tolist``.
    """
    if numbers.ndim > 1:
        return [listed(row, meaning) for row in numbers]
    kind, unit = meaning[:2], meaning[2:3]
    if meaning == "tdD":
        return numbers.astype("M8[D]").tolist()
    if kind == "ts" and unit in _NUMPYS:
        zone = _zone(meaning[4:])
        return [_in_zone(item, zone) for item in numbers.astype(f"M8[{_NUMPYS[unit]}]").tolist()]
    if kind == "tt" and unit in _PER_SECOND:
        return [_time_of_day(item, _PER_SECOND[unit]) for item in numbers.astype("i8").tolist()]
    return numbers.tolist()


def _zone(name):
    """Python's zone of Arrow's name, of the data base or an offset, ``+02:00``; UTC where it is not known here."""
    try:
        if name[:1] in ("+", "-"):
            hours, minutes = name[1:].split(":")
            offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
            return datetime.timezone(-offset if name[0] == "-" else offset)
        return datetime.UTC if name == "UTC" else zoneinfo.ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return datetime.UTC


def _in_zone(item, zone):
    if not isinstance(item, datetime.datetime):
        return item
    item = item.replace(tzinfo=datetime.UTC)
    try:
        return item.astimezone(zone)
    except OverflowError:  # before the year 1 there, or after 9999
        return item


def _time_of_day(count, per_second):
    seconds, rest = divmod(count, per_second)
    if not 0 <= seconds < _A_DAY:
        return count
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1_000_000 // per_second)
