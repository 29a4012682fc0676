"""Tables of numbers are copied as matrices, and errors name the columns that cannot be converted."""

import tracemalloc

import awkward as ak
import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import arrayhub as ah

COLUMNS = {"a": [1, 2, 3], "b": [1.5, 2.5, 3.5]}
EXPECTED = [[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]]
TABLES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, masked": pd.DataFrame({name: pd.array(column) for name, column in COLUMNS.items()}),
    "pandas, on Arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": pd.DataFrame(COLUMNS, index=["x", "y", "z"]),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow in chunks": pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    "a record batch": pa.record_batch(COLUMNS),
    "awkward": ak.Array([dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]),
    "a dict": COLUMNS,
}
GAPS = {
    "pandas": pd.DataFrame({"a": pd.array([1, None]), "b": pd.array([None, 2.5])}),
    "pandas, on Arrow": pd.DataFrame({"a": [1, None], "b": [None, 2.5]}).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame({"a": [1, None], "b": [None, 2.5]}),
    "pyarrow": pa.table({"a": [1, None], "b": [None, 2.5]}),
    "awkward": ak.Array([{"a": 1, "b": None}, {"a": None, "b": 2.5}]),
    "a dict": {"a": [1, None], "b": pl.Series([None, 2.5])},
}  # fmt: skip


def each(tables):
    return pytest.mark.parametrize("table", tables.values(), ids=tables)


@each(TABLES)
def test_table_is_copied_as_a_matrix(table):
    for copy in (True, None):
        x = ah.asarray(table, copy=copy)
        assert x.shape == (3, 2) and x.dtype == np.float64 and x.flags.f_contiguous and x.tolist() == EXPECTED
        assert x.access == "readwrite"
    assert ah.as_numpy(table, copy=True).tolist() == EXPECTED
    tensor = ah.as_torch(table, copy=True)
    assert type(tensor) is torch.Tensor and tensor.tolist() == EXPECTED
    assert ah.asarray(table, copy=True, dtype="float32").dtype == np.float32
    with pytest.raises((BufferError, TypeError), match="copy=None|asnested"):
        ah.asarray(table, copy=False)


def test_long_and_wide_tables_are_copied_in_fortran_order():
    values = np.arange(2500 * 40).reshape(2500, 40)
    frame = pl.DataFrame({f"c{k}": values[:, k].astype("i4" if k % 3 else "f8") for k in range(40)})
    for made in (ah.as_numpy(frame, copy=True), ah.as_numpy(frame.to_arrow(), copy=None)):
        assert made.dtype == np.float64 and made.flags.f_contiguous and np.array_equal(made, values)


def test_columns_of_a_matrix_are_shared_with_a_frame():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    matrix = ah.as_numpy(frame, copy=True)
    made = ah.like(matrix, frame, copy=False)
    assert [ah.asarray(made[name]).ptr for name in made.columns] == [matrix[:, k].ctypes.data for k in range(2)]


