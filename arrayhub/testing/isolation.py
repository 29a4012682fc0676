"""Run the tests of a library in a child process, so that a crash fails only one test.

Functions that can be imported by name run in a new interpreter. Other functions, such as lambdas and functions of
``__main__``, run in a fork of this process.
"""

import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from typing import Any

from arrayhub._core.errors import show
from arrayhub.adapters.type_cache import forget_types
from arrayhub.libraries import plugins, wrappers
from arrayhub.testing.report import FAILED, NOT_MADE, REFUSED, Report, Rule, Rules, judge_rule
from arrayhub.testing.samples import DTYPES, LAYOUTS, choose_names, combine, name_of_dtype

_WARM = 2  # index of the cell after which `gc.freeze` is called; by then, the library's modules have been imported
_LIMIT = 60  # seconds that one test may take
_LATE = f"did not return within {_LIMIT} s"


def report_of(kind: str, function: Any, dtypes: Any, layouts: Any, rules: Rules) -> Report:
    """Return the report of `check_producer` or `check_consumer`. `kind` is ``"producer"`` or ``"consumer"``."""
    if not callable(function):
        raise TypeError(f"check_{kind}: {show(function)} is not callable; accepted: a function of one argument")
    chosen_dtypes = choose_names(dtypes, DTYPES, f"check_{kind}: dtypes", name_of_dtype)
    chosen_layouts = choose_names(layouts, LAYOUTS, f"check_{kind}: layouts")
    module = getattr(function, "__module__", None) or "?"
    name = f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    if not combine(chosen_dtypes, chosen_layouts):
        raise ValueError(
            f"check_{kind}: layouts is {', '.join(map(repr, chosen_layouts))}, and elements of"
            f" {', '.join(chosen_dtypes)} do not have such a layout; accepted: other layouts, such as 'C'"
        )
    names = [rule for rule, _ in rules]
    cells = _run_all(kind, function, names, chosen_dtypes, chosen_layouts)
    if all(rule != "values" or verdict in (NOT_MADE, REFUSED) for rule, _, _, verdict, _ in cells):
        # Otherwise a function that always raises an exception, such as an ImportError, would pass.
        verb = "exported" if kind == "producer" else "imported"
        for cell in cells:
            if cell[0] == "values":
                cell[3:] = FAILED, f"no array was {verb}: {cell[4]}"
    return Report(f"{kind} {name}", names, cells)


def _run_all(kind: str, function: Any, rules: list[Rule], dtypes: Iterable[str], layouts: Iterable[str]) -> list[Any]:
    """Return all cells of a check.

    If a test ends the process, continue in a new process, and do not test this rule in the same layout again. If a test
    does not return, omit the remaining tests.
    """
    path = _path_of(function)
    names = [(rule.name, dtype, layout) for dtype, layout in combine(dtypes, layouts) for rule in rules]
    cells: list[Any] = []
    fatal: list[tuple[str, str]] = []
    while len(cells) < len(names):
        answers, end = _run(kind, path, function, (dtypes, layouts, len(cells), fatal))
        if not answers:
            raise RuntimeError(f"arrayhub.testing: the process {end} before the first test, which imports {path}")
        cells += [[*name, *verdict] for name, verdict in zip(names[len(cells) :], answers[1:], strict=False)]
        for rule, dtype, layout in names[len(cells) :][:1]:
            cells.append([rule, dtype, layout, FAILED, f"the process {end}"])
            fatal.append((rule, layout))
        if end == _LATE:
            cells += [[*name, NOT_MADE, f"not tried, because another test {_LATE}"] for name in names[len(cells) :]]
    return cells


def _path_of(function: Any) -> str | None:
    """Return ``module:name`` of a function that another interpreter can import, else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module in (None, "__main__") or name is None or getattr(function, "__self__", None) is not None:
        return None
    try:
        found = pkgutil.resolve_name(f"{module}:{name}")
    except (ImportError, AttributeError, ValueError):
        return None
    return f"{module}:{name}" if found is function else None


def _run(kind: str, path: str | None, function: Callable[[Any], Any], task: Any) -> tuple[list[Any], str]:
    """Run the tests in a child process. Return what `_serve` has written to a pipe, and how the process ended."""
    if path is None and not hasattr(os, "fork"):
        raise OSError(f"arrayhub.testing: {function!r} requires fork; accepted here: a function of a module")
    reading, writing = os.pipe()
    if path is None:
        fork = get_context("fork").Process(target=_serve, args=(writing, kind, function, task))
        fork.start()
    else:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-m", "arrayhub.testing.isolation", str(writing), kind, path, json.dumps(task)]
        silent = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environ, pass_fds=(writing,), stdout=silent, stderr=silent)
    os.close(writing)
    with open(reading) as lines:
        answers = [json.loads(line) for line in lines]
    if path is None:
        fork.join()
    code = (fork.exitcode or 0) if path is None else process.wait()
    by_signal = _LATE if code == -signal.SIGALRM else f"ended by signal {-code}"
    return answers, by_signal if code < 0 else f"ended with exit status {code}"


def _serve(writing: int, kind: str, function: Callable[[Any], Any] | str, task: Any) -> None:
    """Test the cells of a task. Write a line of JSON at the start, and one for each verdict.

    The task consists of the element types, the layouts, the index of the first cell, and the pairs of rule and layout
    whose test has ended a process. A string is the path of the function, as `_path_of` returns it.
    """
    dtypes, layouts, first, fatal = task
    with open(writing, "w", buffering=1) as answers:
        tested = pkgutil.resolve_name(function) if isinstance(function, str) else function
        rules: Rules = importlib.import_module(f"arrayhub.testing.{kind}").RULES
        print("null", file=answers)
        # Otherwise `asarray` would read what `register_library` names, in place of the protocols.
        wrappers.TYPES = {key: wrappers.TYPES[key] for key in wrappers.BUILT_IN_TYPES}
        plugins.entry_points().clear()
        forget_types()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, even if it is deadlocked after a fork
        cells = [(rule, check, *pair) for pair in combine(dtypes, layouts) for rule, check in rules]
        for number, (rule, check, dtype, layout) in enumerate(cells[first:]):
            verdict = (NOT_MADE, "not tried, because the process ended for another element type")
            signal.alarm(_LIMIT)
            if (rule.name, layout) not in map(tuple, fatal):
                verdict = judge_rule(check, tested, dtype, layout)
            print(json.dumps(verdict), file=answers)
            if number == _WARM:  # exclude the library's modules from the garbage collections of each cell
                gc.collect()
                gc.freeze()
    os._exit(0)  # without waiting for threads of the library


if __name__ == "__main__":
    _writing, _kind, _path, _task = sys.argv[1:]
    _serve(int(_writing), _kind, _path, json.loads(_task))
