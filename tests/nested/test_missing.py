"""Test is_null, fill_null and the argument `missing` of the exports with columns of each library."""

import datetime
import decimal
import fractions
import pickle
from copy import deepcopy

import awkward as ak
import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import arrayhub as ah

NUMBERS = {
    "pyarrow": pa.array([1, None, 3]),
    "a slice of pyarrow": pa.array([5, 1, None, 3, 5])[1:4],
    "polars": pl.Series([1, None, 3]),
    "pandas, masked": pd.Series([1, None, 3], dtype="Int64"),
    "pandas, on Arrow": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "a pandas array": pd.array([1, None, 3]),
    "awkward": ak.Array([1, None, 3]),
    "a masked array": np.ma.MaskedArray([1, 2, 3], [False, True, False]),
    "a list": [1, None, 3],
    "a NestedArray": ah.asnested([1, None, 3]),
    "one chunk": pa.chunked_array([[1, None, 3]]),
}
COMPLETE = {
    "pyarrow": pa.array([1, 2, 3]),
    "polars": pl.Series([1, 2, 3]),
    "pandas, masked": pd.Series([1, 2, 3], dtype="Int64"),
    "pandas, on Arrow": pd.Series([1, 2, 3], dtype="int64[pyarrow]"),
    "awkward": ak.Array([1, 2, 3]),
    "a masked array": np.ma.MaskedArray([1, 2, 3], [False] * 3),
    "NumPy": np.array([1, 2, 3]),
    "torch": torch.tensor([1, 2, 3]),
}
BOOLEANS = {
    "pyarrow": pa.array([True, None, False]),
    "polars": pl.Series([True, None, False]),
    "pandas, masked": pd.Series([True, None, False], dtype="boolean"),
    "pandas, on Arrow": pd.Series([True, None, False], dtype="bool[pyarrow]"),
    "awkward": ak.Array([True, None, False]),
    "a masked array": np.ma.MaskedArray([True, True, False], [False, True, False]),
    "a list": [True, None, False],
}
TENSORS = {"torch": ah.as_torch, "jax": ah.as_jax, "numba": ah.as_numba}
MASK = [False, True, False]


@pytest.fixture(autouse=True)
def wide_integers_in_jax():
    with jax.enable_x64(True):
        yield


def each(table):
    return pytest.mark.parametrize("column", table.values(), ids=table)


def each_export(function):
    return pytest.mark.parametrize("export", TENSORS.values(), ids=TENSORS)(function)


# --------------------------------------------------------------------------------------------------------- the methods


@each(NUMBERS)
def test_missing_elements_are_reported_replaced_or_masked(column):
    x = ah.asnested(column)
    before, mask, filled = x.to_list(), x.is_null(), x.fill_null(-1)
    assert type(mask) is ah.USMArray and mask.dtype == bool and mask.tolist() == MASK and x.null_count == 1
    assert type(filled) is ah.USMArray and filled.dtype == np.int64 and filled.tolist() == [1, -1, 3]
    assert x.to_list() == before
    masked = ah.as_numpy(column, missing="mask")
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked.dtype == np.int64 and masked.mask.tolist() == MASK and masked.tolist() == [1, None, 3]
    floats = ah.as_numpy(column, missing="nan")
    assert floats.dtype == np.float64 and np.array_equal(floats, [1, np.nan, 3], equal_nan=True)
    numbers = ah.as_numpy(column, missing=0)
    assert numbers.dtype == np.int64 and numbers.tolist() == [1, 0, 3]


@each(COMPLETE)
def test_complete_columns_have_no_missing_elements(column):
    masked = ah.as_numpy(column, missing="mask")
    assert masked.mask.tolist() == [False] * 3 and masked.tolist() == [1, 2, 3]
    assert ah.as_numpy(column, missing="nan").dtype == np.float64
    for export in (ah.as_numpy, *TENSORS.values()):
        assert np.asarray(export(column, missing=7)).tolist() == [1, 2, 3]


@each_export
@each(NUMBERS)
def test_missing_elements_of_tensors_are_replaced_or_masked(export, column):
    assert np.asarray(export(column, missing=7)).tolist() == [1, 7, 3]
    floats = np.asarray(export(column, missing="nan"))
    assert floats.dtype.kind == "f" and np.array_equal(floats, [1, np.nan, 3], equal_nan=True)
    values, mask = export(column, missing="mask", copy=True)
    assert type(values) is type(mask)
    assert np.asarray(mask).dtype == bool and np.asarray(mask).tolist() == MASK
    assert np.asarray(values)[[0, 2]].tolist() == [1, 3]


def test_complete_and_unchanged_values_are_shared():
    numbers = pa.array([1, 2, 3])
    for source in (numbers, pa.array([True, False])):
        exported = ah.as_arrow(source, missing=0, copy=False)
        assert exported.buffers()[1].address == source.buffers()[1].address
    assert ah.asnested(numbers).fill_null(0).ptr == numbers.buffers()[1].address
    lists = pa.array([[1, 2], None, [3]])  # the missing row becomes a row without elements
    assert ah.asnested(lists).fill_null([]).content.ptr == lists.values.buffers()[1].address
    assert isinstance(ah.asnested(lists[:2]).fill_null([3, 4]), ah.NestedArray)  # the type decides, and not the lengths
    chunks = pa.chunked_array([[1, 2], [3]])
    assert ah.as_arrow(chunks, missing=0) is chunks
    x = np.array(1.5)
    assert np.shares_memory(x, ah.as_numpy(x, missing=0, copy=False))


@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f8", "c16"])
@pytest.mark.parametrize("first", range(9))
def test_elements_are_filled_whatever_their_size_and_first_bit(dtype, first):
    values = np.arange(1, 60).astype(dtype)
    present = np.repeat([True, False, True], [17, 2, 40]) & (np.arange(59) % 5 > 0)
    column = ah.asnested(np.ma.MaskedArray(values, ~present))
    for n in (*range(12), 59 - first):
        rows = slice(first, first + n)
        assert ah.as_numpy(column[rows], missing=7).tolist() == np.where(present, values, 7)[rows].tolist()


HALF = decimal.Decimal("1.5")
OUT_OF_ORDER = pa.ListViewArray.from_arrays(
    pa.array([2, 0], pa.int32()), pa.array([2, 2], pa.int32()), pa.array([1, None, 3, 4])
)


FILLED = {
    "strings": (["a", None, "b"], "?", ["a", "?", "b"]),
    "long strings": (pa.array(["a" * 20, None], pa.string_view()), "ü", ["a" * 20, "ü"]),
    "bytes": ([b"a", None], b"xyz", [b"a", b"xyz"]),
    "bits": (pa.array([True, None]), False, [True, False]),
    "floats": ([1.5, None], 2, [1.5, 2.0]),
    "times": (pa.array([None, 5], pa.timestamp("us")), datetime.datetime(1970, 1, 1), [0, 5]),
    "days": (pa.array([None, 5], pa.date32()), datetime.date(1970, 1, 2), [datetime.date(1970, 1, 2),
                                                                         datetime.date(1970, 1, 6)]),
    "times of day": (pa.array([None, 5], pa.time32("s")), datetime.time(0, 1), [datetime.time(0, 1),
                                                                               datetime.time(0, 0, 5)]),
    "zones": (pa.array([None, 5], pa.timestamp("s", "UTC")), datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC),
              [datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.UTC),
               datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=datetime.UTC)]),
    "categories": (pa.array(["a", None, "b"]).dictionary_encode(), "b", ["a", "b", "b"]),
    "in lists": ([[1, None], [], [None]], 0, [[1, 0], [], [0]]),
    "missing lists": ([[1, 2], None, [3]], [], [[1, 2], [], [3]]),
    "fixed lists": (pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)), 9, [[1, 2], [9, 9], [3, 9]]),
    "missing fixed lists": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [3, 4], [[1, 2], [3, 4]]),
    "decimals": (pa.array([1, None], pa.decimal128(3, 1)), decimal.Decimal(0), [1, 0]),
    "categories of decimals": (pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array([HALF])), HALF,
                               [HALF, HALF]),
    "complete categories of decimals": (pa.array([HALF]).dictionary_encode(), HALF, [HALF]),
    "categories with missing values": (pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array([[1, None], [2]])),
                                       0, [[2], [1, 0], [2]]),
    "list views out of order": (OUT_OF_ORDER, 0, [[3, 4], [1, 0]]),
    "complete long strings": (pl.Series(["a" * 20]), "b", ["a" * 20]),
    "complete long categories": (pl.Series(["a" * 20], dtype=pl.Categorical), "b", ["a" * 20]),
    "records": ([{"a": 1, "b": None}, {"a": None, "b": 2.5}], 0, [{"a": 1, "b": 0.0}, {"a": 0, "b": 2.5}]),
    "records by field": ([{"a": 1, "b": None}, {"a": None, "b": "x"}], {"b": "y"}, [{"a": 1, "b": "y"},
                                                                                  {"a": None, "b": "x"}]),
    "missing records": (pa.array([{"a": 1}, None]), 0, [{"a": 1}, {"a": 0}]),
}  # fmt: skip


