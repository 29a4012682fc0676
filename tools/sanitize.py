"""Build the package with the compiler's sanitizers and run the suite on that build.

    python tools/sanitize.py [address|undefined|both] [pytest arguments]

The build uses a copy of the checkout in build/sanitize/, and does not change the modules beside the sources. The copy
is kept, so the next run compiles only changed files. Without pytest arguments, pytest runs the files in `FILES`. The
sanitizers write the reports of all processes to files, which this script prints. The exit status is the build's if the
build fails, else pytest's if tests fail, else 1 if there is a report.

This script requires gcc and the dependencies of the tests. CONTRIBUTING.md lists the libraries that can be loaded
together with a sanitizer.
"""

import argparse
import filecmp
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
COPIED = (
    "arrayhub",
    "benchmarks",
    "docs",
    "tests",
    "tools",
    "README.md",
    "CONTRIBUTING.md",
    "meson.build",
    "pyproject.toml",
)
MADE = shutil.ignore_patterns("__pycache__", "*.so", "*.c.dep", ".hypothesis")


class Sanitizer(NamedTuple):
    """Compiler flags, libraries and the environment variable of a sanitizer.

    Attributes
    ----------
    flags : str
        Compiler flags.
    preload : tuple of str
        Names of libraries to load before Python starts. The compiler finds their paths.
    variable, options : str
        Environment variable that the sanitizer's runtime reads, and its value.
    """

    flags: str
    preload: tuple
    variable: str
    options: str


# ASan must be loaded before the first malloc, and needs the C++ library, because it wraps `throw`. Leak detection
# is off, because Python frees many objects only at exit, which would give thousands of reports;
# tests/robustness/test_growth.py finds leaks instead. Mismatched allocators in libraries, and requests for too much
# memory in tests, are not reported. UBSan continues after a report, so one run finds all defects.
SANITIZERS = {
    "address": Sanitizer(
        "-fsanitize=address",
        ("libasan.so", "libstdc++.so"),
        "ASAN_OPTIONS",
        "detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1:detect_stack_use_after_return=1",
    ),
    "undefined": Sanitizer("-fsanitize=undefined", (), "UBSAN_OPTIONS", "print_stacktrace=1"),
}
BOTH = "both"
FLAGS = "-O1 -g -fno-omit-frame-pointer"  # so that reports name the function and the line

# Test files by default: tests that access host memory, memory of SYCL's CPU device, and arrays of libraries.
FILES = (
    "adapters/interface_dict/test_array_interface.py",
    "adapters/test_arrow.py",
    "adapters/arrow/test_import.py",
    "convert/test_functions.py",
    "adapters/test_buffer.py",
    "array/test_construction.py",
    "adapters/test_dlpack.py",
    "adapters/test_dlpack_exchange.py",
    "libraries/test_dpctl.py",
    "adapters/test_format_language.py",
    "robustness/test_hostile_producers.py",
    "adapters/test_interface_dict.py",
    "libraries/test_jax.py",
    "robustness/test_lifetimes.py",
    "docs/test_extension_authors.py",
    "capi/test_table.py",
    "nested/test_array.py",
    "robustness/test_invalid_arguments.py",
    "libraries/test_numba_typing.py",
    "adapters/interface_dict/test_sycl_usm.py",
    "libraries/test_torch.py",
    "libraries/test_torch_storage.py",
    "libraries/test_dpctl_usm_ndarray.py",
    "array/test_usm_array.py",
    "libraries/test_wrappers.py",
)
# These tests measure or limit the size of the process. ASan delays the release of memory, and reserves terabytes of
# address space.
LEFT_OUT = (
    "libraries/test_torch_storage.py::test_released_arrays_free_their_storage",
    "robustness/test_lifetimes.py::test_host_memory_is_freed_if_its_block_cannot_be_allocated",
)


def copy_of_the_tree(target):
    """Update the copy of the checkout in `target`. Unchanged files are not written, so they are not compiled again."""
    wanted = set()
    for name in COPIED:
        files = [ROOT / name] if (ROOT / name).is_file() else walk(ROOT / name)
        for file in files:
            there = target / file.relative_to(ROOT)
            wanted.add(there)
            if not there.exists() or not filecmp.cmp(file, there, shallow=False):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, there)
    for name in COPIED:
        for file in set(walk(target / name)) - wanted:
            file.unlink()


def walk(folder):
    """Yield the source files under a folder, without generated files."""
    for parent, folders, names in os.walk(folder):
        made = MADE(parent, [*folders, *names])
        folders[:] = [name for name in folders if name not in made]
        yield from (Path(parent, name) for name in names if name not in made)


def build(target, chosen):
    """Compile the copy with the sanitizers' flags, and return the exit status."""
    flags = " ".join([FLAGS, *(one.flags for one in chosen), os.environ.get("CFLAGS", "")])
    return subprocess.run(
        [sys.executable, "tools/build_inplace.py"], cwd=target, env={**os.environ, "CFLAGS": flags}
    ).returncode


def found_by_the_compiler(library):
    """Return the path at which the compiler finds a library."""
    compiler = [*shlex.split(os.environ.get("CC", "gcc")), f"-print-file-name={library}"]
    return subprocess.run(compiler, capture_output=True, text=True, check=True).stdout.strip()


def environment(target, chosen, reports):
    """Return the environment variables for a sanitized process and its subprocesses."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(target),
        "CFLAGS": " ".join(one.flags for one in chosen),  # for extensions that tests compile
        "PYTHONMALLOC": "malloc",  # Python's own allocator would hide a use after free
        "LD_PRELOAD": " ".join(found_by_the_compiler(library) for one in chosen for library in one.preload),
    }
    # ASan intercepts dlopen, so the RPATH of the calling library is not searched. Without LD_LIBRARY_PATH, SYCL would
    # not find the OpenCL loader in its own folder, and would therefore not find a device.
    folders = [str(Path(sys.prefix, "lib")), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    for one in chosen:
        variables[one.variable] = f"{one.options}:log_path={reports / 'report'}"
    return variables


def imported_elsewhere(target, variables):
    """Import arrayhub and a compiled module in a process. Return the paths of those that are outside the copy."""
    ask = "import arrayhub, arrayhub._core.descriptor as core; print(arrayhub.__file__, core.__file__, sep='\\n')"
    command = [sys.executable, "-P", "-c", ask]
    done = subprocess.run(command, cwd=target, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return [file for file in done.stdout.splitlines() if not Path(file).is_relative_to(target)]


def main():
    """Build the package, run the tests, and print the sanitizers' reports. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizer", choices=[*SANITIZERS, BOTH], nargs="?", default=BOTH)
    options, arguments = parser.parse_known_args()
    chosen = list(SANITIZERS.values()) if options.sanitizer == BOTH else [SANITIZERS[options.sanitizer]]
    target, reports = BUILD / options.sanitizer, BUILD / f"{options.sanitizer}-reports"
    copy_of_the_tree(target)
    if status := build(target, chosen):
        return status
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    variables = environment(target, chosen, reports)
    if elsewhere := imported_elsewhere(target, variables):
        sys.exit(f"sanitize.py: Python imports {', '.join(elsewhere)} instead of the sanitized copy in {target}")
    arguments = arguments or [f"tests/{name}" for name in FILES]
    arguments += [f"--deselect=tests/{name}" for name in LEFT_OUT]
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:faulthandler",
        *arguments,
    ]
    status = subprocess.run(command, cwd=target, env=variables).returncode
    for report in sorted(reports.iterdir()):
        print(f"\n{report.name}:\n{report.read_text(errors='replace')}")
        status = status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
