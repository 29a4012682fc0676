"""Build elements of the type of a node from Python values, for missing elements. Errors name the value and the node."""

import datetime
import numbers
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from arrayhub._core.errors import TypeRefusal, ValueRefusal, show
from arrayhub._core.tree import kind_of
from arrayhub.array import casting
from arrayhub.convert.functions import asarray
from arrayhub.nested.array import NestedArray, bitmap_of, make, nested_of, part, unwrap_flat
from arrayhub.nested.concatenate import as_regular
from arrayhub.nested.conform import element_type
from arrayhub.nested.from_python import from_python, offsets_of
from arrayhub.nested.logical_types import NUMPY_UNITS
from arrayhub.nested.opaque import as_list_views, decode, is_list_view

NAN = object()  # marker for ``missing="nan"``, which fills with NaN or NaT, depending on the type
ROWS = (list, tuple, np.ndarray)  # values that are rows of lists
_NUMBERS_AND_TIMES = (numbers.Number, datetime.date, datetime.time, datetime.timedelta)
# The accepted time for messages, by NumPy's dtype kind, or by the start of Arrow's format of a logical type.
_ACCEPTED = {
    "M": "a datetime without a time zone",
    "td": "a date, or a datetime without a time zone",
    "ts": "a datetime with a time zone",
    "tt": "a datetime.time without a time zone",
}


def build(values: Sequence[Any], node: Any, name: str) -> NestedArray:
    """Convert Python values to an array that `concatenate` can append to a node, which `name` names in errors.

    Raise an error if a value does not fit the type of the node. None does not fit. Of opaque nodes, only list views are
    supported.
    """
    node = nested_of(node)
    kind, length = kind_of(node), len(values)
    if not length:
        return nested_of(part(node, 0, 0))
    if is_list_view(node):
        return as_list_views(_build_rows(values, decode(part(node, 0, 0), "fill_null"), name), node)
    if kind.lists or (kind.numbers and node.content.ndim > 1):
        return _build_rows(values, node, name)
    if kind.numbers or kind.packed:
        numbers = np.stack([convert_number(value, node, name) for value in values])
        if kind.packed:
            return make("bits", length, content=bitmap_of(numbers))
        return make("flat", length, content=asarray(numbers), meaning=node.meaning)
    if kind.characters:
        for value in values:
            if not isinstance(value, str if kind.utf8 else bytes):
                raise misfit(node, value, name)
        return from_python(list(values))
    if kind.indices:
        return _build_categories(values, node, name)
    if not kind.fields:
        raise _unsuitable(node, values[0], name, "rows without elements, such as []")
    for value in values:
        if not isinstance(value, dict) or set(value) != set(node.field_names):
            keys = ", ".join(map(show, node.field_names))
            raise _unsuitable(node, value, name, f"a dict with a value for each field: {keys}")
    fields = zip(node.field_names, node.children, strict=True)
    columns = [build([value[key] for value in values], field, f"{name}[{key!r}]") for key, field in fields]
    return make("record", length, names=node.field_names, parts=tuple(map(unwrap_flat, columns)), meaning=node.meaning)


def _build_rows(values: Sequence[Any], node: NestedArray, name: str) -> NestedArray:
    node = as_regular(nested_of(part(node, 0, 0)))
    fixed = kind_of(node).width
    for value in values:
        if not isinstance(value, ROWS) or (fixed and len(value) != node.width):
            raise _unsuitable(node, value, name, f"a list of {node.width} elements" if fixed else "a list")
    elements = unwrap_flat(build(list(chain.from_iterable(values)), node.content, f"{name}.content"))
    if fixed:
        return make("regular", len(values), width=node.width, content=elements)
    offsets = offsets_of(list(map(len, values)), node.offsets.dtype)
    return make("list", len(values), offsets=offsets, content=elements, meaning=node.meaning)


def _build_categories(values: Sequence[Any], node: NestedArray, name: str) -> NestedArray:
    categories = nested_of(node.content).to_list()
    for value in values:
        if value not in categories:
            such = f", such as {show(categories[:3])}" if categories else ", which does not have categories"
            raise ValueRefusal("fill_null", f"value is {show_value(value)}; accepted: a category of {name}{such}")
    indices = np.array(list(map(categories.index, values)), node.indices.dtype)
    return make("categorical", len(values), indices=asarray(indices), content=node.content, meaning=node.meaning)


