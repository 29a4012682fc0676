"""What `explain`, `inspect`, `debug_repr` and `check` say of what is not dense."""

import sys
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from arrayhub._core.errors import PASSES_ON, InterfaceError, first_line
from arrayhub._core.kinds import kind_of
from arrayhub.convert.functions import convert
from arrayhub.inspection.explain import LOOKED_AT, attempt
from arrayhub.inspection.explanation import CANNOT, COPY, ZERO_COPY, Explanation, Offer, Verdict
from arrayhub.inspection.printout import FLAGS, block_lines, facts_of, flag_names, hexadecimal, shared
from arrayhub.libraries.wrappers import unwraps
from arrayhub.nested.array import NestedArray, check, part, unwrapped
from arrayhub.nested.asnested import asnested
from arrayhub.nested.export import TAKERS, WAYS
from arrayhub.nested.from_awkward import is_awkward

_CONSUMERS = (*WAYS, *TAKERS)
_PARTS = ("validity", "offsets", "sizes", "indices", "content")


def view_of(obj: Any) -> NestedArray | None:
    """Return `obj` as a NestedArray without a copy, its first chunk of several; None where there is no way."""
    chunks = _chunks_of(obj)
    return chunks[0] if chunks else None


def _chunks_of(obj: Any) -> list[NestedArray]:
    """What `asnested` takes an object as without a copy: one array or several, or none where there is no way."""
    found: Any = attempt(asnested, obj, copy=False)[0]
    return found if isinstance(found, list) else [] if found is None else [found]


def explain_nested(obj: Any, name: str, offers: tuple[Offer, ...], to: str | None) -> Explanation | None:
    """Return what `explain` says of what `asarray` refuses and `asnested` takes; None where that refuses it too."""
    chunks = _chunks_of(obj)
    consumers = _CONSUMERS if to is None else (to,)
    if not chunks:
        return _explain_copied(obj, name, offers, consumers)
    x = chunks[0]
    why = f"asnested takes it, by {x.protocol}; asarray gives dense arrays only"
    summary = f"{x.type}, {x.access}, on {x.device}"
    if len(chunks) > 1:
        rows = sum(map(len, chunks))
        summary = f"{rows} * {str(x.type).partition(' * ')[2]}, {x.access}, on {x.device}, in {len(chunks)} chunks"
    taken = Offer(x.protocol, True, summary)  # what the offers say of it is why there is no dense array
    others = not unwraps(type(obj))  # which is asked for no other protocol
    verdicts = tuple(map(_verdict_of_taken, repeat(obj), repeat(chunks), consumers))
    return Explanation(name, summary, (), _with(taken, offers, others), x.protocol, why, verdicts)


def _with(taken: Offer, offers: tuple[Offer, ...], others: bool) -> tuple[Offer, ...]:
    """Return `taken` in place of the offer of its protocol, with the other offers or without them."""
    return tuple(taken if o.protocol == taken.protocol else o for o in offers if others or o.protocol == taken.protocol)


def _explain_copied(obj: Any, name: str, offers: tuple[Offer, ...], consumers: tuple[str, ...]) -> Explanation | None:
    """The same of what `asnested` takes by a copy only."""
    x, refusal = _copied(obj)
    if x is None:
        return None
    verdicts = []
    for consumer in consumers:
        verdict = _verdict(x, consumer)
        if consumer not in TAKERS:
            verdict = _after_asnested(verdict, "arrayhub.asnested(x)")
        elif verdict.verdict == ZERO_COPY:
            verdict = Verdict(consumer, COPY, refusal)
        verdicts.append(verdict)
    length = attempt(len, obj)[0]
    summary = f"{length} * {str(x.type).partition(' * ')[2]}, which is copied"
    return Explanation(name, summary, (), offers, None, refusal, tuple(verdicts))


def _copied(obj: Any) -> tuple[NestedArray | None, str]:
    """A copy of the first elements of what `asnested` does not take without one, and why not; None of other things."""
    refusal = attempt(asnested, obj, copy=False)[1]
    return attempt(_copy_of_first, obj)[0], refusal