@pytest.mark.parametrize("export", [ah.as_numpy, ah.as_torch])
def test_matrix_of_a_table_is_not_copied_again(export):
    frame = pl.DataFrame(np.zeros((100_000, 8)))
    export(frame, copy=True)
    tracemalloc.start()
    made = export(frame, copy=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    made[0, 0] = 1.0
    assert frame[0, 0] == 0.0 and peak < 1.5 * made.nbytes


@each(TABLES)
def test_dtype_casts_each_column(table):
    assert ah.asarray(table, dtype="int64").tolist() == [[1, 1], [2, 2], [3, 3]]
    assert ah.as_numpy(table, dtype="int8").tolist() == [[1, 1], [2, 2], [3, 3]]
    assert ah.as_torch(table, dtype=torch.float32).dtype == torch.float32
    assert ah.as_jax(table, dtype="float32").tolist() == EXPECTED
    assert ah.convert(table, "numpy", dtype="int64").tolist() == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("missing", [0, {"b": 0}])
def test_dtype_casts_each_column_with_missing_values(missing):
    table = {"a": [2**53 + 1, 2], "b": [1.5, None]}
    for x in (pa.table(table), pl.DataFrame(table), pd.DataFrame({"a": table["a"], "b": pd.array(table["b"])})):
        assert ah.as_numpy(x, dtype="int64", missing=missing).tolist() == [[2**53 + 1, 1], [2, 0]]
        assert ah.asarray(x, dtype="int64", missing=missing).tolist() == [[2**53 + 1, 1], [2, 0]]
    masked = ah.as_numpy(pa.table(table), dtype="int64", missing="mask")
    assert masked.tolist() == [[2**53 + 1, 1], [2, None]] and masked.dtype == np.int64


LARGE = {"a": [2**53 + 1, 1], "b": [1.5, 2.5]}
LARGE_TABLES = {
    "pandas": pd.DataFrame(LARGE),
    "polars": pl.DataFrame(LARGE),
    "pyarrow": pa.table(LARGE),
    "signed and unsigned": pd.DataFrame({"a": [2**53 + 1, 1], "b": np.array([1, 2], "u8")}),
    "complex": pd.DataFrame({"a": [2**53 + 1, 1], "b": [1j, 2j]}),
}


@each(LARGE_TABLES)
def test_integers_that_the_common_type_would_round_are_rejected(table):
    error = "column 'a': 9007199254740993 would be rounded to the common type (float64|complex128)"
    for convert in (ah.asarray, ah.as_numpy, ah.as_torch):
        with pytest.raises(OverflowError, match=error) as raised:
            convert(table, copy=True)
    rounded = eval(raised.value.call, {"arrayhub": ah, "x": table})
    assert rounded.dtype.kind in "fc" and rounded[:, 0].tolist() == [2**53, 1]
    with pytest.raises(OverflowError, match=f"^<lambda>: x: .*{error}"):
        ah.adapt("numpy", copy=None)(lambda x: x)(table)


def test_explain_says_that_a_table_may_be_refused():
    table = pa.table({"a": [1, 2], "b": [0.5, 1.5]})
    explained = ah.explain(table, to="numpy")
    assert explained.call == "arrayhub.as_numpy(x, copy=True)"
    assert "OverflowError if float64" in explained.verdicts[0].reason


LATE = {"a": np.array(["20000-01-01"], "M8[s]"), "b": np.array(["2000-01-01"], "M8[ns]")}
LONG = {"a": np.array([2**40], "m8[s]"), "b": np.array([1], "m8[ns]")}


@pytest.mark.parametrize("columns", [LATE, LONG], ids=["datetimes", "durations"])
@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_times_that_exceed_the_common_unit_are_rejected(make, columns):
    table = make(columns)
    error = r"column 'a': a time exceeds the range of the common type (datetime64|timedelta64)\[ns\]"
    for convert in (ah.asarray, ah.as_numpy):
        with pytest.raises(OverflowError, match=error) as raised:
            convert(table, copy=True)
    assert np.array_equal(eval(raised.value.call, {"arrayhub": ah, "x": table})["a"], columns["a"])
    with pytest.raises(OverflowError, match=error):
        ah.as_numpy(table, missing="mask", copy=True)
    with pytest.raises(OverflowError, match=error):
        ah.asnested(table).to_dense(copy=True)


def test_times_of_several_units_are_copied_in_the_finest_unit():
    seconds, milliseconds = np.array(["2000-01-01", "NaT"], "M8[s]"), np.array(["NaT", "2000-01-02"], "M8[ms]")
    x = ah.as_numpy(pd.DataFrame({"a": seconds, "b": milliseconds}), copy=True)
    assert x.dtype == "M8[ms]"
    assert np.array_equal(x, np.column_stack([seconds.astype("M8[ms]"), milliseconds]), equal_nan=True)


def test_large_integers_that_the_common_type_represents_are_copied():
    exact = pd.DataFrame({"a": [2**53, -(2**53), 2**60], "b": [0.5, 1.5, 2.5]})
    assert ah.as_numpy(exact, copy=True)[:, 0].tolist() == [2**53, -(2**53), 2**60]
    integers = pd.DataFrame({"a": [2**53 + 1], "b": [2**62 + 1]})
    assert ah.as_numpy(integers, copy=True).tolist() == [[2**53 + 1, 2**62 + 1]]


@each(TABLES)
def test_records_are_copied_as_a_matrix(table):
    x = ah.asnested(table, copy=True)
    matrix = x.to_dense(copy=True)
    assert matrix.tolist() == EXPECTED and matrix.flags.f_contiguous
    assert ah.as_torch(x, copy=True).tolist() == EXPECTED
    with jax.enable_x64(True):
        assert ah.as_jax(x, copy=True).tolist() == EXPECTED
    with pytest.raises(BufferError, match=r"separate arrays, .*Call x\.to_dense\(copy=True\)"):
        x.to_dense()


def test_numpy_records_are_copied_as_a_matrix():
    records = np.array([(1, 1.5), (2, 2.5)], [("a", "i4"), ("b", "f4")])
    x = ah.asnested(records).to_dense(copy=True)
    assert x.dtype == np.float64 and x.tolist() == [[1.0, 1.5], [2.0, 2.5]]


TYPES = [
    (["int8", "int32"], "int32"),
    (["int64", "uint64"], "float64"),
    (["bool", "int16"], "int16"),
    (["float32", "int8"], "float32"),
    (["bool", "bool"], "bool"),
]


@pytest.mark.parametrize(("kinds", "common"), TYPES)
def test_matrix_has_the_common_dtype_of_numpy(kinds, common):
    columns = {str(k): np.ones(2, kind) for k, kind in enumerate(kinds)}
    for table in (pa.table(columns), pl.DataFrame(columns), pd.DataFrame(columns)):
        x = ah.asarray(table, copy=True)
        assert x.dtype == common and x.tolist() == [[1, 1], [1, 1]]


def test_tables_without_rows_or_columns_have_the_right_shape():
    assert ah.asarray(pa.table({"a": pa.array([], pa.int8())}), copy=True).shape == (0, 1)
    assert ah.asnested([{}, {}]).to_dense(copy=True).shape == (2, 0)


def test_nan_of_pandas_is_kept_without_missing():
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [1, 2]})
    assert np.array_equal(ah.as_numpy(frame, copy=True), [[1, 1], [np.nan, 2]], equal_nan=True)
    assert np.array_equal(ah.as_numpy(frame, missing={"b": 0}), [[1, 1], [np.nan, 2]], equal_nan=True)