@pytest.mark.parametrize(("source", "value", "expected"), FILLED.values(), ids=FILLED)
def test_fill_null_replaces_missing_values_of_each_kind(source, value, expected):
    filled = ah.asnested(source).fill_null(value)
    if type(filled) is ah.USMArray:
        numbers = filled.tolist()
        assert (np.asarray(filled).astype(np.int64).tolist() if filled.dtype.kind == "M" and type(expected[0]) is int
                else numbers) == expected  # fmt: skip
    else:
        assert filled.to_list() == expected


MISSING_CATEGORIES = pa.DictionaryArray.from_arrays(
    pa.array([0, 1, None, 2], pa.uint8()), pa.array(["a", None, "b"])
)  # element 1 has an index, but its category is missing


def test_elements_of_a_missing_category_are_missing():
    x = ah.asnested(MISSING_CATEGORIES)
    assert x.is_null().tolist() == [False, True, True, False] == MISSING_CATEGORIES.is_null().to_pylist()
    assert x.null_count == 1
    assert ah.asnested(MISSING_CATEGORIES[:1]).is_null().tolist() == [False]
    filled = x.fill_null("b")
    assert filled.to_list() == ["a", "b", "b", "b"] and filled.content.to_list() == ["a", "b"]
    for export in (ah.as_arrow, ah.as_polars, ah.as_awkward):
        assert list(map(str, export(MISSING_CATEGORIES, missing="b"))) == ["a", "b", "b", "b"]


DAY = datetime.date(2020, 1, 1)
ROWS = {
    "int64 in lists": ([[[2**53 + 1]], None], pa.list_(pa.list_(pa.int64())), [[]]),
    "int8 in lists": ([[[1]], None], pa.list_(pa.list_(pa.int8())), [[2], [], (3, 4)]),
    "no elements": ([None], pa.list_(pa.list_(pa.int8())), [[2]]),
    "list views": ([[[1]], None], pa.list_(pa.list_view(pa.int8())), [[2], []]),
    "fixed rows": ([[[1, 2]], None], pa.list_(pa.list_(pa.int8(), 2)), [[3, 4], [5, 6]]),
    "fixed rows of rows": ([[[[1, 2]]], None], pa.list_(pa.list_(pa.list_(pa.int8(), 2), 1)), [[[3, 4]]]),
    "strings in lists": ([[["a"]], None], pa.list_(pa.list_(pa.string())), [[], ["ü"]]),
    "string views": ([["a"], None], pa.list_(pa.string_view()), ["a string that does not fit into a view"]),
    "bytes": ([[b"a"], None], pa.list_(pa.binary()), [b"b"]),
    "bits": ([[True], None], pa.list_(pa.bool_()), [False, True]),
    "dates": ([[DAY], None], pa.list_(pa.date32()), [DAY]),
    "times of day": ([[], None], pa.list_(pa.time32("s")), [datetime.time(1)]),
    "records": ([[{"a": 1, "b": "x"}], None], pa.list_(pa.struct({"a": pa.int8(), "b": pa.string()})),
                [{"b": "y", "a": 2}]),
    "records of lists": ([[{"a": [1]}], None], pa.list_(pa.struct({"a": pa.list_(pa.int8())})), [{"a": []}]),
    "categories": ([["a", "b"], None], pa.list_(pa.dictionary(pa.int8(), pa.string())), ["b"]),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "type_of_rows", "row"), ROWS.values(), ids=ROWS)
def test_fill_null_converts_a_row_to_the_type_of_the_lists(rows, type_of_rows, row):
    x = ah.asnested(pa.array(rows, type_of_rows))
    filled = ah.asnested(x.fill_null(row))
    expected = pa.array([row if value is None else value for value in rows], type_of_rows)
    assert filled.to_list() == expected.to_pylist()


SCHEMA = pa.schema(
    [pa.field("a", pa.int64(), metadata={"unit": "m"}), pa.field("b", pa.string(), nullable=False)], {"made": "today"}
)


def test_fill_null_keeps_the_schema_of_records():
    filled = ah.asnested(pa.record_batch([[1, None], ["x", "y"]], schema=SCHEMA)).fill_null({"a": 0})
    assert pa.record_batch(filled).schema.equals(SCHEMA, check_metadata=True)
    in_lists = pa.list_(pa.struct(SCHEMA))
    lists = pa.array(ah.asnested(pa.array([[{"a": None, "b": "x"}], None], in_lists)).fill_null([]))
    assert lists.type.equals(in_lists, check_metadata=True)


INDEXED = pd.DataFrame({"a": [1.5, None]}, index=pd.Index(["x", "y"], name="k"))


def test_fill_null_keeps_the_index_of_a_frame():
    """A value for all columns does not fill the index, which can have another type, but a dict can name it."""
    x = ah.asnested(pd.DataFrame({"a": [1.5, None]}, index=[10, 20]))
    filled = x.fill_null(0)
    assert filled.to_dense(copy=True).tolist() == ah.as_torch(filled, copy=True).tolist() == [[1.5], [0.0]]
    table = pa.Table.from_pandas(INDEXED)
    assert ah.as_pandas(table, missing=0).equals(ah.as_pandas(pa.Table.from_pandas(INDEXED.fillna(0))))
    assert ah.as_arrow(INDEXED, missing=0).to_pylist() == [{"a": 1.5, "k": "x"}, {"a": 0.0, "k": "y"}]
    named = ah.asnested(pa.Table.from_pandas(pd.DataFrame({"a": [1.5, None]}, index=pd.Index(["x", None], name="k"))))
    assert named.fill_null({"k": "z"}).to_list()[1] == {"a": None, "k": "z"}
    assert ah.as_pandas(pd.DataFrame({"a": [1, None]}), missing=0).a.tolist() == [1, 0]


AWARE = datetime.datetime(2020, 1, 2, 13, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))
NAIVE_TIMES = {
    "timestamps": pa.array([0, None], pa.timestamp("s")),
    "timestamps without missing values": pa.array([0], pa.timestamp("s")),
    "NumPy": np.array([0, "NaT"], "M8[s]"),
    "date32": pa.array([0, None], pa.date32()),
    "date64": pa.array([0, None], pa.date64()),
}
ZONED_TIMES = {
    "a list": [AWARE, None],
    "a list without missing values": [AWARE],
    "pyarrow": pa.array([0, None], pa.timestamp("s", "Europe/Berlin")),
}
BYTES = {"missing": pa.array([None], pa.binary(3)), "complete": pa.array([b"abc"], pa.binary(3))}
ANOTHER_TYPE, NO_ZONE, ZONE = "a value of this type", "a .* without a time zone", "a datetime with a time zone"
ROUNDED = "is not a multiple of the unit"


def in_lists(rows, items):
    return pa.array([*rows, None], pa.list_(items))


