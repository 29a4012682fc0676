"""Describe a NestedArray for a notebook: two lines of text per node, with its first elements."""

from collections.abc import Iterator
from typing import Any

from arrayhub._core.tree import kind_of
from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.nested.array import NestedArray, check, part, valid_mask

MOST_ELEMENTS = 16  # maximum number of elements per line; an ellipsis replaces further elements
MOST_LEVELS = 6
MOST_CHUNKS = 4


def picture_of(x: NestedArray) -> TextPicture:
    """Return the text. If the host cannot read the array, or if the array is invalid, the text ends with an error."""
    lines = [f"{x.type}, {x.access}, on {x.device}"]
    try:
        lines.extend(_lines(x, 0))
    except BufferError:
        lines.append("the memory is on a device; call x.to_host() to show the elements")
    except ValueError as error:
        lines.append(str(error))
    return TextPicture("\n".join(lines))


def _lines(node: Any, level: int) -> Iterator[str]:
    """Yield the lines of a node, and those of its chunks, its children, or the content of its rows."""
    if isinstance(node, NestedArray):
        check(node)
    indent = "  " * level
    elements = _elements(node)
    yield indent + _caption(node)
    if elements:
        yield f"{indent}  {'  '.join(elements)}{'  …' if len(node) > len(elements) else ''}"
    if not isinstance(node, NestedArray) or level == MOST_LEVELS:
        return
    kind = kind_of(node)
    if kind.chunks:
        for k, chunk in enumerate(node.chunks[:MOST_CHUNKS]):
            yield f"{indent}chunk {k} of {len(node.chunks)}"
            yield from _lines(chunk, level + 1)
    elif kind.named:
        for name, field in zip(node.field_names, node.children, strict=True):
            yield f"{indent}field {name}"
            yield from _lines(field, level + 1)
    elif kind.lists:
        spans = _spans(node)
        first = min((start for start, stop in spans if stop > start), default=0)
        yield from _lines(part(node.content, first, max([first, *(stop for _, stop in spans)])), level + 1)


def _caption(node: Any) -> str:
    if not isinstance(node, NestedArray):
        return f"content: {len(node)} of {node.dtype}"
    offsets = f", offsets {node.offsets.dtype}" if kind_of(node).ends else ""
    return f"{node.kind}: {len(node)} {'element' if len(node) == 1 else 'elements'}{offsets}"


def _elements(node: Any) -> list[str]:
    """Return the first elements as text. A row of a list is the range of its elements in the content."""
    shown = part(node, 0, min(len(node), MOST_ELEMENTS))
    if not isinstance(node, NestedArray):
        return list(map(_short, shown.to_host().tolist()))
    kind = kind_of(node)
    if kind.chunks or kind.named:
        return []
    if not kind.lists:
        return ["missing" if value is None else _short(value) for value in shown.to_list()]
    rows = zip(_spans(node), valid_mask(shown).tolist(), strict=True)
    return [f"{start}:{stop}" if valid else "missing" for (start, stop), valid in rows]


def _spans(node: NestedArray) -> list[tuple[int, int]]:
    """Return (start, stop) in the content for each row that is shown."""
    rows = range(min(len(node), MOST_ELEMENTS))
    kind = kind_of(node)
    if kind.width:
        return [(k * node.width, (k + 1) * node.width) for k in rows]
    starts = node.offsets[: len(rows) + 1].to_host()
    return [(int(starts[k]), int(starts[k + 1])) for k in rows]


def _short(value: Any) -> str:
    label = repr(value)
    return label if len(label) <= 12 else f"{label[:11]}…"
