"""Build a wheel, and test that it links only to libc, installs without a compiler, and works.

    python tools/check_wheel.py [PYTHON ...] [-- PYTEST ARGUMENTS]

A PYTHON is an interpreter. The default is the interpreter that runs this script. For each interpreter:

1. `pip wheel .` builds a wheel.
2. auditwheel lists the libraries that the wheel links to.
3. The wheel is installed into a new environment without a working compiler.
4. pytest tests the installed package. By default, pytest runs the files in `TESTS`, which require the packages in
   `NEEDS`.

One line for each wheel states the wheel's size, its platform tag and pytest's last line. The exit status is the number
of interpreters with a failure. This script requires auditwheel, which is in the extra ``dev``.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEEDS = ("pytest", "pytest-timeout", "hypothesis", "ml_dtypes", "numpy")
TESTS = (
    "tests/array/test_usm_array.py",
    "tests/adapters/interface_dict/test_array_interface.py",
    "tests/adapters/test_buffer.py",
    "tests/adapters/test_format_language.py",
)


def step(*command, **options):
    """Run a command, and return its output. If the command fails, print the output and exit."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def foreign_libraries(wheel):
    """Return the shared libraries that a wheel links to, except those in `ALLOWED`, and the wheel's platform tag."""
    said = " ".join(step(sys.executable, "-m", "auditwheel", "show", wheel).split())
    linked = set(re.findall(r"\b[\w.+-]+\.so(?:\.\d+)*\b", said.partition("system-provided shared libraries:")[2]))
    tag = re.search(r'platform tag: "([^"]+)"', said)
    if tag is None:
        raise SystemExit(f"auditwheel show did not print a platform tag:\n{said}")
    return linked - ALLOWED, tag[1]


def run_tests(python, wheel, arguments, folder):
    """Install a wheel into an empty environment without a compiler, and run tests.

    Return pytest's last line, and whether the tests passed.
    """
    step(python, "-m", "venv", folder / "fresh")
    fresh = folder / "fresh/bin/python"
    step(fresh, "-m", "pip", "install", *NEEDS)
    no_compiler = folder / "no_compiler"
    no_compiler.mkdir()
    for name in ("cc", "gcc", "g++", "clang"):
        (no_compiler / name).write_text("#!/bin/sh\nexit 1\n")
        (no_compiler / name).chmod(0o755)
    environ = {**os.environ, "PATH": f"{no_compiler}{os.pathsep}{os.environ['PATH']}", "CC": "cc", "CXX": "g++"}
    step(fresh, "-m", "pip", "install", wheel, env=environ)
    return pytest_in([fresh, "-P"], arguments, environ)


def pytest_in(python, arguments, environ):
    """Run tests with the command `python`. Return pytest's last line, and whether the tests passed."""
    command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    tested = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if tested.returncode:
        print(tested.stdout[-5000:], tested.stderr[-5000:])
    closing = [line for line in tested.stdout.splitlines() if re.search(r"\d (passed|failed|error)", line)] or [
        tested.stderr
    ]
    return closing[-1], tested.returncode == 0


def check(python, arguments, folder):
    """Build, audit and test a wheel for one interpreter. Return the line to print, and whether all steps passed."""
    step(python, "-m", "venv", folder / "build")
    step(folder / "build/bin/python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "wheels", ROOT)
    (wheel,) = (folder / "wheels").glob("arrayhub-*.whl")
    foreign, tag = foreign_libraries(wheel)
    closing, passed = run_tests(python, wheel, arguments, folder)
    line = f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  {tag}  {closing}"
    if foreign:
        line += f"  LINKS TO {', '.join(sorted(foreign))}"
    return line, passed and not foreign


def main(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    pythons, for_pytest = arguments[:split] or [sys.executable], arguments[split + 1 :]
    failed = 0
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            line, right = check(python, for_pytest, pathlib.Path(folder))
        print(line, flush=True)
        failed += not right
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
