"""The element type to which NumPy would convert a value, from its first items."""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from arrayhub._core.descriptor import MAX_NDIM
from arrayhub.convert.functions import check_values, protocols_of_type
from arrayhub.inspection.texts import attempt, type_name

LOOKED_AT = 1000  # maximum number of items of nested sequences that are inspected
SAMPLED = 100  # number of rows that stand for a pandas object. pyarrow starts threads for longer frames
_NUMBERS = (bool, int, float, complex)
_SEQUENCES = (list, tuple, range)


def dtype_of_value(obj: Any) -> np.dtype[Any]:
    """Return the dtype to which NumPy would convert a value, inferred from its first items."""
    level = first_values(obj)
    if not level:
        return np.dtype(float)
    check_values(level)  # as `asarray` does
    shapes = {tuple(getattr(item, "shape", ())) for item in level}
    if len(shapes) > 1:
        raise TypeError("the arrays in it have different shapes")
    dtypes = [_dtype_of_item(item) for item in level]
    common = np.result_type(*dtypes)
    if common.kind in "SU" and any(dtype.kind not in "SU" for dtype in dtypes):
        raise TypeError("it mixes strings with other types")
    whole = [item for item in level if issubclass(type(item), int)] if common.kind in "fc" else []
    rounded = next((item for item in whole if abs(item) < 2**64 and int(float(item)) != item), None)
    if rounded is not None:
        raise OverflowError(f"{rounded} among floats would be rounded")
    return common


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


def _dtype_of_item(item: Any) -> Any:
    cls = type(item)
    if issubclass(cls, np.generic):
        return np.generic.dtype.__get__(item)
    if cls is np.ndarray:
        return item.dtype
    if issubclass(cls, str):
        return np.dtype(f"U{max(str.__len__(item), 1)}")
    if issubclass(cls, int) and not -(2**63) <= int.__int__(item) < 2**63:
        return np.dtype(np.uint64 if 0 < int.__int__(item) < 2**64 else object)
    for number in _NUMBERS:
        if issubclass(cls, number):
            return np.dtype(number)
    if issubclass(cls, bytes):
        return np.dtype(f"S{max(bytes.__len__(item), 1)}")
    if (attempt(protocols_of_type, cls)[0] or (False, ()))[1] or hasattr(cls, "__array__"):
        return np.asarray(item).dtype
    if item is None:
        raise TypeError(
            "it contains None, a missing value; call arrayhub.asnested(x), or arrayhub.as_numpy(x, missing=value)"
        )
    raise TypeError(f"it contains {type_name(cls)} objects, which NumPy does not convert to numbers")


def sample_rows(obj: Any) -> Any:
    """Return the first rows of a pandas object, and its first row with a missing value, which decide about the call."""
    columns = [obj.iloc[:, k] for k in range(min(obj.shape[1], LOOKED_AT))] if obj.ndim == 2 else [obj]
    rows = [*range(SAMPLED)]
    for column in columns:
        # NumPy's NaN and objects are values here.
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind in "mM":
            missing = np.asarray(column.isna())
            rows += [int(missing.argmax())] if missing.any() and missing.argmax() >= SAMPLED else []
    if len(rows) == SAMPLED:
        return getattr(obj, "iloc", obj)[:SAMPLED]
    chosen = obj.iloc[rows] if hasattr(obj, "iloc") else obj[rows]
    has_range = type(getattr(obj, "index", None)).__name__ == "RangeIndex"  # which is not exported
    return chosen.reset_index(drop=True) if has_range else chosen
