"""Nested arrays: lists, strings, missing values and records over flat arrays. See docs/nested.md."""

from arrayhub.nested.array import NestedArray
from arrayhub.nested.asnested import asnested
from arrayhub.nested.export import as_arrow, as_awkward, as_pandas, as_polars

__all__ = ["NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"]
