"""numba: export as an array that compiled functions accept. numba_typing defines the numba type of USMArray."""

from arrayhub._core cimport dtypes
from arrayhub._core.descriptor cimport Descriptor, get_dtype, host_readable, kDLCUDA
from arrayhub._core.runtime cimport device_name
from arrayhub.libraries.known cimport library
from arrayhub.runtimes.cuda cimport has_device

from arrayhub._core.errors import Refusal, first_line
from arrayhub.libraries.numpy import ndarray

_NO_TYPES = "gG"  # NumPy's characters for longdouble and clongdouble
_NO_TYPES_ON_THE_HOST = "egG"  # also float16, which numba supports on GPUs only


cdef object emit(Descriptor a, bint copied, bint allow_readonly):
    """Export an array as a host ndarray, or as numba's device array for CUDA memory."""
    check_memory(a, allow_readonly)
    check_elements(a)
    if host_readable(a):
        return ndarray(a)
    from numba import cuda

    try:
        if len(cuda.gpus) == 1:      # selecting the device takes several microseconds
            return cuda.as_cuda_array(a)
        with cuda.gpus[a.device_.device_id]:      # numba's arrays belong to the current device
            return cuda.as_cuda_array(a)
    except Exception as error:      # the CUDA driver or numba's support for it is missing
        raise Refusal("numba", f"as_cuda_array fails for memory on {device_name(a)} ({first_line(error)})") from error


cdef int check_memory(Descriptor a, bint allow_readonly) except -1:
    """Raise Refusal for memory that neither the host nor CUDA can read."""
    if not host_readable(a) and a.device_.device_type != kDLCUDA:
        raise Refusal("numba", f"the memory is on {device_name(a)}, which numba cannot read", call="arrayhub.to_host(x)")
    return 0


cdef int check_elements(Descriptor a) except -1:
    """Raise Refusal for elements that compiled functions do not support, and for CUDA memory without a CUDA device."""
    cdef bint on_host = a.device_.device_type != kDLCUDA
    if not on_host and not has_device():
        raise Refusal("numba", f"the memory is on {device_name(a)}, and no CUDA driver or device was found")
    dtype = get_dtype(a)      # raises TypeError for a type that NumPy does not have
    if a.typenum_ >= dtypes.FIRST_OWN_TYPENUM or lacks_type(dtype, _NO_TYPES_ON_THE_HOST if on_host else _NO_TYPES):
        raise Refusal("numba", f"compiled functions do not support the elements of {a!r}")
    return 0


cdef bint lacks_type(object dtype, str characters) except -1:
    """Return whether numba lacks a type for the elements or for a field."""
    if dtype.subdtype is not None:
        return lacks_type(dtype.base, characters)
    if dtype.fields is not None:
        return any([lacks_type(field, characters) for field, *_ in dtype.fields.values()])
    return not dtype.isnative or dtype.char in characters or dtype.char == "V"


library("numba").set_exporter(emit, check_memory, check_elements)
