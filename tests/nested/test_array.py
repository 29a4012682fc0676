"""Test that nested arrays are imported from libraries and lists, indexed, and exported with the same memory."""

import datetime
import decimal
import gc
import re
import weakref

import awkward as ak
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_by_hand import given
from dlpack_by_hand import packed_int4
from numpy.dtypes import StringDType
from optional import optional
from producers import lives

import arrayhub as ah
from arrayhub.nested import to_device
from arrayhub.nested.array import nested_of
from arrayhub.nested.export import polars as export_polars

duckdb = optional("duckdb")
na = optional("nanoarrow")

RAGGED = [[1.0], [2.0, 3.0, 4.0], [], [5.0, 6.0]]
WORDS = ["This", "is", None, "a string of more than twelve bytes", "é"]

# pyarrow arrays and their datashapes.
ARRAYS = {
    "numbers": (pa.array([1, 2, 3]), "3 * int64"),
    "missing numbers": (pa.array([1, None, 3]), "3 * ?int64"),
    "lists": (pa.array(RAGGED), "4 * var * float64"),
    "large lists": (pa.array(RAGGED, pa.large_list(pa.float64())), "4 * var * float64"),
    "missing lists": (pa.array([[1], None, [2, None]]), "3 * option[var * ?int64]"),
    "lists of lists": (pa.array([[[1], []], [], [[2, 3]]]), "3 * var * var * int64"),
    "fixed lists in lists": (pa.array([[[1, 2]], []], pa.list_(pa.list_(pa.int32(), 2))), "2 * var * 2 * int32"),
    "fixed lists of strings": (pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "1 * 2 * string"),
    "missing fixed lists": (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), "2 * option[2 * ?int32]"),
    "strings": (pa.array(WORDS), "5 * ?string"),
    "large strings": (pa.array(WORDS, pa.large_string()), "5 * ?string"),
    "string views": (pa.array(WORDS, pa.string_view()), "5 * ?string"),
    "bytes": (pa.array([b"\xff", b""]), "2 * bytes"),
    "byte views": (pa.array([b"\xff" * 20, b""], pa.binary_view()), "2 * bytes"),
    "bits": (pa.array([True, None, False]), "3 * ?bool"),
    "records": (pa.array([{"x": 1, "y": [1.5]}, {"x": 2, "y": []}]), "2 * {x: int64, y: var * float64}"),
    "missing records": (pa.array([{"x": 1}, None]), "2 * ?{x: int64}"),
    "categories": (pa.array(["a", "b", "a"]).dictionary_encode(), "3 * categorical[type=string]"),
    "missing categories": (pa.array(["a", None]).dictionary_encode(), "2 * ?categorical[type=string]"),
    "list views": (pa.array([[1, 2], [3]], pa.list_view(pa.int64())), "2 * var * int64"),
    "list views out of order": (
        pa.ListViewArray.from_arrays([3, 0, 5, 0], [2, 3, 0, 1], pa.array([10, 11, 12, 13, 14])), "4 * var * int64"
    ),
    "times": (pa.array([[1], []], pa.list_(pa.timestamp("ns"))), "2 * var * datetime64[ns]"),
    "empty lists": (pa.array([], pa.list_(pa.int8())), "0 * var * int8"),
    "strings in lists": (pa.array([["a"], ["b", None]]), "2 * var * ?string"),
}  # fmt: skip
IDS = list(ARRAYS)


@pytest.mark.parametrize("name", IDS)
def test_datashapes_describe_arrays_of_pyarrow(name):
    source, kind = ARRAYS[name]
    x = ah.asnested(source)
    assert str(x.type) == ah.datashape.of(x) == kind
    assert ah.datashape.parse(kind) == x.type
    assert str(ah.datashape.parse(kind)) == kind
    assert str(ak.types.from_datashape(kind, highlevel=True)) == kind
    assert x.access == "immutable"


@pytest.mark.parametrize("name", IDS)
def test_awkward_round_trip_keeps_the_values(name):
    source, _ = ARRAYS[name]
    x = ah.asnested(source)
    array = ah.as_awkward(x)
    if name != "times":
        assert array.to_list() == x.to_list()
    assert ak.is_valid(array)
    back = ah.asnested(array)
    assert back.to_list() == x.to_list()


@pytest.mark.parametrize("name", [name for name in IDS if name not in ("times", "byte views")])
def test_polars_round_trip_keeps_the_values(name):
    source, _ = ARRAYS[name]
    x = ah.asnested(source)
    frame = ah.as_polars(x)
    taken = frame.to_struct().to_list() if isinstance(frame, pl.DataFrame) else frame.to_list()
    assert taken == x.to_list()
    assert ah.asnested(frame).to_list() == (taken if isinstance(frame, pl.Series) else frame.to_dicts())


def test_offsets_and_rows_share_the_memory():
    source = pa.array(RAGGED)
    x = ah.asnested(source)
    assert x.offsets.ptr == source.buffers()[1].address
    assert (ah.as_numpy(x.offsets).tolist(), x.offsets.dtype) == ([0, 1, 4, 4, 6], "i4")
    row = x[1]
    assert isinstance(row, ah.USMArray)
    assert (row.ptr, row.shape) == (x.content.ptr + 8, (3,))
    assert pa.array(x).buffers()[1].address == x.offsets.ptr
    assert ah.as_awkward(x).layout.offsets.data.ctypes.data == x.offsets.ptr


