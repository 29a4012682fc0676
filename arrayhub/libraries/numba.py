"""numba: what its compiled functions take. That they take a USMArray itself is in arrayhub/numba_typing."""

from arrayhub.libraries.host import is_host_readable, ndarray


def emit(array):
    """Return a host ndarray, or numba's device array for CUDA memory.

    Raises
    ------
    BufferError
        Memory on a device that numba has no arrays for.
    """
    if is_host_readable(array):
        return ndarray(array)
    if array.device.type != "cuda":
        raise BufferError(f"numba: it has no arrays on {array.device}; call arrayhub.to_host(x), or pass copy=True")
    from numba import cuda

    return cuda.as_cuda_array(array)
