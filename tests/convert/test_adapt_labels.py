"""Test how `adapt` keeps the index, the column names and the column types of data frames."""

import numpy as np
import pytest

import arrayhub as ah

pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")


def frame(index):
    return pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}, index=index)


INDEXES = {
    "default": None,
    "range": pd.RangeIndex(5, 7),
    "strings": pd.Index(["u", "v"]),
    "a name": pd.Index([3, 1], name="key"),
    "levels": pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["i", None]),
}


def names_of(table):
    if isinstance(table, pa.StructArray):
        return [field.name for field in table.type]
    return getattr(table, "column_names", None) or list(getattr(table, "fields", None) or table.columns)


@pytest.mark.parametrize("to", ["polars", "arrow", "awkward"])
@pytest.mark.parametrize("name", INDEXES)
def test_index_is_not_passed_to_the_function_but_restored_on_the_result(name, to):
    if to == "awkward":
        pytest.importorskip("awkward")
    given, seen = frame(INDEXES[name]), []

    @ah.adapt(to, copy=None)
    def same(table):
        seen.extend(names_of(table))
        return table

    result = same(given)
    assert seen == ["a", "b"]
    pd.testing.assert_frame_equal(result, given)
    assert given.index is not None and list(given.columns) == ["a", "b"]


@pytest.mark.parametrize("convert", [ah.as_polars, ah.as_awkward], ids=["polars", "awkward"])
def test_as_polars_and_as_awkward_drop_the_index(convert):
    if convert is ah.as_awkward:
        pytest.importorskip("awkward")
    table = convert(frame(INDEXES["a name"]), copy=None)
    assert names_of(table) == ["a", "b"]
    table = convert(frame(INDEXES["a name"]).reset_index(), copy=None)
    assert names_of(table) == ["key", "a", "b"]


def test_result_keeps_its_column_names():
    given = frame(INDEXES["strings"])
    adapted = ah.adapt("polars", copy=None)
    renamed = adapted(lambda t: t.rename({"a": "z"}))(given)
    pd.testing.assert_frame_equal(renamed, given.rename(columns={"a": "z"}))
    pd.testing.assert_frame_equal(adapted(lambda t: t.select("b", "a"))(given), given[["b", "a"]])
    more = adapted(lambda t: t.with_columns(c=pl.col("a") * 2))(given)
    pd.testing.assert_frame_equal(more, given.assign(c=[2.0, 4.0]))
    series = adapted(lambda t: t["a"].alias("q"))(given)
    pd.testing.assert_series_equal(series, given["a"].rename("q"))
    fewer = adapted(lambda t: t.head(1))(given)
    assert list(fewer.columns) == ["a", "b"] and fewer.index.tolist() == [0]


RECORDS = {
    "awkward": lambda x: ah.as_awkward(x)[["b", "a"]],
    "pyarrow": lambda x: ah.as_arrow(ah.as_polars(x).select("b", "a")),
    "arrayhub": lambda x: ah.asnested(ah.as_polars(x).select("b", "a")),
    "numpy": lambda x: np.array([(3, 1.0), (4, 2.0)], [("b", "i8"), ("a", "f8")]),
}


@pytest.mark.parametrize("library", RECORDS)
def test_records_keep_their_field_names_as_columns(library):
    if library == "awkward":
        pytest.importorskip("awkward")
    given = frame(INDEXES["strings"])
    result = ah.adapt("pandas", copy=None)(RECORDS[library])(given)
    pd.testing.assert_frame_equal(result, given[["b", "a"]])


def test_column_names_that_are_not_strings_are_restored():
    given = pd.DataFrame({0: [1.0, 2.0], 1: [3.0, 4.0]})
    adapted = ah.adapt("polars", copy=None)
    pd.testing.assert_frame_equal(adapted(lambda t: t)(given), given, check_column_type=False)
    assert adapted(lambda t: t.select("1"))(given).columns.tolist() == [1]
    assert adapted(lambda s: s.head(1))(pd.Series([1.0, 2.0], name=("a", 1))).name == ("a", 1)


