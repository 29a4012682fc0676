"""The command line: ``python -m arrayhub COMMAND``. One row per command: its name, what it is for, its function."""

import sys

from arrayhub import cli

COMMANDS = (
    cli.Command("config", "say where compilers and build systems find the headers", cli.config),
    cli.Command("demo", "send real arrays through every installed library and print what happened", cli.demo),
    cli.Command("doctor", "say what is installed, what works, and which command fixes what does not", cli.doctor),
    cli.Command("explain", "say what an object offers, and which libraries can have it without a copy", cli.explain),
    cli.Command("trace", "run a script and say which lines of it hand arrays over, copy and wait", cli.trace),
)

if __name__ == "__main__":
    sys.exit(cli.main(COMMANDS))
