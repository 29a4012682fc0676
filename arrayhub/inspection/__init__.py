"""Describe arrays: element type, memory, layout, and the conversions to libraries."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arrayhub.array.usm_array import USMArray, register_picture

if TYPE_CHECKING:
    from arrayhub.inspection.pictures.picture import Picture


_load: list[Callable[[], Any]] = []
_ways: dict[str, Callable[..., Any]] = {}


def register_not_dense(loader: Callable[[], Any] | None = None, **ways: Callable[..., Any]) -> None:
    """Register functions for arrays that are not dense, or a function that imports the module that registers them.

    A layer above this one calls it, because imports only go downward.
    """
    if loader is not None:
        _load[:] = [loader]
    _ways.update(ways)


def not_dense(way: str, *arguments: Any) -> Any:
    """Call the function registered under the name `way`, or return None if no function is registered."""
    for load in _load:
        load()
    return _ways[way](*arguments) if way in _ways else None


def enter_picture() -> None:
    """Register the function of ``USMArray.picture``, which imports the drawing module on first use."""
    register_picture(_picture_of, _page_of)


def _picture_of(array: USMArray) -> "Picture":
    from arrayhub.inspection.pictures.picture import picture_of

    return picture_of(array)


def _page_of(array: USMArray) -> str:
    from arrayhub.inspection.pictures.page import page_of

    return page_of(array)
