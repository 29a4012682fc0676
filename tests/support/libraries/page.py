"""Text of docs/libraries.md: the tables, and the version with which each library was last tested."""

import pathlib
import re
import subprocess
import sys

from .borrowing import CASES, MOVES
from .rows import Out, View
from .table import LIBRARIES

NO_VALUES = "no values yet"  # in place of a call, for symbolic objects
ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "libraries.md"

_OPENING = """\
# Libraries

This page lists what `arrayhub.asarray(x)` returns for objects of libraries that [the matrix](matrix.md) does not
cover, and how these libraries import a `USMArray`. (The matrix covers polars and Arrow.) `asarray` returns a **view**
of the object's memory, or raises an error that names the call to make instead. `asarray` copies these objects only if
`copy=True` is passed.

`python -m tests.support.libraries` generates this page from the tables in `tests/support/libraries`, after it has
tested every row with the installed libraries:

- A view has the address, shape, strides and dtype that the library reports. Writing to a writable view changes the
  object. The view stays valid after the last reference to the object is dropped.
- The call that an error names works.

`tests/interop/test_libraries.py` tests the same rows. Libraries marked \\* are not in the extra `test-all`, and are
tested only if they are installed. The table shows the version that was tested last.

"""

_OUT = """\
## Export

The table shows how libraries import a `USMArray` `x` in host memory or in shared USM. The host can read shared USM,
but DLPack describes shared USM as memory of a oneAPI device, which most of these libraries do not support. Shared USM
can be exported as host memory in these ways:

- `x.to_host()` returns a view of shared USM whose device is the host.
- `as_numpy(x)`, `as_jax(x)` and `as_torch(x)` also return views.
- If a consumer requests `dl_device=(1, 0)`, as `numpy.from_dlpack(x, device='cpu')` does, DLPack describes the memory
  as host memory. The same applies to consumers that support only DLPack before 1.0.

The argument `to` of `convert(x, to)` can be any module or class with a function `from_dlpack`. Libraries that always
copy require `copy=True`. Libraries that do not support read-only memory require `copy=True` or `allow_readonly=True`
for read-only arrays.

| library | call | host memory | shared USM | reason |
|---|---|---|---|---|
"""


_MOVES = """\

## Memory that a view cannot keep alive

These objects free or move their memory although views of it exist, and do not notify the views. This affects NumPy
arrays and memoryviews, too. While a view exists, do not perform these operations, or import the object with
`copy=True`.

In two similar cases, arrayhub's view keeps the memory alive:

- A view of an `OrtValue` of onnxruntime keeps the underlying NumPy array alive. The `OrtValue`'s own DLPack tensors do
  not.
- A view of a torch tensor remains valid after the tensor's storage is replaced.

| library | object and operation |
|---|---|
"""


def versions():
    """Return {library: version} from docs/libraries.md."""
    if not PAGE.exists():
        return {}
    return dict(re.findall(r"^\| \*\*(\S+?)\*\* ([^ |]+) ", PAGE.read_text(), re.MULTILINE))


def _title(library, known):
    mark = "" if library.in_extra else " \\*"
    return f"**{library.name}** {known.get(library.name, '')}{mark}"


def _in(row):
    if isinstance(row, View):
        return f"a view{'' if row.access == 'readwrite' else ', read-only'} | {row.note}"
    instead = "" if row.call == NO_VALUES else f"; use `{row.call}`"
    return f"error{instead} | {row.why}"


def _out(row):
    shared = "a copy" if row.copies else "a view"
    return f"`{row.what}` | {shared} | {f'error; use `{row.usm}`' if row.usm else shared} | {row.note}"


def written(known):
    """Return the text of docs/libraries.md with the given versions."""
    lines = [_OPENING + "## Import\n", "| library | object | result of `asarray` | note |", "|---|---|---|---|"]
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
    """Test the rows of a library in a separate process. Return the exit status, the library's version, and stderr."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.libraries.one", library.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    return done.returncode, (done.stdout.strip().splitlines() or [""])[-1], done.stderr
