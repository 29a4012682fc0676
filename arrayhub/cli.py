"""The commands of ``python -m arrayhub``: their arguments, what they print, and their exit status.

0 is success; 1 a demo or a doctor with something to report; 2 arguments that are not understood.
"""

import argparse
import dataclasses
import difflib
import importlib
import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TextIO

from arrayhub import __version__

Run = Callable[[argparse.Namespace], int]


class Command(NamedTuple):
    """One command: `prepare` declares its arguments, and returns the function that runs it."""

    name: str
    purpose: str
    prepare: Callable[[argparse.ArgumentParser], Run]


def main(commands: Sequence[Command], arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; without one, say which there are."""
    parser = argparse.ArgumentParser(prog="python -m arrayhub", description="A hub between array protocols.")
    parser.add_argument("--version", action="version", version=f"arrayhub {__version__}")
    choices = parser.add_subparsers(dest="command", metavar="command")
    for command in commands:
        choice = choices.add_parser(command.name, help=command.purpose, description=_sentence(command.purpose))
        choice.set_defaults(run=command.prepare(choice))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    run: Run = options.run
    try:
        status = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter flushes at its end
        return 1
    return status


def _sentence(purpose: str) -> str:
    return f"{purpose[0].upper()}{purpose[1:]}."


def config(parser: argparse.ArgumentParser) -> Run:
    """Where compilers and build systems find the headers."""
    from arrayhub.capi.config import OPTIONS

    chosen = parser.add_mutually_exclusive_group(required=True)
    for name, (what, _) in OPTIONS.items():
        chosen.add_argument(f"--{name}", dest="option", action="store_const", const=name, help=what)

    def run(options: argparse.Namespace) -> int:
        print(OPTIONS[options.option][1])
        return 0

    return run


def demo(parser: argparse.ArgumentParser) -> Run:
    """Real arrays through every installed library."""

    def run(options: argparse.Namespace) -> int:
        from arrayhub.examples import demo

        return demo.run()

    return run


def doctor(parser: argparse.ArgumentParser) -> Run:
    """What is installed and what works."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.epilog = "Exit status: 0 where all that is installed works, 1 where there is a problem."

    def run(options: argparse.Namespace) -> int:
        from arrayhub.inspection import doctor

        return doctor.run(options.json)

    return run


def explain(parser: argparse.ArgumentParser) -> Run:
    """What an object offers and whom it can reach."""
    parser.add_argument("target", metavar="package.module:object", help="for example mylib.data:images")
    parser.add_argument("--to", metavar="library", help="ask about one consumer, such as torch, only")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    parser.epilog = (
        "The module is imported, from the current folder too; the object is what its attribute is, uncalled."
    )

    def run(options: argparse.Namespace) -> int:
        from arrayhub import explain

        target = _find(parser, options.target)
        try:
            found = explain(target, to=options.to)
        except (TypeError, ValueError) as error:  # only `to` can be wrong here: explain takes any object
            parser.error(f"argument --to: {error}")
        print(json.dumps(dataclasses.asdict(found), indent=2) if options.json else found)
        return 0

    return run


def trace(parser: argparse.ArgumentParser) -> Run:
    """A script, and what happens at its borders between libraries."""
    parser.add_argument("--json", metavar="FILE", help="write every single event there as JSON, instead of the table")
    parser.add_argument("script", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    parser.epilog = "The table goes to stderr, whatever ends the script; the exit status is the script's."

    def run(options: argparse.Namespace) -> int:
        from arrayhub import trace

        if not os.path.isfile(options.script):
            parser.error(f"argument script: there is no file {options.script!r}")
        file = _opened(parser, options.json) if options.json else None  # before the script: its run cannot be had again
        sys.argv = [options.script, *options.arguments]
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
        traced = trace()
        try:
            with traced:
                runpy.run_path(options.script, run_name="__main__")
        finally:
            if file is not None:
                with file:
                    json.dump([{**event._asdict(), "code": event.code} for event in traced.events], file, indent=1)
            else:
                print(traced, file=sys.stderr)
        return 0

    return run


def _opened(parser: argparse.ArgumentParser, path: str) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        parser.error(f"argument --json: {path!r} cannot be written: {error.strerror}")


def _find(parser: argparse.ArgumentParser, target: str) -> Any:
    """The object that ``package.module:object`` names; anything else ends the program with status 2."""
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        parser.error(
            f"argument package.module:object: {target!r} names no object; accepted: numpy:pi, mylib.data:images"
        )
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever a module raises when it is imported; a script may just exit
        parser.error(
            f"argument package.module:object: {module_name} cannot be imported: {type(error).__name__}: {error}"
        )
    try:
        return reduce(getattr, path.split("."), module)
    except Exception as error:  # whatever a module's own __getattr__ or a property raises
        names = [name for name in dir(module) if not name.startswith("_")]
        known = ", ".join(difflib.get_close_matches(path, names) or names[:8]) or "nothing public"
        parser.error(f"argument package.module:object: {target}: {error}; accepted, for example: {known}")
