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
    call("cuStreamCreate", ctypes.byref(handle), _NON_BLOCKING)
    return int(handle.value or 0)


def delay(stream: int) -> None:
    """Keep a stream busy for 30 ms, by a C function, because a Python callback would need the GIL."""
    call("cuLaunchHostFunc", stream, ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p), _MICROSECONDS)


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver. Integers are passed with 64 bits."""
    converted = (ctypes.c_size_t(value) if isinstance(value, int) else value for value in arguments)
    error = getattr(ctypes.CDLL(CUDA_FILE), name)(*converted)
    if error != 0:
        raise RuntimeError(f"arrayhub.testing: {name} failed with the error {error} of the CUDA driver")
