from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")

KIND_NAMES: tuple[str, ...]

class KindRow(NamedTuple):
    number: int
    structure: tuple[str, ...]
    numbers: bool
    packed: bool
    lists: bool
    characters: bool
    utf8: bool
    views: bool
    fields: bool
    indices: bool
    ends: bool
    sizes: bool
    width: bool
    @property
    def over_nodes(self) -> bool: ...

def kind_of(node: Any) -> KindRow: ...
def per_kind(**rows: _T) -> dict[str, _T]: ...
