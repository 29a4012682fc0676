from collections.abc import Mapping, Sequence
from typing import SupportsIndex, TypeVar, final

from arrayhub._core.descriptor import Descriptor

_Array = TypeVar("_Array", bound=Descriptor)

@final
class Labels:
    @property
    def dims(self) -> tuple[str, ...] | None: ...
    @property
    def origin(self) -> tuple[int, ...] | None: ...
    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None: ...
    @property
    def aligned_index(self) -> tuple[int, ...] | None: ...
    def indexed(self, keys: tuple[object, ...], source: Descriptor) -> Labels | None: ...
    def transposed(self, order: list[int]) -> Labels | None: ...
    def moved(self) -> Labels | None: ...

def label(
    array: _Array,
    *,
    dims: Sequence[str] | None = None,
    origin: Sequence[SupportsIndex] | None = None,
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
) -> _Array: ...
def relabelled(
    array: _Array, dims: Sequence[str] | Mapping[str, str] | None, origin: Sequence[SupportsIndex] | None = None
) -> _Array: ...
