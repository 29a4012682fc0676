"""Large arrays through real engines beside NumPy's of the same bytes: time, and the most memory a process takes."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import arrayhub

from .measure import Result, compare

MOST_ROUNDS = 11  # a call takes up to a second
HERE = Path(__file__).parent


def fresh(megabytes):
    """Return an array of NumPy's whose memory has been touched, and which no engine has seen."""
    return np.ones(megabytes * 125_000)


def fresh_of_ours(megabytes):
    return arrayhub.asarray(fresh(megabytes))


def makers(options):
    """Return the functions that make one of our arrays, and one of NumPy's."""
    return [functools.partial(make, options.megabytes) for make in (fresh_of_ours, fresh)]


def timed(act, prepare=lambda: None, clean=lambda found: None):
    """Return what `compare` calls: n times `act` of what `prepare` gives, of which the first alone is timed."""

    def seconds(n):
        total = 0.0
        for _ in range(n):
            given = prepare()
            start = time.perf_counter()
            found = act(given)
            total += time.perf_counter() - start
            clean(found)
            del given, found
        return total

    return seconds


def measured(way, peer, ours, theirs, options, at_most):
    times = compare(ours, theirs, min(options.repeat, MOST_ROUNDS), 1e-9, least=1)
    return Result("clusters", way, peer, at_most=at_most, **times)


# -------------------------------------------------------------------------------------------------------------- dask


def length(array):
    return len(array)


@contextlib.contextmanager
def dask_cluster():
    """Yield a client of two workers in processes of their own, and the workers' addresses."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        arrayhub.register_dask(client)
        yield client, list(client.scheduler_info()["workers"])


def dask_rows(options):
    from distributed import wait

    with dask_cluster() as (client, (first, second)):
        both = [
            timed(lambda x: client.scatter(x, workers=[first], hash=False), make, lambda future: future.release())
            for make in makers(options)
        ]
        yield measured("dask: client.scatter", "the same of NumPy's array", *both, options, 1.3)

        def on_first(make):
            future = client.submit(make, workers=[first], pure=False)
            wait(future)
            return future

        both = [timed(client.gather, lambda make=make: on_first(make)) for make in makers(options)]
        yield measured("dask: client.gather", "the same of NumPy's array", *both, options, 1.3)

        def across(future):
            return client.submit(length, future, workers=[second], allow_other_workers=False, pure=False).result()

        both = [timed(across, lambda make=make: on_first(make)) for make in makers(options)]
        yield measured("dask: worker to worker", "the same of NumPy's array", *both, options, 1.3)


# --------------------------------------------------------------------------------------------------------------- ray


def ray_rows(options):
    import ray

    ray.init(num_cpus=1, object_store_memory=2 * 10**9, include_dashboard=False, log_to_driver=False)
    try:
        both = [timed(ray.put, make) for make in makers(options)]
        yield measured("ray.put", "the same of NumPy's array", *both, options, 1.1)
        both = [timed(ray.get, lambda make=make: ray.put(make())) for make in makers(options)]
        yield measured("ray.get", "the same of NumPy's array", *both, options, 1.2)
    finally:
        ray.shutdown()


# ------------------------------------------------------------------------------------------------------------ joblib


def joblib_rows(options):
    import joblib

    with joblib.Parallel(n_jobs=2) as parallel:
        parallel(joblib.delayed(length)([1]) for _ in range(2))
        both = [
            timed(lambda x: parallel(joblib.delayed(length)(x) for _ in range(2)), make) for make in makers(options)
        ]
        yield measured("joblib.Parallel, 2 tasks on one array", "the same of NumPy's array", *both, options, 1.1)


# --------------------------------------------------------------------------------------------------------------- MPI


def mpi_rows(options):
    """Two processes, which say in JSON how long each took; benchmarks/mpi_exchange.py is what they run."""
    import sysconfig

    import mpi4py.MPI  # noqa: F401

    launcher = Path(sysconfig.get_path("scripts"), "mpiexec")
    command = [launcher, "-n", "2", sys.executable, "-m", "benchmarks.mpi_exchange"]
    done = subprocess.run(
        [*map(str, command), str(min(options.repeat, MOST_ROUNDS)), str(options.megabytes)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": str(Path(arrayhub.__file__).parents[1])},
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "mpiexec failed")
    for row in json.loads(done.stdout.splitlines()[-1]):
        yield Result("clusters", **{**row, "spread": tuple(row["spread"])})


# ------------------------------------------------------------------------------------------------------- peak memory


def peak_of(act, make):
    """Return how much more memory than before this process had at most while it acted on a fresh array, in bytes."""
    array = make()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmHWM")
    found = act(array)
    del found
    return status("VmHWM") - before


def status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


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


PEAKS = {
    "pickle in band": in_band,
    "pickle out of band": out_of_band,
    "pickle out of band, strided": strided,
    "dask's frames": dask_frames,
    "joblib.dump and load": joblib_dumped,
}


def peaks(options):
    """Yield a fact per way: what it takes at most in a process of its own, and whether NumPy's array takes as much."""
    for what, act in PEAKS.items():
        sizes = []
        for make in makers(options):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                sizes.append(pool.submit(peak_of, act, make).result(timeout=300))
        mine, theirs = (size / 1e6 for size in sizes)
        yield "clusters", f"peak memory of {what}: {mine:.0f} MB, NumPy's array {theirs:.0f} MB", mine <= theirs + 2


ENGINES = (dask_rows, ray_rows, joblib_rows, mpi_rows)


def clusters(options):
    """Measure every engine that is installed; yield a `Result`, a fact, or an engine and why it is skipped."""
    for rows in ENGINES:
        try:
            yield from rows(options)
        except (ImportError, RuntimeError) as error:
            yield rows.__name__, f"{type(error).__name__}: {error}"
    yield from peaks(options)