# Columns, values that cannot replace their missing elements, the error, and the end of its text.
REFUSED = {
    "a float among integers": ([1, None], 0.5, TypeError, f"int64, and value is 0.5; accepted: {ANOTHER_TYPE}$"),
    "NaN among integers": ([1, None], np.nan, TypeError, rf"{ANOTHER_TYPE}\. 'mask' and 'nan' are values of .*"),
    "a time among integers": ([1, None], AWARE, TypeError, f"is <datetime.datetime object>; accepted: {ANOTHER_TYPE}$"),
    "out of range": (pa.array([1, None], pa.int8()), 300, OverflowError, "300 is out of the range of int8"),
    "text among numbers": ([1, None], "x", TypeError, f"accepted: {ANOTHER_TYPE}"),
    "a number among booleans": ([True, None], 3, OverflowError, "3 is out of the range of bool"),
    "a number among strings": (["a", None], 0, TypeError, f"string, .*accepted: {ANOTHER_TYPE}$"),
    "a number among bytes": ([b"a", None], 0, TypeError, f"bytes, .*accepted: {ANOTHER_TYPE}$"),
    "a number for a missing row": ([[1], None], 0, ValueError, r"row 1.*such as \[\]$"),
    "an unknown category": (pa.array(["a", None]).dictionary_encode(), "z", ValueError, r"category of x, .*\['a'\]$"),
    "not one of the categories": (MISSING_CATEGORIES, "z", ValueError, r"such as \['a', 'b'\]$"),
    "no categories": (pa.array([None], pa.string()).dictionary_encode(), "z", ValueError, "does not have categories$"),
    "an unknown field": ([{"a": None}, {"a": 1}], {"b": 1}, ValueError, "accepted: '?a'?$"),
    "a field that does not fit": ([{"a": None}, {"a": "z"}], 0, TypeError, f"'a'.*accepted: {ANOTHER_TYPE}$"),
    "None in a row": (in_lists([[1]], pa.int64()), [None], TypeError, r"x\.content .*int64, and value is None;"),
    "None among strings in a row": (in_lists([["a"]], pa.string()), [None], TypeError, "None; accepted: a value"),
    "another type in a row": (in_lists([["a"]], pa.string()), ["a", 1], TypeError, "value is 1; accepted: a value"),
    "a float in a row": (in_lists([[[1]]], pa.list_(pa.int64())), [[0.5]], TypeError, r"x\.content\.content .*a value"),
    "out of range in a row": (in_lists([[[1]]], pa.list_(pa.int8())), [[300]], OverflowError, "300"),
    "too few elements": (in_lists([[[1, 2]]], pa.list_(pa.int8(), 2)), [[3]], TypeError, "a list of 2 elements$"),
    "no list": (in_lists([[[1]]], pa.list_(pa.int8())), [3], TypeError, "value is 3; accepted: a list$"),
    "another category in a row": (in_lists([["a"]], pa.dictionary(pa.int8(), pa.string())), ["b"], ValueError,
                                  "such as .'a'.$"),
    "another field in a row": (in_lists([[{"a": 1}]], pa.struct({"a": pa.int8()})), [{"b": 1}], TypeError,
                               "each field: 'a'$"),
    "the type null": (in_lists([[None]], pa.null()), [1], TypeError, r"accepted: rows without elements, such as \[\]$"),
    "a number among dates": (NAIVE_TIMES["date32"], 0, TypeError, "a date, or a datetime without a time zone$"),
    "text among zoned times": (ZONED_TIMES["pyarrow"], "x", TypeError, f"{ZONE}$"),
    "NaT among zoned times": (ZONED_TIMES["a list"], pd.NaT, TypeError, f"NaTType object>; accepted: {ZONE}$"),
    "a zone among times of day": (pa.array([0, None], pa.time32("s")), datetime.time(1, tzinfo=datetime.UTC), TypeError,
                                  "accepted: a datetime.time without a time zone"),
    "days beyond date32": (pa.array([None], pa.date32()), np.datetime64("9999999-01-01"), OverflowError,
                           "out of the range of int32"),
    "microseconds among seconds": (pa.array([None], pa.time32("s")), datetime.time(1, 2, 3, 5), ValueError, ROUNDED),
    "microseconds among milliseconds": (pa.array([None], pa.time32("ms")), datetime.time(1, 2, 3, 1), ValueError,
                                        ROUNDED),
    "a datetime among dates": (pa.array([None], pa.date32()), datetime.datetime(2020, 1, 1, 5), ValueError, ROUNDED),
    "hours among dates": (pa.array([None], pa.date32()), np.datetime64("2020-01-01T05"), ValueError, ROUNDED),
    **{f"{value!r} among bytes of length 3, {name}": (column, value, TypeError, f"accepted: {ANOTHER_TYPE}")
       for name, column in BYTES.items() for value in (b"z", b"", b"abcd", "abc", np.bytes_(b"z"))},
    **{f"{type(value).__name__} with a zone among {name}": (column, value, TypeError, f"accepted: {NO_ZONE}$")
       for name, column in NAIVE_TIMES.items() for value in (AWARE, pd.Timestamp(AWARE))},
    **{f"{type(value).__name__} without a zone among {name}": (column, value, TypeError, f"accepted: {ZONE}$")
       for name, column in ZONED_TIMES.items()
       for value in (AWARE.replace(tzinfo=None), pd.Timestamp("2020-01-02"), DAY)},
}  # fmt: skip


@pytest.mark.parametrize(("source", "value", "error", "says"), REFUSED.values(), ids=REFUSED)
def test_values_that_do_not_fit_are_rejected(source, value, error, says):
    with pytest.raises(error, match=f"^fill_null: .*{says}"):
        ah.asnested(source).fill_null(value)
    for export in (ah.as_arrow, ah.as_numpy):
        with pytest.raises(error, match=f"^missing: .*{says.removesuffix('$')}") as raised:
            export(source, missing=value)
        assert raised.value.call == ah.explain(source, export.__name__[3:]).call != ""


