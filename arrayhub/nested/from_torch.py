"""Import and export torch's jagged NestedTensors. Values and offsets are shared."""

import sys
from typing import Any

import numpy as np

from arrayhub._core.errors import Refusal
from arrayhub._core.tree import kind_of
from arrayhub.convert.functions import as_numpy, as_torch, asarray, import_unadvised
from arrayhub.libraries.known import derived_from
from arrayhub.nested.array import NestedArray, is_on_host, make
from arrayhub.nested.conform import with_wide_offsets
from arrayhub.nested.opaque import make_list_views, make_rows
from arrayhub.nested.to_device import offsets_on_host

_is_tensor = derived_from("torch", "Tensor")


def is_jagged(obj: Any) -> bool:
    """Return whether `obj` is a nested torch tensor, without importing torch."""
    return _is_tensor(type(obj)) and bool(obj.is_nested)


def from_torch(obj: Any, copy: bool | None = False) -> NestedArray:
    """Import a jagged tensor as lists that share the memory of the tensor's values and offsets.

    Raise BufferError for other layouts, and if `copy` is VIEW and the offsets are not contiguous.
    """
    torch = sys.modules["torch"]
    ragged = None  # the dimension whose length is a symbolic integer
    if obj.layout is torch.jagged:
        ragged = next((axis for axis, length in enumerate(obj.shape) if not isinstance(length, int)), None)
    if ragged != 1:
        layout = f"{obj.layout}" if ragged is None else f"{obj.layout}, ragged in dimension {ragged}"
        raise Refusal(
            "asnested",
            f"the nested tensor has layout {layout}; accepted: torch.jagged, ragged in dimension 1. Pass"
            f" {_call_for(obj, ragged)}",
        )
    offsets, values = import_unadvised(obj.offsets()), import_unadvised(obj.values())
    lengths = obj.lengths()
    if lengths is None:
        return make("list", offsets.shape[0] - 1, offsets=offsets, content=values, copy=copy)
    starts, sizes = offsets[: lengths.shape[0]], asarray(lengths)
    if not is_on_host(values):
        return make_list_views(starts, sizes, values, copy)
    return make_rows(as_numpy(starts), as_numpy(sizes), values, copy)


def _call_for(obj: Any, ragged: int | None) -> str:
    if ragged is not None:
        return f"arrayhub.asnested(x.transpose(1, {ragged}))"
    if len({part.shape[1:] for part in obj.unbind()}) > 1:  # several dimensions are ragged
        return "x.to_padded_tensor(0.0), or the tensors of x.unbind() one by one"
    return "torch.nested.nested_tensor(list(x.unbind()), layout=torch.jagged), which copies"


def as_jagged(x: NestedArray, copy: bool | None, allow_readonly: bool) -> Any:
    """Export lists of numbers as a jagged tensor that shares the values. See `arrayhub.as_torch` for the parameters."""
    import torch

    kind = kind_of(x)
    if kind.utf8:
        raise Refusal("torch", "strings are not supported", call="arrayhub.as_numpy(x, copy=True)")
    if not (kind.lists and kind.ends) or isinstance(x.content, NestedArray) or x.null_count:
        raise Refusal("torch", f"the type is {x.type}", "n * var * number without missing values")
    x = with_wide_offsets(x)
    values = as_torch(x.content, copy=copy, allow_readonly=allow_readonly)
    offsets = as_torch(x.offsets, copy=copy, allow_readonly=True)
    return torch.nested.nested_tensor_from_jagged(values, offsets, **_shortest_and_longest(x))


def _shortest_and_longest(x: NestedArray) -> dict[str, int]:
    """Return torch's arguments for the lengths of the shortest and the longest row. Return {} for device memory.

    Without these arguments, ``to_padded_tensor`` pads each row to the total number of values.
    """
    if not is_on_host(x):
        return {}
    lengths = np.diff(offsets_on_host(x))
    return {"min_seqlen": int(lengths.min(initial=len(x.content))), "max_seqlen": int(lengths.max(initial=0))}
