"""Table of the exports that depend on the consumer, `QUIRKS`, with a row for each consumer and fault.

Neither the protocols nor pickle name the consumer. A row exists only if two conditions hold:

1. The consumer would read wrong values, would fail an assertion, would end or hang a process, or would treat equal
   arrays as different.
2. The consumer does not offer a hook for the type in time.

The modules of the calling Python code then identify the consumer. docs/private_names.md lists these modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple


class Quirk(NamedTuple):
    """Request of a consumer, for which the export differs."""

    consumer: str
    request: str
    callers: tuple[str, ...]  # modules of the calling Python code, or part of the path of the calling C library
    fault: str  # effect of the usual export on this consumer
    answer: str  # result that this consumer receives instead
    issue: str


QUIRKS = (
    Quirk(
        "torch",
        "__dlpack__ of negative strides",
        ("torch.utils.dlpack",),
        "ends the process",
        "BufferError",
        "https://github.com/pytorch/pytorch/issues/188023",
    ),
    Quirk(
        "torch",
        "__dlpack__ of read-only memory",
        ("torch.utils.dlpack",),
        "makes a writable tensor",
        "a warning",
        "https://github.com/pytorch/pytorch/issues/44027",
    ),
    Quirk(
        "torch",
        "a buffer of plain bytes",
        ("libtorch_python",),
        "reads them as elements of another type",
        "BufferError and a warning",
        "https://github.com/pytorch/pytorch/issues/188128",
    ),
    Quirk(
        "awkward",
        "__dlpack_device__ of host-readable USM",
        ("awkward.operations.ak_from_dlpack", "awkward._nplikes.array_module"),
        "raises an AssertionError without a message for every device that awkward does not list",
        "the host's device",
        "https://github.com/scikit-hep/awkward/pull/2649",
    ),
    Quirk(
        "multiprocessing",
        "a pickle of mapped memory",
        ("multiprocessing.reduction",),
        "copies the memory, so that the sender does not see writes of the receiver",
        "the name of the memory",
        "https://github.com/numpy/numpy/issues/25561",
    ),
    Quirk(
        "joblib",
        "a pickle",
        ("joblib.hashing",),
        "returns different hashes for equal elements of different access or padding",
        "a pickle that contains neither",
        "https://github.com/joblib/joblib/pull/1540",
    ),
    Quirk(
        "dask",
        "a pickle of device memory, on arrival",
        ("distributed.scheduler",),
        "restores the arrays of a graph in the scheduler's process, whose machine may lack the device",
        "a host array that keeps the note of its device",
        "https://github.com/dask/distributed/issues/6924",
    ),
    Quirk(
        "dask",
        "a pickle that cannot be made",
        ("distributed.protocol.pickle",),
        "waits, or sends again without end, and loses the error",
        "a stand-in that raises the error where it is used",
        "https://github.com/dask/distributed/issues/1347",
    ),
    Quirk(
        "dask",
        "a pickle that cannot be restored",
        ("distributed.actor", "distributed.scheduler", "distributed.worker", "distributed.comm.utils"),
        "waits without end, and takes the next message for the answer to another request",
        "a stand-in that raises the error where it is used",
        "https://github.com/dask/distributed/issues/7060",
    ),
    Quirk(
        "process pools",
        "a pickle that cannot be restored",
        ("multiprocessing.pool", "concurrent.futures.process"),
        "ends the thread or process that reads, so that the pool hangs",
        "a stand-in that raises the error where it is used",
        "https://github.com/python/cpython/issues/79492",
    ),
)


def quirk(consumer: str, request: str) -> Quirk:
    """Return the row of a consumer and a request."""
    return next(row for row in QUIRKS if (row.consumer, row.request) == (consumer, request))


def calling() -> Iterator[tuple[str, str]]:
    """Yield module and function of the calling Python code, starting at the innermost frame.

    Frames of arrayhub and of Python's pickler are skipped. A thread started by C code may not have other Python frames.
    """
    frame: FrameType | None = sys._getframe().f_back
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if isinstance(module, str) and module != "pickle" and module.partition(".")[0] != "arrayhub":
            yield module, frame.f_code.co_name
        frame = frame.f_back


def is_called_by(row: Quirk) -> bool:
    """Return whether the nearest calling Python code is in a module of a row."""
    return next(calling(), ("", ""))[0] in row.callers
