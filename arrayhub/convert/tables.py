"""Conversion to table types: pandas and polars DataFrames, pyarrow Tables and RecordBatches, types of xarray."""

import sys
from functools import partial
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import name_of_type, root_of
from arrayhub._core.hooks import hooks
from arrayhub.convert.containers import container_of
from arrayhub.convert.functions import convert_to_library
from arrayhub.convert.kinds import Kind
from arrayhub.convert.names import library_name

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


def to_class(
    obj: Any, cls: type, copy: Copy, dtype: Any = None, device: Any = None, missing: Any = None, readonly: bool = False
) -> Any:
    """Return `obj` as an instance of `cls`, a type of a library. The other arguments are those of `convert`.

    A table has one column per column of a matrix, one per field of records, or one column for a 1-d array.

    Raises
    ------
    ValueError
        `cls` is not a type of a library.
    TypeError
        The elements, the shape or the chunks of `obj` do not fit `cls`.
    """
    if (
        dtype is None
        and device is None
        and missing is None
        and isinstance(obj, cls)
        and not check_copy(copy, "convert")
    ):
        return obj
    library = library_name(cls)
    made = _export(obj, library, cls, copy, dtype, device, missing, readonly)
    made = made if isinstance(made, cls) else _as_instance(made, library, cls, copy)
    if not isinstance(made, cls):
        raise TypeError(
            f"convert: to is {name_of_type(cls)}, and the array is a {name_of_type(type(made))} of this library; accepted:"
            f" an array that this type can hold. Pass {library!r} as the library"
        )
    return made


def _export(
    obj: Any, library: str, cls: type, copy: Copy, dtype: Any, device: Any, missing: Any, readonly: bool
) -> Any:
    make = container_of(cls)
    if make is not None and (library == "xarray" or cls.__name__ not in _EXPORTED):
        kind = Kind(library, None, None, cls)
        if missing is None:
            return kind.convert(obj, "convert", copy, dtype, device)
        return kind.with_missing(obj, partial(of_class, library=library, cls=cls), missing, copy)
    if is_table_type(cls) and (library == "arrow" or (library == "polars" and _is_matrix(obj))):
        if dtype is not None or device is not None or missing is not None:
            obj, copy = convert_to_library(obj, library, copy, dtype, device, missing, readonly), False
        return of_class(obj, library, cls, copy)
    if library == "arrow" and cls.__name__ in _EXTENSIONS:
        return hooks.NESTED_CONSUMERS[library](
            obj, copy=copy, dtype=dtype, device=device, missing=missing, extension=True
        )
    return convert_to_library(obj, library, copy, dtype, device, missing, readonly)


# Containers that `convert` makes by the library's name.
_EXPORTED = ("DataFrame", "Series", "Table", "RecordBatch")
_EXTENSIONS = ("FixedShapeTensorArray", "Bool8Array")


def _is_matrix(obj: Any) -> bool:
    return len(getattr(obj, "shape", ())) == 2 and not is_table_type(type(obj))


def _as_instance(made: Any, library: str, cls: Any, copy: Copy) -> Any:
    """Return an array of a library as an instance of `cls` on the same memory, or unchanged if this is not possible."""
    root = root_of(cls)
    if is_table_type(cls) and hasattr(made, "to_frame"):
        return made.to_frame()
    if root == "polars" and cls.__name__ == "LazyFrame":
        return (made if is_table_type(type(made)) else made.to_frame()).lazy()
    if isinstance(made, np.ndarray) and issubclass(cls, np.ndarray):
        return made.view(cls)
    if library == "scipy" and cls.__name__[:3] in ("bsr", "coo", "csc", "csr"):
        kind = cls.__name__[:3]
        return made if made.format != kind and copy is False else cls(made.asformat(kind))
    if library == "torch":
        torch = sys.modules["torch"]
        if cls is torch.nn.Parameter:
            return cls(made, requires_grad=made.is_floating_point() or made.is_complex())
        return made.as_subclass(cls) if issubclass(cls, torch.Tensor) else made
    if library == "arrow" and type(made).__name__ == "ChunkedArray" and (made.num_chunks == 1 or copy is not False):
        return made.chunk(0) if made.num_chunks == 1 else made.combine_chunks()
    return made
