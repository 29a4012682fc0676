"""``x[key] = value``: an explicit copy into the elements of an array that the host can write."""

import numpy as np

from arrayhub import transfer
from arrayhub._core import tracing
from arrayhub._core.errors import show
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable

# What NumPy makes an array of by itself, and checks value by value against the type of the elements.
_VALUES = (bool, int, float, complex, str, bytes, list, tuple)
# A Python value may go into elements of its own kind or a later one: 1 into floats, but not 1.5 into integers.
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def assign(array, key, value, way_in, check_values):
    """Copy `value` into ``array[key]``; `way_in` makes an array of a foreign one, and `check_values` refuses what a
    sequence holds that is none. See ``USMArray.__setitem__``."""
    target = array[key]
    _check_target(target)
    elements = ndarray(target)
    since = tracing.started()
    if isinstance(value, _VALUES):
        _put_values(elements, value, check_values)
    else:
        _put_array(elements, target, way_in(value))
    tracing.copied("x[...] = value", type(value).__name__, str(target.device), target.nbytes, since)


def _check_target(target):
    if not is_host_readable(target):
        raise BufferError(
            f"x[...] = value: the memory is on {target.device}, which its own library writes; take arrayhub.as_cupy(x)"
            " or as_dpnp(x), or copy a whole array there by arrayhub.to_device(value, device)"
        )
    if not target.flags.writeable:
        raise ValueError("x[...] = value: the array is read-only; x.copy() can be written")


def _put_values(elements, value, check_values):
    given, own = np.asarray(value).dtype.kind, elements.dtype.kind
    check_values(value)
    if given in _RANKS and own in _RANKS and _RANKS[given] > _RANKS[own]:
        raise TypeError(
            f"x[...] = value: {show(value)} among elements of {elements.dtype!r} would lose what it is; convert"
            " it first"
        )
    elements[...] = value


def _put_array(elements, target, source):
    if target.ndim == 0 and source.ndim == 0 and source.memory is target.memory:
        raise TypeError(
            "x[i] = x[j]: the value is a view of the same memory, so that exchanging two elements by x[i], x[j] ="
            " x[j], x[i] would write one of them twice; take x[j].copy() or x[j].item()"
        )
    given = ndarray(transfer.to_host(source))
    if elements.dtype.kind in _RANKS and given.dtype.kind in _RANKS:
        np.copyto(elements, given, casting="same_kind")
    else:
        elements[...] = given
