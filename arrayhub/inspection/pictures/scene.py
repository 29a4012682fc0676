"""Select the places of the buffer that a picture shows. Elements are never read."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from arrayhub.inspection.pictures.picture import Picture

MOST_PLACES = 64  # maximum number of places of a scene
_FEW = 16  # maximum number of elements of an abbreviated scene, which has at most twice as many places and 3 more
_LONGEST_INDEX = 8  # maximum number of entries of an index that is shown without an ellipsis

Index = tuple[int, ...]


class Place(NamedTuple):
    """Range of consecutive buffer positions that the same elements cover, or that no selected element covers."""

    start: int
    length: int
    at: Index | None  # index of the first element, in logical order, that covers the range
    order: float  # rank of the element in logical order, as a fraction from 0 to 1; equal for elements at one position
    is_omitted: bool  # whether elements that are not selected may cover the range
    sharing: int  # number of elements that cover the range
    is_outside: bool  # whether the range is outside of the buffer

    @property
    def is_unused(self) -> bool:
        """Return whether no element covers the range."""
        return self.at is None and not self.is_omitted

    @property
    def label(self) -> str:
        """The index of the element, ``*`` or ``* x5`` for unused positions, or dots for omitted elements."""
        if self.at is not None:
            return index_text(self.at) or "()"
        return "..." if self.is_omitted else f"* x{self.length}" if self.length > 1 else "*"


Scene = list[Place]  # consecutive ranges that cover the buffer and all elements, including elements outside of it


def make_scene(picture: Picture, is_short: bool = False) -> Scene:
    """Return the places of all elements, or of few elements if `is_short` or if all have too many places."""
    if picture.count <= MOST_PLACES and not is_short:
        scene = list(_places(picture, MOST_PLACES))
        if len(scene) <= MOST_PLACES:
            return scene
    return list(_places(picture, _FEW))


def _places(picture: Picture, budget: int) -> Iterator[Place]:
    """Yield the places for at most `budget` elements, those at the ends of each dimension."""
    indices = itertools.product(*map(_select_indices, picture.shape, _count_indices(picture, budget)))
    positions = {
        index: picture.offset + sum(i * step for i, step in zip(index, picture.steps, strict=True))
        for index in (indices if picture.span else ())
    }
    ranks = {position: rank for rank, position in enumerate(dict.fromkeys(positions.values()))}
    elements = sorted(positions, key=positions.__getitem__)
    is_complete = len(elements) == picture.count
    # If elements are omitted, only broadcast dimensions are counted.
    broadcast = math.prod(length for length, step in zip(picture.shape, picture.steps, strict=True) if step == 0)
    starts = [positions[index] for index in elements]
    ends = (0, picture.size, picture.low, picture.high)
    bounds = {*starts, *(start + picture.span for start in starts), *(end for end in ends if end is not None)}
    runs = []
    for start, stop in itertools.pairwise(sorted(bounds)):
        covering = elements[bisect_right(starts, start - picture.span) : bisect_right(starts, start)]
        first = min(covering, default=None)
        order = 0.0 if first is None else ranks[positions[first]] / max(len(ranks) - 1, 1)
        is_omitted = not covering and not is_complete and picture.low <= start < picture.high
        is_outside = start < 0 or (picture.size is not None and stop > picture.size)
        sharing = len(covering) if is_complete else broadcast
        runs.append(Place(start, stop - start, first, order, is_omitted, sharing, is_outside))
    unused = sum(place.length for place in runs if place.is_unused)
    is_split = picture.unit == "element" and unused + len(runs) <= MOST_PLACES
    for place in runs:
        if is_split and place.is_unused:
            yield from (place._replace(start=place.start + k, length=1) for k in range(place.length))
        else:
            yield place


def index_text(index: Index, between: str = ",") -> str:
    """Format an index as ``1,0,2``, abbreviated in the middle for more than 8 dimensions."""
    if len(index) <= _LONGEST_INDEX:
        return between.join(map(str, index))
    head, tail = index[:3], index[-4:]
    return between.join((*map(str, head), "...", *map(str, tail)))


def _count_indices(picture: Picture, budget: int) -> list[int]:
    """Return the number of indices to select along each dimension, with a product of at most `budget`."""
    if picture.count <= budget:
        return list(picture.shape) if picture.count else [0] * picture.ndim
    counts = [min(length, budget) for length in picture.shape]
    product = math.prod(counts)
    while product > budget:
        widest = counts.index(max(counts))  # the outermost if several are equal, so that rows are shortened last
        product = product // counts[widest] * (counts[widest] - 1)
        counts[widest] -= 1
    return counts


def _select_indices(length: int, count: int) -> list[int]:
    head = (count + 1) // 2
    return [*range(head), *range(length - (count - head), length)]
