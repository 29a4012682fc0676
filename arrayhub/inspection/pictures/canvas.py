"""Canvas for drawings of a layout: collect text, cells and numbers in layers, and write them as one SVG.

Cells have a fill color and dark text, so that they look the same on every page. Text outside of cells has the text
color of a notebook's page. A separate document has two colors, one for light and one for dark pages, because no single
gray reaches the contrast of 4.5:1 (WCAG 2) both on white and on the usual dark page colors, such as #1e1e1e. Renderers
without ``light-dark`` show a medium gray. Sizes are in pixels.
"""

import textwrap
from collections.abc import Iterator
from html import escape

WIDTH = 760  # default maximum width of a line
MARGIN = 8
CELL = 26  # height of a cell
BASELINE = 17  # baseline of the text in a cell, from the top of the cell
GAP = 2  # between cells
LETTER, SMALL_LETTER = 6.7, 5.5  # widths of a letter at font sizes of 11 and 9 pixels

RED = "#d1343f"
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

    def add_text(self, layer: str, x: float, words: str, y: float, attributes: str = "") -> None:
        """Add text to a layer. `words` must not contain characters that XML escapes."""
        self.add(layer, f'<text x="{x:g}"{attributes}>{words}</text>', y)

    def add_cell(self, x: float, width: float, height: float, fill: str, about: str, label: str) -> None:
        """Add a cell with the tooltip `about` at the current line."""
        self.add("cells", _rectangle(x, width, height, fill, about), self.y)
        on_red = f' fill="{_ON_RED}"' if fill == RED else ""
        self.add_text("names", x + width / 2, label, self.y + BASELINE, on_red)

    def add_hole(self, x: float, width: float, height: float, about: str, label: str) -> None:
        """Add a dashed cell for unused positions at the current line."""
        self.add("holes", _rectangle(x, width, height, "none", about), self.y)
        self.add_text("dots", x + width / 2, label, self.y + BASELINE)

    def reach(self, x: float) -> None:
        """Extend the width of the picture to `x`."""
        self._width = max(self._width, x)

    def write(self, text: str, size: int, weight: int = 400) -> None:
        """Write text below the drawn parts, wrapped at the maximum width."""
        letter = size * (0.54 if weight == 400 else 0.64)  # mean widths of DejaVu Sans, which is wide, and of its bold
        bold = f' font-weight="{weight}"' if weight != 400 else ""
        for line in textwrap.wrap(text, int((self.most - 2 * MARGIN) / letter)):
            self.y += size * 1.5
            self.add("prose", f'<text x="{MARGIN}" font-size="{size}"{bold}>{escape(line)}</text>', self.y)
            self.reach(MARGIN + len(line) * letter)

    def caption(self, text: str) -> None:
        """Write a caption for the next part."""
        self.y += 10
        self.write(text, 11)
        self.y += 6

    def svg(self, label: str, in_page: bool) -> str:
        """Return the picture as an SVG document, or as a part of an HTML page in the text color of the page.

        `label` is the text for screen readers. A page does not need to set ``color-scheme``.
        """
        width, height = round(self._width) + MARGIN, round(self.y) + MARGIN
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


def _rectangle(x: float, width: float, height: float, fill: str, about: str) -> str:
    return f'<rect x="{x:g}" width="{width:g}" height="{height:g}" fill="{fill}"><title>{about}</title></rect>'


def rainbow(order: float) -> str:
    """Return the color of an element. `order` is its position in logical order, as a fraction from 0 to 1."""
    place = order * (len(_RAINBOW) - 1)
    low = min(int(place), len(_RAINBOW) - 2)
    ends = [bytes.fromhex(color) for color in _RAINBOW[low : low + 2]]
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)).hex()
