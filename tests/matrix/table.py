"""docs/matrix.md, from the three tables alone: test_matrix.py holds every cell to them."""

import pathlib
import string
from collections import Counter

from .consumers import CONSUMERS
from .elements import ELEMENTS
from .layouts import LAYOUTS
from .producers import PRODUCERS
from .refusals import REFUSALS, Cell, refusal_of

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "matrix.md"

_OPENING = """\
# The matrix

Every producer, with every element type and layout it has, goes through `arrayhub.asarray` into every consumer. A cell
that passes has the same values at the same address, in the element type that the consumer calls by the same name; what
the consumer writes is in the producer's memory, what was read-only stays so, and the producer is freed when the last
view dies. The other cells are refused, each with the error and the message that the list below gives a reason for.

This page is written by `python -m tests.matrix` from the tables in `tests/matrix`; `tests/matrix/test_matrix.py` runs
each cell. A number counts the pairs of element type and layout that pass, of all that the producer has. The letters say
why the others are refused. A letter in parentheses depends on the address that an allocator picks.

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


def written():
    """Return the text of docs/matrix.md."""
    lines = ["| from \\ into | " + " | ".join(consumer.name for consumer in CONSUMERS) + " |"]
    lines.append("|---|" + "---|" * len(CONSUMERS))
    for producer in PRODUCERS:
        entries = (_entry(producer, consumer) for consumer in CONSUMERS)
        lines.append(f"| {producer.name} | " + " | ".join(entries) + " |")
    met = Counter(id(refusal_of(cell)[0]) for cell in cells())
    lines += [
        "",
        f"In all {met.total():,} cells, of which {met[id(None)]:,} pass.",
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
    return opening + "\n".join(lines) + "\n"
