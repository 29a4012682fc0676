"""Memory with a name in the file system: mapped files and ``multiprocessing.shared_memory``.

multiprocessing sends objects to processes on the same machine, which can map the same file. When multiprocessing
pickles named memory, the pickle therefore contains the file name, and both processes share the elements. All other
pickles contain the elements.

On Linux, ``/proc/self/maps`` lists the file of each mapped address. The pickle also contains the inode number, to
detect a different file of the same name.
"""

from __future__ import annotations

import mmap
import os
import pickle
import stat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from arrayhub._core.errors import show
from arrayhub.libraries.consumer_quirks import is_called_by, quirk

_MULTIPROCESSING = quirk("multiprocessing", "a pickle of mapped memory")
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


def name_of(address: int, nbytes: int, owner: object) -> tuple[Any, ...] | None:
    """Return the name of a range of memory if multiprocessing is pickling and the range has a name.

    Private (``mode="c"``) and anonymous mappings, and mappings of deleted files, do not have a name.
    """
    if nbytes == 0 or not _is_mapped(owner) or not is_called_by(_MULTIPROCESSING):
        return None
    mapping = _mapping_at(address, nbytes)
    if mapping is None:
        return None
    start, permissions, offset, inode, path = mapping
    try:
        found = os.stat(path)
    except OSError:
        return None
    if permissions[3] != "s" or found.st_ino != inode:
        return None
    return tuple(Name(path, found.st_dev, inode, offset + address - start, nbytes, permissions[1] == "w"))


def _is_mapped(owner: object) -> bool:
    for _ in range(_DEEPEST):
        if owner is None or isinstance(owner, mmap.mmap):
            break
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return isinstance(owner, mmap.mmap)


def _mapping_at(address: int, nbytes: int) -> tuple[int, str, int, int, str] | None:
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


def opened(data: tuple[Any, ...]) -> npt.NDArray[np.uint8]:
    """Map the part of a file that a received name specifies.

    Raises
    ------
    pickle.UnpicklingError
        The file does not exist, a different file has the same name, or the value is not a name.
    """
    if [type(part) for part in data] != [str, int, int, int, int, bool]:
        raise pickle.UnpicklingError(
            f"arrayhub: the data in the pickle is {show(data)}; accepted: bytes, or ({', '.join(Name._fields)})"
        )
    name = Name(*data)
    if name.offset < 0 or name.nbytes <= 0:
        raise pickle.UnpicklingError(
            f"arrayhub: the data in the pickle is {show(data)}; accepted: an offset of 0 or more, and at least one byte"
        )
    try:
        # O_NONBLOCK: do not wait for the other end of a pipe.
        flags = (os.O_RDWR if name.writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(name.path, flags)
    except (OSError, ValueError) as error:
        raise _unmappable_error(name, error) from error
    try:
        found = os.fstat(handle)
        if (found.st_dev, found.st_ino) != (name.device, name.inode):
            raise _unmappable_error(name, "a different file has this name now")
        if not stat.S_ISREG(found.st_mode):
            raise _unmappable_error(name, "it is a device or a pipe, not a file")
        skipped = name.offset % mmap.ALLOCATIONGRANULARITY
        access = mmap.ACCESS_WRITE if name.writable else mmap.ACCESS_READ
        mapping = mmap.mmap(handle, name.nbytes + skipped, access=access, offset=name.offset - skipped)
    except (OSError, ValueError, OverflowError) as error:
        raise _unmappable_error(name, error) from error
    finally:
        os.close(handle)
    return np.frombuffer(mapping, np.uint8, name.nbytes, skipped)


def _unmappable_error(name: Name, why: object) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        f"arrayhub: the array is in {name.path}, which cannot be mapped here: {why}. Keep shared memory and files"
        " until the receiver has the array, or send x.copy()"
    )
