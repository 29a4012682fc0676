"""Select the elements and the buffer positions that a picture of a layout shows."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from arrayhub.inspection.pictures.picture import Picture

MOST_CELLS = 64  # maximum number of elements in the drawing of the array, and of places in that of the buffer
_LONGEST_ROW = 16  # maximum number of elements of an abbreviated row
_BUDGETS = (64, 48, 32, 24, 16, 8, 4, 2, 1)
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
    """Range of consecutive buffer positions that the same elements cover, or that no selected element covers."""

    start: int
    length: int
    element: Element | None  # first element, in logical order, that covers the range
    omitted: bool  # whether elements that are not selected may cover the range
    sharing: int  # number of elements that cover the range
    outside: bool  # whether the range is outside of the buffer


class Scene:
    """The elements and buffer positions of a layout that are selected for drawing.

    Parameters
    ----------
    geometry : Picture
        Layout to draw.
    budget : int
        Maximum number of elements.

    Attributes
    ----------
    axes : list of list of int or None
        Selected indices along each dimension. None stands for omitted indices.
    elements : dict of tuple of int to Element
        Selected elements by index.
    places : list of Place
        Consecutive ranges that cover the buffer and all elements, including elements outside of the buffer.
    is_complete : bool
        Whether every element is selected.
    """

    def __init__(self, geometry: "Picture", budget: int) -> None:
        self.geometry = geometry
        counts = _counts(geometry, budget)
        self.axes = [_shown(length, count) for length, count in zip(geometry.shape, counts, strict=True)]
        self.is_complete = not any(None in axis for axis in self.axes)
        self.elements = {element.at: element for element in self._elements()}
        self.places = list(self._places())

    def _elements(self) -> Iterator[Element]:
        geometry = self.geometry
        selected = ([i for i in axis if i is not None] for axis in self.axes)
        positions = {
            index: geometry.offset + sum(i * step for i, step in zip(index, geometry.steps, strict=True))
            for index in itertools.product(*selected)  # in logical order
        }
        rank = {position: number for number, position in enumerate(dict.fromkeys(positions.values()))}
        for index, position in positions.items():
            order = rank[position] / max(len(rank) - 1, 1)
            yield Element(index, position, order, self._is_outside(position, geometry.span))

    def _is_outside(self, position: int, length: int) -> bool:
        size = self.geometry.size
        return position < 0 or (size is not None and position + length > size)

    def _places(self) -> Iterator[Place]:
        geometry = self.geometry
        elements = sorted(self.elements.values(), key=lambda element: element.position) if geometry.span else []
        starts = [element.position for element in elements]
        ends = (0, geometry.size, geometry.low, geometry.high)
        bounds = {*starts, *(start + geometry.span for start in starts), *(end for end in ends if end is not None)}
        runs = []
        for start, stop in itertools.pairwise(sorted(bounds)):
            covering = elements[bisect_right(starts, start - geometry.span) : bisect_right(starts, start)]
            runs.append(self._place(start, stop - start, covering))
        unused = sum(place.length for place in runs if place.element is None and not place.omitted)
        split = geometry.unit == "element" and unused + len(runs) <= MOST_CELLS
        for place in runs:
            if split and place.element is None and not place.omitted:
                yield from (place._replace(start=place.start + k, length=1) for k in range(place.length))
            else:
                yield place

    def _place(self, start: int, length: int, covering: list[Element]) -> Place:
        geometry, outside = self.geometry, self._is_outside(start, length)
        if not covering:
            omitted = not self.is_complete and geometry.low <= start < geometry.high
            return Place(start, length, None, omitted, 0, outside)
        # If elements are omitted, only broadcast dimensions are counted.
        broadcast = (length for length, step in zip(geometry.shape, geometry.steps, strict=True) if step == 0)
        sharing = len(covering) if self.is_complete else math.prod(broadcast)
        return Place(start, length, min(covering, key=lambda element: element.at), False, sharing, outside)


def scenes(geometry: "Picture", most: int = MOST_CELLS) -> Iterator[Scene]:
    """Yield ever smaller selections of elements, none with more than `MOST_CELLS` places."""
    for budget in _BUDGETS:
        if budget <= most:
            scene = Scene(geometry, budget)
            if len(scene.places) <= MOST_CELLS:
                yield scene


def index_text(index: Index, between: str = ",") -> str:
    """Format an index as ``1,0,2``, abbreviated in the middle for more than 8 dimensions."""
    if len(index) <= _LONGEST_INDEX:
        return between.join(map(str, index))
    head, tail = index[:3], index[-4:]
    return between.join((*map(str, head), "...", *map(str, tail)))


def _counts(geometry: "Picture", budget: int) -> list[int]:
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
