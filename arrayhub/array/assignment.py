"""``x[key] = value`` and ``to_device(out=)``: explicit copies into existing memory, with a cast on the host."""

import datetime

import numpy as np

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub._core.hooks import hooks
from arrayhub.array.casting import cast_checked, check_fit, checked, converted
from arrayhub.libraries.numpy import addresses, ndarray, refuse_endless, with_ndarrays
from arrayhub.runtimes.host import is_host_readable
from arrayhub.transfer.host_copies import have_one_type

# Types of values that NumPy converts to arrays without using a protocol.
_VALUES = (bytes, bool, int, float, complex, str, list, tuple, datetime.date, datetime.timedelta)


def assign(array, key, value):
    """Copy `value` into ``array[key]``. See ``USMArray.__setitem__``."""
    target = array if key is Ellipsis else array[key]
    if not target.flags.writeable:
        raise ValueError("x[...] = value: the array is read-only; accepted: a writable array, such as x.copy()")
    cls = type(value)
    # Unless the elements are text or raw data, bytes are imported as a buffer.
    if issubclass(cls, _VALUES) and (target.dtype.kind in "SUV" or not issubclass(cls, bytes)):
        refuse_endless(value, "x[...] = value")
        hooks.check_values(value)  # first, because NumPy's conversion calls methods of the elements
        _store(checked(with_ndarrays(value), target.dtype, "x[...] = value"), target, cls.__name__)
        return
    source = hooks.asarray(value)
    if target.ndim < array.ndim and source.memory is target.memory:
        _check_exchange(target, source)
    is_copy_of_bytes = not is_host_readable(target) or (not is_host_readable(source) and source.size == target.size)
    if is_copy_of_bytes and have_one_type(source, target):
        _copy(source, target)
        return
    given = ndarray(transfer.to_host(source))
    check_fit(given, target.dtype, "x[...] = value")
    _store(given, target, cls.__name__)


def copy_into(source, out, device, *, copy=None, stream=None, progress=None):
    """Copy `source` to `out`, an array on `device`. Cast on the host if the types differ. See `arrayhub.to_device`."""
    if source.shape == out.shape and not have_one_type(source, out):
        shared = stream if source.device.type == out.device.type else None
        source = cast_checked(transfer.to_host(source, stream=shared), out.dtype, "to_device: out")
    transfer.into(source, out, device, copy=copy, stream=stream, progress=progress)


def _store(given, target, source):
    """Copy a result of `checked` to `target`. Traces show `source`, the name of the value's type."""
    since = tracing.started()
    on_host = is_host_readable(target)
    try:
        given = converted(given, target.dtype)
        if on_host:
            ndarray(target)[...] = given
    except ValueError as error:  # NumPy's message does not name the call
        raise ValueError(f"x[...] = value: {error}") from error
    if on_host:
        tracing.copied("x[...] = value", source, str(target.device), target.nbytes, since)
    else:
        _copy(hooks.asarray(given.astype(target.dtype, copy=False)), target)


def _copy(source, target):
    """Copy an array of the same element type to `target`."""
    try:
        transfer.assign(source, target)
    except ValueError as error:
        raise ValueError(f"x[...] = value: {error}") from error


def _check_exchange(target, source):
    """Reject ``x[i] = x[j]`` for two disjoint views of the same memory.

    The exchange ``x[i], x[j] = x[j], x[i]`` consists of two such assignments. Its right side consists of views, so the
    second assignment would read the elements that the first has written.
    """
    try:
        overlap = np.shares_memory(addresses(target), addresses(source), max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        overlap = False
    if target.size and source.size and not overlap:
        raise TypeError(
            "x[i] = x[j]: the value is a view of the same memory, so the exchange x[i], x[j] = x[j], x[i], as in"
            " random.shuffle, would lose one of the two values; use x[j].copy() or x[j].item()"
        )
