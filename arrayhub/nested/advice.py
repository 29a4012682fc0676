"""Find a call that converts an object that a library rejects. Calls are tried with a sample of the object."""

import re
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from arrayhub._core.copying import VIEW
from arrayhub._core.errors import NARROWER
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.convert.functions import convert
from arrayhub.inspection.explain import LOOKED_AT, attempt
from arrayhub.libraries.wrappers import named_as
from arrayhub.nested.array import NestedArray, chunked, part
from arrayhub.nested.asnested import asnested
from arrayhub.nested.concatenate import concatenate
from arrayhub.nested.export import NESTED_CONSUMERS, as_arrow
from arrayhub.nested.from_awkward import is_awkward
from arrayhub.nested.missing import call_with_cast, has_missing
from arrayhub.nested.to_device import offsets_on_host

_COPIED = (list, tuple)  # types whose values `asnested` copies
_MAX_ITEMS = 10  # number of columns or rows for which a call is searched

# Expressions that error messages suggest. Each returns an object that more libraries accept.
_PREPARATIONS = (
    "x.to_numpy()",
    "x.set_axis(range(x.shape[1]), axis=1)",
    "x.detach()",
    "x.resolve_conj()",
    "x.resolve_neg()",
    "arrayhub.asarray(x).reshape(-1)",
    "x.reshape(-1)",
    "pyarrow.table(x)",
)

# An expression in ``x``, such as ``x.content``, and the value of the expression for a sample of the object.
_Part = tuple[str, Any]


def working_call(obj: Any, consumer: str, refusal: str) -> str:
    """Return the first call that converts `obj`, or each of its columns or rows, for `consumer`.

    The call keeps all columns of a table, all rows of lists and all strings. If `consumer` rejects all of these calls,
    return a call that does not use `consumer`, such as ``arrayhub.asnested(x)``, or "" for a USMArray. Also return ""
    if `consumer` is not installed, if its device is missing, or if `asnested` rejects the object. For a stream, return
    a call without trying it, because a stream can be read only once.

    Parameters
    ----------
    obj : object
        Object that ``convert(x, consumer)`` rejects with and without ``copy=True``, or a stream.
    consumer : str
        Name of a library in `convert`.
    refusal : str
        Message of the error that the conversion raises.
    """
    if attempt(unread, obj)[0]:
        return f"arrayhub.as_{consumer}(x)" if consumer in ("arrow", "polars", "pandas") else "arrayhub.asnested(x)"
    if refusal.endswith("pass x.collect()"):  # a lazy frame; collect() runs the query
        return "arrayhub.asnested(x.collect())"
    if attempt(convert, np.zeros(1, np.float32), consumer, copy=None)[1]:
        return ""  # the library is not installed, or its device is missing
    first = sample_of(obj)
    for call in _calls(first, consumer, refusal):
        # A mask without a copy requires one chunk, and `obj` may have more chunks than the sample.
        if _works(call, obj if call.endswith(", missing='mask')") else first):
            return call
    node = None if _preparation(refusal) else _node_of(obj, first)
    if node is None:
        expression = _preparation(refusal) or _preparation(attempt(asnested, first)[1])
        return prepared_call(expression, attempt(_evaluated, expression, first)[0], consumer)
    converted = _converted(*node, consumer) or _converted_items(*node, consumer)
    if converted or issubclass(type(obj), USMArray):
        return converted
    if consumer in NESTED_CONSUMERS and attempt(as_arrow, node[1])[1] == "":
        return "arrayhub.as_arrow(x)"
    return "x.to_list()" if issubclass(type(obj), NestedArray) else "arrayhub.asnested(x)"


def prepared_call(expression: str, result: Any, consumer: str) -> str:
    """Return the first call that converts the result of an expression in ``x``, or "" if all calls fail."""
    if result is None:
        return ""
    call = _converted(expression, result, consumer)
    if call:
        return call
    refusal = attempt(convert, result, consumer, copy=True)[1]
    return "" if expression in refusal else str(named_as(expression, working_call(result, consumer, refusal)))


def _preparation(refusal: str) -> str:
    """Return the first of `_PREPARATIONS` that the text of an error contains, or ""."""
    return next((expression for expression in _PREPARATIONS if expression in refusal), "")


