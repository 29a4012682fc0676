"""Shape, strides and offset of an array, and notes about them. The elements are never read."""

import math

from arrayhub.inspection.pictures.coverage import Coverage


class Geometry:
    """Shape, strides and offset of an array in its buffer. Positions are relative to the start of the buffer.

    The public subclass `Picture` documents the attributes.
    """

    __slots__ = (
        "access", "byte_strides", "coverage", "dtype", "itemsize", "labels", "memory", "offset", "shape", "size",
        "span", "steps", "strides", "unit",
    )  # fmt: skip

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        byte_strides: tuple[int, ...] | None,
        offset: int,
        size: int | None,
        itemsize: int | None,
        unit: str = "element",
        dtype: str | None = None,
        memory: str | None = None,
        access: str | None = None,
        labels: str | None = None,
    ) -> None:
        self.shape, self.strides, self.byte_strides = shape, strides, byte_strides
        self.offset, self.size, self.itemsize, self.unit = offset, size, itemsize, unit
        self.dtype, self.memory, self.access, self.labels = dtype, memory, access, labels
        # Strides of the dimensions, and extent of an element, in `unit`.
        self.steps: tuple[int, ...] = (byte_strides if unit == "byte" else strides) or ()
        self.span: int = (itemsize or 0) if unit == "byte" else int(itemsize != 0)
        self.coverage = Coverage(shape, self.steps, offset, self.span)

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
        c, f = (_first_gap(self, order) is None for order in "CF")
        return _CONTIGUITY[c, f]

    def notes(self) -> list[str]:
        """Return notes on unusual properties of the layout, such as overlapping elements."""
        return [note for tell in _NOTES for note in tell(self)]


# ------------------------------------------------------------------------------------------------------ sentences

_CONTIGUITY = {
    (True, True): "C- and F-contiguous",
    (True, False): "C-contiguous",
    (False, True): "F-contiguous",
    (False, False): "not contiguous",
}


def _first_gap(geometry: Geometry, order: str) -> tuple[int, int] | None:
    """Return the fastest-varying dimension whose stride is not contiguous, and the stride that would be contiguous.

    Return None if all strides are contiguous.
    """
    if geometry.count == 0:
        return None
    dimensions = list(enumerate(zip(geometry.shape, geometry.steps, strict=True)))
    compact = geometry.span
    for k, (length, step) in dimensions if order == "F" else reversed(dimensions):
        if length != 1:
            if step != compact:
                return k, compact
            compact *= length
    return None


def _note_outside(geometry: Geometry) -> list[str]:
    if not geometry.leaves_buffer:
        return []
    low, last = geometry.coverage.low, geometry.coverage.high - 1
    if geometry.size is None:
        end = f"and the buffer begins at {geometry.unit} 0"
    elif geometry.size == 0:
        end = "and the buffer is empty"
    else:
        end = f"and the buffer has {geometry.unit}s 0 to {geometry.size - 1}"
    span = f"It spans {geometry.unit}s {low} to {last}, {end}."
    return [f"The view extends beyond its buffer. {span} Reading it is an error."]


def _note_empty(geometry: Geometry) -> list[str]:
    if geometry.count == 0:
        return ["The array is empty, so the strides are not used."]
    return ["Elements of zero bytes do not occupy the buffer."] if geometry.span == 0 else []


def _note_bytes(geometry: Geometry) -> list[str]:
    if geometry.unit == "element" or geometry.span == 0:
        return []
    return [f"Positions are in bytes, because elements are not at multiples of their size ({geometry.itemsize} bytes)."]


def _note_order(geometry: Geometry) -> list[str]:
    """Return a note on why the array is neither C- nor F-contiguous."""
    c, f = (_first_gap(geometry, order) for order in "CF")
    if c is None or f is None or geometry.span == 0:
        return []
    dimension, compact = c
    first = many(geometry.steps[dimension], geometry.unit)
    reason = f"dimension {dimension} steps by {first}; compact would be {compact}"
    backwards = [
        f"dimension {k} also steps backwards, by {many(step, geometry.unit)}"
        for k, (length, step) in enumerate(zip(geometry.shape, geometry.steps, strict=True))
        if step < 0 and length > 1 and k != dimension
    ]
    return [f"Not contiguous: {'; '.join([reason, *backwards])}."]


def _note_sharing(geometry: Geometry) -> list[str]:
    reach, used = geometry.count * geometry.span, geometry.coverage.used
    if used is None:
        return ["The dimensions interleave in memory, and the array is too large to count the used positions."]
    if reach <= used:
        return []
    unit = "position" if geometry.unit == "element" else "byte"
    return [f"Elements share memory: {geometry.count} elements occupy {many(used, unit)}."]


def many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"


_NOTES = (_note_outside, _note_empty, _note_bytes, _note_order, _note_sharing)
