"""``empty(like=)`` and related functions allocate with the library of the model, on the device of the model."""

import gc
import tracemalloc

import arrayhub as ah

# isort: split
import numpy as np
import pytest
from creation_calls import CREATE, VALUES


@pytest.fixture(params=["numpy", "torch", "USMArray"])
def host_model(request):
    if request.param == "torch":
        return pytest.importorskip("torch").zeros(3)
    model = np.zeros(3, "f4")
    return model if request.param == "numpy" else ah.asarray(model)


@pytest.mark.parametrize("call", CREATE)
def test_host_memory_is_allocated_by_numpy(call, host_model):
    x = CREATE[call]((4, 5), like=host_model)
    assert x.dtype == "f4" and x.device == "cpu" and x.shape == (4, 5)
    assert isinstance(x.base, np.ndarray)
    assert x.ptr % 64 == 0 and x.memory.nbytes == 80
    if call in VALUES:
        assert (np.asarray(x) == VALUES[call]).all()


def test_tracemalloc_counts_the_memory():
    """tracemalloc includes the memory until the last view is freed, because NumPy allocates it."""
    other = 1 << 17  # bytes that other threads of the process may allocate
    model = np.zeros(1)
    ah.empty(1, like=model)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        view = ah.empty(1 << 20, "u1", like=model)[5:]
        assert 1 << 20 <= tracemalloc.get_traced_memory()[0] - before < (1 << 20) + other
        del view
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < other
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("options", [{"memory": "cpu"}, {"device": "cpu"}])
@pytest.mark.parametrize("call", CREATE)
def test_memory_and_device_cannot_be_combined_with_like(call, options):
    with pytest.raises(TypeError, match=f"{next(iter(options))}: 'cpu' is given with like="):
        CREATE[call](3, like=np.zeros(3), **options)


def test_the_type_of_the_model_is_the_default():
    model = np.zeros(3, "i2")
    assert ah.empty(3, like=model).dtype == "i2"
    assert ah.empty(3, "f8", like=model).dtype == "f8"
    assert ah.empty(3).dtype == ah.ones(3).dtype == ah.full(3, 1).dtype == "f8"
    with pytest.raises(ValueError, match="fill_value"):
        ah.full(3, 1.5, like=model)


def test_layout_and_labels_of_the_model_are_not_used_with_a_shape():
    x = ah.zeros((10, 12), like=np.zeros((3, 4), order="F"), alignment=64, halo=(1, 0), dims=("a", "b"))
    assert x.dims == ("a", "b") and x[1:].ptr % 8 == 0 and x.byte_strides == (128, 8)
    assert x.memory.nbytes >= x.nbytes
    assert isinstance(ah.from_array([1.0, 2.0], like=np.zeros(1)).base, np.ndarray)


def test_model_that_is_not_an_array_is_rejected():
    with pytest.raises(TypeError, match="asarray"):
        ah.empty(3, like=object())


# ---------------------------------------------------------------------------------------------------------------- USM


@pytest.mark.parametrize("call", CREATE)
@pytest.mark.parametrize("kind", ["device", "shared", "host"])
def test_usm_is_allocated_in_the_context_and_on_the_queue_of_the_model(sycl, call, kind):
    dpctl = pytest.importorskip("dpctl")
    dpm = pytest.importorskip("dpctl.memory")
    device = dpctl.SyclDevice()
    queue = dpctl.SyclQueue(dpctl.SyclContext(device), device, property="in_order")  # not the default context
    cls = {"device": dpm.MemoryUSMDevice, "shared": dpm.MemoryUSMShared, "host": dpm.MemoryUSMHost}[kind]
    model = cls(64, queue=queue)
    for given in (model, ah.asarray(model)):
        x = CREATE[call]((4, 5), "i4", like=given)
        assert x.usm_type == kind and x.base.sycl_queue == queue and x.base.sycl_context == queue.sycl_context
        if call in VALUES:
            assert (np.asarray(x.to_host()) == VALUES[call]).all()


def test_dpnp_arrays_are_accepted_as_models(sycl):
    dpnp = pytest.importorskip("dpnp")
    model = dpnp.zeros(3, dtype="f4", usm_type="shared")
    x = ah.ones((2, 3), like=model)
    assert x.usm_type == "shared" and x.dtype == "f4" and x.base.sycl_queue == model.sycl_queue


@pytest.mark.parametrize("properties", [(), ("in_order",)], ids=["out of order", "in order"])
def test_memory_is_freed_after_the_pending_work(sycl, properties):
    """Delete memory that a queued kernel will read, and overwrite new memory, which could be at the same address."""
    dpnp = pytest.importorskip("dpnp")
    dpctl = pytest.importorskip("dpctl")
    queue = dpctl.SyclQueue(property=list(properties))
    factor = dpnp.ones((1000, 1000), dtype="f4", sycl_queue=queue)
    pending = 0
    for value in range(8):
        x = ah.full(1 << 18, float(value), like=factor)
        slow = dpnp.matmul(factor, factor)
        result = ah.as_dpnp(x) + slow[0, 0]
        event = queue.submit_barrier()
        del x
        pending += event.execution_status != dpctl.event_status_type.complete
        other = ah.full(1 << 18, -1.0, like=factor)
        assert (dpnp.asnumpy(result) == value + 1000).all()
        del other
    assert pending >= 1  # at least once, the kernel had not run when its operand was deleted


# -------------------------------------------------------------------------------------------------------------- torch


def test_torch_allocates_with_its_own_allocator():
    """`empty(like=)` uses torch's allocator only for CUDA models. This test calls it directly, for host memory."""
    torch = pytest.importorskip("torch")
    from arrayhub.libraries import torch as library

    model = ah.asarray(torch.zeros(3))
    x = library.allocate(100, model)
    assert x.shape == (100,) and x.dtype == "u1" and x.access == "readwrite" and isinstance(x.base, torch.Tensor)
    x.to_numpy()[...] = 1
    with pytest.raises(MemoryError, match="torch: cannot allocate .* bytes on cpu"):
        library.allocate(1 << 60, model)
