"""Compile arrayhub's hand-written C and C++ code with -Wall -Wextra, and print the warnings about this code.

    python tools/c_warnings.py [--jobs N] [--in-place] [UNIT ...]

The hand-written code consists of these parts:

- C blocks in .pyx, .pxi and .pxd files, and the headers that the blocks include. They are compiled as parts of the
  modules. ``#line`` directives around each block distinguish its warnings from those about Cython's code. If a block is
  not found in the generated file, the script reports an error.
- Headers in arrayhub/include/, in every language that they support. standalone.hpp is compiled as a part of
  arrayhub.hpp, and each other header on its own.
- Sources in tests/support/native/.

A UNIT is a module (``_core/tree``) or one of these files (``arrayhub/include/arrayhub.h``). By default, all units are
compiled. Modules are also compiled with the flags of arrayhub/meson.build. The environment variables ``CC`` and ``CXX``
name the compilers. With --in-place, the modules are kept beside their sources, as by tools/build_inplace.py. The exit
status is 1 if there is a warning or an error. The script requires Cython and NumPy. A file that includes headers of
pybind11, nanobind or Arrow is skipped if that library is not installed.
"""

import argparse
import ast
import concurrent.futures
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from build_inplace import PACKAGE, ROOT, commands, read_list

STRICT = ["-O2", "-Wall", "-Wextra"]
BLOCK = re.compile(r'^cdef extern from [^\n]*:\n\s+(""".*?""")', re.MULTILINE | re.DOTALL)
DIAGNOSTIC = re.compile(r"^(?P<file>[^:\n]+):\d+:(?:\d+:)? (?:warning|error|fatal error): ", re.MULTILINE)
OWN = ("arrayhub/", "tests/support/native/")  # relative to the root, in which the compilers run

C, CPP = (("c", "c11"),), (("c++", "c++17"), ("c++", "c++20"))
# The sources initialize a struct only with its HEAD macro, as documented, so that the other members are zero. -Wextra
# warns about missing initializers, also with Python's own PyModuleDef_HEAD_INIT.
HEAD = ("-Wno-missing-field-initializers",)
# Columns: file, languages, libraries whose headers the file includes, additional options.
FILES = (
    ("arrayhub/include/arrayhub.h", (*C, *CPP), (), ()),
    ("arrayhub/include/arrayhub.hpp", CPP, (), ()),
    ("arrayhub/include/arrayhub.hpp", CPP, (), ("-DARRAYHUB_STANDALONE",)),
    ("arrayhub/include/arrayhub/pybind11.hpp", CPP, ("pybind11",), ()),
    ("arrayhub/include/arrayhub/nanobind.hpp", CPP, ("nanobind",), ()),
    ("tests/support/native/late_lock.c", C, (), ()),
    ("tests/support/native/old.c", C, (), HEAD),
    ("tests/support/native/probe.c", (*C, *CPP), (), HEAD),
    ("tests/support/native/two_files_a.c", (*C, *CPP), (), HEAD),
    ("tests/support/native/two_files_b.c", (*C, *CPP), (), HEAD),
    ("tests/support/native/plain.cpp", CPP[1:], (), ()),
    ("tests/support/native/standalone.cpp", CPP, (), ()),
    ("tests/support/native/frameworks.cpp", CPP, ("pybind11",), ()),
    ("tests/support/native/frameworks.cpp", CPP, ("nanobind",), ("-DWITH_NANOBIND",)),
    ("tests/support/native/arrow_streams.cpp", CPP[1:], ("pyarrow",), ()),
)
HEADERS = {
    "pybind11": lambda package: package.get_include(),
    "nanobind": lambda package: package.include_dir(),
    "pyarrow": lambda package: package.get_include(),
}


def mark(generated):
    """Enclose each hand-written C block of a generated file in #line directives, so that diagnostics name its source.

    Raises
    ------
    ValueError
        A block of one of the sources is not in the generated file.
    """
    text = generated.read_text()
    listed = generated.with_name(f"{generated.name}.dep").read_text().replace("\\\n", " ").partition(":")[2].split()
    for name in (name for name in listed if name.startswith("arrayhub/")):
        source = (ROOT / name).read_text()
        for block in BLOCK.finditer(source):
            line = source.count("\n", 0, block.start(1)) + 1
            ours = ast.literal_eval(block[1])
            before, found, after = text.partition(ours)
            if not found:
                raise ValueError(f"{name}:{line}: the C block is not in {generated.name}")
            text = f'{before}\n#line {line} "{name}"\n{ours}\n#line 1 "{generated}"\n{after}'
    generated.write_text(text)


