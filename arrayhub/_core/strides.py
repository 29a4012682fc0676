"""Strides in elements, which readers of NumPy arrays take for bytes: NumPy is told that they are none."""

from __future__ import annotations

from typing import Any, NoReturn


class Strides(tuple[int, ...]):
    """A tuple of steps in elements, which NumPy makes no array of.

    The USM array specification, DLPack, torch and SYCL libraries count strides in elements, NumPy in bytes. Code that
    was written for NumPy arrays computes byte strides of what it finds; it fails here and reads no other elements.
    """

    __slots__ = ()

    # What is made of them is steps in elements as well: x.strides[1:], x.strides + (1,), x.strides * 2.
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
        except TypeError:  # an array of NumPy's answers itself
            return NotImplemented

    __rmul__ = __mul__

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "strides: those of a USMArray count elements, as in the USM array specification, DLPack and torch, and"
            " NumPy's count bytes; take x.byte_strides, or arrayhub.as_numpy(x). list(x.strides) is a list of them"
        )

    def __reduce__(self) -> tuple[type[tuple[int, ...]], tuple[list[int]]]:
        return tuple, (list(self),)
