from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Library:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    name: str
    install: str | None
    by_driver: dict[str, str]
    environ: dict[str, str]
    like: str
    sample: Callable[[Any], Any] | None
    roots: tuple[str, ...]
    traits: int
    call: str | None
    device_type: str | None
    reads_host: bool
    check: Callable[[Any, bool], object]
    def check_export(self, array: Any, copied: bool) -> None: ...
    def install_for(self, driver: str | None) -> str | None: ...

LIBRARIES: tuple[Library, ...]

def row_of_type(cls: type, /) -> Library | None: ...
def check_numba(array: Any, copied: bool) -> None: ...
def exactly(module: str, name: str) -> Callable[[type], bool]: ...
def derived_from(module: str, *names: str) -> Callable[[type], bool]: ...
def named(root: str, *names: str) -> Callable[[type], bool]: ...