FRAMES = {
    "pyarrow table": lambda: pa.table({"n": [1, 2], "s": ["a", None]}),
    "pyarrow batch": lambda: pa.record_batch({"n": [1, 2], "s": ["a", None]}),
    "polars": lambda: pl.DataFrame({"n": [1, 2], "s": ["a", None]}),
    "pandas": lambda: pd.DataFrame({"n": [1, 2], "s": ["a", None]}),
    "duckdb": lambda: duckdb.sql("select * from (values (1, 'a'), (2, null)) t(n, s)"),
    "dicts": lambda: [{"n": 1, "s": "a"}, {"n": 2, "s": None}],
    "awkward": lambda: ak.Array([{"n": 1, "s": "a"}, {"n": 2, "s": None}]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_every_library_are_imported_as_records(name):
    x = ah.asnested(FRAMES[name]())
    gc.collect()
    assert x.kind == "record"
    assert list(x.fields) == ["n", "s"]
    assert x.to_list() == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]
    assert x["s"].to_list() == ["a", None]
    assert x[1]["s"] is None
    assert duckdb.sql("select * from x").fetchall() == [(1, "a"), (2, None)]


def test_jagged_tensors_share_their_offsets_and_require_writable_memory():
    jagged = torch.nested.nested_tensor([torch.arange(float(n)) for n in (1, 3, 2)], layout=torch.jagged)
    x = ah.asnested(jagged)
    assert x.offsets.ptr == jagged.offsets().data_ptr()
    assert ah.as_torch(x).layout is torch.jagged and ah.as_torch(x).values().data_ptr() == x.content.ptr
    with pytest.raises(BufferError, match="read-only"):
        ah.as_torch(ah.asnested(pa.array(RAGGED)))


def test_to_dense_returns_a_view_for_rows_of_equal_length():
    source = pa.array([[1, 2], [3, 4], [5, 6]])
    x = ah.asnested(source).to_dense()
    assert (x.shape, x.ptr) == ((3, 2), source.values.buffers()[1].address)
    deep = ah.asnested([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]).to_dense()
    assert deep.shape == (2, 2, 2)
    with pytest.raises(ValueError, match="row 1 has 3 elements"):
        ah.asnested(RAGGED).to_dense()
    with pytest.raises(ValueError, match="element 1 is missing"):
        ah.asnested(pa.array([1, None])).to_dense()
    assert ah.as_numpy(ah.asnested(pa.array([True, False])).to_dense(copy=True)).tolist() == [True, False]


@pytest.mark.parametrize("start", [0, 1])
def test_exported_records_with_missing_ones_stay_missing(start):
    """Missing records are exported as a Series, because a DataFrame cannot represent missing rows."""
    source = pa.array([{"a": 1}, None, {"a": None}])[start:]
    for take in (ah.as_polars, ah.as_pandas, ah.as_awkward, ah.asnested):
        taken = take(source, copy=False)
        assert [None if row is pd.NA else row for row in taken.to_list()] == source.to_pylist()
        assert ah.asnested(taken).to_list() == source.to_pylist()
    whole = source[-1:]
    assert ah.as_polars(whole).to_dicts() == ah.as_pandas(whole).to_dict("records") == [{"a": None}]


def test_field_shares_the_validity_bitmap_of_its_records():
    source = pa.StructArray.from_arrays([pa.array(range(20))], ["x"], mask=pa.array([k == 3 for k in range(20)]))
    x = ah.asnested(source[2:])
    assert x["x"].validity.ptr == x.validity.ptr
    assert x["x"].to_list() == [2, None, *range(4, 20)]
    assert pa.array(x["x"]).to_pylist() == [2, None, *range(4, 20)]


def test_converted_slices_have_offset_zero():
    """`for_polars` creates children that start at offset 0, even if the validity bitmap starts within a byte."""
    x = ah.asnested(pa.array([[1], None, [2], [3, 4]], pa.list_view(pa.int64())))[1:]
    assert x.validity_offset == 1
    assert na.c_array(export_polars.for_polars(x)).offset == 0
    words = ah.asnested(pa.array([None, None, "a", "b"]))[1:]
    assert na.c_array(export_polars.for_polars(words)).offset == 0
    assert ah.as_polars(words).to_list() == [None, "a", "b"]


def _rows_with_gaps(row):
    return pa.array([row, None, row, None, row], pa.list_(pa.int32(), 2))


_ROWS = _rows_with_gaps([1, 2])
_GAPS = ah.asnested(pa.array([{"a": [1, 2]}, None, {"a": [3, 4]}] * 2, pa.struct([("a", _ROWS.type)])))


@pytest.mark.parametrize(
    "x",
    [
        ah.asnested(_ROWS)[1:3],
        ah.asnested(pa.array([["a", None], None, ["b", "c"]], pa.list_(pa.string(), 2)))[1:],
        ah.asnested(pa.array([_ROWS.to_pylist(), None, [None]], pa.list_(_ROWS.type)))[1:],
        ah.asnested(pa.FixedSizeListArray.from_arrays(_ROWS.slice(1), 2))[1:],
        _GAPS[1:]["a"],  # a field of fixed-size lists, whose content is a two-dimensional array
        _GAPS["a"][1:],
        _GAPS[1:],
    ],
    ids=["numbers", "strings", "inside lists", "nested", "field of a slice", "slice of a field", "inside records"],
)
def test_polars_accepts_slices_of_fixed_size_lists(x):
    """Slices with a validity bitmap are exported at offset 0, because polars panics for a bitmap with an offset."""
    series = ah.as_polars(x)
    assert series.to_list() == pa.array(x).to_pylist()
    if x.kind == "flat":
        assert ah.asnested(series).content.ptr == x.content.ptr


def called(refusal, x):
    """Return the result of the call that a refusal of `x` names."""
    return eval(refusal.call, {"arrayhub": ah, "x": x})


NO_ROWS, NO_BYTES = "rows of fixed length 0", "elements of 0 bytes"  # polars panics for fixed-size binary of size 0


@pytest.mark.parametrize(
    ("x", "what"),
    [
        (pa.array([[], None], pa.list_(pa.int32(), 0)), NO_ROWS),
        (pa.array([[], None], pa.list_(pa.string(), 0)), NO_ROWS),
        (pa.array([[[]], None], pa.list_(pa.list_(pa.int32(), 0))), NO_ROWS),
        (pa.array([{"a": []}], pa.struct([("a", pa.list_(pa.int32(), 0))])), NO_ROWS),
        (np.zeros((2, 0)), NO_ROWS),
        (np.zeros((2, 3, 0)), NO_ROWS),
        (np.zeros(3, "V0"), NO_BYTES),
        (pa.array([b"", None], pa.binary(0)), NO_BYTES),
        (pa.array([[b""], []], pa.list_(pa.binary(0))), NO_BYTES),
    ],
)
@pytest.mark.parametrize("copy", [False, True])
def test_polars_rejects_elements_of_size_0(x, what, copy):
    with pytest.raises(ah.Refusal, match=f"polars: {what} are not supported") as raised:
        ah.as_polars(x, copy=copy)
    assert len(called(raised.value, x)) == len(x)


@pytest.mark.parametrize("zone", ["+05:30", "no/such zone"])
@pytest.mark.parametrize(
    "within", [lambda times: times, lambda times: pa.StructArray.from_arrays([[1], times], ["n", "t"])]
)
def test_error_for_a_zone_that_polars_lacks_names_the_zone(zone, within):
    times = pa.array([1577836800000], pa.int64()).view(pa.timestamp("ms", zone))
    x = ah.asnested(within(times))
    with pytest.raises(ah.Refusal, match=f"^polars: .*{re.escape(zone)}") as raised:
        ah.as_polars(x)
    assert raised.value.call == ah.explain(x, "polars").call == "arrayhub.as_arrow(x)"
    x = x["t"] if x.kind == "record" else x
    (time,) = ah.as_polars(ah.as_arrow(x).cast(pa.timestamp("ms", "UTC"))).to_list()
    assert time == datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def test_records_without_fields_keep_their_rows():
    x = ah.asnested([{}, {}, {}])
    assert x.to_list() == [{}, {}, {}]
    for taken in (ah.as_pandas(x), ah.as_pandas(x[1:]), ah.as_pandas(x[:0])):
        assert len(taken.columns) == 0
    assert [len(ah.as_pandas(x[:k])) for k in range(4)] == [0, 1, 2, 3]
    assert ah.as_polars(x).shape == (3, 0) and ah.as_awkward(x).to_list() == x.to_list()
    assert ah.asnested(ah.as_pandas(x)).to_list() == x.to_list()


def test_error_for_records_names_the_field_that_numpy_cannot_store():
    x = ah.asnested([{"a": 1, "b": {"c": 2.5}}, {"a": 3, "b": {"c": None}}])
    with pytest.raises(BufferError, match=r"1 of 2 elements of x\['b'\]\['c'\] is missing"):
        ah.as_numpy(x, copy=True)
    assert ah.as_numpy(x["b"]["c"], missing="mask").tolist() == [2.5, None]
    with pytest.raises(BufferError, match=r"x\['s'\] has strings of variable length.*as_numpy\(x\['s'\], copy=True"):
        ah.as_numpy(ah.asnested([{"s": "a"}]), copy=True)
    with pytest.raises(ValueError, match=r"^numpy: x\['r'\]: row 1 has 0 elements"):
        ah.as_numpy(ah.asnested([{"r": [1]}, {"r": []}]), copy=True)
    lists = ah.asnested([[1], None])
    with pytest.raises(BufferError, match="elements of x is missing") as raised:
        ah.as_numpy(lists, copy=True)
    assert [row.tolist() for row in eval(raised.value.call, {"arrayhub": ah, "x": lists})] == [[1], []]


PERIOD, INTERVAL = 'extension["pandas.period", int64]', 'extension["pandas.interval", {left: int64, right: int64}]'
MONTHS = pd.period_range("2020", periods=2, freq="M")
PERIODS = pa.array(pd.Series(MONTHS))
EXTENSIONS = {
    "periods": (pd.Series(MONTHS), f"2 * {PERIOD}"),
    "missing periods": (pd.Series(pd.PeriodIndex(["2020-01", None], freq="M")), f"2 * ?{PERIOD}"),
    "an index of periods": (MONTHS, f"2 * {PERIOD}"),
    "periods in a frame": (pd.DataFrame({"p": MONTHS}), f"2 * {{p: {PERIOD}}}"),
    "periods of Arrow": (PERIODS, f"2 * {PERIOD}"),
    "chunks of periods": (pa.chunked_array([PERIODS, pa.nulls(1, PERIODS.type)]), f"3 * ?{PERIOD}"),
    "intervals": (pd.Series(pd.interval_range(0, 1)), f"1 * {INTERVAL}"),
    "uuid": (pa.array([b"u" * 16], pa.uuid()), '1 * extension["arrow.uuid", void[16]]'),
    "json": (pa.array(["1", None], pa.json_()), '2 * ?extension["arrow.json", string]'),
    "a name without a dot": (
        pa.record_batch(
            [pa.array([1])], pa.schema([pa.field("f", pa.int64(), metadata={"ARROW:extension:name": "mine"})])
        ),
        "1 * {f: extension[mine, int64]}",
    ),
    "booleans of bytes": (pa.array([False, None]).cast(pa.bool8()), "2 * ?bool"),
    "tensors": (pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 3))), "2 * 3 * float64"),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_type_contains_the_extension_type(name):
    source, kind = EXTENSIONS[name]
    x = ah.asnested(source)
    assert str(x.type) == kind == str(ah.datashape.parse(kind))
    assert all(chunk.extension == x.extension for chunk in x.chunks)
    assert ah.datashape.parse(kind) == x.type
    assert str(ah.asnested(ah.as_arrow(x)).type) == kind


