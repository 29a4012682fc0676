"""The command line: ``python -m arrayhub demo``."""

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m arrayhub", description="A hub between array protocols.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("demo", help="send real arrays through every installed library and print what happened")
    options = parser.parse_args(arguments)
    return _COMMANDS[options.command]()


def _demo() -> int:
    from arrayhub import demo

    return demo.run()


_COMMANDS = {"demo": _demo}

if __name__ == "__main__":
    sys.exit(main())
