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
    assert to == "arrow" or names_of(ah.convert(given, to, copy=None)) == ["a", "b"]

    @ah.adapt(to, labels=True)
    def same(table):
        seen.extend(names_of(table))
        return table

    result = same(given)
    assert seen == ["a", "b"]
    pd.testing.assert_frame_equal(result, given)
    assert given.index is not None and list(given.columns) == ["a", "b"]


def test_result_keeps_its_column_names():
    given = frame(INDEXES["strings"])
    adapted = ah.adapt("polars", labels=True)
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
    result = ah.adapt("pandas", labels=True)(RECORDS[library])(given)
    pd.testing.assert_frame_equal(result, given[["b", "a"]])


def test_column_names_that_are_not_strings_are_restored():
    given = pd.DataFrame({0: [1.0, 2.0], 1: [3.0, 4.0]})
    adapted = ah.adapt("polars", labels=True)
    pd.testing.assert_frame_equal(adapted(lambda t: t)(given), given, check_column_type=False)
    assert adapted(lambda t: t.select("1"))(given).columns.tolist() == [1]
    assert adapted(lambda s: s.head(1))(pd.Series([1.0, 2.0], name=("a", 1))).name == ("a", 1)
    levels = pd.MultiIndex.from_tuples([("p", 1), ("q", 2)], names=["u", "v"])
    for columns in (levels, pd.Index([b"p", b"q"]), pd.RangeIndex(2, name="k")):
        given = pd.DataFrame([[1.0, 2.0]], columns=columns)
        for function in (
            adapted(lambda t: t * 2),
            ah.adapt("arrow", labels=True)(lambda t: ah.as_arrow(ah.as_polars(t) * 2)),
        ):
            pd.testing.assert_frame_equal(function(given), given * 2)


CALLERS = {"polars": lambda: pl.DataFrame({"k": [1, 1, 2], "v": [1.0, 2.0, 3.0]})}
CALLERS["pyarrow"] = lambda: pa.table(CALLERS["polars"]())
CALLERS["batch"] = lambda: CALLERS["pyarrow"]().to_batches()[0]


@pytest.mark.parametrize("caller", CALLERS)
def test_named_index_levels_of_pandas_results_become_columns(caller):
    given = CALLERS[caller]()
    adapted = ah.adapt("pandas", labels=True)
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
        back = ah.adapt(to, labels=True)(lambda t: t)(given)
        pd.testing.assert_frame_equal(back[["text", "number", "arrow"]], given[["text", "number", "arrow"]])
        assert back["level"].tolist() == given["level"].tolist() and back["level"].dtype == "category"
    shifted = ah.adapt("polars", labels=True)(lambda t: t.with_columns(pl.col("number").shift(1)))(given)
    pd.testing.assert_series_equal(shifted["number"], given["number"].shift(1))


SHAPED = {
    "pandas": pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="n"),
    "pandas frame": pd.DataFrame(np.eye(3), index=list("abc"), columns=list("xyz")),
    "pandas on arrow": pd.Series([1.0, 2.0, 3.0], index=list("abc"), dtype="double[pyarrow]"),
    "polars": pl.Series("n", [1.0, 2.0, 3.0]),
    "polars frame": pl.DataFrame(np.eye(3), schema=list("xyz")),
    "pyarrow": pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}),
}


def rearrange(x):
    return np.quantile(x, [0, 0.5, 1]) if x.ndim == 1 else x[::-1]


@pytest.mark.parametrize("name", SHAPED)
def test_results_have_labels_only_on_request_and_of_the_shape_of_the_argument(name):
    given, is_pandas = SHAPED[name], name.startswith("pandas")
    result = ah.adapt("numpy")(rearrange)(given)
    assert type(result) is (np.ndarray if is_pandas else type(given))
    assert ah.as_numpy(result, copy=None).tolist() == rearrange(ah.as_numpy(given, copy=None)).tolist()
    if not is_pandas:
        defaults = {"polars frame": ["column_0", "column_1", "column_2"], "pyarrow": ["0", "1"]}
        assert names_of(result) == defaults[name] if result.shape[1:] else result.name == ""
    kept = ah.adapt("numpy", labels=True)(rearrange)(given)
    assert type(kept) is type(given)
    if is_pandas:
        assert kept.index is given.index or kept.index.equals(given.index)
        assert kept.ndim == 2 or (kept.name, kept.dtype) == (given.name, given.dtype)
        assert type(ah.adapt("numpy", labels=True)(lambda x: x[1:])(given)) is np.ndarray
    if kept.shape[1:]:
        assert names_of(kept) == names_of(given)


