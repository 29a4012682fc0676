"""Labels: index, columns, dims, coords and names of the arrays of pandas, polars, pyarrow, xarray and arrayhub.

Labels are set only if the author of a function or the caller of `like` asks for them (``labels=True``).
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from operator import is_
from typing import Any, TypeVar, cast

from arrayhub._core.errors import name_of_type, root_of

F = TypeVar("F", bound=Callable[..., Any])


def cache_by_type(function: F) -> F:
    """Cache the results of a function of a type. For mypy, types are not hashable arguments of ``lru_cache``."""
    return cast(F, lru_cache(maxsize=1024)(function))


# Names of the classes with labels, by library.
_LABELLED = {
    ("arrayhub", "USMArray"): "usm",
    ("pandas", "DataFrame"): "frame",
    ("pandas", "Series"): "series",
    ("pandas", "Index"): "index",
    ("polars", "DataFrame"): "columns",
    ("polars", "Series"): "name",
    ("pyarrow", "RecordBatch"): "table",
    ("pyarrow", "Table"): "table",
    ("pyarrow", "Tensor"): "tensor",
    ("xarray", "DataArray"): "coords",
    ("xarray", "Variable"): "dims",
}
TABLES: tuple[str | None, ...] = ("frame", "columns", "table")


@cache_by_type
def label_kind(cls: type) -> str | None:
    """Return which labels the instances of a type have, or None for types without labels."""
    return next(filter(None, [_LABELLED.get((root_of(base), base.__name__)) for base in cls.__mro__]), None)


def shape_of(obj: Any) -> tuple[int, ...]:
    kind = label_kind(type(obj))
    if kind == "table":
        return (obj.num_rows, obj.num_columns)
    if kind == "series":
        return (len(obj.index),)  # takes half the time of obj.shape
    return tuple(getattr(obj, "shape", ()))


# -------------------------------------------------------------------------------------------------------------- names


def get_names(obj: Any) -> Any:
    """Return the name of a Series, the list of field names of a table or of records, or None."""
    kind = label_kind(type(obj))
    if kind in ("series", "name", "index"):
        name = obj.name
        return None if isinstance(name, str) and not name else name
    if kind in ("frame", "columns"):
        return list(obj.columns)
    if kind == "table":
        return list(obj.schema.names)
    if kind is not None and kind != "usm":
        return None
    found = getattr(obj, "fields", None)  # of awkward or a NestedArray
    for attribute in ("dtype", "type"):  # of NumPy or pyarrow
        found = found or getattr(getattr(obj, attribute, None), "names", None)
    return list(found) if found else None


def rename(made: Any, names: Any, model: Any = None) -> Any:
    """Return `made`, a new Series or table, with other names. Names that `model` has are not converted to strings."""
    kind = label_kind(type(made))
    if isinstance(names, list) != (kind in TABLES):
        return made
    if kind == "frame":
        columns = list(model.columns) if label_kind(type(model)) == "frame" else []
        known = {_text_of(name): name for name in columns}
        found = [known.get(_text_of(name), name) for name in names]
        is_same = len(found) == len(columns) and all(map(is_, found, columns))
        made.columns = model.columns if is_same and columns else found  # with their type
    elif kind == "series":
        own = getattr(model, "name", None)
        made.name = own if str(own) == str(names) else names
    elif kind == "columns":
        made.columns = list(map(str, names))
    elif kind == "table":
        made = made.rename_columns(list(map(str, names)))
    elif kind == "name":
        made = made.alias(str(names))
    return made


def _text_of(name: Any) -> str:
    """Return the name that Arrow's tables have for the name of a column in pandas."""
    if isinstance(name, tuple):  # of a MultiIndex
        return str(tuple(map(_text_of, name)))
    return name.decode() if isinstance(name, bytes) else str(name)


def with_labels(made: Any, model: Any, source: Any = None) -> Any:
    """Return `made`, converted from `source`, with the labels of `model` if the shapes are equal, otherwise `made`.

    Names of `made` take precedence over the names of `model`, except the default names of the columns of a matrix.
    """
    kind = label_kind(type(made))
    if kind is None or shape_of(made) != shape_of(model):
        return made
    if kind == "coords":
        return with_coords(made.data, model)
    if kind == "dims":
        return type(model)(model.dims, made.data)
    if kind in ("frame", "series"):
        made = made.copy(deep=False) if made is source else made
        made.index = getattr(model, "index", made.index)
    own, names = get_names(model), get_names(made)
    columns = range(len(names) if isinstance(names, list) else 0)
    texts = list(map(str, names)) if isinstance(names, list) else names
    if own is not None and texts in (None, [*map(str, columns)], [f"column_{k}" for k in columns]):
        made = made.rename(own) if kind == "index" else rename(made, own, model)
    if kind == "usm" and model.dims is not None:
        return made.with_dims(model.dims)
    return made


