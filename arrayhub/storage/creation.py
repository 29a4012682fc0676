"""New arrays with values: ones, full, from_array, and those that are made like another array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypedDict, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt

from arrayhub import transfer
from arrayhub._core.errors import show
from arrayhub._core.fresh import as_copy, slowest_first
from arrayhub.conversion import asarray
from arrayhub.dispatch import VALUES, check_values
from arrayhub.fitting import checked, converted, is_integer, rank
from arrayhub.libraries.numpy import with_ndarrays
from arrayhub.runtimes.sycl import queue_of_array
from arrayhub.storage.allocation import empty, zeros
from arrayhub.storage.planning import element_type
from arrayhub.usm_array import USMArray

if TYPE_CHECKING:
    from arrayhub.storage.allocation import _Halo, _Memory

# What ``memory=`` calls the kinds of memory, by device type and kind of USM.
KINDS: dict[tuple[str, str | None], _Memory] = {
    ("cpu", None): "cpu",
    ("oneapi", "host"): "usm_host",
    ("oneapi", "shared"): "usm_shared",
    ("oneapi", "device"): "usm_device",
    ("cuda", None): "cuda",
    ("cuda_host", None): "cuda_host",
    ("cuda_managed", None): "cuda_managed",
}


class _Options(TypedDict, total=False):
    aligned_index: Sequence[SupportsIndex] | None
    halo: _Halo | None
    dimensions: Sequence[str] | None
    dims: Sequence[str | None] | None
    layout: Sequence[SupportsIndex] | Literal["C", "F"] | None
    backend: str | None
    alignment: SupportsIndex | None
    origin: Sequence[SupportsIndex] | None
    device: Any


class Options(_Options, total=False):
    """The keywords of `empty`, which every function here takes and hands on."""

    memory: _Memory


class LikeOptions(_Options, total=False):
    """The same where None means as in the array that another is made like."""

    memory: _Memory | None


_AnyOptions = TypeVar("_AnyOptions", Options, LikeOptions)


def _known(call: str, options: _AnyOptions) -> _AnyOptions:
    """Return `options`, in which there is no keyword that `empty` does not take."""
    for name in options:
        if name not in Options.__annotations__:
            accepted = ", ".join(Options.__annotations__)
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}; accepted: dtype, {accepted}")
    return options


def ones(
    shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float64, **options: Unpack[Options]
) -> USMArray:
    """Return a new array of ones; see `empty` for everything else."""
    _known("ones", options)
    element = element_type(dtype)
    if rank(element) == 1:  # some integers of a bit or two have no 1
        return full(shape, 1, element, **options)
    return _filled(empty(shape, element, **options), np.ones((), element))


def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: Any,
    dtype: npt.DTypeLike = np.float64,
    **options: Unpack[Options],
) -> USMArray:
    """Return a new array whose elements are all `fill_value`, a number; see `empty` for everything else.

    Raises
    ------
    ValueError
        `fill_value` is no single element, or none of that type: 1.5 is no integer, and 300 no byte.
    """
    _known("full", options)
    element = element_type(dtype)
    try:
        value = _element(fill_value, element)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"full: fill_value is {show(fill_value)}; accepted: one element of {element!r} ({error})"
        ) from error
    if value.ndim:
        raise ValueError(f"full: fill_value is {show(fill_value)}; accepted: one element of {element!r}")
    return _filled(empty(shape, value.dtype, **options), value)


def _element(value: Any, element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A value as an element of a type in which it loses nothing."""
    if element.kind == "b" and is_integer(value) and np.asarray(value).dtype != object:
        return np.array(value, element)  # true or false, as in `ones`
    given = checked(with_ndarrays(value), element, "fill_value")
    check_values(value)
    made: np.ndarray[Any, Any] = converted(given, element).astype(element)
    return made


def from_array(
    data: Any = None,
    device_data: Any = None,
    *,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[Options],
) -> USMArray:
    """Return a new array with the elements of another one, copied from wherever they are.

    Parameters
    ----------
    data : object, optional
        Anything that `asarray` takes.
    device_data : object, optional
        The same elements on a device. Where both are given, the one is copied that is closer to the new memory.
    dtype : optional
        The element type; that of the data by default.
    **options
        As for `empty`. The names of the data's dimensions, its origin and its halo are kept where none are given.

    Returns
    -------
    USMArray

    Raises
    ------
    TypeError
        Neither `data` nor `device_data` is given.
    """
    _known("from_array", options)
    if dtype is not None and isinstance(data, VALUES):
        data = asarray(data, dtype=dtype)
    source = _closer(data, device_data, options.get("memory", "cpu"))
    if dtype is not None and source.dtype != element_type(dtype):
        source = transfer.astype(transfer.to_host(source), element_type(dtype))
    fresh = empty(source.shape, source.dtype, **_labelled_as(source, options))
    transfer.write(fresh, source)
    copied: USMArray = as_copy(fresh)
    return copied


