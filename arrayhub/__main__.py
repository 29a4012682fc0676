"""Commands of ``arrayhub`` and ``python -m arrayhub``. One row per command: name, purpose, function."""

import sys

from arrayhub import cli

COMMANDS = (
    cli.Command("check", "compare the descriptions that an object gives through its protocols", cli.check),
    cli.Command("config", "print compiler flags and the paths of the headers and build files", cli.config),
    cli.Command("conformance", "check a library's arrays against the rules of the protocols", cli.conformance),
    cli.Command("demo", "pass arrays through every installed library and print the results", cli.demo),
    cli.Command("doctor", "report installed libraries, devices and problems, with commands that fix them", cli.doctor),
    cli.Command("explain", "explain how an object is imported, and which libraries can share its memory", cli.explain),
    cli.Command("trace", "run a script and list the lines that import, export, copy or wait for arrays", cli.trace),
)


def main() -> int:
    """Run the command in ``sys.argv``, and return the exit status."""
    return cli.main(COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
