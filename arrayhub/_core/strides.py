"""Tuple of strides in elements, which NumPy must not interpret as strides in bytes."""

from typing import Any, NoReturn


class Strides(tuple[int, ...]):
    """Tuple of strides in elements that rejects conversion to a NumPy array.

    The USM array specification, DLPack, torch and SYCL libraries count strides in elements. NumPy counts them in bytes.
    Without the rejection, code written for NumPy arrays could interpret the strides as bytes and access wrong elements.
    """

    __slots__ = ()

    # Tuples derived from strides are also strides in elements: x.strides[1:], x.strides + (1,), x.strides * 2.
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Strides(found) if type(found) is tuple else found

    def __add__(self, other: Any) -> Any:
        made = tuple.__add__(self, other) if isinstance(other, tuple) else NotImplemented
        return made if made is NotImplemented else Strides(made)

    def __radd__(self, other: Any) -> Any:
        return Strides(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        try:
            return Strides(tuple.__mul__(self, times))
        except TypeError:  # a NumPy array, which implements the product
            return NotImplemented

    __rmul__ = __mul__

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "strides: a USMArray counts strides in elements, as the USM array specification, DLPack and torch do, and"
            " NumPy counts them in bytes; use x.byte_strides, arrayhub.as_numpy(x).strides or list(x.strides)"
        )

    def __reduce__(self) -> tuple[type[tuple[int, ...]], tuple[list[int]]]:
        return tuple, (list(self),)
