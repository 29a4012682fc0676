"""Strides in elements, which readers of NumPy arrays take for bytes: NumPy is told that they are none."""

from typing import Any, NoReturn


class Strides(tuple[int, ...]):
    """A tuple of steps in elements, which NumPy makes no array of.

    The USM array specification, DLPack, torch and SYCL libraries count strides in elements, NumPy in bytes. Code that
    was written for NumPy arrays computes byte strides of what it finds; it fails here and reads no other elements.
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "strides: those of a USMArray count elements, as in the USM array specification, DLPack and torch, and"
            " NumPy's count bytes; take x.byte_strides, or arrayhub.as_numpy(x). list(x.strides) is a list of them"
        )

    def __reduce__(self) -> tuple[type[tuple[int, ...]], tuple[list[int]]]:
        return tuple, (list(self),)
