from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, final

import numpy as np

from arrayhub._core.descriptor import _DeviceLike
from arrayhub.array.usm_array import USMArray, _DTypeLike

_Memory: TypeAlias = Literal[
    "cpu", "usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed", "shared_memory"
]
_Halo: TypeAlias = Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]]

@final
class Recipe: ...

def memory_of(model: USMArray, argument: str, advice: str) -> tuple[_Memory, Any]: ...
def type_of_model(model: USMArray) -> np.dtype[Any]: ...
def empty(
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    dtype: _DTypeLike | None = None,
    *,
    like: Any = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
    halo: _Halo | None = None,
    dimensions: Sequence[str] | None = None,
    dims: Sequence[str | None] | None = None,
    layout: Sequence[SupportsIndex] | Literal["C", "F"] | None = None,
    backend: str | None = None,
    alignment: SupportsIndex | None = None,
    origin: Sequence[SupportsIndex] | None = None,
    memory: _Memory | None = None,
    device: _DeviceLike | None = None,
) -> USMArray: ...

zeros = empty  # has the same parameters
