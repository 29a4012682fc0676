"""Test ``empty(like=)`` with CUDA memory from the allocators of torch and cupy."""

import gc

import numpy as np
import pytest
from children import python
from creation_calls import CREATE, VALUES

import arrayhub
from arrayhub import asarray


@pytest.mark.parametrize("call", CREATE)
@pytest.mark.parametrize("shape", [(3,), (1000, 333), (5 << 20,), (0,)])
def test_memory_is_from_torchs_caching_allocator(cp, torch, call, shape):
    model = torch.zeros(3, device="cuda")
    CREATE[call](shape, like=model)
    gc.collect()
    before = torch.cuda.memory_allocated()
    theirs = torch.empty(shape, device="cuda")
    grown = torch.cuda.memory_allocated() - before
    del theirs
    x = CREATE[call](shape, like=model)
    assert torch.cuda.memory_allocated() - before == grown or shape == (0,)
    assert x.device == asarray(model).device and x.dtype == "f4" and x.shape == shape and x.ptr % 64 == 0
    if call in VALUES:
        assert (np.asarray(x.to_host()) == VALUES[call]).all()
        assert (arrayhub.as_torch(x).cpu() == VALUES[call]).all()
    view = x[...]
    del x
    assert torch.cuda.memory_allocated() - before >= (grown if shape != (0,) else 0)
    del view
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_arrays_over_tensors_can_be_models(cp, torch):
    t = torch.zeros(1 << 20, device="cuda")
    for model in (asarray(t), asarray(t)[5:], arrayhub.empty(3, like=t)):
        before = torch.cuda.memory_allocated()
        x = arrayhub.empty(1 << 20, "u1", like=model)
        assert torch.cuda.memory_allocated() - before == 1 << 20
        del x


def test_memory_of_torch_is_padded_and_aligned(cp, torch):
    t = torch.zeros(3, device="cuda")
    for alignment, index in ((64, (0, 0)), (256, (0, 1)), (4096, (0, 3))):
        x = arrayhub.empty((10, 12), "f4", like=t, alignment=alignment, aligned_index=index)
        assert x[0, index[1] :].ptr % alignment == 0
        x[...] = 5
        assert (np.asarray(x.to_host()) == 5).all()


def test_memory_is_allocated_and_freed_on_the_stream_of_the_model(cp, torch):
    """After the array is freed, torch reuses its memory for an allocation on the same stream."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model = asarray(torch.zeros(3, device="cuda"))
    x = arrayhub.empty(1 << 20, "u1", like=model)  # torch's default stream is current
    assert x.__cuda_array_interface__["stream"] == side.cuda_stream
    address = x.ptr
    del x
    gc.collect()
    with torch.cuda.stream(side):
        assert torch.empty(1 << 20, dtype=torch.uint8, device="cuda").data_ptr() == address
    on_current = arrayhub.empty(1 << 20, "u1", like=torch.zeros(3, device="cuda"))
    assert on_current.__cuda_array_interface__["stream"] in (1, torch.cuda.current_stream().cuda_stream)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_too_large_allocation_raises_memory_error(cp, torch):
    with pytest.raises(MemoryError, match="torch: cannot allocate .* bytes on cuda:0"):
        arrayhub.empty(1 << 45, "u1", like=torch.zeros(3, device="cuda"))
    assert arrayhub.empty(3, like=torch.zeros(3, device="cuda")).size == 3


@pytest.mark.parametrize("call", CREATE)
def test_memory_is_from_the_current_allocator_of_cupy(cp, call):
    model, sizes = cp.zeros(3, "f4"), []
    pool = cp.cuda.MemoryPool()

    def allocate(nbytes):
        sizes.append(nbytes)
        return pool.malloc(nbytes)

    with cp.cuda.using_allocator(allocate):
        x = CREATE[call]((100, 7), like=model)
    assert any(2800 <= nbytes < 4096 for nbytes in sizes), sizes
    assert x.dtype == "f4" and x.device == asarray(model).device
    if call in VALUES:
        assert (arrayhub.as_cupy(x).get() == VALUES[call]).all()
    used = pool.used_bytes()
    del x
    gc.collect()
    assert pool.used_bytes() < used


@pytest.mark.parametrize("memory", ["cuda_managed", "cuda_host"])
def test_new_array_has_the_memory_kind_of_the_model(cp, memory):
    model = arrayhub.empty(3, memory=memory)
    x = arrayhub.ones((3, 4), like=model)
    assert x.device.type == memory and (np.asarray(x.to_host()) == 1).all()


def test_jax_array_can_be_a_model(cp, jax):
    x = arrayhub.ones((3, 4), like=jax.numpy.zeros(3))
    assert x.device.type == "cuda" and (arrayhub.as_cupy(x).get() == 1).all()


def test_memory_of_torch_does_not_require_cupy(torch):
    """Allocation, fill, assignment and copies work although cupy cannot be imported."""
    python("""
        import sys
        sys.modules["cupy"] = None
        import numpy as np, torch, arrayhub
        t = torch.zeros(3, device="cuda")
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        x = arrayhub.empty((1 << 10, 1 << 10), "f4", like=t)
        assert torch.cuda.memory_allocated() - before == 4 << 20
        for value, made in ((0, arrayhub.zeros), (1, arrayhub.ones)):
            y = made((100, 70), like=t)
            assert (arrayhub.as_torch(y) == value).all()
        x[...] = 7
        assert (arrayhub.as_torch(x) == 7).all()
        values = np.arange(1 << 20, dtype="f4").reshape(1 << 10, 1 << 10)
        for given in (values, values.T, values[::-1], torch.from_numpy(values).cuda()):
            x[...] = given
            expected = given.cpu().numpy() if isinstance(given, torch.Tensor) else given
            assert (x.to_host().to_numpy() == expected).all()
        x[3:5] = values[:2]
        assert (arrayhub.as_torch(x)[3:5].cpu().numpy() == values[:2]).all()
    """)
