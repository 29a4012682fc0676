"""Exports that depend on the consumer: `QUIRKS` has one row for each fault of a consumer.

A row exists only if two conditions hold:

1. With the usual export, the consumer would read wrong values, write to read-only memory, lose writes or errors, fail
   an assertion, end or hang a process, treat equal arrays as different, or reject an array that it accepts from NumPy.
2. The consumer does not have a hook that could be registered for USMArray before the export.

Neither the protocols nor pickle identify the consumer. This package identifies the consumer by the module of the
calling Python code, and torch's C code by the native stack. docs/private_names.md lists the modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple


class Quirk(NamedTuple):
    """An export that is different for one consumer."""

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
        "creates a writable tensor",
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
        "polars",
        "__arrow_c_array__ for a DataFrame",
        ("polars._utils.pycapsule",),
        "rejects an array that is not a struct, although it accepts a NumPy array",
        "a struct with one field for each column",
        "https://github.com/pola-rs/polars/issues/23068",
    ),
    Quirk(
        "multiprocessing",
        "a pickle of mapped memory",
        ("multiprocessing.reduction",),
        "receives a copy, so the sender does not see the receiver's writes",
        "the name of the shared memory",
        "https://github.com/numpy/numpy/issues/25561",
    ),
    Quirk(
        "joblib",
        "a pickle",
        ("joblib.hashing",),
        "hashes equal arrays differently if their access or padding differs",
        "a pickle without access and padding",
        "https://github.com/joblib/joblib/pull/1540",
    ),
    Quirk(
        "dask",
        "a pickle of device memory that is loaded",
        ("distributed.scheduler",),
        "unpickles the arrays of a graph in the scheduler, whose machine may lack the device",
        "a host array that records the original device",
        "https://github.com/dask/distributed/issues/6924",
    ),
    Quirk(
        "dask",
        "a pickle that cannot be made",
        ("distributed.protocol.pickle",),
        "hangs or resends forever, and loses the error",
        "a placeholder that raises the error on first use",
        "https://github.com/dask/distributed/issues/1347",
    ),
    Quirk(
        "dask",
        "a pickle that cannot be restored",
        ("distributed.actor", "distributed.scheduler", "distributed.worker", "distributed.comm.utils"),
        "hangs, and treats the next message as the reply to another request",
        "a placeholder that raises the error on first use",
        "https://github.com/dask/distributed/issues/7060",
    ),
    Quirk(
        "process pools",
        "a pickle that cannot be restored",
        ("multiprocessing.pool", "concurrent.futures.process"),
        "ends the thread or process that unpickles, so the pool hangs",
        "a placeholder that raises the error on first use",
        "https://github.com/python/cpython/issues/79492",
    ),
)


def quirk(consumer: str, request: str) -> Quirk:
    """Return the row of a consumer and a request."""
    return next(row for row in QUIRKS if (row.consumer, row.request) == (consumer, request))


def calling() -> Iterator[tuple[str, str]]:
    """Yield the module and function of each calling Python frame, innermost first.

    Frames of arrayhub and of Python's pickler are skipped. Other frames may be missing, as in a thread started by C.
    """
    frame: FrameType | None = sys._getframe().f_back
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if isinstance(module, str) and module != "pickle" and module.partition(".")[0] != "arrayhub":
            yield module, frame.f_code.co_name
        frame = frame.f_back


def is_called_by(row: Quirk) -> bool:
    """Return whether the first frame that `calling` yields belongs to one of the row's modules."""
    return next(calling(), ("", ""))[0] in row.callers
