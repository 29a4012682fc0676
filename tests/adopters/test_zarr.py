"""Test a zarr buffer prototype that allocates USMArrays, into which zarr decodes chunks."""

import numpy as np
import pytest

import arrayhub as ah

zarr = pytest.importorskip("zarr")
from zarr.core.buffer import BufferPrototype, cpu  # noqa: E402
from zarr.testing.buffer import StoreExpectingTestBuffer, TestBuffer  # noqa: E402

pytestmark = pytest.mark.slow


def prototype_of(memory, buffer=TestBuffer):
    """Return a prototype that allocates arrays with ``arrayhub.empty(memory=memory)`` in host-readable memory."""

    class USMBuffer(cpu.NDBuffer):
        @classmethod
        def create(cls, *, shape, dtype, order="C", fill_value=None):
            buffer = cls.empty(shape, dtype, order)
            if fill_value is not None:
                buffer.fill(fill_value)
            return buffer

        @classmethod
        def empty(cls, shape, dtype, order="C"):
            cls.arrays.append(ah.empty(tuple(shape), dtype, layout=order, memory=memory))
            return cls(ah.as_numpy(cls.arrays[-1]))

        def as_ndarray_like(self):
            return self._data

    USMBuffer.arrays = []
    return BufferPrototype(buffer=buffer, nd_buffer=USMBuffer)


@pytest.fixture(params=["cpu", "usm_host", "usm_shared"])
def prototype(request):
    if request.param != "cpu":
        dpctl = pytest.importorskip("dpctl")
        if not dpctl.get_num_devices():
            pytest.skip("no SYCL device")
    return prototype_of(request.param)


VALUES = np.arange(100, dtype="f4").reshape(10, 10)


@pytest.fixture
def array():
    """Return a zarr array whose store asserts that each chunk is an instance of `TestBuffer`."""
    return zarr.create_array(StoreExpectingTestBuffer(), shape=VALUES.shape, chunks=(4, 3), dtype="f4", fill_value=-1)


@pytest.mark.parametrize("selection", [np.s_[:, :], np.s_[2:7, 1:9], np.s_[::3, 5], np.s_[4:4]], ids=str)
def test_selections_are_read_into_memory_of_the_prototype(array, prototype, selection):
    array.set_basic_selection(np.s_[:, :], VALUES, prototype=prototype)
    result = array.get_basic_selection(selection, prototype=prototype)
    assert np.array_equal(result, VALUES[selection])
    address = ah.asarray(result).ptr
    owners = [x for x in prototype.nd_buffer.arrays if x.ptr <= address < x.ptr + max(1, x.nbytes)]
    assert owners or result.size == 0
    assert all(x.device.type == owners[0].device.type for x in owners)


def test_unwritten_chunks_have_the_fill_value(array, prototype):
    array.set_basic_selection(np.s_[:4, :3], VALUES[:4, :3], prototype=prototype)
    result = array.get_basic_selection(np.s_[:5, :3], prototype=prototype)
    assert np.array_equal(result[:4], VALUES[:4, :3]) and (result[4] == -1).all()


def test_results_can_be_in_shared_usm(array):
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")
    prototype = prototype_of("usm_shared")
    array.set_basic_selection(np.s_[:, :], VALUES, prototype=prototype)
    result = array.get_basic_selection(np.s_[:, :], prototype=prototype)
    (x,) = [x for x in prototype.nd_buffer.arrays if x.ptr == result.ctypes.data]
    assert x.usm_type == "shared" and np.array_equal(ah.as_numpy(ah.as_dpnp(x)), VALUES)
