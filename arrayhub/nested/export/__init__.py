"""Export of NestedArrays: one module each for Arrow, polars, pandas and awkward, and `dense` for NumPy and torch."""

from arrayhub.nested.export import arrow, awkward, pandas, polars
from arrayhub.nested.export.arrow import as_arrow
from arrayhub.nested.export.awkward import as_awkward
from arrayhub.nested.export.pandas import as_pandas
from arrayhub.nested.export.polars import as_polars

__all__ = ["as_arrow", "as_awkward", "as_pandas", "as_polars"]

# Export functions by the library's name in `convert`. The arrays of the libraries in NESTED_CONSUMERS can be nested.
NESTED_CONSUMERS = {"arrow": as_arrow, "polars": as_polars, "pandas": as_pandas, "awkward": as_awkward}
# The modules with the rules of an export: `check` raises its error, and `why_copied` returns why it copies.
EXPORT_RULES = {"arrow": arrow, "polars": polars, "pandas": pandas, "awkward": awkward}
