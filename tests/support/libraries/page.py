"""docs/libraries.md: the tables in words, and the versions that they were last held to."""

import pathlib
import re
import subprocess
import sys

from .borrowing import CASES, MOVES
from .rows import Out, View
from .table import LIBRARIES

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "libraries.md"

_OPENING = """\
# Libraries

What `arrayhub.asarray(x)` makes of objects of libraries beyond [the matrix](matrix.md), which has polars and Arrow, and
how these libraries take a `USMArray`. An object comes in as a **view** of its own memory, in its own type, or it is
refused with the call that gives an array; nothing is copied silently.

This page is written by `python -m tests.support.libraries` from the tables in `tests/support/libraries`, which runs
every row with the installed libraries. A view has the address, shape, strides and type that the library reports, writes
through it change the object, and it outlives the object. For an error, the test makes the call that the error names.
`tests/interop/test_libraries.py` runs the same rows. Libraries marked \\* are not part of the extra `test`, and run if
they are installed. The version is the one that a library last ran with.

"""

_OUT = """\
## Out

A `USMArray` `x` of host memory, and one of shared USM. DLPack reports the latter as a oneAPI device, which these
libraries do not support, although the host can read the memory. `x.to_host()` is a view on the host's device, and
`as_numpy(x)`, `as_jax(x)` and `as_torch(x)` are views too. Consumers that request `dl_device=(1, 0)`, as
`numpy.from_dlpack(x, device='cpu')` does, and those from before DLPack 1.0 get the host's device.

`convert(x, to)` takes any module that has `from_dlpack`, by its name. A library that copies without being asked, or has
no word for read-only memory, is then refused; `copy=True` helps with both.

| library | call | host memory | shared USM | |
|---|---|---|---|---|
"""


_MOVES = """\

## Memory that no view can hold

These end or move their memory under whoever views it, NumPy's arrays and memoryviews too, and nothing that they hand
out tells. Keep the object as it is for as long as a view of it lives, or pass `copy=True`. Two are cured by what a view
holds: onnxruntime's `OrtValue`, whose DLPack tensors do not hold the NumPy array that they lie in, and the storage of a
torch tensor, which the tensor may give up.

| library | object, and what is done to it |
|---|---|
"""


def versions():
    """Return the versions that the page has, by library."""
    if not PAGE.exists():
        return {}
    return dict(re.findall(r"^\| \*\*(\S+?)\*\* ([^ |]+) ", PAGE.read_text(), re.MULTILINE))


def _title(library, known):
    mark = "" if library.in_extra else " \\*"
    return f"**{library.name}** {known.get(library.name, '')}{mark}"


def _in(row):
    if isinstance(row, View):
        return f"a view{'' if row.access == 'readwrite' else ', read-only'} | {row.note}"
    return f"refused: `{row.call}` | {row.why}"


def _out(row):
    shared = "a copy" if row.copies else "a view"
    return f"`{row.what}` | {shared} | {f'refused: `{row.usm}`' if row.usm else shared} | {row.note}"


def written(known):
    """Return the text of docs/libraries.md with these versions."""
    lines = [_OPENING + "## In\n", "| library | object | comes in as | |", "|---|---|---|---|"]
    out = []
    for library in LIBRARIES:
        title = named = _title(library, known)
        for row in library.rows:
            if isinstance(row, Out):
                out.append(f"| {named} | {_out(row)} |")
            else:
                lines.append(f"| {title} | {row.what} | {_in(row)} |")
                title = ""
    moves = [f"| {case.library.partition('.')[0]} | {case.what} |\n" for case in CASES if case.outcome == MOVES]
    return "\n".join(lines) + "\n\n" + _OUT + "\n".join(out) + "\n" + _MOVES + "".join(moves)


def ran(library):
    """Hold a library to its rows in a process of its own; return its exit status, version and what it said."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.libraries.one", library.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    return done.returncode, (done.stdout.strip().splitlines() or [""])[-1], done.stderr