def test_periods_are_stored_as_integers():
    x = ah.asnested(EXTENSIONS["periods"][0])
    assert x.extension == ("pandas.period", b'{"freq": "M"}')
    assert x.to_list() == ah.as_numpy(x).tolist() == x.content.tolist() == [600, 601]


def test_asnested_accepts_arrays_that_arrow_lacks():
    for source in (np.arange(10)[::2], np.arange(3) + 1j, np.arange(6.0).reshape(2, 3).T):
        assert ah.asnested(ah.asarray(source)).to_list() == source.tolist()
    assert ah.asnested(pd.Series([1j, 2])).to_list() == [1j, 2]


def test_numpy_strings_are_imported_and_exported():
    source = np.array(["a", "", "a string of more than twelve bytes", "é"] * 3, np.dtypes.StringDType())
    x = ah.asnested(source)
    assert x.to_list() == source.tolist()
    assert ah.as_numpy(ah.asnested(pa.array(source.tolist(), pa.string_view())), copy=True).tolist() == source.tolist()
    with pytest.raises(BufferError, match="copy=True"):
        ah.as_numpy(x)


@pytest.mark.parametrize("kind", ["S", "U", "T"])
def test_empty_string_arrays_are_exported_as_strings(kind):
    arrow = ah.as_arrow(np.array([], kind), copy=True)
    assert arrow.type == (pa.binary() if kind == "S" else pa.string())
    records = ah.as_arrow(
        np.zeros(0, [("name", f"{kind}3"), ("x", "f8")]) if kind != "T" else np.zeros(0, [("x", "f8")]), copy=True
    )
    assert kind == "T" or records.type.field("name").type == arrow.type


@pytest.mark.parametrize("step", [1, 2, -1])
def test_numpy_strings_of_varying_length_are_copied_completely(step):
    """The buffer grows if its size was underestimated: here, the strings sampled for the estimate are short."""
    values = [None if k % 7 == 3 else "é" * (k % 3) if k % 5 == 0 or k < 4000 else "x" * (k % 97) for k in range(9000)]
    source = np.array(values, np.dtypes.StringDType(na_object=None))[::step]
    x = ah.asnested(source)
    assert x.to_list() == ah.as_numpy(x, copy=True).tolist() == values[::step]
    assert x.content.nbytes == sum(len(value.encode()) for value in values[::step] if value)
    assert x.null_count == sum(value is None for value in values[::step])
    assert len(ah.asnested(source[:0])) == 0


def test_numpy_records_and_masks_are_imported():
    source = np.array([(1, 2.5, "ab"), (3, 4.5, "c")], [("i", "i4"), ("f", "f8"), ("s", "U2")])
    x = ah.asnested(source)
    assert x.to_list() == [{"i": 1, "f": 2.5, "s": "ab"}, {"i": 3, "f": 4.5, "s": "c"}]
    assert x["i"].ptr == source.ctypes.data
    numbers = ah.asnested(pa.array([{"i": 1, "f": 2.5}]))
    assert ah.as_numpy(numbers, copy=True).tolist() == [(1, 2.5)]
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert ah.asnested(masked).to_list() == [1, None, 3]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("U", "string"), (StringDType(), "string"), (StringDType(na_object=None), "string"), ("S", "bytes")],
)
def test_masked_strings_become_missing_strings(dtype, kind):
    strings = np.array(["a", "no ASCII: \u00e4"] if kind == "string" else [b"a", b"b"], dtype)
    for mask in ([False, True], [True, True], [False, False], np.ma.nomask):
        x = ah.asnested(np.ma.array(strings, mask=mask))
        expected = [None if gap else text for text, gap in zip(strings.tolist(), np.broadcast_to(mask, 2), strict=True)]
        assert (x.kind, x.to_list()) == (kind, expected)
        assert ah.as_arrow(x).to_pylist() == ah.as_polars(x).to_list() == expected
    assert ah.asnested(np.ma.array(strings, mask=[False, True])).content.size == 1
    assert ah.asnested(np.ma.array(strings[:0])).kind == ah.asnested(strings[:0]).kind == kind


