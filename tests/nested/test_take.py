"""Test `take` with a column of each kind, against ``pyarrow.Array.take`` or the elements as Python objects."""

import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah
from arrayhub.nested.take import take

INT8 = pa.int8()
NUMBERS = pa.array([1, None, 3, 4])
COLUMNS = {
    "numbers": NUMBERS,
    "booleans": pa.array([True, None, False, True]),
    "strings": pa.array(["a", "", None, "longer than a view stores"]),
    "string views": pa.array(["a", "", None, "longer than a view stores"], pa.string_view()),
    "large bytes": pa.array([b"a", b"", None, b"bc"], pa.large_binary()),
    "bytes of one length": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
    "lists": pa.array([[1], [], None, [2, None]]),
    "lists of lists": pa.array([[["a"], []], [], None, [["b", None], None]]),
    "rows": pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(INT8, 2)),
    "maps": pa.array([[("a", 1)], [], None, [("b", 2), ("c", 3)]], pa.map_(pa.string(), INT8)),
    "records": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 4, "b": None}]),
    "categories": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "decimals": pa.array([1, None, 3, 4], pa.decimal128(3)),
    "intervals": pa.array([(1, 2, 3), None, (4, 5, 6), (7, 8, 9)], pa.month_day_nano_interval()),
    "null": pa.nulls(4),
    "list views": pa.ListViewArray.from_arrays([2, 0, 1, 0], [2, 1, 1, 3], NUMBERS),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int16()), pa.array(["a", None, "b"])),
    "a sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 1, 0], INT8), [NUMBERS, pa.array(["a", "b", None, "d"])]
    ),
    "a dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 1, 0], INT8), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
}


@pytest.mark.parametrize("rows", [[], [2], [3, 0, 0, 2, 1]], ids=str)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_taken_elements_have_the_type_and_the_order_of_the_indices(column, rows):
    for array in (column, pa.concat_arrays([column, column])[4:]):
        taken = take(ah.asnested(array), np.array(rows, np.int64))
        made = ah.as_arrow(taken)
        made.validate(full=True)
        assert made.type == array.type and made.to_pylist() == [array[row].as_py() for row in rows]


def test_runs_that_exceed_their_type_of_integers_get_longer_run_ends():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int16()), pa.array([7]))
    taken = ah.as_arrow(take(ah.asnested(runs), np.zeros(2**15, np.int64)))
    assert taken.type.run_end_type == pa.int64() and len(taken) == 2**15 and taken[-1].as_py() == 7
