"""Test sparse arrays on a GPU: exchange with cupyx.scipy.sparse and torch, and copies to and from the device."""

import numpy as np
import pytest
from sparse_arrays import addresses, matrix

import arrayhub as ah


@pytest.fixture(params=["csr", "csc", "coo"])
def on_gpu(cp, request):
    """Return a SciPy sparse array and its copy on the GPU."""
    given = matrix(request.param)
    return given, ah.assparse(given).to_device("cuda:0")


def test_values_and_indices_are_copied_to_the_device(on_gpu):
    given, x = on_gpu
    assert str(x.device) == "cuda:0" and x.format == given.format
    assert len({array.device for array in (x.data, *(x.coords or (x.indices, x.indptr)))}) == 1
    assert ah.as_scipy(x.to_host()).toarray().tolist() == given.toarray().tolist()
    assert x.to_device("cuda:0") is x


def test_cupy_shares_the_memory(cp, on_gpu):
    given, x = on_gpu
    made = ah.as_cupy(x)
    assert made.format == given.format
    assert made.data.data.ptr == x.data.ptr
    assert made.get().toarray().tolist() == given.toarray().tolist()
    assert addresses(ah.assparse(made)) == addresses(x)


def test_torch_shares_the_memory_of_cupy(cp, torch):
    given = matrix("csr")
    made = ah.as_cupy(ah.assparse(given).to_device("cuda:0"))
    tensor = ah.as_torch(made)
    assert tensor.layout is torch.sparse_csr and tensor.is_cuda
    assert tensor.values().data_ptr() == made.data.data.ptr
    assert tensor.crow_indices().data_ptr() == made.indptr.data.ptr
    assert tensor.to_dense().tolist() == given.toarray().tolist()
    back = ah.as_cupy(tensor)
    assert back.indices.data.ptr == made.indices.data.ptr
    assert (back @ cp.ones(8)).get().tolist() == (given @ np.ones(8)).tolist()


def test_conversion_of_coo_arrays_from_cupy_to_torch_copies_coordinates(cp, torch):
    made = ah.as_cupy(ah.assparse(matrix("coo")).to_device("cuda:0"))
    with pytest.raises(BufferError, match="copy=True"):
        ah.as_torch(made)
    tensor = ah.as_torch(made, copy=None)
    assert tensor.is_cuda and tensor._values().data_ptr() == made.data.data.ptr
    assert tensor.to_dense().tolist() == matrix().toarray().tolist()


def test_conversion_from_torch_to_cupy_copies_indices_to_int32(cp, torch):
    tensor = torch.eye(4, device="cuda").to_sparse_csr()
    with pytest.raises(BufferError, match="int64.*accepted: int32.*copy=True"):
        ah.as_cupy(tensor)
    made = ah.as_cupy(tensor, copy=None)
    assert made.data.data.ptr == tensor.values().data_ptr()
    assert made.get().toarray().tolist() == np.eye(4).tolist()


def test_error_for_scipy_suggests_the_host_as_device(cp, on_gpu):
    given, x = on_gpu
    with pytest.raises(BufferError, match="cuda:0.*device='cpu'"):
        ah.as_scipy(x)
    with pytest.raises(ah.Refusal, match="cuda:0") as error:
        ah.as_scipy(x, copy=None)
    assert error.value.call == "arrayhub.as_scipy(x, device='cpu')"
    assert ah.as_scipy(x, copy=True).toarray().tolist() == given.toarray().tolist()
    assert ah.to_host(ah.as_cupy(x)).device == "cpu"


def test_dense_copies_stay_on_the_device(torch, on_gpu):
    given, x = on_gpu
    dense = x.to_dense()
    assert str(dense.device) == "cuda:0"
    assert ah.as_torch(dense).tolist() == given.toarray().tolist()
    assert str(x.to_format("csc").device) == "cuda:0"
    assert x.canonical


def test_as_scipy_and_check_find_invalid_indices(cp):
    given = matrix("csr")
    made = ah.as_cupy(ah.assparse(given).to_device("cuda:0"))
    made.indices[2] = 99
    x = ah.assparse(made)
    with pytest.raises(ah.InterfaceError, match=r"indices\[2\] is 99; accepted: 0 to 7"):
        ah.as_scipy(x, copy=True)
    assert any("indices[2] is 99" in text for text in ah.check(x))


def test_like_and_placement_select_the_gpu(torch):
    given = matrix("csr")
    model = torch.eye(3, device="cuda").to_sparse_csr()
    found = ah.like(given, model)
    assert found.is_cuda and found.layout is torch.sparse_csr
    assert ah.like(found, given).toarray().tolist() == given.toarray().tolist()
    place = ah.placement(given, model)
    assert (place.library, str(place.device)) == ("torch", "cuda:0")


def test_torch_sparse_tensors_are_converted_to_jax(jax, torch):
    dense = torch.eye(4, device="cuda")
    made = ah.as_jax(dense.to_sparse_csr(), copy=None)
    assert np.asarray(made.todense()).tolist() == np.eye(4).tolist()


def test_torch_tensor_keeps_the_memory_alive(cp, torch):
    given = matrix("csr")
    tensor = ah.as_torch(ah.as_cupy(ah.assparse(given).to_device("cuda:0")))
    cp.get_default_memory_pool().free_all_blocks()
    cp.full(1 << 20, 7.0)
    assert tensor.to_dense().tolist() == given.toarray().tolist()
