"""Commands of ``arrayhub`` and ``python -m arrayhub``."""

import sys

from arrayhub import cli

COMMANDS = (cli.check, cli.config, cli.conformance, cli.demo, cli.doctor, cli.explain, cli.trace)


def main() -> int:
    """Run the command in ``sys.argv``, and return the exit status."""
    return cli.main(COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
