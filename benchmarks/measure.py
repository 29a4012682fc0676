"""Timing of two calls in turns, so that a slow moment of the machine meets both."""

import gc
import statistics
import time
import timeit
from types import ModuleType
from typing import NamedTuple

UNROLLED = 8  # calls in one turn of the loop, so that the loop itself hardly counts


class Result(NamedTuple):
    """One row of the table; times are medians in nanoseconds a call, ratios those of one round each."""

    group: str
    way: str
    peer: str
    ours_ns: float
    peer_ns: float
    ratio: float
    spread: tuple[float, float]  # the middle half of the ratios
    at_most: float | None

    @property
    def met(self):
        return self.at_most is None or self.ratio <= self.at_most


class Timed:
    """A statement as something that can be run n times: ``Timed("np.asarray(u)", names)(1000)`` gives seconds.

    What a module provides is looked up beforehand, as ``from np import asarray`` would; attributes and methods of
    arrays are looked up at each call, because users do.
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
    """Return how many calls take about `seconds`; `least` calls are tried first."""
    n = least
    while (elapsed := run(n)) < seconds / 4:
        n = int(n * min(10, 1 + seconds / max(elapsed, 1e-9)))
    return max(int(n * seconds / elapsed), 1)


def compare(ours, peer, rounds, sample, least=64):
    """Time `ours` and `peer` in turns.

    Parameters
    ----------
    ours, peer : callable
        Called with a number of calls, each gives the seconds they took.
    rounds : int
        How many ratios to take the median of.
    sample : float
        Seconds that one timing lasts.
    least : int
        Calls in the first timing, which finds out how many a sample takes; few where one call takes long.

    Returns
    -------
    dict
        ours_ns, peer_ns, ratio and spread of a `Result`.
    """
    many, many_peer = calls_in(ours, sample, least), calls_in(peer, sample, least)
    mine, theirs = [], []
    for k in range(rounds):
        if k % 2:  # who goes first changes, so that neither always follows the other's garbage
            b, a = peer(many_peer) / many_peer, ours(many) / many
        else:
            a, b = ours(many) / many, peer(many_peer) / many_peer
        mine.append(a * 1e9)
        theirs.append(b * 1e9)
    return summary(mine, theirs)


def summary(mine, theirs):
    """ours_ns, peer_ns, ratio and spread of a `Result`, of the nanoseconds of each round."""
    ratios = [ours / peer for ours, peer in zip(mine, theirs, strict=True)]
    return {
        "ours_ns": statistics.median(mine),
        "peer_ns": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "spread": middle_half(ratios),
    }


def middle_half(values):
    """First and third quartile."""
    if len(values) < 2:
        return (values[0], values[0])
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return (first, third)


class Stopwatch:
    """``with Stopwatch() as watch: ...`` then ``watch.seconds``; the garbage collector rests meanwhile."""

    def __enter__(self):
        self.collecting = gc.isenabled()
        gc.disable()
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        if self.collecting:
            gc.enable()
