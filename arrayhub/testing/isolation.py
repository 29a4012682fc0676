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
from arrayhub.testing.report import FAILED, NOT_MADE, REFUSED, Report
from arrayhub.testing.rules import run_all
from arrayhub.testing.samples import DTYPES, LAYOUTS, choose_names, has_layout, name_of_dtype

_WARM = 4  # index of the answer after which `gc.freeze` is called; by then, the library's modules have been imported

# Arguments of `run_all` after the tested function: element types, layouts, index of the first cell, and the pairs of
# rule and layout whose test has ended a process.
Task = tuple[tuple[str, ...], tuple[str, ...], int, list[list[str]]]


def report_of(
    kind: str,
    function: Callable[[Any], Any],
    dtypes: Iterable[Any] | None,
    layouts: Iterable[str] | None,
    rules: Iterable[tuple[Any, Any]],
) -> Report:
    """Return the report of `check_producer` or `check_consumer`. `kind` is ``"producer"`` or ``"consumer"``."""
    if not callable(function):
        raise TypeError(f"check_{kind}: {show(function)} is not callable; accepted: a function of one argument")
    chosen_dtypes = choose_names(dtypes, DTYPES, f"check_{kind}: dtypes", name_of_dtype)
    chosen_layouts = choose_names(layouts, LAYOUTS, f"check_{kind}: layouts")
    module = getattr(function, "__module__", None) or "?"
    name = f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    if not any(has_layout(dtype, layout) for dtype in chosen_dtypes for layout in chosen_layouts):
        raise ValueError(
            f"check_{kind}: layouts is {', '.join(map(repr, chosen_layouts))}, and elements of"
            f" {', '.join(chosen_dtypes)} do not have such a layout; accepted: other layouts, such as 'C'"
        )
    cells = _failed_if_untested(kind, cells_of(kind, function, chosen_dtypes, chosen_layouts))
    return Report(f"{kind} {name}", [rule for rule, _ in rules], cells)


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


def cells_of(kind: str, function: Callable[[Any], Any], dtypes: tuple[str, ...], layouts: tuple[str, ...]) -> list[Any]:
    """Return all cells of a check. If a test ends the process, continue with the next cell in a new process.

    The rule of that test is then not tested with further element types in the same layout.
    """
    path = _path_of(function)
    cells: list[Any] = []
    fatal: list[list[str]] = []
    while True:
        task = (dtypes, layouts, len(cells), fatal)
        answers = _run(kind, path, function, task)
        name: list[str] | None = None
        for answer in answers:
            match answer:
                case {"end": True}:
                    return cells
                case {"error": text}:
                    raise RuntimeError(f"arrayhub.testing: {text}")
                case {"cell": cell}:
                    cells.append(cell)
                    name = None
                case {"name": found}:
                    name = found
                case {"ended": words}:
                    if name is None:
                        raise RuntimeError(f"arrayhub.testing: the process {words} while no test was running")
                    cells.append([*name, FAILED, f"the process {words}"])
                    fatal.append([name[0], name[2]])


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
    """Run the tests. Write the name of each cell before its test, the result after the test, and an end mark."""
    rules = importlib.import_module(f"arrayhub.testing.{kind}").RULES
    for number, answer in enumerate(run_all(rules, function, *task)):
        _send(stream, answer)
        if number == _WARM:  # exclude the library's modules from the garbage collections of each cell
            gc.collect()
            gc.freeze()
    _send(stream, {"end": True})


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
