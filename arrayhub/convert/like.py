"""like: conversion of an array to the library and the device of another array."""

from types import ModuleType
from typing import Any, Literal, TypeVar, overload

import numpy.typing as npt

from arrayhub._core.copying import Copy
from arrayhub.convert.target import convert_to, target_of

_T = TypeVar("_T")


@overload
def like(
    obj: Any, model: Any, *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Literal["mask"]
) -> Any: ...
@overload
def like(
    obj: Any, model: ModuleType, *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Any = None
) -> Any: ...
@overload
def like(
    obj: Any, model: type[_T], *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Any = None
) -> _T: ...
@overload
def like(
    obj: Any,
    model: list[Any] | tuple[Any, ...] | complex,
    *,
    copy: Copy = None,
    dtype: Any = None,
    labels: bool = False,
    missing: Any = None,
) -> npt.NDArray[Any]: ...
@overload
def like(
    obj: Any, model: _T, *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Any = None
) -> _T: ...
def like(
    obj: Any, model: Any, *, copy: Copy = None, dtype: Any = None, labels: bool = False, missing: Any = None
) -> Any:
    """Return `obj` as an array of the same library and on the same device as `model`.

    Parameters
    ----------
    obj : object
        Anything that `asarray` or `asnested` accepts.
    model : object
        An array, an array type such as ``torch.Tensor``, or a library's module. Lists, tuples and numbers select NumPy.
    copy : {None, True, False}, optional
        As in `convert`. The model requests its device: only False raises BufferError for memory on another device.
    dtype : optional
        Element type of the result. None keeps the element type of `obj`, except that jax without ``jax_enable_x64``
        narrows elements of 64 bits. "model" casts to the element type of `model`. Both may round, and raise an error
        for integers and finite floats out of range. Any other element type casts as in `convert`.
    labels : bool, default: False
        Whether a result with the shape of `model` gets the labels of `model`. Names that `obj` has are kept,
        and other labels of `obj` that differ from those of `model` raise ValueError.

        - pandas: index, columns and name.
        - xarray: dims, coords and name.
        - polars: name of a Series, column names of a DataFrame.
        - pyarrow: column names of a table.
        - USMArray: dims.
    missing : {None, "mask", "nan"} or value, optional
        Representation of missing values, as in `convert`.

    Returns
    -------
    object
        An array of the model's library: what ``convert(obj, library)`` returns, on the device of `model`.

    Raises
    ------
    TypeError
        `model` is not an array, an array type or a module, ``dtype="model"`` requires a cast to another kind, or the
        library does not support the number of dimensions.
    ValueError
        `dtype` is "model" and `model` is a module or a type, or `labels` is True and the labels differ.
    OverflowError
        A value is out of the range of the element type of the model or of jax.
    BufferError
        A copy is needed, also to another device, and `copy` does not permit it, or the library does not support the
        element type.

    Examples
    --------
    >>> import torch
    >>> like(np.ones(2), torch.zeros(3))
    tensor([1., 1.], dtype=torch.float64)
    >>> like(np.ones(2), torch.zeros(3), dtype="model").dtype
    torch.float32
    >>> import pandas
    >>> like(np.ones(2), pandas.Series([1, 2], index=["a", "b"]), labels=True)
    a    1.0
    b    1.0
    dtype: float64
    """
    return convert_to(target_of(model, "like"), obj, "like", copy, dtype, labels, missing)
