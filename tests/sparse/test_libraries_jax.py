"""BCOO and BCSR of jax are imported and exported without a copy, with batches, dense dimensions and padding."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from sparse_arrays import matrix

import arrayhub as ah

pytestmark = pytest.mark.slow


def dense_of(x):
    return np.asarray(x.todense()).tolist()


@pytest.mark.parametrize(("make", "format"), [(sparse.BCOO, "coo"), (sparse.BCSR, "csr")])
def test_jax_matrices_are_imported_on_their_memory(make, format):
    given = make.fromdense(jnp.asarray(matrix().toarray(), "float32"))
    x = ah.assparse(given)
    assert x.format == format and x.access != "readwrite"
    assert x.data.ptr == ah.asarray(given.data).ptr
    assert x.to_dense().tolist() == dense_of(given)
    assert type(ah.as_jax(x)) is make


@pytest.mark.parametrize("make", [sparse.BCOO, sparse.BCSR])
def test_batches_and_dense_dimensions_survive_a_round_trip(make):
    dense = jnp.asarray(np.random.default_rng(3).integers(1, 9, (2, 3, 4, 5)), "float32")
    given = make.fromdense(dense, n_batch=1, n_dense=1)
    x = ah.assparse(given)
    assert (x.batch_ndim, x.dense_ndim, x.shape) == (1, 1, (2, 3, 4, 5))
    assert x.to_dense().tolist() == dense.tolist()
    assert dense_of(ah.as_jax(x)) == dense.tolist()


def test_broadcast_batches_are_rejected():
    data, indices = jnp.ones((2, 3)), jnp.zeros((1, 3, 1), "int32")
    given = sparse.BCOO((data, indices), shape=(2, 4))
    with pytest.raises(BufferError, match="broadcast to the batches"):
        ah.assparse(given)


@pytest.mark.parametrize("make", [sparse.BCOO, sparse.BCSR])
def test_conversions_omit_the_padding_of_jax(make):
    """jax marks padding by indices outside of the shape, or stores it after the last pointer."""
    given = make.fromdense(jnp.eye(3), nse=5)
    x = ah.assparse(given)
    assert x.nnz == 5
    assert x.to_dense().tolist() == np.eye(3).tolist()
    assert x.to_format("csc").nnz == 3
    with pytest.raises(BufferError, match="some elements are padding, which only jax ignores") as raised:
        ah.as_scipy(x)
    assert raised.value.call == ah.explain(x, "scipy").call == "arrayhub.as_scipy(x, copy=True)"
    assert ah.as_scipy(x, copy=True).toarray().tolist() == np.eye(3).tolist()
    assert ah.as_scipy(x, copy=None).toarray().tolist() == np.eye(3).tolist()
    assert dense_of(ah.as_jax(x)) == np.eye(3).tolist()


@pytest.mark.parametrize("make", [sparse.BCOO, sparse.BCSR])
def test_transposed_matrices_keep_their_padding(make):
    dense = np.asarray([[0, 1.5], [0, 0], [2.5, 0]], "float32")
    x = ah.assparse(make.fromdense(jnp.asarray(dense), nse=5))
    assert ah.check(x.T) == []
    for made in (x.T, pickle.loads(pickle.dumps(x.T)), x.T.T.T):
        assert made.to_dense().tolist() == dense.T.tolist()
    assert ah.as_scipy(x.T, copy=None).toarray().tolist() == dense.T.tolist()
    if make is sparse.BCOO:
        assert dense_of(ah.as_jax(x.T, copy=None)) == dense.T.tolist()


def test_invalid_indices_of_jax_are_rejected():
    given = sparse.BCOO((jnp.ones(1), jnp.asarray([[-4, 0]])), shape=(3, 3))
    with pytest.raises(ah.InterfaceError, match=r"coords\[0\]\[0\] is -4"):
        ah.as_scipy(given)


def test_traced_arrays_are_rejected():
    with pytest.raises((BufferError, TypeError)):
        jax.jit(lambda x: ah.assparse(x).nnz)(sparse.BCOO.fromdense(jnp.eye(3)))


@pytest.mark.parametrize("kind", ["COO", "CSR"])
def test_errors_for_other_jax_classes_suggest_a_call(kind):
    given = getattr(sparse, kind).fromdense(jnp.eye(3))
    with pytest.raises(BufferError, match=rf"{kind} is not supported.*BCOO\.fromdense\(x\.todense\(\)\)"):
        ah.assparse(given)
    assert ah.assparse(sparse.BCOO.fromdense(given.todense())).to_dense().tolist() == np.eye(3).tolist()
