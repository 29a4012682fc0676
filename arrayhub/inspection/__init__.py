"""What an array is, shown: its type, its memory, its layout, and why it can or cannot reach a library."""

from typing import TYPE_CHECKING

from arrayhub.usm_array import USMArray, register_layout

if TYPE_CHECKING:
    from arrayhub.inspection.layout import Layout


def enter_layout() -> None:
    """Give ``USMArray.layout`` its function. The module that draws is imported when somebody asks for a drawing."""
    register_layout(_layout_of)


def _layout_of(array: USMArray) -> "Layout":
    from arrayhub.inspection.layout import layout_of

    return layout_of(array)
