"""Arrays for the tests of pickling, and the properties that a pickle preserves."""

import pickle

import ml_dtypes
import numpy as np
from dlpack_by_hand import Handmade

import arrayhub


def grid(*shape, dtype="f8"):
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


class OwnRecord(np.void):
    """A user-defined class for the elements of records."""


def record():
    made = np.zeros(5, np.dtype([("a", "i2"), ("b", ">f8"), ("c", "S3")], align=True))
    made["a"] = range(5)
    return made


def packed_int4():
    """Return five 4-bit integers in three bytes."""
    return arrayhub.from_dlpack(Handmade(memory=np.array([0x21, 0x43, 0x05], "u1"), shape=(5,), dtype=(0, 4, 1)))


LARGE = grid(40, 50, 3)
LONG_DOUBLES = grid(4, dtype="g").tobytes()  # once, because x86 leaves the padding of the elements undefined

# Functions that create arrays to pickle, so that tests do not share arrays.
SOURCES = {
    "C": lambda: grid(3, 4),
    "F": lambda: np.asfortranarray(grid(3, 4)),
    "permuted": lambda: grid(2, 3, 4).transpose(1, 0, 2),
    "reversed": lambda: grid(5, 4)[::-1, ::-1],
    "one reversed": lambda: grid(5, 4)[:, ::-1],
    "broadcast": lambda: np.broadcast_to(grid(4), (3, 4)),
    "broadcast inside": lambda: np.broadcast_to(grid(4, 1), (4, 3)),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(grid(10), 3),
    "windows of a column": lambda: np.lib.stride_tricks.sliding_window_view(grid(10, 2)[:, 0], 3),
    "column": lambda: grid(6, 7)[:, 2],
    "inner": lambda: grid(6, 7)[1:-1, 1:-1],
    "steps": lambda: grid(6, 7, 8)[::2, ::-3, 1::2],
    "steps of Fortran": lambda: np.asfortranarray(grid(6, 7, 8))[::2, ::-3, 1::2],
    "0-d": lambda: np.array(3.5),
    "empty": lambda: grid(0, 3),
    "length zero in the middle": lambda: np.zeros((2, 0, 3))[::-1],
    "one": lambda: grid(1, 1),
    "length one": lambda: grid(4, 3)[1:2],
    "large": lambda: LARGE.copy(),
    "large F": lambda: np.asfortranarray(LARGE),
    "large strided": lambda: LARGE[::3, :, ::-2],
    "bool": lambda: grid(5) > 2,
    "swapped": lambda: grid(3, 4).astype(">i4"),
    "half": lambda: grid(4, dtype="f2"),
    "long double": lambda: np.frombuffer(bytearray(LONG_DOUBLES), "g"),
    "complex": lambda: grid(4) * 1j,
    "long long": lambda: grid(4, dtype="q"),
    "bytes": lambda: np.array([b"ab", b"c"]),
    "text": lambda: np.array(["äb", "c"]),
    "dates": lambda: np.array(["2024-01-01", "2025-01-02"], "M8[D]"),
    "25 ns": lambda: np.arange(3).astype("m8[25ns]"),
    "void": lambda: np.zeros(3, "V7"),
    "elements of zero bytes": lambda: np.zeros(3, "V0"),
    "record": record,
    "field of a record": lambda: record()["b"],
    "unaligned field": lambda: np.zeros(4, [("a", "u1"), ("b", "f8")])["b"],
    "bfloat16": lambda: grid(3, 4).astype(ml_dtypes.bfloat16),
    "float8": lambda: grid(3, 4).astype(ml_dtypes.float8_e4m3fn)[::2],
    "int4": lambda: grid(3).astype(ml_dtypes.int4),
    "packed int4": packed_int4,
    "read-only": lambda: (a := grid(3), a.setflags(write=False))[0],
    "immutable": lambda: bytes(range(12)),
    "large immutable": lambda: bytes(5000),
    "labels": lambda: arrayhub.zeros((6, 7, 8), dims="IJK", halo=((1, 1), (2, 2), (0, 0)), origin=(1, 2, 0)),
    "slice with labels": lambda: arrayhub.zeros((6, 7, 8), dims="IJK", halo=(1, 1, 1))[1:, 2:, ::2],
    "padded rows": lambda: arrayhub.zeros((5, 7), alignment=64),
}


def elements(x):
    """Return the elements of an array of any type as bytes in C order."""
    return bytes(memoryview(arrayhub.libraries.numpy.raw(x.copy())).cast("B")) if x.size and x.itemsize else b""


def facts(x):
    """Return the elements, and the properties that a pickle preserves, which do not include the strides."""
    try:
        dtype = x.dtype
    except TypeError:
        dtype = x.typenum
    return x.shape, dtype, x.typenum, x.access, x.dims, x.origin, x.halo, elements(x)


def check_readable(kind):
    """Check that host-readable memory is unpickled as host memory, and with device="keep" as the same kind."""
    x = arrayhub.full((3, 4), 7.0, memory=kind)
    y = pickle.loads(pickle.dumps(x))
    assert (y.device.type, y.usm_type, float(np.asarray(y).sum())) == ("cpu", None, 84)
    with arrayhub.transport.pickling(device="keep"):
        z = pickle.loads(pickle.dumps(x))
    assert (z.device.type, z.usm_type, float(np.asarray(z).sum())) == (x.device.type, x.usm_type, 84)
