"""oneDAL's csr tables share the memory of exported arrays, and are imported by a copy."""

import numpy as np
import pytest
import torch
from sparse_arrays import matrix

import arrayhub as ah

datatypes = pytest.importorskip("onedal.datatypes")


def test_tables_share_the_memory_of_sparse_tensors():
    given = matrix()
    tensor = ah.as_torch(given)
    table = datatypes.to_table(ah.as_scipy(tensor))
    assert table.kind == "csr" and table.shape == given.shape
    given.data[0] = 777  # the table shares the memory
    x = ah.assparse(table, copy=None)
    assert x.data.tolist()[0] == 777
    assert x.to_dense().tolist() == given.toarray().tolist()
    assert ah.as_torch(ah.assparse(table, copy=True)).layout is torch.sparse_csr


@pytest.mark.parametrize("validate", [True, False])
def test_import_of_a_table_copies_once(validate):
    table = datatypes.to_table(matrix())
    with ah.trace() as events:
        x = ah.assparse(table, copy=True, validate=validate)
    assert x.to_dense().tolist() == matrix().toarray().tolist()
    (copy,) = (event for event in events.events if event.kind == "copy")  # the one that oneDAL makes
    assert copy.nbytes == sum(array.nbytes for array in (x.data, *x.structure))


def test_errors_for_tables_suggest_a_copy():
    table = datatypes.to_table(matrix())
    for call in (ah.assparse, ah.as_scipy, ah.as_torch, ah.as_jax):
        with pytest.raises(ah.Refusal, match="copies only") as raised:
            call(table)
        assert call.__name__ in raised.value.call
        made = ah.assparse(eval(raised.value.call, {"arrayhub": ah, "x": table}))
        assert np.allclose(ah.as_numpy(made.to_dense()), matrix().toarray())


@pytest.mark.parametrize("to", ["scipy", "torch", "numpy", "jax", "arrow"])
def test_explained_call_for_a_table_is_that_of_the_error(to):
    table = datatypes.to_table(matrix())
    with pytest.raises(ah.Refusal) as raised:
        ah.convert(table, to)
    assert raised.value.call == ah.explain(table, to).call
    assert eval(raised.value.call, {"arrayhub": ah, "x": table}) is not None


def test_dense_tables_are_rejected():
    table = datatypes.to_table(np.ones((3, 4)))
    with pytest.raises(TypeError, match="is not sparse"):
        ah.assparse(table)
    assert ah.as_numpy(table, copy=None).shape == (3, 4)
