"""Functions of this folder that the class USMArray calls through `_core/hooks`."""

from arrayhub.inspection.pictures.picture import page_of, picture_of
from arrayhub.inspection.printout import lines_of

__all__ = ["lines_of", "page_of", "picture_of"]
