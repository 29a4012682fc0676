"""Draw a layout as SVG: the array by index, and below it the buffer by position."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from arrayhub.inspection.pictures.canvas import (
    BASELINE,
    CELL,
    GAP,
    LETTER,
    MARGIN,
    RED,
    SMALL_LETTER,
    WARNING,
    WIDTH,
    Canvas,
    cell,
    for_page,
    rainbow,
    text,
)
from arrayhub.inspection.pictures.geometry import Geometry
from arrayhub.inspection.pictures.scene import Element, Index, Place, Scene, Shown, index_text, scenes
from arrayhub.inspection.pictures.text import short, tuple_text
from arrayhub.inspection.units import of_bytes

MOST_BYTES = 20_000

_NARROWEST = 28  # minimum width of a cell
_LONGEST_LABEL = 13  # maximum letters in a cell
_DOTS = 18  # width of dots between cells
_OMITTED_ROWS = 16  # height of the dots for omitted rows
_MATRIX_GAP, _BLOCK_GAP = 20, 11
_BAR = 14  # height of the bar
_BINS = 64  # maximum bins of the bar
_LEAST_BIN = 8  # minimum positions per bin; smaller bins would show aliasing between strides and bins
_MOST_MARKS = 64


def draw_svg(geometry: Geometry, width: int = WIDTH + MARGIN) -> str:
    """Return the largest SVG of less than `MOST_BYTES` bytes that is not wider than `width`, for ``Picture.svg``."""
    for scene in scenes(geometry):
        svg = _picture(scene, width - MARGIN)
        if len(svg.encode()) < MOST_BYTES:
            break
    return svg


def draw_for_page(geometry: Geometry) -> str:
    """Return the HTML for notebooks."""
    return for_page(draw_svg(geometry))


def _picture(scene: Scene, most: int) -> str:
    geometry, canvas = scene.geometry, Canvas(most)
    title, facts = _title(geometry), _facts(geometry)
    canvas.write(title, 14, ' font-weight="600"')
    canvas.write(facts, 12)
    if scene.elements:
        unit = ", in bytes" if geometry.unit == "byte" else ""
        canvas.caption(f"the array by index: a cell shows its position in the buffer{unit}")
        _draw_grid(canvas, scene)
    if scene.places:
        canvas.caption("the buffer by position: a cell shows the index of its element")
        _draw_strip(canvas, scene)
    if not scene.whole and geometry.coverage.used is not None:
        _draw_bar(canvas, scene)
    canvas.y += 4
    for number, note in enumerate(geometry.notes()):
        canvas.write(note, 12, f" {WARNING}" if geometry.leaves_buffer and number == 0 else "")
    return canvas.svg(f"{title}; {facts}")


# ------------------------------------------------------------------------------------------------------ heading


def _title(geometry: Geometry) -> str:
    kind = f"{short(geometry.dtype)}, shape" if geometry.dtype is not None else "shape"
    return f"{kind} {tuple_text(geometry.shape)}, {geometry.contiguity}"


def _facts(geometry: Geometry) -> str:
    strides = [
        f"{tuple_text(steps)} {unit}"
        for steps, unit in ((geometry.strides, "elements"), (geometry.byte_strides, "bytes"))
        if steps is not None
    ]
    facts = [f"strides {' = '.join(strides)}", f"offset {geometry.offset}{' bytes' * (geometry.unit == 'byte')}"]
    if geometry.memory is not None:
        facts += [geometry.memory, str(geometry.access), *([short(geometry.labels)] if geometry.labels else [])]
    elif geometry.size is not None:
        facts.append(f"buffer of {geometry.size} element{'s' * (geometry.size != 1)}")
    return " · ".join(facts)


# ---------------------------------------------------------------------------------------------------- the array


class _Column(NamedTuple):
    """One column of the array. ``place=None`` marks omitted columns or matrices."""

    left: float
    width: float
    matrix: Index | None  # index in all dimensions except the last two
    place: int | None  # index in the last dimension

    @property
    def center(self) -> float:
        return self.left + self.width / 2


def _draw_grid(canvas: Canvas, scene: Scene) -> None:
    """Draw the matrices of the last two dimensions beside each other. Columns that do not fit continue below."""
    rows: Shown = scene.axes[-2] if len(scene.axes) > 1 else [0]
    labels = [str(row) for row in rows if row is not None and len(scene.axes) > 1]
    left = MARGIN + (round(SMALL_LETTER * max(map(len, labels))) + 6 if labels else 0)
    blocks = list(_blocks(scene, left, canvas.most))
    for block in blocks:
        # Of columns that continue below, only the first has a number, so that the SVG stays small.
        _draw_head(canvas, block, block if len(blocks) == 1 else block[:1], len(scene.axes))
        for row in rows:
            if labels and row is not None:
                canvas.add("numbers", text((MARGIN + left) / 2 - 2, str(row)), canvas.y + BASELINE - 1)
            for column in block:
                _draw_cell(canvas, scene, row, column)
            canvas.y += _OMITTED_ROWS if row is None else CELL + GAP
        canvas.reach(block[-1].left + block[-1].width + GAP)
        canvas.y += _BLOCK_GAP
    canvas.y -= _BLOCK_GAP


def _blocks(scene: Scene, left: float, most: int) -> Iterator[list[_Column]]:
    """Yield lists of columns that fit into the width of the picture."""
    cell_width = _width_for(str(element.position) for element in scene.elements.values())
    columns: Shown = scene.axes[-1] if scene.axes else [0]
    block: list[_Column] = []
    x = left
    for matrix in _matrices(scene.axes[:-2]):
        x += _MATRIX_GAP if block else 0
        for place in [None] if matrix is None else columns:
            width = _DOTS if place is None else cell_width
            if block and x + width > most:
                yield block
                block, x = [], left
            block.append(_Column(x, width, matrix, place))
            x += width + GAP
    yield block


def _draw_head(canvas: Canvas, block: list[_Column], numbered: list[_Column], ndim: int) -> None:
    """Draw the indices of the matrices, and below them the indices of the columns in `numbered`."""
    if ndim > 2:
        for matrix, columns in itertools.groupby(block, lambda column: column.matrix):
            x = next(columns).left
            if matrix is not None:
                label = f"a[{index_text(matrix)},:,:]"
                canvas.add("numbers", f'<text x="{x:g}" text-anchor="start">{label}</text>', canvas.y + 9)
                canvas.reach(x + SMALL_LETTER * len(label))
        canvas.y += 14
    if ndim > 0:
        canvas.y += 13
        for column in numbered:
            if column.place is not None:
                canvas.add("numbers", text(column.center, str(column.place)), canvas.y - 4)


def _draw_cell(canvas: Canvas, scene: Scene, row: int | None, column: _Column) -> None:
    if column.matrix is None or column.place is None:
        if row is not None:
            canvas.add("dots", text(column.center, "⋯"), canvas.y + BASELINE)
    elif row is None:
        canvas.add("dots", text(column.center, "⋮"), canvas.y + 11)
    else:
        last_two = (row, column.place)[2 - min(len(scene.axes), 2) :]
        element = scene.elements[(*column.matrix, *last_two)]
        color = RED if element.outside else rainbow(element.order)
        canvas.add("cells", cell(column.left, column.width, CELL, color, _about(element)), canvas.y)
        canvas.add("names", text(column.center, _label(str(element.position)), element.outside), canvas.y + BASELINE)


def _matrices(axes: list[Shown]) -> Iterator[Index | None]:
    """Yield the indices of the matrices, with a single None for consecutive omitted matrices."""
    for left_out, run in itertools.groupby(_every_matrix(axes), lambda index: index is None):
        yield from (None,) if left_out else run


def _every_matrix(axes: list[Shown]) -> Iterator[Index | None]:
    """Yield the index of each matrix, and None for all matrices at the omitted indices of a dimension."""
    if not axes:
        yield ()
        return
    for outer in _every_matrix(axes[:-1]):
        yield from (None,) if outer is None else (None if i is None else (*outer, i) for i in axes[-1])


# --------------------------------------------------------------------------------------------------- the buffer


def _draw_strip(canvas: Canvas, scene: Scene) -> None:
    """Draw the places of the buffer in a row, wrapped at the width of the picture."""
    tall = CELL + 10 if any(place.sharing > 1 for place in scene.places) else CELL
    x, widest = float(MARGIN), _strip_cell_width(scene)
    canvas.y += 14  # space for the marker of element zero
    for place in scene.places:
        width = _place_width(place, widest, scene.geometry)
        if x > MARGIN and x + width > canvas.most:
            x, canvas.y = float(MARGIN), canvas.y + tall + 24
        _draw_place(canvas, place, x, width, tall)
        if place.start == scene.geometry.offset and place.element is not None:
            _draw_marker(canvas, x + width / 2)
        if scene.geometry.leaves_buffer and place.start in (0, scene.geometry.size):
            canvas.add("lines", f'<path d="M{x - GAP / 2:g} -4v{tall + 8}" stroke-width="2"/>', canvas.y)
        canvas.reach(x + width)
        x += width + GAP
    canvas.y += tall + 12


def _draw_place(canvas: Canvas, place: Place, x: float, width: float, tall: int) -> None:
    middle, y = x + width / 2, canvas.y
    canvas.add("numbers", text(middle, str(place.start)), y + tall + 11)
    if place.element is not None:
        more = f" and {place.sharing - 1} more" if place.sharing > 1 else ""
        color = RED if place.outside else rainbow(place.element.order)
        canvas.add("cells", cell(x, width, tall, color, _about(place.element, more)), y)
        canvas.add("names", text(middle, _label(_join_index(place.element.at)), place.outside), y + BASELINE)
        if more:
            canvas.add("counts", text(middle, f"×{place.sharing}", place.outside), y + BASELINE + 13)
    elif place.kind == "hole":
        canvas.add("holes", cell(x, width, tall, "none", f"{place.length} unused"), y)
        canvas.add("dots", text(middle, _hole_label(place)), y + BASELINE)
    else:
        canvas.add("dots", text(middle, "⋯"), y + BASELINE)


def _draw_marker(canvas: Canvas, x: float) -> None:
    words = "element zero"
    end = x + 7 + len(words) * SMALL_LETTER
    name = f'<text x="{x + 7:g}" text-anchor="start">{words}</text>'
    if end > canvas.most:  # draw the words on the left side of the pointer
        name = f'<text x="{x - 7:g}" text-anchor="end">{words}</text>'
    else:
        canvas.reach(end)
    canvas.add("numbers", f'<path d="M{x - 4:g} -6h8l-4 6z"/>{name}', canvas.y - 3)


def _strip_cell_width(scene: Scene) -> float:
    indices = [_join_index(place.element.at) for place in scene.places if place.element is not None]
    small = [number for place in scene.places for number in (str(place.start), f"×{place.sharing}")]
    return max(_width_for(indices), round(max(map(len, small)) * SMALL_LETTER + 2))


def _place_width(place: Place, widest: float, geometry: Geometry) -> float:
    if place.kind == "hole" and place.length > 1 and geometry.unit == "element":
        return max(_width_for([_hole_label(place)]), round(len(str(place.start)) * SMALL_LETTER + 2))
    if geometry.unit == "byte" and place.length < geometry.span:  # a hole, or a part of overlapping elements
        return max(20, round(widest * place.length / geometry.span))
    return widest


def _hole_label(place: Place) -> str:
    return f"*×{place.length}" if place.length > 1 else "*"


# ------------------------------------------------------------------------------------------------------ the bar


def _draw_bar(canvas: Canvas, scene: Scene) -> None:
    """Draw a bar showing the density of used positions, with tick marks at cache-line boundaries."""
    geometry = scene.geometry
    start, stop = scene.places[0].start, scene.places[-1].start + scene.places[-1].length
    width, used = canvas.most - MARGIN, 100 * (geometry.coverage.used or 0) / (stop - start)
    unit_bytes = (geometry.itemsize or 1) if geometry.unit == "element" else 1
    line = 64  # bytes of a cache line, doubled for long buffers to limit the number of marks
    while (stop - start) * unit_bytes > _MOST_MARKS * line:
        line *= 2
    distance = of_bytes(line) if geometry.itemsize else f"{line} elements"
    canvas.caption(f"the whole buffer, {used:.3g} % used: darker is denser; one mark per {distance}")

    def place(position: float) -> float:
        return MARGIN + (position - start) / (stop - start) * width

    for low, high, density in _densities(geometry, start, stop):
        beyond = low < 0 or (geometry.size is not None and high > geometry.size)
        x, color = place(low), f' fill="{RED}"' if beyond else ""
        part = f'<rect x="{x:.1f}" width="{place(high) - x:.1f}" height="{_BAR}" fill-opacity="{density:g}"{color}/>'
        canvas.add("bins", part, canvas.y)
    numbers = range(-(-start * unit_bytes // line), stop * unit_bytes // line + 1)
    marks = "".join(f"M{place(number * line / unit_bytes):.1f} {_BAR}v4" for number in numbers)
    canvas.add("lines", f'<rect x="{MARGIN}" width="{width}" height="{_BAR}"/><path d="{marks}"/>', canvas.y)
    canvas.reach(canvas.most)
    canvas.y += _BAR + 6


def _densities(geometry: Geometry, start: int, stop: int) -> Iterator[tuple[int, int, float]]:
    """Yield (start, stop, density) for ranges of constant, nonzero density."""
    bins = min(_BINS, max((stop - start) // _LEAST_BIN, 1))
    bounds = [start + (stop - start) * number // bins for number in range(bins + 1)]
    filled = [
        (low, high, round((geometry.coverage.used_below(high) - geometry.coverage.used_below(low)) / (high - low), 2))
        for low, high in itertools.pairwise(bounds)
    ]
    for density, run in itertools.groupby(filled, lambda stretch: stretch[2]):
        stretches = list(run)
        if density > 0:
            yield stretches[0][0], stretches[-1][1], density


# ------------------------------------------------------------------------------------------------------- labels


def _about(element: Element, more: str = "") -> str:
    outside = ", outside of the buffer" if element.outside else ""
    return f"a[{index_text(element.at) or '()'}]{more} at {element.position}{outside}"


def _join_index(index: Index) -> str:
    return ",".join(map(str, index)) or "()"


def _label(letters: str) -> str:
    """Shorten a label to the width of a cell. Keep the end, which differs between neighboring cells."""
    return letters if len(letters) <= _LONGEST_LABEL else f"…{letters[1 - _LONGEST_LABEL :]}"


def _width_for(labels: Iterable[str]) -> float:
    longest = min(max(map(len, labels), default=0), _LONGEST_LABEL)
    return max(_NARROWEST, round(longest * LETTER + 8))
