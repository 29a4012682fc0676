"""like: conversion of an array to the library, the device and the labels of another array."""

from functools import partial
from typing import Any

from arrayhub._core.copying import Copy
from arrayhub.convert.kinds import kind_of, same_kind
from arrayhub.convert.names import sparse_library


def like(obj: Any, model: Any, *, copy: Copy = None, dtype: Any = None, device: Any = None, missing: Any = None) -> Any:
    """Return `obj` as an array of the same library and on the same device as `model`.

    Parameters
    ----------
    obj : object
        Anything that `asarray` or `asnested` accepts.
    model : object
        An array, an array type such as ``torch.Tensor``, or a library's module. Lists, tuples and numbers select NumPy.
        A result with the shape of `model` also gets the labels of `model`:

        - pandas: index, columns and name.
        - xarray: dims, coords and name.
        - polars: name of a Series, column names of a DataFrame if `obj` does not have column names.
        - pyarrow: column names of a table if `obj` does not have column names.
        - USMArray: dims.
    copy : {False, None, True}, optional
        As in `as_numpy`, with the default None. The device of `model` requests a copy to this device.
    dtype : optional
        Element type of the result. None keeps the element type of `obj`. "model" casts to the element type of `model`
        by NumPy's "same_kind" rule. Any other element type that `asarray` accepts converts the elements, with a copy.
        As in `asarray`, integers of an array that are out of range wrap, and fractions are dropped.
    device : Device, str, tuple or object, optional
        Device of the result, instead of the device of `model`.
    missing : {None, "mask", "nan"} or value, optional
        Representation of missing values, see `convert`.

    Returns
    -------
    object
        An array of the model's library. The result is `obj` itself if `obj` has the type and the device of `model`, the
        type does not have labels, and nothing else is requested. For arrays of pyarrow and awkward, the result is a new
        object that shares the memory.

    Raises
    ------
    TypeError
        `model` is not an array, an array type or a module, or ``dtype="model"`` requires a cast that is not
        "same_kind".
    ValueError
        The library does not support the number of dimensions, or `dtype` is "model" and `model` is a module or a type.
    BufferError
        A copy is needed and `copy` does not permit it, or the library does not support the element type.

    Examples
    --------
    >>> import torch
    >>> like(np.ones(2), torch.zeros(3))
    tensor([1., 1.], dtype=torch.float64)
    >>> like(np.ones(2), torch.zeros(3), dtype="model").dtype
    torch.float32
    >>> import pandas
    >>> like(np.ones(2), pandas.Series([1, 2], index=["a", "b"]))
    a    1.0
    b    1.0
    dtype: float64
    """
    if missing is None:
        return like_for("like", obj, model, copy, dtype, device)
    export = partial(_like, model=model, dtype=dtype, device=device)
    return kind_of(model, "like").with_missing(obj, export, missing, copy)


def _like(obj: Any, model: Any, dtype: Any, device: Any, copy: Copy) -> Any:
    return like_for("like", obj, model, copy, dtype, device)


def like_for(call: str, obj: Any, model: Any, copy: Copy = None, dtype: Any = None, device: Any = None) -> Any:
    """Implement `like`. `call` is the name of the function at the start of error messages."""
    if sparse_library(obj) is not None:
        return _sparse(call, obj, model, copy, dtype, device)
    if dtype is None and device is None and not copy and same_kind(obj, model):
        return obj
    return kind_of(model, call).convert(obj, call, copy, dtype, device)


def _sparse(call: str, obj: Any, model: Any, copy: Copy, dtype: Any, device: Any) -> Any:
    """Return the sparse array `obj` as a sparse array of the model's library, or of SciPy for NumPy and numba.

    `model` is a sparse or dense array, an array type or a module.
    """
    kind = kind_of(model, call)
    if isinstance(dtype, str) and dtype == "model":
        dtype = model.dtype if hasattr(model, "dtype") else kind.dtype(call)
    return kind.convert(obj, call, copy, dtype, device)
