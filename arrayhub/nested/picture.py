"""Draw a NestedArray for a notebook: one line of cells per node, with arcs from each row to its elements.

The caption of a line is to the right of its cells, where it does not overlap the arcs.
"""

from html import escape
from typing import Any

from arrayhub._core.tree import kind_of
from arrayhub.inspection.pictures.canvas import CELL, GAP, MARGIN, Canvas, cell, for_page, rainbow, text
from arrayhub.nested.array import NestedArray, check, part, valid_mask

MOST_CELLS = 16  # maximum number of cells per line; an ellipsis replaces further cells
MOST_LEVELS = 6
MOST_CHUNKS = 4
_WIDTH = 40  # width of a cell, in pixels
_ARCS = 32  # height of the space for arcs, in pixels
_ABOVE = 6  # space above the cells
_BASELINE = 17  # distance from the top of a cell to the baseline of its text
_MISSING = "#e4e4e4"


def picture_of(x: NestedArray) -> str:
    """Return the drawing of an array as HTML.

    If the host cannot read the array, or if the array is invalid, the drawing ends with an error message.
    """
    canvas = Canvas()
    canvas.write(f"{x.type}, {x.access}, on {x.device}", 13)
    try:
        _draw(canvas, x, 0)
    except BufferError:
        canvas.write("the memory is on a device; call x.to_host() to draw the elements", 11)
    except ValueError as error:
        canvas.write(str(error), 11)
    return for_page(canvas.svg(f"an array of type {x.type}"))


def _draw(canvas: Canvas, node: Any, level: int) -> None:
    """Draw one line for a node. Below the line, draw the node's chunks, its children, or the content of its rows."""
    if isinstance(node, NestedArray):
        check(node)
    canvas.y += _ABOVE
    canvas.label(_x(min(len(node), MOST_CELLS)) + (20 if len(node) > MOST_CELLS else 6), _caption(node), _BASELINE)
    _cells(canvas, node, _labels(node))
    canvas.y += CELL
    if not isinstance(node, NestedArray) or level == MOST_LEVELS:
        return
    kind = kind_of(node)
    if kind.chunks:
        for k, chunk in enumerate(node.chunks[:MOST_CHUNKS]):
            canvas.y += _ABOVE
            canvas.write(f"chunk {k} of {len(node.chunks)}", 11)
            _draw(canvas, chunk, level + 1)
    elif kind.named:
        for name, field in zip(node.field_names, node.children, strict=True):
            canvas.y += _ABOVE
            canvas.write(f"field {name}", 11)
            _draw(canvas, field, level + 1)
    elif kind.lists:
        spans = _spans(node)
        first = min((start for start, stop in spans if stop > start), default=0)
        last = max((stop for _, stop in spans), default=0)
        _draw_content(canvas, node, spans, first, last, level)


def _draw_content(canvas: Canvas, node: Any, spans: Any, first: int, last: int, level: int) -> None:
    top = canvas.y
    content = part(node.content, first, max(last, first))
    canvas.y += _ARCS
    for k, (start, stop) in enumerate(spans):
        if stop > start and start - first < MOST_CELLS:
            ends = (start - first, min(stop - first, MOST_CELLS))
            canvas.add("lines", _arc(k, ends[0]) + _arc(k + 1, ends[1], -GAP), top)
    _draw(canvas, content, level + 1)


def _arc(above: int, below: int, shift: float = 0) -> str:
    """Return an arc from the edge of a row to the edge of its first or last element."""
    a, b = _x(above) + shift, _x(below) + shift
    height = _ARCS + _ABOVE
    return f'<path class="arc" d="M{a:g} 0C{a:g} {height / 2:g} {b:g} {height / 2:g} {b:g} {height:g}"/>'


def _x(k: int) -> float:
    return MARGIN + k * (_WIDTH + GAP)


def _spans(node: NestedArray) -> list[tuple[int, int]]:
    """Return (start, stop) in the content for each row that is drawn."""
    rows = range(min(len(node), MOST_CELLS))
    kind = kind_of(node)
    if kind.width:
        return [(k * node.width, (k + 1) * node.width) for k in rows]
    starts = node.offsets[: len(rows) + 1].to_host()
    if kind.ends:
        return [(int(starts[k]), int(starts[k + 1])) for k in rows]
    sizes = node.sizes[: len(rows)].to_host()
    return [(int(starts[k]), int(starts[k]) + int(sizes[k])) for k in rows]


def _caption(node: Any) -> str:
    if not isinstance(node, NestedArray):
        return f"content: {len(node)} of {node.dtype}"
    offsets = f", offsets {node.offsets.dtype}" if kind_of(node).ends else ""
    return f"{node.kind}: {len(node)} {'element' if len(node) == 1 else 'elements'}{offsets}"


def _labels(node: Any) -> list[str | None]:
    """Return the labels of the first cells, with None for missing elements."""
    shown = part(node, 0, min(len(node), MOST_CELLS))
    if not isinstance(node, NestedArray):
        return [_short(value) for value in shown.to_host().tolist()]
    mask = valid_mask(shown).tolist()
    kind = kind_of(node.chunks[0])
    if kind.lists or kind.named:
        return [str(k) if valid else None for k, valid in enumerate(mask)]
    return [None if value is None else _short(value) for value in shown.to_list()]


def _short(value: Any) -> str:
    label = str(value) if not isinstance(value, str) else value
    return label if len(label) <= 5 else f"{label[:4]}…"


def _cells(canvas: Canvas, node: Any, labels: list[str | None]) -> None:
    top = canvas.y
    for k, label in enumerate(labels):
        x = _x(k)
        fill = _MISSING if label is None else rainbow(k / MOST_CELLS)
        about = "missing" if label is None else f"element {k}"
        canvas.add("cells", cell(x, _WIDTH, CELL, fill, escape(about)), top)
        if label is None:
            canvas.add("hatching", _hatching(x), top)
        else:
            canvas.add("names", text(x + _WIDTH / 2, escape(label)), top + _BASELINE)
    if len(node) > len(labels):
        canvas.add("dots", text(_x(len(labels)) + 10, "…"), top + _BASELINE)
    canvas.reach(_x(len(labels) + 1))


def _hatching(x: float) -> str:
    """Return diagonal lines across a cell."""
    steps = range(0, _WIDTH, 8)
    lines = "".join(f"M{x + step:g} {CELL}l{min(8, _WIDTH - step)} -{CELL}" for step in steps)
    return f'<path class="missing" d="{lines}"/>'
