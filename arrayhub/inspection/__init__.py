"""What an array is, shown: its type, its memory, its layout, and why it can or cannot reach a library."""

from typing import TYPE_CHECKING

from arrayhub.usm_array import USMArray, register_picture

if TYPE_CHECKING:
    from arrayhub.inspection.picture import Picture


def enter_picture() -> None:
    """Give ``USMArray.picture`` its function. The module that draws is imported when somebody asks for a drawing."""
    register_picture(_picture_of)


def _picture_of(array: USMArray) -> "Picture":
    from arrayhub.inspection.picture import picture_of

    return picture_of(array)
