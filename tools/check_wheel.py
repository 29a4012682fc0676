"""Rehearse a release: build an sdist, build a wheel from it without git, and use the wheel without a compiler.

    python tools/check_wheel.py [PYTHON | WHEEL ...] [-- PYTEST ARGUMENTS]

A PYTHON is an interpreter. The default is the interpreter that runs this script. For each interpreter:

1. `build` makes an sdist, which requires git, and `pip wheel` builds a wheel from the sdist, without git.
2. auditwheel lists the libraries that the wheel links to. The wheel and its files must not exceed `SIZES`.
3. The wheel is installed into a new environment without a working compiler.
4. `arrayhub demo` runs there with NumPy alone, and pytest tests the installed package. By default, pytest runs the
   files in `TESTS`, which require the packages in `NEEDS`.

A WHEEL is a finished wheel for the interpreter that runs this script: steps 2 to 4 test it.

One line for each wheel states the wheel's size, its platform tag and pytest's last line. The exit status is the number
of wheels with a failure. This script requires auditwheel and build, which are in the extra ``dev``.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Megabytes of a wheel, and of the files in it: docs/promises.md. Reference counts without the GIL take more code.
SIZES, FREE_THREADED_SIZES = (2.5, 6.0), (2.75, 6.75)
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


def without(folder, *names):
    """Return an environment in which the programs `names` fail. `folder` receives the programs in their place."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def run_tests(python, wheel, arguments, folder):
    """Install a wheel into an empty environment without a compiler, and run the demo and tests.

    Return pytest's last line, and whether the demo and the tests passed.
    """
    step(python, "-m", "venv", folder / "fresh")
    fresh = folder / "fresh/bin/python"
    environ = without(folder / "no_compiler", "cc", "gcc", "g++", "clang") | {"CC": "cc", "CXX": "g++"}
    step(fresh, "-m", "pip", "install", wheel, env=environ)
    demo = step(folder / "fresh/bin/arrayhub", "demo", cwd=folder, env=environ)
    step(fresh, "-m", "pip", "install", *NEEDS, env=environ)
    closing, passed = pytest_in([fresh, "-P", "-m", "pytest"], arguments, environ)
    return f"{demo.splitlines()[-1]} {closing}", passed


def pytest_in(pytest, arguments, environ):
    """Run tests with the command `pytest`. Return pytest's last line, and whether the tests passed."""
    command = [*pytest, "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    tested = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if tested.returncode:
        print(tested.stdout[-5000:], tested.stderr[-5000:])
    closing = [line for line in tested.stdout.splitlines() if re.search(r"\d (passed|failed|error)", line)] or [
        tested.stderr
    ]
    return closing[-1], tested.returncode == 0


def build_wheel(python, folder):
    """Build an sdist, and a wheel of it without git. Return the wheel."""
    step(python, "-m", "venv", folder / "build")
    step(sys.executable, "-m", "build", "--sdist", "--outdir", folder / "sdist", ROOT)
    (sdist,) = (folder / "sdist").iterdir()
    no_git = without(folder / "no_git", "git")
    step(
        folder / "build/bin/python",
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--wheel-dir",
        folder / "wheels",
        sdist,
        env=no_git,
    )
    (wheel,) = (folder / "wheels").glob("arrayhub-*.whl")
    return wheel


def measure(wheel):
    """Return the text of a wheel's size and of the size of its files, and whether both are within the limits."""
    limits = FREE_THREADED_SIZES if re.search(r"-cp\d+t-", wheel.name) else SIZES
    with zipfile.ZipFile(wheel) as archive:
        sizes = wheel.stat().st_size / 1e6, sum(file.file_size for file in archive.infolist()) / 1e6
    line = f"{sizes[0]:.2f} MB, installed {sizes[1]:.2f} MB"
    too_large = [f"{size:.3f} > {limit} MB" for size, limit in zip(sizes, limits, strict=True) if size > limit]
    return f"{line}  TOO LARGE: {', '.join(too_large)}" if too_large else line, not too_large


def check(python, wheel, arguments, folder):
    """Audit and test a wheel. Return the line to print, and whether all steps passed."""
    foreign, tag = foreign_libraries(wheel)
    size, small = measure(wheel)
    closing, passed = run_tests(python, wheel, arguments, folder)
    line = f"{wheel.name}  {size}  {tag}  {closing}"
    if foreign:
        line += f"  LINKS TO {', '.join(sorted(foreign))}"
    return line, passed and small and not foreign


def main(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    given, for_pytest = arguments[:split] or [sys.executable], arguments[split + 1 :]
    failed = 0
    for each in given:
        with tempfile.TemporaryDirectory() as name:
            folder, is_wheel = pathlib.Path(name), each.endswith(".whl")
            python = sys.executable if is_wheel else each
            wheel = pathlib.Path(each) if is_wheel else build_wheel(python, folder)
            line, right = check(python, wheel, for_pytest, folder)
        print(line, flush=True)
        failed += not right
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
