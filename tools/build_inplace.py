"""Compile every module listed in arrayhub/meson.build beside its source, with Cython, NumPy and a C compiler.

This build does not require meson. Afterwards, ``PYTHONPATH=. python -m pytest`` tests the checkout. The compiler flags
are read from arrayhub/meson.build.

A module is compiled again if the commands, the source, or a file that the source includes has changed since the last
build. To detect changes, a file ``.c.dep`` beside the module stores Cython's list of included files, and a digest of
their contents. After a switch between branches, only modules that differ are compiled. Paths are relative, so checkouts
can share objects through ccache (``CC='ccache gcc'``). ``CYTHON`` is the command of Cython, by default ``-m cython`` of
the interpreter that runs this script.

    python tools/build_inplace.py [--jobs N] [--force]
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "arrayhub"
DECLARATIONS = pathlib.Path("build/declarations")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")  # before threads start: the first call is not thread-safe


def read_list(text, start, end=r"\]"):
    """Return the quoted strings between two patterns in `text`, the meson file, without those in comments."""
    body = re.search(start + r"(.*?)" + end, text, re.DOTALL)[1]
    return re.findall(r"'([^'\n]*)'", re.sub(r"#.*", "", body))


def commands(name, meson):
    """Return the commands of Cython and of the C compiler for an extension module, and the module's path.

    The paths in the commands are relative to the checkout.
    """
    source = (PACKAGE / f"{name}.pyx").relative_to(ROOT)
    generated = source.with_suffix(".c")
    module = source.with_suffix(SUFFIX)
    import numpy

    cython = shlex.split(os.environ.get("CYTHON", "")) or [sys.executable, "-m", "cython"]
    cython += ["--depfile", "-I", ".", "-I", str(DECLARATIONS)]
    cython += [argument for argument in read_list(meson, r"cython_args = \[") if argument != "-I"]
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    if name in read_list(meson, r"hot = \["):
        options = read_list(meson, r"fast_args = cc\.get_supported_arguments\(", r"\n  \)")
        compiler += ["-O1", *options] if "gcc" in compiler[-1] else ["-O2"]
    else:
        compiler += ["-O2" if name in read_list(meson, r"loops = \[") else "-Os"]
    compiler += ["-fPIC", "-shared", "-std=c11", "-pthread"]
    compiler += read_list(meson, r"c_args = cc\.get_supported_arguments\(", r"\n\)")
    compiler += shlex.split(os.environ.get("CFLAGS", ""))
    for folder in (sysconfig.get_path("include"), numpy.get_include(), str((PACKAGE / "_core").relative_to(ROOT))):
        compiler += ["-I", folder]
    return [*cython, str(source), "-o", str(generated)], [*compiler, str(generated), "-o", str(module)], ROOT / module


def link_declarations():
    """Create a folder that contains only a link to NumPy, so that Cython finds the declarations of the installed NumPy.

    In the folder that contains NumPy, Cython could also find the declarations of an installed arrayhub.
    """
    import numpy

    link = ROOT / DECLARATIONS / "numpy"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(pathlib.Path(numpy.__file__).parent, target_is_directory=True)


def digest(listed, build_commands):
    """Return a digest of a module's commands, of the files in Cython's list, and of all headers and declarations.

    Cython's list does not contain headers, nor the file m.pxd of ``from p cimport m`` (Cython 3.2). The headers that
    Cython writes during a build are omitted.
    """
    names = listed.partition(":")[2].replace("\\\n", " ").split()
    headers = (path for path in PACKAGE.rglob("*.h") if not path.with_suffix(".pyx").exists())
    paths = [*(ROOT / name for name in names), *sorted(path for path in headers if not path.name.endswith("_api.h"))]
    paths += sorted(PACKAGE.rglob("*.pxd"))
    found = hashlib.sha256(repr(build_commands).encode())
    for path in paths:
        found.update(path.read_bytes() if path.exists() else b"missing")
    return found.hexdigest()


def is_up_to_date(module, build_commands):
    record = module.with_suffix(".c.dep")
    if not module.exists() or not record.exists():
        return False
    listed, _, last = record.read_text().rpartition("# digest ")
    return last.strip() == digest(listed, build_commands)


def build(name, meson, force):
    """Build one module unless it is up to date. Return its name, what was done, and the output of the compilers."""
    generate, compile_, module = commands(name, meson)
    if not force and is_up_to_date(module, (generate, compile_)):
        return name, "kept", ""
    generated = ROOT / generate[-1]
    record = module.with_suffix(".c.dep")
    record.unlink(missing_ok=True)  # so that a module is built again if this build fails
    try:
        for command in (generate, compile_):
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
            if done.returncode:
                return name, "FAILED", done.stdout + done.stderr
        listed = generated.with_name(generated.name + ".dep").read_text()
        record.write_text(f"{listed}# digest {digest(listed, (generate, compile_))}\n")
        return name, "built", ""
    finally:
        for made in (
            generated,
            generated.with_name(generated.name + ".dep"),
            generated.with_suffix(".h"),  # unused headers for public and api declarations
            generated.with_name(f"{generated.stem}_api.h"),
        ):
            made.unlink(missing_ok=True)


def main():
    """Build all modules in parallel. The exit status is the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--force", action="store_true", help="also rebuild modules that are up to date")
    options = parser.parse_args()
    meson = (PACKAGE / "meson.build").read_text()
    link_declarations()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        names = read_list(meson, r"compiled = \[")
        for name, result, output in pool.map(lambda name: build(name, meson, options.force), names):
            failed += result == "FAILED"
            print(f"{result:6} {name}\n{output}".rstrip(), flush=True)
    for left in PACKAGE.rglob(f"*{SUFFIX}"):  # left by a renamed module, and still importable
        if left.relative_to(PACKAGE).as_posix().removesuffix(SUFFIX) not in names:
            left.unlink()
    return failed


if __name__ == "__main__":
    sys.exit(main())