@pytest.mark.parametrize("to", ["arrow", "awkward"])
def test_results_without_a_stated_shape_have_labels_on_request(to):
    double = ah.adapt(to, labels=True)(lambda x: ah.like(2 * ah.as_numpy(x, copy=None), x))
    pd.testing.assert_series_equal(double(SHAPED["pandas"]), SHAPED["pandas"] * 2)
    text = ah.adapt(to, labels=True)(lambda x: ah.convert(["u", None, "w"], to))(SHAPED["pandas"])
    assert text.index.tolist() == ["a", "b", "c"]
    matrix = ah.adapt("awkward", labels=True)(lambda x: ah.as_awkward(np.eye(3)))(SHAPED["pandas frame"])
    pd.testing.assert_frame_equal(matrix, SHAPED["pandas frame"])
    index = ah.adapt("numpy", labels=True)(np.negative)(pd.Index([1, 2], dtype="int64[pyarrow]", name="n"))
    assert index.equals(pd.Index([-1, -2], dtype="int64[pyarrow]")) and index.name == "n"


def test_results_for_pandas_are_the_functions_own_numpy_arrays():
    masked = ah.adapt("numpy")(lambda x: np.ma.masked_less(x, 2))(SHAPED["pandas"])
    assert masked.tolist() == [None, 2, 3]
    assert ah.adapt("numpy")(lambda x: x.astype(object))(SHAPED["pandas"]).dtype == object
    assert ah.adapt("numpy")(lambda x: np.asarray(x.sum()))(ah.asnested([1, 2])) == 3
    ends = ah.adapt(ah.NestedArray, labels=True)(lambda x: x[:2])(SHAPED["pandas frame"])
    assert ends.columns.tolist() == ["x", "y", "z"]
    assert type(ah.adapt(pl.LazyFrame)(lambda t: t)(SHAPED["pandas frame"])) is pl.LazyFrame


def test_labels_of_xarray_and_arrayhub_are_kept_on_request():
    xr = pytest.importorskip("xarray")
    given = xr.DataArray(np.arange(3.0), dims="t", coords={"t": [10, 20, 30]}, name="n")
    backwards, labelled = [ah.adapt("numpy", labels=labels)(lambda x: x[::-1]) for labels in (False, True)]
    assert type(backwards(given)) is np.ndarray and backwards(given).tolist() == [2, 1, 0]
    assert labelled(given).identical(given.copy(data=given.values[::-1]))
    assert type(ah.adapt("numpy", labels=True)(lambda x: x[1:])(given)) is np.ndarray
    assert type(backwards(given.variable)) is np.ndarray and labelled(given.variable).dims == ("t",)
    named = ah.zeros((2, 3), dims=("x", "y"))
    assert backwards(named).dims is None and labelled(named).dims == ("x", "y")


def test_tables_get_the_default_index_unless_labels_are_requested():
    given = frame(INDEXES["strings"])
    result = ah.adapt("polars")(lambda t: t.sort("a", descending=True))(given)
    pd.testing.assert_frame_equal(result, pd.DataFrame({"a": [2.0, 1.0], "b": [4, 3]}))


