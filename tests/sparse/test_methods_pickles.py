"""Sparse arrays are pickled, copied and hashed by dask and joblib."""

import copy
import pickle
import sys

import numpy as np
import pytest
import torch
from optional import optional
from sparse_arrays import FORMATS, addresses, matrix

import arrayhub as ah

dask = optional("dask")

VARIANTS = {
    **{format: lambda format=format: ah.assparse(matrix(format)) for format in FORMATS},
    "torch coo": lambda: ah.assparse(torch.eye(3).to_sparse_coo()),
    "batches": lambda: ah.assparse(torch.eye(3).repeat(2, 1, 1).to_sparse_csr()),
    "dense dimensions": lambda: ah.assparse(torch.ones(2, 3, 4).to_sparse(2)),
    "empty": lambda: ah.assparse(matrix(shape=(0, 4))),
}


@pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
def test_pickles_restore_every_part(make):
    x = make()
    for protocol in range(2, 6):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert (y.format, y.shape, y.batch_ndim, y.blocksize) == (x.format, x.shape, x.batch_ndim, x.blocksize)
        assert y.to_dense().tolist() == x.to_dense().tolist()


def test_protocol_5_passes_each_part_out_of_band_once():
    given = matrix()
    buffers = []
    data = pickle.dumps(ah.assparse(given), 5, buffer_callback=buffers.append)
    sizes = sorted(buffer.raw().nbytes for buffer in buffers)
    assert sizes == sorted([given.data.nbytes, given.indices.nbytes, given.indptr.nbytes])
    y = pickle.loads(data, buffers=buffers)
    assert y.data.ptr == given.data.ctypes.data
    assert ah.as_scipy(y).toarray().tolist() == given.toarray().tolist()


def test_pickles_of_padded_arrays_keep_the_values():
    jax = pytest.importorskip("jax")
    from jax.experimental import sparse

    x = pickle.loads(pickle.dumps(ah.assparse(sparse.BCOO.fromdense(jax.numpy.eye(3), nse=5))))
    assert x.to_dense().tolist() == np.eye(3).tolist()


FORMAT, SHAPE, DATA, STRUCTURE, BLOCKSIZE, BATCH_NDIM, END = range(7)
INDICES, INDPTR = (ah.asarray(np.zeros(length, "int32")) for length in (16, 7))


@pytest.mark.parametrize(
    ("item", "value"),
    [
        (FORMAT, "dia"),
        (FORMAT, None),
        (FORMAT, "coo"),
        (SHAPE, (5, 8)),
        (SHAPE, (6, -8)),
        (SHAPE, [6, 8]),
        (SHAPE, (6, 8, 1)),
        (DATA, None),
        (DATA, ah.asarray(np.zeros(()))),
        (STRUCTURE, (ah.asarray(np.zeros(2, "int32")), INDPTR)),
        (STRUCTURE, (ah.asarray(np.zeros(16)), INDPTR)),
        (STRUCTURE, (INDICES, ah.asarray(np.zeros((7, 1), "int32")))),
        (STRUCTURE, (INDICES,)),
        (STRUCTURE, (INDICES, INDPTR, INDPTR)),
        (STRUCTURE, (INDICES, "x")),
        (STRUCTURE, [INDICES, INDPTR]),
        (BATCH_NDIM, 3),
        (BATCH_NDIM, -1),
        (BLOCKSIZE, (2, 2)),
        (BLOCKSIZE, (0, 2)),
        (BLOCKSIZE, (2, None)),
        (END, 1),
    ],
    ids=str,
)
def test_inconsistent_states_are_rejected(item, value):
    state = list(ah.assparse(matrix()).__reduce__()[1][0])
    state[item : item + 1] = [value] if item != END else [value, value]
    with pytest.raises(pickle.UnpicklingError, match="arrayhub: "):
        ah._unpickle_sparse(tuple(state))


def test_parts_of_a_consistent_state_are_accepted():
    data = ah.asarray(np.zeros(16))
    x = ah._unpickle_sparse(("csr", (6, 8), data, (INDICES, INDPTR), None, 0, False))
    assert x.data.ptr == data.ptr and x.indices.ptr == INDICES.ptr


def test_indices_of_a_pickle_are_validated_on_use():
    given = matrix()
    given.indices[1] = 99
    x = pickle.loads(pickle.dumps(ah.assparse(given)))
    with pytest.raises(ah.InterfaceError, match=r"indices\[1\] is 99"):
        x.to_dense()


@pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
def test_copies_have_equal_values_in_new_memory(make):
    x = make()
    assert copy.copy(x) is x
    for y in (copy.deepcopy(x), x.copy()):
        assert x.nnz == 0 or set(addresses(x)).isdisjoint(addresses(y))
        assert y.to_dense().tolist() == x.to_dense().tolist()


def test_dask_tokens_depend_on_format_and_values():
    tokens = {dask.base.tokenize(ah.assparse(matrix(format))) for format in FORMATS}
    assert len(tokens) == 4
    assert dask.base.tokenize(ah.assparse(matrix())) in tokens
    changed = matrix()
    changed.data[0] += 1
    assert dask.base.tokenize(ah.assparse(changed)) not in tokens


def test_getsizeof_includes_the_parts():
    x = ah.assparse(matrix())
    assert sys.getsizeof(x) >= x.nbytes > x.data.nbytes


@pytest.mark.parametrize("format", FORMATS)
def test_joblib_stores_and_hashes_sparse_arrays(tmp_path, format):
    joblib = pytest.importorskip("joblib")
    x = ah.assparse(matrix(format))
    joblib.dump(x, tmp_path / "x")
    assert joblib.load(tmp_path / "x").to_dense().tolist() == x.to_dense().tolist()
    assert joblib.hash(x) == joblib.hash(ah.assparse(matrix(format))) != joblib.hash(ah.assparse(matrix(format) * 2))
    back = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(copy.deepcopy)(y) for y in (x, x))
    assert [y.to_dense().tolist() for y in back] == [x.to_dense().tolist()] * 2


@pytest.mark.slow
def test_dask_passes_sparse_arrays_to_tasks_and_frames():
    x = ah.assparse(matrix())
    for scheduler in ("threads", "processes"):
        back = dask.delayed(copy.deepcopy)(x).compute(scheduler=scheduler, num_workers=1)
        assert back.to_dense().tolist() == x.to_dense().tolist()
    protocol = pytest.importorskip("distributed.protocol")
    header, frames = protocol.serialize(x)
    assert protocol.deserialize(header, frames).to_dense().tolist() == x.to_dense().tolist()
