"""What is not dense: lists, strings, missing values and records as structure over flat arrays. See docs/nested.md."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from arrayhub.inspection import register_not_dense
from arrayhub.nested.array import NestedArray, register
from arrayhub.nested.asnested import asnested
from arrayhub.nested.export import as_arrow, as_awkward, as_pandas, as_polars
from arrayhub.nested.types import nested_type

register(type_of=nested_type)


def _picture_of(x: NestedArray) -> str:
    from arrayhub.nested.picture import picture_of

    return picture_of(x)


def _described(name: str) -> Callable[..., Any]:
    """A function of the module that describes, which is imported when one is asked for."""

    def ask(*arguments: Any) -> Any:
        return getattr(import_module("arrayhub.nested.explain"), name)(*arguments)

    return ask


register(picture_of=_picture_of)
register_not_dense(
    view=_described("view_of"),
    explain=_described("explain_nested"),
    verdict=_described("verdict_of"),
    values=_described("verdict_of_values"),
    inspect=_described("inspect_nested"),
    debug_repr=_described("debug_repr_of"),
    check=_described("check_nested"),
)

__all__ = ["NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"]
