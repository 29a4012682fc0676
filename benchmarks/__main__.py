"""``python -m benchmarks``: compare arrayhub with the installed peers in one table."""

import argparse
import sys

from arrayhub import sycl_runtime

from . import authors, by_hand, clusters, copies, engines, growth, native, report, rows, startup, storage, sweep
from .measure import Result

# Description and measuring function of each group.
GROUPS = {
    "reach": ("imports and exports through all protocols, compared with other libraries", rows.reach),
    "by_hand": ("conversions and adapted calls, compared with the same written by hand", by_hand.by_hand),
    "elements": ("iteration and indexing, compared with NumPy", rows.values),
    "nested": ("nested arrays and Arrow's interfaces, compared with pyarrow and awkward", rows.nested),
    "sparse": ("sparse arrays, compared with the constructors of SciPy and torch", rows.sparse_arrays),
    "authors": ("placement, like and adapt, compared with the conversions that they perform", authors.authors),
    "native": ("arguments and results of extensions, compared with the framework's arrays", native.native),
    "storage": ("new arrays, compared with those of GT4Py and NumPy", storage.storage),
    "import": ("import arrayhub, compared with import numpy", startup.startup),
    "dimensions": ("cost by number of dimensions", growth.dimensions),
    "types": ("cost by number of types, and memory that remains allocated after types are freed", growth.types),
    "threads": ("cost on several threads", growth.threads),
    "copies": ("explicit copies of large arrays, host and SYCL", copies.copies),
    "engines": ("pickling, tokens and hashes, compared with NumPy arrays of the same size", engines.engines),
    "clusters": ("arrays of 200 MB through dask, ray, joblib and MPI, compared with NumPy arrays", clusters.clusters),
    "sweep": ("copies of many shapes, types and layouts; the slowest are listed", sweep.sweep),
}
BY_NAME_ONLY = ("clusters",)  # starts processes, and takes minutes


def options():
    groups = "; ".join(f"{name}: {question}" for name, (question, _) in GROUPS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Time calls of arrayhub and of other libraries in alternation. Groups: {groups}",
    )
    parser.add_argument(
        "--only", metavar="GROUP", action="append", choices=GROUPS, help="measure this group (repeatable)"
    )
    parser.add_argument("--repeat", type=int, default=41, metavar="N", help="number of rounds (41)")
    parser.add_argument("--sample", type=float, default=0.005, metavar="SECONDS", help="length of one timing (0.005)")
    parser.add_argument(
        "--megabytes", type=int, default=200, metavar="N", help="size of the arrays of the group clusters (200)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write the results to FILE; '-' prints them instead of the table"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="write the tables of docs/performance.md and the records"
    )
    chosen = parser.parse_args()
    if chosen.repeat < 1 or chosen.sample <= 0 or chosen.megabytes < 1:
        parser.error("--repeat, --sample and --megabytes must be positive")
    return chosen


def main():
    chosen = options()
    sycl_runtime.configure()
    results, facts, skipped = [], [], []
    for group in chosen.only or [name for name in GROUPS if name not in BY_NAME_ONLY]:
        for found in GROUPS[group][1](chosen):
            (results if isinstance(found, Result) else facts if len(found) == 3 else skipped).append(found)
            if isinstance(found, Result):
                print(f"{found.group}: {found.way}: {found.ratio:.3f}", file=sys.stderr)
    if chosen.json != "-":
        print(report.text(results, facts, skipped))
    if chosen.json:
        content = report.as_json(results, facts, skipped, chosen)
        if chosen.json == "-":
            print(content)
        else:
            with open(chosen.json, "w") as file:
                file.write(content + "\n")
    if chosen.markdown:
        report.write_pages(results, facts, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
