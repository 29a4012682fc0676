"""Exports keep the name of a Series and the index of pandas objects."""

import datetime
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from optional import optional

import arrayhub as ah

na = optional("nanoarrow")

INDEX = pd.Index(["x", "y"], name="row")


@pytest.mark.parametrize("values", [[1.0, 2.0], ["u", "v"], [True, None]])
@pytest.mark.parametrize("make", [pd.Series, lambda values, name: pl.Series(name, values)])
def test_a_series_keeps_its_name(make, values):
    series = make(values, name="speed")
    assert ah.as_polars(series).name == "speed"
    assert ah.as_pandas(series).name == "speed"


SERIES = {
    "pandas": pd.Series([1.5, 2.5, 3.5], name="speed"),
    "pandas with missing values": pd.Series([1, None, 3], dtype="Int64", name="speed"),
    "pandas on Arrow": pd.Series(["u", "v", "w"], dtype=pd.ArrowDtype(pa.string()), name="speed"),
    "a pandas index": pd.Index([1, 2, 3], name="speed"),
    "polars": pl.Series("speed", [1.5, 2.5, 3.5]),
    "polars strings": pl.Series("speed", ["u", "a string of more than twelve bytes", None]),
    "polars lists": pl.Series("speed", [[1], [2, 3], None]),
    "polars records": pl.Series("speed", [{"a": 1}, {"a": 2}, None]),
    "polars chunks": pl.Series("speed", [1, 2]).append(pl.Series([3])),
}


@pytest.mark.parametrize("series", SERIES.values(), ids=SERIES)
def test_nested_arrays_keep_the_name_of_a_series(series):
    """test_asnested_roundtrip.py tests copies, slices, pickles and chunks of named arrays."""
    for x in (ah.asnested(series), ah.asnested(ah.asnested(series)[1:], copy=True)):
        assert na.c_schema(x).name == "speed"
        assert all(na.c_schema(chunk).name == "speed" for chunk in x.chunks)
        assert ah.as_pandas(x, copy=None).name == "speed"
        made = ah.as_polars(x, copy=None)
        assert isinstance(made, pl.DataFrame) or made.name == "speed"
        assert pl.Series(x).name == "speed"


def test_nested_arrays_keep_names_that_are_not_strings():
    x = ah.asnested(pd.Series([1, 2], name=("a", 1)))
    assert ah.as_pandas(x).name == ("a", 1) and ah.as_polars(x).name == "('a', 1)"
    assert ah.as_pandas(pickle.loads(pickle.dumps(x))[1:]).name == ("a", 1)
    assert ah.as_pandas(ah.asnested(pd.Series([1], name=0))).name == 0


def test_name_is_not_part_of_the_type():
    x, y = ah.asnested(pl.Series("a", [1])), ah.asnested(pl.Series("b", [2]))
    assert x.type == y.type and "a" not in str(x.type)
    assert pa.array(x, type=pa.int64()).to_pylist() == [1]
    series = pl.Series("a", [1]).append(pl.Series("b", [2]))
    assert ah.as_polars(ah.asnested(series)).name == "a"
    assert ah.as_arrow(ah.asnested(pl.Series("a", [[1]]))).type == pa.large_list(pa.int64())


def test_arrays_with_an_extension_type_keep_their_name():
    values = pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array(["1", None], pa.string_view()))
    x = ah.asnested(pd.Series(values, dtype=pd.ArrowDtype(values.type), name="j"))
    for y in (x, ah.asnested(x, copy=True), pickle.loads(pickle.dumps(x))):
        assert y.extension == ("arrow.json", b"") and na.c_schema(y).name == "j"


@pytest.mark.parametrize("copy", [False, True, None])
def test_a_pandas_series_keeps_its_index(copy):
    series = pd.Series([1.5, 2.5], INDEX, name=("a", 1))
    made = ah.as_pandas(series, copy=copy)
    assert made.index.equals(INDEX) and made.index.name == "row" and made.name == ("a", 1)
    assert ah.as_polars(series, copy=copy).name == "('a', 1)"


def test_series_without_a_name_is_exported_without_one():
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


LABELS = {
    "numbers": ([1, 2], [1, 2]),
    "fractions": ([0.5, 1.5], [0.5, 1.5]),
    "times": (pd.date_range("2020", periods=2), list(pd.date_range("2020", periods=2))),
    "booleans": ([True, False], ["True", "False"]),
    "nullable booleans": (pd.Index([True, False], dtype="boolean"), ["True", "False"]),
    "categories": (pd.CategoricalIndex(["y", "x"]), ["y", "x"]),
    "intervals": (pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    "periods": (pd.period_range("2020-01-01", periods=2), ["2020-01-01", "2020-01-02"]),
    "durations": (pd.to_timedelta([1, 2], unit="s"), ["0 days 00:00:01", "0 days 00:00:02"]),
    "dates": ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], ["2020-01-01", "2020-01-02"]),
    "times of day": ([datetime.time(1), datetime.time(2)], ["01:00:00", "02:00:00"]),
    "levels": (pd.MultiIndex.from_product([["a"], [True, False]]), [("a", "True"), ("a", "False")]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_columns_are_restored_or_texts(name):
    labels, expected = LABELS[name]
    frame = pd.DataFrame([[1, 2]], index=["r"], columns=labels)
    for given in (ah.asnested(frame), pa.Table.from_pandas(frame)):
        made = ah.as_pandas(given)
        assert made.columns.tolist() == expected and made.index.tolist() == ["r"] and made.values.tolist() == [[1, 2]]
