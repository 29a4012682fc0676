"""Memory use and reference counts do not grow if an import or export is repeated up to a million times.

`routes.LIBRARIES` is the table of imports and exports, including rejected ones. Each library is tested in a separate
process, so that memory that one library keeps is not attributed to arrayhub. Each statement first runs a few times to
fill caches.
"""

import ctypes
import itertools
import mmap
import sys

import pytest
from children import python
from held import ALLOWED, FIRST, Held, held, references
from routes import LIBRARIES, Route, installed, namespace, runner

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc and glibc's statistics"),
]
BORROWED = 20  # tolerance for the constants below, whose reference counts other code also changes
CONSTANTS = (None, True, False, (), "", float, int, tuple)


def growth_of(route, names):
    """Return descriptions of the objects and the memory that repeated calls of a route leak."""
    go = runner(route, names)
    watched = {**names, **{repr(one): one for one in CONSTANTS}}
    for _ in range(3):
        go(itertools.repeat(None, min(FIRST, route.times)))
        before, counts = held(), references(watched)
    go(itertools.repeat(None, route.times))
    after, counted = held(), references(watched)
    left = [
        f"{field}: {new - old:+}"
        for field, old, new, more in zip(Held._fields, before, after, ALLOWED, strict=True)
        if new - old > more
    ]
    for name, n in counts.items():
        if abs(counted[name] - n) > (0 if name in names else BORROWED):
            left.append(f"references to {name}: {counted[name] - n:+}")
    return left


def main(library):
    """Run all routes of a library. Print a line for each route that leaks, and return their number."""
    names = namespace(library)
    grown = {route.statement: found for route in LIBRARIES[library].routes if (found := growth_of(route, names))}
    for statement, found in grown.items():
        print(f"{statement}: {', '.join(found)}")
    return len(grown)


@pytest.mark.timeout(1200)  # for a million calls of each statement on a slow machine
@pytest.mark.parametrize("library", LIBRARIES)
def test_repeated_calls_do_not_leak(library):
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    assert python("import sys, test_growth; test_growth.main(sys.argv[1])", library, beside=__file__) == ""


LEAKS = {
    "objects": "kept.append(object())",
    "bytes": "malloc(64)",
    "resident": "pages.append(mmap(-1, 4096)); pages[-1].write(b'x' * 4096)",
    "references to a": "increment(a)",
    "references to None": "increment(None)",
}


@pytest.mark.parametrize("what", LEAKS)
def test_leak_is_detected(what):
    if what == "references to None" and sys.version_info >= (3, 12):
        pytest.skip("since CPython 3.12, references to None are not counted")
    names = {
        "kept": [], "pages": [], "mmap": mmap.mmap, "a": object(), "malloc": ctypes.CDLL(None).malloc,
        "increment": ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi)),
    }  # fmt: skip
    assert any(line.startswith(what) for line in growth_of(Route(LEAKS[what], 1000), names))
