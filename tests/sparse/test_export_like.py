"""like, placement and adapt accept sparse arrays."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sparse_arrays import matrix

import arrayhub as ah


def test_like_returns_the_library_of_the_model():
    given = matrix()
    tensor = ah.like(given, torch.eye(2).to_sparse_csr())
    assert tensor.layout is torch.sparse_csr and tensor.values().data_ptr() == given.data.ctypes.data
    assert ah.like(tensor, given).indices.ctypes.data == given.indices.ctypes.data
    assert ah.like(given, torch).layout is torch.sparse_csr
    assert ah.like(given, torch.ones(2)).layout is torch.sparse_csr
    assert ah.like(tensor, scipy.sparse).format == "csr"
    assert ah.like(tensor, np.ones(2)).format == "csr"
    assert ah.like(given, ah.assparse(given)).data.ptr == given.data.ctypes.data


def test_like_keeps_the_kind_of_scipy_and_the_format():
    tensor = ah.as_torch(matrix("csc"))
    assert type(ah.like(tensor, scipy.sparse.csr_matrix((1, 1)))) is scipy.sparse.csc_matrix
    assert type(ah.like(tensor, scipy.sparse.csr_array)) is scipy.sparse.csc_array


def test_like_returns_the_object_itself_if_nothing_changes():
    given = matrix()
    assert ah.like(given, matrix()) is given is ah.like(given, matrix("csc")) is ah.like(given, np.ones(2))
    for format in ("csr", "lil"):  # `assparse` does not import lil
        given = matrix(format)
        copied = ah.like(given, matrix(), copy=True)
        assert copied is not given and copied.format == format and copied.toarray().tolist() == given.toarray().tolist()
    assert ah.like(matrix(), matrix(), copy=True, dtype="float32").dtype == "float32"


def test_like_casts_values():
    model = scipy.sparse.csr_array((1, 1), dtype="float32")
    assert ah.like(matrix(), model, dtype="model").dtype == np.float32
    assert ah.like(matrix(), torch, dtype="float32").dtype is torch.float32


def test_error_of_like_for_pandas_suggests_to_dense():
    import pandas

    with pytest.raises((BufferError, TypeError), match=r"to_dense\(\)"):
        ah.like(matrix(), pandas.Series([1]))


def test_placement_of_sparse_arrays_has_the_library_of_dense_arrays():
    tensor = torch.eye(2).to_sparse_csr()
    assert ah.placement(matrix()).library == "numpy"
    assert ah.placement(matrix(), tensor).library == "torch"
    place = ah.placement(matrix(), torch.ones(2))
    assert place.convert(matrix()).layout is torch.sparse_csr
    assert place.asarray(matrix()).format == "csr"
    assert ah.placement(matrix()).convert(tensor).format == "csr"


def product(a, x):
    """Return the product of a SciPy array and an ndarray, and twice the SciPy array."""
    assert scipy.sparse.issparse(a) and isinstance(x, np.ndarray)
    return a @ x, a * 2


adapted = ah.adapt("numpy", copy=None)(product)
ONES = np.ones(8)


def test_adapt_passes_scipy_arrays_through():
    given = matrix("lil")  # a format that assparse does not import

    @ah.adapt("numpy")
    def same(a):
        assert a is given
        return a

    assert same(given) is given
    dense, sparse = adapted(given, ONES)
    assert type(dense) is np.ndarray and sparse.format == "lil"


@pytest.mark.parametrize("cls", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_adapt_returns_the_scipy_class_of_the_argument(cls):
    @ah.adapt("torch")
    def double(a):
        assert a.layout is torch.sparse_csr
        return a * 2

    given = cls(matrix())
    made = double(given)
    assert type(made) is cls and made.toarray().tolist() == (2 * matrix().toarray()).tolist()


def test_adapt_converts_sparse_tensors_and_results_back():
    dense, sparse = adapted(torch.from_numpy(matrix().toarray()).to_sparse_csr(), ONES)
    assert dense.layout is torch.strided and sparse.layout is torch.sparse_csr
    assert sparse.to_dense().tolist() == (2 * matrix().toarray()).tolist()
    dense, sparse = adapted(matrix(), torch.ones(8, dtype=torch.float64))
    assert isinstance(dense, torch.Tensor) and sparse.layout is torch.sparse_csr


@pytest.mark.slow
def test_adapt_returns_the_library_of_the_caller():
    pydata = pytest.importorskip("sparse")
    dense, made = adapted(pydata.GCXS.from_numpy(matrix().toarray(), compressed_axes=(0,)), ONES)
    assert type(dense) is np.ndarray and type(made) is pydata.GCXS
    dense, made = adapted(ah.assparse(matrix()), ONES)
    assert type(dense) is ah.USMArray and type(made) is ah.SparseArray
    from jax.experimental import sparse

    given = sparse.BCSR.fromdense(matrix("csr", "float32").toarray())
    dense, made = adapted(given, np.ones(8, "float32"))
    assert type(made) is sparse.BCSR and type(dense).__module__.startswith("jax")


def test_adapt_returns_scipy_arrays_if_the_library_does_not_have_sparse_arrays():
    import pandas

    dense, made = adapted(matrix(), pandas.Series(ONES))
    assert type(dense) is np.ndarray and type(made) is scipy.sparse.csr_array


def test_errors_of_adapt_name_the_argument():
    @ah.adapt("torch", copy=False)
    def same(first, a):
        return a

    with pytest.raises(BufferError, match=r"same: a: .*arrayhub\.assparse\(x\.tocoo\(\)\)"):
        same(torch.ones(1), matrix("lil"))
    with pytest.raises(BufferError, match=r"same: a: torch: indices of int32.*copy=None to arrayhub\.adapt"):
        same(torch.ones(1), matrix("coo"))

    @ah.adapt("pandas")
    def series(a):
        return a

    with pytest.raises(BufferError, match="series: a: pandas: .* is sparse, and pandas does not have sparse arrays"):
        series(matrix())


@pytest.mark.slow
def test_cast_of_padded_arrays_keeps_the_values():
    from jax.experimental import sparse

    given = sparse.BCOO.fromdense(np.eye(3, dtype="float32"), nse=5)
    assert ah.like(given, ah.SparseArray, dtype="float64").to_dense().tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("library", ["scipy", "torch"])
def test_dtype_model_checks_values(library):
    """``dtype="model"`` checks values, and other types cast as ``ndarray.astype`` does."""
    torch = pytest.importorskip("torch") if library == "torch" else None
    numbers = np.ones((1, 1), "i1")
    model = scipy.sparse.csr_array(numbers) if torch is None else torch.ones(1, dtype=torch.int8)
    big = scipy.sparse.csr_array(np.array([[300]]))
    with pytest.raises(OverflowError, match="300 is out of the range of int8"):
        ah.like(big, model, dtype="model")
    assert ah.assparse(ah.like(big, model, dtype="int8")).data.tolist() == [44]


def test_sparse_results_for_jax_are_narrowed():
    jnp = pytest.importorskip("jax.numpy")
    for numbers, dtype in ((np.eye(2), "float32"), (np.eye(2, dtype="i8"), "int32")):
        made = ah.adapt("numpy")(lambda x, numbers=numbers: scipy.sparse.coo_array(numbers))(jnp.ones(2))
        assert made.dtype == dtype and made.todense().tolist() == np.eye(2).tolist()
    with pytest.raises(OverflowError, match="the result: .* is out of the range of float32"):
        ah.adapt("numpy")(lambda x: scipy.sparse.coo_array(np.eye(2) * 1e300))(jnp.ones(2))
