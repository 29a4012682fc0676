"""trace: record the imports, exports and copies of a running program, and the line of code that causes each."""

from __future__ import annotations

import html
import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Literal, NamedTuple, Self, TextIO

from arrayhub._core import tracing
from arrayhub.inspection.texts import align_columns, of_bytes, of_seconds

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
# Matches the paths of files of libraries. An event in a library is attributed to the code that calls the library.
# Folders with packages are matched by name, because several exist: the environment's, the user's, and those of the
# interpreter that the environment was created from.
_FOLDERS = {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {"<frozen "}
_IN_LIBRARY = re.compile(
    rf"{'|'.join(map(re.escape, sorted(_FOLDERS)))}|.*{os.sep}(?:site|dist)-packages{os.sep}", re.DOTALL
)
# The table is sorted in this order, the most expensive kind first.
_KINDS = ("copy", "in", "out")
_HEADS = ("what", "from", "to", "by", "times", "bytes", "time", "line")


class Event(NamedTuple):
    """One import, export or copy.

    Attributes
    ----------
    kind : {"in", "out", "copy"}
        ``"in"``: `asarray`, `asnested` or `assparse` imported an object. ``"out"``: an ``as_*`` function or `convert`
        exported an array to a library. A conversion within another one is part of it.
    by : str
        The protocol or the function that causes the event.
    source, target : str
        - Import: the type of the object, and the device of the result.
        - Export: the types of the object and of the result.
        - Copy: the devices of source and target, or the source and the target of the conversion that copies.
    nbytes : int
        Size of the result in bytes. 0 if unknown.
    seconds : float
        Duration. The duration of an import or an export includes its copies.
    file, line : str, int
        Line of the innermost stack frame outside of arrayhub, installed libraries and the standard library. If all
        frames are in libraries, line of the innermost frame outside of arrayhub. ``""`` and 0 if the thread does not
        run Python code outside of arrayhub.
    """

    kind: Literal["in", "out", "copy"]
    by: str
    source: str
    target: str
    nbytes: int
    seconds: float
    file: str
    line: int

    @property
    def code(self) -> str:
        """The text of the line, or ``""`` if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


class trace:
    """Record the imports, exports and copies of a ``with`` block, in all threads.

    The trace contains imports, exports and copies. If the result of a conversion does not share memory with the object,
    the trace contains at least one copy for it. Outside of such a block, tracing costs one comparison per call.

    Parameters
    ----------
    file : file, optional
        File to which the table is printed at the end of the block, such as ``sys.stderr``. By default the table is not
        printed, but `str` of the trace returns it.

    Attributes
    ----------
    events : list of Event
        Events in the order in which they ended.

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
            raise TypeError(
                f"trace: file is of type {type(file).__name__}; accepted: None, or a file with a write method"
            )
        self._file = file
        self.events: list[Event] = []

    def __enter__(self) -> Self:
        tracing.start(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if tracing.stop(self) and self._file is not None:
            print(self, file=self._file)

    def record(self, kind: str, by: str, source: str, target: str, nbytes: int, seconds: float) -> None:
        """Add an event, and find the line of the program that caused it."""
        file, line = _line_of_program()
        self.events.append(Event(kind, by, source, target, nbytes, seconds, file, line))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<arrayhub.trace: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _summary(self) -> str:
        """Return a line with the numbers of hand-overs and copies, and the size and duration of the copies."""
        copies = [event for event in self.events if event.kind == "copy"]
        count = len(self.events) - len(copies)
        size = of_bytes(sum(event.nbytes for event in copies))
        amount = f" of {size} in {of_seconds(_seconds(copies))}" if copies else ""
        return (
            f"{count} hand-over{'' if count == 1 else 's'},"
            f" {len(copies)} {'copy' if len(copies) == 1 else 'copies'}{amount}"
        )

    def _lines(self) -> Iterator[str]:
        yield self._summary()
        if self.events:
            yield from align_columns([_HEADS, *map(_cells, _alike(self.events))])


def _line_of_program() -> tuple[str, int]:
    """Return the file and line of the innermost frame of the program, or else of a library other than arrayhub."""
    nearest = ("", 0)
    try:
        for frame, line in traceback.walk_stack(None):  # innermost first
            file = frame.f_code.co_filename
            if file.startswith(_PACKAGE):
                continue
            if _IN_LIBRARY.match(file) is None:
                return file, line or 0
            nearest = nearest if nearest[0] else (file, line or 0)
    except AttributeError:  # without memory, the frames of callers are None
        raise MemoryError from None
    return nearest


def _alike(events: list[Event]) -> list[list[Event]]:
    """Group events that differ only in duration and size. Sort groups by kind, then by duration, longest first."""
    groups: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        groups.setdefault((*event[:4], event.file, event.line), []).append(event)
    return sorted(groups.values(), key=lambda group: (_KINDS.index(group[0].kind), -_seconds(group)))


def _seconds(events: list[Event]) -> float:
    return sum(event.seconds for event in events)


def _cells(group: list[Event]) -> tuple[str, ...]:
    """Return the cells of one row of the table."""
    event = group[0]
    folder = os.path.join(os.getcwd(), "")
    file = event.file[len(folder) :] if event.file.startswith(folder) else event.file
    where = f"{file}:{event.line}  {event.code}" if file else ""
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
