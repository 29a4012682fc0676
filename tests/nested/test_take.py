"""Test `take` with an array of each type of Arrow, against the elements as Python objects."""

import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah
from arrayhub.nested.take import take

SOURCES = pytest.importorskip("nested_sources").SOURCES  # requires the other libraries
COLUMNS = {name: make() for name, make in SOURCES.items() if name[:2] == "pa" and isinstance(make(), pa.Array)}
COLUMNS["maps"] = pa.array([[("a", 1)], [], None, [("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int8()))
COLUMNS["list views out of order"] = pa.ListViewArray.from_arrays([2, 0, 1], [2, 1, 1], pa.array([1, None, 3, 4]))


@pytest.mark.parametrize("name", COLUMNS)
def test_taken_elements_have_the_type_and_the_order_of_the_indices(name):
    for array in (COLUMNS[name], pa.concat_arrays([COLUMNS[name], COLUMNS[name]])[1:]):
        for rows in ([], [len(array) - 1, 0, 0]):
            made = ah.as_arrow(take(ah.asnested(array), np.array(rows, np.int64)))
            made.validate(full=True)
            assert made.type == array.type and made.to_pylist() == [array[row].as_py() for row in rows]


def test_runs_that_exceed_their_type_of_integers_get_longer_run_ends():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int16()), pa.array([7]))
    taken = ah.as_arrow(take(ah.asnested(runs), np.zeros(2**15, np.int64)))
    assert taken.type.run_end_type == pa.int64() and len(taken) == 2**15 and taken[-1].as_py() == 7
