"""Test the types of the Series and frames that `as_pandas` returns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

VALUES = np.array([1.5, np.nan, 3.0])
DENSE = {
    "float64": VALUES,
    "float32": VALUES.astype("f4"),
    "float16": VALUES.astype("f2"),
    "complex128": VALUES + 1j,
    "int8": np.arange(3, dtype="i1"),
    "uint64": np.arange(3, dtype="u8"),
    "bool": np.array([True, False]),
    "times": np.array([0, "NaT"], "M8[ns]"),
    "durations": np.array([5, "NaT"], "m8[ms]"),
    "no elements": np.zeros(0),
    "reversed": VALUES[::-1],
}


@pytest.mark.parametrize("make", [lambda a: a, ah.asarray, lambda a: memoryview(a) if a.dtype.kind in "bif" else a])
@pytest.mark.parametrize("name", DENSE)
def test_series_have_the_dtype_and_memory_of_the_ndarray(name, make):
    values = DENSE[name]
    for copy in (False, True, None):
        made = ah.as_pandas(make(values), copy=copy)
        pd.testing.assert_series_equal(made, pd.Series(values))
        assert np.shares_memory(made.to_numpy(), values) == (copy is not True and len(values) > 0)
    assert ah.convert(values, "pandas").isna().tolist() == pd.Series(values).isna().tolist()


def test_dates_require_a_copy():
    days = np.array(["2020-01-01", "NaT"], "M8[D]")
    with pytest.raises(ah.Refusal, match=r"^pandas: elements of datetime64\[D\] ") as raised:
        ah.as_pandas(days, copy=False)
    assert raised.value.call == "arrayhub.as_pandas(x, copy=True)"
    for copy in (True, None):
        pd.testing.assert_series_equal(ah.as_pandas(days, copy=copy), pd.Series(days))


def test_matrix_is_exported_as_a_frame_on_its_memory():
    rows = np.arange(6.0).reshape(3, 2)
    frame = ah.as_pandas(rows)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(rows))
    assert np.shares_memory(frame.to_numpy(), rows)
    assert not np.shares_memory(ah.as_pandas(rows, copy=True).to_numpy(), rows)
    assert isinstance(ah.as_pandas(np.zeros((2, 2, 2))), pd.Series)


def test_fields_of_records_become_columns_with_numpy_dtypes():
    records = np.array([(1, np.nan, True), (2, 1.5, False)], "i4,f8,?")
    frame = ah.as_pandas(records, copy=False)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(records))
    assert np.shares_memory(frame["f1"].to_numpy(), records)
    rows = ah.as_pandas([{"a": 1.0, "b": "u"}, {"a": float("nan"), "b": None}])
    assert rows["a"].dtype == "f8" and rows["a"].isna().tolist() == rows["b"].isna().tolist() == [False, True]


COLUMNS = [
    lambda values: pa.array(values),
    lambda values: pa.chunked_array([values[:1], values[1:]]),
    lambda values: pl.Series(values),
    lambda values: ah.asnested(values),
    lambda values: ah.asnested(pl.Series(values)),
]


@pytest.mark.parametrize("make", COLUMNS)
def test_arrow_columns_have_arrow_dtypes_with_and_without_missing_values(make):
    for values in ([1.5, 2.5], [1.5, None]):
        assert ah.as_pandas(make(values)).dtype == pd.ArrowDtype(pa.float64())


OF_PANDAS = {
    "numpy": pd.Series([1.5, np.nan], index=["a", "b"], name="n"),
    "masked": pd.Series([1, None], dtype="Int64"),
    "masked booleans": pd.Series([True, None], dtype="boolean"),
    "arrow": pd.Series([1, None], dtype="int64[pyarrow]"),
    "strings": pd.Series(["a", None]),
    "categories": pd.Series(pd.Categorical(["a", "b"], ordered=True)),
    "objects": pd.Series([[1], {2: 3}]),
    "time zones": pd.Series(pd.date_range("2020", periods=2, tz="UTC")),
    "a frame": pd.DataFrame({"a": [1, 2], "b": pd.array([1, None])}, index=["x", "y"]),
}


@pytest.mark.parametrize("name", OF_PANDAS)
def test_pandas_objects_are_returned_unchanged(name):
    data = OF_PANDAS[name]
    equal = pd.testing.assert_frame_equal if data.ndim == 2 else pd.testing.assert_series_equal
    for copy in (False, None):
        assert ah.as_pandas(data, copy=copy) is ah.convert(data, "pandas", copy=copy) is data
    copied = ah.as_pandas(data, copy=True)
    assert copied is not data
    equal(copied, data)
    assert ah.adapt("pandas")(lambda x: x is data)(data)


def test_copy_of_a_series_has_its_own_memory():
    for series in (pd.Series([1.5, 2.5], [5, 7], kind) for kind in ("float64", "double[pyarrow]", "Float64")):
        for x, dtype in ((x, dtype) for x in (series, series.to_frame()) for dtype in (None, "f8")):
            made = ah.as_pandas(x, copy=True, dtype=dtype).squeeze()
            assert made.index.equals(series.index) and made.index is not x.index and made.tolist() == [1.5, 2.5]
            assert not np.shares_memory(ah.as_numpy(made), ah.as_numpy(series))
    with pytest.raises(TypeError, match="as_pandas: copy is 'perhaps'"):
        ah.as_pandas(series, copy="perhaps")


@pytest.mark.parametrize("make", [pd.Index, lambda values: pd.array(values, "Int64"), pd.Categorical])
def test_pandas_indexes_and_arrays_become_series_of_their_dtype(make):
    values = make([1, 2])
    pd.testing.assert_series_equal(ah.as_pandas(values), pd.Series(values))
    pd.testing.assert_series_equal(ah.as_pandas(values, copy=True), pd.Series(values))
    assert ah.as_pandas(pd.Index([1], name="n")).name == "n"


def test_copy_false_shares_pandas_data_except_validity():
    pandas = pytest.importorskip("pandas")
    times = pandas.Series(pandas.date_range("2020", periods=2, tz="UTC"))
    numbers = pandas.Series([1, None], dtype="Int64")
    for x in (times, numbers, pandas.DataFrame({"t": times, "n": numbers}), numbers.array):
        assert ah.asnested(x, copy=False).to_list() == ah.asnested(x).to_list()
        assert ah.explain(x, "arrow").verdicts[0].verdict == "zero-copy"


POINT = [("x", "i1"), ("y", "f8")]
WITH_RECORDS = {
    "only a record": np.array([((1, 2.5),)], [("p", POINT)]),
    "a record and a number": np.array([((1, 2.5), 3), ((4, 5.5), 6)], [("p", POINT), ("n", "i4")]),
    "a record and a string": np.array([((1, 2.5), "u")], [("p", POINT), ("s", "U3")]),
    "two levels": np.array([(((1, 2.5), 3),)], [("q", [("p", POINT), ("n", "i4")])]),
    "rows": np.array([(1, [2.5, 3.5])], [("n", "i4"), ("r", "f8", 2)]),
}


@pytest.mark.parametrize("to", ["as_pandas", "convert", "like", "explain"])
@pytest.mark.parametrize("records", WITH_RECORDS.values(), ids=WITH_RECORDS)
def test_fields_that_are_records_become_columns_of_structs(records, to):
    calls = {
        "as_pandas": lambda: ah.as_pandas(records, copy=True),
        "convert": lambda: ah.convert(records, pd.DataFrame, copy=True),
        "like": lambda: ah.like(records, pd.DataFrame(), copy=True),
        "explain": lambda: eval(ah.explain(records, to="pandas").call, {"arrayhub": ah, "x": records}),
    }
    frame = calls[to]()
    expected = ah.asnested(records, copy=True)
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == list(records.dtype.names)
    assert pa.Table.from_pandas(frame).to_pylist() == expected.to_list()
