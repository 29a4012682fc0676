"""Draw a layout as SVG: the array by index, and below it the buffer by position. Both consist of rows of cells."""

import itertools
from collections.abc import Iterable

from arrayhub.inspection.pictures.canvas import (
    BASELINE,
    CELL,
    GAP,
    LETTER,
    MARGIN,
    RED,
    SMALL_LETTER,
    WIDTH,
    Canvas,
    rainbow,
)
from arrayhub.inspection.pictures.geometry import Geometry
from arrayhub.inspection.pictures.scene import Element, Index, Place, Scene, Shown, index_text, scenes
from arrayhub.inspection.pictures.text import short, tuple_text

MOST_BYTES = 20_000

_NARROWEST = 28  # minimum width of a cell
_LONGEST_LABEL = 13  # maximum letters in a cell
_OMITTED_ROWS = 16  # height of the dots for omitted rows
_BLOCK_GAP = 11


def draw_svg(geometry: Geometry, width: int = WIDTH + MARGIN, in_page: bool = False) -> str:
    """Return the largest SVG of less than `MOST_BYTES` bytes that is not wider than `width`, for ``Picture.svg``."""
    for scene in scenes(geometry):
        svg = _draw(scene, width - MARGIN, in_page)
        if len(svg.encode()) < MOST_BYTES:
            break
    return svg


def _draw(scene: Scene, most: int, in_page: bool) -> str:
    geometry, canvas = scene.geometry, Canvas(most)
    title, facts = _title(geometry), _facts(geometry)
    canvas.write(title, 14, 600)
    canvas.write(facts, 12)
    if scene.elements:
        unit = ", in bytes" if geometry.unit == "byte" else ""
        canvas.caption(f"the array by index: a cell shows its position in the buffer{unit}")
        _draw_array(canvas, scene)
    if scene.places:
        canvas.caption("the buffer by position: a cell shows the index of its element")
        _draw_buffer(canvas, scene)
    canvas.y += 4
    for number, note in enumerate(geometry.notes()):
        canvas.write(note, 12, 600 if geometry.leaves_buffer and number == 0 else 400)
    return canvas.svg(f"{title}; {facts}", in_page)


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


