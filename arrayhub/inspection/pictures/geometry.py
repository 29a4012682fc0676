"""Shape, strides and offset of an array, and notes about them. The elements are never read."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from arrayhub.inspection.pictures.coverage import Coverage


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
    coverage: Coverage = field(init=False)

    def __post_init__(self) -> None:
        self.steps = (self.byte_strides if self.unit == "byte" else self.strides) or ()
        self.span = (self.itemsize or 0) if self.unit == "byte" else int(self.itemsize != 0)
        self.coverage = Coverage(self.shape, self.steps, self.offset, self.span)

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
        reached = self.coverage
        return reached.low < reached.high and (reached.low < 0 or (self.size is not None and reached.high > self.size))

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
            spanned = f"{self.unit}s {self.coverage.low} to {self.coverage.high - 1}"
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
        if self.coverage.used is None:
            yield "The dimensions interleave in memory, and the array is too large to count the used positions."
        elif self.coverage.used < self.count * self.span:
            used = many(self.coverage.used, "position" if self.unit == "element" else "byte")
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


_CONTIGUITY = {
    (True, True): "C- and F-contiguous",
    (True, False): "C-contiguous",
    (False, True): "F-contiguous",
    (False, False): "not contiguous",
}


def many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"
