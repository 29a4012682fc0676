"""Functions of this folder that the class USMArray calls through `_core/hooks`."""

from arrayhub.inspection.pictures.page import page_of
from arrayhub.inspection.pictures.picture import picture_of
from arrayhub.inspection.printout import lines_of

__all__ = ["lines_of", "page_of", "picture_of"]