def sample_of(obj: Any) -> Any:
    """Return some elements of an object as an object of the same type.

    The result consists of the first elements, followed by the rows that `_irregular_rows` finds. Return `obj` itself if
    it is short, or if its type does not support the selection of elements.
    """
    if issubclass(type(obj), NestedArray):
        return chunked(_samples_of_chunks(obj)) if kind_of(obj).chunks else sample_of_node(obj)
    length = attempt(len, obj)[0]
    if not isinstance(length, int) or length <= LOOKED_AT:
        return obj
    node = attempt(asnested, obj, copy=VIEW)[0]
    rows = [*range(LOOKED_AT), *(row for row in _rows_of_chunks(node) if row >= LOOKED_AT)] if node is not None else []
    sample = attempt(_take, obj, rows)[0] if len(rows) > LOOKED_AT else None
    if sample is None:
        sample = attempt(_slice, obj)[0]
    return obj if sample is None or type(sample) is not type(obj) else sample


def is_copied(obj: Any) -> bool:
    """Return whether `obj` is a list, a tuple or an awkward array that `asnested` accepts. Only a sample is tried."""
    return (issubclass(type(obj), _COPIED) or is_awkward(obj)) and attempt(asnested, sample_of(obj))[1] == ""


def _slice(obj: Any) -> Any:
    return obj[:LOOKED_AT]


def _take(obj: Any, rows: list[int]) -> Any:
    return obj.take(rows) if hasattr(type(obj), "take") else obj[rows]


def sample_of_node(x: NestedArray) -> NestedArray:
    """Select some elements of each chunk of a node, as in `sample_of`, and concatenate them."""
    samples = _samples_of_chunks(x)
    return samples[0] if len(samples) == 1 else concatenate(samples)


