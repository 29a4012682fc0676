"""Layout of an array, and its drawings: text in the notation of the USMArray specification, and SVG in rows of cells.

Cells have a fill color and dark text, so that they look the same on every page. Text outside of cells has the text
color of a notebook's page. A separate document has two colors, one for light and one for dark pages, because no single
gray reaches the contrast of 4.5:1 (WCAG 2) both on white and on the usual dark page colors, such as #1e1e1e. Renderers
without ``light-dark`` show a medium gray. Sizes are in pixels.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple, SupportsIndex

from arrayhub._core.descriptor import integer

LIMIT = 2**63
_MOST_COUNTED = 1 << 14  # maximum number of positions that are enumerated if no formula applies

MOST_PLACES = 64  # maximum number of places of a scene
_FEW = 16  # maximum number of elements of an abbreviated scene, which has at most twice as many places and 3 more
_LONGEST_INDEX = 8  # maximum number of entries of an index that is shown without an ellipsis

_LINE = 100  # maximum characters per line of text
_LONGEST_TEXT = 60  # maximum characters of a dtype

MOST_BYTES = 20_000  # maximum size of an SVG

_LEAST_WIDTH = 240  # of an SVG
_MARGIN = 8
_CELL = 26  # height of a cell
_NARROWEST = 28  # minimum width of a cell
_LONGEST_LABEL = 13  # maximum letters in a cell
_BASELINE = 17  # baseline of the text in a cell, from the top of the cell
_GAP = 2  # between cells
_LETTER, _SMALL_LETTER = 6.7, 5.5  # widths of a letter at font sizes of 11 and 9

_RED = "#d1343f"
_ON_RED = "#ffffff"
_DARK = "#1f2328"  # text in cells
# Colors of equal lightness, with hues from red to pink.
_RAINBOW = ("ffafae", "ffb888", "e5c878", "bbd78a", "8be0b3", "6ce0e0", "7dd8ff", "a9caff", "d5bbff", "f2b2eb")
_SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

# Text color of a separate document, and the style that lets it follow the color scheme of the reader.
_TWO_COLORS, _GRAY = ";color:light-dark(#57606a,#9da7b3)", "#767d88"
_SCHEMES = "<style>svg:root{color-scheme:light dark}</style>"

Index = tuple[int, ...]


@dataclass(slots=True, eq=False, repr=False)
class Picture:
    """Memory layout of an array: shape, strides and offset in its buffer, with the drawing methods `text` and `svg`.

    ``arrayhub.picture`` creates a picture from numbers, and ``USMArray.picture`` from an array. Positions are relative
    to the start of the buffer.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    strides : tuple of int or None
        Strides in elements. None if they are not multiples of the item size (a field of a packed record).
    byte_strides : tuple of int or None
        Strides in bytes. None if the item size is unknown or less than a byte.
    offset : int
        Position of element zero in `unit`.
    size : int or None
        Length of the buffer in `unit`. None if unknown.
    itemsize : int or None
        Size of an element in bytes. None if unknown.
    unit : str
        ``"element"``, or ``"byte"`` if elements are not at multiples of the item size.
    dtype, memory, access, labels : str or None
        Facts for the heading of the drawing. None for a picture from numbers.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    byte_strides: tuple[int, ...] | None
    offset: int
    size: int | None
    itemsize: int | None
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
    def unit(self) -> str:
        return "byte" if self.strides is None else "element"

    def text(self) -> str:
        """Draw the layout as text: the buffer as a list of elements, with ``*`` for unused positions.

        Returns
        -------
        str
            Lines in the notation of the USMArray specification, with at most 64 positions.
        """
        heading = map(": ".join, _describe(self))
        return "\n".join([*heading, *_buffer_lines(self, make_scene(self)), *self.notes()])

    def svg(self, *, width: SupportsIndex = 768) -> str:
        """Draw the layout as SVG: the buffer by position, with the colors of a rainbow in logical order.

        Parameters
        ----------
        width : int, optional
            Maximum width in pixels. Longer lines are wrapped.

        Returns
        -------
        str
            SVG document of less than 20 kB with at most 64 elements.

        Raises
        ------
        TypeError
            `width` is not an integer.
        ValueError
            `width` is less than 240.
        """
        return draw_svg(self, to_integer("width", width, least=_LEAST_WIDTH))

    def __call__(self) -> Picture:
        """Return the picture itself, so that ``x.picture()`` is the same as ``x.picture``."""
        return self

    def _repr_html_(self) -> str:
        return f'<div class="arrayhub-layout">{draw_svg(self, in_page=True)}</div>'

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
            dimension, compact = gap
            step = _many(self.steps[dimension], self.unit)
            yield f"Not contiguous: dimension {dimension} steps by {step}; compact would be {compact}."
        if self.used is not None and self.used < self.count * self.span:
            used = _many(self.used, "position" if self.unit == "element" else "byte")
            yield f"Elements share memory: {self.count} elements occupy {used}."

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
        extents = itertools.accumulate((step * (length - 1) for step, length in dimensions), initial=1)
        if all(step >= extent for (step, _), extent in zip(dimensions, extents, strict=False)):
            return most  # each stride is at least the extent of the previous dimensions
        if most > _MOST_COUNTED:
            return None
        return len(set(map(sum, itertools.product(*(range(0, step * length, step) for step, length in dimensions)))))

    def __repr__(self) -> str:
        return f"Picture(shape={self.shape}, strides={self.strides}, offset={self.offset}, size={self.size})"


