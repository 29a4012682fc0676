"""Commands of ``python -m arrayhub``.

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
import pkgutil
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TextIO

from arrayhub import __version__

Run = Callable[[argparse.Namespace], int]


# Declares the arguments of a command, and returns the function that runs it. Its name and docstring are the name and
# the purpose of the command.
Command = Callable[[argparse.ArgumentParser], Run]


def main(commands: Sequence[Command], arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Without a command, print the list of commands."""
    parser = argparse.ArgumentParser(prog="python -m arrayhub", description="A hub between array protocols.")
    parser.add_argument("--version", action="version", version=f"arrayhub {__version__}")
    choices = parser.add_subparsers(dest="command", metavar="command")
    for command in commands:
        purpose = command.__doc__ or ""
        summary = purpose[:1].lower() + purpose[1:].rstrip(".")
        choice = choices.add_parser(command.__name__, help=summary, description=purpose)
        choice.set_defaults(run=command(choice))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    run: Run = options.run
    try:
        status = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise, the flush at exit would fail
        return 1
    return status


_OBJECT = "package.module:object, such as mylib.data:images, or a Python expression, such as 'numpy.arange(3)[::-1]'"
_ATTRIBUTE = re.compile(r"[\w.]*:[\w.]*")
_DOTTED = re.compile(r"\w+(\.\w+)+")


def check(parser: argparse.ArgumentParser) -> Run:
    """Compare the descriptions that an object gives through its protocols."""
    parser.add_argument("target", metavar="object", help=_OBJECT)
    parser.epilog = "Exit status: 0 if the descriptions agree, else 1."

    def run(options: argparse.Namespace) -> int:
        from arrayhub import check

        target = _evaluate(parser, options.target)
        try:
            differences = check(target)
        except (BufferError, TypeError) as error:  # none of the target's protocols describes an array
            parser.error(str(error))
        print("\n".join(map(str, differences)) or "the descriptions agree")
        return 1 if differences else 0

    return run


def config(parser: argparse.ArgumentParser) -> Run:
    """Print compiler flags and the paths of the headers and build files."""
    from arrayhub.capi.config import OPTIONS

    chosen = parser.add_mutually_exclusive_group(required=True)
    for name, (description, _) in OPTIONS.items():
        chosen.add_argument(f"--{name}", dest="option", action="store_const", const=name, help=description)

    def run(options: argparse.Namespace) -> int:
        print(OPTIONS[options.option][1])
        return 0

    return run


def conformance(parser: argparse.ArgumentParser) -> Run:
    """Check a library's arrays against the rules of the protocols."""
    parser.add_argument("target", metavar="package.module:function", help="for example mylib.testing:make")
    parser.add_argument("--consumer", action="store_true", help="the function imports an array instead of making one")
    parser.add_argument("--dtypes", metavar="NAMES", help="element types to check, separated by commas")
    parser.add_argument("--layouts", metavar="NAMES", help="layouts to check, separated by commas")
    parser.epilog = (
        "Exit status: 0 if arrays were tested and no rule is broken, else 1. The documentation of"
        " arrayhub.testing.check_producer and check_consumer describes the arguments of the function."
    )

    def run(options: argparse.Namespace) -> int:
        from arrayhub.testing import check_consumer, check_producer

        function = _evaluate(parser, options.target)
        check = check_consumer if options.consumer else check_producer
        names = {key: value.split(",") for key in ("dtypes", "layouts") if (value := getattr(options, key)) is not None}
        try:
            report = check(function, **names)
        except (TypeError, ValueError) as error:
            parser.error(str(error))
        print(report)
        return 0 if report.ok else 1

    return run


def demo(parser: argparse.ArgumentParser) -> Run:
    """Pass arrays through every installed library and print the results."""

    def run(options: argparse.Namespace) -> int:
        from arrayhub.examples import demo

        return demo.run()

    return run


