"""The layout of an array, and the positions of its buffer that a picture shows. Elements are never read."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_PLACES = 64  # maximum number of places of a scene
_LONGEST_ROW = 16  # maximum number of elements of an abbreviated row
_BUDGETS = (64, 48, 32, 24, 16, 8, 4, 2, 1)
_LONGEST_INDEX = 8  # maximum number of entries of an index that is shown without an ellipsis
_MOST_COUNTED = 1 << 14  # maximum number of positions that are enumerated if no formula applies

Index = tuple[int, ...]


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
        orders = [order for order in "CF" if self._first_gap(order) is None]
        return f"{'- and '.join(orders)}-contiguous" if orders else "not contiguous"

    def notes(self) -> Iterator[str]:
        """Yield notes on unusual properties of the layout, such as overlapping elements."""
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
            used = _many(self.used, "position" if self.unit == "element" else "byte")
            yield f"Elements share memory: {self.count} elements occupy {used}."

    def _reasons(self, dimension: int, compact: int) -> Iterator[str]:
        """Yield the reasons why the array is neither C- nor F-contiguous. See `_first_gap`."""
        yield f"dimension {dimension} steps by {_many(self.steps[dimension], self.unit)}; compact would be {compact}"
        for k, (length, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            if step < 0 and length > 1 and k != dimension:
                yield f"dimension {k} also steps backwards, by {_many(step, self.unit)}"

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


def _are_disjoint(dimensions: list[tuple[int, int]]) -> bool:
    """Return whether each stride is at least the extent of the previous dimensions (stride, length)."""
    extent = 1
    for stride, length in dimensions:
        if stride < extent:
            return False
        extent += stride * (length - 1)
    return True


def _many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"


class Element(NamedTuple):
    """One element of the array."""

    at: Index
    position: int
    order: float  # rank in logical order, as a fraction from 0 to 1; equal for elements with the same `position`


class Place(NamedTuple):
    """Range of consecutive buffer positions that the same elements cover, or that no selected element covers."""

    start: int
    length: int
    element: Element | None  # first element, in logical order, that covers the range
    is_omitted: bool  # whether elements that are not selected may cover the range
    sharing: int  # number of elements that cover the range
    is_outside: bool  # whether the range is outside of the buffer

    @property
    def is_unused(self) -> bool:
        """Return whether no element covers the range."""
        return self.element is None and not self.is_omitted

    @property
    def label(self) -> str:
        """The index of the element, ``*`` or ``* x5`` for unused positions, or dots for omitted elements."""
        if self.element is not None:
            return index_text(self.element.at) or "()"
        return "..." if self.is_omitted else f"* x{self.length}" if self.length > 1 else "*"


Scene = list[Place]  # consecutive ranges that cover the buffer and all elements, including elements outside of it


def make_scenes(geometry: Geometry, most: int = MOST_PLACES) -> Iterator[Scene]:
    """Yield ever smaller scenes, none with more than `MOST_PLACES` places, or than `most` elements."""
    for budget in _BUDGETS:
        if budget <= most:
            scene = list(_places(geometry, budget))
            if len(scene) <= MOST_PLACES:
                yield scene


def _places(geometry: Geometry, budget: int) -> Iterator[Place]:
    """Yield the places for at most `budget` elements."""
    elements = sorted(_select(geometry, budget), key=lambda element: element.position) if geometry.span else []
    is_complete = len(elements) == geometry.count
    # If elements are omitted, only broadcast dimensions are counted.
    broadcast = math.prod(length for length, step in zip(geometry.shape, geometry.steps, strict=True) if step == 0)
    starts = [element.position for element in elements]
    ends = (0, geometry.size, geometry.low, geometry.high)
    bounds = {*starts, *(start + geometry.span for start in starts), *(end for end in ends if end is not None)}
    runs = []
    for start, stop in itertools.pairwise(sorted(bounds)):
        covering = elements[bisect_right(starts, start - geometry.span) : bisect_right(starts, start)]
        first = min(covering, key=lambda element: element.at, default=None)
        is_omitted = not covering and not is_complete and geometry.low <= start < geometry.high
        is_outside = start < 0 or (geometry.size is not None and stop > geometry.size)
        sharing = len(covering) if is_complete else broadcast
        runs.append(Place(start, stop - start, first, is_omitted, sharing, is_outside))
    unused = sum(place.length for place in runs if place.is_unused)
    is_split = geometry.unit == "element" and unused + len(runs) <= MOST_PLACES
    for place in runs:
        if is_split and place.is_unused:
            yield from (place._replace(start=place.start + k, length=1) for k in range(place.length))
        else:
            yield place


def _select(geometry: Geometry, budget: int) -> Iterator[Element]:
    """Yield at most `budget` elements in logical order, those at the ends of each dimension."""
    counts = _count_indices(geometry, budget)
    selected = map(_select_indices, geometry.shape, counts)
    positions = {
        index: geometry.offset + sum(i * step for i, step in zip(index, geometry.steps, strict=True))
        for index in itertools.product(*selected)
    }
    rank = {position: number for number, position in enumerate(dict.fromkeys(positions.values()))}
    for index, position in positions.items():
        yield Element(index, position, rank[position] / max(len(rank) - 1, 1))


def index_text(index: Index, between: str = ",") -> str:
    """Format an index as ``1,0,2``, abbreviated in the middle for more than 8 dimensions."""
    if len(index) <= _LONGEST_INDEX:
        return between.join(map(str, index))
    head, tail = index[:3], index[-4:]
    return between.join((*map(str, head), "...", *map(str, tail)))


def _count_indices(geometry: Geometry, budget: int) -> list[int]:
    """Return the number of indices to select along each dimension, with a product of at most `budget`."""
    if geometry.count <= budget:
        return list(geometry.shape) if geometry.count else [0] * geometry.ndim
    counts = [min(length, budget) for length in geometry.shape]
    counts[-1] = min(counts[-1], _LONGEST_ROW)
    product = math.prod(counts)
    while product > budget:
        widest = counts.index(max(counts))  # the outermost if several are equal, so that rows are shortened last
        product = product // counts[widest] * (counts[widest] - 1)
        counts[widest] -= 1
    return counts


def _select_indices(length: int, count: int) -> list[int]:
    head = (count + 1) // 2
    return [*range(head), *range(length - (count - head), length)]
