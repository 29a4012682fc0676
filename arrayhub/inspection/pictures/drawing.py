"""Draw the scene of a layout: as text in the notation of the USMArray specification, and as SVG in rows of cells.

Cells have a fill color and dark text, so that they look the same on every page. Text outside of cells has the text
color of a notebook's page. A separate document has two colors, one for light and one for dark pages, because no single
gray reaches the contrast of 4.5:1 (WCAG 2) both on white and on the usual dark page colors, such as #1e1e1e. Renderers
without ``light-dark`` show a medium gray. Sizes are in pixels.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from arrayhub.inspection.pictures.scene import Place, Scene, index_text, make_scene

if TYPE_CHECKING:
    from arrayhub.inspection.pictures.picture import Picture

_LINE = 100  # maximum characters per line of text
_LONGEST_TEXT = 60  # maximum characters of a dtype

MOST_BYTES = 20_000  # maximum size of an SVG

_WIDTH = 768  # default maximum width of an SVG
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


def _describe(picture: Picture) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each fact in the heading."""
    if picture.dtype is not None:
        yield "dtype", _shorten_text(picture.dtype, _LONGEST_TEXT)
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


def _shorten_text(text: str, most: int) -> str:
    """Truncate a string, such as the dtype of a record."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


# ------------------------------------------------------------------------------------------------------------- text


def draw_text(picture: Picture) -> str:
    """Return the drawing for ``Picture.text``."""
    heading = map(": ".join, _describe(picture))
    return "\n".join([*heading, *_buffer_lines(picture, make_scene(picture)), *picture.notes()])


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


def draw_svg(picture: Picture, width: int = _WIDTH, in_page: bool = False) -> str:
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
