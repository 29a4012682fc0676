"""Exchange large USMArrays and ndarrays in alternation between two processes, for benchmarks/clusters.py."""

import json
import sys
import time

import numpy as np
from mpi4py import MPI

import arrayhub

from .measure import summary
from .peaks import ROUNDS, growth

COMM = MPI.COMM_WORLD


def exchange(array):
    """Send an array from the first process to the second. Return the seconds until both processes have finished."""
    COMM.Barrier()
    start = time.perf_counter()
    COMM.Send(array, dest=1) if COMM.rank == 0 else COMM.Recv(array, source=0)
    COMM.Barrier()
    return time.perf_counter() - start


def strided_of_ours(x):
    return exchange(arrayhub.transport.as_mpi(x))


def strided_of_numpy(a):
    """Send a strided array through compact copies, as most programs do instead of defining a derived datatype."""
    COMM.Barrier()
    start = time.perf_counter()
    if COMM.rank == 0:
        COMM.Send(np.ascontiguousarray(a), dest=1)
    else:
        compact = np.empty(a.shape)
        COMM.Recv(compact, source=0)
        a[...] = compact
    COMM.Barrier()
    return time.perf_counter() - start


def lower_case(x):
    COMM.Barrier()
    start = time.perf_counter()
    COMM.send(x, dest=1) if COMM.rank == 0 else COMM.recv(source=0)
    COMM.Barrier()
    return time.perf_counter() - start


def row(way, peer, ours, theirs, x, a, rounds, at_most):
    mine, others = [], []
    for k in range(rounds + 1):
        turns = [(mine, ours, x), (others, theirs, a)]
        for times, run, array in turns if k % 2 else reversed(turns):
            times.append(run(array) * 1e9)
    # The first round is dropped, because it allocates MPI's own buffers.
    return {"way": way, "peer": peer, "at_most": at_most, **summary(mine[1:], others[1:])}


def main(rounds, megabytes):
    n = megabytes * 125_000  # elements of float64
    a, wide = np.ones(n), np.ones((5000, 2 * n // 5000))[:, : n // 5000]
    # Both arrays share memory, because the choice of pages affects the time more than the call.
    x, wide_of_ours = arrayhub.asarray(a), arrayhub.asarray(wide)
    found = [
        row("mpi4py: Send", "the same call with an ndarray", exchange, exchange, x, a, rounds, 1.02),
        row("mpi4py: Send of half of each row", "a compact copy on both sides", strided_of_ours, strided_of_numpy,
            wide_of_ours, wide, rounds, None),
        row("mpi4py: send (pickle)", "the same call with an ndarray", lower_case, lower_case, x, a, rounds, 1.05),
    ]  # fmt: skip
    peaks = [
        (f"mpi4py: {way}", *(least_growth(act, array) for array in (x, a)))
        for way, act in (("Send", exchange), ("send (pickle)", lower_case))
    ]
    if COMM.rank == 0:
        print(json.dumps({"rows": found, "peaks": peaks}))


def least_growth(act, array):
    """Return the minimum over several rounds of the increase in peak memory, summed over both processes."""
    return min(COMM.allreduce(growth(act, array)) for _ in range(ROUNDS))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
