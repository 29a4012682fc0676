"""Producers and consumers of CUDA memory for the conformance kit, in a module that a new interpreter can import."""

import arrayhub as ah
from arrayhub.testing import cuda


def make_cupy(array):
    import cupy

    return cupy.asarray(array)


def make_torch(array):
    import torch

    return torch.as_tensor(array.copy(), device="cuda")


def make_jax(array):
    import jax

    return jax.numpy.asarray(array)


def make_numba(array):
    from numba import cuda

    return cuda.to_device(array)


class Late:
    """A producer of cupy memory that is filled late on the default stream. The consumer's stream waits."""

    def __init__(self, array):
        import cupy

        filled = cupy.asarray(array)
        self.array = cupy.zeros_like(filled)
        cupy.cuda.Device().synchronize()
        cuda.delay(cuda.LEGACY)
        self.array[...] = filled

    @property
    def dtype(self):
        return self.array.dtype

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Unordered(Late):
    """A producer of memory as in `Late` that does not make the consumer's stream wait."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return super().__dlpack__(stream=-1, max_version=max_version, dl_device=dl_device, copy=copy)


class WithoutStream(Late):
    """A producer of memory as in `Late` that rejects every stream except None."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream is not None:
            raise RuntimeError("on purpose")
        return super().__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def read_cupy(obj):
    import cupy

    return cupy.from_dlpack(obj)


def read_torch(obj):
    import torch

    return torch.from_dlpack(obj)


def read_jax(obj):
    import jax

    return jax.numpy.from_dlpack(obj)


def read_unordered(obj):
    """Read CUDA memory without synchronization, which ``stream=-1`` requests."""
    if obj.__dlpack_device__()[0] != 2:
        raise BufferError("accepted: CUDA memory")
    return ah.asarray(obj.__dlpack__(stream=-1, max_version=(1, 1)))