NAN = {
    "float64": pd.DataFrame({"i": [1, 2, 3], "f": [1.5, np.nan, 2.5]}),
    "float32": pd.DataFrame({"i": [1, 2, 3], "f": np.array([1.5, np.nan, 2.5], "f4")}),
    "nullable": pd.DataFrame({"i": [1, 2, 3], "f": pd.array([1.5, None, 2.5])}),
    "objects": pd.DataFrame({"i": [1, 2, 3], "f": np.array([1.5, None, 2.5], object)}),
}


@each(NAN)
def test_nan_of_pandas_is_a_missing_value(table):
    for source in (table, ah.asnested(table)):
        assert ah.as_torch(source, missing=0).tolist() == [[1.0, 1.5], [2.0, 0.0], [3.0, 2.5]]
        assert ah.as_torch(source, missing={"f": -1}).tolist() == [[1.0, 1.5], [2.0, -1.0], [3.0, 2.5]]
        _, mask = ah.as_torch(source, missing="mask", copy=True)
        assert mask.tolist() == [[False, False], [False, True], [False, False]]
        assert torch.isnan(ah.as_torch(source, missing="nan")).tolist() == mask.tolist()
    assert ah.as_torch(table["f"], missing=0).tolist() == [1.5, 0.0, 2.5]
    assert ah.as_numpy(table, missing="mask", copy=True).tolist() == [[1.0, 1.5], [2.0, None], [3.0, 2.5]]


def test_nat_of_pandas_is_a_missing_value():
    day, other = np.datetime64("2020-01-01", "us"), np.datetime64("2021-01-01", "us")
    frame = pd.DataFrame({"t": np.array([day, "NaT"], "M8[us]"), "u": np.array([day, day])})
    filled = ah.as_numpy(frame, missing=other)
    assert filled.dtype == "M8[us]" and np.array_equal(filled, [[day, day], [other, day]])
    assert ah.as_numpy(frame["t"], missing=other).tolist() == filled[:, 0].tolist()
    assert ah.as_numpy(frame, missing="mask", copy=True).mask.tolist() == [[False, False], [True, False]]
    lengths = pd.DataFrame({"d": np.array([5, "NaT"], "m8[us]")})
    assert ah.as_numpy(lengths, missing=np.timedelta64(0, "us")).astype(int).tolist() == [[5], [0]]