def _copy_of_first(obj: Any) -> NestedArray | None:
    column = issubclass(type(obj), np.ndarray) and obj.ndim == 1
    if not column and not is_awkward(obj) and not hasattr(type(obj), "__arrow_array__"):
        return None
    x = asnested(obj[:LOOKED_AT])
    return x if isinstance(x, NestedArray) else None


def _verdict_of_taken(obj: Any, chunks: list[NestedArray], consumer: str) -> Verdict:
    """What becomes of an object that `asnested` takes as these chunks, mostly one."""
    verdict = _verdict(chunks[0], consumer)
    if consumer in TAKERS:
        many = len(chunks) > 1 and verdict.verdict == ZERO_COPY
        return Verdict(consumer, COPY, "it has chunks, of which a copy makes one") if many else verdict
    if isinstance(obj, NestedArray):
        return verdict
    call = "arrayhub.asnested(x, copy=True)" if len(chunks) > 1 else "arrayhub.asnested(x)"
    return _after_asnested(verdict, call)


def _after_asnested(verdict: Verdict, call: str) -> Verdict:
    """What becomes of an object that is not dense on its way to a library whose function takes NestedArrays only."""
    then = verdict.verdict + (f": {verdict.reason}" if verdict.reason else "")
    return Verdict(verdict.consumer, CANNOT, f"it is not dense; take {call} first, of which this is said: {then}")


def verdict_of_values(obj: Any, consumer: str) -> Verdict:
    """Return what becomes of Python's values, which go out as a copy, found by trying the first of them."""
    first = obj[:LOOKED_AT] if isinstance(obj, (list, tuple, range)) else obj
    obstacle = attempt(convert, first, consumer)[1]
    return Verdict(
        consumer, CANNOT if obstacle else COPY, obstacle or "values have no memory to view: asnested copies them"
    )


def verdict_of(obj: Any, consumer: str) -> Verdict | None:
    """Return what becomes of what `asarray` takes too, such as records and strings of fixed lengths, where it goes out
    as not dense; None of what is nothing but numbers."""
    x, refusal = attempt(asnested, obj, copy=False)
    if isinstance(x, NestedArray):
        return _verdict(x, consumer) if isinstance(unwrapped(x), NestedArray) else None
    copied = None if x is not None else _copied(obj)[0]
    if copied is None:
        return None
    obstacle = attempt(convert, copied, consumer)[1]
    return Verdict(consumer, CANNOT if obstacle else COPY, obstacle or refusal)


def _verdict(x: NestedArray, consumer: str) -> Verdict:
    refusal = attempt(convert, x, consumer)[1]
    if not refusal:
        return Verdict(consumer, ZERO_COPY, "; ".join(_made_for_polars(x)) if consumer == "polars" else "")
    obstacle = attempt(convert, part(x, 0, min(len(x), LOOKED_AT)), consumer, copy=True)[1]
    return Verdict(consumer, CANNOT if obstacle else COPY, (obstacle or refusal).removeprefix(f"{consumer}: "))


def _made_for_polars(x: NestedArray) -> list[str]:
    """Return what `as_polars` makes of its own beside the elements, which it shares."""
    nodes = [(node, kind_of(node)) for node in _nodes(x)]
    narrow = any(kind.lists and kind.ends and node.offsets.itemsize < 8 for node, kind in nodes)
    said = ["offsets of four bytes become eight"] if narrow else []
    if any(kind.sizes for _, kind in nodes):
        said.append("lists out of order are put in order")
    if any(kind.characters and kind.ends for _, kind in nodes):
        said.append("views of strings take the place of offsets")
    return said


def _nodes(x: NestedArray) -> Iterator[NestedArray]:
    yield x
    for _, array in parts_of(x):
        if isinstance(array, NestedArray):
            yield from _nodes(array)


# ------------------------------------------------------------------------------------------------------ taken apart


def inspect_nested(x: NestedArray, refcount: int) -> dict[str, Any]:
    """Return what a NestedArray is made of, as a dict that ``json`` can write; `refcount` is what that is to say."""
    parts = dict(parts_of(x))
    return {
        "address": id(x),
        "refcount": refcount,
        "type": {"fixed": str(x.type), "symbolic": f"strided * {str(x.type).partition(' * ')[2]}"},
        "arrmeta": {
            "flags": FLAGS[x.access],
            "access": x.access,
            "kind": x.kind,
            "length": len(x),
            "validity_offset": x.validity_offset,
            "meaning": x.meaning,
        },
        "data": {name: _part_facts(parts, name) for name in list(parts)},
    }


