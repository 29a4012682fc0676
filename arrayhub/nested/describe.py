"""`debug_repr`, `check` and the text of pictures for nested data."""

import sys
from collections.abc import Iterator
from typing import Any

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import PASSES_ON, InterfaceError, first_line
from arrayhub._core.tree import kind_of
from arrayhub.inspection.pictures.picture import TextPicture
from arrayhub.inspection.printout import count_references, head_lines, part_lines
from arrayhub.inspection.texts import attempt
from arrayhub.nested.array import NestedArray, check, part, valid_mask
from arrayhub.nested.asnested import import_nested
from arrayhub.nested.from_awkward import is_awkward
from arrayhub.nested.take import spans_of

MOST_ELEMENTS = 16  # in a picture: maximum number of elements per line; an ellipsis replaces further elements
MOST_LEVELS = 6
MOST_CHUNKS = 4
_PARTS = ("validity", "offsets", "indices", "content")


# ------------------------------------------------------------------------------------------------------- debug_repr


def lines_of(x: NestedArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a node and its parts, without the first and the last."""
    yield from head_lines(x, refcount, [f"  type: {x.type}"])
    yield f"  {x.kind} arrmeta"
    yield f"   size: {len(x)}"
    if x.meaning is not None:
        yield f"   meaning: {x.meaning}"
    if x.validity_offset:
        yield f"   validity offset: {x.validity_offset}"
    yield " data:"
    parts = dict(parts_of(x))
    for name in list(parts):
        array = parts.pop(name)  # now only the node and this variable refer to the array
        refcount = count_references(sys.getrefcount(array))
        if isinstance(array, NestedArray):
            yield f"  {name}:"
            yield from (f"  {line}" for line in lines_of(array, refcount))
        else:
            yield from part_lines(name, array)


def parts_of(x: NestedArray) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array of each part of a node.

    The children of an opaque node are named ``children[k]``. The fields of a record are also named ``children[k]`` if
    two fields have the same name, or if a field is named ``validity``, like the record's bitmap.
    """
    if kind_of(x).chunks:
        for k, chunk in enumerate(x.chunks):
            yield f"chunks[{k}]", chunk
        return
    if kind_of(x).named:
        names = x.field_names
        if kind_of(x).opaque or len({*names, "validity"}) != len(names) + 1:
            names = tuple(f"children[{k}]" for k in range(len(names)))
        yield from zip(names, x.children, strict=True)
    for name in _PARTS:
        array = getattr(x, name, None)
        if array is not None:
            yield name, array
    for k, buffer in enumerate(getattr(x, "buffers", ())):
        yield f"buffers[{k}]", buffer


# ------------------------------------------------------------------------------------------------------------ check


def find_faults(obj: Any, texts: list[str]) -> list[str] | None:
    """Check the offsets, views, indices and strings of nested data. Return `texts` and the first fault of each node.

    `texts` contains messages about the object's interfaces. For a NestedArray, `texts` is omitted, because the
    interfaces report the same faults as this function. An awkward array is copied for the check if `asnested` cannot
    view it. Return None for all other objects that `asnested` cannot view.
    """
    if issubclass(type(obj), NestedArray):
        return list(_faults(obj, "x"))
    x = attempt(import_nested, obj, copy=VIEW)[0]
    if x is None and is_awkward(obj):
        try:
            x = import_nested(obj)
        except PASSES_ON:
            raise
        except ValueError as error:  # awkward detects an index out of range when it reorders the elements
            return [*texts, f"x: {first_line(error)}"]
        except Exception:
            return None
    return None if x is None else [*texts, *_faults(x, "x")]


def _faults(x: Any, path: str) -> Iterator[str]:
    if not isinstance(x, NestedArray):
        return
    try:
        if not kind_of(x).chunks:
            check(x)
        if kind_of(x).utf8:
            x.to_list()
    except InterfaceError as error:
        yield f"{path}: {error}"
    for name, array in parts_of(x):
        named = kind_of(x).fields and name in x.field_names
        yield from _faults(array, f"{path}[{name!r}]" if named else f"{path}.{name}")


# ---------------------------------------------------------------------------------------------------------- picture


def picture_of(x: NestedArray) -> TextPicture:
    """Return the text. If the host cannot read the array, or if the array is invalid, the text ends with an error."""
    lines = [f"{x.type}, {x.access}, on {x.device}"]
    try:
        lines.extend(_picture_lines(x, 0))
    except BufferError:
        lines.append("the memory is on a device; call x.to_host() to show the elements")
    except ValueError as error:
        lines.append(str(error))
    return TextPicture("\n".join(lines))


def _picture_lines(node: Any, level: int) -> Iterator[str]:
    """Yield the lines of a node, and those of its chunks, its children, or the content of its rows."""
    if isinstance(node, NestedArray):
        check(node)
    indent = "  " * level
    elements = _show_elements(node)
    yield indent + _caption(node)
    if elements:
        yield f"{indent}  {'  '.join(elements)}{'  …' if len(node) > len(elements) else ''}"
    if not isinstance(node, NestedArray) or level == MOST_LEVELS:
        return
    kind = kind_of(node)
    if kind.chunks:
        for k, chunk in enumerate(node.chunks[:MOST_CHUNKS]):
            yield f"{indent}chunk {k} of {len(node.chunks)}"
            yield from _picture_lines(chunk, level + 1)
    elif kind.named:
        for name, field in zip(node.field_names, node.children, strict=True):
            yield f"{indent}field {name}"
            yield from _picture_lines(field, level + 1)
    elif kind.lists:
        spans = _spans(node)
        first = min((start for start, stop in spans if stop > start), default=0)
        yield from _picture_lines(part(node.content, first, max([first, *(stop for _, stop in spans)])), level + 1)


def _caption(node: Any) -> str:
    if not isinstance(node, NestedArray):
        return f"content: {len(node)} of {node.dtype}"
    offsets = f", offsets {node.offsets.dtype}" if kind_of(node).ends else ""
    return f"{node.kind}: {len(node)} {'element' if len(node) == 1 else 'elements'}{offsets}"


def _show_elements(node: Any) -> list[str]:
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
    starts, sizes = spans_of(part(node, 0, min(len(node), MOST_ELEMENTS)))
    return list(zip(starts.tolist(), (starts + sizes).tolist(), strict=True))


def _short(value: Any) -> str:
    label = repr(value)
    return label if len(label) <= 12 else f"{label[:11]}…"
