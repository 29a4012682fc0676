"""Run the README's test command with every installed CPython from 3.11 on, each in a new environment.

    python tools/every_python.py [PYTHON ...] [--list] [-- PYTEST ARGUMENTS]

A PYTHON is a command (``python3.13``) or a path to an interpreter. By default, the newest release of each version on
PATH and in pyenv is used. For each interpreter, the working tree is copied to a temporary folder, where the README's
test command runs with the interpreter instead of ``python3``. The last lines of the output are rows for the table of
docs/pythons.md. The exit status is the number of interpreters with a failure.

Interpreters of another system, such as CPython 3.15 of Debian sid, run in a chroot of this system, where this script
starts with any of its interpreters. The chroot needs git, a C and a C++ compiler, /proc, /sys and /dev.

pip's environment variables are effective. For example, ``PIP_CONSTRAINT=constraints.txt``, with the line
``numpy==2.0.2`` in this file, tests with an old NumPy.
"""

import argparse
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
DESCRIBE = (
    "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:3],"
    " int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), int(sys.prefix != sys.base_prefix))"
)
CLOSING = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+|no tests ran).* in [\d.]+s.*?)(?: =+)?$", re.MULTILINE)
OUTCOMES = ("passed", "failed", "error", "skipped")
LIBRARIES = ("torch", "jax", "pyarrow", "pandas", "polars", "awkward", "numba", "dpctl", "nanoarrow")
ASK = f"""
import importlib.metadata as m
for name in ("numpy", *{LIBRARIES}):
    try:
        print(name, m.version(name))
    except m.PackageNotFoundError:
        print(name, "-")
"""


def describe(python):
    """Return the version of a CPython interpreter: three integers, and whether the build is free-threaded.

    Return None for other implementations, for interpreters in a virtual environment, and for files that do not run.
    """
    try:
        done = subprocess.run([python, "-c", DESCRIBE], capture_output=True, text=True, check=False)
    except OSError:
        return None
    implementation, *version, in_environment = done.stdout.split() or ["", "1"]
    return None if implementation != "cpython" or in_environment == "1" else tuple(map(int, version))


def found():
    """Return the newest interpreter of each version, oldest version first."""
    folders = [pathlib.Path(folder) for folder in os.get_exec_path()]
    folders += pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin")
    newest = {}
    for python in (path for folder in folders for path in folder.glob("python3.*")):
        if re.fullmatch(r"python3\.\d+t?", python.name) and (version := describe(python)) and version >= OLDEST:
            known = newest.get((version[:2], version[3]))
            if known is None or known[0] < version:
                newest[version[:2], version[3]] = version, python
    return [python for _, python in sorted(newest.values())]


def resolve(name):
    """Return the path of the interpreter with the given path or name, or None if it is not found."""
    if os.sep in name:
        return name if describe(name) else None
    return next((python for python in found() if python.name == name), None)


def test_command():
    """Return the command that runs pytest in the README."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (command,) = (line for block in blocks for line in block.splitlines() if "bin/pytest" in line)
    return command


def copy_tree(folder):
    """Copy the files of the working tree, except those that git ignores, to a folder."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def installed_versions(python):
    """Return the versions of NumPy and of LIBRARIES in an environment. A dash marks a missing library."""
    done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False)
    return dict(line.split() for line in done.stdout.splitlines())


def row_of(name, versions, output):
    """Return a row of the table in docs/pythons.md: version, NumPy, libraries, numbers of tests, and date."""
    closing = CLOSING.findall(output)
    if not closing:
        return f"| {name} | - | did not reach the tests | | | | {datetime.date.today()} |"
    counts = {word.rstrip("s"): number for number, word in re.findall(r"(\d+) ([a-z]+)", closing[-1])}
    passed, failed, error, skipped = (int(counts.get(outcome, 0)) for outcome in OUTCOMES)
    libraries = ", ".join(f"{library} {versions.get(library, '-')}" for library in LIBRARIES)
    errors = f" and {error} errors" if error else ""
    return (
        f"| {name} | {versions.get('numpy', '-')} | {libraries} | {passed} | {skipped} | {failed}{errors}"
        f" | {datetime.date.today()} |"
    )


def run(python, arguments):
    """Run the README's test command with an interpreter. Return the exit status, and a row that states the result."""
    version = describe(python)
    name = ".".join(map(str, version[:3])) + (" without the GIL" if version[3] else "")
    with tempfile.TemporaryDirectory(prefix="arrayhub-") as folder:
        copy_tree(pathlib.Path(folder))
        command = test_command().replace("python3 ", f"'{python}' ", 1)
        print(f"\n== {name}: {command} {' '.join(arguments)}", flush=True)
        process = subprocess.Popen(
            ["bash", "-c", f'{command} "$@"', "bash", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        said = []
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
        status = process.wait()
        versions = installed_versions(f"{folder}/.venv/bin/python")
    return status, row_of(name, versions, "".join(said))


def main():
    """Test with each interpreter in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="*", help="interpreters (default: all that are found)")
    parser.add_argument("--list", action="store_true", help="list the interpreters that are found, and exit")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:split])
    refusal = "{} is not a CPython interpreter outside of virtual environments"
    pythons = [resolve(name) or parser.error(refusal.format(name)) for name in options.python]
    pythons = pythons or found()
    if options.list:
        print(*pythons, sep="\n")
        return 0
    results = [run(str(python), sys.argv[split + 1 :]) for python in pythons]
    print("", *(line for _, line in results), sep="\n")
    return sum(status != 0 for status, _ in results)


if __name__ == "__main__":
    sys.exit(main())
