"""``x[key] = value`` and ``to_device(out=)``: explicit copies into existing memory, with a cast on the host."""

import datetime
from time import perf_counter

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.errors import ValueRefusal
from arrayhub._core.hooks import hooks
from arrayhub.array.casting import as_ndarray, cast_checked, check_fit, validate_value
from arrayhub.libraries.numpy import ndarray, refuse_endless
from arrayhub.transfer.host_copies import have_one_type

# Types of values that NumPy converts to arrays without using a protocol.
_VALUES = (bytes, bool, int, float, complex, str, list, tuple, datetime.date, datetime.timedelta)


def assign(array, key, value):
    """Copy `value` into ``array[key]``. See ``USMArray.__setitem__``."""
    target = array if key is Ellipsis else array[key]
    if not target.flags.writeable:
        raise ValueRefusal("x[...] = value", "the array is read-only", "a writable array, such as x.copy()")
    cls = type(value)
    # Unless the elements are text or raw data, bytes are imported as a buffer.
    if issubclass(cls, _VALUES) and (target.dtype.kind in "SUV" or not issubclass(cls, bytes)):
        refuse_endless(value, "x[...] = value")
        value = hooks.functions.import_elements(value)  # first, because NumPy's conversion calls their methods
        _store(validate_value(value, target.dtype, "x[...] = value"), target)
        return
    source = hooks.functions.asarray(value, copy=None)
    if not is_host_readable(source) and is_host_readable(target) and source.size < target.size:
        source = transfer.to_host(source)  # elements that are repeated leave their device once
    if have_one_type(source, target):
        _copy(source, target)
        return
    given = ndarray(transfer.to_host(source))
    check_fit(given, target.dtype, "x[...] = value")
    _store(given, target)


def copy_into(source, out, device, *, copy=None, stream=None, progress=None):
    """Copy `source` to `out`, an array on `device`. Cast on the host if the types differ. See `arrayhub.to_device`."""
    if source.shape == out.shape and not have_one_type(source, out):
        shared = stream if source.device.type == out.device.type else None
        source = cast_checked(transfer.to_host(source, stream=shared), out.dtype, "to_device: out")
    transfer.into(source, out, device, copy=copy, stream=stream, progress=progress)


def _store(given, target):
    """Copy a result of `validate_value` to `target`."""
    on_host = is_host_readable(target)
    try:
        given = as_ndarray(given, target.dtype)
        if on_host:
            since = perf_counter()
            ndarray(target)[...] = given
            if tracing.open_traces:
                tracing.report("copy", "assign", "cpu", str(target.device), target.nbytes, perf_counter() - since)
    except ValueError as error:  # NumPy's message does not name the call
        raise ValueRefusal("x[...] = value", str(error)) from error
    if not on_host:
        _copy(hooks.functions.asarray(given.astype(target.dtype, copy=False)), target)


def _copy(source, target):
    """Copy an array of the same element type to `target`."""
    try:
        transfer.assign(source, target)
    except ValueError as error:
        raise ValueRefusal("x[...] = value", str(error)) from error
