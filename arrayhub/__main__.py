"""Commands of ``arrayhub`` and ``python -m arrayhub``.

The exit status is

- 0 for success,
- 1 if ``check``, ``conformance``, ``demo`` or ``doctor`` has found a problem, or the reader of the output has exited,
- 2 for invalid arguments,
- the script's own exit status, for ``trace``.
"""

import argparse
import ast
import builtins
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import pkgutil
import re
import runpy
import sys
from types import ModuleType
from typing import Any

import arrayhub
from arrayhub.capi import OPTIONS

_OBJECT = "package.module:object, such as mylib.data:images, or a Python expression, such as 'numpy.arange(3)[::-1]'"
_ATTRIBUTE = re.compile(r"[\w.]*:[\w.]*")
_DOTTED = re.compile(r"\w+(\.\w+)+")


def main() -> int:
    """Run the command in ``sys.argv``, and return the exit status. Without a command, print the list of commands."""
    parser = argparse.ArgumentParser(prog="python -m arrayhub", description="A hub between array protocols.")
    parser.add_argument("--version", action="version", version=f"arrayhub {arrayhub.__version__}")
    choices = parser.add_subparsers(dest="command", metavar="command")
    for command, arguments in COMMANDS.items():
        purpose, _, epilog = (command.__doc__ or "").partition("\n\n")
        summary = purpose[:1].lower() + purpose[1:].rstrip(".")
        choice = choices.add_parser(command.__name__, help=summary, description=purpose, epilog=epilog)
        choice.set_defaults(run=command, fail=choice.error)
        for names, keywords in arguments.items():
            choice.add_argument(*names.split(", "), **keywords)
    options = parser.parse_args()
    if options.command is None:
        parser.print_help()
        return 0
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise, the flush at exit would fail
        return 1
    return status


# ----------------------------------------------------------------------------------------------------------- commands

# The first paragraph of a docstring is the purpose of the command. The help text ends with the other paragraphs.


def check(options: argparse.Namespace) -> int:
    """Compare the descriptions that an object gives through its protocols.

    Exit status: 0 if the descriptions agree, else 1.
    """
    target = _evaluate(options)
    try:
        differences = arrayhub.check(target)
    except (BufferError, TypeError) as error:  # none of the target's protocols describes an array
        options.fail(str(error))
    print("\n".join(map(str, differences)) or "the descriptions agree")
    return 1 if differences else 0


def config(options: argparse.Namespace) -> int:
    """Print compiler flags and the paths of the headers and build files."""
    chosen = [name for name in OPTIONS if getattr(options, name)]
    if len(chosen) != 1:
        options.fail(f"accepted: one of {', '.join(f'--{name}' for name in OPTIONS)}")
    print(OPTIONS[chosen[0]][1])
    return 0


def conformance(options: argparse.Namespace) -> int:
    """Check a library's arrays against the rules of the protocols.

    Exit status: 0 if arrays were tested and no rule is broken, else 1. The documentation of
    arrayhub.testing.check_producer and check_consumer describes the arguments of the function.
    """
    function = _evaluate(options)
    check = arrayhub.testing.check_consumer if options.consumer else arrayhub.testing.check_producer
    names = {key: value.split(",") for key in ("dtypes", "layouts") if (value := getattr(options, key)) is not None}
    try:
        report = check(function, **names)
    except (TypeError, ValueError) as error:
        options.fail(str(error))
    print(report)
    return 0 if report.ok else 1


def demo(options: argparse.Namespace) -> int:
    """Pass arrays through every installed library and print the results."""
    from arrayhub import demo

    return demo.run()


def doctor(options: argparse.Namespace) -> int:
    """Report installed libraries, devices and problems, with commands that fix them.

    Exit status: 0 without problems, else 1.
    """
    from arrayhub.inspection import doctor

    return doctor.run(options.json)


def explain(options: argparse.Namespace) -> int:
    """Explain how an object is imported, and which libraries can share its memory.

    The module is imported. With python -m arrayhub, the module may be in the current folder. If the object is a
    function, it is not called. Expressions must use full module names, as in 'numpy.arange(3)[::-1]'. The
    modules that an expression names are imported first.
    """
    target = _evaluate(options)
    try:
        explanation = arrayhub.explain(target, to=options.to)
    except (TypeError, ValueError) as error:  # only `to` can be invalid: explain accepts any object
        options.fail(f"argument --to: {error}")
    print(json.dumps(dataclasses.asdict(explanation), indent=2) if options.json else explanation)
    return 0


