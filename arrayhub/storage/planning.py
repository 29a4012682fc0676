"""Computation of strides, padding and alignment of an array before its memory is allocated.

The rules are those of GT4Py's storage proposal. Cases that the proposal does not cover follow GT4Py's allocator.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from arrayhub._core.descriptor import BOUNDARY, MAX_NDIM, integer
from arrayhub._core.errors import dimensions, show
from arrayhub.array.usm_array import element_type

if TYPE_CHECKING:
    from arrayhub.array.usm_array import _DTypeLike

MOST_BYTES = 2**63 - 1

LayoutLike: TypeAlias = str | Sequence[SupportsIndex]


@dataclass(frozen=True, slots=True)
class Plan:
    """Memory layout of an array that is not allocated yet. Returned by `plan`.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    dtype : numpy.dtype
        Element type.
    layout : tuple of int
        Rank of each dimension by stride, with 0 for the largest stride.
    strides : tuple of int
        Strides in elements.
    padded_shape : tuple of int
        Lengths in elements, including the padding of the fastest dimension.
    offset : int
        Distance in elements from an aligned address to element zero.
    nbytes : int
        Size in bytes of a buffer that can hold the aligned array, whatever the address of the buffer.
    alignment : int
        Alignment in bytes.

    Examples
    --------
    >>> layout = arrayhub.storage.plan((3, 5), "f4", alignment=32)
    >>> layout.strides, layout.padded_shape, layout.nbytes
    ((8, 1), (3, 8), 127)
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
    dtype: "_DTypeLike" = np.float64,
    *,
    layout: LayoutLike | None = None,
    alignment: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
) -> Plan:
    """Compute strides, padding and offset of an array without allocating memory.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the dimensions, in elements.
    dtype : optional
        Element type: any value that ``numpy.dtype`` accepts.
    layout : sequence of int or {"C", "F"}, optional
        Rank of each dimension by stride, with 0 for the largest stride. The default is "C".
    alignment : int, optional
        Alignment in bytes. The fastest-varying dimension is padded to a multiple of `alignment`, so that every element
        with the index `aligned_index` along that dimension is aligned. By default, no dimension is padded, and element
        zero is aligned to 64 bytes.
    aligned_index : sequence of int, optional
        Index of an element to align. The default is zeros. Ignored without `alignment`.

    Returns
    -------
    Plan
        Strides and offset in elements, size and alignment in bytes.

    Raises
    ------
    ValueError
        `layout` is not a permutation, `alignment` is neither a divisor nor a multiple of the item size,
        `aligned_index` is out of bounds, or the array would have 2**63 bytes or more.
    TypeError
        A value is not an integer, or the item size of `dtype` is zero.

    Examples
    --------
    >>> arrayhub.storage.plan((3, 5), "f4", layout="F").strides
    (1, 3)
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
        step *= max(padded[axis], 1)  # as in NumPy, a length of 0 does not make other strides 0
    if step * element.itemsize + boundary > MOST_BYTES:
        raise ValueError(f"shape: {show(lengths)} of {element!r} takes 2**63 bytes or more; accepted: fewer bytes")
    nbytes = math.prod(padded) * element.itemsize + boundary - 1
    return Plan(lengths, element, ranks, tuple(strides), tuple(padded), offset, nbytes, boundary)


def checked_lengths(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return `shape` as a validated tuple. An integer is the shape of a 1-d array."""
    lengths = integers(shape if isinstance(shape, Iterable) else (shape,), "shape")
    if len(lengths) > MAX_NDIM or any(not 0 <= length <= MOST_BYTES for length in lengths):
        raise ValueError(f"shape: {show(lengths)}; accepted: at most {MAX_NDIM} lengths from 0 to 2**63 - 1")
    return lengths


def layout_ranks(layout: LayoutLike | None, nd: int) -> tuple[int, ...]:
    """Return `layout` as a validated tuple of ranks."""
    if layout is None or isinstance(layout, str):
        if layout not in (None, "C", "F"):
            raise ValueError(f"layout: {show(layout)}; accepted: {_accepted_layouts(nd)}")
        return tuple(reversed(range(nd)) if layout == "F" else range(nd))
    ranks = integers(layout, "layout")
    if sorted(ranks) != list(range(nd)):
        raise ValueError(f"layout: {show(ranks)} for {dimensions(nd)}; accepted: {_accepted_layouts(nd)}")
    return ranks


def _accepted_layouts(nd: int) -> str:
    if nd == 0:
        return "'C', 'F' or ()"
    return f"'C', 'F' or a permutation of {(*range(nd),)}, where rank 0 marks the dimension with the largest stride"


def checked_index(aligned_index: Sequence[SupportsIndex] | None, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return `aligned_index` as a validated tuple with one entry per dimension."""
    if aligned_index is None:
        return (0,) * len(lengths)
    index = integers(aligned_index, "aligned_index")
    if len(index) != len(lengths) or any(not 0 <= i < max(length, 1) for i, length in zip(index, lengths, strict=True)):
        raise ValueError(f"aligned_index: {show(index)} for shape {show(lengths)}; accepted: the index of an element")
    return index


def boundary_and_block(alignment: SupportsIndex | None, itemsize: int) -> tuple[int, int]:
    """Return the alignment in bytes and in elements. The alignment in elements is at least 1."""
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
        raise TypeError(f"{what}: {show(values)} is not a sequence; accepted: an integer for each dimension")
    return tuple(integer(value, what) for value in values)


def is_ordered(values: Any) -> bool:
    """Return whether `values` is an iterable with a defined order, which sets do not have."""
    if not isinstance(values, Iterable) or isinstance(values, (set, frozenset)):
        return False
    return not (isinstance(values, np.ndarray) and values.ndim == 0)  # 0-d arrays are Iterable, but cannot be iterated
