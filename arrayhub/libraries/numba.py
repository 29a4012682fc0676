"""numba: what its compiled functions take. That they take a USMArray itself is in numba_typing."""

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import PASSES_ON, first_line
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable

_NO_TYPES = "gG"  # NumPy's characters of longdouble and clongdouble
_NO_TYPES_ON_THE_HOST = "egG"  # and of float16, which numba computes with on GPUs only


def emit(array):
    """Return a host ndarray, or numba's device array for CUDA memory.

    Raises
    ------
    BufferError
        Memory on a device that numba has no arrays for, or elements that its compiled functions do not take.
    """
    on_host = is_host_readable(array)
    if not on_host and array.device.type != "cuda":
        raise BufferError(f"numba: it has no arrays on {array.device}; call arrayhub.to_host(x), or pass copy=True")
    if array.typenum >= FIRST_OWN_TYPENUM or _has_no_type(array.dtype, _NO_TYPES_ON_THE_HOST if on_host else _NO_TYPES):
        raise BufferError(
            f"numba: its compiled functions take no elements as those of {array!r}; convert them, as in"
            " arrayhub.asarray(x, dtype='f4'), or put their bytes in order by arrayhub.asarray(x).native()"
        )
    if on_host:
        return ndarray(array)
    from numba import cuda

    try:
        return cuda.as_cuda_array(array)
    except PASSES_ON:
        raise
    except Exception as error:  # the driver, or the part of numba for it, is not here
        raise BufferError(
            f"numba: it refuses this array on {array.device} ({first_line(error)}); call arrayhub.to_host(x)"
        ) from error


def _has_no_type(dtype, characters):
    """Whether numba has no type for the elements, or for a field of theirs. All other types of NumPy's it has."""
    if dtype.subdtype is not None:
        return _has_no_type(dtype.base, characters)
    if dtype.fields is not None:
        return any(_has_no_type(field, characters) for field, *_ in dtype.fields.values())
    return not dtype.isnative or dtype.char in characters or dtype.char == "V"
