"""Compare copies of many shapes, types and layouts with a peer and with neighboring shapes, and report the worst.

The reference time of a call is the smaller of two times: the peer's time for the same shape, and arrayhub's time for a
neighboring shape, scaled to the same number of elements. The second time reveals shapes of powers of two that are slow
because their lines map to few cache sets. Some of these shapes are slow for any program, including the peer. The
summary therefore also states how many rows are above the limit after division by the peer's slowdown.

A call is small if its fixed cost is more than 15% of its reference time. The time of a small call is spent mostly in
Python and in checks, not in the copy. Small calls are reported separately, by their additional time. The fixed cost is
measured by copying a few elements, for each kind of call (target, layout, element type, number of dimensions).

    python -m benchmarks.sweep [host SYCL] [--ways "from host" "from device"] [--seconds N] [--at-most RATIO]
        [--peer-only]

prints the worst rows of the selected engines and ways. With ``--peer-only``, the reference time is always the peer's
time. `benchmarks.gpu_sweep` prints the worst copies from, to and on a GPU.
"""

import argparse
import itertools
import random
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np

import arrayhub

from .measure import Result, middle_half

AT_MOST = 1.15
SHOWN = 12  # number of reported rows per engine
BUDGET = 200  # time per engine, as a multiple of `options.repeat * options.sample`; 41 s by default
TURN = 200e-6  # minimum seconds of one timing; short, so that other processes do not disturb all timings
ROUNDS = 6  # even, because half of the rounds run in reverse order
AGAIN = 4 * SHOWN  # worst rows that are measured again
TINY = {1: (64,), 2: (8, 8), 3: (4, 4, 8)}  # shapes by number of dimensions that measure the fixed cost
TYPES = ("u1", "f2", "f4", "f8", "c16")
OPAQUE = ("V3", "V12", "V32")  # dtypes that only NumPy supports
# Pairs of a shape of powers of two and a neighboring shape, with 1 Ki to 8 Mi elements. Rows have even lengths, so that
# ``x[..., ::2]`` has the same stride within a row and from a row to the next.
SHAPES = (
    ((1024,), (1000,)),
    ((1 << 20,), (1_000_003,)),
    ((32, 32), (33, 30)),
    ((128, 128), (127, 130)),
    ((256, 256), (255, 258)),
    ((512, 512), (511, 514)),
    ((1024, 1024), (1000, 1040)),
    ((4096, 512), (4001, 520)),
    ((4096, 2048), (4000, 2000)),
    ((8192, 1024), (8191, 1026)),
    ((65536, 4), (65500, 4)),
    ((65536, 16), (65521, 18)),
    ((4, 65536), (4, 65500)),
    ((32, 32, 32), (31, 33, 32)),
    ((128, 64, 128), (127, 65, 126)),
    ((4096, 16, 16), (4095, 16, 18)),
)
LAYOUTS = {
    "x": lambda a: a,
    "x.T": lambda a: transposed(a),
    "x[..., ::2]": lambda a: a[..., ::2],
    "x[..., :-5]": lambda a: a[..., :-5],
    "x[::2, ::2]": lambda a: a[(slice(None, None, 2),) * a.ndim],
    "x[::2, ::2].T": lambda a: transposed(a[(slice(None, None, 2),) * a.ndim]),
    "x[..., ::-1]": lambda a: a[..., ::-1],
    "x[::-1, ::-1]": lambda a: a[(slice(None, None, -1),) * a.ndim],
    "x[..., 1]": lambda a: a[..., 1],
    "moveaxis(x, 0, -1)": lambda a: np.moveaxis(a, 0, -1) if isinstance(a, np.ndarray) else turned(a),
}
WAYS = ("to_host", "out=", "to_device", "from host", "from device", "onto host")  # of the SYCL engine
TARGETS = {
    "C": lambda shape, dtype: filled(shape, dtype),
    "F": lambda shape, dtype: filled(shape[::-1], dtype).T,
    "[..., ::2]": lambda shape, dtype: filled((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2],
    "[::-1]": lambda shape, dtype: filled(shape, dtype)[::-1],
}


def turned(a):
    return a.transpose(*range(1, a.ndim), 0)


def transposed(a):
    """Reverse the dimensions. The ``T`` of dpnp's tensors supports only two dimensions."""
    if hasattr(a, "transpose"):
        return a.T
    import dpnp.tensor as dpt

    return dpt.permute_dims(a, tuple(reversed(range(a.ndim))))


def cases(types, *ways):
    """Yield all combinations of type, shapes, layout and `ways`, except those that copy a single element."""
    for dtype, shapes, layout, *rest in itertools.product(types, SHAPES, LAYOUTS, *ways):
        if not (layout == "x[..., 1]" and len(shapes[0]) == 1):
            yield dtype, shapes, layout, *rest


class Pair(NamedTuple):
    """A kind of copy, to be timed for a shape and a neighboring shape."""

    kind: str  # target and layout
    dtype: str
    peer: str
    shapes: tuple
    prepare: object  # prepare(shape) returns arrayhub's call, the peer's call, and the number of copied elements

    def way(self, shape):
        return f"{self.kind}, {self.dtype} {shape}"

    def call(self):
        """Return the properties on which the fixed cost of the call depends."""
        return self.kind, self.dtype, len(self.shapes[0])


class Row(NamedTuple):
    """Results for one shape of a pair. `ours` and `peer` are the seconds of the call and of its reference."""

    way: str
    best: str
    ours: float
    peer: float
    spread: tuple[float, float]
    small: bool
    pair: Pair
    typical: float  # median of the rounds' ratios
    shared: float  # slowdown of the peer: its time for this shape relative to the faster neighbor; at least 1

    @property
    def ratio(self):
        """Return the ratio of the minimum times, or the median of the rounds' ratios, whichever is smaller.

        Either ratio alone would be distorted if the machine is temporarily faster than usual.
        """
        return min(self.ours / self.peer, self.typical)

    @property
    def own(self):
        """Return `ratio` divided by the slowdown of the peer for this shape."""
        return self.ratio / self.shared


def assign(array, value):
    array[...] = value


def filled(shape, dtype):
    """Return an array whose memory has been written. Unwritten pages would all map to one page of zeros."""
    dtype = np.dtype(dtype)
    return np.full(int(np.prod(shape)) * dtype.itemsize, 1, "u1").view(dtype).reshape(shape)


# -------------------------------------------------------------------------------------------------------------- engines


def host():
    """Yield copies from host memory to host memory, compared with NumPy's copies."""
    for dtype, shapes, layout, target in cases((*TYPES, *OPAQUE), (*TARGETS, "fresh")):

        def prepare(shape, dtype=dtype, layout=layout, target=target):
            a = LAYOUTS[layout](filled(shape, dtype))
            if target == "fresh":
                return lambda: arrayhub.to_host(a, copy=True), lambda: a.copy("C"), a.size
            out = TARGETS[target](a.shape, dtype)
            return lambda: arrayhub.to_host(a, out=out), lambda: np.copyto(out, a), a.size

        into = "copy=True" if target == "fresh" else f"out={target}"
        yield Pair(f"to_host({layout}, {into})", dtype, "np.copyto", shapes, prepare)


def sycl(ways=WAYS):
    """Yield copies and assignments from and to device USM, compared with dpnp's."""
    import dpnp.tensor as dpt

    def down(view, out):
        return lambda: arrayhub.to_host(view, out=out)

    for dtype, shapes, layout, way in cases(TYPES, ways):

        def prepare(shape, dtype=dtype, layout=layout, way=way):
            a = filled(shape, dtype)
            view = LAYOUTS[layout](a)
            if way == "to_device":
                order = "F" if np.isfortran(view) else "C"  # order of arrayhub's result
                return (
                    lambda: arrayhub.to_device(view, "oneapi:0"),
                    lambda: waited(dpt.asarray(view, order=order)),
                    view.size,
                )
            d = dpt.asarray(a, usm_type="device")
            d.sycl_queue.wait()
            theirs = LAYOUTS[layout](d) if "move" not in layout else dpt.moveaxis(d, 0, -1)
            x = arrayhub.asarray(theirs)
            if way.startswith("from"):
                given = filled(view.shape, dtype) if way == "from host" else dpt.ones(view.shape, dtype=dtype)
                return lambda: assign(x, given), lambda: (assign(theirs, given), waited(theirs)), view.size
            out = None if way == "to_host" else filled(view.shape, dtype)
            if way == "onto host":
                near = arrayhub.asarray(out)
                return lambda: assign(near, x), lambda: assign(out, dpt.asnumpy(theirs)), view.size
            return down(x, out), lambda: dpt.asnumpy(dpt.copy(theirs, order="C")), view.size

        def waited(made):
            made.sycl_queue.wait()
            return made

        into = {
            "to_host": "to_host({})",
            "out=": "to_host({}, out=C)",
            "to_device": "to_device({}, 'oneapi:0')",
            "from host": "({})[...] = host",
            "from device": "({})[...] = device",
            "onto host": "host[...] = {}",
        }[way]
        yield Pair(into.format(layout), dtype, "dpnp", shapes, prepare)


# For each engine, the function that yields its pairs.
ENGINES = {"host": host, "SYCL": sycl}


# ------------------------------------------------------------------------------------------------------------ measuring


class Measured:
    """A pair, and the times of its four calls in all rounds measured so far."""

    def __init__(self, pair):
        self.pair = pair
        self.times = [[], [], [], []]  # arrayhub and peer for the first shape, then for the second

    def measure(self, rounds):
        made = [self.pair.prepare(shape) for shape in self.pair.shapes]
        self.sizes = [size for _, _, size in made]
        calls = [call for ours, peer, _ in made for call in (ours, peer)]
        turns = [turns_of(call) for call in calls]
        turn = list(zip(calls, turns, self.times, strict=True))
        for _ in range(rounds):
            for call, n, times in turn:
                times.append(seconds(call, n))
            turn.reverse()  # because later calls of a round find less of their memory in the caches
        return self

    def rows(self, cost, at_most, peer_only):
        """Yield a row for each of the two shapes. `cost` is the fixed cost of this kind of call."""
        if 0 in self.sizes:  # the layout selects no elements of such a small shape
            return
        least = [min(times) for times in self.times]
        for k in (0, 1):
            ours, peer = least[2 * k : 2 * k + 2]
            scale = self.sizes[k] / self.sizes[1 - k]
            neighbor, shared = least[2 - 2 * k] * scale, 1.0
            if neighbor < peer and not peer_only:
                best, who = neighbor, f"its neighbor {self.pair.shapes[1 - k]}"
                theirs = [time * scale for time in self.times[2 - 2 * k]]
                shared = max(shared, peer / (least[3 - 2 * k] * scale))
            else:
                best, who, theirs = peer, self.pair.peer, self.times[2 * k + 1]
            ratios = [a / b for a, b in zip(self.times[2 * k], theirs, strict=True)]
            small = best < cost / (at_most - 1)
            spread, typical = middle_half(ratios), statistics.median(ratios)
            yield Row(self.pair.way(self.pair.shapes[k]), who, ours, best, spread, small, self.pair, typical, shared)


def seconds(call, n):
    """Make n calls, after one that fills the caches. Return the seconds per call, which include freeing the result."""
    call()
    begin = time.perf_counter()
    for _ in itertools.repeat(None, n):
        call()
    return (time.perf_counter() - begin) / n


def turns_of(call):
    """Return the number of calls that take about `TURN` seconds."""
    return max(1, int(TURN / max(seconds(call, 1), 1e-7)))


def fixed_costs(pairs):
    """Return {kind of call: fixed cost}. The cost is the difference from the peer's seconds for a few elements."""
    costs = {}
    for pair in {pair.call(): pair for pair in pairs}.values():
        ours, peer, _ = pair.prepare(TINY[len(pair.shapes[0])])
        turns_of(ours), turns_of(peer)
        times = [(seconds(ours, 10), seconds(peer, 10)) for _ in range(30)]
        costs[pair.call()] = max(min(a for a, _ in times) - min(b for _, b in times), 0.0)
    return costs


def measure(pairs, budget, at_most=AT_MOST, peer_only=False):
    """Measure pairs in a reproducible random order until most of `budget` is spent. Measure the worst rows again.

    Returns
    -------
    tuple
        All rows (the worst first), the total number of pairs, and the fixed cost of each kind of call in seconds.
    """
    pairs = list(pairs)
    costs = fixed_costs(pairs)
    random.Random(0).shuffle(pairs)
    found, begin = {}, time.perf_counter()
    for pair in pairs:
        found[pair] = Measured(pair).measure(ROUNDS)
        if time.perf_counter() - begin > 0.7 * budget:
            break

    def ranked():
        rows = [row for m in found.values() for row in m.rows(costs[m.pair.call()], at_most, peer_only)]
        return sorted(rows, key=lambda row: (row.small, -row.ratio))

    for row in ranked()[:AGAIN]:  # other processes may have slowed the first measurement
        if time.perf_counter() - begin > budget:
            break
        if not row.small and row.ratio > at_most:
            found[row.pair].measure(2 * ROUNDS)
    return ranked(), len(pairs), costs


# ------------------------------------------------------------------------------------------------------------ reporting


def summary(engine, rows, pairs, costs, at_most=AT_MOST):
    """Return the summary of an engine's rows as text."""
    large, small = ([row for row in rows if row.small is kind] for kind in (False, True))
    above = [row for row in large if row.ratio > at_most]
    own = sum(row.own > at_most for row in above)
    added = max((row.ours - row.peer for row in small), default=0.0) * 1e6
    least, most = min(costs.values()) * 1e6, max(costs.values()) * 1e6
    return (
        f"{engine}: {len(rows)} of {2 * pairs} rows were measured. The ratio of {len(above)} of the {len(large)} large"
        f" rows is above {at_most}, and {own} of these ratios are still above it after division by the peer's slowdown."
        f" The fixed cost of a call exceeds the peer's by {least:.1f} to {most:.1f} µs, depending on the kind of call."
        f" {len(small)} rows are small, because they take less than {1 / (at_most - 1):.1f} times this cost."
        f" A small row takes up to {added:.1f} µs longer than its peer"
    )


def sweep(options):
    """Measure each engine. Yield its worst rows as `Result` and a summary, or the reason why it is skipped."""
    for name, engine in ENGINES.items():
        try:
            rows, pairs, costs = measure(engine(), BUDGET * options.repeat * options.sample)
        except Exception as error:  # the engine's library is not installed, or does not find a device
            yield f"sweep of {name}", f"{type(error).__name__}: {error}"
            continue
        for row in [row for row in rows if not row.small][:SHOWN]:
            yield Result("sweep", row.way, row.best, row.ours * 1e9, row.peer * 1e9, row.ratio, row.spread, AT_MOST)
        yield "sweep", summary(name, rows, pairs, costs), True


def print_worst(engine, pairs, seconds, at_most, peer_only=False):
    """Measure pairs, print the worst rows and a summary, and return the worst rows."""
    rows, number, costs = measure(pairs, seconds, at_most, peer_only)
    worst = [row for row in rows if not row.small][: 3 * SHOWN]
    for row in worst:
        print(f"{row.ratio:7.3f}  {row.ours * 1e6:10.1f} us  {row.way}  ({row.peer * 1e6:.1f} us: {row.best})")
    print(summary(engine, rows, number, costs, at_most))
    return worst


def arguments(description, ways, seconds):
    """Return a parser for the arguments of both programs, this module and `benchmarks.gpu_sweep`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways, help="ways to measure")
    parser.add_argument("--seconds", type=float, default=seconds, help="duration of a sweep")
    parser.add_argument("--at-most", type=float, default=AT_MOST, help="limit of the ratios")
    parser.add_argument("--peer-only", action="store_true", help="compare only with the peer")
    return parser


def main():
    """Print the worst rows. Return 1 if the ratio of a row is above the limit, else 0."""
    parser = arguments(__doc__.splitlines()[0], WAYS, BUDGET * 0.2)
    parser.add_argument("engines", nargs="*", choices=ENGINES, default=[*ENGINES])
    chosen = parser.parse_args()
    above = 0
    for name in chosen.engines:
        pairs = sycl(chosen.ways) if name == "SYCL" else ENGINES[name]()
        worst = print_worst(name, pairs, chosen.seconds, chosen.at_most, chosen.peer_only)
        above += sum(row.ratio > chosen.at_most for row in worst)
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
