"""Ordered categories keep their order in polars, and when they return to pandas and pyarrow."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

LEVELS = ["lo", "mid", "hi"]
ENUM = pl.Enum(LEVELS)
ORDERED = pd.Series(pd.Categorical(["hi", "lo", None, "mid"], LEVELS, ordered=True), name="level")


@pytest.mark.parametrize("copy", [False, True, None])
@pytest.mark.parametrize(
    "make", [lambda s: s, pa.array, ah.asnested, lambda s: s.array], ids=["pandas", "pyarrow", "arrayhub", "array"]
)
def test_ordered_categories_become_an_enum(make, copy):
    series = ah.as_polars(make(ORDERED), copy=copy)
    assert series.dtype == ENUM and series.to_list() == ["hi", "lo", None, "mid"]
    assert series.sort(nulls_last=True).to_list() == [*LEVELS, None] and series.max() == "hi"


def test_ordered_categories_in_a_table_become_an_enum():
    frame = pd.DataFrame({"level": ORDERED, "other": ORDERED.cat.as_unordered(), "n": range(4)})
    made = ah.as_polars(frame)
    assert made.dtypes == [ENUM, pl.Categorical, pl.Int64]
    assert ah.as_polars(pa.table(frame))["level"].dtype == ENUM


def test_order_survives_a_round_trip_through_polars():
    series = ah.as_polars(ORDERED)
    assert ah.as_arrow(series).type.ordered and ah.as_pandas(series).dtype.pyarrow_dtype.ordered
    pd.testing.assert_series_equal(ah.as_arrow(series).to_pandas().rename("level"), ORDERED)
    adapted = ah.adapt("polars", copy=None)
    expected = ORDERED.sort_values(na_position="first", ignore_index=True)
    pd.testing.assert_series_equal(adapted(lambda s: s.sort())(ORDERED), expected)
    result = adapted(lambda t: t.sort("level"))(ORDERED.to_frame())
    pd.testing.assert_frame_equal(result, expected.to_frame())


def dictionary(categories, ordered=True):
    return pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), categories, ordered=ordered)


UNCHANGED = {
    "unordered categories": (dictionary(["a", "b"], False), pl.Categorical),
    "equal categories": (dictionary(["a", "a"]), pl.Categorical),
    "numbers": (dictionary([3, 1]), pl.Int64),
    "different chunks": (pa.chunked_array([dictionary(["a", "b"]), dictionary(["b", "a"])]), pl.Categorical),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unordered_and_numeric_categories_do_not_become_an_enum(name):
    column, dtype = UNCHANGED[name]
    series = ah.as_polars(column)
    assert series.dtype == dtype and series.to_list() == column.to_pylist()


def test_chunks_with_equal_categories_become_an_enum():
    column = pa.chunked_array([dictionary(["a", "b"]), dictionary(["a", "b"])])
    series = ah.as_polars(column)
    assert series.dtype == pl.Enum(["a", "b"]) and series.to_list() == ["a", "b", "a", "b"]
