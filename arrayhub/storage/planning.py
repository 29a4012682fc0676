"""plan: where the elements of an array lie in a buffer, worked out before there is one.

Source of the rules: GT4Py's storage proposal, and GT4Py's allocator where that is silent.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from arrayhub._core.descriptor import MAX_NDIM
from arrayhub._core.dtypes import requested_dtype
from arrayhub._core.errors import show
from arrayhub._core.integers import integer
from arrayhub._core.memory import BOUNDARY

MOST_BYTES = 2**63 - 1

LayoutLike: TypeAlias = str | Sequence[SupportsIndex]


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the elements of an array lie in a buffer. `plan` makes one.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    dtype : numpy.dtype
        The element type.
    layout : tuple of int
        The rank of each dimension when they are sorted from the largest stride to the smallest.
    strides : tuple of int
        Steps in elements.
    padded_shape : tuple of int
        Lengths with the padding of the fastest dimension, in elements.
    offset : int
        Elements from an address on the boundary to element zero.
    nbytes : int
        Bytes of a buffer that has space for the array wherever it starts.
    alignment : int
        Bytes: the boundary.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: tuple[int, ...]
    strides: tuple[int, ...]
    padded_shape: tuple[int, ...]
    offset: int
    nbytes: int
    alignment: int


def plan(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: npt.DTypeLike = np.float64,
    *,
    layout: LayoutLike | None = None,
    alignment: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
) -> Plan:
    """Work out strides, padding and offset of an array. Nothing is allocated.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the dimensions, in elements.
    dtype : optional
        The element type: anything that ``numpy.dtype`` takes.
    layout : sequence of int or {"C", "F"}, optional
        The rank of each dimension when they are sorted from the largest stride to the smallest: 0 for the largest. "C"
        by default.
    alignment : int, optional
        Bytes. The fastest dimension is padded to a multiple of it, so that every element which has the index of
        `aligned_index` there lies on such a boundary. By default nothing is padded, and element zero lies on a 64-byte
        boundary.
    aligned_index : sequence of int, optional
        An index of the array; zeros by default. Without `alignment` it changes nothing.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        A layout that is no permutation; an alignment that neither divides the item size nor is a multiple of it; an
        index outside of the array; more bytes than an address space has.
    TypeError
        What should be an integer and is none; an element type without a size.
    """
    lengths = checked_lengths(shape)
    element = element_type(dtype)
    ranks = layout_ranks(layout, len(lengths))
    index = checked_index(aligned_index, lengths)
    boundary, block = boundary_and_block(alignment, element.itemsize)

    order = sorted(range(len(lengths)), key=ranks.__getitem__)  # from the largest stride to the smallest
    padded, offset = list(lengths), 0
    for fastest in order[-1:]:
        padded[fastest] = -(-lengths[fastest] // block) * block
        offset = -index[fastest] % block
    strides, step = [1] * len(lengths), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(padded[axis], 1)  # as in NumPy, an empty dimension does not take the others their strides
    if step * element.itemsize + boundary > MOST_BYTES:
        raise ValueError(f"shape: {show(lengths)} of {element!r} takes 2**63 bytes or more; accepted: fewer")
    nbytes = math.prod(padded) * element.itemsize + boundary - 1
    return Plan(lengths, element, ranks, tuple(strides), tuple(padded), offset, nbytes, boundary)


def checked_lengths(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return a shape as a tuple; a single integer is the shape of one dimension."""
    lengths = integers(shape if isinstance(shape, Iterable) else (shape,), "shape")
    if len(lengths) > MAX_NDIM or any(not 0 <= length <= MOST_BYTES for length in lengths):
        raise ValueError(f"shape: {show(lengths)}; accepted: at most {MAX_NDIM} lengths from 0 to 2**63 - 1")
    return lengths


def element_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return a NumPy dtype of single elements of some size."""
    made: np.dtype[Any] = requested_dtype(dtype)
    if made.subdtype is not None or made.itemsize == 0:
        raise TypeError(f"dtype: {made!r}; accepted: one element of one byte or more. Put sub-arrays into shape")
    return made


def layout_ranks(layout: LayoutLike | None, nd: int) -> tuple[int, ...]:
    """Return a layout as the tuple of ranks, checked."""
    if layout is None or isinstance(layout, str):
        if layout not in (None, "C", "F"):
            raise ValueError(f"layout: {show(layout)}; accepted: 'C', 'F' or a permutation of 0 to {nd - 1}")
        return tuple(reversed(range(nd)) if layout == "F" else range(nd))
    ranks = integers(layout, "layout")
    if sorted(ranks) != list(range(nd)):
        raise ValueError(
            f"layout: {show(ranks)} for {nd} dimensions; accepted: 'C', 'F' or a permutation of 0 to {nd - 1}, with 0"
            " for the largest stride"
        )
    return ranks


def checked_index(aligned_index: Sequence[SupportsIndex] | None, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the aligned index with an entry for each dimension."""
    if aligned_index is None:
        return (0,) * len(lengths)
    index = integers(aligned_index, "aligned_index")
    if len(index) != len(lengths) or any(not 0 <= i < max(length, 1) for i, length in zip(index, lengths, strict=True)):
        raise ValueError(f"aligned_index: {show(index)} for shape {show(lengths)}; accepted: the index of an element")
    return index


def boundary_and_block(alignment: SupportsIndex | None, itemsize: int) -> tuple[int, int]:
    """Return the boundary in bytes, and how many elements rows are padded to a multiple of."""
    if alignment is None:
        return BOUNDARY, 1
    boundary = integer(alignment, "alignment")
    if not 0 < boundary < MOST_BYTES or math.gcd(boundary, itemsize) not in (boundary, itemsize):
        raise ValueError(
            f"alignment: {boundary} bytes for elements of {itemsize} bytes; accepted: a divisor or a multiple of the"
            " item size, in bytes"
        )
    return boundary, max(boundary // itemsize, 1)


def integers(values: Iterable[Any], what: str) -> tuple[int, ...]:
    """Return `values` as a tuple of Python integers."""
    if not is_ordered(values):
        raise TypeError(f"{what}: {show(values)} is no sequence; accepted: an integer for each dimension")
    return tuple(integer(value, what) for value in values)


def is_ordered(values: Any) -> bool:
    """Whether `values` has entries in an order; a set has them in one that nobody meant."""
    if not isinstance(values, Iterable) or isinstance(values, (set, frozenset)):
        return False
    return not (isinstance(values, np.ndarray) and values.ndim == 0)  # which says that it can be iterated
