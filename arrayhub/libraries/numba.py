"""numba: export as an array that compiled functions accept. numba_typing defines the numba type of USMArray."""

from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, is_native
from arrayhub._core.errors import PASSES_ON, first_line, unreadable, wider_dtype
from arrayhub.libraries.numpy import ndarray
from arrayhub.runtimes.host import is_host_readable

_NO_TYPES = "gG"  # NumPy's characters for longdouble and clongdouble
_NO_TYPES_ON_THE_HOST = "egG"  # also float16, which numba supports on GPUs only


def emit(array):
    """Export an array as a host ndarray, or as numba's device array for CUDA memory.

    Raises
    ------
    BufferError
        numba does not support the device, or its compiled functions do not support the elements.
    TypeError
        NumPy does not have a dtype for the elements.
    """
    on_host = is_host_readable(array)
    if not on_host and array.device.type != "cuda":
        raise BufferError(unreadable("numba", array.device, "numba", "call arrayhub.to_host(x), or pass copy=True"))
    dtype = array.dtype  # raises TypeError for a type that NumPy does not have
    if array.typenum >= FIRST_OWN_TYPENUM or _has_no_type(dtype, _NO_TYPES_ON_THE_HOST if on_host else _NO_TYPES):
        raise BufferError(f"numba: compiled functions do not support the elements of {array!r}; {_instead_of(array)}")
    if on_host:
        return ndarray(array)
    from numba import cuda

    try:
        if len(cuda.gpus) == 1:  # selecting the device takes several microseconds
            return cuda.as_cuda_array(array)
        with cuda.gpus[array.device.id]:  # numba's arrays belong to the current device
            return cuda.as_cuda_array(array)
    except PASSES_ON:
        raise
    except Exception as error:  # the CUDA driver or numba's support for it is missing
        raise BufferError(
            f"numba: as_cuda_array fails for memory on {array.device} ({first_line(error)}); call arrayhub.to_host(x)"
        ) from error


def _instead_of(array):
    """Return the advice for elements that numba does not support."""
    if array.typenum < FIRST_OWN_TYPENUM and not is_native(array.dtype):
        return "pass copy=True, which converts them into native byte order"
    if array.dtype.char in "gG":
        name = {"g": "float64", "G": "complex128"}[array.dtype.char]
        return f"call arrayhub.asarray(x, dtype={name!r}) first, which rounds"
    wider = wider_dtype(array.dtype)
    if wider is not None:
        return f"call arrayhub.asarray(x, dtype={wider!r}) first"
    return "call arrayhub.as_numpy(x, copy=None), or convert the array to a supported dtype first"


def _has_no_type(dtype, characters):
    """Return whether numba lacks a type for the elements or for a field."""
    if dtype.subdtype is not None:
        return _has_no_type(dtype.base, characters)
    if dtype.fields is not None:
        return any(_has_no_type(field, characters) for field, *_ in dtype.fields.values())
    return not dtype.isnative or dtype.char in characters or dtype.char == "V"
