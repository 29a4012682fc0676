"""NumPy arrays of each element type and layout."""

import contextlib
import gc
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import show
from arrayhub.convert.functions import asarray, to_host
from arrayhub.testing.report import NotMade, raising, require

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "bfloat16",
    "longdouble", "datetime64[ns]", "S5", "U3", ">f8",  # DLPack cannot represent these types
)  # fmt: skip

# Shape of a C-contiguous array, and the function that returns a view of this array in the layout.
LAYOUTS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "C": ((3, 4), lambda x: x),
    "F": ((4, 3), lambda x: x.T),
    "sliced": ((6, 9), lambda x: x[1::2, 1::2]),
    "negative": ((3, 4), lambda x: x[::-1, ::-1]),
    "1-d": ((12,), lambda x: x),
    "0-d": ((), lambda x: x),
    "empty": ((0, 4), lambda x: x),
    "unaligned": ((3, 4), lambda x: x),
    "read-only": ((3, 4), lambda x: x),
}


def choose_names(
    values: Any, known: Iterable[str], argument: str, name_of: Callable[[Any], str | None] = lambda value: None
) -> tuple[str, ...]:
    """Return validated names of element types or layouts. ``values=None`` selects all `known` names.

    `name_of` returns the name of a value that is not in `known`, or None. Raise ValueError, whose message begins with
    `argument`, if `values` is empty or has an unknown name.
    """
    if values is None:
        return tuple(known)
    given = tuple(values) if isinstance(values, Iterable) and not isinstance(values, (str, type)) else (values,)
    names = [value if isinstance(value, str) and value in known else name_of(value) for value in given]
    found = tuple(name for name in names if name is not None)
    if not names or len(found) < len(names):
        problem = f"has {show(given[names.index(None)])}" if names else "is empty"
        raise ValueError(f"{argument} {problem}; accepted: {', '.join(known)}")
    return found


def name_of_dtype(value: Any) -> str | None:
    """Return the name in `DTYPES` of anything that ``numpy.dtype`` accepts, or None."""
    with contextlib.suppress(TypeError, ValueError, SyntaxError):
        dtype = None if value is None else requested_dtype(value)
        return next((name for name in DTYPES if dtype == name), None)
    return None


class Sample:
    """Expected values, shape and dtype of a sample array, addresses of its memory, and a reference to its owner."""

    obj: Any  # an array of the library, or a producer, which shares the memory or has a copy

    def take(self, dtype: str, layout: str) -> Any:
        """Return a new sample array, and store its description."""
        with raising(NotMade, TypeError):  # bfloat16 requires ml_dtypes
            element = requested_dtype(dtype)
        shape, view = LAYOUTS[layout]
        size = int(np.prod(shape))
        owner = np.zeros(size * element.itemsize + 128, np.uint8)
        start = -owner.ctypes.data % 64 + (layout == "unaligned")
        array = owner[start : start + size * element.itemsize].view(element).reshape(shape)
        array[...] = _values(size, element).reshape(shape)
        array = view(array)
        array.flags.writeable = layout != "read-only"
        self.values, self.shape, self.dtype = bytes_of(array), array.shape, element
        self.span = range(owner.ctypes.data, owner.ctypes.data + owner.nbytes)
        self.owner = weakref.ref(owner)
        return array

    def shares(self, array: Any) -> bool:
        """Return whether an array shares memory with the sample."""
        return array.size > 0 and array.ptr in self.span

    def check_release(self, held: list[Any], words: str) -> None:
        """Check that the memory is released with the array in `held`, and not before. `words` names this array."""
        shared, elements = self.shares(asarray(held[0])), bytes_of(held[0])
        self.obj = None
        gc.collect()
        require(not shared or self.owner() is not None, f"the memory is released while {words} exists")
        require(bytes_of(held[0]) == elements, f"the elements of {words} change after the producer is deleted")
        held.clear()
        require(self.is_released(), f"the memory is not released after {words} is deleted")

    def is_released(self) -> bool:
        """Return whether the memory is released within two seconds. jax releases objects later, in its own threads."""
        for _ in range(100):
            gc.collect()
            if self.owner() is None:
                return True
            time.sleep(0.02)
        return False


def _values(size: int, dtype: np.dtype[Any]) -> Any:
    count = np.arange(1, size + 1)
    if dtype.kind == "b":
        return count % 4 != 2
    return (count * (1 + 2j) if dtype.kind == "c" else count).astype(dtype)


def combine(dtypes: Iterable[str], layouts: Iterable[str]) -> list[tuple[str, str]]:
    """Return each pair of element type and layout. Elements of one byte and byte strings cannot be unaligned."""
    small = ("bool", "int8", "uint8", "S5")
    return [(dtype, layout) for dtype in dtypes for layout in layouts if layout != "unaligned" or dtype not in small]


def bytes_of(array: Any, stream: Any = None) -> bytes:
    """Return the elements of an array as bytes, in C order. They are read on `stream`."""
    return np.ascontiguousarray(to_host(array, stream=stream)).tobytes()
