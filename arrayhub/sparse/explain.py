"""`explain`, `debug_repr` and `check` for sparse arrays."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from arrayhub._core.errors import NO_CUDA_DEVICE, InterfaceError
from arrayhub._core.hooks import hooks
from arrayhub.convert.functions import asarray, convert
from arrayhub.inspection.explain import attempt
from arrayhub.inspection.explanation import CANNOT, COPY, ZERO_COPY, Explanation, Offer, Verdict
from arrayhub.inspection.printout import head_lines, part_lines
from arrayhub.runtimes.cuda import has_device
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import sparse_or_none
from arrayhub.sparse.rules import RULES
from arrayhub.sparse.to_device import to_host
from arrayhub.sparse.validation import check_indices, is_on_host

# Matches the call in errors about values that a library does not support, such as 64-bit values without jax_enable_x64.
_NARROWER = re.compile(r"arrayhub\.(?:like\(x, x|as_jax\(x), dtype='\w+'\)")


def view_of(obj: Any) -> SparseArray | None:
    """Import `obj` as a SparseArray, or return None."""
    found: SparseArray | None = attempt(sparse_or_none, obj)[0]
    return found


def explain_sparse(obj: Any, name: str, offers: tuple[Offer, ...], to: str | None) -> Explanation | None:
    """Explain how `assparse` imports an object, or why the import fails. Return None if `obj` is not sparse."""
    x, refusal = attempt(sparse_or_none, obj)
    if x is None and not refusal:
        return None
    consumers = (*RULES,) if to is None else (to,)
    verdicts: tuple[Verdict, ...]
    if x is None:
        # `as_scipy` returns SciPy's own arrays unchanged, also a lil_array, which `assparse` rejects.
        verdicts, call = (), ""
        for consumer in consumers:
            accepted = not attempt(convert, obj, consumer)[1]
            verdicts += (Verdict(consumer, ZERO_COPY, "") if accepted else Verdict(consumer, CANNOT, refusal),)
            call = call or (f"arrayhub.as_{consumer}(x)" if accepted else "")
        return Explanation(name, "a sparse array that assparse rejects", (), offers, None, refusal, verdicts, call)
    advice = f"in memory of {x.device}, which the host cannot read; x.to_host() returns a copy on the host"
    facts = () if is_on_host(x) else (advice,)
    why = "it is a SparseArray" if x is obj else "assparse imports it; asarray returns dense arrays only"
    summary = f"{repr(x)[len('<SparseArray: ') : -1]}, {x.access}, on {x.device}"
    verdicts = tuple(_verdicts(x, consumers))
    return Explanation(name, summary, facts, offers, None, why, verdicts, _shortest_call(x, verdicts, to))


def _shortest_call(x: SparseArray, verdicts: tuple[Verdict, ...], to: str | None) -> str:
    """Return the shortest call that works, or "" if none is known."""
    if to is None:
        return "arrayhub.assparse(x)"
    if verdicts[0].verdict != CANNOT:
        call = f"arrayhub.as_{to}(x" if to in RULES else f"arrayhub.convert(x, {to!r}"
        return f"{call}{', copy=True' if verdicts[0].verdict == COPY else ''})"
    narrower = _NARROWER.search(verdicts[0].reason)
    if narrower:
        return narrower[0] if to == "jax" else f"arrayhub.as_{to}({narrower[0]}, copy=None)"
    dense = asarray(np.zeros((1,) * len(x.shape), x.dtype))  # small, because a dense copy of `x` may be large
    return hooks.prepared_call("arrayhub.assparse(x).to_dense()", dense, to) or ""


def _verdicts(x: SparseArray, consumers: tuple[str, ...]) -> Iterator[Verdict]:
    for consumer in consumers:
        refusal = attempt(convert, x, consumer)[1].removeprefix(f"{consumer}: ")
        if not refusal:
            yield Verdict(consumer, ZERO_COPY, "")
        elif consumer in RULES and not attempt(convert, x, consumer, copy=None)[1]:
            yield Verdict(consumer, COPY, refusal)
        elif consumer == "cupy" and not has_device() and find_spec("cupy") is None:
            yield Verdict(consumer, CANNOT, NO_CUDA_DEVICE)
        else:
            yield Verdict(consumer, CANNOT, refusal)


# ------------------------------------------------------------------------------------------------------- debug_repr


def parts_of(x: SparseArray) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array of each part."""
    yield "data", x.data
    if x.format != "coo":
        yield "indices", x.indices
        yield "indptr", x.indptr
        return
    for k, array in enumerate(x.coords or ()):
        yield f"coords[{k}]", array


def lines_of(x: SparseArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a SparseArray and its parts, without the first and the last."""
    yield from head_lines(x, refcount, [f"  type: {x.format} of {x.dtype}"])
    yield f"  {x.format} arrmeta"
    yield f"   shape: {x.shape}"
    yield f"   stored: {x.nnz}"
    if x.blocksize is not None:
        yield f"   blocksize: {tuple(x.blocksize)}"
    if x.batch_ndim or x.dense_ndim:
        yield f"   batch_ndim: {x.batch_ndim}"
        yield f"   dense_ndim: {x.dense_ndim}"
    yield " data:"
    for name, array in parts_of(x):
        yield from part_lines(name, array)


# ------------------------------------------------------------------------------------------------------------ check


def check_sparse(obj: Any) -> list[str] | None:
    """Return a list with the first error in the parts or indices, if any. Return None if `obj` is not sparse.

    Indices on a device are copied to the host for the check.
    """
    try:
        x = sparse_or_none(obj)
        if x is None:
            return None
        check_indices(to_host(x))
    except InterfaceError as error:
        return [f"x: {error}"]
    return []