def empty_like(obj: Any, /, dtype: npt.DTypeLike | None = None, **options: Unpack[LikeOptions]) -> USMArray:
    """Return a new array with the shape of another one, whose elements have any values.

    Parameters
    ----------
    obj : object
        Anything that `asarray` takes.
    dtype : optional
        The element type; that of `obj` by default.
    **options
        As for `empty`. What is left out, or None, is as it is in `obj`: the order of its strides, its names, origin
        and halo, the kind of its memory and its device. Padding is not: rows are padded only for ``alignment=`` or a
        preset.

    Returns
    -------
    USMArray
    """
    _known("empty_like", options)
    model = asarray(obj)
    return empty(model.shape, model.dtype if dtype is None else dtype, **_options_of(model, options))


def zeros_like(obj: Any, /, dtype: npt.DTypeLike | None = None, **options: Unpack[LikeOptions]) -> USMArray:
    """Return a new array of zeros with the shape of another one; see `empty_like`."""
    _known("zeros_like", options)
    model = asarray(obj)
    return zeros(model.shape, model.dtype if dtype is None else dtype, **_options_of(model, options))


def ones_like(obj: Any, /, dtype: npt.DTypeLike | None = None, **options: Unpack[LikeOptions]) -> USMArray:
    """Return a new array of ones with the shape of another one; see `empty_like`."""
    model = asarray(obj)
    return ones(
        model.shape, model.dtype if dtype is None else dtype, **_options_of(model, _known("ones_like", options))
    )


def full_like(
    obj: Any, /, fill_value: Any, dtype: npt.DTypeLike | None = None, **options: Unpack[LikeOptions]
) -> USMArray:
    """Return a new array with the shape of another one, all elements `fill_value`; see `empty_like` and `full`."""
    _known("full_like", options)
    model = asarray(obj)
    return full(model.shape, fill_value, model.dtype if dtype is None else dtype, **_options_of(model, options))


def _filled(fresh: USMArray, value: npt.NDArray[Any]) -> USMArray:
    """Return a fresh array after its elements have been set to a single one."""
    transfer.write(fresh, asarray(value))
    return fresh


def _closer(data: Any, device_data: Any, memory: _Memory) -> USMArray:
    """Return that of the two sides as an array which the copy is to be made from."""
    if data is None and device_data is None:
        raise TypeError("from_array: neither data nor device_data is given; accepted: an array as either, or both")
    if data is None or (device_data is not None and memory in ("cuda", "cuda_managed", "usm_device", "usm_shared")):
        return asarray(device_data)
    return asarray(data)


def _labelled_as(model: USMArray, options: _AnyOptions) -> _AnyOptions:
    """Return `options` with the labels that they leave out as they are in `model`."""
    if options.get("dims") is None and options.get("dimensions") is None:
        options["dims"] = model.dims
    if options.get("origin") is None:
        options["origin"] = model.origin
    if options.get("halo") is None:
        options["halo"] = model.halo
    return options


def _options_of(model: USMArray, given: LikeOptions) -> Options:
    """Return the options given with what they leave out as it is in `model`."""
    options = _labelled_as(model, given)
    if options.get("layout") is None and options.get("backend") is None:
        order = slowest_first(model)
        options["layout"] = [order.index(axis) for axis in range(model.ndim)]
    if options.get("memory") is None:
        options["memory"] = _kind_of(model)
        if options.get("device") is None:
            options["device"] = _device_of(model)
    return cast(Options, options)


def _kind_of(model: USMArray) -> _Memory:
    """Return the name of the kind of memory that `model` lies in."""
    kind = KINDS.get((model.device.type, model.usm_type))
    if kind is None:
        raise ValueError(
            f"memory: that of the array is on {model.device}; pass memory= to say where to allocate instead"
        )
    return kind


def _device_of(model: USMArray) -> Any:
    """Return what ``device=`` takes for the place of `model`."""
    if model.device.type == "oneapi":
        return queue_of_array(model)
    return None if model.device.type == "cpu" else model.device
