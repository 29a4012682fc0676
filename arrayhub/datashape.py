"""The type language of DyND: `of` returns the type of an array, `parse` parses a type. See docs/inspect.md."""

from arrayhub.inspection.datashape.parser import parse
from arrayhub.inspection.datashape.types import Type, of

__all__ = ["Type", "of", "parse"]
