"""The sweep of ``benchmarks.sweep`` on a GPU, compared with cupy: copies to the host, to and on a device."""

import arrayhub

from . import sweep

SECONDS = 80
SIDES = ("to_host", "out=", "to_device", "copy", "from host", "from device")


def pairs(cupy):
    """Yield pairs of shapes, like the engines of ``benchmarks.sweep``."""

    def waited(made):
        cupy.cuda.get_current_stream().synchronize()
        return made

    for dtype, shapes, layout, way in sweep.cases(sweep.TYPES, SIDES):

        def prepare(shape, dtype=dtype, layout=layout, way=way):
            a = sweep.filled(shape, dtype)
            near = sweep.LAYOUTS[layout](a)
            if way == "to_device":
                return lambda: arrayhub.to_device(near, "cuda:0"), lambda: waited(cupy.asarray(near)), near.size
            d = cupy.asarray(a)
            far = cupy.moveaxis(d, 0, -1) if "move" in layout else sweep.LAYOUTS[layout](d)
            x, out = arrayhub.asarray(far), sweep.filled(near.shape, dtype)
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
                "copy": (lambda: waited(x.copy()), lambda: waited(far.copy("C"))),
            }
            return *calls[way], near.size

        into = {"to_host": "to_host({})", "out=": "to_host({}, out=C)", "copy": "({}).copy()"}
        into["from host"], into["from device"] = "({})[...] = host", "({})[...] = device"
        into["to_device"] = "to_device({}, 'cuda:0')"
        yield sweep.Pair(into[way].format(layout), dtype, "cupy", shapes, prepare)


def run(cupy):
    """Print the worst rows. Return them for the report, and the number of printed rows above the limit."""
    rows, number, costs = sweep.measure(pairs(cupy), SECONDS)
    worst = [row for row in rows if not row.small][: 3 * sweep.SHOWN]
    for row in worst:
        print(f"{row.ratio:7.3f}  {row.ours * 1e6:10.1f} us  {row.way}  ({row.peer * 1e6:.1f} us: {row.best})")
    print(sweep.summary("CUDA", rows, number, costs))
    report = [{"way": r.way, "seconds": r.ours, "best": r.best, "peer": r.peer, "ratio": r.ratio} for r in worst]
    return report, sum(row.ratio > sweep.AT_MOST for row in worst)
