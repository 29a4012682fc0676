"""Run a target in this process, or in a separate process that may crash."""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HANGS = 600  # seconds after which a target counts as hanging


def run_here(target, inputs, seed, note):
    """Run a target with the inputs of the given numbers. Call `note` before each run. Return failures as text."""
    from .targets import REFUSALS, TARGETS

    wrong = []
    for number in inputs:
        r = random.Random(f"{seed}/{target}/{number}")
        shown, call = TARGETS[target](r)
        note(number, shown)
        try:
            call()
        except UnicodeError as error:  # a subclass of ValueError, but a failure
            wrong.append(report(target, seed, number, shown, error))
        except REFUSALS as error:
            if not str(error):
                wrong.append(report(target, seed, number, shown, error))
        except IndexError as error:
            if target != "index":
                wrong.append(report(target, seed, number, shown, error))
        except BaseException as error:
            wrong.append(report(target, seed, number, shown, error))
    return wrong


def report(target, seed, number, shown, error):
    lines = traceback.format_exception(error)
    return f"{again(target, seed, number)}\n  input: {shown}\n  {''.join(lines[-3:])}"


def again(target, seed, number):
    return f"python -m tests.support.fuzz --seed {seed} --target {target} --only {number}"


def run_apart(target, count, seed, environment=None):
    """Run a target in a separate process. Return the faults, including a crash or a timeout of the process."""
    root = Path(__file__).resolve().parents[3]
    with tempfile.NamedTemporaryFile("r", suffix=".last", encoding="utf-8", errors="replace") as last:
        command = [
            sys.executable,
            "-m",
            "tests.support.fuzz",
            "--target",
            target,
            "--count",
            str(count),
            "--seed",
            str(seed),
        ]
        paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        try:
            done = subprocess.run(
                [*command, "--here", last.name],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=HANGS,
                check=False,
                cwd=root,
                env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
            )
        except subprocess.TimeoutExpired:
            return [f"{target}: still running after {HANGS} s; the last input: {last.read()}"]
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
            return [f"{target}: ended with {done.returncode}; the last input: {last.read()}\n{done.stderr[-2000:]}"]
        return [done.stdout] if done.returncode else []


@contextlib.contextmanager
def noting(path, target, seed):
    """Yield a function that writes an input to a file before its run, so that the input is known after a crash."""
    with open(path, "wb", buffering=0) as file:

        def note(number, shown):
            file.seek(0)
            file.truncate()
            file.write(f"{again(target, seed, number)}\n  input: {shown}".encode("utf-8", "replace"))

        yield note
