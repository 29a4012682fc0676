from typing import Any, Literal, final

from arrayhub._core.device import Device

BOUNDARY: int
PAGE: int
HUGE_PAGE: int
KIND_NAMES: dict[int, str]

@final
class MemoryBlock:
    @property
    def kind(self) -> Literal["external", "buffer", "dlpack", "usm", "owned"]: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int | None: ...
    @property
    def device(self) -> Device: ...
    @property
    def owner(self) -> Any: ...
    @property
    def refcount(self) -> int: ...
    @property
    def release_function(self) -> str: ...
    @property
    def release_address(self) -> int: ...
