"""Measure how the cost of a call depends on the numbers of dimensions, types and threads."""

import gc
import sys
import threading
import time
import weakref

import numpy as np

from arrayhub import asarray

from .measure import Result, Stopwatch, Timed, compare
from .rows import dict_of

DIMENSIONS = (0, 1, 2, 3, 4, 6, 7, 8, 16, 32, 64)
TYPES = (1, 16, 128, 256, 1000, 5000)
THREADS = (1, 2, 3, 4)
# Required speed-up of two threads without the GIL.
SPEED_UPS = (("one array per thread", 1.8), ("one array for both threads", 1.2))


def dimensions(options):
    """Measure imports of arrays with an increasing number of dimensions, and at most 64 elements."""
    for nd in DIMENSIONS:
        a = np.zeros((1,) * max(nd - 3, 0) + (4,) * min(nd, 3))
        names = {"np": np, "a": a, "asarray": asarray}
        timing = compare(Timed("asarray(a)", names), Timed("np.from_dlpack(a)", names), options.repeat, options.sample)
        yield Result(
            "dimensions", f"asarray(numpy array), {nd} dimensions", "np.from_dlpack(a)", at_most=None, **timing
        )


def types(options):
    """Measure imports of objects of many classes in turn, to show that the type cache does not thrash."""
    for count in TYPES:
        objects = [new_producer(k) for k in range(count)]
        timing = compare(in_turn(asarray, objects), in_turn(np.asarray, objects), options.repeat, options.sample)
        yield Result("types", f"asarray(object), {count} types in turn", "np.asarray(object)", at_most=None, **timing)
    count = max(TYPES)
    collected, blocks, peer_blocks = kept(asarray, count), kept_blocks(asarray, count), kept_blocks(np.asarray, count)
    yield (
        "types",
        f"{collected} of {count} types were freed after their last reference was deleted",
        collected == count,
    )
    yield (
        "types",
        f"{blocks:.3f} memory blocks per type remain allocated (`np.asarray`: {peer_blocks:.3f})",
        blocks < 0.1,
    )


def new_producer(k):
    """Return an object of a new class with an array interface."""
    a = np.zeros((3, 4))
    return type(f"Producer{k}", (), {"__array_interface__": dict_of(a), "owner": a})()


def in_turn(function, objects):
    """Return a function that calls `function` n times with the objects in turn, and returns the elapsed seconds."""

    def run(n):
        turns = max(round(n / len(objects)), 1)
        with Stopwatch() as watch:
            for _ in range(turns):
                for obj in objects:
                    function(obj)
        return watch.seconds * n / (turns * len(objects))

    return run


def kept(function, count):
    """Call `function` with objects of `count` new types. Return how many types are freed after their objects."""
    references = []
    for k in range(count):
        obj = new_producer(k)
        function(obj)
        references.append(weakref.ref(type(obj)))
    del obj
    gc.collect()
    return sum(reference() is None for reference in references)


def kept_blocks(function, count):
    """Return the number of memory blocks per type that remain allocated after the types are freed."""
    kept(function, 100)  # makes one-time allocations
    before = sys.getallocatedblocks()
    kept(function, count)
    gc.collect()
    return max(sys.getallocatedblocks() - before, 0) / count


def threads(options):
    """Measure calls on several threads. Each result is the elapsed time divided by the total number of calls."""
    a = np.zeros((3, 4))

    def same():
        return a

    for count in THREADS:
        timing = compare(
            at_once(asarray, [same] * count),
            at_once(np.from_dlpack, [same] * count),
            options.repeat,
            4 * options.sample,
        )
        yield Result("threads", f"asarray(numpy array) on {count} threads", "np.from_dlpack(a)", at_most=None, **timing)
    without_lock = not getattr(sys, "_is_gil_enabled", lambda: True)()
    for (what, factor), make in zip(SPEED_UPS, (a.copy, same), strict=True):
        timing = compare(at_once(asarray, [make] * 2), at_once(asarray, [make]), options.repeat, 4 * options.sample)
        yield Result(
            "threads",
            f"asarray on 2 threads, {what}",
            "asarray on one thread",
            at_most=1 / factor if without_lock else None,
            **timing,
        )


def at_once(function, makers):
    """Return a function that makes n calls on several threads, and returns the elapsed seconds.

    There is one thread for each of `makers`, which creates the thread's object in the thread. The threads start
    together, and read the clock themselves, because the main thread may not be scheduled until they end.
    """

    def run(n):
        share = max(n // len(makers), 1)
        barrier, spans = threading.Barrier(len(makers)), []
        workers = [threading.Thread(target=work, args=(function, make, share, barrier, spans)) for make in makers]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        starts, ends = zip(*spans, strict=True)
        return (max(ends) - min(starts)) * n / (share * len(makers))

    return run


def work(function, make, n, barrier, spans):
    obj = make()
    barrier.wait()
    start = time.perf_counter()
    for _ in range(n):
        function(obj)
    spans.append((start, time.perf_counter()))
