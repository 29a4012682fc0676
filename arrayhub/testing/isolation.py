"""Run the tests of a library in a child process, so that a crash fails only one test.

Functions that can be imported by name run in a new interpreter. Other functions, such as lambdas and functions of
``__main__``, run in a fork of this process.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TextIO

from arrayhub._core.errors import PASSES_ON, show
from arrayhub.testing.report import FAILED, NOT_MADE, REFUSED, Report, Rule
from arrayhub.testing.rules import run_cells
from arrayhub.testing.samples import DTYPES, LAYOUTS, choose_names, combine, name_of_dtype

_WARM = 2  # index of the cell after which `gc.freeze` is called; by then, the library's modules have been imported

# Arguments of `run_cells` after the tested function: element types, layouts, index of the first cell, and the pairs of
# rule and layout whose test has ended a process.
Task = tuple[tuple[str, ...], tuple[str, ...], int, list[tuple[str, str]]]


def report_of(
    kind: str,
    function: Callable[[Any], Any],
    dtypes: Iterable[Any] | None,
    layouts: Iterable[str] | None,
    rules: Iterable[tuple[Rule, Any]],
) -> Report:
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
    cells = _failed_if_untested(kind, _run_all(kind, function, names, chosen_dtypes, chosen_layouts))
    return Report(f"{kind} {name}", names, cells)


def _failed_if_untested(kind: str, cells: list[Any]) -> list[Any]:
    """Return the cells. If the library did not make or import any array, the cells of the rule "values" fail.

    Otherwise a function that always raises an exception, such as an ImportError, would pass.
    """
    untested, verb = ((NOT_MADE,), "made") if kind == "producer" else ((NOT_MADE, REFUSED), "imported")
    if any(rule == "values" and verdict not in untested for rule, _, _, verdict, _ in cells):
        return cells
    return [
        [rule, dtype, layout, FAILED, f"no array was {verb}: {why}"]
        if rule == "values"
        else [rule, dtype, layout, verdict, why]
        for rule, dtype, layout, verdict, why in cells
    ]


def _run_all(
    kind: str, function: Callable[[Any], Any], rules: list[Rule], dtypes: tuple[str, ...], layouts: tuple[str, ...]
) -> list[Any]:
    """Return all cells of a check. If a test ends the process, continue with the next cell in a new process.

    The rule of that test is then not tested with further element types in the same layout.
    """
    path = _path_of(function)
    names = [(rule.name, dtype, layout) for dtype, layout in combine(dtypes, layouts) for rule in rules]
    cells: list[Any] = []
    fatal: list[tuple[str, str]] = []
    while len(cells) < len(names):
        has_started = False
        for answer in _run(kind, path, function, (dtypes, layouts, len(cells), fatal)):
            if "error" in answer:
                raise RuntimeError(f"arrayhub.testing: {answer['error']}")
            if "verdict" in answer:
                cells.append([*names[len(cells)], *answer["verdict"]])
            elif "ended" in answer and len(cells) < len(names):
                if not has_started:
                    raise RuntimeError(f"arrayhub.testing: the process {answer['ended']} while no test was running")
                rule, dtype, layout = names[len(cells)]
                cells.append([rule, dtype, layout, FAILED, f"the process {answer['ended']}"])
                fatal.append((rule, layout))
            has_started = True
    return cells


def _path_of(function: Any) -> str | None:
    """Return ``module:name`` of a function that another interpreter can import, else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module in (None, "__main__") or name is None or getattr(function, "__self__", None) is not None:
        return None
    try:
        found = resolve(f"{module}:{name}")
    except (ImportError, AttributeError):
        return None
    return f"{module}:{name}" if found is function else None


def resolve(path: str) -> Any:
    """Return the object at `path`, which has the form ``module:name``."""
    module, _, name = path.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def _run(kind: str, path: str | None, function: Callable[[Any], Any], task: Task) -> Iterator[dict[str, Any]]:
    """Run the tests in a child process, and yield its answers, which are lines of JSON in a pipe, and its end."""
    if path is None and not hasattr(os, "fork"):
        raise OSError(f"arrayhub.testing: {function!r} requires fork; accepted here: a function of a module")
    reading, writing = os.pipe()
    if path is not None:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-m", "arrayhub.testing.isolation", str(writing), kind, path, json.dumps(task)]
        silent = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environ, pass_fds=(writing,), stdout=silent, stderr=silent)
        wait: Callable[[], int] = process.wait
    else:
        child = os.fork()
        if child == 0:
            os.close(reading)
            code = 1
            try:
                with open(writing, "w") as stream:
                    _serve(kind, function, task, stream)
                code = 0
            finally:
                os._exit(code)

        def wait() -> int:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    os.close(writing)
    with open(reading) as answers:
        yield from map(json.loads, answers)
    code = wait()
    yield {"ended": f"ended by signal {-code}" if code < 0 else f"ended with exit status {code}"}


def _serve(kind: str, function: Callable[[Any], Any], task: Any, stream: TextIO) -> None:
    """Run the tests. Write a line at the start, and the verdict of each cell."""
    rules = importlib.import_module(f"arrayhub.testing.{kind}").RULES
    _send(stream, {"started": True})
    for number, verdict in enumerate(run_cells(rules, function, *task)):
        _send(stream, {"verdict": verdict})
        if number == _WARM:  # exclude the library's modules from the garbage collections of each cell
            gc.collect()
            gc.freeze()


def _send(stream: TextIO, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


def _main(writing: str, kind: str, path: str, task: str) -> None:
    with open(int(writing), "w") as stream:
        try:
            function = resolve(path)
        except PASSES_ON:
            raise
        except Exception as error:
            _send(stream, {"error": f"{path} cannot be imported: {type(error).__name__}: {error}"})
            return
        _serve(kind, function, json.loads(task), stream)


if __name__ == "__main__":
    _main(*sys.argv[1:])
