from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, final

from arrayhub._core.descriptor import _DeviceLike
from arrayhub.array.usm_array import USMArray, _DTypeLike

_Memory: TypeAlias = Literal[
    "cpu", "usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed", "shared_memory"
]
_Halo: TypeAlias = Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]]

@final
class Recipe: ...

def memory_of(model: USMArray, argument: str, advice: str) -> tuple[_Memory, Any]: ...
def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
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
def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
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
