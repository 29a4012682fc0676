"""Settings of large copies: chunk size, number of pinned buffers and number of threads. `configure` describes them."""

import functools
import operator
import os

from arrayhub._core.errors import show

_MIB = 1 << 20
# Minimum of each setting. For smaller chunks, the latency of a copy exceeds the transfer time.
_LEAST = {"threads": 1, "chunk": 64 << 10, "buffers": 2}

_chosen: dict[str, int] = {}  # a missing name or 0: the default


@functools.cache
def _processors():
    """Return the number of processors that this process may run on. The number is determined once per process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads():
    """Return the setting. The default leaves two processors for the driver and the calling thread."""
    return _chosen.get("threads") or min(max(_processors() - 2, 1), 16)


def chunk():
    """Return the setting. The shared cache of fewer than 8 processors can hold a chunk of the default size."""
    return _chosen.get("chunk") or (32 if _processors() >= 8 else 8) * _MIB


def buffers():
    """Return the setting. More than 2 buffers evict each other from the processor's caches."""
    return _chosen.get("buffers") or 2


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
    given = {"threads": threads, "chunk": chunk, "buffers": buffers}
    wanted = {name: operator.index(value) for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        if value and value < _LEAST[name]:
            raise ValueError(
                f"configure: {name} is {show(value)}; accepted: {_LEAST[name]} or more, or 0 for the default"
            )
    _chosen.update(wanted)