def test_masked_strings_may_also_have_missing_strings():
    strings = np.array(["a", None, "b"], StringDType(na_object=None))
    assert ah.asnested(np.ma.array(strings, mask=[False, False, True])).to_list() == ["a", None, None]
    no_text = np.ma.array(["a", "\ud800"], mask=[False, True])
    assert ah.asnested(no_text).to_list() == ["a", None]


@pytest.mark.parametrize("make", [list, np.array, np.ma.array, lambda texts: np.array([(texts[1],)], [("s", "U1")])])
def test_strings_that_utf8_cannot_encode_raise(make):
    with pytest.raises(
        ValueError, match=r"^asnested: '\\ud800' cannot be encoded as UTF-8 .*; accepted: the bytes of text"
    ):
        ah.asnested(make(["a", "\ud800"]))


@pytest.mark.parametrize(
    ("values", "name", "says"),
    [
        ([{"a": 1}], "content", "content: not defined for kind 'record'"),
        (["a"], "fields", "fields: not defined for kind 'string'"),
        ([[1]], "indices", "indices: not defined for kind 'list'"),
        (pa.nulls(1), "content", "content: not defined for kind 'opaque'"),
        (pa.array(["a"], pa.string_view()), "offsets", "offsets: not defined for kind 'string_view'"),
    ],
)
def test_attributes_of_another_kind_raise(values, name, says):
    with pytest.raises(AttributeError, match=says):
        getattr(ah.asnested(values), name)


def test_python_values_are_imported():
    day = datetime.datetime(2020, 1, 1)
    for values in ([1, None, 2], [[1], None], ["a", None], [b"a"], [[["a"], []], []], [{"a": 1}, {"b": "c"}, None],
                   [True, False], [1.5, 2], [day, None], [], [None], [[]], [[None, 1]]):  # fmt: skip
        expected = values
        if values and isinstance(values[0], dict):
            expected = [{"a": 1, "b": None}, {"a": None, "b": "c"}, None]
        assert ah.asnested(values).to_list() == expected
    assert ah.asnested([DAY, None]).to_list() == [datetime.timedelta(1), None]
    assert ah.asnested([[pd.Timestamp(day), pd.NaT], [pd.NaT]]).to_list() == [[day, None], [None]]
    assert ah.asnested([["a", pd.NA], pd.NA]).to_list() == [["a", None], None]
    assert ah.asnested([1, pd.NA]).to_list() == [1, None]
    endless: list = []
    endless.append(endless)
    with pytest.raises(TypeError, match="64 levels"):
        ah.asnested(endless)


def test_invalid_utf8_raises_on_decoding():
    source = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"a\xff")]
    )
    x = ah.asnested(source)
    assert x[0] == "a"
    for read in (lambda: x[1], x.to_list, lambda: ah.as_numpy(x, copy=True)):
        with pytest.raises(ah.InterfaceError, match="string array's element 1 .*UTF-8"):
            read()


LISTED = {
    **{f"{unit}, {zone}": pa.array([0, None, 86399 * 10**9], pa.timestamp("ns", zone)).cast(pa.timestamp(unit, zone))
       for unit in ("s", "ms", "us") for zone in ("Europe/Zurich", "UTC", "+05:30", "-00:30")},
    "seconds": pa.array([0, None, 86399], pa.time32("s")),
    "milliseconds": pa.array([1, None, 86399999], pa.time32("ms")),
    "microseconds": pa.array([1, None, 86399999999], pa.time64("us")),
    "days": pa.array([1, None, -1], pa.date32()),
    "times in lists": pa.array([[1, 2], None, []], pa.list_(pa.time32("s"))),
    "times in records": pa.array([{"a": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)}, {"a": None}]),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTED)
def test_to_list_returns_python_times(case):
    x, expected = ah.asnested(LISTED[case]), LISTED[case].to_pylist()
    assert x.to_list() == expected
    for made, wanted in zip(x.to_list(), expected, strict=True):
        assert getattr(made, "utcoffset", int)() == getattr(wanted, "utcoffset", int)()


def test_to_list_returns_integers_for_times_outside_python():
    assert ah.asnested(pa.array([5], pa.time64("ns"))).to_list() == [5]
    assert ah.asnested(pa.array([5], pa.timestamp("ns", "UTC"))).to_list() == [5]
    times = pa.array([86400, -1, 7], pa.int32()).view(pa.time32("s"))
    assert ah.asnested(times).to_list() == [86400, -1, datetime.time(0, 0, 7)]
    unknown = ah.asnested(pa.array([0], pa.timestamp("s", "Nowhere/Land"))).to_list()
    assert unknown == [datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)]
    (late,) = ah.asnested(pa.array([253402300799], pa.timestamp("s", "+05:00"))).to_list()  # the last second of 9999
    assert late == datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)


@pytest.mark.parametrize("key", [2, -3, 2**63, -(2**70)])
def test_index_out_of_range_raises_index_error(key):
    for x in (ah.asnested([[1], [2]]), ah.asnested(["a", "b"])):
        with pytest.raises(IndexError, match=f"index {key} is out of range for an array of 2 elements"):
            x[key]


def test_rows_of_bfloat16_are_imported_and_exported():
    rows = [np.ones(n, ml_dtypes.bfloat16) for n in (2, 0, 3)]
    x = ah.asnested(rows)
    assert x.content.dtype == ml_dtypes.bfloat16
    assert [len(row) for row in x] == [2, 0, 3]
    assert ah.as_torch(x, copy=True).dtype == torch.bfloat16


def test_fixed_size_bytes_are_exported_to_awkward():
    pytest.importorskip("awkward")
    rows = pa.array([b"abcde", None, b"vwxyz"], pa.binary(5))
    lists = pa.array([[b"ab"], [], [b"cd", b"ef"]], pa.list_(pa.binary(2)))
    pairs = pa.array([[b"ab", b"cd"]], pa.list_(pa.binary(2), 2))
    for source in (rows, rows[1:], rows.drop_null(), lists, pairs):
        x = ah.as_awkward(ah.asnested(source))
        assert x.to_list() == source.to_pylist()
    assert str(ah.as_awkward(ah.asnested(lists)).type) == "3 * var * bytes[2]"


@pytest.mark.parametrize("nested", [False, True])
def test_types_missing_in_awkward_are_rejected(nested):
    rows = np.zeros(3, ml_dtypes.bfloat16)
    x = [rows, rows[:1]] if nested else rows
    with pytest.raises(ah.Refusal, match=r"awkward: .*bfloat16") as raised:
        ah.as_awkward(x)
    assert raised.value.call == "arrayhub.as_awkward(x, dtype='float32')"
    assert called(raised.value, x).to_list() == ([[0.0] * 3, [0.0]] if nested else [0.0] * 3)


