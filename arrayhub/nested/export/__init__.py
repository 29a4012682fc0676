"""Export of NestedArrays: one module each for Arrow, polars, pandas and awkward, and `dense` for NumPy and torch."""

from importlib import import_module
from types import ModuleType

from arrayhub.nested.export.arrow import as_arrow
from arrayhub.nested.export.awkward import as_awkward
from arrayhub.nested.export.pandas import as_pandas
from arrayhub.nested.export.polars import as_polars

__all__ = ["as_arrow", "as_awkward", "as_pandas", "as_polars", "get_rules"]


def get_rules(library: str) -> ModuleType:
    """Return the module of an export. Its `check` raises the export's error, and `why_copied` returns why it copies."""
    return import_module(f"{__name__}.{library}")
