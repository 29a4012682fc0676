"""Draw a layout as SVG: the array by index, and below it the buffer by position. Both consist of rows of cells.

Cells have a fill color and dark text, so that they look the same on every page. Text outside of cells has the text
color of a notebook's page. A separate document has two colors, one for light and one for dark pages, because no single
gray reaches the contrast of 4.5:1 (WCAG 2) both on white and on the usual dark page colors, such as #1e1e1e. Renderers
without ``light-dark`` show a medium gray. Sizes are in pixels.
"""

import itertools
import textwrap
from collections.abc import Iterable, Iterator
from html import escape

from arrayhub.inspection.pictures.scene import Element, Geometry, Index, Place, Scene, Shown, index_text, scenes
from arrayhub.inspection.pictures.text import short, tuple_text

MOST_BYTES = 20_000

_NARROWEST = 28  # minimum width of a cell
_LONGEST_LABEL = 13  # maximum letters in a cell
_OMITTED_ROWS = 16  # height of the dots for omitted rows
_BLOCK_GAP = 11

_WIDTH = 768  # default maximum width of a picture
_MARGIN = 8
_CELL = 26  # height of a cell
_BASELINE = 17  # baseline of the text in a cell, from the top of the cell
_GAP = 2  # between cells
_LETTER, _SMALL_LETTER = 6.7, 5.5  # widths of a letter at font sizes of 11 and 9 pixels

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

# Text in a cell ignores the pointer, so that the tooltip of the cell appears.
_ON_CELL = f'fill="{_DARK}" text-anchor="middle" pointer-events="none"'
# SVG attributes of each layer. The layers are listed from the bottom to the top.
_LAYERS = {
    "prose": f'font-family="{_SANS}"',
    "cells": f'stroke="{_DARK}" stroke-opacity=".25"',
    "holes": 'stroke="currentColor" stroke-dasharray="3 3"',
    "names": _ON_CELL,
    "counts": f'{_ON_CELL} font-size="9"',
    "numbers": 'font-size="9" text-anchor="middle"',
    "dots": 'text-anchor="middle"',
}


# ------------------------------------------------------------------------------------------------------- canvas


class _Canvas:
    """Text and cells in layers, drawn from top to bottom. `y` is the top of the next line, `most` its maximum width."""

    def __init__(self, most: int) -> None:
        self.y, self.most = float(_MARGIN), most
        self._width = 0.0
        self._layers: dict[str, dict[float, list[str]]] = {layer: {} for layer in _LAYERS}

    def add(self, layer: str, part: str, y: float) -> None:
        """Add a part to a layer at the vertical position `y`."""
        self._layers[layer].setdefault(y, []).append(part)

    def add_text(self, layer: str, x: float, words: str, y: float, attributes: str = "") -> None:
        """Add text to a layer. `words` must not contain characters that XML escapes."""
        self.add(layer, f'<text x="{x:g}"{attributes}>{words}</text>', y)

    def add_cell(self, x: float, width: float, height: float, fill: str, about: str, label: str) -> None:
        """Add a cell with the tooltip `about` at the current line. A cell without a fill color is dashed."""
        cells, names = ("holes", "dots") if fill == "none" else ("cells", "names")
        title = f"<title>{about}</title>"
        self.add(cells, f'<rect x="{x:g}" width="{width:g}" height="{height:g}" fill="{fill}">{title}</rect>', self.y)
        on_red = f' fill="{_ON_RED}"' if fill == _RED else ""
        self.add_text(names, x + width / 2, label, self.y + _BASELINE, on_red)

    def reach(self, x: float) -> None:
        """Extend the width of the picture to `x`."""
        self._width = max(self._width, x)

    def write(self, text: str, size: int, weight: int = 400) -> None:
        """Write text below the drawn parts, wrapped at the maximum width."""
        letter = size * (0.54 if weight == 400 else 0.64)  # mean widths of DejaVu Sans, which is wide, and of its bold
        bold = f' font-weight="{weight}"' if weight != 400 else ""
        for line in textwrap.wrap(text, int((self.most - 2 * _MARGIN) / letter)):
            self.y += size * 1.5
            self.add("prose", f'<text x="{_MARGIN}" font-size="{size}"{bold}>{escape(line)}</text>', self.y)
            self.reach(_MARGIN + len(line) * letter)

    def caption(self, text: str) -> None:
        """Write a caption for the next part."""
        self.y += 10
        self.write(text, 11)
        self.y += 6

    def svg(self, label: str, in_page: bool) -> str:
        """Return the picture as an SVG document, or as a part of an HTML page in the text color of the page.

        `label` is the text for screen readers. A page does not need to set ``color-scheme``.
        """
        width, height = round(self._width) + _MARGIN, round(self.y) + _MARGIN
        color, colors, scheme = ("", "", "") if in_page else (f' color="{_GRAY}"', _TWO_COLORS, _SCHEMES)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
            f' style="max-width:100%;height:auto{colors}"{color} fill="currentColor" font-size="11"'
            f' font-family="{_MONO}" role="img" aria-label="{escape(label)}">{scheme}{"".join(self._drawn())}</svg>'
        )

    def _drawn(self) -> Iterator[str]:
        for layer, lines in self._layers.items():
            if lines:
                yield f"<g {_LAYERS[layer]}>"
                yield from (f'<g transform="translate(0 {y:g})">{"".join(parts)}</g>' for y, parts in lines.items())
                yield "</g>"


