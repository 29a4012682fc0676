"""Rules, their verdicts, and the report of a check, with one cell for each rule, element type and layout."""

import contextlib
import html
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from arrayhub._core.errors import first_line
from arrayhub.inspection.texts import align_columns

PASSED = "passed"
REFUSED = "refused"  # an error that the rule allows
NOT_MADE = "not made"  # the library does not have this element type or layout, or the rule does not apply
FAILED = "failed"
VERDICTS = (PASSED, REFUSED, NOT_MADE, FAILED)

_STANDARD = "https://data-apis.org/array-api/latest/API_specification/generated/array_api.array"
_SPECIFICATIONS = {
    "DLPack's C interface": "https://dmlc.github.io/dlpack/latest/c_api.html",
    "DLPack's Python interface": "https://dmlc.github.io/dlpack/latest/python_spec.html",
    "__dlpack__": f"{_STANDARD}.__dlpack__.html",
    "__dlpack_device__": f"{_STANDARD}.__dlpack_device__.html",
    "__array_interface__": "https://numpy.org/doc/stable/reference/arrays.interface.html",
    "buffer protocol": "https://docs.python.org/3/c-api/buffer.html",
}


class Unpassed(Exception):
    """Verdict of a rule that does not pass. The message gives the reason."""

    verdict = FAILED


class Broken(Unpassed):
    """The library breaks the rule. The message states how."""


class Refused(Unpassed):
    """The library rejects the array, which the rule allows."""

    verdict = REFUSED


class NotMade(Unpassed):
    """The library does not have this element type or layout, or the rule does not apply to it."""

    verdict = NOT_MADE


def require(condition: object, words: str) -> None:
    """Raise Broken with the reason `words` unless the condition is true."""
    if not condition:
        raise Broken(words)


class Rule(NamedTuple):
    """One rule, with the address of its specification."""

    name: str
    text: str
    specification: str


# Raises `Unpassed` unless a tested function (``make`` or ``read``) follows a rule for an element type and a layout.
Check = Callable[[Any, str, str], None]
Rules = list[tuple[Rule, Check]]


def add_rule(rules: Rules, name: str, text: str, specification: str) -> Callable[[Check], None]:
    """Return a decorator that adds a rule of a specification to `rules`. The function checks the rule."""

    def add(check: Check) -> None:
        rules.append((Rule(name, text, _SPECIFICATIONS[specification]), check))

    return add


def judge_rule(check: Check, function: Any, dtype: str, layout: str) -> tuple[str, str]:
    """Return the verdict of one rule, and the reason."""
    try:
        with raising(Broken, BaseException):
            check(function, dtype, layout)
    except Unpassed as error:
        return error.verdict, str(error)
    return PASSED, ""


@contextlib.contextmanager
def raising(verdict: type[Unpassed], *errors: type[BaseException], words: str = "") -> Iterator[None]:
    """Raise `verdict`, with a reason that begins with `words`, instead of an error of one of the classes `errors`."""
    try:
        yield
    except (KeyboardInterrupt, Unpassed):
        raise
    except errors as error:
        raise verdict(words + words_of(error)) from error


def words_of(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {first_line(error)}"


class Cell(NamedTuple):
    """Result of one rule for one element type and layout."""

    rule: str
    dtype: str
    layout: str
    verdict: str  # "passed", "refused", "not made" or "failed"
    why: str = ""


class Report:
    """Result of `check_producer` or `check_consumer`. ``str(report)`` is a table, followed by the failing cells.

    Attributes
    ----------
    name : str
        Kind of check and name of the function.
    rules : tuple of Rule
    cells : tuple of Cell

    Examples
    --------
    >>> import numpy
    >>> from arrayhub.testing import check_producer
    >>> report = check_producer(numpy.asarray, dtypes=["float32"], layouts=["C"])
    >>> report.ok, report.failures()
    (True, ())
    """

    def __init__(self, name: str, rules: Iterable[Rule], cells: Iterable[Any]) -> None:
        self.name = name
        self.rules = tuple(rules)
        self.cells = tuple(Cell(*cell) for cell in cells)

    @property
    def ok(self) -> bool:
        """bool : whether every rule holds."""
        return not self.failures()

    def failures(self) -> tuple[Cell, ...]:
        """Return the failing cells."""
        return tuple(cell for cell in self.cells if cell.verdict == FAILED)

    def assert_ok(self) -> None:
        """Raise an AssertionError with the failing cells, if there are any."""
        if not self.ok:
            raise AssertionError("\n".join([f"{self.name} breaks rules:", *self._failure_lines()]))

    def counts(self) -> Iterator[tuple[Rule, dict[str, int]]]:
        """Yield each rule with the number of its cells by verdict."""
        for rule in self.rules:
            verdicts = [cell.verdict for cell in self.cells if cell.rule == rule.name]
            yield rule, {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    def grouped_failures(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """Group the element types and layouts of the failing cells by rule and reason."""
        groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for cell in self.failures():
            groups.setdefault((cell.rule, cell.why), []).append((cell.dtype, cell.layout))
        return groups

    def _failure_lines(self) -> Iterator[str]:
        links = {rule.name: rule.specification for rule in self.rules}
        for (rule, why), cells in self.grouped_failures().items():
            yield from (f"  {rule}: {why}", f"    {describe_cells(cells)}", f"    {links[rule]}")

    def __str__(self) -> str:
        rows = [("rule", *VERDICTS), *((rule.name, *map(str, found.values())) for rule, found in self.counts())]
        failures, lines = self.failures(), [self.name, *align_columns(rows)]
        lines += [f"{len(failures) or 'no'} failing cell{'s' * (len(failures) != 1)}", *self._failure_lines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"<Report {self.name}: {len(self.cells)} cells, {len(self.failures())} failing>"


def describe_cells(cells: list[tuple[str, str]]) -> str:
    """Format pairs of element type and layout as text, such as ``int8, int16 (C, F)``."""
    layouts = {dtype: ", ".join(layout for other, layout in cells if other == dtype) for dtype, _ in cells}
    types = {names: ", ".join(dtype for dtype in layouts if layouts[dtype] == names) for names in layouts.values()}
    return "; ".join(f"{dtypes} ({names})" for names, dtypes in types.items())