def test_memory_is_released_with_the_last_export():
    numbers = np.arange(10.0)
    alive = weakref.ref(numbers)
    flat = pa.array(ah.asarray(numbers))
    lists = pa.ListArray.from_arrays(pa.array([0, 3, 10], pa.int32()), flat)
    del numbers, flat
    x = ah.asnested(lists)
    row = x[1]
    kept = pa.array(x)[1:]
    capsules = x.__arrow_c_array__()
    del lists, x
    assert lives(alive)
    assert (ah.as_numpy(row).tolist(), kept.to_pylist()) == (list(range(3, 10)), [list(range(3, 10))])
    del row, kept
    assert lives(alive)
    del capsules
    assert not lives(alive)


@pytest.mark.parametrize("rows", [pa.list_, pa.large_list, lambda item: pa.list_(item, 1)])
def test_requested_string_views_share_the_characters(rows):
    x = ah.asnested(pa.array([["a string of more than twelve bytes"]] * 2, pa.list_(pa.string())))
    wanted = rows(pa.string_view())
    made = pa.Array._import_from_c_capsule(*x.__arrow_c_array__(wanted.__arrow_c_schema__()))
    made.validate(full=True)
    assert (made.type, made.to_pylist()) == (wanted, x.to_list())
    assert made.values.buffers()[2].address == x.content.content.ptr


def test_requested_schema_is_honored_by_the_device_interface():
    """pyarrow prefers the device interface for its requests."""
    lists = ah.asnested(pa.array([[1], [2, 3]]))
    wide = pa.array(lists, type=pa.large_list(pa.int64()))
    assert wide.type == pa.large_list(pa.int64())
    assert wide.values.buffers()[1].address == lists.content.ptr


def test_pandas_arrays_on_arrow_memory_are_viewed():
    chunk = pa.array([[1], [2, 3]])
    x = ah.asnested(pd.Series(chunk, dtype=pd.ArrowDtype(chunk.type)).array, copy=False)
    assert x.content.ptr == chunk.values.buffers()[1].address
    assert ah.asnested(pd.array(["a", None], dtype="string")).to_list() == ["a", None]


SHARED_EXTENSION_ARRAYS = {
    "integers": (lambda: pd.array([1, None], dtype="Int64"), lambda array: array._data),
    "floats": (lambda: pd.array([1.5, None], dtype="Float64"), lambda array: array._data),
    "periods": (lambda: pd.array(pd.PeriodIndex(["2020", None], freq="Y")), lambda array: array.asi8),
    "intervals": (lambda: pd.arrays.IntervalArray.from_breaks([0, 1, 2]), lambda array: array.left.to_numpy()),
}


@pytest.mark.parametrize("name", SHARED_EXTENSION_ARRAYS)
def test_pandas_arrays_and_series_share_their_values(name):
    make, values = SHARED_EXTENSION_ARRAYS[name]
    array = make()
    for source in (array, pd.Series(array, copy=False)):
        x = ah.asnested(source, copy=False)
        content = x.children[0] if x.kind == "record" else ah.asnested(x).content
        assert content.ptr == values(array).ctypes.data
        assert x.to_list() == ah.asnested(array, copy=True).to_list()
        assert ah.as_arrow(source, copy=False).equals(pa.array(array))


