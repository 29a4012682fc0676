"""Compare pickles, copies, dask's tokens and joblib's hashes of USMArrays with those of NumPy arrays of the same size.

``clusters`` measures dask, ray, joblib and MPI with several processes.
"""

import copy
import pickle

import numpy as np

import arrayhub

from .measure import Result, Timed, compare
from .rows import Row

LARGE = 25_000_000  # elements of float64: 200 MB

SMALL_ROWS = (
    Row("pickle.dumps, 10 elements, protocol 4", "pickle.dumps(u, 4)", "pickle.dumps(a, 4)", 2.0),
    Row("pickle.dumps, 10 elements, protocol 5", "pickle.dumps(u, 5)", "pickle.dumps(a, 5)", 2.0),
    Row("pickle.loads, 10 elements, protocol 5", "pickle.loads(u_5)", "pickle.loads(a_5)", None),
    Row("copy.deepcopy, 10 elements", "copy.deepcopy(u)", "copy.deepcopy(a)", None),
    Row("dumps out of band, 200 MB", "apart(large_u)", "apart(large_a)", None),
    Row("loads out of band, 200 MB", "pickle.loads(u_apart, buffers=u_bytes)",
        "pickle.loads(a_apart, buffers=a_bytes)", None),
)  # fmt: skip
# Limits in nanoseconds of rows whose time does not depend on the size of the array.
MOST = {"dumps out of band, 200 MB": 20_000, "loads out of band, 200 MB": 20_000}
LARGE_ROWS = (
    Row("dumps in band, 200 MB", "pickle.dumps(large_u, 5)", "pickle.dumps(large_a, 5)", 1.05),
    Row("loads in band, 200 MB", "pickle.loads(large_u_5)", "pickle.loads(large_a_5)", 1.05),
    Row("dumps out of band, 200 MB of 400 strided", "apart(strided_u)", "apart(strided_a)", 1.1),
    Row("copy.deepcopy, 200 MB", "copy.deepcopy(large_u)", "copy.deepcopy(large_a)", 1.1),
    Row("joblib.hash, 200 MB", "joblib.hash(large_u)", "joblib.hash(large_a)", 1.1, ("joblib",)),
    Row("dask's token, 200 MB", "tokenize(large_u)", "tokenize(large_a)", None, ("dask",)),
)


def apart(array):
    """Pickle an array without its elements: the out-of-band buffers are dropped."""
    return pickle.dumps(array, 5, buffer_callback=_dropped)


def _dropped(buffer):
    return None


def names():
    a, large, wide = np.arange(10.0), np.zeros(LARGE), np.zeros((5000, 2 * LARGE // 5000))
    large[:] = 1  # written, so that timings exclude page faults
    wide[:] = 1
    found = {"pickle": pickle, "copy": copy, "apart": apart, "a": a, "u": arrayhub.asarray(a)}
    for letter, array in (("a", large), ("u", arrayhub.asarray(large))):
        buffers = []
        found[f"{letter}_apart"] = pickle.dumps(array, 5, buffer_callback=buffers.append)
        found |= {f"large_{letter}": array, f"{letter}_bytes": buffers, f"{letter}_5": pickle.dumps(found[letter], 5)}
        found[f"large_{letter}_5"] = pickle.dumps(array, 5)
    return found | {"strided_a": wide[:, ::2], "strided_u": arrayhub.asarray(wide[:, ::2])}


def joblib():
    import joblib

    return {"joblib": joblib}


def dask():
    from dask.base import tokenize

    return {"tokenize": tokenize}


def engines(options):
    """Measure each row. Yield a `Result`, or the name of a row and the reason why it is skipped."""
    present, absent = names(), {}
    for library in (joblib, dask):
        try:
            present |= library()
        except ImportError as error:
            absent[library.__name__] = f"{type(error).__name__}: {error}"
    for table, how in ((SMALL_ROWS, {}), (LARGE_ROWS, {"unrolled": 1})):
        for row in table:
            if any(need in absent for need in row.needs):
                yield f"{row.way} beside {row.peer}", absent[row.needs[0]]
                continue
            ours, peer = (Timed(statement, present, **how) for statement in (row.ours, row.peer))
            few = {"least": 1} if how else {}
            timing = compare(ours, peer, options.repeat if not how else min(options.repeat, 7), options.sample, **few)
            yield Result("engines", row.way, row.peer, at_most=row.at_most, **timing)
            if row.way in MOST:
                taken, most = timing["ours_ns"], MOST[row.way]
                yield "engines", f"{row.way}: {taken / 1e3:.1f} µs (limit: {most / 1e3:.0f} µs)", taken <= most
