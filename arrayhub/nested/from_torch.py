"""torch's jagged NestedTensors: values and offsets, both shared."""

import sys
from typing import Any

from arrayhub._core.kinds import kind_of
from arrayhub.convert.functions import asarray
from arrayhub.nested.array import NestedArray, make


def is_jagged(obj: Any) -> bool:
    """Say whether `obj` is a tensor of tensors of different lengths, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.Tensor) and obj.is_nested


def from_torch(obj: Any, copy: bool | None = None) -> NestedArray:
    """Return a jagged tensor as lists, on the memory of its values and offsets.

    Raises
    ------
    BufferError
        Its layout is the strided one, or it is ragged elsewhere than in its second dimension; or its offsets lie
        apart from each other, and `copy` is False.
    """
    torch = sys.modules["torch"]
    ragged = _ragged_in(obj) if obj.layout is torch.jagged else None
    if ragged != 1:
        what = f"{obj.layout}" if ragged is None else f"{obj.layout}, ragged in dimension {ragged}"
        raise BufferError(
            f"asnested: a nested tensor of layout {what}; accepted: layout torch.jagged, ragged in dimension 1. Call"
            f" {_call_for(obj, ragged)}"
        )
    offsets, values = asarray(obj.offsets()), asarray(obj.values())
    lengths = obj.lengths()
    if lengths is None:
        return make("list", offsets.shape[0] - 1, offsets=offsets, content=values, copy=copy)
    return make("list_view", lengths.shape[0], offsets=offsets[: lengths.shape[0]], sizes=asarray(lengths),
                content=values, copy=copy)  # fmt: skip


def _call_for(obj: Any, ragged: int | None) -> str:
    if ragged is not None:
        return f"arrayhub.asnested(x.transpose(1, {ragged}))"
    if len({part.shape[1:] for part in obj.unbind()}) > 1:  # ragged elsewhere too
        return "x.to_padded_tensor(0.0), or take x.unbind() one by one"
    return "torch.nested.nested_tensor(list(x.unbind()), layout=torch.jagged), which copies"


def _ragged_in(obj: Any) -> int | None:
    """Return the dimension whose length is a symbol and no number."""
    return next((axis for axis, length in enumerate(obj.shape) if not isinstance(length, int)), None)


def as_jagged(x: NestedArray, copy: bool | None, allow_readonly: bool) -> Any:
    """Return lists of numbers as a jagged tensor on the same values; see `arrayhub.as_torch`."""
    import torch

    from arrayhub.convert.functions import as_torch
    from arrayhub.nested.conform import with_wide_offsets

    kind = kind_of(x)
    if not (kind.lists and kind.ends) or isinstance(x.content, NestedArray) or x.null_count:
        raise BufferError(
            f"torch: {x.type} is no ragged array of numbers; accepted: n * var * number without missing values. Take"
            " one of its parts, or fill in what is missing"
        )
    x = with_wide_offsets(x)
    values = as_torch(x.content, copy=copy, allow_readonly=allow_readonly)
    return torch.nested.nested_tensor_from_jagged(values, as_torch(x.offsets, copy=copy, allow_readonly=True))
