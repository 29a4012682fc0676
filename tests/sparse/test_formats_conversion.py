"""to_format and to_dense convert between all formats, with blocks, batches, dense dimensions and narrow index types."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import torch
from jax.experimental import sparse
from sparse_arrays import matrix

import arrayhub as ah

pytestmark = pytest.mark.slow

ALL = ("coo", "csr", "csc", "bsr", "bsc")
SAME = np.array([[[1, 0, 2], [0, 3, 0]], [[0, 4, 0], [5, 0, 6]]], "float32")  # 3 stored values in each batch
DIFFERENT = np.array([[[1, 0, 2], [0, 3, 0]], [[0, 0, 0], [5, 0, 0]]], "float32")


def blocks_of(dense, format):
    """Return an array in blocks, which torch makes."""
    return ah.assparse(getattr(torch.tensor(dense), f"to_sparse_{format}")((2, 1)))


def batch_of(dense):
    return ah.assparse(sparse.BCSR.fromdense(jnp.asarray(dense), n_batch=dense.ndim - 2))


def parts_of(x):
    return (x.data, *x.coords) if x.format == "coo" else (x.data, x.indices, x.indptr)


@pytest.mark.parametrize(("source", "target"), [*itertools.product(ALL, ALL)])
def test_every_format_is_converted_to_every_format_but_blocks_only_from_blocks(source, target):
    given = matrix().toarray()
    in_blocks = source in ("bsr", "bsc")
    x = blocks_of(given, source) if in_blocks else ah.assparse(matrix()).to_format(source)
    if target in ("bsr", "bsc") and not in_blocks:
        with pytest.raises(ValueError, match=rf"to_format: {target} consists of blocks.*as_scipy.*tobsr"):
            x.to_format(target)
        return
    y = x.to_format(target)
    blocks = (2, 1) if target in ("bsr", "bsc") else None
    assert (y.format, y.shape, y.canonical, y.blocksize) == (target, given.shape, True, blocks)
    assert y.to_dense().tolist() == given.tolist()
    assert {part.ptr for part in parts_of(x)}.isdisjoint(part.ptr for part in parts_of(y))


@pytest.mark.parametrize("format", ["bsr", "bsc"])
def test_repeated_and_unsorted_blocks_are_added(format):
    blocks = np.arange(12.0).reshape(3, 2, 2)
    shape = (2, 4) if format == "bsr" else (4, 2)
    make = getattr(torch, f"sparse_{format}_tensor")
    pointers, indices = torch.tensor([0, 3]), torch.tensor([1, 0, 1])
    x = ah.assparse(make(pointers, indices, torch.tensor(blocks), shape, check_invariants=False))
    for y in (x.to_format(format), x.to_format("csr"), x.to_format("coo")):
        assert y.canonical and y.to_dense().tolist() == x.to_dense().tolist()
    assert x.to_format(format).data.tolist() == [blocks[1].tolist(), (blocks[0] + blocks[2]).tolist()]


@pytest.mark.parametrize("dense", [SAME, DIFFERENT, SAME[:1], SAME[:0], SAME[None]], ids=lambda dense: str(dense.shape))
@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_batches_are_converted_to_every_format(format, dense):
    x = batch_of(dense)
    y = x.to_format(format)
    assert (y.format, y.shape, y.batch_ndim) == (format, dense.shape, 0 if format == "coo" else dense.ndim - 2)
    assert y.canonical and y.to_dense().tolist() == dense.tolist()
    assert y.to_format("csr" if format != "coo" else "coo").to_dense().tolist() == dense.tolist()


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_batches_with_equal_counts_are_exported_to_torch(format):
    y = batch_of(SAME).to_format(format)
    tensor = ah.as_torch(y)
    assert tensor.layout is getattr(torch, f"sparse_{format}") and tensor.values().data_ptr() == y.data.ptr
    assert tensor.to_dense().tolist() == SAME.tolist()


def test_batches_in_coo_are_exported_to_every_library():
    x = batch_of(DIFFERENT).to_format("coo")
    assert ah.as_scipy(x).todense().tolist() == DIFFERENT.tolist()
    for library in ("torch", "pydata_sparse", "jax"):
        made = ah.convert(x, library, copy=None)
        assert ah.assparse(made).to_dense().tolist() == DIFFERENT.tolist()


def test_batches_of_different_counts_are_padded_for_jax():
    y = batch_of(DIFFERENT).to_format("csr")
    assert y.nnz == 6 and y.indptr.tolist() == [[0, 2, 3], [0, 0, 1]]
    assert np.asarray(ah.as_jax(y, copy=None).todense()).tolist() == DIFFERENT.tolist()
    with pytest.raises(BufferError, match="different numbers of stored values") as raised:
        ah.as_torch(y, copy=None)
    assert eval(raised.value.call, {"arrayhub": ah, "x": y}).to_dense().tolist() == DIFFERENT.tolist()


def test_unsorted_batches_are_sorted_for_torch():
    columns, pointers = torch.tensor([[2, 0], [1, 0]]), torch.tensor([[0, 2], [0, 2]])
    tensor = torch.sparse_csr_tensor(pointers, columns, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (2, 1, 3))
    made = ah.as_torch(ah.assparse(tensor), copy=None)
    assert made.col_indices().tolist() == [[0, 2], [0, 1]]
    assert made.to_dense().tolist() == [[[2, 0, 1]], [[4, 3, 0]]]


@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_dense_dimensions_are_kept(format):
    for dense in (torch.arange(24.0).reshape(2, 3, 4), torch.zeros(2, 3, 0)):
        for tensor in (dense.to_sparse(2), dense.to_sparse_bsr((2, 3), dense_dim=1)):
            x = ah.assparse(tensor).to_format(format)
            assert x.dense_ndim == 1 and x.to_dense().tolist() == dense.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("target", ["coo", "csr", "csc"])
def test_narrow_indices_do_not_overflow(dtype, target):
    """Row numbers that exceed the range of the column index type are stored as int32."""
    given = scipy.sparse.csr_array((1000, 4))
    given.data = np.ones(1000, "float32")
    given.indices, given.indptr = np.ones(1000, dtype), np.arange(1001, dtype="int32")
    y = ah.assparse(given).to_format(target)
    assert y.to_dense().tolist() == [[0, 1, 0, 0]] * 1000
    assert {part.dtype.name for part in parts_of(y)[1:]} == {"int32"}


def test_row_numbers_of_blocks_do_not_overflow():
    given = scipy.sparse.bsr_array((400, 2), blocksize=(200, 2))
    given.data = np.ones((2, 200, 2))
    given.indices, given.indptr = np.zeros(2, "int8"), np.arange(3, dtype="int8")
    assert ah.assparse(given).to_dense().tolist() == [[1, 1]] * 400


@pytest.mark.parametrize("format", ["csr", "csc", "bsr", "bsc"])
def test_compressed_formats_require_two_sparse_dimensions(format):
    for shape in ((4,), (2, 3, 4)):
        x = ah.assparse(scipy.sparse.coo_array(np.ones(shape)))
        with pytest.raises(ValueError, match=rf"{format} has 2 sparse dimensions.*accepted: 'coo'"):
            x.to_format(format)
        assert x.to_format("coo").to_dense().shape == shape


def test_values_without_sparse_dimensions_are_added():
    x = ah.assparse(torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), torch.ones(2), ()))
    assert (x.shape, x.coords, x.canonical) == ((), (), False)
    assert x.to_dense().tolist() == 2 and x.to_format("coo").data.tolist() == [2]
