"""``x[key] = value``: an explicit copy into an array that the host can write."""

import datetime

import numpy as np

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub._core.hooks import hooks
from arrayhub.array.casting import check_fit, checked, converted
from arrayhub.libraries.numpy import ndarray, refuse_endless, with_ndarrays
from arrayhub.runtimes.host import is_host_readable

# Types that NumPy converts to arrays itself.
_VALUES = (bool, int, float, complex, str, list, tuple, datetime.date, datetime.timedelta)


def assign(array, key, value):
    """Copy `value` into ``array[key]``. See ``USMArray.__setitem__``."""
    target = array[key]
    _check_target(target)
    elements = ndarray(target)
    since = tracing.started()
    cls = type(value)
    text = issubclass(cls, bytes) and elements.dtype.kind in "SUV"  # for other element types, bytes are a buffer
    if text or issubclass(cls, _VALUES):
        refuse_endless(value, "x[...] = value")
        hooks.check_values(value)  # before NumPy calls methods of the elements
        given = checked(with_ndarrays(value), elements.dtype, "x[...] = value")
    else:
        source = hooks.asarray(value)
        if source.memory is target.memory and target.ndim < array.ndim:
            _check_exchange(elements, ndarray(source))
        given = ndarray(transfer.to_host(source))
        check_fit(given, elements.dtype, "x[...] = value")
    try:
        elements[...] = converted(given, elements.dtype)
    except ValueError as error:  # NumPy's message does not name the call
        raise ValueError(f"x[...] = value: {error}") from error
    tracing.copied("x[...] = value", type(value).__name__, str(target.device), target.nbytes, since)


def _check_target(target):
    if not is_host_readable(target):
        raise BufferError(
            f"x[...] = value: the memory is on {target.device}, where only its own library writes; use"
            " arrayhub.as_cupy(x) or as_dpnp(x), or copy a whole array there with arrayhub.to_device(value, device)"
        )
    if not target.flags.writeable:
        raise ValueError("x[...] = value: the array is read-only; accepted: a writable array, such as x.copy()")


def _check_exchange(elements, source):
    """Refuse ``x[i] = x[j]`` for two parts of the same memory, because it is half of ``x[i], x[j] = x[j], x[i]``."""
    try:
        overlap = np.shares_memory(elements, source, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        overlap = False
    if elements.size and source.size and not overlap:
        raise TypeError(
            "x[i] = x[j]: the value is a view of the same memory, so exchanging two elements or rows by x[i], x[j]"
            " = x[j], x[i], as shuffle does, would write one of them twice; use x[j].copy() or x[j].item()"
        )