def _part_facts(parts: dict[str, Any], name: str) -> dict[str, Any]:
    array = parts.pop(name)  # so that nobody but its node refers to it besides
    refcount = shared(sys.getrefcount(array))
    if isinstance(array, NestedArray):
        return inspect_nested(array, refcount)
    return {**facts_of(array, refcount), "nbytes": array.nbytes}


def parts_of(x: NestedArray) -> Iterator[tuple[str, Any]]:
    """Return a name and the array of each part of a node: ``children[k]`` if fields cannot be told apart by name."""
    if kind_of(x).fields:
        names = x.field_names
        if len({*names, "validity"}) != len(names) + 1:
            names = tuple(f"children[{k}]" for k in range(len(names)))
        yield from zip(names, x.children, strict=True)
    for name in _PARTS:
        array = getattr(x, name, None)
        if array is not None:
            yield name, array
    for k, buffer in enumerate(getattr(x, "buffers", ())):
        yield f"buffers[{k}]", buffer


def debug_repr_of(x: NestedArray, refcount: int) -> str:
    """Return the same in the form of DyND's ``debug_repr``."""
    return "\n".join(["------ array", *_lines(inspect_nested(x, refcount)), "------"])


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    arrmeta = facts["arrmeta"]
    yield f" address: {hexadecimal(facts['address'])}"
    yield f" refcount: {facts['refcount']}"
    yield " type:"
    yield f"  type: {facts['type']['fixed']}"
    yield " arrmeta:"
    yield f"  flags: {arrmeta['flags']} ({flag_names(arrmeta['flags'])})"
    yield f"  {arrmeta['kind']} arrmeta"
    yield f"   size: {arrmeta['length']}"
    if arrmeta["meaning"] is not None:
        yield f"   meaning: {arrmeta['meaning']}"
    yield " data:"
    for name, part_facts in facts["data"].items():
        if "nbytes" in part_facts:
            data = part_facts["data"]
            yield f"  {name}: {part_facts['type']['fixed']}"
            yield f"   pointer: {hexadecimal(data['pointer'])}"
            yield f"   size: {part_facts['nbytes']}"
            yield f"   reference: {hexadecimal(data['memory_block']['address'])}"
            yield from (f"    {line}" for line in block_lines(data))
        else:
            yield f"  {name}:"
            yield from (f"  {line}" for line in _lines(part_facts))


# ---------------------------------------------------------------------------------------------------------- checked


def check_nested(obj: Any, texts: list[str]) -> list[str] | None:
    """Return what is false about an object that is not dense, each in words: offsets, views, indices, strings.

    After `texts`, which its interfaces gave; a NestedArray's refuse for what is found here. None where `asnested` does
    not take it without a copy, which only awkward's elements get for this.
    """
    if isinstance(obj, NestedArray):
        return list(_faults(obj, "x"))
    chunks = _chunks_of(obj)
    if not chunks and is_awkward(obj):
        try:
            chunks = [asnested(obj)]
        except PASSES_ON:
            raise
        except ValueError as error:  # awkward itself finds an index that leads outside as it puts elements in order
            return [*texts, f"x: {first_line(error)}"]
        except Exception:
            return None
    if not chunks:
        return None
    places = ["x"] if len(chunks) == 1 else [f"x[{k}]" for k in range(len(chunks))]
    return texts + [fault for x, place in zip(chunks, places, strict=True) for fault in _faults(x, place)]


def _faults(x: Any, place: str) -> Iterator[str]:
    if not isinstance(x, NestedArray):
        return
    try:
        check(x)
        if kind_of(x).utf8:
            x.to_list()
    except InterfaceError as error:
        yield f"{place}: {error}"
    for name, array in parts_of(x):
        named = kind_of(x).fields and name in x.field_names
        yield from _faults(array, f"{place}[{name!r}]" if named else f"{place}.{name}")