def test_fill_null_rejects_none():
    with pytest.raises(TypeError, match="accepted: a number"):
        ah.asnested([1, None]).fill_null(None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_day_of_each_unit_are_filled(unit):
    type_of_day = (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
    filled = ah.asnested(pa.array([None], type_of_day)).fill_null(datetime.time(23, 59, 59))
    assert pa.array(filled).cast(pa.time64("us")).to_pylist() == [datetime.time(23, 59, 59)]


@pytest.mark.parametrize("value", [b"xyz", b"x\0\0", np.bytes_(b"xyz"), np.void(b"xyz")], ids=repr)
def test_bytes_of_one_length_are_filled(value):
    column = pa.array([b"abc", None], pa.binary(3))
    filled = pa.array([b"abc", bytes(value)], column.type)
    assert ah.as_arrow(column, missing=value).equals(filled)
    assert pa.array(ah.asnested(column).fill_null(value)).equals(filled)
    rows = pa.array([[b"abc"], None], pa.list_(column.type))
    assert ah.as_arrow(rows, missing=[value]).to_pylist() == [[b"abc"], [bytes(value)]]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds_of_pandas_values_are_kept(zone):
    moment = pd.Timestamp(10**9 + 1, unit="ns", tz=zone)
    times = pa.array([0, None], pa.timestamp("ns", zone))
    filled = pa.array(ah.asnested(times).fill_null(moment)).cast(pa.int64())
    assert filled.to_pylist() == [0, 10**9 + 1]
    assert ah.as_polars(times, missing=moment).cast(pl.Int64).to_list() == [0, 10**9 + 1]
    rows = ah.asnested(pa.array([[0], None], pa.list_(times.type))).fill_null([moment])
    assert pa.array(rows)[1].values.cast(pa.int64()).to_pylist() == [10**9 + 1]
    coarse = ah.asnested(pa.array([None], pa.timestamp("us", zone)))
    with pytest.raises(ValueError, match="not a multiple of the unit"):
        coarse.fill_null(moment)
    assert pa.array(coarse.fill_null(moment.floor("us"))).cast(pa.int64()).to_pylist() == [10**6]


def test_nanoseconds_of_objects_in_an_index_are_kept():
    moments = pd.Index([pd.Timestamp(1, unit="ns"), None], dtype=object)
    for index in (moments, pd.MultiIndex.from_arrays([moments, [1, 2]])):
        times = ah.as_arrow(pd.DataFrame({"a": [1.5, 2.5]}, index=index)).field(1)
        assert times.type == pa.timestamp("ns") and times.cast(pa.int64()).to_pylist() == [1, None]


def test_nanoseconds_of_pandas_timedeltas_are_kept():
    step = pd.Timedelta(10**9 + 1, unit="ns")
    assert ah.as_numpy(pa.array([0, None], pa.duration("ns")), missing=step).astype(int).tolist() == [0, 10**9 + 1]
    with pytest.raises(ValueError, match="not a multiple of the unit"):
        ah.as_numpy(pa.array([0, None], pa.duration("us")), missing=step)


def test_datetime64_replaces_times_with_a_zone_and_is_in_utc():
    times = ah.asnested(pa.array([None], pa.timestamp("s", "Europe/Berlin")))
    expected = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
    assert times.fill_null(np.datetime64("2020-01-02")).to_list() == [expected] == times.fill_null(expected).to_list()


# ----------------------------------------------------------------------------------------------- missing= of as_numpy


def test_masked_array_shares_the_values():
    source = pa.array([1.0, None, 3.0])[1:]
    masked = ah.as_numpy(source, missing="mask")
    assert masked.data.ctypes.data == source.buffers()[1].address + 8 and not masked.data.flags.writeable
    assert masked.tolist() == [None, 3.0]
    series = pl.Series([1.0, None])
    assert ah.as_numpy(series, missing="mask").data.ctypes.data == series.to_arrow().buffers()[1].address
    numbers = np.ma.MaskedArray([1, 2], [True, False])
    assert np.shares_memory(ah.as_numpy(numbers, missing="mask").data, numbers.data)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_missing_nan_keeps_the_type_of_floats(kind):
    filled = ah.as_numpy(pa.array([np.dtype(kind).type(1), None], getattr(pa, kind)()), missing="nan")
    assert filled.dtype == kind and np.isnan(filled[1]) and filled[0] == 1


def test_missing_nan_replaces_missing_times_by_nat():
    filled = ah.as_numpy(pa.array([1, None], pa.timestamp("ms")), missing="nan")
    assert filled.dtype == "M8[ms]" and np.isnat(filled).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", torch.int32])
def test_missing_nan_requires_floats(dtype):
    columns = (pl.Series([1.5, None]), pa.array([1]), [1, None], torch.ones(2), pd.DataFrame({"a": [1.5]}), {"a": [1]})
    for x in columns:
        for convert in (ah.as_numpy, ah.as_torch, ah.asarray, lambda x, **to: ah.like(x, np.ones(2), **to)):
            with pytest.raises(ValueError, match="^missing: .* does not have NaN; accepted: a value, or a dtype of"):
                convert(x, missing={"a": "nan"} if isinstance(x, dict) else "nan", dtype=dtype)


@each(BOOLEANS)
def test_missing_booleans_are_replaced_or_masked(column):
    assert ah.as_numpy(column, missing=False).tolist() == [True, False, False]
    assert ah.as_numpy(column, missing="mask", copy=True).tolist() == [True, None, False]
    assert ah.as_numpy(column, missing="nan").tolist()[::2] == [1.0, 0.0]
    assert ah.as_torch(column, missing=True).tolist() == [True, True, False]
    for x in (column, {"a": column}, *([column.to_frame()] if hasattr(column, "to_frame") else [])):
        assert ah.as_torch(x, missing=7, dtype="f4").flatten().tolist() == [1, 7, 0]


def test_mask_of_packed_booleans_is_made_whatever_copy_says():
    for copy in (False, None, True):
        assert ah.as_numpy(BOOLEANS["pyarrow"], missing="mask", copy=copy).tolist() == BOOLEANS["pyarrow"].to_pylist()


def test_several_chunks_are_filled_in_one_copy():
    chunks = pa.chunked_array([[1, None], [3]])
    for column in (chunks, pl.from_arrow(chunks), pd.Series(chunks, dtype="int64[pyarrow]")):
        assert ah.as_torch(column, missing=0).tolist() == [1, 0, 3]
        assert ah.as_numpy(column, missing="mask", copy=True).tolist() == [1, None, 3]


def test_missing_rows_and_elements_of_rows_are_replaced_or_masked():
    rows = pa.array([[1.0, None], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))
    masked = ah.as_numpy(rows, missing="mask")
    assert masked.shape == (3, 2) and masked.mask.tolist() == [[False, True], [True, True], [False, False]]
    assert np.array_equal(ah.as_numpy(rows, missing="nan"), [[1, np.nan], [np.nan] * 2, [3, 4]], equal_nan=True)
    lists = pa.array([[1, None], [3, 4]])
    assert ah.as_numpy(lists, missing="mask").tolist() == [[1, None], [3, 4]]
    assert [row.tolist() for row in ah.as_torch(lists[1:], missing=0).unbind()] == [[3, 4]]  # equal lengths, too


RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), pa.array([7, None, 8]))
RECORDS = pa.table({"a": [1, None], "b": [3, 4]})
PAIRS = pa.struct({"a": pa.int64(), "b": pa.int64()})
MASKED = {
    "runs": (RUNS, [7, None, None, 8]),
    "a slice of runs": (RUNS[1:], [None, None, 8]),
    "runs in rows": (pa.FixedSizeListArray.from_arrays(RUNS, 2), [[7, None], [None, 8]]),
    "runs of booleans": (
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([None, True])),
        [None, None, True],
    ),
    "runs in a table": (pa.table({"a": RUNS, "b": range(4)}), [[7, 0], [None, 1], [None, 2], [8, 3]]),
    "null": (pa.nulls(2), [None, None]),
    "no elements of type null": (pa.nulls(0), []),
    "chunks of null": (pa.chunked_array([pa.nulls(1), pa.nulls(1)]), [None, None]),
    "null in rows": (pa.FixedSizeListArray.from_arrays(pa.nulls(2), 2), [[None, None]]),
    "null in a table": (pa.table({"a": pa.nulls(2), "b": [1, 2]}), [[None, 1], [None, 2]]),
    "runs of null": (pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.nulls(1)), [None, None]),
    "a table": (RECORDS, [[1, 3], [None, 4]]),
    "records": (ah.asnested(RECORDS), [[1, 3], [None, 4]]),
    "missing records": (ah.asnested(pa.array([{"a": 1, "b": None}, None], PAIRS)), [[1, None], [None, None]]),
    "records with an index": (
        ah.asnested(pd.DataFrame({"a": pd.Series([1, None], [5, 6], "Int64"), "b": [3, 4]}, [5, 6])),
        [[1, 3], [None, 4]],
    ),
    "records in lists": (pa.array([[{"a": 1, "b": None}, None]], pa.list_(PAIRS)), [[[1, None], [None, None]]]),
    "records in records": (pa.array([[{"a": None}], [{"a": 1}]], pa.list_(pa.struct({"a": pa.int8()}), 1)),
                           [[[None]], [[1]]]),
    "list views out of order": (OUT_OF_ORDER, [[3, 4], [1, None]]),
    "chunks of a column of a frame": (
        pd.DataFrame({"a": pd.Series(pa.chunked_array([[1, None], [3]]), dtype="int64[pyarrow]")}),
        [[1], [None], [3]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), MASKED.values(), ids=MASKED)
def test_mask_contains_the_missing_values_of_each_kind(source, expected):
    masked = ah.as_numpy(source, missing="mask", copy=True)
    assert masked.tolist() == expected
    values, mask = ah.as_torch(source, missing="mask", copy=True)
    assert values.shape == masked.shape and np.array_equal(mask, masked.mask)


EMPTY = pa.array([[[1], None], [[2], [3]]], pa.list_(pa.list_(pa.int8(), 1), 2))
EMPTY_ROWS = {
    "lists": (pa.array([[[1], None]], pa.list_(pa.list_view(pa.int8()), 2))[:0], (0, 2, 0)),
    "rows in lists": (pa.array([[[1], None]], pa.list_(EMPTY.type.value_type))[:0], (0, 0, 1)),
    "rows in rows": (EMPTY[:0], (0, 2, 1)),
    "rows in lists without elements": (pa.array([[], []], pa.list_(EMPTY.type)), (2, 0, 2, 1)),
    "list views": (
        pa.FixedSizeListArray.from_arrays(
            pa.ListViewArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([0, 0], pa.int32()), EMPTY[0].values), 2
        ),
        (1, 2, 0, 1),
    ),
}


@pytest.mark.parametrize(("column", "shape"), EMPTY_ROWS.values(), ids=EMPTY_ROWS)
def test_mask_of_rows_without_elements_has_the_shape_of_the_values(column, shape):
    masked = ah.as_numpy(column, missing="mask", copy=True)
    assert masked.shape == shape == masked.mask.shape
    assert ah.as_torch(column, missing="mask", copy=True)[1].shape == shape


