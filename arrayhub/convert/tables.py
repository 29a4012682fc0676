"""Conversion to a class of a library, for ``convert(x, Class)``."""

import sys
from typing import Any

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import name_of_type, root_of
from arrayhub._core.hooks import hooks
from arrayhub.convert.containers import maker_of
from arrayhub.convert.functions import convert_to_library
from arrayhub.convert.names import library_name


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
    options = {"copy": check_copy(copy, "convert"), "dtype": dtype, "device": device, "missing": missing}
    if issubclass(type(obj), cls) and not any(value is not None and value is not False for value in options.values()):
        return obj
    library, make = library_name(cls), maker_of(cls)
    if make is not None:
        made = make(obj, options)
    elif library == "arrow" and cls.__name__ in _EXTENSIONS:
        made = hooks.NESTED_CONSUMERS[library](obj, extension=True, **options)
    else:
        made = convert_to_library(obj, library, copy, dtype, device, missing, readonly)
    made = made if isinstance(made, cls) else _as_instance(made, library, cls, copy)
    if not isinstance(made, cls):
        raise TypeError(
            f"convert: to is {name_of_type(cls)}, and the array is a {name_of_type(type(made))} of this library;"
            f" accepted: an array that this type can hold. Pass {library!r} as the library"
        )
    return made


_EXTENSIONS = ("FixedShapeTensorArray", "Bool8Array")


def _as_instance(made: Any, library: str, cls: Any, copy: Copy) -> Any:
    """Return an array of a library as an instance of `cls` on the same memory, or unchanged if this is not possible."""
    if root_of(cls) == "polars" and cls.__name__ == "LazyFrame":
        return (made.to_frame() if hasattr(made, "to_frame") else made).lazy()
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
