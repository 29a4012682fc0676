"""as_polars raises for conversions that copy values if copy=False."""

import numpy as np
import pytest

import arrayhub as ah

pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

COPIED = {
    "datetime64": np.array([1], "M8[s]"),
    "timedelta64": np.array([1], "m8[s]"),
    "timestamp": pa.array([1], pa.timestamp("s")),
    "lists": pa.array([[1], []], pa.list_(pa.duration("s"))),
    "table": pa.table({"a": [1], "b": pa.array([1], pa.timestamp("s"))}),
    "time": pa.array([1], pa.time32("s")),
    "runs": pc.run_end_encode(pa.array([1, 1, 2])),
    "categories": pa.array([10, 20, 10]).dictionary_encode(),
    "categories in records": pa.table({"a": pa.array([10, 20, 10]).dictionary_encode()}),
    "categories of lists": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array([[1], [2, 3]])),
    "chunks": pa.chunked_array([pc.run_end_encode(pa.array([1, 1, 2]))]),
}


@pytest.mark.parametrize("name", COPIED)
def test_copy_false_forbids_conversions_of_values(name):
    x = COPIED[name]
    assert len(ah.as_polars(x)) == len(ah.as_polars(x, copy="if_needed")) == len(x)
    with pytest.raises(BufferError, match=r"^as_polars: copy is False, and .*Omit copy= to permit this copy") as error:
        ah.as_polars(x, copy=False)
    (verdict,) = ah.explain(x, to="polars").verdicts
    assert verdict.verdict == "copy=True" and verdict.reason in str(error.value)
    assert len(ah.as_arrow(x)) == len(x)  # the error names as_arrow


@pytest.mark.parametrize("x", [np.array([1], "M8[ms]"), np.array([1], "M8[ns]"), np.arange(3)])
def test_other_times_and_numbers_are_shared(x):
    assert ah.asarray(ah.as_polars(x, copy=False).to_physical()).ptr == x.ctypes.data
    assert ah.explain(x, to="polars").verdicts[0].verdict == "zero-copy"
