"""Test the export of nested arrays as jagged torch tensors."""

import pyarrow as pa
import pytest

import arrayhub as ah

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