def labelled_pairs():
    xr = pytest.importorskip("xarray")
    values, square = [1.0, 2.0, 3.0], np.eye(2)
    return {
        "Series": [pd.Series(values, order) for order in ([0, 1, 2], [2, 1, 0])],
        "Series of times": [pd.Series(values, pd.date_range(day, periods=3)) for day in ("2020-01-01", "2021-01-01")],
        "index of frames": [pd.DataFrame(square, index=order) for order in (["a", "b"], ["b", "a"])],
        "columns of frames": [pd.DataFrame(square, columns=order) for order in (["a", "b"], ["b", "a"])],
        "Series and frame": [pd.DataFrame(square, index=["a", "b"]), pd.Series([1.0, 2.0], ["b", "a"])],
        "names of dimensions": [xr.DataArray(square, dims=("x", "y")), xr.DataArray([1.0, 2.0], dims="z")],
        "columns of polars": [pl.DataFrame(square, schema=order) for order in (["a", "b"], ["b", "a"])],
        "columns of tables": [pa.table([[1.0], [2.0]], names=order) for order in (["a", "b"], ["b", "a"])],
        "polars and pandas": [pl.DataFrame(square, schema=["a", "b"]), pd.DataFrame(square, columns=["b", "a"])],
        "coords": [xr.DataArray(values, dims="t", coords={"t": order}) for order in ([0, 1, 2], [2, 1, 0])],
        "dims": [xr.DataArray(square, dims=order) for order in (("x", "y"), ("y", "x"))],
        "variables": [xr.Variable(order, square) for order in (("x", "y"), ("y", "x"))],
        "pandas and xarray": [
            pd.Series(values, [0, 1, 2]), xr.DataArray(values, dims="t", coords={"t": [2, 1, 0]}),
        ],
        "USMArray": [ah.zeros((2, 2), dims=order) for order in (("x", "y"), ("y", "x"))],
    }  # fmt: skip


@pytest.mark.parametrize("labels", [False, True])
def test_arguments_with_different_labels_raise(labels):
    add = ah.adapt("numpy", labels=labels)(lambda a, b: a + b)
    for first, second in labelled_pairs().values():
        for one, two in ((first, second), (second, first)):
            with pytest.raises(ValueError, match=r"labels of dimension \d of a \(.*\) and .* \d of b \(.*\) differ"):
                add(one, two)
            with pytest.raises(ValueError, match="of a .* and .* of b .* differ"):
                add(one, b=two)
        assert np.shape(add(first, first)) == np.shape(add(ah.as_numpy(first, copy=None), second))


def test_arguments_with_equal_or_unrelated_labels_are_accepted():
    join = ah.adapt("polars")(lambda a, b: a.join(b, on="k"))
    joined = join(pd.DataFrame({"k": [1, 2], "v": [3, 4]}), pd.DataFrame({"k": [1, 2], "w": [5, 6]}))
    assert joined.to_dict("list") == {"k": [1, 2], "v": [3, 4], "w": [5, 6]}
    dot = ah.adapt("numpy")(lambda x, w: x @ w)
    matrix = pd.DataFrame(np.eye(2), index=["s", "t"], columns=["a", "b"])
    for labels in (["a", "b"], ["s", "t"]):  # of the columns, and of the rows, as y for X of the same length
        assert dot(matrix, pd.Series([1.0, 2.0], labels)).tolist() == [1, 2]
    wide = pd.DataFrame(np.ones((2, 3)), ["a", "b"])
    assert dot(pd.Series([1.0, 2.0], ["a", "b"]), wide).tolist() == [3, 3, 3]
    for axis, series in enumerate([pd.Series([1.0, 2.0], ["b", "a"]), pd.Series([1.0, 2.0, 3.0], ["u", "v", "w"])]):
        with pytest.raises(ValueError, match=f"dimension {axis} of x .* and dimension 0 of w .* differ"):
            dot(wide, series)
    convolve = ah.adapt("numpy")(np.convolve)
    assert convolve(pd.Series([1.0, 2.0], [5, 6]), pd.Series([1.0])).tolist() == [1, 2]
    joined = ah.adapt("numpy")(np.concatenate)([pd.Series([1.0], [5]), pd.Series([2.0], [6])])
    assert type(joined) is np.ndarray and joined.tolist() == [1, 2]
    aligned = ah.adapt("pandas")(lambda a, b: a + b)(pd.Series([1, 2], [0, 1]), pd.Series([10, 20], [1, 0]))
    assert aligned.to_dict() == {0: 21, 1: 12}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 2, [6, 2, 4]),
        (lambda x: x.astype(str), ["3", "1", "2"]),
        (lambda x: x > 1, [True, False, True]),
    ],
)
def test_results_for_an_index_are_an_index_or_a_frame_of_records(function, expected):
    index = pd.Index([3, 1, 2], name="n")
    made = ah.adapt("numpy", labels=True)(function)(index)
    assert isinstance(made, pd.Index) and made.name == "n" and made.tolist() == expected
    assert type(ah.adapt("numpy")(function)(index)) is np.ndarray
    records = np.array([(1, 2.0)], dtype=[("p", "i4"), ("q", "f8")])
    for labels in (False, True):
        made = ah.adapt("numpy", labels=labels)(lambda x: records)(index)
        assert isinstance(made, pd.DataFrame) and list(made.columns) == ["p", "q"]
    with pytest.raises(ah.Refusal, match="the result: pandas.Index: elements of float16"):
        ah.adapt("numpy", labels=True)(lambda x: x.astype("f2"))(index)


