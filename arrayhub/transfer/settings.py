"""Settings of large copies: chunk size, number of pinned buffers and number of threads."""

import functools
import operator
import os

from arrayhub._core.errors import show

_MIB = 1 << 20
_SMALLEST_CHUNK = 64 << 10  # bytes; for smaller copies, the latency of a copy exceeds the transfer time

_chosen: dict[str, int | None] = {"threads": None, "chunk": None, "buffers": None}  # None: the default


@functools.cache
def _processors():
    """Return the number of processors that this process may run on. The number is determined once per process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads():
    """Return the maximum number of threads that copy between host memory and pinned buffers, for CUDA.

    The default leaves two processors for the driver and the calling thread, and is at most 16.
    """
    return _chosen["threads"] or min(max(_processors() - 2, 1), 16)


def chunk():
    """Return the maximum size in bytes of a staging buffer, and of a piece that a device packs before the transfer.

    The default is 8 MiB for fewer than 8 processors, so that their shared cache can hold a chunk. Otherwise it is 32
    MiB.
    """
    return _chosen["chunk"] or (32 if _processors() >= 8 else 8) * _MIB


def buffers():
    """Return the maximum number of pinned buffers for CUDA. Each buffer has at most ``chunk()`` bytes.

    The threads of a copy divide each buffer among them.

    With the default of 2, one buffer is filled while the other is emptied. More buffers evict each other from the
    processor's caches.
    """
    return _chosen["buffers"] or 2


def configure(*, threads=None, chunk=None, buffers=None):
    """Configure large copies. Omitted settings do not change. 0 restores the default.

    Parameters
    ----------
    threads : int, optional
        Maximum number of threads that copy between host memory and pinned buffers, for CUDA.
    chunk : int, optional
        Maximum size in bytes of a staging buffer, and of a piece that a device packs before the transfer, at least
        65536.
    buffers : int, optional
        Maximum number of pinned buffers of one chunk each, for CUDA, at least 2: one is filled while another is
        emptied. A copy uses at most 8 buffers.

    Raises
    ------
    ValueError
        A value is below its minimum. No setting changes.

    Examples
    --------
    >>> arrayhub.transfer.configure(chunk=16 << 20, threads=4)
    >>> arrayhub.transfer.configure(chunk=0, threads=0)
    """
    given = {"threads": (threads, 1), "chunk": (chunk, _SMALLEST_CHUNK), "buffers": (buffers, 2)}
    wanted = {name: operator.index(value) for name, (value, _) in given.items() if value is not None}
    for name, value in wanted.items():
        least = given[name][1]
        if value and value < least:
            raise ValueError(f"configure: {name} is {show(value)}; accepted: {least} or more, or 0 for the default")
    _chosen.update(wanted)
