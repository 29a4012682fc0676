"""Count the objects, bytes and references that a process holds."""

import ctypes
import gc
import sys
import types
from typing import NamedTuple

from children import resident

FIRST = 1000  # number of calls before the first count, in which caches grow


class Held(NamedTuple):
    """Objects and memory that a process holds."""

    objects: int  # number of blocks of Python's allocator
    bytes: int  # bytes that malloc has allocated and that are not freed
    resident: int  # bytes of resident memory


ALLOWED = Held(objects=200, bytes=20_000, resident=2_000_000)  # permitted growth during all calls of a test


class MallInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _names = (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )  # fmt: skip
    _fields_ = tuple((name, ctypes.c_size_t) for name in _names)


def held():
    gc.collect()
    count = ctypes.CDLL(None).mallinfo2
    count.restype = MallInfo
    info = count()
    return Held(sys.getallocatedblocks(), info.uordblks + info.hblkhd, resident())


def references(names):
    return {name: sys.getrefcount(value) for name, value in names.items() if not isinstance(value, types.ModuleType)}