def _samples_of_chunks(x: NestedArray) -> list[NestedArray]:
    limit, samples = max(1, LOOKED_AT // len(x.chunks)), []
    for chunk in x.chunks:
        first = part(chunk, 0, min(len(chunk), limit))
        rows = [part(chunk, row, row + 1) for row in _irregular_rows(chunk) if row >= limit]
        samples.append(concatenate([first, *rows]) if rows else first)
    return samples


def _rows_of_chunks(x: NestedArray) -> Iterator[int]:
    start = 0
    for chunk in x.chunks:
        for row in _irregular_rows(chunk):
            yield start + row
        start += len(chunk)


def _irregular_rows(node: Any) -> list[int]:
    """Return the indices of irregular rows of a node.

    A row is irregular if it is missing, differs in length from row 0, or contains an irregular row. For each of these
    reasons, only the first row is returned.
    """
    if not isinstance(node, NestedArray) or not len(node):
        return []
    kind, rows = kind_of(node), []
    if (node.validity is not None and node.null_count) or _is_of_times(node):
        rows.append(int(dense_as_numpy(node.is_null().to_host()).argmax()))
    if kind.fields:
        for field in node.children:
            rows += _irregular_rows(field)
    if not kind.lists or kind.width:
        return rows
    offsets = offsets_on_host(node)
    lengths = dense_as_numpy(node.sizes.to_host()) if kind.sizes else np.diff(offsets)
    different = lengths != lengths[0]
    if different.any():
        rows.append(int(different.argmax()))
    if kind.ends:
        for row in _irregular_rows(node.content):
            if offsets[0] <= row < offsets[-1]:
                rows.append(int(np.searchsorted(offsets, row, side="right")) - 1)
    return rows


def _node_of(obj: Any, first: Any) -> _Part | None:
    """Return an expression for a NestedArray without chunks, and the value of the expression for a sample of `obj`.

    `first` is the sample. Return None if `asnested` rejects the sample.
    """
    whole = obj if issubclass(type(obj), NestedArray) else attempt(asnested, obj, copy=VIEW)[0]
    if whole is not None and kind_of(whole).chunks:
        return "arrayhub.asnested(x, copy=True)", sample_of_node(whole)
    if issubclass(type(obj), NestedArray):
        return "x", first
    node = attempt(asnested, first)[0]
    return None if node is None else ("arrayhub.asnested(x)", node)


def _converted(name: str, array: Any, consumer: str) -> str:
    """Return a call that converts an array, or the content of a flat node without missing values.

    `name` is the expression for the array. Return "" if all calls fail.
    """
    refusal = attempt(convert, array, consumer)[1] and attempt(convert, array, consumer, copy=True)[1]
    # jax shares memory only at addresses that are multiples of 64. The sample may be at such an address, unlike `x`.
    plain = [] if consumer == "jax" else [f"arrayhub.as_{consumer}(x)"]
    for call in (*plain, f"arrayhub.as_{consumer}(x, copy=True)", *_calls(array, consumer, refusal)):
        if _works(call, array):
            call = call.replace("arrayhub.asnested(x)", "x") if isinstance(array, NestedArray) else call
            return str(named_as(name, call))
    if isinstance(array, NestedArray) and kind_of(array).numbers and not has_missing(array):
        return _converted(f"{name}.content", array.content, consumer)
    return ""


def _converted_items(name: str, node: Any, consumer: str) -> str:
    """Return a call that converts each column of records, or each row of lists. `name` is the expression for the node.

    Return "" if all calls fail, or if the node does not consist of records or lists.
    """
    if not isinstance(node, NestedArray):
        return ""
    kind = kind_of(node)
    if kind.fields and len(set(node.field_names)) == len(node.field_names):
        item, items, pattern = "column", list(node.fields.values()), "{{key: {} for key, column in {}.fields.items()}}"
    elif kind.lists and not kind.characters:
        item, items, pattern = "row", list(node), "[{} for row in {}]"
    else:
        return ""
    plain = [] if consumer == "jax" else [f"arrayhub.as_{consumer}(x)"]
    calls = [*plain, _call(consumer, "x"), *(_converted("x", array, consumer) for array in items[:_MAX_ITEMS])]
    for call in dict.fromkeys(filter(None, calls)):
        converted = named_as(item, call)
        if _works(pattern.format(converted, "x"), node):
            return pattern.format(converted, name)
    return ""


def _works(call: str, x: Any) -> bool:
    return attempt(_evaluated, call, x)[1] == ""


def _evaluated(call: str, x: Any) -> Any:
    pyarrow = attempt(import_module, "pyarrow")[0] if "pyarrow." in call else None
    return eval(call, {"arrayhub": sys.modules["arrayhub"], "pyarrow": pyarrow, "x": x})


# Not a function inside `_calls`, because `consumer` would then be a closure variable. CPython 3.11 leaks the arguments
# of a generator if it cannot allocate the cell of a closure variable.
def _call(consumer: str, x: str, arguments: str = "copy=None") -> str:
    if consumer in ("cupy", "dpnp"):  # only copy=True moves host memory to a device
        arguments = arguments.replace("copy=None", "copy=True")
    return f"arrayhub.as_{consumer}({x}, {arguments})"


def _calls(first: Any, consumer: str, refusal: str) -> Iterator[str]:
    """Yield calls that may convert `first`, which is named ``x``. `refusal` is the library's error message."""
    export = partial(_call, consumer)
    node = first if isinstance(first, NestedArray) else attempt(asnested, first)[0]
    decimal = node is not None and str(node.chunks[0].meaning if not kind_of(node).named else "").startswith("d:")
    if decimal:
        yield export("arrayhub.as_arrow(x).cast('float64')")
        yield export("arrayhub.as_arrow(x).cast('float64')", "missing='nan'")
    if consumer in NESTED_CONSUMERS:
        return
    times = first.dtype.kind in "mM" if isinstance(first, USMArray) else node is not None and _is_of_times(node)
    if node is not None and has_missing(node):
        if consumer != "jax":
            yield export("x", "missing='mask'")
        yield export("x", "missing='mask', copy=True")
        yield export("x", "missing='nan', copy=True")
        yield export("arrayhub.asnested(x).fill_null([])")
        if consumer == "jax" and not times:  # without the option jax_enable_x64, jax rejects float64
            yield "arrayhub.as_jax(x, missing='nan', dtype='float32')"
    narrower = re.search(NARROWER, refusal)
    if narrower:
        yield f"arrayhub.as_{consumer}(x, dtype='{narrower[1]}')"
        yield f"arrayhub.as_{consumer}(x, dtype='{narrower[1]}', device='cpu')"
    if times:
        if node is not None and has_missing(node):
            yield call_with_cast(f"as_{consumer}", "mask", "int64")
        yield f"arrayhub.as_{consumer}(x, dtype='int64')"
        yield f"arrayhub.as_{consumer}(x, dtype='int64', copy=True)"


def _is_of_times(node: NestedArray) -> bool:
    kind = kind_of(node)
    return bool(kind.numbers) and node.meaning is None and node.content.dtype.kind in "mM"
