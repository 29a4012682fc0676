"""The element type to which NumPy converts a value, from its first items."""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from arrayhub._core.descriptor import MAX_NDIM
from arrayhub.convert.functions import check_level, import_unadvised

LOOKED_AT = 1000  # maximum number of items of nested sequences that are inspected
SAMPLED = 100  # number of rows that stand for a pandas object. pyarrow starts threads for longer frames
_BLOCK = 100_000  # number of rows whose mask of missing values is in memory at once
_SEQUENCES = (list, tuple, range)


def dtype_of_value(obj: Any) -> np.dtype[Any]:
    """Return the dtype to which NumPy converts a value. Raise the error of `asarray` for its first items."""
    items = first_values(obj)
    if not items:
        return np.dtype(float)
    check_level(items, 0, {})
    shapes = {tuple(getattr(item, "shape", ())) for item in items}
    if len(shapes) > 1:
        raise TypeError("the arrays in it have different shapes")
    return import_unadvised([_sample_of(item) for item in items]).dtype


def _sample_of(item: Any) -> Any:
    """Return a value of the element type of an array, so that its elements are not copied. Return other items."""
    cls = type(item)
    is_array = hasattr(cls, "shape") and not issubclass(cls, np.generic)
    return np.zeros((), import_unadvised(item).dtype) if is_array else item


def first_values(obj: Any) -> list[Any]:
    """Return the first items of nested sequences of equal lengths, or a value that is not a sequence."""
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
    return level


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


def sample_rows(obj: Any) -> Any:
    """Return the first rows of a pandas object, and its first row with a missing value, which decide about the call."""
    columns = [obj.iloc[:, k] for k in range(min(obj.shape[1], LOOKED_AT))] if obj.ndim == 2 else [obj]
    rows = [*range(SAMPLED)]
    for column in columns:
        # NumPy's NaN and objects are values here.
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind in "mM":
            missing = _find_missing_row(column)
            rows += [missing] if missing >= SAMPLED else []
    if len(rows) == SAMPLED:
        return getattr(obj, "iloc", obj)[:SAMPLED]
    chosen = obj.iloc[rows] if hasattr(obj, "iloc") else obj[rows]
    has_range = type(getattr(obj, "index", None)).__name__ == "RangeIndex"  # which is not exported
    return chosen.reset_index(drop=True) if has_range else chosen
