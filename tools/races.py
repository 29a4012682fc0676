"""Run eight threads on a free-threaded CPython, NumPy and arrayhub that are compiled with ThreadSanitizer.

    python tools/races.py FOLDER [--seconds N] [--runs N] [--source PATH] [--only PART ...]

The script makes everything from nothing in FOLDER, and keeps it, so that the next call only compiles changed files of
arrayhub:

1. apt downloads Debian's source of CPython, of the first row of `SOURCES` that the mirror has. ``--source`` names an
   unpacked source or an archive of another CPython instead.
2. The source is configured with ``--disable-gil --with-thread-sanitizer``, compiled and installed.
3. pip compiles NumPy from its sdist, with ThreadSanitizer and without SIMD code.
4. A copy of the checkout is compiled with ThreadSanitizer.
5. `tests/support/first_uses.py` runs in the interpreter, with NumPy alone.

The reports that `tests/robustness/threads.supp` does not suppress are printed with their stacks. Equal reports are
printed once. The exit status is 1 if there is a report, or if the program fails.

The script needs Debian's apt and the libraries that CPython and its modules use (``apt-get build-dep python3``), cython
and ninja in the environment that runs it, and clang, or another compiler in the environment variables CC and CXX. The
first call takes about an hour on two cores.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sanitize import copy_of_the_tree

# Debian's packages and the releases that have them. The mirror may lack the sources of a release.
SOURCES = (("python3.14", "sid"), ("python3.14", "forky"), ("python3.13", "trixie"))
REQUIREMENT = {"3.13": "numpy<2.5"}  # the last series that supports a free-threaded CPython 3.13
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PROGRAM = "tests/support/first_uses.py"
SUPPRESSIONS = "tests/robustness/threads.supp"
FLAGS = "-fsanitize=thread -O1 -g -fno-omit-frame-pointer"
QUIET = "report_bugs=0:exitcode=0"  # for processes that only build
REPORT = re.compile(r"={18}\nWARNING: ThreadSanitizer: .*?\n={18}\n", re.DOTALL)
SUMMARY = re.compile(r"SUMMARY: ThreadSanitizer: (.*)")
PLACE = re.compile(r"(?:0x)?[0-9a-f]{8,}|:\d+\b")  # addresses, lines and columns, which differ between equal reports
NUMPY = ("allow-noblas=true", "blas=none", "lapack=none", "cpu-dispatch=none", "disable-optimization=true")
MESON = ("b_sanitize=thread", "b_lundef=false", "b_ndebug=true", "buildtype=debugoptimized")


def step(*command, quiet=True, **options):
    """Run a command. If it fails, exit. If `quiet` is true, print its output only then."""
    print("+", *command, flush=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    done = subprocess.run(list(map(str, command)), text=True, check=False, **pipes, **options)
    if done.returncode:
        sys.exit(f"{done.stdout or ''}\nraces.py: {command[0]} failed with exit status {done.returncode}")
    return done.stdout


def newest(name):
    """Return the path of a program, or of its version with the highest number, such as clang-19. None if missing."""
    found = [path for folder in os.environ["PATH"].split(os.pathsep) for path in Path(folder).glob(f"{name}-[0-9]*")]
    numbered = [path for path in found if path.name.removeprefix(f"{name}-").isdecimal()]
    return shutil.which(name) or max(map(str, numbered), key=lambda path: int(path.rpartition("-")[2]), default=None)


def compilers():
    """Return the environment variables of the C and C++ compilers."""
    return {
        "CC": os.environ.get("CC") or newest("clang") or "gcc",
        "CXX": os.environ.get("CXX") or newest("clang++") or "g++",
    }


def mirror():
    """Return the address of the Debian mirror that apt uses on this machine."""
    lines = step("apt-get", "indextargets", "--format", "$(LABEL) $(SITE)").splitlines()
    return next(line.partition(" ")[2] for line in lines if line.startswith("Debian "))


def download(folder):
    """Download the source of CPython by apt, without changing apt's configuration, and return the archive's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("lists/partial", "cache/archives/partial", "empty"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    listed = folder / "sources.list"
    releases = dict.fromkeys(release for _, release in SOURCES)
    address = mirror()
    listed.write_text("".join(f"deb-src [signed-by={KEYRING}] {address} {release} main\n" for release in releases))
    settings = {
        "Dir::Etc::SourceList": listed,
        "Dir::Etc::SourceParts": folder / "empty",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(f"--option={name}={value}" for name, value in settings.items())]
    step(*apt, "update")
    for package, release in SOURCES:
        command = [*apt, "source", "--download-only", "--tar-only", f"{package}/{release}"]
        print("+", *command, flush=True)
        if subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            (archive,) = folder.glob(f"{package}_*.orig.tar.*z")
            return archive
        print(f"races.py: the mirror does not have the source of {package} in {release}", flush=True)
    sys.exit("races.py: no source of CPython; pass --source")


def build_python(folder, source):
    """Compile CPython with ThreadSanitizer, and return the path of the interpreter."""
    python = folder / "python/bin/python3"
    if python.exists():
        return python
    if source is None or source.is_file():
        source = source or download(folder / "apt")
        unpacked = folder / "source"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir()
        step("tar", "--extract", "--strip-components=1", f"--file={source}", f"--directory={unpacked}")
        source = unpacked
    build = folder / "python-build"
    build.mkdir(exist_ok=True)
    options = ["--disable-gil", "--with-thread-sanitizer", "--disable-test-modules", "--with-ensurepip=no"]
    options += [f"--prefix={folder / 'python'}"]
    environment = {**os.environ, **compilers(), "TSAN_OPTIONS": QUIET}
    step(source.resolve() / "configure", *options, cwd=build, env=environment)
    step("make", f"-j{os.cpu_count()}", cwd=build, env=environment)
    step("make", "install", cwd=build, env=environment)
    return python


def build_numpy(python):
    """Compile and install NumPy. Cython and ninja run in the interpreter of this script, which is much faster."""
    (site,) = python.parents[1].glob("lib/python3*t/site-packages")
    if (site / "numpy").exists():
        return
    environment = {**os.environ, **compilers(), "TSAN_OPTIONS": QUIET}
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    pip = [sys.executable, "-m", "pip", "--python", python, "install"]
    step(*pip, "meson-python", "pytest", env=environment)
    requirement = REQUIREMENT.get(site.parent.name.removeprefix("python").rstrip("t"), "numpy")
    settings = [f"--config-settings=setup-args=-D{option}" for option in (*NUMPY, *MESON)]
    step(*pip, "--no-build-isolation", "--no-deps", "--no-binary=numpy", *settings, requirement, env=environment)


def build_package(folder, python):
    """Compile a copy of the checkout, and return the copy's path."""
    copy = folder / "arrayhub"
    copy_of_the_tree(copy)
    variables = {"CFLAGS": FLAGS, "CYTHON": f"{sys.executable} -m cython", "TSAN_OPTIONS": QUIET}
    environment = {**os.environ, **compilers(), **variables}
    step(python, "tools/build_inplace.py", cwd=copy, env=environment)
    return copy


def run(python, copy, reports, seconds):
    """Run the program once. Return its exit status; the reports are in files of the folder `reports`."""
    symbolizer = newest("llvm-symbolizer")
    options = [f"suppressions={copy / SUPPRESSIONS}", f"log_path={reports / 'report'}", "history_size=7", "exitcode=0"]
    options += ["allocator_may_return_null=1"]  # the program requests more memory than a machine has
    options += [f"external_symbolizer_path={symbolizer}"] if symbolizer else []
    environment = {**os.environ, "PYTHONPATH": str(copy), "TSAN_OPTIONS": ":".join(options)}
    command = [python, "-X", "faulthandler", PROGRAM, str(seconds), "numpy"]
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


def read_reports(folder):
    """Return the reports of all processes, one per kind, with the number of times that it occurred."""
    found = collections.Counter()
    examples = {}
    for path in sorted(folder.iterdir()):
        for report in REPORT.findall(path.read_text(errors="replace")):
            kind = PLACE.sub("", (SUMMARY.search(report) or [report, report])[1])
            found[kind] += 1
            examples.setdefault(kind, report)
    return [(examples[kind], times) for kind, times in found.most_common()]


def main():
    """Build what is missing, run the program, and print the races. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    parser.add_argument("--source", type=Path, help="source of a CPython: a folder or an archive")
    parser.add_argument("--seconds", type=float, default=60, help="duration of a run")
    parser.add_argument("--runs", type=int, default=3, help="number of processes, each of which uses everything first")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    python = build_python(options.folder, options.source)
    build_numpy(python)
    copy = build_package(options.folder, python)
    reports = options.folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    failed = sum(run(python, copy, reports, options.seconds) != 0 for _ in range(options.runs))
    races = read_reports(reports)
    for report, times in races:
        print(f"\n{times} times:\n{report}")
    version = step(python, "-c", "import sys, numpy; print(sys.version, 'NumPy', numpy.__version__)", env=os.environ)
    print(version.strip())
    print(f"{options.runs} runs of {options.seconds:g} s: {len(races)} races, {failed} failed runs")
    return 1 if races or failed else 0


if __name__ == "__main__":
    sys.exit(main())
