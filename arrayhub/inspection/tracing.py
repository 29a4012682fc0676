"""What happens at the borders between libraries while a program runs: hand-overs, copies and waits, and who asked."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from threading import Lock
from types import FrameType, TracebackType
from typing import Literal, NamedTuple, Self, TextIO

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub.inspection.units import of_bytes, of_seconds

# Code below these folders is a library's: who asked is the program that called it. Those of the second kind lie in
# several places: the environment's, the user's own, those of the interpreter that an environment was made from.
_LIBRARIES = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {"<frozen "}
)
_INSTALLED = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))
# What each kind of event is called in the table, most expensive first.
_KINDS = {"copy": ("copy", "copies"), "wait": ("wait", "waits"), "in": ("in", "in"), "out": ("out", "out")}
_HEADS = ("what", "from", "to", "by", "times", "bytes", "time", "line")


class Event(NamedTuple):
    """One hand-over, copy or wait.

    Attributes
    ----------
    kind : {"in", "out", "copy", "wait"}
        ``"in"``: an object has become a USMArray. ``"out"``: a library has been given, or has asked for, the memory.
    by : str
        The protocol, the function, or for a wait who waits.
    source, target : str
        A device for memory that is copied, waited for, or asked for by a protocol; else the type of the array. Empty
        where nobody says it: a protocol does not tell who asks.
    nbytes : int
        Of the elements.
    seconds : float
        How long it took. A hand-over contains the copies and waits that it needed.
    file, line : str, int
        The line that asked: the nearest one outside of installed libraries and of arrayhub. ``""`` and 0 where there is
        none.
    """

    kind: Literal["in", "out", "copy", "wait"]
    by: str
    source: str
    target: str
    nbytes: int
    seconds: float
    file: str
    line: int

    @property
    def code(self) -> str:
        """The text of the line, where its file can be read."""
        return linecache.getline(self.file, self.line).strip()


class trace:
    """Record every hand-over, copy and wait of a ``with`` block, in all threads.

    Nothing is recorded outside of it, and then nothing is gathered either: what is left is one comparison a call.
    Inside, a hand-over takes some microseconds more.

    Parameters
    ----------
    file : file, optional
        Where to print the table at the end of the block, such as ``sys.stderr``. Without it nothing is printed;
        `str` of the trace is the table.

    Attributes
    ----------
    events : list of Event
        In the order in which they ended.

    Examples
    --------
    >>> import arrayhub
    >>> with arrayhub.trace() as traced:
    ...     x = arrayhub.asarray([1.0, 2.0])
    >>> [(event.kind, event.nbytes) for event in traced.events]
    [('copy', 16), ('in', 16)]
    """

    def __init__(self, file: TextIO | None = None) -> None:
        if file is not None and not callable(getattr(file, "write", None)):
            raise TypeError(f"trace: file is of type {type(file).__name__}; accepted: None, or what can be written to")
        self._file = file
        self._blocks = 0
        self.events: list[Event] = []

    def __enter__(self) -> Self:
        with _lock:
            self._blocks += 1
            first = self._blocks == 1
        if first:  # within itself a trace hears everything already
            _start(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with _lock:
            if self._blocks == 0:
                raise RuntimeError("trace: __exit__ was called without __enter__; use it in a with statement")
            self._blocks -= 1
            last = self._blocks == 0
        if last:
            _stop(self._hear)
        if last and self._file is not None:
            print(self, file=self._file)

    def _hear(self, kind: str, by: str, source: str, target: str, nbytes: int, seconds: float) -> None:
        file, line = _who_asked(sys._getframe().f_back)
        self.events.append(Event(kind, by, source, target, nbytes, seconds, file, line))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<arrayhub.trace: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _summary(self) -> str:
        """What there was of each kind, in words."""
        hand_overs = sum(event.kind in ("in", "out") for event in self.events)
        parts = [f"{hand_overs} hand-over{'' if hand_overs == 1 else 's'}"]
        for kind in ("copy", "wait"):
            found = [event for event in self.events if event.kind == kind]
            amount = f" of {of_bytes(sum(event.nbytes for event in found))}" if found and kind == "copy" else ""
            time = f" in {of_seconds(_seconds(found))}" if found else ""
            parts.append(f"{len(found)} {_KINDS[kind][len(found) != 1]}{amount}{time}")
        return ", ".join(parts)

    def _lines(self) -> Iterator[str]:
        yield self._summary()
        if not self.events:
            return
        rows = [_HEADS, *map(_cells, _alike(self.events))]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADS))]
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


_lock = Lock()
_running = 0


def _start(listener: Callable[..., None]) -> None:
    """Have a listener told of everything; the first one has copies told of too."""
    global _running
    with _lock:
        _running += 1
        transfer.tell(True)
        tracing.listen(listener)


def _stop(listener: Callable[..., None]) -> None:
    global _running
    with _lock:
        _running -= 1
        tracing.unlisten(listener)
        transfer.tell(_running > 0)


def _who_asked(frame: FrameType | None) -> tuple[str, int]:
    """File and line of the nearest frame of the program's own, or where there is none, of any library but arrayhub."""
    nearest = ("", 0)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        file = frame.f_code.co_filename
        if not isinstance(module, str) or module.partition(".")[0] != "arrayhub":
            if not _is_a_librarys(file):
                return file, frame.f_lineno
            nearest = nearest if nearest[0] else (file, frame.f_lineno)
        frame = frame.f_back
    return nearest


def _is_a_librarys(file: str) -> bool:
    return file.startswith(_LIBRARIES) or any(folder in file for folder in _INSTALLED)


def _alike(events: list[Event]) -> list[list[Event]]:
    """The events of one line of code that are the same but for their time, together; the longest first."""
    groups: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        groups.setdefault((*event[:4], event.file, event.line), []).append(event)
    kinds = list(_KINDS)
    return sorted(groups.values(), key=lambda group: (kinds.index(group[0].kind), -_seconds(group)))


def _seconds(events: list[Event]) -> float:
    return sum(event.seconds for event in events)


def _cells(group: list[Event]) -> tuple[str, ...]:
    """One row of the table."""
    event = group[0]
    where = f"{_shortened(event.file)}:{event.line}  {event.code}" if event.file else ""
    return (
        event.kind,
        event.source,
        event.target,
        event.by,
        str(len(group)),
        of_bytes(sum(event.nbytes for event in group)),
        of_seconds(_seconds(group)),
        where,
    )


def _shortened(file: str) -> str:
    """A file's name as seen from the folder where the program runs, if it is below that."""
    below = os.path.join(os.getcwd(), "")
    return file.removeprefix(below)
