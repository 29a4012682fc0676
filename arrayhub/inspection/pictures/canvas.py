"""Canvas for drawings of a layout: collect text, cells, numbers and lines in layers, and write them as one SVG.

Cells have a fill color and dark text, so that they look the same on every page. Text and lines outside of cells have
two colors, one for light and one for dark pages, because no single gray reaches the contrast of 4.5:1 (WCAG 2) both on
white and on the usual dark page colors, such as #1e1e1e. As a separate document or image, the picture follows the color
scheme of the reader. As an inline element of a page, the picture follows the ``color-scheme`` of the page. `for_page`
replaces the light and dark colors with the page's text color. Renderers without ``light-dark`` show a medium gray.
Sizes are in pixels.
"""

import re
import textwrap
from collections.abc import Iterator
from html import escape

WIDTH = 760  # default maximum width of a line
MARGIN = 8
CELL = 26  # height of a cell
BASELINE = 17  # baseline of the text in a cell, from the top of the cell
GAP = 2  # between cells
LETTER, SMALL_LETTER = 6.7, 5.5  # widths of a letter at font sizes of 11 and 9 pixels

RED, BLUE = "#d1343f", "#5a8bdc"
WARNING = 'fill="#e5484d" style="fill:light-dark(#c4282f,#ff7b80)" font-weight="600"'  # warning text
_INK, _INKS = "#767d88", "light-dark(#57606a,#9da7b3)"  # text and lines outside of cells
_ON_LIGHT_OR_DARK = re.compile(r"light-dark\(.*?\)")
_SCHEMES = "<style>svg:root{color-scheme:light dark}</style>"
_DARK = "#1f2328"  # text in cells
_ON_RED = "#ffffff"
# Colors of equal lightness, with hues from red to pink.
_RAINBOW = ("ffafae", "ffb888", "e5c878", "bbd78a", "8be0b3", "6ce0e0", "7dd8ff", "a9caff", "d5bbff", "f2b2eb")
_SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_ON_PAGE = f'fill="{_INK}" style="fill:{_INKS}"'
# Text in a cell ignores the pointer, so that the tooltip of the cell appears.
_ON_CELL = f'fill="{_DARK}" text-anchor="middle" pointer-events="none"'
# SVG attributes of each layer. The layers are listed from the bottom to the top.
_LAYERS = {
    "prose": f'{_ON_PAGE} font-family="{_SANS}"',
    "cells": f'stroke="{_DARK}" stroke-opacity=".25"',
    "holes": f'stroke="{_INK}" style="stroke:{_INKS}" stroke-dasharray="3 3"',
    "bins": f'fill="{BLUE}"',
    "lines": f'stroke="{_INK}" style="stroke:{_INKS}" fill="none"',
    "names": _ON_CELL,
    "counts": f'{_ON_CELL} font-size="9"',
    "numbers": f'{_ON_PAGE} font-size="9" text-anchor="middle"',
    "dots": f'{_ON_PAGE} text-anchor="middle"',
}


class Canvas:
    """Picture that is drawn from top to bottom.

    Attributes
    ----------
    y : float
        Top of the next line.
    most : int
        Maximum width of a line.
    """

    def __init__(self, most: int = WIDTH) -> None:
        self.y, self.most = float(MARGIN), most
        self._width = 0.0
        self._layers: dict[str, dict[float, list[str]]] = {layer: {} for layer in _LAYERS}

    def add(self, layer: str, part: str, y: float) -> None:
        """Add a part to a layer at the vertical position `y`."""
        self._layers[layer].setdefault(y, []).append(part)

    def reach(self, x: float) -> None:
        """Extend the width of the picture to `x`."""
        self._width = max(self._width, x)

    def write(self, text: str, size: int, attributes: str = "") -> None:
        """Write text below the drawn parts, wrapped at the maximum width."""
        letter = size * 0.54
        for line in textwrap.wrap(text, int((self.most - 2 * MARGIN) / letter)):
            self.y += size * 1.5
            self.add("prose", f'<text x="{MARGIN}" font-size="{size}"{attributes}>{escape(line)}</text>', self.y)
            self.reach(MARGIN + len(line) * letter)

    def caption(self, text: str) -> None:
        """Write a caption for the next part."""
        self.y += 10
        self.write(text, 11)
        self.y += 6

    def svg(self, label: str) -> str:
        """Return the picture as an SVG document. `label` is the text for screen readers."""
        width, height = round(self._width) + MARGIN, round(self.y) + MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
            f' style="max-width:100%;height:auto" role="img" aria-label="{escape(label)}" font-family="{_MONO}"'
            f' font-size="11">{_SCHEMES}{"".join(self._drawn())}</svg>'
        )

    def _drawn(self) -> Iterator[str]:
        for layer, lines in self._layers.items():
            if lines:
                yield f"<g {_LAYERS[layer]}>"
                yield from (f'<g transform="translate(0 {y:g})">{"".join(parts)}</g>' for y, parts in lines.items())
                yield "</g>"


def for_page(svg: str) -> str:
    """Return the picture as part of an HTML page, in the text color of the page.

    ``light-dark`` is not used here, because not all dark pages set ``color-scheme``.
    """
    page_color = _ON_LIGHT_OR_DARK.sub("currentColor;opacity:.9", svg.replace(_SCHEMES, ""))
    return f'<div class="arrayhub-layout">{page_color}</div>'


def cell(x: float, width: float, height: float, fill: str, about: str) -> str:
    """Return a cell with the tooltip `about`."""
    return f'<rect x="{x:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}"><title>{about}</title></rect>'


def text(x: float, words: str, on_red: bool = False) -> str:
    """Return a text element. `words` must not contain characters that XML escapes."""
    color = f' fill="{_ON_RED}"' if on_red else ""
    return f'<text x="{x:g}"{color}>{words}</text>'


def rainbow(order: float) -> str:
    """Return the color of an element. `order` is its position in logical order, as a fraction from 0 to 1."""
    place = order * (len(_RAINBOW) - 1)
    low = min(int(place), len(_RAINBOW) - 2)
    ends = [bytes.fromhex(color) for color in _RAINBOW[low : low + 2]]
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)).hex()
