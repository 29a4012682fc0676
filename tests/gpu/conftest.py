"""Fixtures of the GPU tests, and the marks `gpu`, `slow` and `skip`, the last on machines without a GPU."""

import ctypes
import os

import numpy as np
import pytest
from numpy_release import WITH_ROW_STACK

# Must be set before jax is imported. Otherwise, jax preallocates 75% of the GPU's memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _devices():
    """Return the number of CUDA devices without creating a context."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
    except OSError:
        return 0
    return count.value


DEVICES = _devices()


def pytest_collection_modifyitems(items):
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.slow)
            if DEVICES == 0:
                item.add_marker(pytest.mark.skip(reason="the CUDA driver is missing or finds no device"))


@pytest.fixture
def cp():
    return pytest.importorskip("cupy")


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch is built without CUDA, or does not find a GPU")
    return torch


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this jax lacks a GPU backend")
    pytest.importorskip("cupy").cuda.Device(0).use()  # initializing jax makes the last device current
    return jax


@pytest.fixture
def kernels(cuda):
    """Skip the test if numba cannot compile kernels, as with some pairs of numba-cuda and NumPy releases."""
    exec(WITH_ROW_STACK, {})

    @cuda.jit
    def nothing(out):
        out[0] = 1

    try:
        nothing[1, 1](cuda.to_device(np.zeros(1)))
    except Exception as error:
        pytest.skip(f"numba-cuda cannot compile a kernel here: {type(error).__name__}: {error}")


@pytest.fixture
def cuda():
    """Return numba.cuda. Skip the test if numba does not find a GPU."""
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba does not find a GPU")
    return cuda


@pytest.fixture(scope="session")
def spin():
    """Return a function that queues a kernel of about 30 ms on cupy's current stream, for race-condition tests."""
    cupy = pytest.importorskip("cupy")
    kernel = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n); }', "spin"
    )

    def queue(cycles=50_000_000):
        kernel((1,), (1,), (cycles,))

    queue(1)  # compile the kernel here, because compilation would change the timing of a race
    cupy.cuda.Device().synchronize()
    return queue


class Described:
    """A producer whose only protocol is the CUDA interface dict."""

    def __init__(self, owner, **keys):
        self.owner = owner
        self.__cuda_array_interface__ = keys


@pytest.fixture
def describe():
    """Return a function that creates a producer from a cupy array, with changed keys in the interface dict."""

    def make(x, **changes):
        keys = dict(x.__cuda_array_interface__)
        keys.pop("descr", None)
        keys.update(changes)
        return Described(x, **keys)

    return make