def test_labels_of_a_converted_argument_are_compared_with_an_own_argument():
    """pandas aligns the index of its own Series, but not the coords of a converted DataArray."""
    xarray = pytest.importorskip("xarray")
    add = ah.adapt("pandas")(lambda a, b: a + b)
    series, array = pd.Series([1.0, 2.0]), xarray.DataArray([1.0, 2.0], dims="x", coords={"x": [1, 0]})
    with pytest.raises(
        ValueError, match=r"the labels of dimension 0 of a \(pandas.Series\) and .* 0 of b \(xarray.DataArray\)"
    ):
        add(series, array)
    assert add(series, array.assign_coords(x=[0, 1])).tolist() == [2, 4]
    assert add(series, series[::-1]).tolist() == [2, 4]


PLAIN = {
    "numpy": lambda shape: np.ones(shape),
    "torch": lambda shape: pytest.importorskip("torch").ones(shape),
    "arrayhub": lambda shape: ah.ones(shape),
    "polars": lambda shape: pl.Series(np.ones(shape)),
    "pyarrow": lambda shape: pa.array(np.ones(shape)),
}


@pytest.mark.parametrize("library", PLAIN)
def test_default_labels_of_a_converted_array_are_not_aligned_with_other_labels(library):
    xarray = pytest.importorskip("xarray")
    add, make = ah.adapt("pandas")(lambda a, b: a + b), PLAIN[library]
    series = pd.Series([1.0, 2.0], index=["u", "v"])
    differ = r"the labels of dimension 0 of {} differ"
    with pytest.raises(ValueError, match=differ.format(r"a \(pandas.Series\) and .* 0 of b \(.* as pandas.Series\)")):
        add(series, make(2))
    with pytest.raises(ValueError, match=differ.format(r"a \(.* as pandas.Series\) and .* 0 of b \(pandas.Series\)")):
        add(make(2), b=series)
    assert add(series.reset_index(drop=True), make(2)).tolist() == [2, 3]
    assert ah.adapt("pandas")(lambda a, b: a * b.sum())(series, make(3)).to_dict() == {"u": 3, "v": 6}
    array = xarray.DataArray([1.0, 2.0], dims="x")
    with pytest.raises(ValueError, match=r"a \(xarray.DataArray\) and dimension 0 of b \(.* as xarray.DataArray\)"):
        ah.adapt("xarray")(lambda a, b: a + b)(array, make(2))
    assert ah.adapt("xarray")(lambda a, b: a + b)(array.rename(x="dim_0"), make(2)).values.tolist() == [2, 3]


def test_tables_without_an_index_are_passed_beside_a_frame_with_an_index():
    merge = ah.adapt("pandas")(lambda a, b: a.merge(b, on="k"))
    first = pd.DataFrame({"k": [1, 2], "v": [3, 4]}, index=["s", "t"])
    for second in (pl.DataFrame({"k": [2, 1], "w": [5, 6]}), pa.table({"k": [2, 1], "w": [5, 6]})):
        assert merge(first, second).to_dict("list") == {"k": [1, 2], "v": [3, 4], "w": [6, 5]}
    with pytest.raises(ValueError, match="the labels of dimension 1 of a .* and dimension 1 of b .* differ"):
        ah.adapt("pandas")(lambda a, b: a + b)(pd.DataFrame({"k": [1.0], "v": [2.0]}), np.ones((1, 2)))
