"""like and placement with sparse arrays."""

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
    assert ah.like(given, matrix()) is given
    assert ah.like(given, matrix(), copy=True).data.ctypes.data != given.data.ctypes.data


def test_like_casts_values():
    model = scipy.sparse.csr_array((1, 1), dtype="float32")
    assert ah.like(matrix(), model, dtype="model").dtype == np.float32
    assert ah.like(matrix(), torch, dtype="float32").dtype is torch.float32


def test_libraries_without_sparse_arrays_name_to_dense():
    import pandas

    with pytest.raises((BufferError, TypeError), match=r"to_dense\(\)"):
        ah.like(matrix(), pandas.Series([1]))


def test_placement_is_that_of_dense_arrays():
    tensor = torch.eye(2).to_sparse_csr()
    assert ah.placement(matrix()).library == "numpy"
    assert ah.placement(matrix(), tensor).library == "torch"
    place = ah.placement(matrix(), torch.ones(2))
    assert place.convert(matrix()).layout is torch.sparse_csr
    assert place.asarray(matrix()).format == "csr"
    assert ah.placement(matrix()).convert(tensor).format == "csr"


def test_adapt_passes_sparse_arrays_through():
    given = matrix()

    @ah.adapt("numpy", copy="if_needed")
    def product(a, x):
        assert a is given and isinstance(x, np.ndarray)
        return a @ x

    assert isinstance(product(given, torch.ones(8, dtype=torch.float64)), torch.Tensor)
