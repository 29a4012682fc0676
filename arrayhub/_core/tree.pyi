from typing import Any, TypeVar, type_check_only

_T = TypeVar("_T")

Tree: Any  # base class of NestedArray, whose stub declares the attributes

KIND_NAMES: tuple[str, ...]

@type_check_only
class _KindRow:
    structure: tuple[str, ...]
    numbers: bool
    packed: bool
    lists: bool
    characters: bool
    utf8: bool
    views: bool
    fields: bool
    types: bool
    runs: bool
    all_missing: bool
    named: bool
    indices: bool
    ends: bool
    sizes: bool
    width: bool
    chunks: bool
    over_nodes: bool

def kind_of(node: Any) -> _KindRow: ...
def row_named(name: str) -> _KindRow: ...
def per_kind(**rows: _T) -> dict[str, _T]: ...