def doctor(parser: argparse.ArgumentParser) -> Run:
    """Report installed libraries, devices and problems, with commands that fix them."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.epilog = "Exit status: 0 without problems, else 1."

    def run(options: argparse.Namespace) -> int:
        from arrayhub.inspection import doctor

        return doctor.run(options.json)

    return run


def explain(parser: argparse.ArgumentParser) -> Run:
    """Explain how an object is imported, and which libraries can share its memory."""
    parser.add_argument("target", metavar="object", help=_OBJECT)
    parser.add_argument("--to", metavar="library", help="try only this library, such as torch")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    parser.epilog = (
        "The module is imported. With python -m arrayhub, the module may be in the current folder. If the object is a"
        " function, it is not called. Expressions must use full module names, as in 'numpy.arange(3)[::-1]'. The"
        " modules that an expression names are imported first."
    )

    def run(options: argparse.Namespace) -> int:
        from arrayhub import explain

        target = _evaluate(parser, options.target)
        try:
            explanation = explain(target, to=options.to)
        except (TypeError, ValueError) as error:  # only `to` can be invalid: explain accepts any object
            parser.error(f"argument --to: {error}")
        print(json.dumps(dataclasses.asdict(explanation), indent=2) if options.json else explanation)
        return 0

    return run


def trace(parser: argparse.ArgumentParser) -> Run:
    """Run a script and list the lines that import, export, copy or wait for arrays."""
    parser.add_argument("--json", metavar="FILE", help="write each event to FILE as JSON, instead of the table")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module, such as pytest")
    parser.add_argument("script", help="the script to run")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    rest.required = False  # otherwise, the error for a missing script names the arguments, too
    parser.epilog = "The table is printed to stderr, even if the script fails. The exit status is the script's."

    def run(options: argparse.Namespace) -> int:
        from arrayhub import trace

        sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.abspath(options.script))
        if not (_is_module if options.module else os.path.isfile)(options.script):
            kind = "module" if options.module else "file"
            parser.error(f"argument script: {kind} {options.script!r} does not exist")
        file = _open_file(parser, options.json) if options.json else None  # before the script runs, to fail early
        sys.argv = [options.script, *options.arguments]
        traced = trace()
        try:
            with traced:
                if options.module:
                    runpy.run_module(options.script, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(options.script, run_name="__main__")
        finally:
            if file is not None:
                with file:
                    json.dump([{**event._asdict(), "code": event.code} for event in traced.events], file, indent=1)
            else:
                print(traced, file=sys.stderr)
        return 0

    return run


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a parent package does not exist, or the name is relative
        return False


def _open_file(parser: argparse.ArgumentParser, path: str) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        parser.error(f"argument --json: {path!r} cannot be written: {error.strerror}")


def _evaluate(parser: argparse.ArgumentParser, target: str) -> Any:
    """Return the object that `target` names (``package.module:object``) or computes (an expression).

    Exit with status 2 if `target` is invalid.
    """
    try:
        if _ATTRIBUTE.fullmatch(target):
            return pkgutil.resolve_name(target)
        tree = ast.parse(target.strip(), mode="eval")
        value = eval(compile(tree, "object", "eval"), _import_modules(tree))
    except (Exception, SystemExit) as error:  # modules, properties and expressions may raise any exception
        parser.error(f"argument object: {target!r}: {type(error).__name__}: {error}; accepted: {_OBJECT}")
    if isinstance(value, ModuleType):
        parser.error(f"argument object: {target!r} is a module; accepted: {_OBJECT}")
    return value


def _import_modules(tree: ast.Expression) -> dict[str, Any]:
    """Import the modules that an expression names, and return a dict of these modules by name."""
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - bound - set(dir(builtins))
    modules = {name: importlib.import_module(name) for name in sorted(names)}
    for node in nodes:
        path = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if _DOTTED.fullmatch(path) and path.partition(".")[0] in modules:
            with contextlib.suppress(AttributeError):  # evaluating the expression will raise this error again
                pkgutil.resolve_name(path)  # imports the submodules in the path
    return modules
