"""Measure the time that ``import arrayhub`` adds to ``import numpy``, in new processes with a warm disk cache."""

import os
import statistics
import subprocess
import sys
import tempfile

from .measure import Result, middle_half

AT_MOST = 0.15
# Array libraries, which ``import arrayhub`` must not import.
LIBRARIES = ("torch", "jax", "jaxlib", "cupy", "dpnp", "dpctl", "numba", "pyarrow", "tvm_ffi", "ml_dtypes", "xarray")
PROGRAM = """
import sys, time
a = time.perf_counter()
import numpy
b = time.perf_counter()
import arrayhub
c = time.perf_counter()
print(b - a, c - b, *(name for name in sys.argv[1:] if name in sys.modules))
"""


def startup(options):
    """Measure the imports of NumPy and arrayhub in several new processes. Yield the median of the ratios."""
    pairs, brought = [], set()
    once()  # loads the files into the disk cache, and writes missing bytecode
    for _ in range(options.repeat):
        numpy_seconds, ours_seconds, modules = once()
        pairs.append((numpy_seconds, ours_seconds))
        brought.update(modules)
    ratios = [ours / numpy for numpy, ours in pairs]
    yield Result(
        "import",
        "import arrayhub after import numpy",
        "import numpy",
        ours_ns=1e9 * statistics.median(ours for _, ours in pairs),
        peer_ns=1e9 * statistics.median(numpy for numpy, _ in pairs),
        ratio=statistics.median(ratios),
        spread=middle_half(ratios),
        at_most=AT_MOST,
    )
    others = f"also imports {', '.join(sorted(brought))}" if brought else "does not import another array library"
    yield "import", f"`import arrayhub` {others}", not brought


def once():
    """Return the seconds of ``import numpy`` and of a later ``import arrayhub``, and the imported ones of LIBRARIES."""
    # Allow Python to write bytecode, as pip does for installed packages. Otherwise each import would compile again.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:  # in the checkout, the sources would shadow the installed package
        command = [sys.executable, "-c", PROGRAM, *LIBRARIES]
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    numpy_seconds, ours_seconds, *modules = done.stdout.split()
    return float(numpy_seconds), float(ours_seconds), modules