WITHOUT_MASK = {
    "strings": pa.array(["a", None]),
    "string views": pa.array(["a", None], pa.string_view()),
    "bytes": pa.array([b"a", None]),
    "decimals": pa.array([1, None], pa.decimal128(3, 1)),
    "intervals": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "categories": pa.array(["a", None]).dictionary_encode(),
    "a union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, None]), pa.array(["a", "b"])]),
    "runs of strings": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([None], pa.string())),
}


@each(WITHOUT_MASK)
def test_mask_of_elements_that_are_not_dense_is_refused(column):
    for export in (ah.as_numpy, ah.as_torch):
        with pytest.raises((BufferError, ValueError), match="^missing(='mask')?: "):
            export(column, missing="mask", copy=True)


def test_masked_arrays_of_several_dimensions_survive_a_round_trip():
    masked = np.ma.MaskedArray(np.arange(6).reshape(2, 3), np.eye(2, 3, dtype=bool))
    x = ah.asnested(masked)
    assert str(x.type) == "2 * 3 * ?int64" and x.to_list() == masked.tolist()
    for source in (masked, masked.T, masked[:, 1:], masked[:0]):
        back = ah.as_numpy(source, missing="mask")
        assert back.tolist() == source.tolist() and back.shape == source.shape
        assert ah.as_torch(source, missing=-1).tolist() == source.filled(-1).tolist()
    assert np.shares_memory(ah.as_numpy(masked, missing="mask").data, masked.data)


def test_ragged_rows_become_a_jagged_tensor():
    tensor = ah.as_torch([[1.0, None], [], [2.0]], missing=0.0)
    assert [row.tolist() for row in tensor.unbind()] == [[1.0, 0.0], [], [2.0]]
    with pytest.raises(ValueError, match="equal lengths"):
        ah.as_numpy([[1.0, None], [2.0]], missing="nan")


SCALARS = {
    "NumPy": np.array(2.0),
    "a scalar of NumPy": np.float32(2),
    "a masked array": np.ma.array(2.0, mask=False),
    "bfloat16": np.array(2, ml_dtypes.bfloat16),
    "torch": torch.tensor(2.0),
    "a USMArray": ah.asarray(np.array(2.0)),
    "a number": 2.0,
}


@each(SCALARS)
def test_arrays_without_dimensions_keep_their_shape(column):
    assert ah.as_numpy(column, missing=0).shape == () and ah.as_numpy(column, missing=0) == 2
    tensor = ah.as_torch(column, missing=0, copy=None)
    assert tensor.shape == () and tensor == 2
    masked = ah.as_numpy(column, missing="mask", copy=True)
    assert masked.shape == () and not masked.mask.any() and masked == 2
    values, mask = ah.as_torch(column, missing="mask", copy=True)
    assert (values.shape, mask.shape, mask.item()) == ((), (), False)
    assert ah.like(column, torch.ones(1), missing="nan", copy=None).shape == ()


def test_missing_value_of_an_array_without_dimensions_is_replaced_or_masked():
    moment = np.datetime64("2020-01-01", "s")
    for x, value in ((np.array("NaT", "M8[s]"), moment), (np.ma.array(7, mask=True), 5)):
        assert ah.as_numpy(x, missing=value).shape == () and ah.as_numpy(x, missing=value) == value
        assert ah.as_numpy(x, missing="mask", copy=True).mask.shape == ()
        assert ah.as_numpy(x, missing="mask", copy=True).mask
        assert ah.as_numpy(x, missing=value, copy=False) == value
    xarray = pytest.importorskip("xarray")
    assert ah.convert(np.array("NaT", "M8[s]"), xarray.DataArray, missing=moment) == moment


# -------------------------------------------------------------------------------------- missing= of the other exports


def test_first_tensor_of_the_pair_shares_the_values():
    source = pa.array([1.0, None])
    values, mask = ah.as_torch(source, missing="mask", allow_readonly=True)
    assert values.data_ptr() == source.buffers()[1].address and mask.tolist() == [False, True]
    with pytest.raises(BufferError, match="read-only"):
        ah.as_torch(source, missing="mask")


# ------------------------------------------------------------------------------- errors of calls without `missing=`


FITTING = "accepted: (a value of this type|a datetime)"
WORDS = rf"{FITTING}.*\. 'mask' and 'nan' are values of missing="
TYPOS = {
    "another word for mask": ("masked", WORDS),
    "another case of nan": ("NaN", WORDS),
    "bytes": (b"nan", FITTING),
    "an object": (object(), FITTING),
    "a type": (float, FITTING),
    "a list": ([1], FITTING),
    "a dict": ({"a": 0}, FITTING),
}


@pytest.mark.parametrize(("value", "says"), TYPOS.values(), ids=TYPOS)
@each({**COMPLETE, **NUMBERS, "bits": pa.array([True]), "no elements": pa.array([], pa.int8()),
       "chunks": pa.chunked_array([[1], [2]]), "floats of NumPy": np.ones((2, 2)),
       "times": np.ones(2, "M8[s]")})  # fmt: skip
def test_missing_argument_of_another_type_is_rejected_even_if_nothing_is_missing(column, value, says):
    for export in (ah.as_numpy, ah.as_torch):
        with pytest.raises(TypeError, match=rf"^missing: x has elements of .*{says}"):
            export(column, missing=value)
    with pytest.raises(TypeError, match=rf"^missing: x has elements of .*{says}"):
        ah.convert(column, "polars", missing=value)
    with pytest.raises(TypeError, match=rf"^fill_null: x has elements of .*{says}"):
        ah.asnested(column).fill_null(value)


@pytest.mark.parametrize("value", ["masked", object(), {"a": 0}])
def test_missing_argument_of_another_type_is_rejected_for_lists(value):
    for rows in ([[1, 2], [3, 4]], pa.array([[1], [2, 3]]), pa.array([[[1]], [[2]]])):
        with pytest.raises(TypeError, match=r"^missing: x(\.content)* has elements of .*int64.*accepted: a value"):
            ah.as_torch(rows, missing=value)


NAN_AMONG_OTHERS = {
    "strings": (["a", None], "value is 'nan'; accepted: a value of this type"),
    "times of day": (pa.array([0, None], pa.time32("s")), "accepted: a datetime.time without a time zone"),
    "rows": ([[1, 2], None], "row 1 of x is missing, and value is 'nan'; accepted: a list"),
    "decimals": (pa.array([1, None], pa.decimal128(3, 1)), "accepted: a value of this type"),
}


@pytest.mark.parametrize(("column", "says"), NAN_AMONG_OTHERS.values(), ids=NAN_AMONG_OTHERS)
def test_missing_nan_is_rejected_for_elements_without_nan(column, says):
    with pytest.raises((TypeError, ValueError), match=rf"^missing: .*{says}"):
        ah.as_numpy(column, missing="nan")


def test_error_names_the_column_once():
    with pytest.raises(BufferError, match="^missing: column 'a': rows have shape"):
        ah.as_numpy(pa.table({"a": [[1, 2], [3, 4]], "b": [1, None]}), missing="mask", copy=True)


def test_error_states_the_number_of_missing_values():
    with pytest.raises(BufferError, match="has 1 missing value, which a dense array cannot represent"):
        ah.asarray(pl.Series([1, None]))
    with pytest.raises(BufferError, match="has 2 missing values, which"):
        ah.asarray(pl.Series([None, 1, None]))


VALUES_OF_LIBRARIES = {
    "numbers": (
        pa.array([1.0, 2.0]),
        [1, True, np.int8(1), np.array(1), torch.tensor(1), decimal.Decimal(1), fractions.Fraction(1)],
    ),
    "times": (
        pa.array([1, 2], pa.timestamp("us")),
        [datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), np.datetime64("2020"), pd.Timestamp("2020")],
    ),
    "durations": (
        pa.array([1, 2], pa.duration("us")), [datetime.timedelta(1), np.timedelta64(1, "D"), pd.Timedelta(1)]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("column", "values"), VALUES_OF_LIBRARIES.values(), ids=VALUES_OF_LIBRARIES)
def test_missing_accepts_values_of_any_library(column, values):
    for value in values:
        assert ah.as_numpy(column, missing=value).astype(int).tolist() == [1, 2]


def test_text_fills_only_string_columns_if_number_columns_are_complete():
    table = pl.DataFrame({"name": ["a", None], "count": [1, 2]})
    assert ah.convert(table, "polars", missing="?").rows() == [("a", 1), ("?", 2)]


