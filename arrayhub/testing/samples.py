"""NumPy arrays of each element type and layout."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from arrayhub._core.errors import show

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


def chosen(names: Iterable[str] | None, known: Iterable[str], what: str) -> tuple[str, ...]:
    """Return validated names of element types or layouts. None selects all of `known`."""
    found = tuple(known) if names is None else tuple(names)
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ValueError(f"{what} has {show(unknown[0])}; accepted: {', '.join(known)}")
    return found


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


def sample(name: str, layout: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """Return an array with the given element type and layout, and the array that owns its memory.

    Return None for bfloat16 if ml_dtypes is not installed.
    """
    dtype = dtype_of(name)
    if dtype is None:
        return None
    shape, view = LAYOUTS[layout]
    size = int(np.prod(shape))
    owner = np.zeros(size * dtype.itemsize + 128, np.uint8)
    start = -owner.ctypes.data % 64 + (layout == "unaligned")
    array = owner[start : start + size * dtype.itemsize].view(dtype).reshape(shape)
    array[...] = _values(size, dtype).reshape(shape)
    array = view(array)
    array.flags.writeable = layout != "read-only"
    return array, owner


def _values(size: int, dtype: np.dtype[Any]) -> Any:
    count = np.arange(1, size + 1)
    if dtype.kind == "b":
        return count % 4 != 2
    if dtype.kind == "M":
        return count.astype("i8").view(dtype)
    if dtype.kind == "c":
        return (count + 2j * count).astype(dtype)
    return count.astype(dtype)


def has_layout(dtype: str, layout: str) -> bool:
    """Return whether arrays of the element type can have the layout.

    Elements of one byte and byte strings cannot be unaligned.
    """
    return layout != "unaligned" or dtype not in ("bool", "int8", "uint8", "S5")


def bytes_of(array: Any) -> bytes:
    """Return the elements of a host-readable array as bytes, in C order."""
    return np.ascontiguousarray(array).tobytes()
