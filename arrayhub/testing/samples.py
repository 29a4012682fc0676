"""NumPy arrays of each element type and layout."""

import gc
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.testing.report import NotMade

NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
FURTHER = ("longdouble", "datetime64[ns]", "S5", "U3", ">f8")  # types that DLPack cannot represent
DTYPES = (*NUMBERS, "bfloat16", *FURTHER)

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
    if not given:
        raise ValueError(f"{argument} is empty; accepted: {', '.join(known)}")
    found = []
    for value in given:
        name = value if isinstance(value, str) and value in known else name_of(value)
        if name is None:
            raise ValueError(f"{argument} has {show(value)}; accepted: {', '.join(known)}")
        found.append(name)
    return tuple(found)


def name_of_dtype(value: Any) -> str | None:
    """Return the name in `DTYPES` of anything that ``numpy.dtype`` accepts, or None."""
    if value is None:  # which numpy.dtype accepts as float64
        return None
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):
        return None
    return next((name for name in DTYPES if dtype_of(name) == dtype), None)


def dtype_of(name: str) -> np.dtype[Any] | None:
    """Return the dtype of a name, or None for bfloat16 if ml_dtypes is not installed."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        return None
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


class Sample:
    """Expected values, shape and dtype of a sample array, addresses of its memory, and a reference to its owner."""

    def take(self, dtype: str, layout: str) -> Any:
        """Return a new sample array, and store its description."""
        element = dtype_of(dtype)
        if element is None:
            raise NotMade("ml_dtypes is not installed")
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

    def is_released(self) -> bool:
        """Wait up to two seconds for the release of the memory, and return whether it was released.

        The wait is needed because jax releases objects later, in its own threads.
        """
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
    if dtype.kind == "M":
        return count.astype("i8").view(dtype)
    if dtype.kind == "c":
        return (count + 2j * count).astype(dtype)
    return count.astype(dtype)


def combine(dtypes: Iterable[str], layouts: Iterable[str]) -> list[tuple[str, str]]:
    """Return each pair of element type and layout. Elements of one byte and byte strings cannot be unaligned."""
    small = ("bool", "int8", "uint8", "S5")
    return [(dtype, layout) for dtype in dtypes for layout in layouts if layout != "unaligned" or dtype not in small]


def bytes_of(array: Any) -> bytes:
    """Return the elements of a host-readable array as bytes, in C order."""
    return np.ascontiguousarray(array).tobytes()
