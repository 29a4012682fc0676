"""What the drawings of a layout are made of: prose, cells, numbers and lines, gathered in layers into one SVG.

Cells carry their own colours and dark text, so that they look the same on every page. No one grey can be read on light
pages and on dark ones (WCAG 2 asks for a contrast of 4.5), so everything outside of cells has a colour for each. As a
document of its own or as an image the picture takes the reader's, and as part of a page that page's ``color-scheme``.
What does not know ``light-dark`` shows a grey in between. Sizes are in pixels.
"""

import re
import textwrap
from collections.abc import Iterator
from html import escape

WIDTH = 760  # of the widest line, where nothing else is asked for
MARGIN = 8
CELL = 26  # height
BASELINE = 17  # of what is written on a cell, from its top
GAP = 2  # between cells
LETTER, SMALL_LETTER = 6.7, 5.5  # widths at 11 and 9 pixels

RED, BLUE = "#d1343f", "#5a8bdc"
WARNING = 'fill="#e5484d" style="fill:light-dark(#c4282f,#ff7b80)" font-weight="600"'  # prose
_INK, _INKS = "#767d88", "light-dark(#57606a,#9da7b3)"  # what is written on the page itself
_ON_LIGHT_OR_DARK = re.compile(r"light-dark\(.*?\)")
_SCHEMES = "<style>svg:root{color-scheme:light dark}</style>"
_DARK = "#1f2328"  # what is written on a cell
_ON_RED = "#ffffff"
# One lightness, hues from red to pink.
_RAINBOW = ("ffafae", "ffb888", "e5c878", "bbd78a", "8be0b3", "6ce0e0", "7dd8ff", "a9caff", "d5bbff", "f2b2eb")
_SANS = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

# What the parts of a layer have in common, so that each says only what is its own; the lowest layer first.
_ON_PAGE = f'fill="{_INK}" style="fill:{_INKS}"'
_ON_CELL = f'fill="{_DARK}" text-anchor="middle" pointer-events="none"'  # not between a cell and its tooltip
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
    """A picture that grows from top to bottom.

    Attributes
    ----------
    y : float
        Where the next line begins.
    most : int
        How wide a line may be.
    """

    def __init__(self, most: int = WIDTH) -> None:
        self.y, self.most = float(MARGIN), most
        self._width = 0.0
        self._layers: dict[str, dict[float, list[str]]] = {layer: {} for layer in _LAYERS}

    def add(self, layer: str, part: str, y: float) -> None:
        """Put a part into a layer, at a height."""
        self._layers[layer].setdefault(y, []).append(part)

    def reach(self, x: float) -> None:
        """Be wide enough for `x`."""
        self._width = max(self._width, x)

    def write(self, text: str, size: int, attributes: str = "") -> None:
        """Write prose below all that is drawn, broken into lines where it is too long."""
        letter = size * 0.54
        for line in textwrap.wrap(text, int((self.most - 2 * MARGIN) / letter)):
            self.y += size * 1.5
            self.add("prose", f'<text x="{MARGIN}" font-size="{size}"{attributes}>{escape(line)}</text>', self.y)
            self.reach(MARGIN + len(line) * letter)

    def caption(self, text: str) -> None:
        """Say what comes next."""
        self.y += 10
        self.write(text, 11)
        self.y += 6

    def svg(self, label: str) -> str:
        """Return the whole as one document; `label` is for those who cannot see it."""
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
    """Return the picture as part of a page, whose own colour of text it takes: not all dark pages say that they are."""
    own_colour = _ON_LIGHT_OR_DARK.sub("currentColor;opacity:.9", svg.replace(_SCHEMES, ""))
    return f'<div class="arrayhub-layout">{own_colour}</div>'


def cell(x: float, width: float, height: float, fill: str, about: str) -> str:
    """A cell, and what it says when a pointer rests on it."""
    return f'<rect x="{x:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}"><title>{about}</title></rect>'


def text(x: float, words: str, on_red: bool = False) -> str:
    """Some letters without anything that XML would read."""
    colour = f' fill="{_ON_RED}"' if on_red else ""
    return f'<text x="{x:g}"{colour}>{words}</text>'


def rainbow(order: float) -> str:
    """The colour of a place in logical order, 0 to 1, between two neighbours of the rainbow."""
    place = order * (len(_RAINBOW) - 1)
    low = min(int(place), len(_RAINBOW) - 2)
    ends = [bytes.fromhex(colour) for colour in _RAINBOW[low : low + 2]]
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in zip(*ends, strict=True)).hex()
