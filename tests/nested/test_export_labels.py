"""Names of Series and pandas' index after an export."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

INDEX = pd.Index(["x", "y"], name="row")


@pytest.mark.parametrize("values", [[1.0, 2.0], ["u", "v"], [True, None]])
@pytest.mark.parametrize("make", [pd.Series, lambda values, name: pl.Series(name, values)])
def test_a_series_keeps_its_name(make, values):
    series = make(values, name="speed")
    assert ah.as_polars(series).name == "speed"
    assert ah.as_pandas(series).name == "speed"


@pytest.mark.parametrize("copy", [None, True, "if_needed"])
def test_a_pandas_series_keeps_its_index(copy):
    series = pd.Series([1.5, 2.5], INDEX, name=("a", 1))
    made = ah.as_pandas(series, copy=copy)
    assert made.index.equals(INDEX) and made.index.name == "row" and made.name == ("a", 1)
    assert ah.as_polars(series, copy=copy).name == "('a', 1)"


def test_a_series_without_a_name_stays_without_one():
    assert ah.as_pandas(pl.Series([1, 2])).name is None
    assert ah.as_polars(pd.Series([1, 2])).name == ""


@pytest.mark.parametrize(
    "index",
    [
        INDEX,
        pd.Index([5, 6]),
        pd.RangeIndex(4, 8, 2),
        pd.MultiIndex.from_arrays([[1, 2], ["a", "b"]], names=["i", None]),
    ],
)
@pytest.mark.parametrize("through", [lambda frame: frame, pa.table, lambda frame: ah.asnested(pa.table(frame))])
def test_a_frame_keeps_its_index(index, through):
    frame = pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}, index)
    made = ah.as_pandas(through(frame))
    assert list(made.columns) == ["a", "b"] and list(made.index) == list(index) and made.index.names == index.names
    assert made["a"].tolist() == [1, 2] and made["b"].tolist() == ["u", "v"]


def test_the_columns_of_a_frame_with_an_index_share_their_memory():
    table = pa.table(pd.DataFrame({"a": [1, 2]}, INDEX))
    column = pa.array(ah.as_pandas(table)["a"])
    chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    assert chunk.buffers()[1].address == table["a"].chunk(0).buffers()[1].address
