"""Test the export of nested arrays as jagged torch tensors."""

import pyarrow as pa
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

RAGGED = {
    "rows of numbers": ([[1.0], [2.0, 3.0]], [[1.0, 0.0], [2.0, 3.0]]),
    "an empty row": ([[], [2.0, 3.0]], [[0.0, 0.0], [2.0, 3.0]]),
    "empty rows only": (pa.array([[], []], pa.list_(pa.float64())), [[], []]),
    "no rows": (pa.array([], pa.list_(pa.float64())), []),
    "a part of the rows": (pa.array([[9.0] * 5, [1.0], [2.0, 3.0], [9.0] * 5])[1:3], [[1.0, 0.0], [2.0, 3.0]]),
}


@pytest.mark.parametrize(("rows", "padded"), RAGGED.values(), ids=RAGGED)
def test_exported_jagged_tensor_is_padded_to_its_longest_row(rows, padded):
    for keywords in ({"copy": True}, {"allow_readonly": True}):
        tensor = ah.as_torch(ah.asnested(rows), **keywords)
        assert tensor.to_padded_tensor(0.0).tolist() == padded
        assert tensor.shape[0] == len(padded)


MISSING = {
    "numbers": (pa.array([1, None]), 0),
    "booleans": (pa.array([True, None]), True),
    "lists of numbers": (pa.array([[1], [None]]), 0),
    "lists": (pa.array([[1], None]), []),
    "records": (pa.array([{"a": 1}, {"a": None}]), 0),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_values_are_refused_or_replaced(name):
    source, value = MISSING[name]
    x = ah.asnested(source)
    with pytest.raises(ah.Refusal, match="^torch: the type is") as raised:
        ah.as_torch(x)
    assert raised.value.accepted == "n * var * number without missing values"
    assert len(eval(raised.value.call, {"arrayhub": ah, "x": x})) == 2
    assert len(ah.as_torch(x, missing=value)) == 2


def test_jagged_tensor_with_rows_of_one_length_is_dense_by_the_call_of_its_error():
    torch = pytest.importorskip("torch")
    x = torch.nested.nested_tensor([torch.ones(2), torch.zeros(2)], layout=torch.jagged)
    with pytest.raises(BufferError) as raised:
        ah.asarray(x)
    assert raised.value.call == "arrayhub.asarray(x, copy=None)"
    dense = ah.asarray(x, copy=None)
    assert dense.tolist() == [[1, 1], [0, 0]] and dense.ptr == x.values().data_ptr()
    assert ah.asarray(x, copy=True).ptr != dense.ptr
