"""Compare copies from, to and on a GPU with cupy's copies, for the shapes and layouts of ``benchmarks.sweep``.

python -m benchmarks.gpu_sweep [--ways "from host" "from device"] [--seconds N] [--at-most RATIO] [--peer-only]
"""

import sys

import arrayhub

from . import sweep

SECONDS = 80
WAYS = ("to_host", "out=", "to_device", "copy", "from host", "from device", "onto host")


def pairs(cupy, ways=WAYS):
    """Yield `sweep.Pair` objects for the copies in `ways`."""

    def waited(made):
        cupy.cuda.get_current_stream().synchronize()
        return made

    for dtype, shapes, layout, way in sweep.cases(sweep.TYPES, ways):

        def prepare(shape, dtype=dtype, layout=layout, way=way):
            a = sweep.filled(shape, dtype)
            near = sweep.LAYOUTS[layout](a)
            if way == "to_device":
                return lambda: arrayhub.to_device(near, "cuda:0"), lambda: waited(cupy.asarray(near)), near.size
            d = cupy.asarray(a)
            far = cupy.moveaxis(d, 0, -1) if "move" in layout else sweep.LAYOUTS[layout](d)
            x, out = arrayhub.asarray(far), sweep.filled(near.shape, dtype)
            onto = arrayhub.asarray(out)
            given = cupy.ones(near.shape, dtype)

            def set_far(value):
                if far.flags.c_contiguous or far.flags.f_contiguous:
                    far.set(value)
                else:
                    far[...] = cupy.asarray(value)

            calls = {
                "from host": (lambda: sweep.assign(x, out), lambda: waited(set_far(out))),
                "from device": (lambda: waited(sweep.assign(x, given)), lambda: waited(sweep.assign(far, given))),
                "to_host": (lambda: arrayhub.to_host(x), lambda: cupy.asnumpy(far, order="C")),
                "out=": (lambda: arrayhub.to_host(x, out=out), lambda: far.get(out=out)),
                "onto host": (lambda: sweep.assign(onto, x), lambda: far.get(out=out)),
                "copy": (lambda: waited(x.copy()), lambda: waited(far.copy("C"))),
            }
            return *calls[way], near.size

        into = {"to_host": "to_host({})", "out=": "to_host({}, out=C)", "copy": "({}).copy()"}
        into["from host"], into["from device"] = "({})[...] = host", "({})[...] = device"
        into["onto host"] = "host[...] = {}"
        into["to_device"] = "to_device({}, 'cuda:0')"
        yield sweep.Pair(into[way].format(layout), dtype, "cupy", shapes, prepare)


def run(cupy, ways=WAYS, seconds=SECONDS, at_most=sweep.AT_MOST, peer_only=False):
    """Measure pairs, and print the worst rows. Return the report, and the number of printed rows above the limit."""
    worst = sweep.print_worst("CUDA", pairs(cupy, ways), seconds, at_most, peer_only)
    report = [{"way": r.way, "seconds": r.ours, "best": r.best, "peer": r.peer, "ratio": r.ratio} for r in worst]
    return report, sum(row.ratio > at_most for row in worst)


def main():
    """Print the worst rows. Return 1 if the ratio of a row is above the limit, else 0."""
    chosen = sweep.arguments(__doc__.splitlines()[0], WAYS, SECONDS).parse_args()
    try:
        import cupy
    except ImportError as error:
        sys.exit(f"benchmarks.gpu_sweep needs cupy and a CUDA device ({error})")
    return int(run(cupy, chosen.ways, chosen.seconds, chosen.at_most, chosen.peer_only)[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
