"""Write results as text, as JSON, and as the tables of docs/performance.md and benchmarks/results."""

import importlib.metadata
import json
import os
import platform
import re
from pathlib import Path

from .rows import OURS, VERSIONS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs" / "performance.md", *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]
SHORT = ("by_hand", "reach")  # groups whose tables are on the page, with fewer columns than those of the records
MARKERS = "<!-- benchmarks:{} -->", "<!-- /benchmarks:{} -->"


def versions():
    """Return the versions of the measured libraries, or None for libraries that are not installed."""
    found = {"arrayhub": OURS}
    for package in VERSIONS:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def machine():
    """Describe the machine and the software that the numbers depend on, without the host's name."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def time_of(nanoseconds):
    """Format a time in ms if it is at least 10 ms, in µs if it is at least 10 µs, else in ns."""
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= 10 * size:
            return f"{nanoseconds / size:.1f} {unit}"
    return f"{nanoseconds:.0f} ns" if nanoseconds >= 100 else f"{nanoseconds:.1f} ns"


def cells(result):
    """Return one row of the table."""
    target = "" if result.at_most is None else f"{result.at_most:.2f}"
    low, high = result.spread
    return (
        result.way,
        time_of(result.ours_ns),
        result.peer,
        time_of(result.peer_ns),
        f"{result.ratio:.3f}",
        f"{low:.3f} to {high:.3f}",
        target,
        "" if result.at_most is None else "yes" if result.met else "no",
    )


HEADS = ("call", "arrayhub", "peer", "time of the peer", "ratio", "quartiles", "target", "met")


def text(results, facts, skipped):
    """Return the table, the facts and the skipped rows as text for a terminal."""
    lines = [HEADS, *map(cells, results)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADS))]
    out = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    out += [f"{group}: {fact}{'' if holds else '   <-- failed'}" for group, fact, holds in facts]
    out += [f"skipped: {what} ({why})" for what, why in skipped]
    return "\n".join(out)


def as_json(results, facts, skipped, options):
    return json.dumps(
        {
            "schema": 1,
            "machine": machine(),
            "versions": versions(),
            "rounds": options.repeat,
            "sample_seconds": options.sample,
            "rows": [{**result._asdict(), "met": result.met} for result in results],
            "facts": [{"group": group, "fact": fact, "holds": holds} for group, fact, holds in facts],
            "skipped": [{"row": what, "reason": why} for what, why in skipped],
        },
        indent=1,
    )


def markdown(results, facts):
    """Return the table and the facts of one group as Markdown."""
    lines = [HEADS, ("---",) * len(HEADS), *(tuple(code(k, cell) for k, cell in enumerate(cells(r))) for r in results)]
    if results and results[0].group in SHORT:
        lines = [line[:5] + line[6:7] for line in lines]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join([table, *(f"{fact[0].upper()}{fact[1:]}." for _, fact, _ in facts)])


def code(column, cell):
    return f"`{cell}`" if column in (0, 2) else cell


def machine_in_words(options):
    here = machine()
    packages = ", ".join(f"{name} {version}" for name, version in versions().items() if version)
    return (
        f"{here['cores']}-core {here['architecture']} machine, {here['system']}, {here['python']}; {packages}."
        f" Medians of {options.repeat} rounds with samples of {options.sample * 1000:g} ms;"
        f" load average {here['load']}."
    )


def write_pages(results, facts, options):
    """Replace the tables of the measured groups, between the markers of each group."""
    for group in dict.fromkeys(result.group for result in results):
        of_group = [fact for fact in facts if fact[0] == group]
        replace(group, markdown([result for result in results if result.group == group], of_group))
    replace("machine", machine_in_words(options))


def replace(name, content):
    """Replace the text between the markers of `name`, which exactly one page must contain."""
    start, end = (marker.format(name) for marker in MARKERS)
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    pages = [page for page in PAGES if pattern.search(page.read_text())]
    if len(pages) != 1:
        raise SystemExit(f"{name!r}: {len(pages)} pages have {start} and {end}; accepted: one")
    pages[0].write_text(pattern.sub(lambda _: f"{start}\n{content}\n{end}", pages[0].read_text()))
