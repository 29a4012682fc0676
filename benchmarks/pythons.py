"""``python -m benchmarks.pythons FILE ...``: write a table that compares the ratios with several interpreters.

Each FILE is the output of ``python -m benchmarks --only reach --json FILE`` with one interpreter. The table is written
to benchmarks/results/configurations.md.
"""

import argparse
import json
from pathlib import Path

from .report import code, replace


def ratios(results):
    """Return {(call, peer, limit): ratio as text} for the rows of `results` that have a limit."""
    return {
        (row["way"], row["peer"], row["at_most"]): f"{row['ratio']:.2f}" + ("" if row["met"] else " (too much)")
        for row in results["rows"]
        if row["group"] == "reach" and row["at_most"] is not None
    }


def table(runs):
    """Return a table with one row per call and one column per run. A dash marks a missing library."""
    columns = [ratios(run) for run in runs]
    heads = (
        "call",
        "peer",
        "target",
        *(f"{run['machine']['python']}, NumPy {run['versions']['numpy']}" for run in runs),
    )
    lines = [heads, ("---",) * len(heads)]
    for way in dict.fromkeys(way for column in columns for way in column):
        cells = (code(0, way[0]), code(2, way[1]), f"{way[2]:.2f}", *(column.get(way, "-") for column in columns))
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pythons", description=__doc__.splitlines()[0])
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    runs = [json.loads(file.read_text()) for file in parser.parse_args().files]
    replace("pythons", table(runs))


if __name__ == "__main__":
    main()
