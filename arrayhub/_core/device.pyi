import builtins
from collections.abc import Callable
from typing import Any, TypeAlias

from typing_extensions import disjoint_base

# Accepted by `device=`: a Device, "cuda:0", a DLPack pair, a SYCL filter string, or a library's own device object.
_DeviceLike: TypeAlias = Device | str | tuple[int, int] | Any

TYPE_NAMES: dict[int, str]
READERS: dict[str, Callable[[Any], tuple[int, int]]]

@disjoint_base
class Device:
    def __init__(self, spec: _DeviceLike = "cpu") -> None: ...
    @property
    def type(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def dlpack(self) -> tuple[int, int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[builtins.type[Device], tuple[tuple[int, int]]]: ...

CPU: Device
