"""Export of NestedArrays: one module each for Arrow, polars, pandas and awkward, and `dense` for NumPy and torch."""

from typing import Any

from arrayhub.nested.export import arrow, awkward, pandas, polars
from arrayhub.nested.export.arrow import as_arrow
from arrayhub.nested.export.awkward import as_awkward
from arrayhub.nested.export.dense import numpy_from, torch_from
from arrayhub.nested.export.pandas import as_pandas
from arrayhub.nested.export.polars import as_polars

__all__ = ["as_arrow", "as_awkward", "as_pandas", "as_polars"]

# Export functions by the library's name in `convert`. The arrays of the libraries in NESTED_CONSUMERS can be nested.
DENSE_CONSUMERS = {"numpy": numpy_from, "torch": torch_from}
NESTED_CONSUMERS = {"arrow": as_arrow, "polars": as_polars, "pandas": as_pandas, "awkward": as_awkward}
_WHY_COPIED = {
    "arrow": arrow.why_copied,
    "polars": polars.why_copied,
    "pandas": pandas.why_copied,
    "awkward": awkward.why_copied,
}


def why_always_copied(array: Any, library: str, obj: Any) -> str:
    """Return why the export of `array`, imported from `obj`, copies without ``copy=True``, or "" if it does not.

    - arrow, polars, pandas: booleans of one byte each are copied.
    - pandas: string views, and list views that are out of order, are copied, too.
    - polars: runs, list views that are out of order, and times in some units are copied, too.
    - awkward: the parts that `as_awkward` lists are copied.
    """
    why_copied: Any = _WHY_COPIED.get(library)
    return "" if why_copied is None else why_copied(array, obj)