INDEXES = {
    "strings": (pd.Index(["a", None]), "2 * ?string"),
    "objects": (pd.Index(["a", "b"], dtype=object), "2 * string"),
    "categories": (pd.CategoricalIndex(["a", "b"]), "2 * categorical[type=string]"),
    "zones": (pd.date_range("2020-01-01", periods=2, tz="UTC", unit="s"), "2 * timestamp[s, UTC]"),
    "missing": (pd.Index([1, None], dtype="Int64"), "2 * ?int64"),
    "intervals": (pd.interval_range(0, 2), '2 * extension["pandas.interval", {left: int64, right: int64}]'),
    "numbers": (pd.Index([1, 2]), "2 * int64"),
    "categories of a Series": (pd.Series(["a", "b"], dtype="category").array, "2 * categorical[type=string]"),
    "objects of a Series": (pd.Series(["a", "b"], dtype=object).array, "2 * string"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_pandas_index_is_imported_like_a_series(name):
    source, kind = INDEXES[name]
    for copy in (False, None, True):
        x = ah.asnested(source, copy=copy)
        assert str(x.type) == kind
        assert x.to_list() == ah.asnested(pd.Series(source)).to_list()
        assert x.meaning == ah.asnested(pd.Series(source)).meaning
    assert ah.as_arrow(source).equals(ah.as_arrow(pd.Series(source)))


BERLIN = datetime.timezone(datetime.timedelta(hours=1))
NANOSECOND = pd.Timestamp("2020-01-01T00:00:00.000000001")
TIMES_OF_OBJECTS = {
    "Timestamps": [NANOSECOND, None],
    "Timestamps and NaN": [float("nan"), pd.NaT, NANOSECOND],
    "Timestamps and datetimes": [datetime.datetime(2020, 1, 1), NANOSECOND],
    "Timestamps with a zone": [NANOSECOND.tz_localize("UTC"), None],
    "Timedeltas": [pd.Timedelta(1, "ns"), None],
    "lists": [[NANOSECOND, None], None, []],
    "records": [{"a": NANOSECOND}, None],
    "datetimes": [datetime.datetime(1, 1, 1), None],
    "dates": [datetime.date(1, 1, 1), None],
    "times": [datetime.time(1, 2, 3, 4), None],
    "zones": [datetime.datetime(2020, 1, 1, tzinfo=zone) for zone in (datetime.UTC, BERLIN)],
    "some zones": [datetime.datetime(2020, 1, 1, tzinfo=zone) for zone in (datetime.UTC, None)],
    "dates and datetimes": [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5)],
    "range": [datetime.datetime(1, 1, 1), NANOSECOND],
}


@pytest.mark.parametrize("name", TIMES_OF_OBJECTS)
def test_times_in_columns_of_objects_are_exact_or_refused(name):
    """pyarrow converts Timestamps to microseconds, and times with and without a zone to UTC."""
    values = TIMES_OF_OBJECTS[name]
    series = pd.Series(values, dtype=object, name="t", index=range(5, 5 + len(values)))
    frame = pd.DataFrame({"n": range(5, 5 + len(values)), "t": series}, index=series.index)
    if name in ("zones", "some zones", "dates and datetimes", "range"):
        with pytest.raises((TypeError, OverflowError), match="asnested"):
            ah.asnested(series)
        with pytest.raises((TypeError, OverflowError), match="asnested: column 't'"):
            ah.asnested(frame)
        return
    for column in (ah.as_arrow(series), ah.as_arrow(series.array), ah.convert(frame, pa.Table)["t"]):
        pairs = zip(column.to_pylist(), values, strict=True)
        assert all(made == value for made, value in pairs if made is not None)
        assert column.is_null().to_pylist() == series.isna().tolist()
    assert ah.convert(frame, pa.Table).to_pandas().index.tolist() == series.index.tolist()
    assert ah.as_polars(series).name == "t"


SPARSE, PYARROW = pd.arrays.SparseArray([0, 1]), "^asnested: pyarrow cannot convert pandas.*"
NOT_CONVERTED = {
    "sparse": (pd.Series(SPARSE), BufferError, PYARROW + r"x\.to_numpy\(\) of a sparse column"),
    "an array of sparse values": (SPARSE, BufferError, PYARROW + r"x\.to_numpy\(\) of a sparse column"),
    "several types": (pd.Series([1, "a"]), BufferError, PYARROW),
    "an index of several types": (pd.Index([1, "a"]), BufferError, PYARROW),
    "complex numbers in a frame": (pd.DataFrame({"a": [1j]}), BufferError, PYARROW),
    "an integer of 71 bits": (pd.Series([2**70], dtype=object), BufferError, PYARROW),
    "an infinite decimal": (pd.Series([decimal.Decimal("Infinity")], dtype=object), BufferError, PYARROW),
    "text without UTF-8": (pd.Series(["\ud800"], dtype=object), BufferError, PYARROW),
    "several levels": (pd.MultiIndex.from_tuples([(1, "a")]), TypeError, "MultiIndex is not imported"),
}


@pytest.mark.parametrize(("source", "error", "says"), NOT_CONVERTED.values(), ids=NOT_CONVERTED)
def test_pandas_data_without_an_arrow_type_is_rejected(source, error, says):
    for data in (source, source.to_frame("a")) if isinstance(source, pd.Series) else (source,):
        with pytest.raises(error, match=says):
            ah.asnested(data)


def test_xarray_arrays_are_imported_as_dense_arrays():
    """Dimensions without coordinates are kept. The Arrow stream of xarray is a table without such dimensions."""
    xarray = pytest.importorskip("xarray")
    numbers = np.arange(6.0).reshape(2, 3)
    source = xarray.DataArray(numbers, dims=("y", "x"), coords={"x": [1, 2, 3]}, name="T")
    assert ah.asnested(source, copy=False).content.ptr == numbers.ctypes.data
    assert ah.asnested(source).content.dims == ("y", "x")
    for call in (ah.as_arrow, ah.as_polars, ah.as_pandas, ah.as_awkward):
        assert type(call(source, copy=True)) is type(call(ah.asarray(source), copy=True))
    assert ah.as_arrow(source, copy=False).equals(ah.as_arrow(ah.asarray(source)))
    assert ah.as_awkward(source).to_list() == ah.asnested(source, copy=True).to_list() == numbers.tolist()
    assert ah.explain(source, to="arrow").verdicts[0].verdict == "zero-copy"


def test_unsupported_operations_of_nested_arrays_raise():
    x = ah.asnested(RAGGED)
    with pytest.raises(TypeError, match="use arrayhub.asnested"):
        ah.NestedArray()
    with pytest.raises(ValueError, match=r"len\(x\)"):
        bool(x)
    with pytest.raises(IndexError, match="out of range"):
        x[4]
    with pytest.raises(IndexError, match="step"):
        x[::2]
    with pytest.raises(KeyError, match="does not have fields"):
        x["a"]
    with pytest.raises(AttributeError, match="fields: not defined for kind 'list'"):
        x.fields  # noqa: B018
    with pytest.raises(ValueError, match=r"^jax: row 1 has 3 elements.*equal lengths"):
        ah.as_jax(x)
    assert repr(x).startswith("NestedArray(4 * var * float64")
    assert x[1, 2].shape == ()


def test_no_element_of_rows_is_selected_by_a_slice_and_an_index():
    for x in (ah.asnested([[1, 2], [3, 4, 5]]), ah.asnested(np.ma.array([[1, 2], [3, 4]], mask=np.eye(2)))):
        for key in ((slice(None), 0), (slice(0, 1), slice(None)), (slice(None), slice(None), "a")):
            with pytest.raises(IndexError, match="as_awkward"):
                x[key]
        assert x[1, 0] is None or x[1, 0].item() == 3
        assert x[:][1, :1][0].item() == 3
    assert ah.asnested([{"a": [1, 2]}, {"a": []}])[1:, "a"].to_list() == [[]]
    assert ah.asnested([np.eye(2), np.eye(2)])[1, :, 0].tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["shared", "host", "device"])
def test_usm_is_imported_sliced_and_exported(sycl, kind):
    dpnp = pytest.importorskip("dpnp")

    def in_usm(array):
        return ah.asarray(dpnp.asarray(ah.as_numpy(array), usm_type=kind))

    for source in (RAGGED, ["This", "is", None], [{"x": 1, "y": ["a"]}, {"x": 2, "y": []}], [[1, None], [3]]):
        x = to_device.map_arrays(to_device.compact(ah.asnested(source)), in_usm)
        assert x.device.type == "oneapi"
        assert leaves(x)
        assert {leaf.usm_type for leaf in leaves(x)} == {kind}
        assert x.to_host().to_list() == source
        assert x[1:].to_host().to_list() == source[1:]
        assert (x.to_host() is x) == (kind != "device")
        assert hasattr(x, "__arrow_c_array__") == (kind != "device")
        taken = optional("nanoarrow.device").c_device_array(x)
        assert taken.device_type_id == (14 if kind == "device" else 1)
        if kind != "device":
            assert ah.as_arrow(x).to_pylist() == source
            assert {leaf.ptr for leaf in leaves(ah.asnested(ah.as_arrow(x)))} <= {leaf.ptr for leaf in leaves(x)}


def leaves(node):
    """Return a list of the dense arrays that a nested array consists of."""
    if not isinstance(node, ah.NestedArray):
        return [node]
    below = [getattr(node, name, None) for name in ("validity", "offsets", "indices", "content")]
    below += node.children if node.kind in ("record", "opaque") else ()
    below += node.buffers if node.kind == "opaque" else ()
    return [leaf for part in below if part is not None for leaf in leaves(part)]


@pytest.mark.parametrize("name", IDS)
def test_each_array_is_copied_to_the_device_and_back_at_most_once(sycl, name):
    """Offsets are copied only once, although the host reads them to find the referenced elements."""
    x = ah.asnested(ARRAYS[name][0])
    for part in (x, x[1:]):
        with ah.trace() as to_device:
            there = part.to_device("oneapi:0")
        assert {leaf.device.type for leaf in leaves(there)} == {"oneapi"}
        with ah.trace() as to_host:
            back = there.to_host()
        assert back.to_list() == part.to_list()
        assert pa.array(back).offset == (part.validity_offset if part.kind == "bits" else 0)
        for events in (to_device.events, to_host.events):
            crossed = [event for event in events if event.kind == "copy" and event.source != event.target]
            assert len(crossed) <= len(leaves(there)), crossed


@pytest.mark.parametrize("attribute", ["__arrow_c_device_array__", "__arrow_c_device_stream__"])
def test_usm_round_trip_by_both_device_interfaces_shares_memory(sycl, attribute):
    for source, _ in ARRAYS.values():
        x = ah.asnested(source).to_device("oneapi:0")
        back = ah.asnested(given(attribute, getattr(x, attribute)()))
        assert back.device == x.device
        assert [leaf.ptr for leaf in leaves(back)] == [leaf.ptr for leaf in leaves(x)]
        assert back.to_host().to_list() == x.to_host().to_list()
    dense = ah.asarray(np.arange(6.0).reshape(2, 3)).to_device("oneapi:0")
    back = ah.asarray(given(attribute, getattr(dense, attribute)()))
    assert (back.ptr, back.shape, back.device) == (dense.ptr, (2, 3), dense.device)