def compile_module(name, folder, meson, in_place):
    """Compile a module, and keep it beside its source if `in_place`. Return the compiler's output and exit status."""
    generate, compiler, module = commands(name, meson)
    generated = folder / f"{name.replace('/', '.')}.c"
    generate[-1] = str(generated)
    done = subprocess.run(generate, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        return done.stdout + done.stderr, done.returncode
    mark(generated)
    options = [option for option in compiler[:-3] if option not in ("-shared", "-Wno-unused-function")]
    # The included headers are beside the module's source or in _core/, but the generated file is in `folder`.
    options += ["-I", str((PACKAGE / name).parent.relative_to(ROOT)), *STRICT, str(generated)]
    return run([*options, *(["-shared", "-o", str(module)] if in_place else ["-c", "-o", os.devnull])])


def compile_file(file, language, libraries, options, compilers, python, output=os.devnull):
    """Compile a header or a source file with Python's headers. Return the compiler's output and exit status."""
    kind, standard = language
    command = [*compilers[kind], f"-std={standard}", *STRICT, "-DNAME=probe"]
    for folder in ("arrayhub/include", "arrayhub/_core", "tests/support/native"):
        command += ["-I", folder]
    command += ["-isystem", str(python)]
    for library in libraries:
        command += ["-isystem", str(HEADERS[library](importlib.import_module(library)))]
    # Include a header into an empty file, because compilers would warn about `#pragma once` in the main file.
    named = ["-include", file, "-x", kind, os.devnull] if "/include/" in file else ["-x", kind, file]
    return run([*command, *options, *named, "-c", "-o", str(output)])


def run(command):
    """Run a compiler in the root of the checkout. Return its output and exit status."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout + done.stderr, done.returncode


def own_diagnostics(output):
    """Return the warnings and errors about hand-written code in a compiler's output, each with its notes."""
    starts = [*DIAGNOSTIC.finditer(output)]
    ends = [*(match.start() for match in starts[1:]), len(output)]
    parts = [(match["file"], output[match.start() : end].rstrip()) for match, end in zip(starts, ends, strict=False)]
    return [text for file, text in parts if file.startswith(OWN)]


def main():
    """Compile all units in parallel and print each warning once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--in-place", action="store_true", help="keep the compiled modules beside their sources")
    parser.add_argument("units", nargs="*", metavar="UNIT")
    arguments = parser.parse_args()
    meson = (PACKAGE / "meson.build").read_text()
    modules = read_list(meson, r"compiled = \[")
    if unknown := {*arguments.units} - {*modules, *(file for file, *_ in FILES)}:
        parser.error(f"unknown module or file: {', '.join(sorted(unknown))}")
    wanted = arguments.units or [*modules, *(file for file, *_ in FILES)]
    compilers = {
        "c": shlex.split(os.environ.get("CC", "gcc")),
        "c++": shlex.split(os.environ.get("CXX", "g++")),
    }
    python = sysconfig.get_path("include")
    printed, failed, compiled = set(), [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        modules = [name for name in modules if name in wanted]
        options = (Path(folder), meson, arguments.in_place)
        tasks = {name: pool.submit(compile_module, name, *options) for name in modules}
        for file, languages, libraries, options in FILES:
            if file not in wanted:
                continue
            if missing := [library for library in libraries if importlib.util.find_spec(library) is None]:
                print(f"skipped {file}: {', '.join(missing)} is not installed")
                continue
            for language in languages:
                label = " ".join((file, language[1], *libraries))
                tasks[label] = pool.submit(compile_file, file, language, libraries, options, compilers, python)
        for label, task in tasks.items():
            output, status = task.result()
            own = own_diagnostics(output)
            for text in dict.fromkeys(own):
                if text not in printed:
                    print(text, flush=True)
            printed.update(own)
            compiled += 1
            if status:
                failed.append(label)
                if not own:
                    print(f"{label}:\n{output}")
    print(f"{compiled} units compiled, {len(failed)} failed, {len(printed)} warnings or errors in hand-written code")
    return 1 if printed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
