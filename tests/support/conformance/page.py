"""Text of docs/conformance.md, which contains the conformance reports of real libraries."""

import importlib.metadata
import re
from pathlib import Path

from arrayhub.testing import check_consumer, check_producer, consumer, producer
from arrayhub.testing.report import FAILED, REFUSED, Report

from . import subjects

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"

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

The reports of [arrayhub.testing](howto/plug_in.md#test-your-library) for seven libraries, written by
`PYTHONPATH=tests/support python -m conformance`.

The kit tests each rule with each combination of element type and layout. Each such test is called a cell, and the
tables count cells. A cell is *refused* if the library raises an error that the rule permits. A cell is *not made* if
the library does not have the element type or the layout, or if the rule does not apply to them. A *failed* cell is a
known defect or limit of the library. The [table of defects](protocols.md#known-defects-of-libraries) states how
arrayhub handles each defect. A test repeats the runs.
"""


_MISREADERS = "Consumers that misread a lawful export"  # this section is not measured, so it is kept


def version_of(distribution):
    """Return the installed version without its local segment, such as "+cpu", or None."""
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def section(distribution):
    """Return the part of the page for one library."""
    name = LIBRARIES[distribution]
    lines = [f"## {distribution} {version_of(distribution)}", ""]
    for kind, check in (("make", check_producer), ("read", check_consumer)):
        function = getattr(subjects, f"{kind}_{name}", None)
        if function is not None:
            report = _settled(check(function), name, kind)
            lines += _table(report, "producer" if kind == "make" else "consumer")
    return "\n".join(lines)


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
        lines += [f"| {rule.name} | {_code(rule.text)} |" for rule, _ in rules]
        lines.append("")
    return "\n".join(lines)


def _table(report, role):
    yield f"As a {role}:"
    yield ""
    yield "| rule | passed | refused | not made | failed |"
    yield "|---|---|---|---|---|"
    for rule, found in report.counts():
        cells = " | ".join(str(number) for number in found.values())
        yield f"| [{rule.name}]({rule.specification}) | {cells} |"
    yield ""
    for (rule, why), places in report.grouped_failures().items():
        yield f"- {rule}: {_code(why)} {_short(places)}"
    if not report.ok:
        yield ""


def _short(places):
    layouts = list(dict.fromkeys(layout for _, layout in places))
    types = list(dict.fromkeys(dtype for dtype, _ in places))
    return f"({len(places)} {'cell' if len(places) == 1 else 'cells'}: {', '.join(types)}; {', '.join(layouts)})"


def written():
    """Return the text of the page."""
    kept = re.search(rf"^## {_MISREADERS}\n.*?(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0].rstrip() + "\n"
    return "\n".join([opening(), kept, *(section(distribution) for distribution in LIBRARIES)]).rstrip() + "\n"


def sections_of_page():
    """Return {distribution: (version, section)} for the sections of the page."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        part.split()[0]: (part.split()[1], f"## {part}".rstrip())
        for part in parts
        if not part.startswith(("Rules for ", _MISREADERS))
    }