def test_host_interfaces_reject_device_memory(sycl):
    for source in (RAGGED, WORDS, [{"x": 1, "y": ["a"]}, {"x": 2, "y": []}]):
        x = ah.asnested(source).to_device("oneapi:0")
        with pytest.raises(BufferError, match=r"x\.to_host\(\)"):
            x.to_list()
    x = ah.asnested(RAGGED).to_device("oneapi:0")
    assert not hasattr(x, "__arrow_c_array__")
    assert hasattr(x, "__arrow_c_device_array__")
    assert ah.asnested(x.to_host()).to_list() == RAGGED
    times = ah.asarray(np.arange(3).astype("M8[s]")).to_device("oneapi:0")
    with pytest.raises(AttributeError, match=r"NaT.*to_host\(\)"):
        times.__arrow_c_device_array__  # noqa: B018
    with pytest.raises(BufferError, match=r"NaT.*to_host\(\)"):
        nested_of(times).__arrow_c_device_array__()


def test_masked_elements_in_lists_become_missing_values():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    assert ah.as_arrow(ah.asnested([masked, masked[:1]])).to_pylist() == [[1.0, None], [1.0]]
    assert ah.as_arrow(ah.asnested([{"a": masked}])).to_pylist() == [{"a": [1.0, None]}]


NOON = datetime.datetime(2020, 7, 1, 12)
ZURICH = pd.Timestamp("2020-07-01 12:00", tz="Europe/Zurich")


def east(name=None, **offset):
    """Return the timezone at an offset, with a name if one is given."""
    return datetime.timezone(datetime.timedelta(**offset), *filter(None, [name]))


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        (pd.Timestamp("2020-01-01 00:00:00.123456789"), None),
        (pd.Timestamp("1950-01-01 00:00:00.000000001"), None),
        (datetime.datetime.min, None),
        (datetime.datetime.max, None),
        (NOON.replace(tzinfo=datetime.UTC), "UTC"),
        (NOON.replace(tzinfo=east(hours=-2, minutes=-30)), "-02:30"),
        (NOON.replace(tzinfo=east("CEST", hours=2)), "+02:00"),
        (NOON.replace(tzinfo=east("Newfoundland", hours=-2, minutes=-30)), "-02:30"),
        (ZURICH, "Europe/Zurich"),
        (ZURICH + pd.Timedelta(1, "ns"), "Europe/Zurich"),
        (pd.Timedelta(1500), None),
        (pd.Timedelta(-1), None),
        (datetime.timedelta(-1, 5, 7), None),
    ],
    ids=str,
)
def test_python_times_survive_a_round_trip(value, zone):
    column = ah.as_arrow([value, None])
    assert column.to_pylist() == [value, None] and getattr(column.type, "tz", None) == zone


ONE_KIND = "among elements such as.*all of one kind"
RANGE_OF_UTC = "T.* outside of the years 1 to 9999 in UTC"
DAY = np.timedelta64(1, "D")
REJECTED_VALUES = {
    "text among numbers": ([1, "a"], TypeError, "all of one kind"),
    "a datetime among dates": ([NOON.date(), NOON], TypeError, ONE_KIND),
    "a date among datetimes": ([NOON, NOON.date()], TypeError, ONE_KIND),
    "a duration among times": ([np.datetime64("2020"), DAY], TypeError, ONE_KIND),
    "a duration among numbers": ([1, DAY], TypeError, ONE_KIND),
    "a number among durations": ([DAY, 1], TypeError, ONE_KIND),
    "several time zones": ([ZURICH, NOON], TypeError, "several time zones"),
    "an offset with seconds": ([NOON.replace(tzinfo=east(seconds=5))], TypeError, "UTC offset of .* has seconds"),
    "the longest duration": ([datetime.timedelta.max], OverflowError, "exceeds 64 bits"),
    "the shortest duration": ([datetime.timedelta.min], OverflowError, "exceeds 64 bits"),
    "nanoseconds in 2500": ([pd.Timestamp("2500-01-01"), pd.Timestamp(1)], OverflowError, "exceeds 64 bits"),
    "before year 1 in UTC": ([datetime.datetime.min.replace(tzinfo=east(hours=5))], OverflowError,
                             f"^asnested: 0001-01-01{RANGE_OF_UTC}"),
    "after year 9999 in UTC": ([datetime.datetime.max.replace(tzinfo=east(hours=-5))], OverflowError,
                               f"^asnested: 9999-12-31{RANGE_OF_UTC}"),
    "signs beyond 63 bits": ([[2**63], [-1]], TypeError, "no integer type holds -1 and 9223372036854775808"),
    "a masked number without dimensions": ([np.ma.masked_array(5.0, mask=True)], TypeError, "0 dimensions"),
}  # fmt: skip


@pytest.mark.parametrize(("values", "error", "says"), REJECTED_VALUES.values(), ids=REJECTED_VALUES)
def test_lists_without_a_common_type_are_rejected(values, error, says):
    with pytest.raises(error, match=says):
        ah.asnested(values)


def test_integers_are_not_converted_to_floats():
    for values, kind in (([2**63, 1], "uint64"), ([np.uint64(1), np.int64(-1)], "int64"), ([2**63, 0.5], "float64")):
        x = ah.asnested(values)
        assert (x.to_list(), x.content.dtype) == (values, kind)


OUT_OF_ORDER = {"reversed": ([2, 0], [2, 2]), "with a gap": ([0, 4], [2, 2]), "repeated": ([1, 1], [2, 2])}


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_copies_of_list_views_out_of_order_are_dense(name):
    starts, sizes = (pa.array(values, pa.int32()) for values in OUT_OF_ORDER[name])
    source = pa.ListViewArray.from_arrays(starts, sizes, pa.array(np.arange(6.0)))
    for x in (source, ah.asnested(source)):
        for copy in (True, None):
            for export in (ah.asarray, ah.as_numpy):
                assert export(x, copy=copy).tolist() == source.to_pylist()
            assert [row.tolist() for row in ah.as_torch(x, copy=copy)] == source.to_pylist()
        for export in (ah.asarray, ah.as_numpy, ah.as_torch):
            with pytest.raises(ah.Refusal) as raised:
                export(x)
            assert len(called(raised.value, x)) == 2
    dense = ah.asnested(source).to_dense(copy=True)
    assert dense.tolist() == source.to_pylist() and dense.access == "readwrite"
    for call, subject in ((lambda x: x.to_dense(), "to_dense"), (ah.as_numpy, "numpy")):
        with pytest.raises(ah.Refusal, match="list_view are converted") as raised:
            call(ah.asnested(source))
        assert raised.value.subject == subject


