"""Slow work on CUDA streams, so that a missing wait leads to wrong elements.

The driver is called directly, because the library under test may be the only installed GPU library.
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html
"""

import ctypes
from typing import Any

from arrayhub.runtimes import CUDA_FILE

LEGACY, PER_THREAD = 1, 2  # default streams
_NON_BLOCKING = 1
_MICROSECONDS = 30_000


def new_stream() -> int:
    """Return the handle of a new stream that does not wait for default streams. The stream is never destroyed."""
    handle = ctypes.c_void_p()
    _call("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(_NON_BLOCKING))
    return int(handle.value or 0)


def delay(stream: int) -> None:
    """Keep a stream busy for 30 ms."""
    # Use a C function, because a Python callback would need the GIL.
    wait = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
    _call("cuLaunchHostFunc", ctypes.c_void_p(stream), wait, ctypes.c_void_p(_MICROSECONDS))


def synchronize() -> None:
    """Wait for all work on the device."""
    _call("cuCtxSynchronize")


def copy(target: int, source: int, nbytes: int, stream: int) -> None:
    """Enqueue a copy between two device addresses on a stream."""
    arguments = (ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(nbytes), ctypes.c_void_p(stream))
    _call("cuMemcpyAsync", *arguments)


def _call(name: str, *arguments: Any) -> None:
    error = getattr(ctypes.CDLL(CUDA_FILE), name)(*arguments)
    if error != 0:
        raise RuntimeError(f"arrayhub.testing: {name} failed with the error {error} of the CUDA driver")
