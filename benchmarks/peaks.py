"""Compare the peak memory of processes that transport a USMArray with the peak for a NumPy array."""

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

AT_MOST = 1.05  # ratio to the peak for a NumPy array
NOISE = 3_000_000  # bytes that a process may allocate for other purposes
ROUNDS = 5  # the minimum of the rounds is reported


def fact(what, mine, theirs):
    """Return a fact for the report that compares two peaks, given in bytes."""
    said = f"peak memory of {what}: {mine / 1e6:.0f} MB for a USMArray, and {theirs / 1e6:.0f} MB for an ndarray"
    if theirs > NOISE:
        said += f" (ratio {mine / theirs:.2f}, limit {AT_MOST})"
    return "clusters", said, mine <= AT_MOST * theirs + NOISE


def beside(what, act, prepares, processes):
    """Compare the peak memory of `act` for a USMArray and an ndarray.

    The two functions in `prepares` create the arrays. The peaks of `processes` are summed.
    """
    sizes = [[], []]
    for _ in range(ROUNDS):
        for peaks, prepare in zip(sizes, prepares, strict=True):
            peaks.append(growth(act, prepare(), processes))
    return fact(what, *map(min, sizes))


def growth(act, given, processes=("self",)):
    """Return the increase of the peak memory during a call in bytes, summed over `processes`."""
    gc.collect()
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5")  # reset the peak
    before = sum(map(peak, processes))
    found = act(given)
    after = sum(map(peak, processes))
    del found
    return after - before


def peak(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{process}/status lacks VmHWM")


# ------------------------------------------------------------------------------------- calls that need one process only


def in_band(x):
    import pickle

    return pickle.loads(pickle.dumps(x, 5))


def out_of_band(x):
    import pickle

    buffers = []
    stream = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(stream, buffers=buffers)


def strided(x):
    return out_of_band(x[::2])


def dask_frames(x):
    from distributed.protocol import deserialize, serialize

    return deserialize(*serialize(x))


def joblib_dumped(x):
    import tempfile

    import joblib

    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(x, f"{folder}/x")
        return joblib.load(f"{folder}/x")


ALONE = {
    "pickle in band": in_band,
    "pickle out of band": out_of_band,
    "pickle out of band, strided": strided,
    "dask's frames": dask_frames,
    "joblib.dump and load": joblib_dumped,
}


def of_one(act, make):
    return growth(act, make())


def alone(makers):
    """Yield the facts for calls in a single process. Each array is measured in a new process."""
    for what, act in ALONE.items():
        sizes = []
        for make in makers:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                sizes.append(pool.submit(of_one, act, make).result(timeout=300))
        yield fact(what, *sizes)
