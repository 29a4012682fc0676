"""Compare arrayhub's imports, exports and copies of CUDA arrays with other libraries' functions.

    python -m benchmarks.gpu [--only handover copies sizes sweep] [--repeats N] [--json FILE]

This module measures imports and exports of small arrays. `benchmarks.gpu_copies` and `benchmarks.gpu_sweep` measure
copies.

A call of arrayhub and its peers are timed alternately in one process, so that disturbances affect all of them. The
result is the ratio of the medians. The printed range contains the middle half of the repeats. The calls of this module
do not wait for the device, so only the host's work is measured. Peers that are not installed are skipped, and errors of
peers are printed.
"""

import argparse
import importlib
import importlib.metadata
import json
import os
import statistics
import sys
import timeit
import warnings

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # otherwise, jax preallocates 75% of the memory

import arrayhub
from arrayhub import asarray
from benchmarks import gpu_copies, gpu_sweep

PACKAGES = ("arrayhub", "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "jax", "numba", "numba-cuda", "cuda-core")
# Maximum ratio of the time of asarray(x) to the time of creating cuda.core's view of x.
TARGETS = {"asarray(cupy)": 0.75, "asarray(torch)": 0.6}


def module(name):
    """Import an optional library, or return None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def view_of_cuda_core(x):
    """Return a function that creates a cuda.core view of `x` without synchronizing, or None without cuda.core."""
    utils = module("cuda.core.utils") or module("cuda.core.experimental.utils")
    if utils is None:
        return None
    make = getattr(utils.StridedMemoryView, "from_any_interface", utils.StridedMemoryView)
    return lambda: make(x, stream_ptr=-1)


def constructor_of_cuda_core(x):
    """Return a function that calls the constructor of the view, or None. Newer releases of cuda.core deprecate it."""
    utils = module("cuda.core.utils") or module("cuda.core.experimental.utils")
    return None if utils is None else lambda: utils.StridedMemoryView(x, stream_ptr=-1)


def rows():
    """Yield (name, arrayhub's call, {peer: peer's call})."""
    cupy, torch, jax, numba = module("cupy"), module("torch"), module("jax"), module("numba.cuda")
    if cupy:
        x = cupy.ones((3, 4), "f4")
        a = asarray(x)
        yield (
            "asarray(cupy)",
            lambda: asarray(x),
            {
                "cuda.core view": view_of_cuda_core(x),
                "cuda.core StridedMemoryView(x)": constructor_of_cuda_core(x),
                "x.__dlpack__(stream=-1)": lambda: x.__dlpack__(stream=-1),
                "cupy.from_dlpack(x)": lambda: cupy.from_dlpack(x),
                "x.__cuda_array_interface__": lambda: x.__cuda_array_interface__,
            },
        )
        yield "as_cupy(cupy)", lambda: arrayhub.as_cupy(x), {"cupy.from_dlpack(x)": lambda: cupy.from_dlpack(x)}
        yield (
            "as_cupy(USMArray)",
            lambda: arrayhub.as_cupy(a),
            {"cupy.from_dlpack(a)": lambda: cupy.from_dlpack(a), "cupy.asarray(a)": lambda: cupy.asarray(a)},
        )
        yield (
            "USMArray.__dlpack__(stream=-1)",
            lambda: a.__dlpack__(stream=-1, max_version=(1, 0)),
            {"cupy's": lambda: x.__dlpack__(stream=-1, max_version=(1, 0))},
        )
    if torch and torch.cuda.is_available():
        t = torch.ones((3, 4), device="cuda")
        yield (
            "asarray(torch)",
            lambda: asarray(t),
            {
                "cuda.core view": view_of_cuda_core(t),
                "cuda.core StridedMemoryView(t)": constructor_of_cuda_core(t),
                "t.__dlpack__(stream=-1)": lambda: t.__dlpack__(stream=-1),
                "torch.from_dlpack(t)": lambda: torch.from_dlpack(t),
                "t.__cuda_array_interface__": lambda: t.__cuda_array_interface__,
            },
        )
        if cupy:
            yield "as_torch(cupy)", lambda: arrayhub.as_torch(x), {"torch.from_dlpack(x)": lambda: torch.from_dlpack(x)}
            yield "as_cupy(torch)", lambda: arrayhub.as_cupy(t), {"cupy.from_dlpack(t)": lambda: cupy.from_dlpack(t)}
    if jax and jax.default_backend() == "gpu":
        j = jax.numpy.ones((3, 4), "float32").block_until_ready()
        yield (
            "asarray(jax)",
            lambda: asarray(j),
            {
                "cuda.core view": view_of_cuda_core(j),
                "j.__dlpack__(stream=1)": lambda: j.__dlpack__(stream=1),
                "j.__cuda_array_interface__": lambda: j.__cuda_array_interface__,
            },
        )
    if numba and numba.is_available():
        n = numba.device_array((3, 4), "float32")
        peers = {
            "cuda.core view": view_of_cuda_core(n),
            "n.__cuda_array_interface__": lambda: n.__cuda_array_interface__,
        }
        if cupy:
            peers["cupy.asarray(n)"] = lambda: cupy.asarray(n)
        yield "asarray(numba)", lambda: asarray(n), peers
        if cupy:
            yield (
                "as_numba(cupy)",
                lambda: arrayhub.as_numba(x),
                {"numba.cuda.as_cuda_array(x)": lambda: numba.as_cuda_array(x)},
            )


def measure(calls, repeats):
    """Time calls in alternation. Return {name: (median, lower quartile, upper quartile) in ns, or text of an error}."""
    results, timers = {}, {}
    for name, call in calls.items():
        try:
            call()
            timer = timeit.Timer(call)
            once = timer.timeit(200) / 200
        except Exception as error:  # errors are printed in place of times
            results[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:100]
            continue
        timers[name] = (timer, max(50, int(2e-3 / once)), [])
    for _ in range(repeats):
        for timer, number, times in timers.values():
            times.append(timer.timeit(number) / number * 1e9)
    for name, (_, _, times) in timers.items():
        low, middle, high = statistics.quantiles(times, n=4)
        results[name] = (middle, low, high)
    return results


def device_name():
    """Return the name of the first GPU, or "unknown" without cupy."""
    cupy = module("cupy")
    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode() if cupy else "unknown"


def versions():
    """Return the versions of Python and of the installed libraries."""
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def handovers(repeats):
    """Print the rows of imports and exports. Return the report, and the number of rows that fail or miss a target."""
    print(f"{'call':<32} {'ns':>7} {'middle half':>15} {'x':>6}  peer")
    report, missed = [], 0
    for name, ours, peers in rows():
        found = measure({name: ours, **{peer: call for peer, call in peers.items() if call}}, repeats)
        mine = found.pop(name)
        if isinstance(mine, str):
            print(f"{name:<32} {mine}")
            missed += 1
            continue
        print(f"{name:<32} {mine[0]:7.0f} {mine[1]:7.0f}-{mine[2]:<7.0f}", flush=True)
        row = {"way": name, "ns": mine, "peers": {}}
        for peer, figure in found.items():
            ratio = None if isinstance(figure, str) else mine[0] / figure[0]
            row["peers"][peer] = {"refuses": figure} if ratio is None else {"ns": figure, "ratio": ratio}
            target = TARGETS.get(name) if peer == "cuda.core view" else None
            if ratio is None:
                print(f"{'':<32} {'':>7} {'':>15} {'':>6}  {peer}: {figure}")
                continue
            missed += target is not None and ratio > target
            goal = "" if target is None else f"  (at most {target}{'' if ratio <= target else ', MISSED'})"
            print(
                f"{'':<32} {figure[0]:7.0f} {figure[1]:7.0f}-{figure[2]:<7.0f} {ratio:6.2f}  {peer}{goal}", flush=True
            )
        report.append(row)
    return report, missed


def copies(repeats):
    """Measure the copies that have a target."""
    return gpu_copies.run(module("cupy"), min(repeats, 9), (gpu_copies.rows, gpu_copies.small_rows))


def devices(repeats):
    """Measure the copies between two devices, and from the host to both."""
    return gpu_copies.run(module("cupy"), min(repeats, 9), (gpu_copies.device_rows,))


def sizes(repeats):
    """Measure copies of increasing size."""
    return gpu_copies.run(module("cupy"), min(repeats, 5), (gpu_copies.size_rows,))


def sweep(repeats):
    """Measure copies of many shapes, types and layouts for a fixed time, and report the worst rows."""
    return gpu_sweep.run(module("cupy"))


GROUPS = {"handover": handovers, "copies": copies, "devices": devices, "sizes": sizes, "sweep": sweep}


def main():
    """Print the tables. The exit status is 1 if a target is missed or an arrayhub call fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="groups of rows")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--json", metavar="FILE", help="also write the results to FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    report = {"device": device_name(), "versions": versions(), "repeats": options.repeats}
    print(f"{report['device']}; " + ", ".join(f"{name} {version}" for name, version in report["versions"].items()))
    missed = 0
    for name in options.only:
        report[name], missed_here = GROUPS[name](options.repeats)
        missed += missed_here
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
