"""Text of docs/conformance.md, which contains the conformance reports of real libraries."""

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

from children import finished

from arrayhub.testing import check_consumer, check_producer, consumer, producer
from arrayhub.testing.report import FAILED, REFUSED, VERDICTS, Report

from . import subjects

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"

# Rules that libraries break: `distribution`, `role`, `rule`, `program` and `report`.
_LISTED = tomllib.loads((Path(__file__).parent / "deviations.toml").read_text())["deviation"]
DEVIATIONS = [SimpleNamespace(**each) for each in _LISTED]

# For each distribution, the library's name in the functions of `subjects`.
LIBRARIES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "dpnp": "dpnp",
    "pyarrow": "pyarrow",
    "apache-tvm-ffi": "tvm_ffi",
    "array-api-strict": "array_api_strict",
}

# Defects that cause different errors from run to run, by library, role and rule. The page shows this text instead.
_VARYING = {
    ("jax", "read", "null deleter"): "calls the null deleter, which raises an error or ends the process",
}

_OPENING = """# Conformance of libraries

The results of [arrayhub.testing](howto/plug_in.md#test-your-library) for seven libraries, written by
`PYTHONPATH=tests/support python -m conformance`. The examples on this page also require:
`pip install '.[sycl]' apache-tvm-ffi dpnp jax pyarrow torch`.

The kit tests each rule with each combination of element type and layout, called a cell. A cell is *refused* if the
library raises an error that the rule permits, and *not made* if the library does not have the element type or the
layout, or if the rule does not apply. The [table of defects](protocols.md#known-defects-of-libraries) states how
arrayhub handles each deviation. A test repeats the runs. jax imports arrays with `jax_enable_x64`.

The rule *lifetime* does not always find memory that a library has copied and releases too early: it compares the
elements, which may not be overwritten yet.
"""


_MISREADERS = "Consumers that misread a lawful export"  # this section is not measured, so it is kept


def version_of(distribution):
    """Return the installed version without its local segment, such as "+cpu", or None."""
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def reports(distribution):
    """Yield the role of a library, and its report."""
    name = LIBRARIES[distribution]
    for kind, check, role in (("make", check_producer, "producer"), ("read", check_consumer, "consumer")):
        function = getattr(subjects, f"{kind}_{name}", None)
        if function is not None:
            yield role, _settled(check(function), name, kind)


def row(distribution, role, report):
    """Return the row of the table for one side of a library."""
    verdicts = [cell.verdict for cell in report.cells]
    counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
    broken = ", ".join(dict.fromkeys(cell.rule for cell in report.failures())) or "none"
    return f"| {distribution} {version_of(distribution)} | {role} | {counts} | {broken} |"


def section(deviation, report):
    """Return the part of the page for one deviation: the cells, the program, its output and the report."""
    lines = [f"### {deviation.distribution} as a {deviation.role}: {deviation.rule}", ""]
    for (rule, why), places in report.grouped_failures().items():
        if rule == deviation.rule:
            lines.append(f"- {_code(why)} {_short(places)}")
    program = deviation.program.strip()
    done = finished(sys.executable, "-c", program)
    lines += ["", "```python", program, "```", "", "```text", done.stdout.rstrip(), "```", ""]
    return "\n".join([*lines, f"Report: {deviation.report}"])


def measured():
    """Return the table of all sides, and the sections of the deviations."""
    rows, sections = [], []
    for distribution in LIBRARIES:
        for role, report in reports(distribution):
            rows.append(row(distribution, role, report))
            broken = {cell.rule for cell in report.failures()}
            told = [each for each in DEVIATIONS if (each.distribution, each.role) == (distribution, role)]
            if broken != {each.rule for each in told}:
                raise SystemExit(f"{distribution} as a {role} breaks {broken}; deviations.py has {told}")
            sections += [section(deviation, report) for deviation in told]
    return rows, sections


def _settled(report, name, kind):
    """Return a copy of the report in which the cells of `_VARYING` are the same in every run."""

    def settled(cell):
        why = _VARYING.get((name, kind, cell.rule))
        return cell if why is None or cell.verdict not in (FAILED, REFUSED) else cell._replace(verdict=FAILED, why=why)

    return Report(report.name, report.rules, [settled(cell) for cell in report.cells])


def _code(text):
    """Return Markdown with the names of attributes and arguments as code. `__dlpack__` would otherwise be bold."""
    text = re.sub(r"__[a-z_]+__", r"`\g<0>`", text.replace("|", "/"))
    return re.sub(r"\bmax_version\b|\bcopy=(?:True|False)|\bdata \+ byte_offset", r"`\g<0>`", text)


def opening():
    """Return the introduction of the page, with a table of the rules for each role."""
    lines = [_OPENING]
    for role, rules in (("producers", producer.RULES), ("consumers", consumer.RULES)):
        lines += [f"## Rules for {role}", "", "| rule | requirement |", "|---|---|"]
        lines += [f"| [{rule.name}]({rule.specification}) | {_code(rule.text)} |" for rule, _ in rules]
        lines.append("")
    return "\n".join(lines)


def _short(places):
    layouts = list(dict.fromkeys(layout for _, layout in places))
    types = list(dict.fromkeys(dtype for dtype, _ in places))
    named = ", ".join(types) if len(types) < 4 else f"{len(types)} element types"
    return f"({len(places)} {'cell' if len(places) == 1 else 'cells'}: {named}; {', '.join(layouts)})"


def written():
    """Return the text of the page."""
    kept = re.search(rf"^## {_MISREADERS}\n.*?(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0].rstrip()
    rows, sections = measured()
    deviating = sum(not line.endswith("| none |") for line in rows)
    heads = ["| library | side | passed | refused | not made | failed | rules that are broken |", "|---" * 7 + "|"]
    results = f"## Results\n\n{deviating} of {len(rows)} sides break a rule.\n\n" + "\n".join([*heads, *rows])
    deviations = "## Deviations\n\n" + "\n\n".join(sections)
    return "\n\n".join([opening().rstrip(), results, deviations, kept]) + "\n"


def rows_of_page():
    """Return {(distribution, role): (version, row)} for the rows of the table of results."""
    rows = re.findall(r"^(\| (\S+) (\S+) \| (producer|consumer) \|.*)$", PAGE.read_text(), re.MULTILINE)
    return {(name, role): (version, line) for line, name, version, role in rows}
