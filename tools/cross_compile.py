"""Compile and link the package's C and C++ code for macOS and Windows, with zig as the compiler. Nothing is run.

    python tools/cross_compile.py [--jobs N] [TARGET ...]

A TARGET is a row of `TARGETS`. By default, all are compiled. For each target, the extension modules are compiled and
linked, and the headers in arrayhub/include/ are compiled in every language that they support. The exit status is the
number of failures. The script requires Cython, NumPy, ziglang (zig with the headers of both systems, from PyPI), and a
package index for pip. A header that includes pybind11 or nanobind is skipped if that library is not installed.

- NumPy's headers are those of its wheel for the target, which pip downloads.
- Python's headers are those of this interpreter, except for pyconfig.h: no package on PyPI contains the file of another
  system. `PYCONFIG` has the lines that the other headers read, with the sizes of the target's compiler.
- The modules are linked with the names that Python's headers declare for the target, and with the libraries of the
  system. If the target lacks a function, compiling or linking fails.

zig builds its libraries for Windows on the first use, which takes a minute, and keeps them in its cache.
"""

import argparse
import concurrent.futures
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import numpy
from build_inplace import DECLARATIONS, PACKAGE, link_declarations, read_list
from c_warnings import FILES, compile_file, run

# Columns: platform of wheels, and the file with Python's names for the linker.
TARGETS = {
    "aarch64-macos": ("macosx_14_0_arm64", "python.tbd"),
    "x86_64-windows-gnu": ("win_amd64", "python.lib"),
}
VERSION = f"{sys.version_info.major}{sys.version_info.minor}"
ZIG = [sys.executable, "-m", "ziglang"]

PYCONFIG = """
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H
#define SIZEOF_SHORT __SIZEOF_SHORT__
#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_FLOAT __SIZEOF_FLOAT__
#define SIZEOF_DOUBLE __SIZEOF_DOUBLE__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_UINTPTR_T __SIZEOF_POINTER__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define ALIGNOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_PID_T 4
#define SIZEOF_TIME_T 8
#define DOUBLE_IS_LITTLE_ENDIAN_IEEE754 1
#define HAVE_STD_ATOMIC 1
#define HAVE_BUILTIN_ATOMIC 1
#define HAVE_SYS_STAT_H 1
#define HAVE_WCHAR_H 1
#define WITH_DOC_STRINGS 1
#define WITH_PYMALLOC 1
#ifdef _WIN32
#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#ifndef PyAPI_FUNC  /* unless the names are listed */
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL
#endif
#else
#define HAVE_FORK 1
#define HAVE_PTHREAD_H 1
#define HAVE_SSIZE_T 1
#define HAVE_SYS_SELECT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#define PTHREAD_KEY_T_IS_COMPATIBLE_WITH_INT 0
#endif
#endif
"""
TBD = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '@rpath/python.dylib'
exports:
  - targets: [ arm64-macos ]
    symbols: [ {names} ]
...
"""


def zig(target, language="cc"):
    """Return the command of zig's compiler for a target, without the sanitizer that zig adds by default."""
    return [*ZIG, language, "-target", target, "-fno-sanitize=all"]


def require(command):
    """Run a command. Return its output, or exit with the output if the command fails."""
    output, status = run([str(part) for part in command])
    if status:
        sys.exit(f"{output}\ncross_compile.py: {' '.join(map(str, command))}: exit status {status}")
    return output


def make_headers(target, folder):
    """Copy the headers of Python and NumPy for a target to a folder. Return the two folders to include."""
    python = folder / "python"
    shutil.copytree(sysconfig.get_path("include"), python)
    (python / "pyconfig.h").write_text(PYCONFIG)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
    require([*pip, "--platform", TARGETS[target][0], "--python-version", VERSION, f"numpy=={numpy.__version__}"])
    with zipfile.ZipFile(next(folder.glob("numpy-*.whl"))) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".h")])
    return [python, folder / "numpy/_core/include"]


def make_library(target, folder, python):
    """Write a file from which the linker reads the names that Python's headers declare. Return its path."""
    source = folder / "names.c"
    source.write_text("#include <Python.h>\n#include <frameobject.h>\n")
    macros = ["-DPyAPI_FUNC(T)=@T@", "-DPyAPI_DATA(T)=@T@", "-D__attribute__(x)="]
    declared = require([*zig(target), "-E", "-w", "-I", python, *macros, source])
    names = sorted(set(re.findall(r"@[^@;]*@\s*(\w+)", declared)))
    library = folder / TARGETS[target][1]
    if library.suffix == ".tbd":
        library.write_text(TBD.format(names=", ".join(f"_{name}" for name in names)))
    else:
        definitions = folder / "python.def"
        definitions.write_text("\n".join([f"LIBRARY python{VERSION}.dll", "EXPORTS", *names]))
        require([*ZIG, "dlltool", "-m", "i386:x86-64", "-d", definitions, "-l", library])
    return library


def main():
    """Compile everything for each target, and print the output of each failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_args()
    if unknown := {*arguments.targets} - {*TARGETS}:
        parser.error(f"unknown target: {', '.join(sorted(unknown))}")
    meson = (PACKAGE / "meson.build").read_text()
    modules = read_list(meson, r"compiled = \[")
    flags = read_list(meson, r"c_args = cc\.get_supported_arguments\(", r"\n\)")
    cython = [argument for argument in read_list(meson, r"cython_args = \[") if argument != "-I"]
    link_declarations()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        generated = {name: Path(folder) / f"{name.replace('/', '.')}.c" for name in modules}
        sources = [f"arrayhub/{name}.pyx" for name in modules]
        translate = [sys.executable, "tools/cythonize.py", Path(folder) / "cython.d", *generated.values(), *sources]
        require([*translate, *cython, "-I", ".", "-I", DECLARATIONS])
        for target in arguments.targets or TARGETS:
            place = Path(folder) / target
            place.mkdir()
            include = make_headers(target, place)
            library = make_library(target, place, include[0])
            options = [*zig(target), "-O0", "-std=c11", "-shared", "-Wno-unknown-warning-option", *flags]
            for path in (*include, "arrayhub/_core"):
                options += ["-I", path]
            tasks = {}
            for name, source in generated.items():
                command = [*options, source, library, "-o", place / f"{source.stem}.out"]
                tasks[name] = pool.submit(run, [str(part) for part in command])
            compilers = {"c": zig(target), "c++": zig(target, "c++")}
            for file, languages, libraries, more in FILES:
                if not file.startswith("arrayhub/include/") or any(map(is_missing, libraries)):
                    continue
                for language in languages:
                    label = " ".join((file, language[1], *more))
                    output = place / f"{len(tasks)}.o"  # zig takes /dev/null for a file in the current folder
                    how = (compilers, include[0], output)
                    tasks[label] = pool.submit(compile_file, file, language, libraries, more, *how)
            bad = 0
            for label, task in tasks.items():
                output, status = task.result()
                if status:
                    bad += 1
                    print(f"{label}:\n{output}", flush=True)
            print(f"{target}: {len(tasks)} units compiled, {bad} failed", flush=True)
            failed += bad
    return failed


def is_missing(library):
    """Return whether a library is not installed."""
    return importlib.util.find_spec(library) is None


if __name__ == "__main__":
    sys.exit(main())