CALLERS = {"polars": lambda: pl.DataFrame({"k": [1, 1, 2], "v": [1.0, 2.0, 3.0]})}
CALLERS["pyarrow"] = lambda: pa.table(CALLERS["polars"]())
CALLERS["batch"] = lambda: CALLERS["pyarrow"]().to_batches()[0]


@pytest.mark.parametrize("caller", CALLERS)
def test_named_index_levels_of_pandas_results_become_columns(caller):
    given = CALLERS[caller]()
    adapted = ah.adapt("pandas", copy=None)
    sums = adapted(lambda t: t.groupby("k").sum())(given)
    ordered = adapted(lambda t: t.sort_values("v", ascending=False))(given)
    renamed = adapted(lambda t: t.rename(columns={"v": "w"}))(given)
    assert type(sums) is type(ordered) is type(renamed) is type(given)
    assert ah.asnested(sums).to_list() == [{"k": 1, "v": 3.0}, {"k": 2, "v": 3.0}]
    assert ah.asnested(ordered).to_list() == [{"k": 2, "v": 3.0}, {"k": 1, "v": 2.0}, {"k": 1, "v": 1.0}]
    assert names_of(renamed) == ["k", "w"]


def test_result_columns_have_the_types_of_the_argument():
    given = pd.DataFrame(
        {
            "text": ["x", None],
            "level": pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True),
            "number": [1.5, 2.5],
            "arrow": pd.Series([1, 2], dtype="int64[pyarrow]"),
        }
    )
    for to in ("polars", "arrow"):
        back = ah.adapt(to, copy=None)(lambda t: t)(given)
        pd.testing.assert_frame_equal(back[["text", "number", "arrow"]], given[["text", "number", "arrow"]])
        assert back["level"].tolist() == given["level"].tolist() and back["level"].dtype == "category"
    shifted = ah.adapt("polars", copy=None)(lambda t: t.with_columns(pl.col("number").shift(1)))(given)
    pd.testing.assert_series_equal(shifted["number"], given["number"].shift(1))


QUANTILES = {
    "pandas": (pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="n"), pd.Series([1.0, 2.0, 3.0])),
    "pandas frame": (
        pd.DataFrame(np.eye(3), index=list("abc"), columns=list("xyz")), pd.DataFrame(np.eye(3)[::-1]),
    ),
    "pandas on arrow": (
        pd.Series([1.0, 2.0, 3.0], index=list("abc"), dtype="double[pyarrow]"),
        pd.Series([1.0, 2.0, 3.0], dtype="double[pyarrow]"),
    ),
    "polars": (pl.Series("n", [1.0, 2.0, 3.0]), pl.Series([1.0, 2.0, 3.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTILES)
def test_labels_false_does_not_restore_the_index(name):
    given, expected = QUANTILES[name]

    def rearranged(x):
        return np.quantile(x, [0, 0.5, 1]) if x.ndim == 1 else x[::-1]

    without = ah.adapt("numpy", copy=None, labels=False)(rearranged)(given)
    assert without.equals(expected)
    if name.startswith("pandas"):
        pd.testing.assert_index_equal(without.index, pd.RangeIndex(3))
        kept = ah.adapt("numpy", copy=None)(rearranged)(given)
        assert kept.index.tolist() == ["a", "b", "c"]
    else:
        assert without.name == ""


def test_labels_false_drops_labels_of_xarray_and_arrayhub():
    xr = pytest.importorskip("xarray")
    given = xr.DataArray(np.arange(3.0), dims="t", coords={"t": [10, 20, 30]}, name="n")
    backwards = ah.adapt("numpy", labels=False)(lambda x: x[::-1])
    assert backwards(given).identical(xr.DataArray([2.0, 1.0, 0.0]))
    named = ah.zeros((2, 3), dims=("x", "y"))
    assert backwards(named).dims is None and ah.adapt("numpy")(lambda x: x[::-1])(named).dims == ("x", "y")


def test_labels_false_does_not_restore_the_index_of_tables():
    given = frame(INDEXES["strings"])
    result = ah.adapt("polars", copy=None, labels=False)(lambda t: t.sort("a", descending=True))(given)
    pd.testing.assert_frame_equal(result, pd.DataFrame({"a": [2.0, 1.0], "b": [4, 3]}))
