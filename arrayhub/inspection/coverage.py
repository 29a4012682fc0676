"""Which positions of a buffer an array covers, counted without visiting its elements."""

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence

_SMALL = 1 << 14  # positions that may be listed one by one, where no rule counts them


class Coverage:
    """The positions, in units of the buffer, that the elements of a layout cover.

    Attributes
    ----------
    low, high : int
        The range ``[low, high)`` that the elements reach; both are `start` where there are none.
    used : int or None
        How many different positions the elements cover; None where the strides interleave in a way that only visiting
        every element of a large array could count.
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
        # Backwards is as good as forwards for what is covered, and a dimension that goes nowhere covers nothing more.
        moving = [(abs(stride), length) for length, stride in zip(shape, strides, strict=True) if stride and length > 1]
        self._dimensions = _joined(sorted([(1, span), *moving]))
        self.used = math.prod(length for _, length in self._dimensions)
        if not _nested(self._dimensions):
            self._listed = self._list() if self.used <= _SMALL else None
            self.used = len(self._listed) if self._listed is not None else None

    def used_below(self, position: int) -> int:
        """How many covered positions lie before `position`; only where `used` is known."""
        if self._listed is not None:
            return bisect_left(self._listed, position)
        left = position - self.low
        total, block = 0, self.used or 0
        if left <= 0 or block == 0:
            return 0
        for stride, length in reversed(self._dimensions):
            block //= length
            whole = (left - 1) // stride  # blocks that end before `position`, since none is longer than its stride
            if whole >= length:
                return total + length * block
            total += whole * block
            left -= whole * stride
        return total + 1

    def _list(self) -> list[int]:
        """Every covered position, in order."""
        steps = (range(0, stride * length, stride) for stride, length in self._dimensions)
        return sorted({self.low + sum(step) for step in itertools.product(*steps)})


def _joined(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Dimensions as (stride, length), shortest stride first, those joined that together step evenly.

    A dimension whose stride is a multiple of the one before it, and steps no further than that one reaches, only makes
    it longer: rows of a compact matrix become one long row, and so do the overlapping rows of a sliding window.
    """
    joined = dimensions[:1]
    for stride, length in dimensions[1:]:
        inner, reach = joined[-1]
        if stride % inner == 0 and stride // inner <= reach:
            joined[-1] = (inner, reach + stride // inner * (length - 1))
        else:
            joined.append((stride, length))
    return joined


def _nested(dimensions: list[tuple[int, int]]) -> bool:
    """Whether each dimension steps over all that the dimensions before it cover, so that no two elements meet."""
    extent = 1
    for stride, length in dimensions:
        if stride < extent:
            return False
        extent += stride * (length - 1)
    return True