INDEXES = {
    "labels": {"index": ["x", "y"]},
    "numbers": {"index": [5, 6]},
    "a name": {"index": pd.Index([5, 6], name="key")},
    "two levels": {"index": pd.MultiIndex.from_tuples([(1, 2), (3, 4)], names=["k", None])},
    "a range": {},
    "a range with a name": {"index": pd.RangeIndex(5, 7, name="key")},
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_pandas_index_is_not_a_column(index):
    frame = pd.DataFrame({"a": pd.array([1, None]), "b": [3, 4]}, **index)
    for source in (frame, ah.asnested(frame), pa.Table.from_pandas(frame), ah.asnested(pa.Table.from_pandas(frame))):
        assert ah.as_torch(source, missing=0).tolist() == ah.as_numpy(source, missing=0).tolist() == [[1, 3], [0, 4]]
        with pytest.raises(ValueError, match="'key'; accepted: 'a', 'b'"):
            ah.as_torch(source, missing={"key": 0})
    table = pa.Table.from_pandas(frame[["b"]])
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert ah.as_torch(chunks, missing=0).tolist() == ah.as_torch(chunks, copy=True).tolist() == [[3], [4]]
    assert ah.asarray(table, copy=True).tolist() == [[3], [4]]
    assert ah.asnested(table).to_dense(copy=True).tolist() == [[3], [4]]


@pytest.mark.parametrize("metadata", [b"", b"[", b"3", b'{"index_columns": 3}', b'{"index_columns": [["a"]]}', b"\xff"])
def test_invalid_pandas_metadata_is_ignored(metadata):
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": metadata})
    assert ah.asarray(table, copy=True).tolist() == [[1], [2]]


MISFITS = {
    "strings": ({"a": [1, 2], "b": ["x", "y"]}, "column 'b'"),
    "lists": ({"a": [1, 2], "b": [[1], [2, 3]]}, "column 'b'"),
    "missing": ({"a": [1, 2], "b": [None, 2]}, "column 'b'"),
    "rows of two": ({"a": [1, 2], "b": [[1, 2], [2, 3]]}, r"column 'b': rows have shape \(2,\)"),
    "a time": ({"a": [1, 2], "b": np.array([1, 2], "M8[us]")}, "column 'b': elements are of dtype datetime64"),
    "records": ({"a": [1, 2], "b": [{"c": 1}, {"c": 2}]}, "column 'b'"),
}


@pytest.mark.parametrize(("columns", "says"), MISFITS.values(), ids=MISFITS)
def test_error_names_the_column_that_cannot_be_converted(columns, says):
    for table in (pa.table(columns), pl.DataFrame(columns), pa.table(columns).to_struct_array().chunk(0)):
        with pytest.raises((BufferError, TypeError, ValueError), match=says):
            ah.asarray(table, copy=True)
        with pytest.raises((BufferError, TypeError, ValueError), match=says):
            ah.as_torch(table, copy=True)


def test_error_names_the_pandas_column_that_cannot_be_converted():
    for column in (["x", "y"], pd.array([1, None]), pd.array([1, None], "int64[pyarrow]"), pd.Categorical(["x", "y"])):
        frame = pd.DataFrame({"a": [1, 2], "b": column})
        for convert in (ah.asarray, ah.as_numpy, ah.as_torch):
            with pytest.raises(TypeError, match="column 'b': ") as raised:
                convert(frame, copy=True)
            assert len(eval(raised.value.call, {"arrayhub": ah, "x": frame})) == 2


@each(GAPS)
def test_missing_values_of_tables_are_replaced_or_masked(table):
    assert ah.as_torch(table, missing=0).tolist() == [[1.0, 0.0], [0.0, 2.5]]
    assert ah.as_torch(table, missing={"a": 7, "b": -1.0}).tolist() == [[1.0, -1.0], [7.0, 2.5]]
    assert np.array_equal(ah.as_numpy(table, missing="nan"), [[1, np.nan], [np.nan, 2.5]], equal_nan=True)
    masked = ah.as_numpy(table, missing="mask", copy=True)
    assert isinstance(masked, np.ma.MaskedArray) and masked.tolist() == [[1.0, None], [None, 2.5]]
    values, mask = ah.as_torch(table, missing="mask", copy=True)
    assert mask.tolist() == [[False, True], [True, False]] and values[~mask].tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    "table", [*GAPS.values(), *TABLES.values()], ids=[*GAPS, *[f"complete {name}" for name in TABLES]]
)
def test_missing_is_checked_even_if_nothing_is_missing(table):
    for value in ("masked", "NaN", object(), [1]):
        with pytest.raises(TypeError, match=r"column 'a'.*accepted: a value of this type"):
            ah.as_torch(table, missing=value)
        with pytest.raises(TypeError, match=r"column 'b'.*accepted: a value of this type"):
            ah.as_torch(table, missing={"a": 0, "b": value})
    for source in (table, ah.asnested(table)):
        with pytest.raises(ValueError, match="missing: the dict names the column 'zz'; accepted: 'a', 'b'"):
            ah.as_torch(source, missing={"zz": 0})
    with pytest.raises(ValueError, match="names the field 'zz'; accepted: a, b"):
        ah.as_polars(ah.asnested(table).fill_null({"zz": 0}))
