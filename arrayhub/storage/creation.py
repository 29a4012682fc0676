"""Creation of filled arrays and of copies: `ones`, `full` and `from_array`. `allocation` has `empty` and `zeros`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, TypedDict, Unpack

import numpy as np

from arrayhub import transfer
from arrayhub._core.descriptor import as_copy
from arrayhub._core.errors import ValueRefusal, reason_of, show
from arrayhub.array.casting import as_ndarray, rank, validate_value
from arrayhub.array.usm_array import USMArray, element_type
from arrayhub.convert.functions import asarray, import_elements
from arrayhub.libraries.numpy import refuse_endless
from arrayhub.storage.allocation import refuse_packed

if TYPE_CHECKING:
    from arrayhub._core.descriptor import _DeviceLike
    from arrayhub.array.usm_array import _DTypeLike

    _Memory: TypeAlias = Literal[
        "cpu", "usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed", "shared_memory"
    ]
    _Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None


class Options(TypedDict, total=False):
    """Keyword arguments of `empty`, which all functions of this module accept."""

    aligned_index: Sequence[SupportsIndex] | None
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | None
    dimensions: Sequence[str] | None
    dims: Sequence[str | None] | None
    layout: Sequence[SupportsIndex] | Literal["C", "F"] | None
    backend: str | None
    alignment: SupportsIndex | None
    origin: Sequence[SupportsIndex] | None
    device: _DeviceLike | None
    like: Any
    memory: _Memory | None


if TYPE_CHECKING:

    def empty(shape: _Shape = None, dtype: _DTypeLike | None = None, **options: Unpack[Options]) -> USMArray: ...

    zeros = empty
else:
    from arrayhub.storage.allocation import empty as empty
    from arrayhub.storage.allocation import zeros as zeros


def _allocate(call: str, shape: _Shape, dtype: _DTypeLike | None, options: Options) -> USMArray:
    """Return ``empty(shape, dtype, **options)``. Errors about an unknown keyword name the public function `call`."""
    for name in options:
        if name not in Options.__annotations__:
            accepted = ", ".join(Options.__annotations__)
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}; accepted: dtype, {accepted}")
    return empty(shape, dtype, **options)


def ones(shape: _Shape = None, dtype: _DTypeLike | None = None, **options: Unpack[Options]) -> USMArray:
    """Return a new array filled with ones.

    Parameters
    ----------
    shape, dtype, **options : optional
        As in `empty`.

    Returns
    -------
    USMArray
        A writable array.

    Raises
    ------
    TypeError, ValueError, BufferError, ImportError, MemoryError
        As in `empty`.

    Examples
    --------
    >>> arrayhub.ones(3).tolist()
    [1.0, 1.0, 1.0]
    """
    fresh = _allocate("ones", shape, dtype, options)
    # 1-bit signed integers (ml_dtypes.int1) cannot represent 1.
    value = _element("ones", 1, fresh.dtype) if rank(fresh.dtype) == 1 else np.ones((), fresh.dtype)
    transfer.write(fresh, asarray(value))
    return fresh


def full(
    shape: _Shape = None, fill_value: Any = None, dtype: _DTypeLike | None = None, **options: Unpack[Options]
) -> USMArray:
    """Return a new array filled with `fill_value`.

    Parameters
    ----------
    shape : int or sequence of int, optional
        Lengths of the dimensions, in elements. May be omitted if `like` is given, as in ``full(fill_value=7, like=x)``.
    fill_value : object
        Value of all elements: a number, or an array of one element. Checked as in ``x[...] = value``.
    dtype, **options : optional
        As in `empty`.

    Returns
    -------
    USMArray
        A writable array.

    Raises
    ------
    TypeError, ValueError, BufferError, ImportError, MemoryError
        `fill_value` is not one element, or `dtype` cannot represent it, such as 1.5 as an integer. Also as in `empty`.

    Examples
    --------
    >>> arrayhub.full((2, 2), 7, "u1").tolist()
    [[7, 7], [7, 7]]
    """
    fresh = _allocate("full", shape, dtype, options)
    transfer.write(fresh, asarray(_element("full", fill_value, fresh.dtype)))
    return fresh


def _element(call: str, value: Any, element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return `value` as a 0-d array of type `element`. Raise ValueError if the conversion would lose information."""
    try:
        refuse_endless(value, call)
        values = import_elements(value)  # first, because NumPy's conversion calls methods of the elements
        given = as_ndarray(validate_value(values, element, "fill_value"), element)
        if given.size != 1:
            raise ValueError(f"an array of shape {given.shape}")
        made: np.ndarray[Any, Any] = given.reshape(()).astype(element)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        accepted = f"one value of {element!r}; {reason_of(error)}"
        raise ValueRefusal(call, f"fill_value is {show(value)}", accepted, getattr(error, "call", "")) from error
    return made


def from_array(
    data: Any = None, device_data: Any = None, *, dtype: _DTypeLike | None = None, **options: Unpack[Options]
) -> USMArray:
    """Return a new array that is a copy of an array on any device.

    Parameters
    ----------
    data : object, optional
        Any object that `asarray` accepts.
    device_data : object, optional
        Copy of the same elements on a device. If both are given, `device_data` is the source for CUDA device, CUDA
        managed, USM device and USM shared memory, and `data` is the source for all other memory.
    dtype : optional
        Element type. The default is the element type of the source.
    **options
        Keyword arguments of `empty`. Omitted `dims`, `origin` and `halo` are copied from the source.

    Returns
    -------
    USMArray
        A writable array.

    Raises
    ------
    TypeError, ValueError, BufferError, ImportError, MemoryError
        Both `data` and `device_data` are None, or the elements are packed. Also as in `asarray` and `empty`.

    Examples
    --------
    >>> x = arrayhub.from_array(numpy.eye(2), layout="F")
    >>> x.strides, x.is_copy
    ((1, 2), True)
    """
    if data is None and device_data is None:
        raise TypeError("from_array: data and device_data are both None; accepted: an array as data or device_data")
    is_near = device_data is None or options.get("memory") not in ("cuda", "cuda_managed", "usm_device", "usm_shared")
    chosen = data if data is not None and is_near else device_data
    if dtype is not None:
        element_type(dtype)  # rejects sub-arrays
    source = asarray(chosen, copy=None, dtype=dtype)
    refuse_packed(source, "from_array", "Call x.copy(), or x.to_device(device)")
    for name in ("dims", "origin", "halo"):
        if options.get(name) is None and (name != "dims" or options.get("dimensions") is None):
            options[name] = getattr(source, name)
    fresh = _allocate("from_array", source.shape, source.dtype, options)
    transfer.write(fresh, source)
    return as_copy(fresh)
