"""Command line of the package, which the package's docstring describes."""

import argparse
import os
import sys

from . import runner


def main():
    from .targets import TARGETS

    parser = argparse.ArgumentParser(
        prog="python -m tests.support.fuzz", description="Call arrayhub with random inputs."
    )
    parser.add_argument("--count", type=int, default=10_000, help="inputs for each target (10000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (0)")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="run only this target (repeatable)")
    parser.add_argument("--only", type=int, metavar="K", help="run only the K-th input, in this process")
    parser.add_argument("--here", metavar="FILE", help="run in this process, and write each input to FILE first")
    options = parser.parse_args()
    wrong = []
    for target in options.target or TARGETS:
        if options.only is not None:
            wrong += runner.run_here(target, [options.only], options.seed, lambda number, shown: print(number, shown))
        elif options.here:
            with runner.noting(options.here, target, options.seed) as note:
                wrong += runner.run_here(target, range(options.count), options.seed, note)
        else:
            found = runner.run_apart(target, options.count, options.seed)
            print(f"{target}: {options.count} inputs, {'failed' if found else 'passed'}", flush=True)
            wrong += found
    sys.stdout.write("\n".join(wrong[:20]).encode("utf-8", "backslashreplace").decode())
    sys.stdout.flush()
    os._exit(bool(wrong)) if options.here else sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