def trace(options: argparse.Namespace) -> int:
    """Run a script and list the lines that import, export, copy or wait for arrays.

    The table is printed to stderr, even if the script fails. The exit status is the script's.
    """
    sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.abspath(options.script))
    if not (_is_module if options.module else os.path.isfile)(options.script):
        kind = "module" if options.module else "file"
        options.fail(f"argument script: {kind} {options.script!r} does not exist")
    path = pathlib.Path(options.json).absolute() if options.json else None  # the script may change the current folder
    try:
        if path is not None:
            path.write_bytes(b"")  # before the script runs, to fail early
    except OSError as error:
        options.fail(f"argument --json: {options.json!r} cannot be written: {error.strerror}")
    sys.argv = [options.script, *options.arguments]
    traced = arrayhub.trace()
    try:
        with traced:
            if options.module:
                runpy.run_module(options.script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(options.script, run_name="__main__")
    finally:
        if path is not None:
            events = [{**event._asdict(), "code": event.code} for event in traced.events]
            path.write_text(json.dumps(events, indent=1), encoding="utf-8")
        else:
            print(traced, file=sys.stderr)
    return 0


_TARGET = {"target": dict(metavar="object", help=_OBJECT)}

# The arguments of each command, as in ``ArgumentParser.add_argument``.
COMMANDS: dict[Any, dict[str, dict[str, Any]]] = {
    check: _TARGET,
    config: {f"--{name}": dict(action="store_true", help=text) for name, (text, _) in OPTIONS.items()},
    conformance: {
        "target": dict(metavar="package.module:function", help="for example mylib.testing:make"),
        "--consumer": dict(action="store_true", help="the function imports an array instead of making one"),
        "--dtypes": dict(metavar="NAMES", help="element types to check, separated by commas"),
        "--layouts": dict(metavar="NAMES", help="layouts to check, separated by commas"),
    },
    demo: {},
    doctor: {"--json": dict(action="store_true", help="print the report as JSON")},
    explain: {
        **_TARGET,
        "--to": dict(metavar="library", help="try only this library, such as torch"),
        "--json": dict(action="store_true", help="print the explanation as JSON"),
    },
    trace: {
        "--json": dict(metavar="FILE", help="write each event to FILE as JSON, instead of the table"),
        "-m, --module": dict(action="store_true", help="the script is a module, such as pytest"),
        "script": dict(help="the script to run"),
        "arguments": dict(nargs=argparse.REMAINDER, help="arguments of the script"),
    },
}


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a parent package does not exist, or the name is relative
        return False


class _Modules(dict[str, Any]):
    """Names of an expression: each unknown name is a module, which is imported."""

    def __missing__(self, name: str) -> ModuleType:
        if hasattr(builtins, name):
            raise KeyError(name)
        return importlib.import_module(name)


def _evaluate(options: argparse.Namespace) -> Any:
    """Return the object that the target names (``package.module:object``) or computes (an expression).

    Exit with status 2 if the target is invalid.
    """
    target = options.target
    try:
        if _ATTRIBUTE.fullmatch(target):
            value = pkgutil.resolve_name(target)
        else:
            tree = ast.parse(target.strip(), mode="eval")
            for node in ast.walk(tree):
                path = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
                if _DOTTED.fullmatch(path):
                    with contextlib.suppress(ImportError, AttributeError):  # `eval` raises the error again
                        pkgutil.resolve_name(path)  # imports the submodules in the path
            value = eval(compile(tree, "object", "eval"), _Modules())
    except (Exception, SystemExit) as error:  # modules, properties and expressions may raise any exception
        options.fail(f"argument object: {target!r}: {type(error).__name__}: {error}; accepted: {_OBJECT}")
    if isinstance(value, ModuleType):
        options.fail(f"argument object: {target!r} is a module; accepted: {_OBJECT}")
    return value


if __name__ == "__main__":
    sys.exit(main())