def test_value_replaces_missing_values_for_arrow_libraries():
    series = pd.Series([1, None], dtype="Int64", name="a", index=[5, 7])
    frame = pd.DataFrame({"a": series, "b": pd.Series(["x", None], index=[5, 7])})
    for export in (ah.as_arrow, ah.as_awkward):
        assert export(pa.array([[1, None], [3]]), missing=0).tolist() == [[1, 0], [3]]
    polars = ah.as_polars(series, missing=0)
    assert (polars.name, polars.to_list(), polars.null_count()) == ("a", [1, 0], 0)
    assert ah.as_polars(frame["b"], missing="?").to_list() == ["x", "?"]
    filled = ah.as_pandas(series, missing=0)
    assert (filled.name, filled.to_dict()) == ("a", {5: 1, 7: 0})
    filled = ah.as_pandas(frame, missing={"a": 0, "b": "?"})
    assert (list(filled), filled.index.tolist()) == (["a", "b"], [5, 7])
    assert ah.as_pandas(pd.DataFrame({"a": [1.5, None]}), missing=0).dtypes["a"] == np.float64  # as for a Series
    assert ah.as_polars(frame, missing={"a": 0, "b": "?"}).rows() == [(1, "x"), (0, "?")]
    assert series.isna().tolist() == [False, True]


