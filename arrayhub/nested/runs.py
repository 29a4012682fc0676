"""Decode run-end encoded arrays, which store one value for each run of equal elements."""

from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal
from arrayhub._core.tree import kind_of
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.nested.array import (
    NestedArray,
    array_like,
    bitmap_of,
    from_string_dtype,
    make,
    nested_of,
    to_string_dtype,
    unpacked,
)
from arrayhub.nested.array import valid_mask as valid_mask_of
from arrayhub.nested.to_device import reached_runs


def decoded(node: NestedArray, call: str) -> NestedArray:
    """Decode a run-end encoded array by repeating the value of each run for all elements of the run.

    Errors start with `call`, a function or a library.

    Raises
    ------
    BufferError
        The values are not numbers, booleans, categories or strings, but for example lists of variable length, records
        or byte strings. The message names a call that decodes the runs.
    """
    ends, values = reached_runs(node)
    return _repeated(nested_of(values), np.diff(ends.astype(np.int64), prepend=0), call)


def _repeated(values: NestedArray, counts: Any, call: str) -> NestedArray:
    kind = kind_of(values)
    length = int(counts.sum())
    mask = np.repeat(valid_mask_of(values), counts)
    facts: dict[str, Any] = {"validity": None if mask.all() else bitmap_of(mask), "meaning": values.meaning}
    if kind.numbers:
        content = array_like(np.repeat(as_numpy(values.content), counts, axis=0), values.content)
        return make(values.kind, length, content=content, **facts)
    if kind.packed:
        return make("bits", length, content=bitmap_of(np.repeat(as_numpy(unpacked(values)), counts)), **facts)
    if kind.indices:
        indices = asarray(np.repeat(as_numpy(values.indices), counts))
        return make(values.kind, length, indices=indices, content=values.content, **facts)
    if kind.all_missing:
        return make(values.kind, length)
    if kind.utf8:
        return from_string_dtype(np.repeat(to_string_dtype(values), counts))
    decoding = "pyarrow.compute.run_end_decode(arrayhub.as_arrow(x))"
    if kind.types or kind.runs or kind.views:  # pyarrow 26 cannot decode runs of these types
        decoding = "arrayhub.asnested(x).to_list()"
    raise Refusal(call, f"runs of {str(values.type).partition(' * ')[2]} are not supported. Use {decoding}")