def _rainbow(order: float) -> str:
    """Return the color of an element. `order` is its position in logical order, as a fraction from 0 to 1."""
    place = order * (len(_RAINBOW) - 1)
    low = min(int(place), len(_RAINBOW) - 2)
    ends = [bytes.fromhex(color) for color in _RAINBOW[low : low + 2]]
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)).hex()


# ------------------------------------------------------------------------------------------------------ drawing


def draw_svg(geometry: Geometry, width: int = _WIDTH, in_page: bool = False) -> str:
    """Return the largest SVG of less than `MOST_BYTES` bytes that is not wider than `width`, for ``Picture.svg``."""
    for scene in scenes(geometry):
        svg = _draw(scene, width - _MARGIN, in_page)
        if len(svg.encode()) < MOST_BYTES:
            break
    return svg


def _draw(scene: Scene, most: int, in_page: bool) -> str:
    geometry, canvas = scene.geometry, _Canvas(most)
    kind = f"{short(geometry.dtype)}, shape" if geometry.dtype is not None else "shape"
    title = f"{kind} {tuple_text(geometry.shape)}, {geometry.contiguity}"
    facts = _facts(geometry)
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


def _draw_array(canvas: _Canvas, scene: Scene) -> None:
    """Draw a row of cells for each index of the leading dimensions. Columns that do not fit continue below."""
    rows, columns = _rows(scene.axes[:-1]), scene.axes[-1] if scene.axes else [0]
    longest = max((len(index_text(row)) for row in rows if row is not None), default=0)
    left = _MARGIN + (round(_SMALL_LETTER * longest) + 6 if longest else 0)
    width = _width_for(str(element.position) for element in scene.elements.values())
    fitting = max((canvas.most - left + _GAP) // (width + _GAP), 1)
    for start in range(0, len(columns), fitting):
        block = [(left + k * (width + _GAP), at) for k, at in enumerate(columns[start : start + fitting])]
        canvas.y += _BLOCK_GAP if start else 0
        if scene.axes:
            canvas.y += 13
            # Of columns that continue below, only the first has a number, so that the SVG stays small.
            for x, column in block if fitting >= len(columns) else block[:1]:
                if column is not None:
                    canvas.add_text("numbers", x + width / 2, str(column), canvas.y - 4)
        for row in rows:
            if row:
                canvas.add_text("numbers", (_MARGIN + left) / 2 - 2, index_text(row), canvas.y + _BASELINE - 1)
            for x, column in block:
                _draw_element(canvas, scene, row, column, x, width)
            canvas.y += _OMITTED_ROWS if row is None else _CELL + _GAP
        canvas.reach(block[-1][0] + width + _GAP)


def _rows(axes: list[Shown]) -> list[Index | None]:
    """Return the indices along several dimensions, with a single None for consecutive omitted indices."""
    rows: list[Index | None] = [()]
    for axis in axes:
        longer = ([None] if row is None else [None if i is None else (*row, i) for i in axis] for row in rows)
        rows = [row for row, _ in itertools.groupby(itertools.chain.from_iterable(longer))]
    return rows


def _draw_element(canvas: _Canvas, scene: Scene, row: Index | None, column: int | None, x: float, width: float) -> None:
    if row is None:
        canvas.add_text("dots", x + width / 2, "⋮", canvas.y + 11)
    elif column is None:
        canvas.add_text("dots", x + width / 2, "⋯", canvas.y + _BASELINE)
    else:
        element = scene.elements[(*row, column)[: len(scene.axes)]]
        color = _RED if element.outside else _rainbow(element.order)
        canvas.add_cell(x, width, _CELL, color, _about(element), _shorten_label(str(element.position)))


# --------------------------------------------------------------------------------------------------- the buffer


def _draw_buffer(canvas: _Canvas, scene: Scene) -> None:
    """Draw the places of the buffer in a row, wrapped at the width of the picture."""
    tall = _CELL + 10 if any(place.sharing > 1 for place in scene.places) else _CELL
    small = (number for place in scene.places for number in (str(place.start), _sharing(place)))
    width = max(_width_for(map(_label, scene.places)), round(max(map(len, small)) * _SMALL_LETTER + 2))
    x = _MARGIN
    canvas.y += 14  # space for the marker of element zero
    for place in scene.places:
        if x > _MARGIN and x + width > canvas.most:
            x, canvas.y = _MARGIN, canvas.y + tall + 24
        _draw_place(canvas, place, x, width, tall)
        if place.start == scene.geometry.offset and place.element is not None:
            _draw_marker(canvas, x + width / 2)
        canvas.reach(x + width)
        x += width + _GAP
    canvas.y += tall + 12


def _draw_place(canvas: _Canvas, place: Place, x: float, width: float, tall: int) -> None:
    middle, y = x + width / 2, canvas.y
    canvas.add_text("numbers", middle, str(place.start), y + tall + 11)
    if place.element is not None:
        more = f" and {place.sharing - 1} more" if place.sharing > 1 else ""
        color = _RED if place.outside else _rainbow(place.element.order)
        canvas.add_cell(x, width, tall, color, _about(place.element, more), _shorten_label(_label(place)))
        if more:
            canvas.add_text("counts", middle, _sharing(place), y + _BASELINE + 13)
    elif place.omitted:
        canvas.add_text("dots", middle, _label(place), y + _BASELINE)
    else:
        canvas.add_cell(x, width, tall, "none", f"{place.length} unused", _shorten_label(_label(place)))


def _draw_marker(canvas: _Canvas, x: float) -> None:
    words = "element zero"
    end = x + 7 + len(words) * _SMALL_LETTER
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
    return max(_NARROWEST, round(longest * _LETTER + 8))
