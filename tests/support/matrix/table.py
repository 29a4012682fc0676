"""Text of docs/matrix.md, generated from the tables in this package.

test_matrix.py runs the conversions of dense arrays, test_nested_matrix.py those of nested arrays, and
test_export_matrix.py those of sparse arrays.
"""

import pathlib
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

An array of every producer, with each of its element types and layouts, is passed through `arrayhub.asarray` to every
consumer. Each cell of the table states how many of the producer's pairs of element type and layout pass. A pair passes
if these conditions hold:

- The consumer's array has the same values at the same address, and the same element type.
- The consumer's writes change the producer's memory, and read-only memory stays read-only.
- The producer is released after the last view is deleted.

All other pairs raise an error. [Refusals](#refusals) lists the reasons for each consumer, and the call to make
instead. JAX requires addresses that are multiples of 64 bytes. If the producer's allocator chooses the address, a pair
that fails for this reason alone counts as passed. Images of Pillow have the modes L, I, F and I;16.

`PYTHONPATH=.:tests/support python -m tests.support.matrix` writes this page from the tables in `tests/support/matrix`,
and `tests/interop/test_matrix.py` runs each pair.

Layouts: {layouts}.

Element types: {elements}.

"""


def cells():
    """Yield all cells, as `Cell` objects without an address."""
    for producer in PRODUCERS:
        for element, layout in producer.pairs():
            for consumer in CONSUMERS:
                yield Cell(producer, ELEMENTS[element], LAYOUTS[layout], consumer.name)


def _count(passed, pairs):
    """Return the text of a cell: how many of the pairs pass."""
    return f"all {pairs}" if passed == pairs else f"{passed} of {pairs}" if passed else "none"


def _entry(producer, consumer):
    pairs = producer.pairs()
    refusals = (refusal_of(Cell(producer, ELEMENTS[e], LAYOUTS[layout], consumer.name)) for e, layout in pairs)
    return _count(sum(refusal is None or not certain for refusal, certain in refusals), len(pairs))


def _errors(refusal):
    errors = refusal.error if isinstance(refusal.error, tuple) else (refusal.error,)
    return " or ".join("numba's own error" if error is Exception else error.__name__ for error in errors)


def _head(consumers):
    """Return the first two lines of a table. ``<wbr>`` permits browsers to break long names between their parts."""
    names = (consumer.name.replace(".", ".<wbr>").replace("_", "_<wbr>") for consumer in consumers)
    return f"| from \\ into | {' | '.join(names)} |", "|---|" + "---|" * len(consumers)


def written():
    """Return the text of docs/matrix.md."""
    lines = [*_head(CONSUMERS)]
    for producer in PRODUCERS:
        entries = (_entry(producer, consumer) for consumer in CONSUMERS)
        lines.append(f"| {producer.name} | " + " | ".join(entries) + " |")
    met = Counter((cell.consumer, id(refusal_of(cell)[0])) for cell in cells())
    passed = sum(number for (_, refusal), number in met.items() if refusal == id(None))
    lines += [
        "",
        f"Of {met.total():,} pairs, {passed:,} pass.",
        "",
        "## Refusals",
        "",
        "| consumer | pairs | error | reason |",
        "|---|---|---|---|",
    ]
    for consumer in CONSUMERS:
        refusals = [row for row in REFUSALS if met[consumer.name, id(row)]]
        for head, row in zip([consumer.name] + [""] * len(refusals), refusals, strict=False):
            lines.append(f"| {head} | {met[consumer.name, id(row)]:,} | {_errors(row)} | {row.reason} |")
    opening = _OPENING.format(layouts=", ".join(LAYOUTS), elements=", ".join(f"`{name}`" for name in ELEMENTS))
    return opening + "\n".join([*lines, *_nested(), *_sparse()]) + "\n"


_NESTED_OPENING = """
## Nested data

`tests/support/matrix/nested.py` passes lists, strings, missing values and records through `arrayhub.asnested` to
every consumer. A kind of data passes if these conditions hold:

- The values are unchanged after the producer is released.
- The type is as described in [nested arrays](nested.md).
- Numbers and characters are at the producer's address, if this address is known.
- The memory is released with the last view.

Each cell states how many of the producer's kinds pass. The second table lists the reasons why the other kinds fail.

Kinds: {kinds}.

Copied: {copies}.
"""


def _nested():
    """Yield the lines of the table of nested arrays."""
    copies = "; ".join(f"{kind} in {consumer} ({why})" for (consumer, kind), why in COPIES.items())
    yield _NESTED_OPENING.format(kinds=", ".join(KINDS), copies=copies)
    yield from _head(NESTED_CONSUMERS)
    for producer in NESTED_PRODUCERS:
        yield f"| {producer.name} | " + " | ".join(_nested_entry(producer, c) for c in NESTED_CONSUMERS) + " |"
    yield ""
    yield "| consumers | error | reason |"
    yield "|---|---|---|"
    for row in NESTED_REFUSALS:
        error = "the consumer's own error" if row.error is Exception else row.error.__name__
        yield f"| {', '.join(row.consumers)} | {error} | {row.reason} |"


def _nested_entry(producer, consumer):
    kinds = [kind for kind in producer.kinds if kind in consumer.kinds]
    rows = [nested_refusal_of(producer.name, kind, consumer.name) for kind in kinds]
    return _count(rows.count(None), len(kinds)) if kinds else "none"


_SPARSE_OPENING = """
## Sparse arrays

`tests/support/matrix/sparse.py` passes sparse arrays through `arrayhub.assparse` to every library. A cell names first
the formats in which all memory is shared. "copy" precedes formats for which `copy=None` copies some of the
arrays, and "refused" precedes formats that the library does not have. The second table lists the reasons.
`tests/sparse/test_export_matrix.py` runs each conversion, and `tests/gpu/test_sparse.py` runs those of CuPy.
"""
_SPARSE_NAMES = {"scipy": "SciPy", "pydata_sparse": "pydata/sparse"}


def _sparse():
    """Yield the lines of the table of sparse arrays."""
    yield _SPARSE_OPENING
    names = [_SPARSE_NAMES.get(name, name) for name in SPARSE_CONSUMERS]
    yield f"| from \\ into | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for producer in SPARSE_PRODUCERS:
        yield f"| {producer.name} | " + " | ".join(_sparse_entry(producer, name) for name in SPARSE_CONSUMERS) + " |"
    yield ""
    yield "| consumer | result | reason |"
    yield "|---|---|---|"
    for name in SPARSE_CONSUMERS:
        for row in OBSTACLES:
            if name in row.consumers:
                yield f"| {_SPARSE_NAMES.get(name, name)} | {'copy' if row.copy else 'refused'} | {row.reason} |"


def _sparse_entry(producer, consumer):
    rows = {format: obstacle_of(producer, format, consumer) for format in producer.formats}
    shared = [format for format, row in rows.items() if row is None]
    copied = [format for format, row in rows.items() if row is not None and row.copy]
    refused = [format for format, row in rows.items() if row is not None and not row.copy]
    parts = (("", shared), ("copy: ", copied), ("refused: ", refused))
    return "; ".join(head + ", ".join(formats) for head, formats in parts if formats)
