"""Host memory that other processes can map: anonymous files in memory (Linux: memfd_create(2)).

An anonymous file does not have a name in the file system. The kernel frees the file once no process maps it or holds a
descriptor of it, also after `kill -9`. `arrayhub.ipc_handle` passes the descriptor to other processes.

The file is sealed against changes of its size (`F_SEAL_SHRINK`), because an access to a mapped page beyond the end of a
file crashes the process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from _thread import RLock
from collections.abc import Callable
from typing import Any

import numpy as np

from arrayhub._core.hooks import hooks

_live: weakref.WeakSet[SharedSegment] = weakref.WeakSet()
_changing = RLock()  # a finalizer may look up a segment while its thread adds one


class SharedSegment:
    """Mapping of an anonymous file. The mapping and the file descriptor are closed when the object is freed.

    Attributes
    ----------
    descriptor : int
        File descriptor. A read-only mapping has a read-only descriptor.
    bytes : numpy.memmap
        The mapped bytes.
    address : int
        Address of the first byte.
    writable : bool
    """

    __slots__ = ("__weakref__", "address", "bytes", "descriptor", "writable")

    def __init__(self, descriptor: int, writable: bool) -> None:
        """Map the complete file of `descriptor`, and take ownership of the descriptor."""
        self.descriptor, self.writable = descriptor, writable
        # The path is valid in all processes of the user. joblib reads it from the memmap.
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self.bytes = np.memmap(path, np.uint8, "r+" if writable else "r")
        self.address = self.bytes.ctypes.data  # not __array_interface__, in which NumPy crashes if memory is exhausted
        with _changing:
            _live.add(self)
        hooks.transport.register_reduction()

    @property
    def base(self) -> np.memmap[Any, np.dtype[np.uint8]] | None:
        """The memmap, by which joblib maps the arguments of its tasks.

        None in processes started by multiprocessing or joblib.

        joblib would also map the results of a worker, which usually frees them before the caller has mapped them.
        """
        processes = sys.modules.get("multiprocessing.process")
        return self.bytes if processes is None or processes.parent_process() is None else None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.bytes.shape,
            "typestr": "|u1",
            "data": (self.address, not self.writable),
            "version": 3,
        }

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # `close` is a default value, because at the end of the process `os.close` may not exist any more.
        if hasattr(self, "descriptor"):
            close(self.descriptor)

    def __repr__(self) -> str:
        access = "writable" if self.writable else "read-only"
        return f"<shared memory of {self.bytes.size} bytes at {self.address:#x}, {access}>"


# Constants of linux/memfd.h and linux/fcntl.h. An interpreter that was compiled with glibc before 2.27 (conda-forge's,
# and those of uv until 2026) has neither these names nor os.memfd_create, although the machine's C library has the
# function: https://github.com/astral-sh/uv/issues/15081
_MFD_CLOEXEC, _MFD_ALLOW_SEALING = 0x1, 0x2
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW = 0x1, 0x2, 0x4


def new_segment(nbytes: int) -> SharedSegment:
    """Return new shared memory, filled with zeros.

    Raises
    ------
    OSError
        The operating system does not support anonymous files in memory.
    MemoryError
        The memory is exhausted.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if not hasattr(libc, "memfd_create"):
        raise OSError("memory: 'shared_memory' requires Linux (memfd_create); accepted here: 'cpu'")
    import fcntl  # not on Windows

    try:
        descriptor: int = libc.memfd_create(b"arrayhub", _MFD_CLOEXEC | _MFD_ALLOW_SEALING)
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        try:
            os.ftruncate(descriptor, max(nbytes, 1))
            fcntl.fcntl(descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_SEAL)
        except BaseException:
            os.close(descriptor)
            raise
        return SharedSegment(descriptor, True)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"cannot allocate {nbytes} bytes of shared memory: {error}") from error


def received_segment(descriptors: list[int], writable: bool) -> SharedSegment:
    """Map the shared memory that another process has sent. The function takes ownership of the descriptors.

    Raises
    ------
    ValueError
        There is not exactly one descriptor, or the file can shrink.
    OSError
        The file cannot be mapped with this access.
    """
    try:
        if len(descriptors) != 1:
            raise ValueError(f"{len(descriptors)} descriptors; accepted: 1")
        import fcntl  # not on Windows

        if fcntl.fcntl(descriptors[0], _F_GET_SEALS) & _F_SEAL_SHRINK == 0:
            raise ValueError("the size of its file can change")
        return SharedSegment(descriptors.pop(), writable)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def segment_at(address: int, nbytes: int) -> SharedSegment | None:
    """Return the shared memory that contains a range of addresses, or None."""
    with _changing:
        segments = list(_live)
    for segment in segments:
        if segment.address <= address and address + nbytes <= segment.address + segment.bytes.size:
            return segment
    return None


def duplicate_descriptor(segment: SharedSegment, writable: bool) -> int:
    """Return a new descriptor of the file. With a read-only one, the file cannot be mapped for writing."""
    if writable:
        return os.dup(segment.descriptor)
    return os.open(f"/proc/self/fd/{segment.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
