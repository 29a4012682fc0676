"""The array to which NumPy converts a value, from its first items, and the rows that stand for a pandas object."""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from arrayhub._core.descriptor import MAX_NDIM
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray, check_level, import_unadvised

LOOKED_AT = 1000  # maximum number of items of nested sequences that are inspected
_SAMPLED = 100  # number of rows that stand for a pandas object. pyarrow starts threads for longer frames
MAX_COLUMNS = 8  # number of columns of a table that are all inspected
_MAX_OBJECTS = LOOKED_AT // _SAMPLED  # number of columns of Python objects that are inspected
_BLOCK = 100_000  # number of rows whose mask of missing values is in memory at once
_SEQUENCES = (list, tuple, range)


def array_like_value(obj: Any) -> USMArray:
    """Return an array of the type to which NumPy converts a value. Raise the error of `asarray` for its first items."""
    items, depth = first_values(obj)
    if not items:
        return asarray(np.empty((0,) * depth))
    check_level(items, 0, {})
    shapes = {tuple(getattr(item, "shape", ())) for item in items}
    if len(shapes) > 1:
        raise TypeError("the arrays in it have different shapes")
    dtype = import_unadvised([_sample_of(item) for item in items]).dtype
    return asarray(np.empty((0,) * (depth + len(shapes.pop())), dtype))


def _sample_of(item: Any) -> Any:
    """Return a value of the element type of an array, so that its elements are not copied. Return other items."""
    cls = type(item)
    is_array = hasattr(cls, "shape") and not issubclass(cls, np.generic)
    return np.zeros((), import_unadvised(item).dtype) if is_array else item


def first_values(obj: Any) -> tuple[list[Any], int]:
    """Return the first items of nested sequences of equal lengths, and the number of levels.

    The number of levels of other values is 0.
    """
    level, depth = [obj], 0
    while level and all(issubclass(type(item), _SEQUENCES) for item in level):
        depth += 1
        if depth > MAX_NDIM:
            raise TypeError(f"sequences are nested deeper than NumPy's {MAX_NDIM} dimensions")
        lengths = {_sequence_of(item).__len__(item) for item in level}
        if len(lengths) > 1:
            raise TypeError(f"sequences have different lengths ({', '.join(map(str, sorted(lengths)[:5]))})")
        items = (item for sequence in level for item in _sequence_of(sequence).__iter__(sequence))
        level = list(islice(items, LOOKED_AT))
    return level, depth


def _sequence_of(sequence: Any) -> Any:
    """Return the base class of `sequence` in `_SEQUENCES`, so that methods of a subclass are not called."""
    return next(filter(partial(issubclass, type(sequence)), _SEQUENCES))


def _find_missing_row(column: Any) -> int:
    """Return the position of the first missing row of a pandas object, or -1. Masks are made of a block of rows."""
    rows = getattr(column, "iloc", column)
    for start in range(0, len(column), _BLOCK):
        missing = np.asarray(rows[start : start + _BLOCK].isna())
        if missing.any():
            return start + int(missing.argmax())
    return -1


def sample_table(obj: Any) -> Any:
    """Return rows and columns of a pandas object that decide about the call.

    The rows are the first ones, and the first row with a missing value. The columns of a frame are those of
    `_sample_columns`. All rows of Arrow's memory are returned, whose export does not copy them.
    """
    obj = _sample_columns(obj) if obj.ndim == 2 else obj
    dtypes = list(obj.dtypes) if obj.ndim == 2 else [obj.dtype]
    if len(obj) <= _SAMPLED or all(map(_is_of_arrow, dtypes)):
        return obj
    rows = [*range(_SAMPLED)]
    for k, dtype in enumerate(dtypes):
        if _has_missing(dtype):
            missing = _find_missing_row(obj.iloc[:, k] if obj.ndim == 2 else obj)
            rows += [missing] if missing >= _SAMPLED else []
    if len(rows) == _SAMPLED:
        return getattr(obj, "iloc", obj)[:_SAMPLED]
    chosen = obj.iloc[rows] if hasattr(obj, "iloc") else obj[rows]
    has_range = type(getattr(obj, "index", None)).__name__ == "RangeIndex"  # which is not exported
    return chosen.reset_index(drop=True) if has_range else chosen


def _sample_columns(frame: Any) -> Any:
    """Return the columns that stand for those of a wide frame: one of each dtype, with and without missing values.

    Columns of NumPy's memory with gaps between the elements, which pyarrow copies, count as another dtype. Of columns
    of Python objects, whose values may differ, return `_MAX_OBJECTS`.
    """
    if frame.shape[1] <= MAX_COLUMNS or not frame.columns.is_unique:
        return frame
    chosen: dict[tuple[Any, ...], int] = {}
    objects = 0
    for k, (_, column) in enumerate(frame.items()):
        dtype = column.dtype
        of_numpy = isinstance(dtype, np.dtype)
        is_of_objects = of_numpy and dtype.hasobject
        objects += is_of_objects
        key = (
            str(dtype),
            str(getattr(getattr(dtype, "categories", None), "dtype", "")),
            of_numpy and column.to_numpy().flags["C"],
            _has_missing(dtype) and _find_missing_row(column) >= 0,
            is_of_objects and min(objects, _MAX_OBJECTS),
        )
        chosen.setdefault(key, k)
    return frame.iloc[:, list(chosen.values())]


def _has_missing(dtype: Any) -> bool:
    """Return whether a column of a dtype may have missing values. NaN and objects are values in NumPy's columns."""
    return not isinstance(dtype, np.dtype) or dtype.kind in "mM"


def _is_of_arrow(dtype: Any) -> bool:
    return hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow"
