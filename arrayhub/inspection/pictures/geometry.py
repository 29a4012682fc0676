"""Shape, strides and offset of an array, and notes about them. The elements are never read."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

_MOST_COUNTED = 1 << 14  # maximum number of positions that are enumerated if no formula applies


@dataclass(slots=True, eq=False, repr=False)
class Geometry:
    """Shape, strides and offset of an array in its buffer. Positions are relative to the start of the buffer.

    The public subclass `Picture` documents the attributes.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    byte_strides: tuple[int, ...] | None
    offset: int
    size: int | None
    itemsize: int | None
    unit: str = "element"
    dtype: str | None = None
    memory: str | None = None
    access: str | None = None
    labels: str | None = None
    steps: tuple[int, ...] = field(init=False)  # strides of the dimensions, in `unit`
    span: int = field(init=False)  # extent of an element, in `unit`
    low: int = field(init=False)  # [low, high) is the smallest range of positions that contains all elements
    high: int = field(init=False)  # `low` if the elements do not cover any position
    used: int | None = field(init=False)  # number of distinct positions that elements cover. See `_count_used`

    def __post_init__(self) -> None:
        self.steps = (self.byte_strides if self.unit == "byte" else self.strides) or ()
        self.span = (self.itemsize or 0) if self.unit == "byte" else int(self.itemsize != 0)
        self.low = self.high = self.offset
        if self.count and self.span:
            reach = [step * (length - 1) for length, step in zip(self.shape, self.steps, strict=True)]
            self.low += sum(step for step in reach if step < 0)
            self.high += sum(step for step in reach if step > 0) + self.span
        self.used = self._count_used()

    @property
    def ndim(self) -> int:
        """int : number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """int : number of elements."""
        return math.prod(self.shape)

    @property
    def leaves_buffer(self) -> bool:
        """bool : whether an element is before the start or beyond the end of the buffer."""
        return self.low < self.high and (self.low < 0 or (self.size is not None and self.high > self.size))

    @property
    def contiguity(self) -> str:
        """str : ``"C-contiguous"``, ``"F-contiguous"``, ``"C- and F-contiguous"`` or ``"not contiguous"``."""
        c, f = (self._first_gap(order) is None for order in "CF")
        return _CONTIGUITY[c, f]

    def notes(self) -> list[str]:
        """Return notes on unusual properties of the layout, such as overlapping elements."""
        return list(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.leaves_buffer:
            spanned = f"{self.unit}s {self.low} to {self.high - 1}"
            buffer = f"has {self.unit}s 0 to {self.size - 1}" if self.size else "is empty"
            buffer = f"begins at {self.unit} 0" if self.size is None else buffer
            span = f"It spans {spanned}, and the buffer {buffer}."
            yield f"The view extends beyond its buffer. {span} Reading it is an error."
        if self.count == 0:
            yield "The array is empty, so the strides are not used."
            return
        if self.span == 0:
            yield "Elements of zero bytes do not occupy the buffer."
            return
        if self.unit == "byte":
            size = f"{self.itemsize} bytes"
            yield f"Positions are in bytes, because elements are not at multiples of their size ({size})."
        gap = self._first_gap("C")
        if gap is not None and self._first_gap("F") is not None:
            yield f"Not contiguous: {'; '.join(self._reasons(*gap))}."
        if self.used is None:
            yield "The dimensions interleave in memory, and the array is too large to count the used positions."
        elif self.used < self.count * self.span:
            used = many(self.used, "position" if self.unit == "element" else "byte")
            yield f"Elements share memory: {self.count} elements occupy {used}."

    def _reasons(self, dimension: int, compact: int) -> Iterator[str]:
        """Yield the reasons why the array is neither C- nor F-contiguous. See `_first_gap`."""
        yield f"dimension {dimension} steps by {many(self.steps[dimension], self.unit)}; compact would be {compact}"
        for k, (length, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            if step < 0 and length > 1 and k != dimension:
                yield f"dimension {k} also steps backwards, by {many(step, self.unit)}"

    def _first_gap(self, order: str) -> tuple[int, int] | None:
        """Return the fastest-varying dimension whose stride is not contiguous, and the stride that would be contiguous.

        Return None if all strides are contiguous.
        """
        if self.count == 0:
            return None
        dimensions = list(enumerate(zip(self.shape, self.steps, strict=True)))
        compact = self.span
        for k, (length, step) in dimensions if order == "F" else reversed(dimensions):
            if length != 1:
                if step != compact:
                    return k, compact
                compact *= length
        return None

    def _count_used(self) -> int | None:
        """Return the number of distinct positions, or None if a large array has elements that may overlap."""
        if self.low == self.high:
            return 0
        # The sign of a stride, and dimensions with stride 0, do not change the number.
        moving = [(abs(step), length) for length, step in zip(self.shape, self.steps, strict=True) if step]
        dimensions = [(1, self.span), *sorted(dimension for dimension in moving if dimension[1] > 1)]
        most = math.prod(length for _, length in dimensions)
        if _are_disjoint(dimensions):
            return most
        if most > _MOST_COUNTED:
            return None
        return len(set(map(sum, itertools.product(*(range(0, step * length, step) for step, length in dimensions)))))


_CONTIGUITY = {
    (True, True): "C- and F-contiguous",
    (True, False): "C-contiguous",
    (False, True): "F-contiguous",
    (False, False): "not contiguous",
}


def _are_disjoint(dimensions: list[tuple[int, int]]) -> bool:
    """Return whether each stride is at least the extent of the previous dimensions (stride, length)."""
    extent = 1
    for stride, length in dimensions:
        if stride < extent:
            return False
        extent += stride * (length - 1)
    return True


def many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"
