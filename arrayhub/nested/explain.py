"""`explain`, `debug_repr` and `check` for nested data."""

import sys
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import PASSES_ON, InterfaceError, first_line
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.convert.functions import convert
from arrayhub.inspection.explain import LOOKED_AT, attempt, through_protocol
from arrayhub.inspection.explanation import CANNOT, COPY, ZERO_COPY, Explanation, Offer, Verdict
from arrayhub.inspection.printout import head_lines, part_lines, shared
from arrayhub.libraries.wrappers import unwraps
from arrayhub.nested.advice import sample_of, sample_of_node
from arrayhub.nested.array import NestedArray, check, unwrapped
from arrayhub.nested.asnested import asnested, is_arrow_scalar, is_pandas
from arrayhub.nested.export import DENSE_CONSUMERS, NESTED_CONSUMERS, why_always_copied
from arrayhub.nested.from_awkward import is_awkward
from arrayhub.nested.missing import has_missing

_CONSUMERS = (*DENSE_CONSUMERS, *NESTED_CONSUMERS)
_PARTS = ("validity", "offsets", "sizes", "indices", "type_codes", "run_ends", "content")


def _why_copied(obj: Any) -> str:
    """Return why `asnested` copies or rejects the object, or "" if `asnested` shares the memory of the object."""
    return attempt(asnested, obj, copy=VIEW)[1]


def view_of(obj: Any) -> NestedArray | None:
    """Import `obj` as a NestedArray without a copy, or return None."""
    view: NestedArray | None = attempt(asnested, obj, copy=VIEW)[0]
    return view


def explain_nested(obj: Any, name: str, offers: tuple[Offer, ...], to: str | None) -> Explanation | None:
    """Explain an object that `asarray` rejects and `asnested` imports. Return None if `asnested` rejects the object."""
    x = view_of(obj)
    consumers = _CONSUMERS if to is None else (to,)
    if x is None:
        return _explain_copied(obj, name, offers, consumers)
    through = through_protocol(x)
    how = f"it is a NestedArray{through and f', imported{through}'}" if x is obj else f"asnested imports it{through}"
    why = f"{how}; asarray returns dense arrays only"
    summary = f"{x.type}, {x.access}, on {x.device}"
    if kind_of(x).chunks:
        summary += f", in {len(x.chunks)} chunks"
    # This offer replaces the failed offer for the same protocol, which states why `asarray` rejects the object.
    used = Offer("arrow" if x is obj else x.protocol, True, summary)
    others = not unwraps(type(obj))  # `asnested` unwraps a wrapper, and does not use its other protocols
    verdicts = tuple(map(_verdict_of_imported, repeat(obj), repeat(x), consumers))
    taken = None if x is obj else x.protocol
    return Explanation(name, summary, (), _with(used, offers, others), taken, why, verdicts)


def _with(used: Offer, offers: tuple[Offer, ...], others: bool) -> tuple[Offer, ...]:
    """Return `offers` with `used` in place of the offer of its protocol. Omit other offers unless `others` is true."""
    return tuple(used if o.protocol == used.protocol else o for o in offers if others or o.protocol == used.protocol)


def _explain_copied(obj: Any, name: str, offers: tuple[Offer, ...], consumers: tuple[str, ...]) -> Explanation | None:
    """Explain an object that `asnested` must copy, or whose memory only `as_pandas` can share.

    Return None for other objects.
    """
    x, refusal = _copied(obj)
    if x is None and consumers == ("pandas",) and _is_shared_with_pandas(obj):
        unchanged = (Verdict("pandas", ZERO_COPY, ""),)
        return Explanation(name, "pandas data, which as_pandas returns", (), offers, None, refusal, unchanged)
    if x is None:
        return None
    verdicts = []
    for consumer in consumers:
        if consumer == "pandas" and _is_shared_with_pandas(obj):
            verdicts.append(Verdict(consumer, ZERO_COPY, ""))
            continue
        verdict = _verdict(x, x, consumer)
        if verdict.verdict != CANNOT and consumer not in NESTED_CONSUMERS:
            obstacle = attempt(convert, sample_of(obj), consumer, copy=True)[1]
            verdict = Verdict(consumer, CANNOT, _cause_of(x, consumer, obstacle)) if obstacle else verdict
        verdicts.append(Verdict(consumer, COPY, refusal) if verdict.verdict == ZERO_COPY else verdict)
    length = len(x) if is_arrow_scalar(type(obj)) else attempt(len, obj)[0]
    summary = f"{length} * {str(x.type).partition(' * ')[2]}, which is copied"
    return Explanation(name, summary, (), offers, None, refusal, tuple(verdicts))