LABELS = {
    "integers": pd.Index([0, 7], name="numbers"),
    "several levels": pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")], names=["upper", "lower"]),
    "times": pd.date_range("2020", periods=2),
    "equal as strings": pd.Index([0, "0"]),
    "equal": pd.Index(["a", "a"]),
    "strings": pd.Index(["a", "b"], name="letters"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_value_keeps_the_labels_of_pandas_frames(labels):
    frame = pd.DataFrame([[1, None], [None, 2]], pd.Index(["x", "y"], name="rows"), labels)
    fill = ah.adapt("pandas", missing=5)(lambda x: (x.columns, x.index, x.to_numpy().tolist()))
    assert fill(frame)[2] == [[1, 5], [5, 2]]
    assert fill(frame)[0].identical(labels) and fill(frame)[1].identical(frame.index)
    dicts = {label: k for k, label in enumerate(labels)} if labels.is_unique else {labels[0]: 5}
    expected = frame.fillna(dicts) if labels.is_unique else frame.fillna(5)
    exports = (ah.as_pandas(frame, missing=dicts), ah.convert(frame, pd.DataFrame, missing=dicts),
               ah.like(frame, pd.DataFrame, missing=dicts))  # fmt: skip
    for filled in exports:
        assert filled.columns.identical(labels) and filled.index.identical(frame.index)
        assert filled.to_numpy().tolist() == expected.to_numpy().tolist()
    assert frame.columns.identical(labels)


def test_names_of_the_model_replace_default_names():
    frame, model = pd.DataFrame({0: [1, None]}, index=["x", "y"]), pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    filled = ah.like(frame, model, missing=5, labels=True)
    assert filled.columns.tolist() == ["a"] and filled.index.tolist() == ["x", "y"]


def test_dict_for_pandas_has_the_labels_of_the_frame():
    with pytest.raises(ValueError, match=r"the dict names the column '0'; accepted: 0$"):
        ah.as_pandas(pd.DataFrame({0: [1, None]}), missing={"0": 5})


TYPES = {
    "dates": ([DAY, None], pa.date32(), DAY),
    "dates in milliseconds": ([DAY, None], pa.date64(), DAY),
    "times of day": ([None], pa.time32("s"), datetime.time(1)),
    "times with a zone": ([None], pa.timestamp("s", "Europe/Zurich"), AWARE),
    "large strings": (["a", None], pa.large_string(), "b"),
    "string views": (["a", None], pa.string_view(), "b"),
    "large bytes": ([b"a", None], pa.large_binary(), b"b"),
    "lists of equal lengths": ([[1, None], [3, 4]], pa.list_(pa.int64()), 0),
    "missing lists": ([[1], None], pa.list_(pa.field("x", pa.int8(), metadata={"unit": "m"})), [2]),
    "large lists": ([[1], None], pa.large_list(pa.int8()), []),
    "list views": ([[1], None], pa.list_view(pa.int8()), [2]),
    "large list views": ([[1], None], pa.large_list_view(pa.int8()), [2]),
    "elements of rows": ([[1, 2], [None, 4]], pa.list_(pa.int8(), 2), 3),
    "tensors": ([[1, 2], None], pa.fixed_shape_tensor(pa.int8(), [2, 1]), 0),
    "rows of dates": ([[DAY], None], pa.list_(pa.date32(), 1), [DAY]),
    "maps": ([[("a", 1)], None], pa.map_(pa.string(), pa.int64()), []),
    "values of maps": ([[("a", None)]], pa.map_(pa.string(), pa.int64()), {"value": 0}),
    "records with dates": ([{"d": None, "l": [1, None]}], pa.struct({"d": pa.date32(), "l": pa.list_(pa.int8())}),
                           {"d": DAY, "l": 0}),
    "decimals": ([1, None], pa.decimal128(3, 1), decimal.Decimal(0)),
    "uuid": ([b"a" * 16, None], pa.uuid(), np.void(b"b" * 16)),
    "uuid from bytes": ([b"a" * 16, None], pa.uuid(), b"b" * 16),
    "booleans of one byte": ([1, None], pa.bool8(), False),
    "categories": (["a", None], pa.dictionary(pa.int8(), pa.string()), "a"),
}  # fmt: skip


def column_of(values, of_type):
    if isinstance(of_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(of_type, pa.array(values, of_type.storage_type))
    return pa.array(values, of_type)


@pytest.mark.parametrize(("values", "of_type", "value"), TYPES.values(), ids=TYPES)
def test_value_keeps_the_type_for_arrow(values, of_type, value):
    column = column_of(values, of_type)
    for part in (column, column[:1], pa.chunked_array([column[:1], column])):
        filled = ah.as_arrow(part, missing=value)
        assert filled.type.equals(of_type, check_metadata=True) and len(filled) == len(part)
        assert not ah.asnested(filled).is_null().to_host().tolist().count(True)


def test_rows_of_another_length_lose_the_extension_type():
    rows = column_of([[1, 2], None], pa.opaque(pa.list_(pa.int8(), 2), "type", "vendor"))
    assert ah.as_arrow(rows, missing=[3]).to_pylist() == [[1, 2], [3]]


RUN = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([None], pa.int8()))


def test_value_keeps_run_end_encoding_for_arrow():
    assert ah.as_arrow(RUN, missing=5).type == RUN.type and ah.as_arrow(RUN, missing=5).to_pylist() == [5, 5]
    assert ah.as_polars(RUN, missing=5).to_list() == [5, 5]


DATES = {
    "pyarrow": pa.array([DAY, None]),
    "polars": pl.Series([DAY, None]),
    "pandas": pd.Series([DAY, None]),
    "chunks": pa.chunked_array([[DAY], [None]]),
    "NumPy": np.array([DAY, "NaT"], "M8[D]"),
    "a list": [DAY, None],
}


@each({**DATES, "complete": pl.Series([DAY, DAY]), "complete chunks": pa.chunked_array([[DAY], [DAY]])})
def test_dates_are_filled_for_arrow_libraries(column):
    assert ah.as_arrow(column, missing=DAY).to_pylist() == [DAY, DAY]
    assert ah.as_polars(column, missing=DAY).equals(pl.Series([DAY, DAY]))
    assert ah.as_awkward(column, missing=DAY).to_list() == [DAY, DAY]
    if type(column) is not np.ndarray:
        assert ah.as_pandas(column, missing=DAY).dtype == "date32[day][pyarrow]"
    assert ah.as_numpy(column, missing=DAY).tolist() == [DAY, DAY]


def test_dates_of_tables_are_filled():
    table = pl.DataFrame({"d": [DAY, None], "n": [[1, None], [2, 3]]})
    filled = ah.as_polars(table, missing={"d": DAY, "n": 0})
    assert filled.schema == table.schema and filled.rows() == [(DAY, [1, 0]), (DAY, [2, 3])]
    dates = ah.as_pandas(table, missing={"d": DAY, "n": 0})["d"]
    assert dates.dtype == "date32[day][pyarrow]" and dates.tolist() == [DAY, DAY]


@pytest.mark.parametrize("export", [ah.as_arrow, ah.as_polars, ah.as_pandas, ah.as_awkward])
def test_masks_are_only_for_libraries_of_dense_arrays(export):
    for missing in ("mask", "nan"):
        with pytest.raises(ValueError, match="^missing: '(mask|nan)' is for libraries of dense arrays"):
            export([1, None], missing=missing)
    assert ah.asnested(export([1, None], missing=0, copy=False)).to_list() == [1, 0]


def test_trace_reports_one_export_under_the_name_of_the_call():
    source = pa.array([1, None, 3])
    with ah.trace() as report:
        ah.as_torch(source, missing=0)
        ah.as_numpy(source, missing="mask")
    said = str(report)
    assert said.startswith("2 hand-overs") and "as_torch" in said and "as_numpy" in said


# ----------------------------------------------------------------------------------------------------------- on devices


def test_missing_values_on_a_device_are_masked_or_replaced(sycl):
    """Masks and filled values are created on the host and copied to the device."""
    x = ah.asnested(pa.array([1.0, None, 3.0])).to_device("oneapi:0")
    mask = x.is_null()
    assert mask.device == x.device and mask.to_host().tolist() == MASK
    values, mask = ah.as_dpnp(x, missing="mask")
    assert ah.asarray(values).ptr == x.content.ptr and ah.asarray(mask).to_host().tolist() == MASK
    for keywords in ({}, {"missing": 0.0}):
        with pytest.raises(BufferError, match="the memory is on oneapi:0") as raised:
            ah.as_numpy(x, **keywords)
        assert np.isnan(eval(raised.value.call, {"arrayhub": ah, "x": x})).tolist() == MASK
    for keywords in (dict(copy=True), dict(device="cpu")):
        assert ah.as_numpy(x, missing=0.0, **keywords).tolist() == [1.0, 0.0, 3.0]
    for copy in (False, None, True):
        assert ah.asarray(ah.as_dpnp(x, missing=0.0, copy=copy)).to_host().tolist() == [1.0, 0.0, 3.0]
    assert ah.as_numpy(x, missing="mask", copy=True).tolist() == [1.0, None, 3.0]
    filled = x.fill_null(0.0)
    assert filled.device.type == "cpu" and filled.tolist() == [1.0, 0.0, 3.0]


# --------------------------------------------------------------------------------------------------- NumPy's NaT

DAYS = np.array(["2030-01-01", "NaT", "2030-01-03"], "M8[D]")
TIMES = {
    "days": DAYS,
    "seconds": DAYS.astype("M8[s]"),
    "durations": np.array([1, "NaT", 3], "m8[ms]"),
    "a USMArray": ah.asarray(DAYS),
    "a NestedArray": ah.asnested(DAYS),
    "every second element": np.repeat(DAYS, 2)[::2],
    "non-native byte order": DAYS.astype(">M8[s]"),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_nat_is_masked_replaced_or_kept(times):
    dense = ah.as_numpy(times if not hasattr(times, "kind") else times.content)
    masked = ah.as_numpy(times, missing="mask")
    assert masked.mask.tolist() == MASK and np.shares_memory(masked.data, dense)
    filled = ah.as_numpy(times, missing=dense[0])
    assert not np.isnat(filled).any() and filled[1] == filled[0]
    assert np.isnat(ah.as_numpy(times, missing="nan")).tolist() == np.isnat(dense).tolist() == MASK
    for given in (times, ah.as_arrow(times, copy=True), {"a": times}, ah.asnested(times).to_list()):
        assert np.isnan(ah.as_numpy(given, missing="nan", dtype="f4")).ravel().tolist() == MASK


@pytest.mark.parametrize("char", "gFDG")
def test_nan_of_pandas_is_missing_in_types_without_arrow(char):
    x = pd.Series(np.array([1, np.nan, 3], char))
    assert ah.as_numpy(x, missing=0).tolist() == ah.as_numpy(x.to_frame("a"), missing=0)[:, 0].tolist() == [1, 0, 3]


def test_mask_in_a_dict_raises():
    for convert in (ah.as_numpy, ah.as_torch, ah.as_polars):
        with pytest.raises(ValueError, match="the dict has 'mask', which is for all columns"):
            convert({"a": [1.0, None], "b": [1.0, 2.0]}, missing={"a": "mask"})


def test_is_null_and_fill_null_treat_nat_as_missing():
    x = ah.asnested(DAYS)
    assert ah.as_numpy(x.is_null()).tolist() == MASK
    assert ah.as_numpy(x.fill_null(DAYS[0])).tolist() == [*DAYS[[0, 0, 2]].tolist()]
    assert x.null_count == 0


def test_nat_is_missing_in_matrices_and_lists():
    matrix = np.array([[DAYS[0], DAYS[1]], [DAYS[2], DAYS[2]]]).T
    assert ah.as_numpy(matrix, missing="mask").mask.tolist() == [[False, False], [True, False]]
    assert ah.as_numpy(matrix, missing=DAYS[0])[1, 0] == DAYS[0]
    ragged = ah.asnested(ak.unflatten(ak.Array(DAYS), [1, 2]))
    assert ragged.fill_null(DAYS[0]).to_list() == [[DAYS[0].item()], [DAYS[0].item(), DAYS[2].item()]]


def test_smallest_arrow_timestamp_is_not_missing():
    smallest = pa.array([1, -(2**63)]).cast(pa.timestamp("s"))
    assert ah.as_numpy(ah.asnested(smallest).is_null()).tolist() == [False, False]


@pytest.mark.parametrize("library", ["torch", "jax", "dpnp"])
@pytest.mark.parametrize(
    "days",
    [DAYS, pd.Series(DAYS), np.resize(DAYS[:1], 5000), np.append(np.resize(DAYS[:1], 4000), DAYS)],
    ids=["NumPy", "pandas", "complete", "NaT after the first thousand"],
)
def test_call_that_explain_suggests_keeps_nat(days, library):
    pytest.importorskip(library)
    with pytest.raises(BufferError) as raised:
        ah.convert(days, library)
    call = ah.explain(days, to=library).call
    assert call == raised.value.call
    integers, mask = eval(call, {"arrayhub": ah, "x": days})
    mask = ah.as_numpy(mask, copy=True)
    assert mask.tolist() == np.isnat(days).tolist()
    expected = np.asarray(days)[~mask].view("i8")
    assert ah.as_numpy(integers, copy=True)[~mask].tolist() == expected.tolist()


# ------------------------------------------------------------------------------ what is missing, and exact integers

BIG = 2**53 + 1
WITH_A_LARGE_INTEGER = {
    "pyarrow": lambda: pa.array([BIG, None]),
    "pyarrow, negative": lambda: pa.array([-BIG, None]),
    "pyarrow, without missing values": lambda: pa.array([BIG]),
    "chunks": lambda: pa.chunked_array([[BIG], [None]]),
    "lists": lambda: pa.array([[BIG, None]]),
    "Table": lambda: pa.table({"a": [BIG, None]}),
    "polars": lambda: pl.Series([BIG, None]),
    "polars frame": lambda: pl.DataFrame({"a": [BIG, None]}),
    "Series": lambda: pd.Series([BIG, None], dtype="Int64"),
    "Series of Arrow": lambda: pd.Series([BIG, None], dtype="int64[pyarrow]"),
    "Index": lambda: pd.Index([BIG, None], dtype="Int64"),
    "frame": lambda: pd.DataFrame({"a": pd.array([BIG, None], "Int64"), "b": [1.0, 2.0]}),
    "list": lambda: [BIG, None],
    "rows": lambda: [[BIG, None]],
    "masked array": lambda: np.ma.MaskedArray([BIG, 1], [False, True]),
    "ndarray": lambda: np.array([BIG]),
    "uint64": lambda: pa.array([2**64 - 1, None], pa.uint64()),
}


@pytest.mark.parametrize("export", [ah.as_numpy, ah.as_torch])
@pytest.mark.parametrize("producer", WITH_A_LARGE_INTEGER)
def test_nan_raises_for_integers_that_float64_rounds(producer, export):
    x = WITH_A_LARGE_INTEGER[producer]()
    with pytest.raises(OverflowError, match="which float64 would round"):
        export(x, missing="nan", copy=True)
    if producer != "frame":
        assert BIG in np.abs(ah.as_numpy(x, missing=0, copy=True)).ravel() or producer == "uint64"


def test_integers_of_missing_elements_are_not_checked():
    x = ah.asnested(np.ma.MaskedArray([BIG, 1], [True, False]))
    assert np.array_equal(ah.as_numpy(x, missing="nan"), [np.nan, 1], equal_nan=True)


NAN = {  # producers, and whether they call NaN missing
    "Series": (pd.Series([1, np.nan]), True),
    "Index": (pd.Index([1, np.nan]), True),
    "array of pandas": (pd.Series([1, np.nan]).array, True),
    "Float64": (pd.array([1.0, np.nan], "Float64"), True),
    "frame": (pd.DataFrame({"a": [1, np.nan]}), True),
    "DatetimeIndex": (pd.DatetimeIndex(["1970-01-01", "NaT"]), True),
    "ndarray": (np.array([1, np.nan]), False),
    "pyarrow": (pa.array([1, np.nan]), False),
    "polars": (pl.Series([1.0, np.nan]), False),
    "NaT of NumPy": (np.array([0, "NaT"], "M8[s]"), True),
}


@pytest.mark.parametrize("producer", NAN)
def test_missing_is_what_the_producer_calls_missing(producer):
    x, is_missing = NAN[producer]
    assert ah.as_numpy(x, missing="mask", copy=True).mask.ravel().tolist() == [False, is_missing]
    if not isinstance(x, pd.DataFrame) and producer != "NaT of NumPy":
        assert ah.asnested(x).null_count == (1 if is_missing else 0)


# --------------------------------------------------------------------------------------- Arrow's smallest time

SMALLEST = -(2**63)  # a time in Arrow, and NumPy's NaT
ARROW_TIMES = [pa.duration("s"), pa.duration("us"), pa.duration("ns"), pa.timestamp("us"), pa.timestamp("ns", "UTC"),
               pa.date64()]  # fmt: skip
COPIES = {
    "view": lambda x: x,
    "copy": lambda x: ah.asnested(x, copy=True),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": deepcopy,
    "concatenate": lambda x: ah.asnested(pa.chunked_array([ah.as_arrow(x), ah.as_arrow(x[:0])]), copy=True),
    "two copies": lambda x: pickle.loads(pickle.dumps(ah.asnested(x, copy=True))),
}
PLACES = {
    "column": lambda times: times,
    "lists": lambda times: pa.ListArray.from_arrays([0, len(times)], times),
    "list views": lambda times: pa.ListViewArray.from_arrays(
        pa.array([1, 0], pa.int32()), pa.array([2, 1], pa.int32()), times
    ),
    "rows of one length": lambda times: pa.FixedSizeListArray.from_arrays(times, len(times)),
    "records": lambda times: pa.StructArray.from_arrays([times], ["t"]),
    "categories": lambda times: pa.DictionaryArray.from_arrays(pa.array([1, 0, 2, 0]), times),
    "runs": lambda times: pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int32()), times),
}


def arrow_times(kind, values=(SMALLEST, 1, None)):
    return pa.array(values, pa.int64()).view(kind)


def flattened(array):
    """Return the integers of the times at any depth of an Arrow array, and None for missing ones."""
    if pa.types.is_struct(array.type):
        return flattened(array.field(0))
    if pa.types.is_dictionary(array.type) or pa.types.is_run_end_encoded(array.type):
        return flattened(array.dictionary if pa.types.is_dictionary(array.type) else array.values)
    if pa.types.is_nested(array.type):
        return flattened(array.flatten())
    return array.view(pa.int64()).to_pylist()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("kind", ARROW_TIMES, ids=str)
def test_smallest_time_of_arrow_is_not_missing(kind, again, place):
    if place == "runs" and (again == "concatenate" or kind == pa.date64()):
        pytest.skip("pyarrow 26 does not chunk slices of runs, and rejects dates within a day in the values of runs")
    array = PLACES[place](arrow_times(kind))
    x = COPIES[again](ah.asnested(array))
    assert flattened(ah.as_arrow(x)) == flattened(array)
    assert flattened(ah.as_arrow(array, copy=True)) == flattened(array)


@pytest.mark.parametrize("kind", ARROW_TIMES, ids=str)
def test_smallest_time_of_a_dense_copy_is_not_missing(kind):
    times = arrow_times(kind, (SMALLEST, 1))
    if kind != pa.timestamp("ns", "UTC") and kind != pa.date64():
        for x in (ah.asarray(times), ah.asarray(times, copy=True), pickle.loads(pickle.dumps(ah.asarray(times)))):
            assert flattened(ah.as_arrow(x)) == flattened(ah.as_arrow(deepcopy(x))) == [SMALLEST, 1]
            assert x[1:].copy()[:0].access == "readwrite"


def test_missing_value_does_not_replace_the_smallest_time_of_arrow():
    times = arrow_times(pa.duration("us"))
    assert flattened(ah.as_arrow(times, missing=datetime.timedelta(0))) == [SMALLEST, 1, 0]
    assert ah.as_numpy(times, missing="mask").mask.tolist() == [False, False, True]
    assert ah.asnested(times).to_list()[0] == datetime.timedelta(microseconds=SMALLEST)
    assert ah.asnested(arrow_times(pa.duration("ns"))).to_list()[0] == SMALLEST


def test_nat_of_numpy_is_missing_in_copies():
    times = np.array([SMALLEST, 1]).view("m8[us]")
    for x in (ah.asnested(times), ah.asnested(times, copy=True), pickle.loads(pickle.dumps(ah.asnested(times)))):
        assert flattened(ah.as_arrow(x)) == [None, 1]
        assert x.to_list()[0] is None


def test_nan_of_xarray_is_missing():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray([[1.0, np.nan], [3.0, 4.0]], dims=("x", "y"), name="n", attrs={"units": "m"})
    filled = [[1.0, 0.0], [3.0, 4.0]]
    assert x.isnull().values.tolist() == np.ma.getmaskarray(ah.as_numpy(x, missing="mask")).tolist()
    for array in (
        ah.as_numpy(x, missing=0),
        ah.as_torch(x, missing=0),
        ah.asarray(x, missing=0),
        ah.as_arrow(x, missing=0),
    ):
        assert array.tolist() == filled
    assert ah.as_numpy(x.variable, missing=0).tolist() == filled
    assert ah.as_numpy(x[0, 1], missing=5.0) == 5.0
    assert np.isnan(ah.as_numpy(x, missing="nan")[0, 1])
    same = ah.convert(x, "xarray", missing=0)
    assert same.values.tolist() == filled and same.dims == ("x", "y") and same.name == "n" and same.attrs == x.attrs
    complete = x.isel(y=[0])
    assert np.shares_memory(ah.as_numpy(complete, missing=0), complete.values)
    assert ah.adapt("numpy", missing=0)(lambda a: a.sum())(x) == 8


BEHIND = np.array([1.0, np.nan, 1e300])
COLUMNS_WITH_VALUES_BEHIND = {
    "pandas": lambda: pd.Series(pd.arrays.FloatingArray(BEHIND.copy(), np.array([False, True, True]))),
    "frame": lambda: pd.DataFrame({"a": COLUMNS_WITH_VALUES_BEHIND["pandas"]()}),
    "pyarrow": lambda: pa.Array.from_buffers(pa.float64(), 3, [pa.py_buffer(b"\1"), pa.py_buffer(BEHIND.tobytes())]),
    "numpy": lambda: np.ma.masked_array(BEHIND, [0, 1, 1]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("name", COLUMNS_WITH_VALUES_BEHIND)
def test_casts_do_not_warn_about_values_behind_missing_elements(name, dtype):
    given = COLUMNS_WITH_VALUES_BEHIND[name]()
    assert ah.as_numpy(given, missing=7, dtype=dtype).ravel().tolist() == [1, 7, 7]
    assert ah.as_numpy(given, missing="mask", dtype=dtype).ravel().tolist() == [1, None, None]
    column = ah.as_arrow(given, dtype=dtype)
    assert (column.field("a") if name == "frame" else column).to_pylist() == [1, None, None]
    assert ah.as_numpy(pa.nulls(2), missing=7, dtype=dtype).tolist() == [7, 7]
