"""Conversion to table types: pandas and polars DataFrames, pyarrow Tables and RecordBatches, types of xarray."""

from collections.abc import Callable
from functools import partial
from typing import Any

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import root_of
from arrayhub.convert.kinds import Kind

_TABLES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"))


def is_table_type(cls: type) -> bool:
    """Return whether a type, or one of its base classes, is a table type."""
    return any((root_of(base), base.__name__) in _TABLES for base in cls.__mro__)


def of_class(obj: Any, library: str, cls: type, copy: Copy, missing: Any = None) -> Any:
    """Return `obj` as an instance of `cls`, a type of a library. `missing` is an argument of `convert`."""
    kind = Kind(library, None, None, cls)
    if missing is None:
        return kind.convert(obj, "convert", copy)
    return kind.with_missing(obj, partial(of_class, library=library, cls=cls), missing, copy)


def to_class(exporter: Callable[..., Any], obj: Any, library: str, cls: type, copy: Copy) -> Any:
    """Return `obj` as a table if `cls` is a table type, otherwise as an array that `exporter` creates.

    The table has one column per column of a matrix, one per field of records, or one column for a 1-d array.
    """
    if not is_table_type(cls):
        return exporter(obj, copy=copy)
    if isinstance(obj, cls) and not check_copy(copy, "convert"):
        return obj
    is_matrix = len(getattr(obj, "shape", ())) == 2 and not is_table_type(type(obj))
    if library == "arrow" or (library == "polars" and is_matrix):
        return of_class(obj, library, cls, copy)
    made = exporter(obj, copy=copy)
    return made if is_table_type(type(made)) else made.to_frame()
