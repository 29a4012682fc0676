"""The type language of DyND: `of` returns the type of an array, `parse` parses a type. See docs/inspect.md."""

from arrayhub.inspection.datashape import Type, of, parse

__all__ = ["Type", "of", "parse"]
