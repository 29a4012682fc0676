"""COO and GCXS of pydata/sparse are imported and exported without a copy."""

import numpy as np
import pytest
from sparse_arrays import matrix

import arrayhub as ah

pytestmark = pytest.mark.slow

sparse = pytest.importorskip("sparse")


def given_as(format):
    dense = matrix().toarray()
    if format == "coo":
        return sparse.COO.from_numpy(dense)
    return sparse.GCXS.from_numpy(dense, compressed_axes=(0,) if format == "csr" else (1,))


@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_arrays_are_imported_on_their_memory(format):
    given = given_as(format)
    x = ah.assparse(given)
    assert x.format == format and x.data.ptr == given.data.ctypes.data
    assert x.to_dense().tolist() == given.todense().tolist()
    assert type(ah.convert(x, "pydata_sparse")) is type(given)


@pytest.mark.parametrize("name", ["CSR", "CSC"])
def test_csr_and_csc_classes_are_imported(name):
    if not hasattr(sparse.numba_backend._compressed.compressed, name):
        pytest.skip("another release")
    cls = getattr(sparse.numba_backend._compressed.compressed, name)
    given = cls.from_scipy_sparse(matrix(name.lower()))
    assert ah.assparse(given).to_dense().tolist() == matrix().toarray().tolist()


@pytest.mark.parametrize("format", ["coo", "csr"])
def test_arrays_of_the_library_are_returned_unchanged(format):
    given = given_as(format)
    assert ah.convert(given, "pydata_sparse") is given is ah.like(given, sparse)
    assert not np.shares_memory(ah.convert(given, "pydata_sparse", copy=True).data, given.data)


def test_nonzero_fill_values_are_rejected():
    given = sparse.COO.from_numpy(np.eye(3), fill_value=1.0)
    with pytest.raises(BufferError, match=r"fill_value is 1.0; accepted: 0.*x\.todense\(\)"):
        ah.assparse(given)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4)])
def test_errors_for_gcxs_that_is_not_2d_suggest_a_call(shape):
    given = sparse.GCXS.from_numpy(np.ones(shape))
    with pytest.raises(BufferError, match=r"compressed_axes.*Call arrayhub\.assparse\(x\.asformat\('coo'\)\)"):
        ah.assparse(given)
    assert ah.assparse(given.asformat("coo")).to_dense().tolist() == np.ones(shape).tolist()


def test_error_for_dok_suggests_a_call():
    with pytest.raises(BufferError, match=r"x\.asformat\('coo'\)"):
        ah.assparse(sparse.DOK.from_numpy(np.eye(3)))


@pytest.mark.parametrize("dtype", ["float16", "longdouble"])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_error_for_types_that_numba_lacks_suggests_coo(format, dtype):
    given = matrix(format)
    given.data = given.data.astype(dtype)  # SciPy does not convert to float16
    x = ah.assparse(given)
    with pytest.raises(BufferError, match=f"values of {x.dtype} are not supported") as raised:
        ah.convert(x, "pydata_sparse")
    made = eval(raised.value.call, {"arrayhub": ah, "x": x})
    assert raised.value.call == "arrayhub.convert(x.to_format('coo'), 'pydata_sparse', copy=True)"
    assert ah.assparse(made).to_dense().tolist() == matrix().toarray().tolist()


def test_array_without_dimensions_becomes_dense():
    assert ah.assparse(sparse.COO.from_numpy(np.array(3.0), fill_value=0.0)).to_dense().tolist() == 3.0
