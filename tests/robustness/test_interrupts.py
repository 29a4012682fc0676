"""A KeyboardInterrupt during an import or export releases all references, and does not change the array.

`routes.LIBRARIES` is the table of imports and exports. A timer sends the signal, so that it can also arrive during C
code. Statements and delays are the same in each run, but the speed of the machine determines what is interrupted.
"""

import itertools
import random
import signal
import sys

import pytest
from children import python
from exporters import FAST_PATHS_OFF
from held import ALLOWED, FIRST, held, references
from routes import LIBRARIES, SOME, installed, namespace, runner

pytestmark = pytest.mark.slow

TIMES = {"host": 20_000, "torch": 5_000, "dpnp": 2_000}
LONGEST = 300e-6  # maximum number of seconds until the signal is sent
FEW = 10  # repetitions of a statement between two checks for the signal
# Objects with Python code that C code calls. Routes with these objects are omitted, because the C code would discard an
# interrupt.
OWN = {"s", "bad_struct", "table", "pointers"}


class Interrupts:
    """Sender of interrupts, one at a time. `pending` is true until Python's signal handler has run.

    `ignored` counts interrupts in the weakref callback of CPython 3.14's import locks, from which exceptions are lost.
    """

    def __init__(self):
        self.pending = False
        self.ignored = 0
        signal.signal(signal.SIGALRM, self.arrive)
        sys.unraisablehook = self.ignore

    def ignore(self, unraisable):
        code = unraisable.exc_traceback.tb_frame.f_code
        if unraisable.exc_type is KeyboardInterrupt and code.co_filename == "<frozen importlib._bootstrap>":
            self.ignored += 1
        else:
            sys.__unraisablehook__(unraisable)

    def arrive(self, number, frame):
        self.pending = False
        raise KeyboardInterrupt

    def send(self, delay):
        self.pending = True
        signal.setitimer(signal.ITIMER_REAL, delay)


def until_met(go, interrupts, delay):
    """Run a statement repeatedly until the handler has received an interrupt."""
    interrupts.send(delay)
    while interrupts.pending:
        go(itertools.repeat(None, FEW))


def interrupted(go, interrupts, delay):
    """Call a route until an interrupt arrives. Return whether the route raised the interrupt.

    The ``try`` block contains one call, because in CPython 3.13 the backward jump of a loop is outside of the ``try``
    block.
    """
    try:
        until_met(go, interrupts, delay)
    except KeyboardInterrupt:
        return True
    return False


def main(library, times):
    """Interrupt a library's routes. Print the number of raised interrupts, then one line for each change."""
    draw, interrupts, names = random.Random(11), Interrupts(), namespace(library)
    ways = [runner(route, names) for route in LIBRARIES[library].routes if route.times >= SOME]
    ways = [go for go in ways if not OWN & {*go.__code__.co_names}]

    def rounds(n):
        return sum(interrupted(draw.choice(ways), interrupts, draw.random() * LONGEST + 1e-6) for _ in range(n))

    for go in ways:
        go(itertools.repeat(None, FIRST))
    delivered = rounds(times // 2)  # warm up: the first interrupt in each line allocates a code object
    contents, before, counts = bytes(names["a"]), held(), references(names)  # held() collects first
    delivered += rounds(times // 2)
    allowed = ALLOWED._replace(objects=1000)  # code objects of lines that were first interrupted in the second half
    for go in ways:
        go(itertools.repeat(None, FEW))
    after, counted = held(), references(names)
    print(delivered + interrupts.ignored)
    for field, old, new, more in zip(before._fields, before, after, allowed, strict=True):
        if new - old > more:
            print(f"{field}: {new - old:+}")
    for name, n in counts.items():
        if abs(counted[name] - n) > 1:  # for example, the queue of the last SYCL dict is cached
            print(f"references to {name}: {counted[name] - n:+}")
    if bytes(names["a"]) != contents:
        print("a was changed")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("library", TIMES)
def test_interrupts_release_all_references(library):
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    script = "import sys, test_interrupts; test_interrupts.main(sys.argv[1], int(sys.argv[2]))"
    delivered, *left = python(script, library, str(TIMES[library]), beside=__file__).splitlines()
    assert left == []
    # Without fast paths, arrayhub reads `__array_interface__` of record arrays, where NumPy discards some interrupts.
    assert int(delivered) >= (0.9 if FAST_PATHS_OFF else 1) * TIMES[library]
