"""How large copies are cut up: bytes a chunk, staging buffers, threads. Chosen from the machine, and settable."""

import operator
import os

from arrayhub._core.errors import show

_MIB = 1 << 20
_SMALLEST_CHUNK = 64 << 10  # bytes; below it a copy is all latency

_chosen: dict[str, int | None] = {"threads": None, "chunk": None, "buffers": None}  # None: what the machine suggests


def processors():
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0))


def threads():
    """Threads that copy between host memory and staging buffers: the processors but two, which drive the copy."""
    return _chosen["threads"] or min(max(processors() - 2, 1), 16)


def chunk():
    """Bytes of one chunk, and of one staging buffer. Few processors share one cache, and gain by what fits in it."""
    return _chosen["chunk"] or (32 if processors() >= 8 else 8) * _MIB


def buffers():
    """How many staging buffers there are at most, so that ``buffers() * chunk()`` bounds what is held.

    One is filled while the other is emptied; more would only push each other out of the processor's caches.
    """
    return _chosen["buffers"] or 2


def configure(*, threads=None, chunk=None, buffers=None):
    """Set how large copies are cut up. What is not given stays as it is; 0 goes back to what the machine suggests.

    Parameters
    ----------
    threads : int, optional
        Threads that copy between host memory and staging buffers.
    chunk : int, optional
        Bytes of one chunk, at least 65536.
    buffers : int, optional
        Staging buffers of one chunk each, at least 2: one is filled while another is emptied.

    Raises
    ------
    ValueError
        A number below the least one; nothing is changed then.
    """
    given = {"threads": (threads, 1), "chunk": (chunk, _SMALLEST_CHUNK), "buffers": (buffers, 2)}
    wanted = {name: operator.index(value) for name, (value, _) in given.items() if value is not None}
    for name, value in wanted.items():
        least = given[name][1]
        if value and value < least:
            raise ValueError(f"configure: {name} is {show(value)}; accepted: {least} or more, or 0 for the default")
    _chosen.update(wanted)