def _copied(obj: Any) -> tuple[NestedArray | None, str]:
    """Return a copy of the first elements of an object, or None, and why `asnested` copies or rejects the object."""
    return attempt(_copy_of_first, obj)[0], _why_copied(obj)


def _copy_of_first(obj: Any) -> NestedArray | None:
    if is_arrow_scalar(type(obj)):
        return asnested(obj)
    column = issubclass(type(obj), np.ndarray) and obj.ndim == 1
    if not column and not is_awkward(obj) and not is_pandas(obj) and not hasattr(type(obj), "__arrow_array__"):
        return None
    x = asnested(getattr(obj, "iloc", obj)[:LOOKED_AT] if is_pandas(obj) else obj[:LOOKED_AT])
    return x if isinstance(x, NestedArray) else None


def _verdict_of_imported(obj: Any, x: NestedArray, consumer: str) -> Verdict:
    """Return the verdict of `consumer` on an object that `asnested` imports as `x`."""
    if consumer == "pandas" and _is_shared_with_pandas(obj):
        return Verdict(consumer, ZERO_COPY, "")
    if consumer in NESTED_CONSUMERS or issubclass(type(obj), NestedArray):
        return _verdict(obj, x, consumer)
    refusal = attempt(convert, obj, consumer)[1]
    if not refusal:
        return Verdict(consumer, ZERO_COPY, "")
    obstacle = _why_not_dense(x, consumer) or attempt(convert, sample_of(obj), consumer, copy=True)[1]
    if obstacle:
        return Verdict(consumer, CANNOT, _cause_of(x, consumer, obstacle))
    return Verdict(consumer, COPY, _reason_of_copy(x, consumer) or refusal.removeprefix(f"{consumer}: "))


def _is_shared_with_pandas(obj: Any) -> bool:
    """Return whether an object is not a stream, and `as_pandas` shares its memory.

    The object itself is tried, because `as_pandas` may return other dtypes for its NestedArray.
    """
    return unread(obj) is None and not attempt(convert, obj, "pandas", copy=VIEW)[1]


def _why_not_dense(x: NestedArray, consumer: str) -> str:
    """Return the error for the first element of `x` that dense arrays cannot represent. All elements are examined.

    Return "" if dense arrays can represent all elements. Also return "" for strings, and if the library supports lists
    of different lengths.
    """
    if consumer == "torch" or consumer in NESTED_CONSUMERS or kind_of(x.chunks[0]).characters:
        return ""
    for chunk in x.chunks:
        try:
            chunk.to_dense()
        except ValueError as error:  # InterfaceError is a ValueError
            return first_line(error).removeprefix("to_dense: ")
        except BufferError:
            pass
    return ""


def _cause_of(x: NestedArray, consumer: str, obstacle: str) -> str:
    """Return why a library rejects `x`. Return `obstacle`, the error for the object, if no other reason is found."""
    of_node = _why_not_dense(x, consumer) or attempt(convert, sample_of_node(x), consumer, copy=True)[1] or obstacle
    if has_missing(x) and ("missing" in of_node or "?" in of_node):
        return "elements are missing"
    return of_node.removeprefix(f"{consumer}: ")


def _reason_of_copy(x: NestedArray, consumer: str) -> str:
    """Describe how a copy differs from `x`, as in "a copy unpacks its bits". Return "" if no difference is known."""
    kind = kind_of(x.chunks[0])
    changes = ["concatenates its chunks"] if kind_of(x).chunks else []
    if consumer in NESTED_CONSUMERS:
        kind = kind_of(x)
    elif kind.fields:
        changes.append("stores its columns as one matrix")
    if kind.packed:
        changes.append("unpacks its bits")
    if kind.runs:
        changes.append("repeats the element of each run")
    return f"a copy {' and '.join(changes)}" if changes else ""


def verdict_of_values(obj: Any, consumer: str) -> Verdict:
    """Return the verdict of `consumer` on Python values, which are always copied. Only the first values are tried."""
    first = obj[:LOOKED_AT] if isinstance(obj, (list, tuple, range)) else obj
    refusal = attempt(convert, first, consumer)[1]
    obstacle = refusal and attempt(convert, first, consumer, copy=True)[1]
    why = "values do not have memory to view, so asnested copies them"
    return Verdict(consumer, CANNOT if obstacle else COPY, obstacle or refusal or why)


