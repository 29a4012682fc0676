"""Memory that other processes of the machine can map, in the pickles of multiprocessing.

multiprocessing sends objects to processes on the same machine. Its pickles of such memory therefore contain the
location of the memory, and both processes share the elements. All other pickles contain the elements.

There are two kinds of location:

- **A file name**, of mapped files and ``multiprocessing.shared_memory``. On Linux, ``/proc/self/maps`` lists the file
  of each mapped address. The pickle also contains the inode number, to detect a different file of the same name.
- **A file descriptor** of ``memory="shared_memory"``, which does not have a name. multiprocessing passes the
  descriptor: to a new process when it starts, and otherwise over a socket when the receiver reads the pickle.
"""

from __future__ import annotations

import mmap
import os
import pickle
import stat
import weakref
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from arrayhub._core.errors import PASSES_ON
from arrayhub.runtimes.shared_segment import SharedSegment, duplicate_descriptor, received_segment, segment_at
from arrayhub.transport.codec import state_error

_MAPS = "/proc/self/maps"
_DEEPEST = 16  # maximum length of the chain of owners


class Name(NamedTuple):
    """Location of an array's bytes in a file."""

    path: str
    device: int
    inode: int
    offset: int
    nbytes: int
    writable: bool


class Passed:
    """Location of a segment of shared memory. Unpickling it maps the segment and returns its bytes."""

    __slots__ = ("segment", "writable")

    def __init__(self, segment: SharedSegment, writable: bool) -> None:
        self.segment, self.writable = segment, writable

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing.context import get_spawning_popen
        from multiprocessing.reduction import DupFd

        popen = get_spawning_popen()
        descriptor = duplicate_descriptor(self.segment, self.writable)
        try:
            return map_segment, (DupFd(descriptor), self.writable)
        finally:
            if popen is None:  # DupFd has duplicated the descriptor
                os.close(descriptor)
            else:  # the new process inherits the descriptor itself
                weakref.finalize(popen, os.close, descriptor)


def map_segment(sent: Any, writable: bool) -> npt.NDArray[np.uint8]:
    """Map the shared memory whose descriptor multiprocessing has passed, and return its bytes.

    Raise UnpicklingError if the sender has ended, or a process has already received this message.
    """
    try:
        return np.asarray(received_segment([sent.detach()], writable))
    except PASSES_ON:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(
            f"arrayhub: the array is in shared memory, which cannot be mapped here: {type(error).__name__}: {error}."
            " The sender must run until the receiver has the array, and only one process can read the message; send"
            " x.copy()"
        ) from error


def _find_owner(owner: Any, types: tuple[type, ...]) -> Any:
    """Return the first object of one of `types` in a chain of owners, or None."""
    for _ in range(_DEEPEST):
        if owner is None or isinstance(owner, types):
            break
        try:
            owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
        except ValueError:  # a memoryview that SharedMemory.close() has released before it failed
            return None
    return owner if isinstance(owner, types) else None


def locate(owner: object, address: int, nbytes: int, writable: bool) -> tuple[Any, int] | None:
    """Return the location of a range of memory, and the offset of the range, for a pickle of multiprocessing.

    Return None if no owner maps the memory, for private (``mode="c"``) and anonymous mappings, for mappings of deleted
    files, and for shared memory that a process started by multiprocessing sends in a message, because the memory may
    end with this process.
    """
    segment = segment_at(address, nbytes) if nbytes else None
    if segment is not None:
        return (Passed(segment, writable), address - segment.address) if _may_pass_descriptors() else None
    mapping = _find_mapping(address, nbytes) if nbytes and _find_owner(owner, (mmap.mmap,)) is not None else None
    if mapping is None:
        return None
    start, permissions, offset, inode, path = mapping
    try:
        found = os.stat(path)
    except OSError:
        return None
    if permissions[3] != "s" or found.st_ino != inode:
        return None
    return tuple(Name(path, found.st_dev, inode, offset + address - start, nbytes, permissions[1] == "w")), 0


def _may_pass_descriptors() -> bool:
    from multiprocessing import parent_process
    from multiprocessing.context import get_spawning_popen

    return parent_process() is None or get_spawning_popen() is not None


def inode_of(owner: object) -> int | None:
    """Return the inode number of the segment that joblib may map, or None if no owner is such a segment."""
    found = _find_owner(owner, (SharedSegment, np.memmap))
    return os.fstat(found.descriptor).st_ino if isinstance(found, SharedSegment) and found.base is not None else None


def is_of_descriptor(owner: object) -> bool:
    """Return whether joblib has mapped the memory from a descriptor of another process.

    The other process may close the descriptor at any time.
    """
    found = _find_owner(owner, (SharedSegment, np.memmap))
    return isinstance(found, np.memmap) and str(found.filename).startswith("/proc/")


def check_inode(data: object, inode: object) -> None:
    """Raise UnpicklingError if joblib has mapped another file than the segment with this inode number.

    joblib opens the memory of the sender by a path in ``/proc``, which names another file after the memory was freed.
    """
    if not isinstance(data, np.ndarray) or not is_of_descriptor(data):
        return
    mapping = _find_mapping(data.ctypes.data, data.nbytes)
    if mapping is None or mapping[3] != inode:
        raise pickle.UnpicklingError(
            "arrayhub: the array was in shared memory that has been freed. Keep the array until the tasks have ended,"
            " or send x.copy()"
        )


def _find_mapping(address: int, nbytes: int) -> tuple[int, str, int, int, str] | None:
    try:
        with open(_MAPS, "rb") as lines:  # file names are bytes
            for line in lines:
                start, end = (int(part, 16) for part in line.partition(b" ")[0].split(b"-"))
                if start <= address and address + nbytes <= end:
                    _, permissions, offset, _, inode, *path = line.rstrip(b"\n").split(None, 5)
                    if not path:
                        return None
                    name = os.fsdecode(path[0].replace(b"\\012", b"\n"))
                    return start, permissions.decode(), int(offset, 16), int(inode), name
    except OSError:
        pass
    return None


def map_file(data: tuple[Any, ...]) -> npt.NDArray[np.uint8]:
    """Map the part of a file that a received name specifies.

    Raise UnpicklingError if the file does not exist, a different file has the same name, or the value is not a name.
    """
    if [type(part) for part in data] != [str, int, int, int, int, bool]:
        raise state_error("data", data, f"bytes, or ({', '.join(Name._fields)})")
    name = Name(*data)
    if name.offset < 0 or name.nbytes <= 0:
        raise state_error("data", data, "an offset of 0 or more, and at least one byte")
    try:
        return _map_range(name)
    except (AttributeError, OSError, ValueError, OverflowError) as error:  # AttributeError: Windows lacks the flags
        raise pickle.UnpicklingError(
            f"arrayhub: the array is in {name.path}, which cannot be mapped here: {error}. Keep shared memory and files"
            " until the receiver has the array, or send x.copy()"
        ) from error


def _map_range(name: Name) -> npt.NDArray[np.uint8]:
    # O_NONBLOCK: do not wait for the other end of a pipe.
    handle = os.open(name.path, (os.O_RDWR if name.writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if (found.st_dev, found.st_ino) != (name.device, name.inode):
            raise ValueError("a different file has this name now")
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is a device or a pipe, not a file")
        skipped = name.offset % mmap.ALLOCATIONGRANULARITY
        access = mmap.ACCESS_WRITE if name.writable else mmap.ACCESS_READ
        mapping = mmap.mmap(handle, name.nbytes + skipped, access=access, offset=name.offset - skipped)
    finally:
        os.close(handle)
    return np.frombuffer(mapping, np.uint8, name.nbytes, skipped)
