"""Run programs in child processes, because a crash would end the test run.

multiprocessing's child processes can import this module with every start method.
"""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]  # top folder of the repository


def finished(*command, cwd=None, env=None, stdout=subprocess.PIPE, **variables):
    """Run a command with `variables` in its environment, and return the completed process with its output."""
    environ = {**(os.environ if env is None else env), **variables}
    command = [str(part) for part in command]
    return subprocess.run(
        command, cwd=cwd, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, errors="replace", check=False
    )


def check(done):
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"


def run(*command, **options):
    """Run a command that must succeed, and return its output."""
    done = finished(*command, **options)
    check(done)
    return done.stdout


def python(program, *arguments, options=(), silent=False, beside=None, **others):
    """Run a Python program, which must succeed, and return its output. If `silent` is true, stderr must be empty.

    The program can import the modules in this folder, and those in the folder of the file `beside`.
    """
    folders = [
        str(SUPPORT),
        beside and str(Path(beside).parent),
        others.pop("PYTHONPATH", os.environ.get("PYTHONPATH")),
    ]
    paths = os.pathsep.join(filter(None, folders))
    command = (sys.executable, "-X", "faulthandler", *options, "-c", textwrap.dedent(program), *arguments)
    done = finished(*command, PYTHONPATH=paths, **others)
    check(done)
    assert not silent or done.stderr == ""
    return done.stdout


def group_of_processes(*command, seconds, cwd=None, **variables):
    """Run a command that must succeed, and return its output. At the end, kill it and all processes that it started."""
    with subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **variables}, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            printed = process.communicate(timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    check(subprocess.CompletedProcess(command, process.returncode, *printed))
    return printed[0]


def resident():
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def send(connection, x):
    """Send the shape, strides, sum and access of an array, as this process sees them, and then the array."""
    connection.send((x.shape, x.byte_strides, float(np.asarray(x).sum()), x.access))
    connection.send(x)
    connection.close()


def without(*libraries):
    """Return lines of Python that make `libraries` impossible to import in the rest of a program."""
    return textwrap.dedent(f"""
        import sys

        class Nowhere:
            def find_spec(self, name, *_):
                if name.partition(".")[0] in {libraries}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

        sys.meta_path.insert(0, Nowhere())
    """)