def test_maps_are_imported_as_lists_of_records():
    source = pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64()))
    x = ah.asnested(source)
    assert x.to_list() == [[{"key": "a", "value": 1}, {"key": "b", "value": None}], None, []]
    assert ah.asnested(source[1:]).to_list() == [None, []]
    assert ah.as_arrow(source).equals(source) and ah.as_arrow(source[1:]).equals(source[1:])
    assert ah.as_awkward(source).to_list() == x.to_list()
    made, expected = ah.as_polars(source), pl.from_arrow(source)  # a Map since polars 2.1
    assert made.dtype == expected.dtype and made.to_list() == expected.to_list()
    assert ah.asnested(made).to_list() == x.to_list()
    assert ah.asnested(duckdb.sql("select map {'a': 1} as m")).to_list() == [{"m": [{"key": "a", "value": 1}]}]


def test_error_names_an_arrow_format_that_only_polars_defines():
    with pytest.raises(BufferError, match="_pli128.*polars"):
        ah.asnested(pl.Series([1], dtype=pl.Int128))


class Series(pl.Series):
    """A user's subclass of a polars Series."""


@pytest.mark.parametrize("take", [ah.asarray, ah.asnested, ah.as_arrow, ah.as_pandas, ah.as_awkward])
@pytest.mark.parametrize(
    "make",
    [lambda s: s, lambda s: s[:0], pl.DataFrame, lambda s: pl.DataFrame({"n": range(2), "o": s}), lambda s: Series(s)],
    ids=["series", "empty", "frame", "columns", "subclass"],
)
def test_polars_columns_of_python_objects_are_rejected(make, take):
    """Python objects are rejected, because polars exports their addresses as fixed-size bytes."""
    source = make(pl.Series("o", [object(), None], dtype=pl.Object))
    with pytest.raises(TypeError, match=f"{type(source).__name__} exports addresses of Python objects") as raised:
        take(source)
    assert len(called(raised.value, source)) == len(source)


DAYS = [datetime.date(2020, 1, 1), datetime.date(1950, 12, 31)]


@pytest.mark.parametrize("values", [DAYS, [*DAYS, None], [[DAYS[0]], [DAYS[1]]], [{"a": DAYS[0]}]], ids=str)
def test_dates_are_exported_as_dates(values):
    x = ah.asnested(values)
    assert ah.as_awkward(x).to_list() == values
    if values[-1] is not None:
        assert ah.as_numpy(x, copy=True).tolist() in (
            values,
            [tuple(row.values()) for row in values if isinstance(row, dict)],
        )
    if values == DAYS:
        assert x.to_dense(copy=True).dtype == "M8[D]"
        with pytest.raises(BufferError, match=r"date32 has 4 bytes.*copy=True"):
            x.to_dense()
        with pytest.raises(ah.Refusal, match=r"date32 is not supported.*arrayhub\.asnested\(x\)\.content") as raised:
            ah.as_torch(x, copy=True)
        assert called(raised.value, x).tolist() == np.array(values, "M8[D]").view("i8").tolist()


NUMPYS_DAYS = np.array([*DAYS, None], "M8[D]")
MASKED_DAYS = ak.mask(ak.Array(NUMPYS_DAYS), [False, True, True])
DAYS_OF_OTHERS = {
    "ndarray": (NUMPYS_DAYS, [*DAYS, None]),
    "swapped": (NUMPYS_DAYS.astype(">M8[D]"), [*DAYS, None]),
    "matrix": (NUMPYS_DAYS.reshape(1, 3), [[*DAYS, None]]),
    "none": (NUMPYS_DAYS[:0], []),
    "records": (NUMPYS_DAYS[:2].view([("a", "M8[D]")]), [{"a": day} for day in DAYS]),
    "Arrow's by awkward": (ah.as_awkward(pa.array([*DAYS, None])), [*DAYS, None]),
    "lists": (ah.as_awkward(pa.array([[*DAYS], [], [None]])), [[*DAYS], [], [None]]),
    "missing in both": (MASKED_DAYS, [None, DAYS[1], None]),
}


@pytest.mark.parametrize("name", DAYS_OF_OTHERS)
def test_64_bit_days_require_copy_true(name):
    source, expected = DAYS_OF_OTHERS[name]
    for take in (ah.as_arrow, ah.as_polars, ah.as_pandas):
        with pytest.raises(ah.Refusal) as raised:
            take(source)
        assert raised.value.call == f"arrayhub.{take.__name__}(x, copy=True)"
    assert ah.as_arrow(source, copy=True).to_pylist() == expected
    assert ah.as_arrow(source, copy=True, extension=True).equals(ah.as_arrow(source, copy=True))
    assert "date32" in str(ah.as_arrow(source, copy=True).type)
    series = ah.as_polars(source, copy=True)
    assert (series.to_list() if isinstance(series, pl.Series) else series.to_dicts()) == expected
    made = ah.as_pandas(source, copy=True)
    if isinstance(source, np.ndarray):
        assert np.array_equal(
            np.ravel(made.to_numpy("M8[s]")),
            np.ravel(source.view("M8[D]" if source.dtype.names else source.dtype)),
            equal_nan=True,
        )
    else:
        assert ah.asnested(made).to_list() == expected
    assert ah.explain(source, to="arrow").verdicts[0].verdict == "copy=True"


def test_error_for_a_day_beyond_date32_suggests_seconds():
    with pytest.raises(BufferError, match=r"day 4000000000 .*x\.astype\('M8\[s\]'\)"):
        ah.as_arrow(np.array([1, 4_000_000_000]).view("M8[D]"), copy=True)


@pytest.mark.parametrize(
    "source", [np.array([["a" * 99, "b"]], StringDType()), np.array("a", StringDType()), np.array("a"), np.array(1)]
)
def test_errors_for_strings_of_other_ndim_suggest_reshape(source, capfd):
    with pytest.raises(TypeError, match=rf"has {source.ndim} dimensions.*reshape\(-1\)") as raised:
        ah.asnested(source)
    assert len(eval(raised.value.call, {"arrayhub": ah, "x": source})) == source.size
    assert not capfd.readouterr().err  # where NumPy writes that it frees foreign memory


def test_packed_elements_are_refused_without_a_call():
    for x in (packed_int4(), {"a": packed_int4()}):
        with pytest.raises(BufferError, match="elements smaller than a byte are packed") as raised:
            ah.asnested(x)
        assert raised.value.call == ""
    assert {ah.explain(packed_int4(), to).call for to in ("numpy", "torch", "arrow", "pandas", "polars")} == {""}


def test_single_elements_of_pyarrow_are_imported():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8.0).reshape(2, 2, 2))
    assert ah.asnested(tensors[1]).to_list() == [[[4, 5], [6, 7]]]
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    assert ah.asnested(union[0]).to_list() == [1]


def test_runs_are_not_decoded_before_a_view_of_them_is_refused():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([10**12], pa.int64()), pa.array([1.0]))  # 8 TB, if decoded
    with pytest.raises(BufferError, match="are converted"):
        ah.asnested(runs).to_dense(copy=False)
    assert ah.explain(runs, to="numpy").call == "arrayhub.as_numpy(x, copy=True)"
