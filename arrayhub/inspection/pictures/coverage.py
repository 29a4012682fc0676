"""Count the positions of a buffer that an array covers, without visiting its elements."""

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence

_SMALL = 1 << 14  # maximum number of positions that are enumerated if no formula applies


class Coverage:
    """Positions in a buffer that the elements of a layout cover.

    Attributes
    ----------
    low, high : int
        Smallest range ``[low, high)`` that contains all elements. Both are `start` for an empty array.
    used : int or None
        Number of distinct positions that the elements cover. None for a large array with interleaved strides, because
        counting would have to visit every element.
    """

    def __init__(self, shape: Sequence[int], strides: Sequence[int], start: int, span: int) -> None:
        steps = [stride * (length - 1) for length, stride in zip(shape, strides, strict=True)]
        count = math.prod(shape)
        empty = count == 0 or span == 0
        self.low = start if empty else start + sum(step for step in steps if step < 0)
        self.high = start if empty else start + sum(step for step in steps if step > 0) + span
        self._dimensions: list[tuple[int, int]] = []
        self._listed: list[int] | None = None
        self.used: int | None = 0
        if empty:
            return
        # The sign of a stride, and dimensions with stride 0, do not change the covered positions.
        moving = [(abs(stride), length) for length, stride in zip(shape, strides, strict=True) if stride and length > 1]
        self._dimensions = _merge_dimensions(sorted([(1, span), *moving]))
        self.used = math.prod(length for _, length in self._dimensions)
        if not _are_disjoint(self._dimensions):
            self._listed = self._list() if self.used <= _SMALL else None
            self.used = len(self._listed) if self._listed is not None else None

    def used_below(self, position: int) -> int:
        """Return the number of covered positions before `position`. Requires that `used` is not None."""
        if self._listed is not None:
            return bisect_left(self._listed, position)
        left = position - self.low
        total, block = 0, self.used or 0
        if left <= 0 or block == 0:
            return 0
        for stride, length in reversed(self._dimensions):
            block //= length
            whole = (left - 1) // stride  # whole blocks before `position`, which do not overlap
            if whole >= length:
                return total + length * block
            total += whole * block
            left -= whole * stride
        return total + 1

    def _list(self) -> list[int]:
        """Return all covered positions in ascending order."""
        steps = (range(0, stride * length, stride) for stride, length in self._dimensions)
        return sorted({self.low + sum(step) for step in itertools.product(*steps)})


def _merge_dimensions(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge sorted dimensions (stride, length) that together have a constant stride.

    A dimension is merged into the previous dimension if its stride is a multiple of the previous stride, and is at most
    the extent of the previous dimension. The rows of a contiguous matrix become one long row, and so do the overlapping
    rows of a sliding window.
    """
    joined = dimensions[:1]
    for stride, length in dimensions[1:]:
        inner, reach = joined[-1]
        if stride % inner == 0 and stride // inner <= reach:
            joined[-1] = (inner, reach + stride // inner * (length - 1))
        else:
            joined.append((stride, length))
    return joined


def _are_disjoint(dimensions: list[tuple[int, int]]) -> bool:
    """Return whether each stride is at least the extent of the previous dimensions, so that elements do not overlap."""
    extent = 1
    for stride, length in dimensions:
        if stride < extent:
            return False
        extent += stride * (length - 1)
    return True
