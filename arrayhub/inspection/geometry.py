"""The numbers of a layout, and what can be said about them in words. The data are never read."""

import math

from arrayhub.inspection.coverage import Coverage


class Geometry:
    """Shape, strides and offset of an array in its buffer, whose positions count from its start.

    `Picture`, which the public sees, documents the attributes.
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
        # In the unit: the steps of each dimension, and how far one element reaches.
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
        """bool : whether an element lies before the buffer's start or beyond its end."""
        reached = self.coverage
        return reached.low < reached.high and (reached.low < 0 or (self.size is not None and reached.high > self.size))

    @property
    def contiguity(self) -> str:
        """str : ``"C-contiguous"``, ``"F-contiguous"``, ``"C- and F-contiguous"`` or ``"not contiguous"``."""
        c, f = (_first_gap(self, order) is None for order in "CF")
        return _CONTIGUITY[c, f]

    def notes(self) -> list[str]:
        """Sentences on what a reader of the picture should know; most layouts need none."""
        return [note for tell in _NOTES for note in tell(self)]


# ------------------------------------------------------------------------------------------------------ sentences

_CONTIGUITY = {
    (True, True): "C- and F-contiguous",
    (True, False): "C-contiguous",
    (False, True): "F-contiguous",
    (False, False): "not contiguous",
}


def _first_gap(geometry: Geometry, order: str) -> tuple[int, int] | None:
    """The first dimension, from the fastest on, that does not step as in a compact array, and the compact step."""
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


def _tell_leaving(geometry: Geometry) -> list[str]:
    if not geometry.leaves_buffer:
        return []
    low, last = geometry.coverage.low, geometry.coverage.high - 1
    if geometry.size is None:
        end = f"and the buffer begins at {geometry.unit} 0"
    elif geometry.size == 0:
        end = "and the buffer is empty"
    else:
        end = f"and the buffer has {geometry.unit}s 0 to {geometry.size - 1}"
    return [f"The view leaves its buffer: it reaches {geometry.unit}s {low} to {last}, {end}. Reading it is an error."]


def _tell_nothing(geometry: Geometry) -> list[str]:
    if geometry.count == 0:
        return ["There are no elements, so nothing is read or written, whatever the strides."]
    return ["Elements of zero bytes take no place in the buffer."] if geometry.span == 0 else []


def _tell_bytes(geometry: Geometry) -> list[str]:
    if geometry.unit == "element" or geometry.span == 0:
        return []
    return [f"Elements do not lie at multiples of their {geometry.itemsize} bytes, so positions are in bytes."]


def _tell_order(geometry: Geometry) -> list[str]:
    """Why an array is not contiguous in either order."""
    c, f = (_first_gap(geometry, order) for order in "CF")
    if c is None or f is None or geometry.span == 0:
        return []
    dimension, compact = c
    first = many(geometry.steps[dimension], geometry.unit)
    said = f"dimension {dimension} steps by {first}; compact would be {compact}"
    backwards = [
        f"dimension {k} steps by {many(step, geometry.unit)}, backwards too"
        for k, (length, step) in enumerate(zip(geometry.shape, geometry.steps, strict=True))
        if step < 0 and length > 1 and k != dimension
    ]
    return [f"Not contiguous: {'; '.join([said, *backwards])}."]


def _tell_sharing(geometry: Geometry) -> list[str]:
    reach, used = geometry.count * geometry.span, geometry.coverage.used
    if used is None:
        return ["The strides interleave: which places are used is not counted for so many elements."]
    if reach <= used:
        return []
    place = "place" if geometry.unit == "element" else "byte"
    return [f"Elements share memory: {geometry.count} of them lie in {many(used, place)}."]


def many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"


_NOTES = (_tell_leaving, _tell_nothing, _tell_bytes, _tell_order, _tell_sharing)
