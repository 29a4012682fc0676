"""What is not dense: lists, strings, missing values and records as structure over flat arrays. See docs/nested.md."""

from arrayhub.nested.array import NestedArray, register
from arrayhub.nested.out import as_arrow, as_awkward, as_pandas, as_polars
from arrayhub.nested.take import asnested
from arrayhub.nested.types import nested_type

register(type_of=nested_type)

__all__ = ["NestedArray", "as_arrow", "as_awkward", "as_pandas", "as_polars", "asnested"]
