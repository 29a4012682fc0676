"""What an array is, shown: its type, its memory, its layout, and why it can or cannot reach a library."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arrayhub.usm_array import USMArray, register_picture

if TYPE_CHECKING:
    from arrayhub.inspection.picture import Picture


_load: list[Callable[[], Any]] = []
_ways: dict[str, Callable[..., Any]] = {}


def register_not_dense(loader: Callable[[], Any] | None = None, **ways: Callable[..., Any]) -> None:
    """Say what a layer above knows of arrays that are not dense, or how it is loaded once that is asked for."""
    if loader is not None:
        _load[:] = [loader]
    _ways.update(ways)


def not_dense(way: str, *arguments: Any) -> Any:
    """Ask the layer above; None where there is none."""
    for load in _load:
        load()
    return _ways[way](*arguments) if way in _ways else None


def enter_picture() -> None:
    """Give ``USMArray.picture`` its function. The module that draws is imported when somebody asks for a drawing."""
    register_picture(_picture_of, _page_of)


def _picture_of(array: USMArray) -> "Picture":
    from arrayhub.inspection.picture import picture_of

    return picture_of(array)


def _page_of(array: USMArray) -> str:
    from arrayhub.inspection.page import page_of

    return page_of(array)