def _draw_array(canvas: Canvas, scene: Scene) -> None:
    """Draw a row of cells for each index of the leading dimensions. Columns that do not fit continue below."""
    rows, columns = _rows(scene.axes[:-1]), scene.axes[-1] if scene.axes else [0]
    longest = max((len(index_text(row)) for row in rows if row is not None), default=0)
    left = MARGIN + (round(SMALL_LETTER * longest) + 6 if longest else 0)
    width = _width_for(str(element.position) for element in scene.elements.values())
    fitting = max((canvas.most - left + GAP) // (width + GAP), 1)
    for start in range(0, len(columns), fitting):
        block = [(left + k * (width + GAP), at) for k, at in enumerate(columns[start : start + fitting])]
        canvas.y += _BLOCK_GAP if start else 0
        if scene.axes:
            canvas.y += 13
            # Of columns that continue below, only the first has a number, so that the SVG stays small.
            for x, column in block if fitting >= len(columns) else block[:1]:
                if column is not None:
                    canvas.add_text("numbers", x + width / 2, str(column), canvas.y - 4)
        for row in rows:
            if row:
                canvas.add_text("numbers", (MARGIN + left) / 2 - 2, index_text(row), canvas.y + BASELINE - 1)
            for x, column in block:
                _draw_element(canvas, scene, row, column, x, width)
            canvas.y += _OMITTED_ROWS if row is None else CELL + GAP
        canvas.reach(block[-1][0] + width + GAP)


def _rows(axes: list[Shown]) -> list[Index | None]:
    """Return the indices along several dimensions, with a single None for consecutive omitted indices."""
    rows: list[Index | None] = [()]
    for axis in axes:
        longer = ([None] if row is None else [None if i is None else (*row, i) for i in axis] for row in rows)
        rows = [row for row, _ in itertools.groupby(itertools.chain.from_iterable(longer))]
    return rows


def _draw_element(canvas: Canvas, scene: Scene, row: Index | None, column: int | None, x: float, width: float) -> None:
    if row is None:
        canvas.add_text("dots", x + width / 2, "⋮", canvas.y + 11)
    elif column is None:
        canvas.add_text("dots", x + width / 2, "⋯", canvas.y + BASELINE)
    else:
        element = scene.elements[(*row, column)[: len(scene.axes)]]
        color = RED if element.outside else rainbow(element.order)
        canvas.add_cell(x, width, CELL, color, _about(element), _shorten_label(str(element.position)))


# --------------------------------------------------------------------------------------------------- the buffer


def _draw_buffer(canvas: Canvas, scene: Scene) -> None:
    """Draw the places of the buffer in a row, wrapped at the width of the picture."""
    tall = CELL + 10 if any(place.sharing > 1 for place in scene.places) else CELL
    small = (number for place in scene.places for number in (str(place.start), _sharing(place)))
    width = max(_width_for(map(_label, scene.places)), round(max(map(len, small)) * SMALL_LETTER + 2))
    x = MARGIN
    canvas.y += 14  # space for the marker of element zero
    for place in scene.places:
        if x > MARGIN and x + width > canvas.most:
            x, canvas.y = MARGIN, canvas.y + tall + 24
        _draw_place(canvas, place, x, width, tall)
        if place.start == scene.geometry.offset and place.element is not None:
            _draw_marker(canvas, x + width / 2)
        canvas.reach(x + width)
        x += width + GAP
    canvas.y += tall + 12


def _draw_place(canvas: Canvas, place: Place, x: float, width: float, tall: int) -> None:
    middle, y = x + width / 2, canvas.y
    canvas.add_text("numbers", middle, str(place.start), y + tall + 11)
    if place.element is not None:
        more = f" and {place.sharing - 1} more" if place.sharing > 1 else ""
        color = RED if place.outside else rainbow(place.element.order)
        canvas.add_cell(x, width, tall, color, _about(place.element, more), _shorten_label(_label(place)))
        if more:
            canvas.add_text("counts", middle, _sharing(place), y + BASELINE + 13)
    elif place.omitted:
        canvas.add_text("dots", middle, _label(place), y + BASELINE)
    else:
        canvas.add_hole(x, width, tall, f"{place.length} unused", _shorten_label(_label(place)))


def _draw_marker(canvas: Canvas, x: float) -> None:
    words = "element zero"
    end = x + 7 + len(words) * SMALL_LETTER
    name = f'<text x="{x + 7:g}" text-anchor="start">{words}</text>'
    if end > canvas.most:  # draw the words on the left side of the pointer
        name = f'<text x="{x - 7:g}" text-anchor="end">{words}</text>'
    else:
        canvas.reach(end)
    canvas.add("numbers", f'<path d="M{x - 4:g} -6h8l-4 6z"/>{name}', canvas.y - 3)


# ------------------------------------------------------------------------------------------------------- labels


def _about(element: Element, more: str = "") -> str:
    outside = ", outside of the buffer" if element.outside else ""
    return f"a[{index_text(element.at) or '()'}]{more} at {element.position}{outside}"


def _label(place: Place) -> str:
    """Return the index of the element, ``*`` or ``*×5`` for unused positions, or dots for omitted elements."""
    if place.element is not None:
        return ",".join(map(str, place.element.at)) or "()"
    return "⋯" if place.omitted else f"*×{place.length}" if place.length > 1 else "*"


def _sharing(place: Place) -> str:
    return f"×{place.sharing}"


def _shorten_label(letters: str) -> str:
    """Shorten a label to the width of a cell. Keep the end, which differs between neighboring cells."""
    return letters if len(letters) <= _LONGEST_LABEL else f"…{letters[1 - _LONGEST_LABEL :]}"


def _width_for(labels: Iterable[str]) -> int:
    longest = min(max(map(len, labels), default=0), _LONGEST_LABEL)
    return max(_NARROWEST, round(longest * LETTER + 8))
