"""Translate Cython modules to C, with one process per core. meson runs this script.

    python tools/cythonize.py DEPFILE MODULE.c ... MODULE.pyx ... [CYTHON ARGUMENTS]

There is one C file for each source, in the same order. All modules are translated by a few processes, because a new
Cython process takes 0.5 s to import its own modules and to parse its utility code, whereas the translation of an
average module takes 0.4 s. The names of the files that the sources include or cimport are written to DEPFILE, in make's
syntax. A C file that does not change keeps its time stamp, so that ninja does not compile it again.
"""

import concurrent.futures
import gc
import multiprocessing
import os
import sys
from pathlib import Path

from Cython.Compiler import Main


def translate(source, target, arguments):
    """Translate a module as the command `cython` does. Return the module's dependencies in make's syntax."""
    before = target.read_bytes() if target.exists() else None
    changed = target.stat().st_mtime_ns if before is not None else 0
    sys.argv[1:] = [*arguments, "--depfile", source, "-o", str(target)]
    Main.main(command_line=True)  # raises SystemExit if there is an error
    if target.read_bytes() == before:
        os.utime(target, ns=(changed, changed))
    return target.with_name(f"{target.name}.dep").read_text().partition(":")[2].strip()


def main(depfile, *arguments):
    targets = [Path(name) for name in arguments if name.endswith(".c")]
    sources = [name for name in arguments if name.endswith(".pyx")]
    options = arguments[len(targets) + len(sources) :]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    # Garbage collection takes a third of Cython's time. Without it, a process needs up to 600 MB.
    with concurrent.futures.ProcessPoolExecutor(cores, context, initializer=gc.disable) as pool:
        tasks = [pool.submit(translate, *pair, options) for pair in zip(sources, targets, strict=True)]
        depends = " \\\n".join(task.result() for task in tasks)
    Path(depfile).write_text(f"{targets[0]}: {depends}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
