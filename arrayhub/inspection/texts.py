"""Texts for reports: those of other code, in one short and printable line, and amounts with their units."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from arrayhub._core.errors import name_of_type, reason_of
from arrayhub.array.usm_array import USMArray

_CAPSULE = type(USMArray.__dlpack_c_exchange_api__)
LONGEST_TEXT = 300  # maximum characters of a text from other libraries, such as an error message
_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def is_capsule(obj: Any) -> bool:
    return type(obj) is _CAPSULE


def try_call(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, BaseException | None]:
    """Call a function that may run foreign code. Return its result and None, or None and its exception.

    The exception does not have a traceback, whose frames would keep the arguments alive in a reference cycle.
    """
    try:
        return function(*arguments, **options), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raised = error
    return None, _without_frames(raised)


def _without_frames(error: BaseException) -> BaseException:
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = cause.__context__ = None
        cause = cause.__cause__
    return error


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, str]:
    """Call a function that may run foreign code. Return its result and "", or None and the reason for the failure."""
    result, error = try_call(function, *arguments, **options)
    return result, reason(error)


def reason(error: BaseException | None) -> str:
    """Return the first line of an error's message, without the call, even if ``__str__`` raises. Return "" for None."""
    if error is None:
        return ""
    try:
        text = reason_of(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        text = ""
    message, kind = printable(text), printable(name_of_type(type(error)))
    if " " in message:
        return message
    return f"{kind}: {message}" if message else kind  # one word is unclear without the class, as in KeyError: 'shape'


def printable(text: str) -> str:
    """Return the first line of a string, shortened and printable, as an exact str."""
    text = str.lstrip(str.__getitem__(text, slice(4 * LONGEST_TEXT)))
    line = "".join(c if c.isprintable() else "?" for c in text.partition("\n")[0])
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 3] + "..."


def align_columns(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each row, in which the cells of a column begin at one place."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def of_bytes(nbytes: int) -> str:
    """Format `nbytes` in the largest binary unit that does not exceed `nbytes`, with up to 4 significant digits."""
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(_BYTES) - 1)
    if power == 0:
        return "1 byte" if nbytes == 1 else f"{nbytes} bytes"
    return f"{nbytes / (1 << 10 * power):.4g} {_BYTES[power]}"


def of_seconds(seconds: float) -> str:
    """Format a time in seconds, milliseconds or microseconds, with up to 3 significant digits."""
    size, unit = next((row for row in _SECONDS if seconds >= row[0]), _SECONDS[-1])
    return f"{seconds / size:.3g} {unit}"
