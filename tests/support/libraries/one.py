"""Test every row of a library: ``python -m tests.support.libraries.one NAME``.

The last line of the output is the version of the library.
"""

import importlib
import importlib.metadata
import multiprocessing
import os
import platform
import sys
import traceback

from .rows import Out, check, check_out
from .table import BY_NAME

MISSING = 3  # exit status if the library is not installed


def sources():
    """Return arrays of eight float32, aligned to 64 bytes, in host memory and, if available, in shared USM."""
    import numpy as np

    import arrayhub as ah

    arrays = [ah.empty((8,), "f4", alignment=64)]
    try:
        arrays.append(ah.USMArray((8,), dtype="f4", buffer="shared", buffer_ctor_kwargs={"alignment": 64}))
    except Exception as error:
        print(f"no shared USM: {error}")
    for array in arrays:
        np.asarray(array)[:] = range(8)
    return arrays


def run(library, module):
    """Test all rows. Print the rows that fail, and return their number."""
    wrong = 0
    for row in library.rows:
        try:
            if isinstance(row, Out):
                for memory in sources():
                    check_out(row, memory)
            else:
                check(row, module)
        except Exception:
            wrong += 1
            print(f"{library.name}: {row.what}", file=sys.stderr)
            traceback.print_exc()
    return wrong


def main(name):
    library = BY_NAME[name]
    os.environ.update(library.environment)
    try:
        module = importlib.import_module(library.module)
    except ImportError as error:
        print(f"not installed: {error}")
        os._exit(MISSING)
    wrong = run(library, module)
    print(importlib.metadata.version(library.distribution) if library.distribution else platform.python_version())
    for child in multiprocessing.active_children():  # a manager process would keep stdout open
        child.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if wrong else 0)  # skips the cleanup, in which taichi and others crash


if __name__ == "__main__":
    main(sys.argv[1])