def _many(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (abs(number) != 1)}"


def to_integer(name: str, value: Any, *, least: int = -LIMIT) -> int:
    number = integer(value, f"picture: {name}")
    if number < least:
        raise ValueError(f"picture: {name} is {number}; accepted: {least} or more")
    return number


# --------------------------------------------------------------------------------------------------------- the places


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


# ------------------------------------------------------------------------------------------------------------- text


def _describe(picture: Picture) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each fact in the heading."""
    if picture.dtype is not None:
        dtype = picture.dtype  # that of a record may be long
        yield "dtype", dtype if len(dtype) <= _LONGEST_TEXT else f"{dtype[: _LONGEST_TEXT - 3]}..."
    yield "nd", str(picture.ndim)
    yield "shape", _tuple_text(picture.shape)
    if picture.strides is not None:
        yield "strides", _tuple_text(picture.strides)
    if picture.byte_strides is not None:
        yield "byte strides", _tuple_text(picture.byte_strides)
    yield "data", f"points to &{_buffer_name(picture)}[{picture.offset}]"
    if picture.memory is not None:
        yield "memory", f"{picture.memory}, {picture.access}"
    if picture.labels is not None:
        yield "labels", picture.labels


def _tuple_text(values: tuple[int, ...]) -> str:
    """Format a tuple as Python does, abbreviated in the middle if it is long."""
    return f"({index_text(values, ', ')}{',' * (len(values) == 1)})"


def _buffer_name(picture: Picture) -> str:
    return "buf_flat" if picture.unit == "element" else "buf_bytes"


def _buffer_lines(picture: Picture, scene: Scene) -> Iterator[str]:
    """Yield lines with the elements of the buffer, and below them lines with their positions."""
    opening = f"{_buffer_name(picture)} = {{ "
    if not scene:
        yield f"{opening}}}"
        return
    formula = _formula(picture) if picture.offset == 0 and picture.count and picture.ndim else None
    addr = "" if formula else "addr:"
    rows = list(_rows([(_element_text(place), _address(place, picture)) for place in scene]))
    for number, row in enumerate(rows):
        first, last = number == 0, number == len(rows) - 1
        labels, addresses = (" ".join(line) for line in zip(*row, strict=True))
        yield f"{opening if first else ' ' * len(opening)}{labels}{' }' if last else ''}"
        if first and formula:
            yield formula
        if addresses.strip():
            start = f"{addr:<{len(opening) - 2}}{{ " if first else " " * len(opening)
            yield f"{start}{addresses}{' }' if last else ''}".rstrip()


def _rows(cells: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Pad each label and its address to the same width, add commas, and group them into lines."""
    last_address = max((number for number, (_, address) in enumerate(cells) if address), default=0)
    row: list[tuple[str, str]] = []
    used = 0
    for number, (label, address) in enumerate(cells):
        width = max(len(label), len(address))
        label_comma = "," if number < len(cells) - 1 else ""
        address_comma = "," if address and number < last_address else " " * len(label_comma)
        if row and used + width + 2 > _LINE:
            yield row
            row, used = [], 0
        row.append((label.rjust(width) + label_comma, address.rjust(width) + address_comma))
        used += width + 2
    yield row


def _element_text(place: Place) -> str:
    if place.at is None:
        return place.label
    shared = f" x{place.sharing}" if place.sharing > 1 else ""
    return f"{'!' * place.is_outside}a[{place.label}]{shared}"


def _address(place: Place, picture: Picture) -> str:
    if place.at is None:
        return ""
    distance = place.start - picture.offset
    if picture.offset == 0:
        return str(distance)
    return f"offset{distance:+d}" if distance else "offset"


def _formula(picture: Picture) -> str:
    """Return the formula for the position of an element: the sum of strides times indices."""
    name = "strides" if picture.unit == "element" else "byte_strides"
    terms = [f"{name}[{k}]*i[{k}]" for k in range(picture.ndim)]
    if len(terms) > 3:
        terms[1:-1] = ["..."]
    return " + ".join(terms) + ":"


# -------------------------------------------------------------------------------------------------------------- SVG


def draw_svg(picture: Picture, width: int = 768, in_page: bool = False) -> str:
    """Return an SVG of less than `MOST_BYTES` bytes that is not wider than `width`, for ``Picture.svg``.

    With `in_page`, the SVG is a part of an HTML page, in the text color of the page. A page does not need to set
    ``color-scheme``.
    """
    svg = _draw(picture, make_scene(picture), width - _MARGIN, in_page)
    if len(svg.encode()) < MOST_BYTES:
        return svg
    return _draw(picture, make_scene(picture, is_short=True), width - _MARGIN, in_page)


