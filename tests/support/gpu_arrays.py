"""Arrays for the GPU copy tests."""

import numpy as np


def sample(dtype):
    """Return a (4, 6) array of random values of the given dtype."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.integers(0, 2, (4, 6)).astype(bool)
    return rng.integers(0, 100, 24 * dtype.itemsize, "u1").view(dtype).reshape(4, 6)


def same(x, y):
    """Return whether a USMArray in host memory and an ndarray have equal shapes, types and bytes."""
    x = np.asarray(x)
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


def pinned_like(cp, array):
    """Return a C-contiguous ndarray in pinned memory with the shape and type of `array`, and arbitrary elements."""
    memory = cp.cuda.alloc_pinned_memory(max(array.nbytes, 1))
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
