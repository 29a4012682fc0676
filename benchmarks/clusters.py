"""Compare the time and peak memory of large arrays in dask, ray, joblib and MPI with those of NumPy arrays."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import arrayhub

from . import peaks
from .measure import Result, compare

MOST_ROUNDS = 11  # fewer than in other groups, because a call takes up to a second
HERE = Path(__file__).parent


def fresh(megabytes):
    """Return a new ndarray, whose memory has been written so that timings exclude page faults."""
    return np.ones(megabytes * 125_000)


def fresh_of_ours(megabytes):
    return arrayhub.asarray(fresh(megabytes))


def makers(options):
    """Return the functions that create a USMArray and an ndarray."""
    return [functools.partial(make, options.megabytes) for make in (fresh_of_ours, fresh)]


def timed(act, prepare=lambda: None, clean=lambda found: None):
    """Return a function for `compare` that calls ``act(prepare())`` n times, and returns the seconds spent in `act`."""

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


def slow_pid():
    """Return the id of this process after a delay, so that other worker processes receive the next tasks."""
    time.sleep(0.2)
    return os.getpid()


@contextlib.contextmanager
def dask_cluster():
    """Yield the client of a cluster with two worker processes, and the workers' addresses."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        arrayhub.transport.register_dask(client)
        yield client, list(client.scheduler_info()["workers"])


def dask_rows(options):
    from distributed import wait

    with dask_cluster() as (client, (first, second)):
        both = [
            timed(lambda x: client.scatter(x, workers=[first], hash=False), make, lambda future: future.release())
            for make in makers(options)
        ]
        yield measured("dask: client.scatter", "the same call with an ndarray", *both, options, 1.3)

        def on_first(make):
            future = client.submit(make, workers=[first], pure=False)
            wait(future)
            return future

        both = [timed(client.gather, lambda make=make: on_first(make)) for make in makers(options)]
        yield measured("dask: client.gather", "the same call with an ndarray", *both, options, 1.3)

        def across(future):
            return client.submit(length, future, workers=[second], allow_other_workers=False, pure=False).result()

        both = [timed(across, lambda make=make: on_first(make)) for make in makers(options)]
        yield measured("dask: worker to worker", "the same call with an ndarray", *both, options, 1.3)

        processes = [os.getpid(), *client.run(os.getpid).values()]
        scatter = functools.partial(client.scatter, workers=[first], hash=False)
        for what, act, given in (
            ("dask: client.scatter", scatter, lambda make: make()),
            ("dask: client.gather", client.gather, on_first),
            ("dask: worker to worker", across, on_first),
        ):
            prepares = [functools.partial(given, make) for make in makers(options)]
            yield peaks.beside(what, act, prepares, processes)


# --------------------------------------------------------------------------------------------------------------- ray


def ray_rows(options):
    import ray

    ray.init(num_cpus=1, object_store_memory=2 * 10**9, include_dashboard=False, log_to_driver=False)
    try:
        both = [timed(ray.put, make) for make in makers(options)]
        yield measured("ray.put", "the same call with an ndarray", *both, options, 1.1)
        both = [timed(ray.get, lambda make=make: ray.put(make())) for make in makers(options)]
        yield measured("ray.get", "the same call with an ndarray", *both, options, 1.2)

        processes = [os.getpid(), ray.get(ray.remote(slow_pid).remote())]
        yield peaks.beside("ray.put", ray.put, makers(options), processes)
        prepares = [lambda make=make: ray.put(make()) for make in makers(options)]
        yield peaks.beside("ray.get", ray.get, prepares, processes)
        task = ray.remote(length)
        yield peaks.beside("ray: a task's argument", lambda x: ray.get(task.remote(x)), prepares, processes)
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
        yield measured("joblib.Parallel, 2 tasks on one array", "the same call with an ndarray", *both, options, 1.1)

        processes = {os.getpid(), *parallel(joblib.delayed(slow_pid)() for _ in range(4))}

        def two_tasks(x):
            return parallel(joblib.delayed(length)(x) for _ in range(2))

        yield peaks.beside("joblib.Parallel, 2 tasks on one array", two_tasks, makers(options), processes)


# --------------------------------------------------------------------------------------------------------------- MPI


def mpi_rows(options):
    """Run benchmarks/mpi_exchange.py in two processes. The first process prints the results as JSON."""
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
    found = json.loads(done.stdout.splitlines()[-1])
    for row in found["rows"]:
        yield Result("clusters", **{**row, "spread": tuple(row["spread"])})
    for what, mine, theirs in found["peaks"]:
        yield peaks.fact(what, mine, theirs)


ENGINES = (dask_rows, ray_rows, joblib_rows, mpi_rows)


def clusters(options):
    """Measure each installed engine. Yield a `Result`, a fact, or an engine and the reason why it is skipped."""
    for rows in ENGINES:
        try:
            yield from rows(options)
        except (ImportError, RuntimeError) as error:
            yield rows.__name__, f"{type(error).__name__}: {error}"
    yield from peaks.alone(makers(options))
