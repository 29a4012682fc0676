"""Time two calls in alternation, so that disturbances affect both."""

import gc
import statistics
import time
import timeit
from types import ModuleType
from typing import NamedTuple

UNROLLED = 8  # calls per loop iteration, so that the cost of the loop is negligible


class Result(NamedTuple):
    """One row of the table. Times are medians in nanoseconds per call. `ratio` is the median of the rounds' ratios."""

    group: str
    way: str
    peer: str
    ours_ns: float
    peer_ns: float
    ratio: float
    spread: tuple[float, float]  # first and third quartiles of the ratios
    at_most: float | None

    @property
    def met(self):
        return self.at_most is None or self.ratio <= self.at_most


class Timed:
    """Timer of a statement: ``Timed("np.asarray(u)", names)(1000)`` returns the seconds that 1000 calls take.

    If the statement calls a function of a module, the function is looked up in advance, as by ``from numpy import
    asarray``. All other attributes are looked up in each call, as in user code.
    """

    def __init__(self, statement, names, unrolled=UNROLLED):
        callee, bracket, arguments = statement.partition("(")
        names = dict(names)
        if bracket and isinstance(names.get(callee.partition(".")[0]), ModuleType):
            names["function"] = eval(callee, names)
            statement = f"function({arguments}"
        self.unrolled = unrolled
        self.timer = timeit.Timer(";".join([statement] * unrolled), globals=names)

    def __call__(self, n):
        turns = max(n // self.unrolled, 1)
        return self.timer.timeit(turns) * n / (turns * self.unrolled)


def calls_in(run, seconds, least=64):
    """Return the number of calls of `run` that take about `seconds`. The first attempt makes `least` calls."""
    run(least)  # the first calls import modules and fill caches
    n = least
    while (elapsed := run(n)) < seconds / 4:
        n = int(n * min(10, 1 + seconds / max(elapsed, 1e-9)))
    return max(int(n * seconds / elapsed), 1)


def compare(ours, peer, rounds, sample, least=64):
    """Time `ours` and `peer` in alternation.

    Parameters
    ----------
    ours, peer : callable
        Functions that make a given number of calls, and return the elapsed seconds.
    rounds : int
        Number of rounds. Each round times both calls, and yields one ratio.
    sample : float
        Length of one timing in seconds.
    least : int
        Number of calls in the first timing, from which the number of calls per sample is computed. Use 1 for slow
        calls.

    Returns
    -------
    dict
        ours_ns, peer_ns, ratio and spread of a `Result`.
    """
    many, many_peer = calls_in(ours, sample, least), calls_in(peer, sample, least)
    mine, theirs = [], []
    for k in range(rounds):
        if k % 2:  # the order alternates, so that neither call always runs after the other
            b, a = peer(many_peer) / many_peer, ours(many) / many
        else:
            a, b = ours(many) / many, peer(many_peer) / many_peer
        mine.append(a * 1e9)
        theirs.append(b * 1e9)
    return summary(mine, theirs)


def summary(mine, theirs):
    """Return ours_ns, peer_ns, ratio and spread of a `Result` from the nanoseconds per call in each round."""
    ratios = [ours / peer for ours, peer in zip(mine, theirs, strict=True)]
    return {
        "ours_ns": statistics.median(mine),
        "peer_ns": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "spread": middle_half(ratios),
    }


def middle_half(values):
    """Return the first and third quartiles."""
    if len(values) < 2:
        return (values[0], values[0])
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return (first, third)


class Stopwatch:
    """Context manager that disables garbage collection, and stores the elapsed time in the attribute `seconds`."""

    def __enter__(self):
        self.collecting = gc.isenabled()
        gc.disable()
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        if self.collecting:
            gc.enable()
