"""Count the instructions of a call per function: ``python -m benchmarks.breakdown [--markdown]``. Requires valgrind.

Each program runs twice under callgrind, with few and with many repetitions of a call. The difference of the numbers of
instructions, divided by the difference of the numbers of repetitions, is the cost of one call without one-time work.
Instructions are counted, not timed, so the result hardly depends on the load of the machine.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import report

FEW, MANY = 1000, 9000
SHOWN = 10  # instructions per call; functions with fewer instructions are summed in one row

PREAMBLE = "import itertools, sys, numpy as np; from arrayhub import asarray\n"
LOOP = """
def loop(n, asarray, x):
    for _ in itertools.repeat(None, n):
        asarray(x)
loop(int(sys.argv[1]), asarray, x)
"""
# Description of each call, and code that creates the object.
WAYS = {
    "asarray(numpy array)": "x = np.arange(12.0).reshape(3, 4)",
    "asarray(bytearray)": "x = bytearray(32)",
    "asarray(torch CPU tensor)": "import torch; x = torch.arange(12.0).reshape(3, 4)",
    "asarray(usm_ndarray)": "import dpnp; x = dpnp.arange(12.0).reshape(3, 4).get_array()",
    "asarray(object with a SYCL dict)": (
        "import dpnp; from benchmarks.rows import Producer; d = dpnp.arange(12.0).reshape(3, 4)\n"
        "x = Producer(__sycl_usm_array_interface__=d.__sycl_usm_array_interface__, owner=d)"
    ),
}
ENTRY = re.compile(r"\s*([\d,]+) \([^)]*\)\s+(\S+)")
COMPILED = re.compile(r"__pyx_(?:f|pw|pf|tp_\w+?)_8arrayhub_(.+)")


def counted(program, calls, folder):
    """Return the number of instructions of each function in one run."""
    out = Path(folder) / f"callgrind.{calls}"
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-c", program, str(calls)],
        check=True,
        capture_output=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # instructions of idle worker threads would be counted
    )
    listing = subprocess.run(
        ["callgrind_annotate", "--threshold=100", str(out)], check=True, capture_output=True, text=True
    ).stdout
    counts = {}
    for line in listing.splitlines():
        found = ENTRY.match(line)
        if found and found[2] != "PROGRAM":
            name = readable(found[2].split(":", 1)[-1])
            counts[name] = counts.get(name, 0) + int(found[1].replace(",", ""))
    return counts


def readable(name):
    """Return a readable name, such as ``libraries.numpy.parse`` for ``__pyx_f_8arrayhub_9libraries_5numpy_parse``."""
    compiled = COMPILED.match(name)
    if not compiled:
        return name.split("(")[0].split("@@")[0].split("'")[0].removesuffix(".constprop.0").removesuffix(".isra.0")
    rest, parts = compiled[1], []
    while found := re.match(r"(\d+)", rest):
        length = int(found[1])
        rest = rest[len(found[1]) :]
        parts.append(rest[:length])
        rest = rest[length:].removeprefix("_")
    return ".".join([*parts, rest]) if rest else ".".join(parts)


def per_call(program):
    """Return (instructions per call, function) pairs, in descending order."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        few, many = pool.map(lambda calls: counted(program, calls, folder), (FEW, MANY))
    costs = {name: (many.get(name, 0) - few.get(name, 0)) / (MANY - FEW) for name in {*few, *many}}
    # Functions whose cost does not increase with the number of calls run in other threads, such as a SYCL runtime's.
    return sorted(((cost, name) for name, cost in costs.items() if cost >= 0.5), reverse=True)


def table(way, costs):
    """Return a table of the functions of one call. Functions with few instructions are summed in one row."""
    whole = sum(cost for cost, _ in costs)
    shown = [(cost, name) for cost, name in costs if cost >= SHOWN]
    rest = whole - sum(cost for cost, _ in shown)
    lines = [f"| `{way}` | instructions |", "|---|---|", *(f"| `{name}` | {cost:.0f} |" for cost, name in shown)]
    return "\n".join([*lines, f"| functions below {SHOWN} | {rest:.0f} |", f"| all | {whole:.0f} |"])


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.breakdown", description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="write the tables into benchmarks/results/steps.md")
    parser.add_argument("--only", choices=WAYS, action="append", help="measure only this call (repeatable)")
    chosen = parser.parse_args()
    tables = [table(way, per_call(PREAMBLE + WAYS[way] + LOOP)) for way in chosen.only or WAYS]
    print("\n\n".join(tables))
    if chosen.markdown:
        report.replace("breakdown", "\n\n".join(tables))


if __name__ == "__main__":
    main()