def verdict_of(obj: Any, consumer: str) -> Verdict | None:
    """Return the verdict of `consumer` on an object that `asarray` also accepts, such as an array of records.

    Return None for arrays of numbers.
    """
    x = view_of(obj)
    if x is not None and not isinstance(unwrapped(x), NestedArray):
        return None
    if consumer == "pandas" and _is_shared_with_pandas(obj):
        return Verdict(consumer, ZERO_COPY, "")
    if x is not None:
        return _verdict(obj, x, consumer)
    copied, obstacle = _copied(obj)[0], attempt(asnested, sample_of(obj))[1]
    if copied is None:
        return Verdict(consumer, CANNOT, obstacle) if obstacle else None
    verdict = _verdict(copied, copied, consumer)
    return Verdict(consumer, COPY, _why_copied(obj)) if verdict.verdict == ZERO_COPY else verdict


def _verdict(obj: Any, x: NestedArray, consumer: str) -> Verdict:
    """Try to convert `x`, which was imported from `obj`."""
    refusal = attempt(convert, x, consumer)[1]
    why = "" if refusal else why_always_copied(x, consumer, obj)
    if why:
        return Verdict(consumer, COPY, why)
    if not refusal:
        return Verdict(consumer, ZERO_COPY, "; ".join(_made_for_polars(x)) if consumer == "polars" else "")
    obstacle = _why_not_dense(x, consumer) or attempt(convert, sample_of_node(x), consumer, copy=True)[1]
    if not obstacle:
        why = _reason_of_copy(x, consumer) if kind_of(x).chunks else ""
        return Verdict(consumer, COPY, why or refusal.removeprefix(f"{consumer}: "))
    return Verdict(consumer, CANNOT, _cause_of(x, consumer, obstacle))


def _made_for_polars(x: NestedArray) -> list[str]:
    """Describe how `as_polars` converts `x`.

    `_why_copied_for_polars` in export.py lists the values that are copied.
    """
    nodes = [(node, kind_of(node)) for node in _nodes(x)]
    narrow = any(kind.lists and kind.ends and node.offsets.itemsize < 8 for node, kind in nodes)
    changes = ["four-byte offsets become eight-byte offsets"] if narrow else []
    if any(kind.sizes for _, kind in nodes):
        changes.append("list views become lists in order")
    if any(kind.characters and kind.ends for _, kind in nodes):
        changes.append("string offsets are converted to string views")
    return changes


def _nodes(x: NestedArray) -> Iterator[NestedArray]:
    yield x
    for _, array in parts_of(x):
        if isinstance(array, NestedArray):
            yield from _nodes(array)


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
        refcount = shared(sys.getrefcount(array))
        if isinstance(array, NestedArray):
            yield f"  {name}:"
            yield from (f"  {line}" for line in lines_of(array, refcount))
        else:
            yield from part_lines(name, array)


def parts_of(x: NestedArray) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array of each part of a node.

    The children of a union are named ``children[k]``. The fields of a record are also named ``children[k]`` if two
    fields have the same name, or if a field is named ``validity``, like the record's bitmap.
    """
    if kind_of(x).chunks:
        for k, chunk in enumerate(x.chunks):
            yield f"chunks[{k}]", chunk
        return
    if kind_of(x).named:
        names = x.field_names
        if kind_of(x).types or len({*names, "validity"}) != len(names) + 1:
            names = tuple(f"children[{k}]" for k in range(len(names)))
        yield from zip(names, x.children, strict=True)
    for name in _PARTS:
        array = getattr(x, name, None)
        if array is not None:
            yield name, array
    for k, buffer in enumerate(getattr(x, "buffers", ())):
        yield f"buffers[{k}]", buffer


# ------------------------------------------------------------------------------------------------------------ check


def check_nested(obj: Any, texts: list[str]) -> list[str] | None:
    """Check the offsets, views, indices and strings of nested data. Return `texts` and the first fault of each node.

    `texts` contains messages about the object's interfaces. For a NestedArray, `texts` is omitted, because the
    interfaces report the same faults as this function. An awkward array is copied for the check if `asnested` cannot
    view it. Return None for all other objects that `asnested` cannot view.
    """
    if issubclass(type(obj), NestedArray):
        return list(_faults(obj, "x"))
    x = view_of(obj)
    if x is None and is_awkward(obj):
        try:
            x = asnested(obj)
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
