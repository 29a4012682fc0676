"""Compile every room listed in arrayhub/meson.build beside its source, with Cython and a C compiler alone.

For machines without meson: afterwards ``PYTHONPATH=. python -m pytest`` runs on the checkout. Flags are those of
arrayhub/meson.build, which stays the only place that says how the package is built.

    python tools/build_inplace.py [--jobs N] [--force]
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "arrayhub"


def read_list(text, start, end=r"\]"):
    """Return the quoted strings between two patterns of the meson file, comments left out."""
    body = re.search(start + r"(.*?)" + end, text, re.DOTALL)[1]
    return re.findall(r"'([^'\n]*)'", re.sub(r"#.*", "", body))


def commands(room, meson):
    """Return the two commands that make a room's extension module, and its path."""
    source = PACKAGE / f"{room}.pyx"
    generated = source.with_suffix(".c")
    module = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    import numpy

    # Where there are several NumPys, its declarations must come from the one whose headers are used.
    cython = [sys.executable, "-m", "cython", "-I", str(ROOT), "-I", str(pathlib.Path(numpy.__file__).parent.parent)]
    cython += [argument for argument in read_list(meson, r"cython_args: \[") if argument != "-I"]
    compiler = os.environ.get("CC", "gcc").split()
    compiler += ["-O2", "-fPIC", "-shared", "-std=c11", "-pthread"]
    compiler += read_list(meson, r"c_args = cc\.get_supported_arguments\(", r"\n\)")
    for folder in (sysconfig.get_path("include"), numpy.get_include(), str(PACKAGE / "_core")):
        compiler += ["-I", folder]
    return [*cython, str(source), "-o", str(generated)], [*compiler, str(generated), "-o", str(module)], module


def build(room, meson, newest, force):
    """Build one room unless its module is newer than every source; return what the compilers said."""
    generate, compile_, module = commands(room, meson)
    if not force and module.exists() and module.stat().st_mtime > newest:
        return room, 0, ""
    for command in (generate, compile_):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if done.returncode:
            return room, done.returncode, done.stdout + done.stderr
    pathlib.Path(generate[-1]).unlink()
    return room, 0, ""


def main():
    """Build all rooms in parallel; the exit status is the number of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--force", action="store_true", help="rebuild also what is up to date")
    options = parser.parse_args()
    meson = (PACKAGE / "meson.build").read_text()
    sources = [path for kind in ("*.pyx", "*.pxd", "*.h", "meson.build") for path in PACKAGE.rglob(kind)]
    newest = max(path.stat().st_mtime for path in sources)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rooms = read_list(meson, r"compiled = \[")
        for room, status, said in pool.map(lambda room: build(room, meson, newest, options.force), rooms):
            failed += status != 0
            print(f"{'FAILED' if status else 'built '} {room}\n{said}".rstrip(), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
