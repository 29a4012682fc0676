"""Counts of the objects, bytes and references that a process holds."""

import ctypes
import gc
import sys
import types
from typing import NamedTuple

from children import resident

FIRST = 1000  # calls before the first count, because caches grow during the first calls


class Held(NamedTuple):
    """Counts of objects and memory that a process holds."""

    objects: int  # blocks of Python's allocator
    bytes: int  # allocated by malloc and not freed
    resident: int  # bytes of resident memory


ALLOWED = Held(objects=200, bytes=20_000, resident=2_000_000)  # permitted growth over all calls of a test


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