def _draw(picture: Picture, scene: Scene, most: int, in_page: bool) -> str:
    facts = dict(_describe(picture))
    title = ", ".join([facts.pop("dtype", "array"), f"shape {facts.pop('shape')}", picture.contiguity])
    heading = " · ".join(map(" ".join, facts.items()))
    page = _Page(most)
    page.write(title, 14, is_bold=True)
    page.write(heading, 12)
    if scene:
        unit = ", in bytes" if picture.unit == "byte" else ""
        page.y += 10
        page.write(f"the buffer by position{unit}: a cell shows the index of its element, and ▼ marks element zero", 11)
        _draw_buffer(page, picture, scene)
    page.y += 4
    for number, note in enumerate(picture.notes()):
        page.write(note, 12, is_bold=picture.leaves_buffer and number == 0)
    width, height = round(page.width) + _MARGIN, round(page.y) + _MARGIN
    color, colors, scheme = ("", "", "") if in_page else (f' color="{_GRAY}"', _TWO_COLORS, _SCHEMES)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' style="max-width:100%;height:auto{colors}"{color} fill="currentColor" font-size="11"'
        f' font-family="{_MONO}" role="img" aria-label="{escape(f"{title}; {heading}")}">{scheme}'
        f"{''.join(page.parts)}</svg>"
    )


class _Page:
    """Parts of an SVG from top to bottom. `y` is the end of the parts, `width` their width, `most` its limit."""

    def __init__(self, most: int) -> None:
        self.y, self.width, self.most = float(_MARGIN), 0.0, most
        self.parts: list[str] = []

    def write(self, text: str, size: int, is_bold: bool = False) -> None:
        """Write text below the other parts, wrapped at the maximum width."""
        letter = size * (0.64 if is_bold else 0.54)  # mean widths of DejaVu Sans, which is wide, and of its bold
        weight = ' font-weight="600"' if is_bold else ""
        style = f'font-family="{_SANS}" font-size="{size}"{weight}'
        for line in textwrap.wrap(text, int((self.most - 2 * _MARGIN) / letter)):
            self.y += size * 1.5
            self.parts.append(f'<text x="{_MARGIN}" y="{self.y:g}" {style}>{escape(line)}</text>')
            self.width = max(self.width, _MARGIN + len(line) * letter)


def _draw_buffer(page: _Page, picture: Picture, scene: Scene) -> None:
    """Draw the places of the buffer in a row, wrapped at the maximum width."""
    height = _CELL + 10 if any(place.sharing > 1 for place in scene) else _CELL
    label = min(max(len(place.label) for place in scene), _LONGEST_LABEL)
    number = max(len(text) for place in scene for text in (str(place.start), f"×{place.sharing}"))
    width = max(_NARROWEST, round(label * _LETTER + 8), round(number * _SMALL_LETTER + 2))
    x = _MARGIN
    page.y += 16  # space for the triangle
    page.parts.append('<g text-anchor="middle">')
    for place in scene:
        if x > _MARGIN and x + width > page.most:
            x, page.y = _MARGIN, page.y + height + 24
        cell = "".join(_cell(place, width, height, place.start == picture.offset))
        page.parts.append(f'<g transform="translate({x} {page.y:g})">{cell}</g>')
        page.width = max(page.width, x + width)
        x += width + _GAP
    page.parts.append("</g>")
    page.y += height + 12


def _cell(place: Place, width: int, height: int, is_zero: bool) -> Iterator[str]:
    """Yield the parts of a cell: its tooltip, its color and label, and its position below."""
    middle, fill = width / 2, "currentColor"
    if place.at is not None:
        fill = _ON_RED if place.is_outside else _DARK
        color = _RED if place.is_outside else _rainbow(place.order)
        shared = f" and {place.sharing - 1} more" if place.sharing > 1 else ""
        outside = ", outside of the buffer" if place.is_outside else ""
        yield f"<title>a[{place.label}]{shared} at {place.start}{outside}</title>"
        yield f'<rect width="{width}" height="{height}" fill="{color}"/>'
        if is_zero:
            yield f'<text x="{middle:g}" y="-3" font-size="9">▼</text>'
    elif place.is_unused:
        dashed = 'fill="none" stroke="currentColor" stroke-dasharray="3 3"'
        yield f'<title>{place.length} unused</title><rect width="{width}" height="{height}" {dashed}/>'
    # The end of a label differs between neighboring cells.
    label = place.label if len(place.label) <= _LONGEST_LABEL else f"…{place.label[1 - _LONGEST_LABEL :]}"
    yield f'<text x="{middle:g}" y="{_BASELINE}" fill="{fill}">{label}</text>'
    if place.sharing > 1:
        yield f'<text x="{middle:g}" y="{_BASELINE + 13}" fill="{fill}" font-size="9">×{place.sharing}</text>'
    yield f'<text x="{middle:g}" y="{height + 11}" font-size="9">{place.start}</text>'


def _rainbow(order: float) -> str:
    """Return the color of an element. `order` is its position in logical order, as a fraction from 0 to 1."""
    place = order * (len(_RAINBOW) - 1)
    low = min(int(place), len(_RAINBOW) - 2)
    ends = [bytes.fromhex(color) for color in _RAINBOW[low : low + 2]]
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)).hex()