def convert_number(value: Any, node: NestedArray, name: str) -> Any:
    """Convert a value to a 0-d array of the type of a node of numbers, booleans or times, or raise an error."""
    check_number(node, value, name)
    dtype = np.dtype(bool) if kind_of(node).packed else node.content.dtype
    if value is NAN and (node.meaning is None or dtype.kind == "M"):
        # NumPy 2.5 deprecates NaT without a unit.
        value = np.array("NaT", dtype)[()] if dtype.kind in "mM" else np.nan
    elif node.meaning is not None:
        return _convert_time(value, dtype, node, name)
    if isinstance(value, bytes):
        value = np.void(bytes(value))  # NumPy strips NUL from the end of bytes
    return np.asarray(_cast(value, dtype, node, name), dtype)


def check_number(node: NestedArray, value: Any, name: str) -> None:
    """Raise TypeError unless `value` is a single number or time or, for fixed-size bytes, bytes of this size.

    The range of the dtype is not checked.
    """
    if value is NAN or (isinstance(value, bytes) and len(value) == _bytes_length(node)):
        return
    if np.ndim(value) != 0 or isinstance(value, str):
        raise misfit(node, value, name)
    if not isinstance(value, _NUMBERS_AND_TIMES) and np.asarray(value).dtype.kind not in "biufcmMV":
        raise misfit(node, value, name)
    zoned = _has_zone(node)
    if zoned is not None and isinstance(value, datetime.date) and value == value and _is_aware(value) != zoned:
        raise misfit(node, value, name)


def _bytes_length(node: NestedArray) -> int | None:
    """Return the length of fixed-size bytes, such as Arrow's binary(n), or None for other elements."""
    dtype = node.content.dtype
    return dtype.itemsize if dtype.kind == "V" and not dtype.names and casting.rank(dtype) is None else None


def _has_zone(node: NestedArray) -> bool | None:
    """Return whether times have a time zone, or None if the elements are not times or dates."""
    if node.meaning is None:
        return False if node.content.dtype.kind == "M" else None
    return {"ts": True, "td": False}.get(node.meaning[:2])


def _is_aware(value: Any) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _cast(value: Any, dtype: Any, node: NestedArray, name: str) -> Any:
    call = f"fill_null: {name} has elements of {element_type(node)}"
    exact = value
    if isinstance(value, (datetime.datetime, datetime.timedelta)) and value == value:
        # NumPy drops the nanoseconds of pandas values.
        exact = casting.ticks([value], "M8" if isinstance(value, datetime.datetime) else "m8", call)[0]
    try:
        return casting.as_ndarray(casting.validate_value(exact, dtype, call), dtype)
    except TypeError:
        raise misfit(node, value, name) from None


def _convert_time(value: Any, dtype: Any, node: NestedArray, name: str) -> Any:
    """Return the number that represents a date, a time of day or a time with a zone in the Arrow format of a node."""
    meaning, exact, of_numpy = str(node.meaning), value, dtype
    unit = NUMPY_UNITS.get(meaning[2:3])
    if isinstance(value, (datetime.date, np.datetime64)) and value == value and meaning[:2] in ("ts", "td"):
        if isinstance(value, datetime.datetime) and _is_aware(value):
            exact = value.astimezone(datetime.UTC).replace(tzinfo=None)
        of_numpy = dtype if dtype.kind == "M" else np.dtype("M8[D]" if meaning == "tdD" else f"M8[{unit}]")
    elif meaning[:2] == "tt" and isinstance(value, datetime.time) and value.tzinfo is None:
        exact = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
        of_numpy = np.dtype(f"m8[{unit}]")
    else:
        raise misfit(node, value, name)
    number = np.asarray(_cast(exact, of_numpy, node, name), of_numpy)
    return number if dtype == of_numpy else np.asarray(_cast(number.astype(np.int64)[()], dtype, node, name), dtype)


def misfit(node: NestedArray, value: Any, name: str) -> TypeError:
    """Return the error for a value that cannot be an element of a node."""
    kind, meaning = kind_of(node), str(node.meaning)[:2]
    accepted = "a value of this type"
    if kind.numbers:
        accepted = _ACCEPTED.get(node.content.dtype.kind if node.meaning is None else meaning, accepted)
    is_word = isinstance(value, str) or value != value
    if is_word and (kind.numbers or kind.packed) and meaning not in ("ts", "tt"):
        accepted += ". 'mask' and 'nan' are values of missing=, as in arrayhub.as_numpy(x, missing='nan')"
    return _unsuitable(node, value, name, accepted)


def _unsuitable(node: NestedArray, value: Any, name: str, accepted: str) -> TypeError:
    why = f"{name} has elements of {element_type(node)}, and value is {show_value(value)}"
    return TypeRefusal("fill_null", why, accepted)


def show_value(value: Any) -> str:
    """Return the text of a value in errors."""
    return "'nan'" if value is NAN else show(value)
