"""Select the elements and the buffer positions that a picture of a layout shows."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from arrayhub.inspection.pictures.geometry import Geometry

MOST_CELLS = 64  # maximum number of elements in the drawing of the array, and of places in that of the buffer
_LONGEST_ROW = 16  # maximum number of elements of an abbreviated row
_BUDGETS = (64, 48, 32, 24, 16, 8, 4, 2, 1)
_COUNTED = 4096  # maximum number of elements for which shared positions are counted
_LONGEST_INDEX = 8  # maximum number of entries of an index that is shown without an ellipsis

Index = tuple[int, ...]
Shown = list[int | None]  # indices along one dimension; None marks omitted indices


class Element(NamedTuple):
    """One element of the array."""

    at: Index
    position: int
    order: float  # rank in logical order, as a fraction from 0 to 1; equal for elements with the same `position`
    outside: bool


class Place(NamedTuple):
    """Range of consecutive buffer positions that the same elements cover, or that no element covers."""

    start: int
    length: int
    kind: str  # "element", "hole" (no element), or "left out" (elements that are not drawn)
    element: Element | None  # first element, in logical order, that covers the range
    sharing: int  # number of elements that cover the range
    outside: bool  # whether the range is outside of the buffer


class Scene:
    """The elements and buffer positions of a layout that are selected for drawing.

    Parameters
    ----------
    geometry : Geometry
        Layout to draw.
    budget : int
        Maximum number of elements.
    sharers : dict of int to list of tuple of int
        Indices of the elements at each position, in logical order; empty if elements do not share positions.

    Attributes
    ----------
    axes : list of list of int or None
        Selected indices along each dimension. None stands for omitted indices.
    elements : dict of tuple of int to Element
        Selected elements by index.
    places : list of Place
        Consecutive ranges that cover the buffer and all elements, including elements outside of the buffer.
    all_elements : bool
        Whether every element is selected.
    whole : bool
        Whether each place is covered by an element or is a single position.
    """

    def __init__(self, geometry: Geometry, budget: int, sharers: dict[int, list[Index]]) -> None:
        self.geometry = geometry
        self.axes = [
            _shown(length, count) for length, count in zip(geometry.shape, _counts(geometry, budget), strict=True)
        ]
        self.all_elements = not any(None in axis for axis in self.axes)
        self._sharers = sharers
        self.elements = {element.at: element for element in self._elements()}
        self.places = list(self._places())
        self.whole = all(place.kind == "element" or place.length <= 1 for place in self.places)

    def _elements(self) -> Iterator[Element]:
        geometry = self.geometry
        positions: dict[Index, int] = {}
        first: dict[int, Index] = {}
        for index in itertools.product(*([i for i in axis if i is not None] for axis in self.axes)):
            position = positions[index] = _position(geometry, index)
            sharers = self._sharers.get(position)
            first.setdefault(position, sharers[0] if sharers else index)
        rank = {index: number for number, index in enumerate(sorted(first.values()))}
        for index, position in positions.items():
            order = rank[first[position]] / max(len(rank) - 1, 1)
            yield Element(index, position, order, self._outside(position, geometry.span))

    def _outside(self, position: int, length: int) -> bool:
        size = self.geometry.size
        return position < 0 or (size is not None and position + length > size)

    def _places(self) -> Iterator[Place]:
        geometry = self.geometry
        reached = geometry.coverage
        elements = sorted(self.elements.values(), key=lambda element: element.position) if geometry.span else []
        starts = [element.position for element in elements]
        ends = (0, geometry.size, min(0, reached.low), reached.high)
        bounds = {*starts, *(start + geometry.span for start in starts), *(end for end in ends if end is not None)}
        runs = []
        for start, stop in itertools.pairwise(sorted(bounds)):
            covering = elements[bisect_right(starts, start - geometry.span) : bisect_right(starts, start)]
            runs.append(self._place(start, stop - start, covering))
        holes = sum(place.length for place in runs if place.kind == "hole")
        if geometry.unit == "element" and holes + len(runs) <= MOST_CELLS:
            for place in runs:
                yield from _cell_by_cell(place) if place.kind == "hole" else (place,)
        else:
            yield from runs

    def _place(self, start: int, length: int, covering: list[Element]) -> Place:
        outside = self._outside(start, length)
        if not covering:
            return Place(start, length, self._kind_of_gap(start, length), None, 0, outside)
        first = min(covering, key=lambda element: element.at)
        sharers = self._sharers.get(first.position)
        if sharers and sharers[0] < first.at and self.geometry.unit == "element":
            first = first._replace(at=sharers[0])
        return Place(start, length, "element", first, self._sharing(covering), outside)

    def _kind_of_gap(self, start: int, length: int) -> str:
        reached = self.geometry.coverage
        if self.all_elements or self.geometry.span == 0:
            return "hole"
        if reached.used is None:
            return "left out"
        return "left out" if reached.used_below(start + length) > reached.used_below(start) else "hole"

    def _sharing(self, covering: list[Element]) -> int:
        """Return the number of elements that cover a place. In large arrays, only broadcast dimensions are counted."""
        geometry = self.geometry
        sharers = self._sharers.get(covering[0].position)
        if self.all_elements:
            return len(covering)
        if sharers and geometry.unit == "element":
            return len(sharers)
        return math.prod(length for length, step in zip(geometry.shape, geometry.steps, strict=True) if step == 0)


def scenes(geometry: Geometry, most: int = MOST_CELLS) -> Iterator[Scene]:
    """Yield scenes of decreasing size, each with at most `MOST_CELLS` places."""
    sharers = _elements_by_position(geometry)
    for budget in _BUDGETS:
        if budget <= most:
            scene = Scene(geometry, budget, sharers)
            if len(scene.places) <= MOST_CELLS:
                yield scene


def index_text(index: Index, between: str = ",") -> str:
    """Format an index as ``1,0,2``, abbreviated in the middle for more than 8 dimensions."""
    if len(index) <= _LONGEST_INDEX:
        return between.join(map(str, index))
    head, tail = index[:3], index[-4:]
    return between.join((*map(str, head), "...", *map(str, tail)))


def _elements_by_position(geometry: Geometry) -> dict[int, list[Index]]:
    """Return the indices of the elements at each position, in logical order.

    The result is empty if elements do not share positions, or if the array is too large.
    """
    if not 0 < geometry.count <= _COUNTED or geometry.coverage.used == geometry.count * geometry.span:
        return {}
    elements: dict[int, list[Index]] = {}
    for index in itertools.product(*map(range, geometry.shape)):
        elements.setdefault(_position(geometry, index), []).append(index)
    return elements


def _position(geometry: Geometry, index: Index) -> int:
    return geometry.offset + sum(i * step for i, step in zip(index, geometry.steps, strict=True))


def _counts(geometry: Geometry, budget: int) -> list[int]:
    """Return the number of indices to show along each dimension, with a product of at most `budget`."""
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


def _shown(length: int, count: int) -> Shown:
    if count in (0, length):
        return list(range(count))
    head = (count + 1) // 2
    return [*range(head), None, *range(length - (count - head), length)]


def _cell_by_cell(place: Place) -> Iterator[Place]:
    for position in range(place.start, place.start + place.length):
        yield place._replace(start=position, length=1)
