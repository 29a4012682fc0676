"""docs/matrix.md, from the three tables alone: test_matrix.py holds every cell to them."""

import pathlib
import string
from collections import Counter

from .consumers import CONSUMERS
from .elements import ELEMENTS
from .layouts import LAYOUTS
from .nested import CONSUMERS as NESTED_CONSUMERS
from .nested import COPIES, KINDS
from .nested import PRODUCERS as NESTED_PRODUCERS
from .nested import REFUSALS as NESTED_REFUSALS
from .nested import refusal_of as nested_refusal_of
from .producers import PRODUCERS
from .refusals import REFUSALS, Cell, refusal_of
from .sparse import OBSTACLES, SPARSE_CONSUMERS, SPARSE_PRODUCERS, obstacle_of

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "matrix.md"

_OPENING = """\
# The matrix

Every producer, with every element type and layout it has, goes through `arrayhub.asarray` into every consumer. A cell
that passes has the same values at the same address, in the element type that the consumer calls by the same name; what
the consumer writes is in the producer's memory, what was read-only stays so, and the producer is freed when the last
view dies. The other cells are refused, each with the error and the message that the list below gives a reason for.

This page is written by `python -m tests.support.matrix` from the tables in `tests/support/matrix`.
`tests/interop/test_matrix.py` runs each cell. A number counts the pairs of element type and layout that pass, of all
that the producer has. The letters say why the others are refused. A letter in parentheses depends on the
address that an allocator picks.

Layouts: {layouts}.

Element types: {elements}.

"""


def cells():
    """Return an iterator over all cells: `Cell` objects whose address is not known yet."""
    for producer in PRODUCERS:
        for element, layout in producer.pairs():
            for consumer in CONSUMERS:
                yield Cell(producer, ELEMENTS[element], LAYOUTS[layout], consumer.name)


def letter(refusal):
    """Return the letter of a row of refusals.py."""
    return string.ascii_lowercase[REFUSALS.index(refusal)]


def _entry(producer, consumer):
    """One entry of the table: how many pass, of how many, and why the others do not."""
    passed, reasons = 0, {}
    pairs = producer.pairs()
    for element, layout in pairs:
        refusal, certain = refusal_of(Cell(producer, ELEMENTS[element], LAYOUTS[layout], consumer.name))
        passed += refusal is None or not certain
        if refusal is not None:
            reasons.setdefault(letter(refusal), certain)
    marks = " ".join(mark if certain else f"({mark})" for mark, certain in sorted(reasons.items()))
    return f"{passed} of {len(pairs)}{' ' if marks else ''}{marks}" if passed else f"– {marks}"


def _errors(refusal):
    errors = refusal.error if isinstance(refusal.error, tuple) else (refusal.error,)
    return " or ".join("an error of numba's" if error is Exception else error.__name__ for error in errors)


def _head(consumers):
    """The first lines of a table; a browser may break the names where their parts end."""
    names = (consumer.name.replace(".", ".<wbr>").replace("_", "_<wbr>") for consumer in consumers)
    return f"| from \\ into | {' | '.join(names)} |", "|---|" + "---|" * len(consumers)


def written():
    """Return the text of docs/matrix.md."""
    lines = [*_head(CONSUMERS)]
    for producer in PRODUCERS:
        entries = (_entry(producer, consumer) for consumer in CONSUMERS)
        lines.append(f"| {producer.name} | " + " | ".join(entries) + " |")
    met = Counter(id(refusal_of(cell)[0]) for cell in cells())
    lines += [
        "",
        f"In all {met.total():,} cells; {met[id(None)]:,} of them pass.",
        "",
        "## Refusals",
        "",
        "| | consumers | cells | error | reason |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {letter(r)} | {', '.join(r.consumers)} | {met[id(r)]:,} | {_errors(r)} | {r.reason} |" for r in REFUSALS
    ]
    opening = _OPENING.format(layouts=", ".join(LAYOUTS), elements=", ".join(f"`{name}`" for name in ELEMENTS))
    return opening + "\n".join([*lines, *_nested(), *_sparse()]) + "\n"


_NESTED_OPENING = """
## Nested data

`tests/support/matrix/nested.py` passes lists, strings, missing values and records through `arrayhub.asnested` to
every consumer. A cell passes if four conditions hold: the values are unchanged after the producer was released; the
type is the one that [nested arrays](nested.md) describe; numbers and characters are at the producer's address, if it
is known; and the last view releases the memory. The number counts the kinds that pass, of all kinds of the producer.
A letter refers to the reason why the others fail.

Kinds: {kinds}.

Copied: {copies}.
"""


def _nested():
    """The lines of the table of what is not dense."""
    copies = "; ".join(f"{kind} in {consumer} ({why})" for (consumer, kind), why in COPIES.items())
    yield _NESTED_OPENING.format(kinds=", ".join(KINDS), copies=copies)
    yield from _head(NESTED_CONSUMERS)
    for producer in NESTED_PRODUCERS:
        yield f"| {producer.name} | " + " | ".join(_nested_entry(producer, c) for c in NESTED_CONSUMERS) + " |"
    yield ""
    yield "| | consumers | error | reason |"
    yield "|---|---|---|---|"
    for k, row in enumerate(NESTED_REFUSALS):
        error = "an error of its own" if row.error is Exception else row.error.__name__
        yield f"| {string.ascii_lowercase[k]} | {', '.join(row.consumers)} | {error} | {row.reason} |"


def _nested_entry(producer, consumer):
    kinds = [kind for kind in producer.kinds if kind in consumer.kinds]
    rows = [nested_refusal_of(producer.name, kind, consumer.name) for kind in kinds]
    letters = sorted({string.ascii_lowercase[NESTED_REFUSALS.index(row)] for row in rows if row is not None})
    passed = rows.count(None)
    return " ".join([f"{passed} of {len(kinds)}" if passed else "–", *letters])


_SPARSE_OPENING = """
## Sparse arrays

`tests/support/matrix/sparse.py` passes sparse arrays through `arrayhub.assparse` to every library. In a cell, a format
alone is shared: all parts have the producer's addresses. A format with a letter is not: a copy of some parts
(`copy="if_needed"`) is needed, or, with a dash, the format is refused. `tests/sparse/test_rules_matrix.py` runs each
cell, and `tests/gpu/test_sparse.py` runs those of CuPy.
"""
_SPARSE_NAMES = {"scipy": "SciPy", "pydata_sparse": "pydata/sparse", "binsparse": "`__binsparse__`"}


def _sparse():
    """Yield the lines of the table of sparse arrays."""
    yield _SPARSE_OPENING
    names = [_SPARSE_NAMES.get(name, name) for name in SPARSE_CONSUMERS]
    yield f"| from \\ into | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for producer in SPARSE_PRODUCERS:
        yield f"| {producer.name} | " + " | ".join(_sparse_entry(producer, name) for name in SPARSE_CONSUMERS) + " |"
    yield ""
    yield "| | consumers | copy | reason |"
    yield "|---|---|---|---|"
    for k, row in enumerate(OBSTACLES):
        consumers = ", ".join(_SPARSE_NAMES.get(name, name) for name in row.consumers)
        yield f"| {string.ascii_lowercase[k]} | {consumers} | {'yes' if row.copy else 'no'} | {row.reason} |"


def _sparse_entry(producer, consumer):
    entries = []
    for format in producer.formats:
        row = obstacle_of(producer, format, consumer)
        letter = "" if row is None else f" {string.ascii_lowercase[OBSTACLES.index(row)]}"
        entries.append(f"{'– ' if row is not None and not row.copy else ''}{format}{letter}")
    return ", ".join(entries)