def with_coords(data: Any, model: Any) -> Any:
    """Return a DataArray of `data` with the dims, coords and name of `model`, which has the same shape."""
    made = model.copy(deep=False, data=data)
    made.attrs, made.encoding = {}, {}
    return made


def with_index(values: Any, model: Any) -> Any:
    """Return a Series of an ndarray with the index and name of `model`, a Series of the same length.

    pandas takes half the time to set labels in a new Series that it takes to replace them.
    """
    return sys.modules["pandas"].Series(values, index=model.index, name=get_names(model), copy=False)


# ---------------------------------------------------------------------------------------------------------- comparison


# Functions that return, for each dimension, its name and its labels, or None.
_AXES: dict[str, Callable[[Any], list[Any]]] = {
    "usm": lambda obj: [(name, None) for name in obj.dims or ()],
    "frame": lambda obj: [(None, obj.index), (None, obj.columns)],
    "series": lambda obj: [(None, obj.index)],
    "columns": lambda obj: [(None, None), (None, obj.columns)],
    "table": lambda obj: [(None, None), (None, obj.schema.names)],
    "coords": lambda obj: [(dim, obj.indexes.get(dim)) for dim in obj.dims],
    "dims": lambda obj: [(dim, None) for dim in obj.dims],
}


def check_labels(
    call: str, arguments: list[tuple[str, Any, bool]], columns: bool = True, sources: dict[str, Any] | None = None
) -> None:
    """Raise ValueError if the labels of two arguments differ along dimensions of equal length.

    `arguments` contains a name, a value, and whether the function receives the value unchanged. The labels of two such
    values are not compared. With ``columns=False``, the names of the columns of tables are not compared, because the
    function receives them. `sources` are the values that the caller passed, if the arguments are already converted.
    """
    labelled = []
    for key, obj, is_own in arguments:
        kind = label_kind(type(obj))
        axes = _AXES[kind](obj) if kind in _AXES else []
        if axes and not columns and kind in TABLES:
            axes[1] = (None, None)
        if axes:
            labelled.append((key, obj, is_own, [(*axis, n) for axis, n in zip(axes, shape_of(obj), strict=True)]))
    for k, (key, obj, is_own, axes) in enumerate(labelled):
        for other_key, other, is_other_own, other_axes in labelled[:k]:
            found = None if is_own and is_other_own else _difference(other_axes, axes)
            if found:
                first = _describe(other, other if sources is None else sources[other_key])
                second = _describe(obj, obj if sources is None else sources[key])
                raise ValueError(
                    f"{call}: the labels of dimension {found[0]} of {other_key} ({first}) and dimension {found[1]} of"
                    f" {key} ({second}) differ; accepted: equal labels. Align them first, or pass arrays without"
                    " labels, such as arrayhub.as_numpy(x)"
                )


def _describe(obj: Any, source: Any) -> str:
    """Return the type of an argument and, if it was converted, the type that the function receives."""
    name = name_of_type(type(source))
    return name if type(obj) is type(source) else f"{name} as {name_of_type(type(obj))}"


def _difference(first: list[Any], second: list[Any]) -> tuple[int, int] | None:
    """Return dimensions of two objects whose labels differ, or None. y may belong to the rows or the columns of X."""
    if len(first) > len(second):
        found = _difference(second, first)
        return found and (found[1], found[0])
    for axis, one in enumerate(first):
        alike = [k for k, other in enumerate(second) if other[2] == one[2] and (len(first) < len(second) or k == axis)]
        if alike and all(_differ(one, second[k]) for k in alike):
            return axis, alike[-1]
    return None


def are_equal(one: Any, two: Any) -> bool:
    """Return whether two arrays of pandas, polars, xarray or awkward have equal types, labels and elements."""
    if label_kind(type(one)) != label_kind(type(two)) or get_names(one) != get_names(two):
        return False
    if root_of(type(one)) == "awkward":
        return bool(sys.modules["awkward"].array_equal(one, two, equal_nan=True))
    equals = getattr(one, "identical" if root_of(type(one)) == "xarray" else "equals", None)
    types = "schema" if label_kind(type(one)) == "columns" else "dtype"  # polars compares only the elements
    return equals is not None and getattr(one, types, None) == getattr(two, types, None) and bool(equals(two))


def _differ(one: tuple[Any, Any, int], two: tuple[Any, Any, int]) -> bool:
    (name, labels, length), (other_name, other_labels, other_length) = one, two
    if length != other_length:
        return False
    if name is not None and other_name is not None and name != other_name:
        return True
    if labels is None or other_labels is None or labels is other_labels:
        return False
    equals = getattr(labels, "equals", None)
    if equals is not None and hasattr(other_labels, "equals"):
        return not equals(other_labels)
    return list(labels) != list(other_labels)
