"""Copy sparse arrays to another device, or with another type of the values. Each part is copied once."""

from collections.abc import Callable
from typing import Any

from arrayhub import transfer
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.dtypes import requested_dtype, satisfies
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import SparseParts, asarray
from arrayhub.runtimes.sycl import named_queue
from arrayhub.sparse.validation import SEEN, is_on_host, structure_of


def moved(x: Any, move: Callable[[Any], Any], state: int | None = None) -> Any:
    """Apply `move` to each array of a sparse array, and return a sparse array of the results."""
    state = x._state & SEEN if state is None else state & SEEN
    facts = dict(blocksize=x.blocksize, batch_ndim=x.batch_ndim, state=state)
    if x.format != "coo":
        return type(x)(x.format, x.shape, move(x.data), move(x.indices), move(x.indptr), **facts)
    if x.coords_array is not None:
        return type(x)(x.format, x.shape, move(x.data), coords_array=move(x.coords_array), **facts)
    return type(x)(x.format, x.shape, move(x.data), coords=tuple(map(move, x.coords)), **facts)


def to_host(x: Any) -> Any:
    """Return `x` in memory that the host can read. See `SparseArray.to_host`."""
    return x if is_on_host(x) else moved(x, USMArray.to_host)


def to_device(x: Any, device: Any) -> Any:
    """Return `x` on a device. See `SparseArray.to_device`."""
    target = device if isinstance(device, Device) else Device(device)
    if target == x.device and named_queue(device) is None:
        return x
    return to_host(x) if target == CPU else moved(x, lambda array: array.to_device(device))


def cast(x: Any, dtype: Any) -> Any:
    """Return a sparse array with its values cast to `dtype`."""
    facts = dict(blocksize=x.blocksize, batch_ndim=x.batch_ndim, coords=x._coords, coords_array=x.coords_array)
    facts["state"] = x._state & SEEN
    return type(x)(x.format, x.shape, asarray(x.data, dtype=dtype), x.indices, x.indptr, **facts)


def change(x: Any, dtype: Any, device: Any) -> Any:
    """Return a sparse array with values of `dtype` on `device`, or `x` itself if nothing changes."""
    if dtype is not None and not satisfies(x.dtype, requested_dtype(dtype)):
        x = cast(x, dtype)
    return x if device is None or x.device == Device(device) else x.to_device(device)


def copied(x: SparseParts) -> Any:
    """Return an array with a copy of each part. See `SparseArray.copy`."""
    return moved(x, transfer.copy)


def copied_besides(x: Any, source: Any) -> Any:
    """Return `x` with copies of the arrays that it shares with `source`. All other arrays are already copies."""
    shared = {id(array) for array in parts_of(source)}
    return moved(x, lambda array: transfer.copy(array) if id(array) in shared else array)


def parts_of(x: Any) -> tuple[Any, ...]:
    """Return all arrays of a sparse array."""
    return (x.data, *structure_of(x))
