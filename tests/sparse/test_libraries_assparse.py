"""assparse imports sparse arrays of SciPy and torch without a copy, and the exports share the memory."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse
import torch
from sparse_arrays import FORMATS, addresses, matrix

import arrayhub as ah


@pytest.mark.parametrize("format", FORMATS)
def test_scipy_arrays_are_imported_on_their_memory(format):
    given = matrix(format)
    x = ah.assparse(given)
    parts = (given.data, *given.coords) if format == "coo" else (given.data, given.indices, given.indptr)
    assert addresses(x) == [part.ctypes.data for part in parts]
    assert (x.format, x.shape, x.dtype, str(x.device), x.nnz) == (format, (6, 8), np.float64, "cpu", given.nnz)
    assert (x.ndim, x.batch_ndim, x.dense_ndim) == (2, 0, 0)


def test_tensors_that_are_not_coalesced_keep_their_duplicates():
    tensor = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
    x = ah.assparse(tensor)
    assert x.nnz == 2 and not x.canonical
    assert x.to_dense().tolist() == [[0, 3], [0, 0]]
    assert ah.as_scipy(x).toarray().tolist() == [[0, 3], [0, 0]]
    assert not ah.as_torch(x).is_coalesced()


def test_canonical_tensor_is_exported_as_coalesced():
    tensor = torch.eye(3).to_sparse_coo()
    back = ah.as_torch(ah.assparse(tensor))
    assert back.is_coalesced()
    assert back.indices().data_ptr() == tensor.indices().data_ptr()


def test_as_torch_and_convert_accept_scipy_arrays_and_sparse_tensors():
    given, tensor = matrix(), torch.eye(3).to_sparse_csr()
    for made in (ah.as_torch(given), ah.as_torch(given, copy=None), ah.convert(given, "torch")):
        assert made.layout is torch.sparse_csr and made.values().data_ptr() == given.data.ctypes.data
    assert ah.as_torch(tensor).values().data_ptr() == tensor.values().data_ptr()
    assert ah.as_torch(tensor, copy=True).values().data_ptr() != tensor.values().data_ptr()
    assert ah.convert(tensor, "scipy").format == "csr"
    assert ah.convert(tensor, scipy.sparse).format == "csr"


@pytest.mark.parametrize("format", FORMATS)
def test_errors_of_asarray_suggest_assparse(format):
    with pytest.raises(TypeError, match=r"arrayhub\.assparse\(x\)"):
        ah.asarray(matrix(format))
    with pytest.raises(BufferError, match=r"arrayhub\.assparse\(x\)"):
        ah.asarray(getattr(torch.eye(4), f"to_sparse_{format}")(*[(2, 2)] * (format == "bsr")))


def test_copy_true_copies_each_part():
    given = matrix()
    x = ah.assparse(given, copy=True)
    assert set(addresses(x)).isdisjoint(addresses(ah.assparse(given)))
    assert x.to_dense().tolist() == given.toarray().tolist()
    back = ah.as_scipy(given, copy=True)
    assert not np.shares_memory(back.data, given.data) and not np.shares_memory(back.indices, given.indices)
    assert ah.assparse(x) is x


@pytest.mark.parametrize("obj", [np.ones(3), [1, 2], "x", None, torch.ones(3)])
def test_other_objects_are_rejected(obj):
    with pytest.raises(TypeError, match=r"which is not sparse; accepted:.*arrayhub\.asarray\(x\)"):
        ah.assparse(obj)


@pytest.mark.parametrize("column", [False, True])
def test_errors_for_sparse_columns_of_pandas_suggest_a_call_that_works(column):
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame({"a": pandas.arrays.SparseArray([0, 1, 2])})
    x = x["a"] if column else x
    with pytest.raises(TypeError, match="which is not sparse") as raised:
        ah.assparse(x)
    assert eval(raised.value.call, {"arrayhub": ah, "x": x}).to_dense().tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("library", ["arrow", "polars", "pandas", "awkward", "numpy", "numba", "dpnp"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.coo_matrix, lambda x: ah.assparse(matrix())])
def test_errors_of_libraries_without_sparse_arrays_suggest_a_call_that_works(library, make):
    pytest.importorskip({"arrow": "pyarrow"}.get(library, library))
    x = make(matrix().toarray())
    with pytest.raises(BufferError, match=rf"^{library}: .*assparse\(x\)\.to_dense\(\)") as raised:
        getattr(ah, f"as_{library}")(x)
    made = eval(raised.value.call, {"arrayhub": ah, "x": x})
    rows = ah.asnested(made).to_dense() if library in ("arrow", "polars", "awkward") else ah.asarray(made, copy=True)
    assert rows.to_host().tolist() == matrix().toarray().tolist()


@pytest.mark.parametrize("format", ["dia", "lil", "dok"])
def test_errors_for_other_formats_suggest_a_call(format):
    given = matrix(format)
    with pytest.raises(ah.Refusal) as raised:
        ah.assparse(given)
    assert raised.value.call == "arrayhub.assparse(x.tocoo())"
    assert ah.assparse(given.tocoo()).to_dense().tolist() == given.toarray().tolist()


def test_error_for_tensors_that_require_grad_suggests_detach():
    tensor = torch.eye(3).to_sparse_csr().requires_grad_()
    with pytest.raises(BufferError, match=r"x\.detach\(\)"):
        ah.assparse(tensor)
    assert ah.assparse(tensor.detach()).nnz == 3


def test_memory_lives_as_long_as_the_sparse_array():
    given = matrix()
    dense, gone = given.toarray(), weakref.ref(given)
    x = ah.assparse(given)
    del given
    gc.collect()
    assert gone() is None
    assert ah.as_torch(x).to_dense().tolist() == dense.tolist()


CUBE = torch.arange(24.0).reshape(2, 3, 4)
# Arrays of three dimensions: their batch and dense dimensions, and why SciPy rejects them.
DIMENSIONS = {
    "batches": (torch.ones(2, 3, 4).to_sparse_csr(), 1, 0, "batches"),
    "dense dimensions": (CUBE.to_sparse(2), 0, 1, "dense dimensions"),
    "three sparse dimensions": (scipy.sparse.coo_array(CUBE.numpy()), 0, 0, None),
}


@pytest.mark.parametrize(("given", "batch_ndim", "dense_ndim", "refused"), DIMENSIONS.values(), ids=DIMENSIONS)
def test_arrays_of_three_dimensions_are_imported(given, batch_ndim, dense_ndim, refused):
    x = ah.assparse(given)
    assert (x.shape, x.batch_ndim, x.dense_ndim) == ((2, 3, 4), batch_ndim, dense_ndim)
    expected = given.toarray() if refused is None else given.to_dense().numpy()
    assert x.to_dense().tolist() == ah.as_torch(x, copy=None).to_dense().tolist() == expected.tolist()
    if refused is None:
        assert ah.as_scipy(x).toarray().tolist() == expected.tolist()
    else:
        with pytest.raises(ah.Refusal, match=refused):
            ah.as_scipy(x)


def test_to_host_and_to_device_accept_sparse_arrays():
    given, tensor = matrix(), torch.eye(3).to_sparse_csr()
    assert ah.to_host(given).data.ptr == given.data.ctypes.data
    assert ah.to_host(tensor).data.ptr == tensor.values().data_ptr()
    assert ah.to_device(tensor, "cpu").nnz == 3
    assert ah.to_host(given, copy=True).data.ptr != given.data.ctypes.data
    with pytest.raises(TypeError, match="out is"):
        ah.to_host(given, out=np.ones(3))
    with pytest.raises(BufferError, match="detach"):
        ah.to_host(torch.ones(3, requires_grad=True))


def test_sparse_arrays_are_copied_to_a_sycl_device_and_back(dpctl):
    given = matrix()
    device = dpctl.SyclQueue("cpu")
    x = ah.assparse(given).to_device(device)
    assert x.device.type == "oneapi" and x.indices.device == x.data.device
    assert x.to_host().to_dense().tolist() == given.toarray().tolist()
    assert x.to_dense().to_host().tolist() == given.toarray().tolist()
    for copy in (False, None):
        with pytest.raises(BufferError, match=r"Call arrayhub\.as_scipy\(x, device='cpu'\)"):
            ah.as_scipy(x, copy=copy)
    for made in (ah.as_scipy(x, copy=True), ah.like(x, given), ah.as_scipy(x, device="cpu")):
        assert made.toarray().tolist() == given.toarray().tolist()
    assert ah.like(given, x).device == x.device
    assert ah.check(x) == []


def test_convert_accepts_types_and_modules_of_sparse_libraries():
    given = matrix()
    for to in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse, "scipy.sparse"):
        assert ah.convert(given, to).format == "csr"
    for cls in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
        assert isinstance(ah.convert(given, cls), cls)
    with pytest.raises(ah.Refusal, match="the format is csr; accepted: coo"):
        ah.convert(given, scipy.sparse.coo_array)
    assert isinstance(ah.convert(given, scipy.sparse.coo_array, copy=None), scipy.sparse.coo_array)
    assert ah.convert(given, torch.sparse).layout is torch.sparse_csr
    assert ah.convert(given, ah.SparseArray).data.ptr == given.data.ctypes.data
