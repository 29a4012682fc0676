"""numba: export as an array that compiled functions accept. numba_typing defines the numba type of USMArray."""

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM
from arrayhub._core.errors import Refusal, first_line
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.host import is_host_readable

_NO_TYPES = "gG"  # NumPy's characters for longdouble and clongdouble
_NO_TYPES_ON_THE_HOST = "egG"  # also float16, which numba supports on GPUs only


def emit(array):
    """Export an array as a host ndarray, or as numba's device array for CUDA memory."""
    check(array, False)
    if is_host_readable(array):
        return ndarray(array)
    from numba import cuda

    try:
        if len(cuda.gpus) == 1:  # selecting the device takes several microseconds
            return cuda.as_cuda_array(array)
        with cuda.gpus[array.device.id]:  # numba's arrays belong to the current device
            return cuda.as_cuda_array(array)
    except Exception as error:  # the CUDA driver or numba's support for it is missing
        raise Refusal("numba", f"as_cuda_array fails for memory on {array.device} ({first_line(error)})") from error


def check(array, copied):
    """Raise the error of `as_numba` for an array, or for its copy, without converting it."""
    on_host = array.device.type != "cuda" if copied else is_host_readable(array)
    if not copied and not on_host and array.device.type != "cuda":
        raise Refusal("numba", f"the memory is on {array.device}, which numba cannot read", call="arrayhub.to_host(x)")
    if not on_host and not has_device():
        raise Refusal("numba", f"the memory is on {array.device}, and no CUDA driver or device was found")
    dtype = array.dtype  # raises TypeError for a type that NumPy does not have
    if array.typenum >= FIRST_OWN_TYPENUM or _has_no_type(dtype, _NO_TYPES_ON_THE_HOST if on_host else _NO_TYPES):
        raise Refusal("numba", f"compiled functions do not support the elements of {array!r}")


def _has_no_type(dtype, characters):
    """Return whether numba lacks a type for the elements or for a field."""
    if dtype.subdtype is not None:
        return _has_no_type(dtype.base, characters)
    if dtype.fields is not None:
        return any(_has_no_type(field, characters) for field, *_ in dtype.fields.values())
    return not dtype.isnative or dtype.char in characters or dtype.char == "V"
