"""Test Arrow's types without an equivalent in NumPy: decimals, intervals, run-end encoded and null arrays."""

import ctypes
import decimal
import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest
from arrow_by_hand import Producer, given, int32

import arrayhub as ah
from arrayhub.nested.concatenate import concatenate

D = decimal.Decimal


def runs(ends=(2, 5, 6), values=None, width="int32"):
    values = pa.array([1.5, None, 3.0]) if values is None else values
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, width), values)


ARRAYS = {
    "decimal32": lambda: pa.array([D("1.25"), None, D("-3.50")], pa.decimal32(5, 2)),
    "decimal64": lambda: pa.array([D("1.25"), None, D("-3.50")], pa.decimal64(12, 2)),
    "decimal128": lambda: pa.array([D("1.25"), None, D("-" + "9" * 36 + ".99")], pa.decimal128(38, 2)),
    "decimal256": lambda: pa.array([D("1.25"), None, D("9" * 70 + ".5")], pa.decimal256(76, 4)),
    "decimal of a negative scale": lambda: pa.array([D("1200"), None], pa.decimal128(5, -2)),
    "interval": lambda: pa.array([(1, -2, 3), None, (0, 0, 2**62)], pa.month_day_nano_interval()),
    "null": lambda: pa.nulls(3),
    "runs": runs,
    "runs of int16": lambda: runs(width="int16"),
    "runs of int64": lambda: runs(width="int64"),
    "runs of strings": lambda: runs(values=pa.array(["a", None, "a long word of many bytes"])),
    "runs of booleans": lambda: runs(values=pa.array([True, None, False])),
    "runs of lists": lambda: runs(values=pa.array([[1], None, []])),
    "runs of nulls": lambda: runs(values=pa.nulls(3)),
    "runs of decimals": lambda: runs(values=pa.array([D("1.25"), None, D("0")])),
}


def test_decimals_and_runs_share_their_memory():
    source = ARRAYS["decimal128"]()
    assert ah.asnested(source).buffers[0].ptr == source.buffers()[1].address
    assert pa.array(ah.asnested(source)).buffers()[1].address == source.buffers()[1].address
    encoded = runs()
    x = ah.asnested(encoded[1:])
    assert x.children[0].ptr == encoded.run_ends.buffers()[1].address and x.run_offset == 1
    assert pa.array(x).values.buffers()[1].address == encoded.values.buffers()[1].address


def test_type_strings_name_arrow_types():
    assert str(ah.asnested(ARRAYS["decimal64"]()).type) == "3 * ?decimal64[12, 2]"
    assert str(ah.asnested(ARRAYS["decimal of a negative scale"]()).type) == "2 * ?decimal128[5, -2]"
    assert str(ah.asnested(ARRAYS["interval"]()).type) == "3 * ?interval[MDn]"
    assert str(ah.asnested(pa.nulls(2)).type) == "2 * null"
    assert str(ah.asnested(runs()).type) == "6 * run_end[?float64]"
    for text in ("decimal128[5]", "decimal128[5, x]", "interval[Y]", "run_end", "decimal128[5,]"):
        with pytest.raises(ValueError, match="datashape.parse"):
            ah.datashape.parse(text)


@pytest.mark.parametrize(("format", "values"), [(b"tiM", [1, 2, -3]), (b"tiD", [1, 2, 3, 4, -5, 6])])
def test_intervals_without_a_pyarrow_type_survive_a_round_trip(format, values):
    producer = Producer(format, [None, int32(*values)])  # a variable, to keep its release callbacks alive
    x = ah.asnested(producer)
    assert x.kind == "opaque" and ah.datashape.parse(str(x.type)) == x.type
    for y in (x, ah.asnested(x, copy=True), pickle.loads(pickle.dumps(x))):
        again = ah.asnested(given("__arrow_c_array__", y.__arrow_c_array__()))
        assert again.type == x.type and np.asarray(again.buffers[0]).view("i4").tolist() == values
    for call in (x.to_list, lambda: x[0]):
        with pytest.raises(ah.Refusal, match="pyarrow does not support"):
            call()


@pytest.mark.parametrize("name", ARRAYS)
def test_exports_work_or_raise_an_error_that_suggests_a_call(name):
    x = ah.asnested(ARRAYS[name]())
    values = x.to_list()
    assert ah.as_pandas(x).isna().tolist() == [value is None for value in values] or x.meaning == "+r"
    refused = {
        "as_polars": ("decimal256", "decimal of a negative scale", "interval"),
        "as_awkward": ("decimal32", "decimal64", "decimal128", "decimal256", "decimal of a negative scale", "interval",
                       "runs of decimals"),
    }  # fmt: skip
    for call, names in refused.items():
        library = call.removeprefix("as_")
        if name in names:
            with pytest.raises(
                BufferError, match=rf"(?s)({library}|arrayhub): .*(to_list\(\)|as_arrow\(x\)|\.content)"
            ):
                getattr(ah, call)(x)
            continue
        assert getattr(ah, call)(x).to_list() == values
    with pytest.raises((BufferError, ValueError), match="numpy: "):
        ah.as_numpy(x)


@pytest.mark.parametrize("type_", [pa.decimal32(9, 2), pa.decimal64(18, 2)], ids=str)
def test_decimals_of_fewer_bits_keep_their_values_in_lists_and_records_of_polars(type_):
    most = D(10) ** (type_.precision - 2) - D("0.01")
    x = pa.array([most, -most, None, D("-0.01"), D(0)], type_)[1:]
    rows = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), x)
    for column in (x, rows, pa.chunked_array([x, x[1:]]), pa.StructArray.from_arrays([x, rows.values], ["a", "b"])):
        polars_made = ah.as_polars(column)
        made = polars_made.to_dicts() if hasattr(polars_made, "to_dicts") else polars_made.to_list()
        assert made == column.to_pylist()
        assert ah.explain(column, to="polars").verdicts[0].verdict == "copy=True"


def test_null_fields_of_missing_records_stay_null():
    record = pa.StructArray.from_arrays([pa.nulls(3)], ["u"], mask=pa.array([False, True, False]))
    x = ah.asnested(record)["u"]
    assert str(x.type) == "3 * null" and x.null_count == record.flatten()[0].null_count == 3
    assert x.validity is None and x.is_null().tolist() == [True] * 3 and x.to_list() == [None] * 3
    assert x.fill_null(7).tolist() == [7, 7, 7] and ah.as_awkward(x).to_list() == [None] * 3
    assert ah.as_arrow(x).equals(pa.nulls(3)) and ah.as_polars(x).null_count() == 3
    assert ah.asnested(record).fill_null({"u": 7})["u"].tolist() == [7, 7, 7]


RUN_VALUES = {
    "numbers": [1, 2, 3],
    "missing numbers": [1, None, 3],
    "booleans": [True, False, None],
    "strings": ["a", None, "b" * 20],
    "categories": pa.array(["a", None, "a"]).dictionary_encode(),
    "lists": [[1], [], None],
    "records": [{"a": 1}, None, {"a": 3}],
    "string views": pa.array(["a", None, "b" * 20], pa.string_view()),
    "dates": pa.array([1, None, 3], pa.date32()),
    "nulls": pa.nulls(3),
}


@pytest.mark.parametrize("missing", [(0,), (3,), (1, 5), (0, 1), (2, 3, 4), range(6), ()], ids=str)
@pytest.mark.parametrize("name", RUN_VALUES)
def test_runs_of_missing_records_are_decoded(name, missing):
    values = RUN_VALUES[name]
    source = runs(values=values if isinstance(values, pa.Array) else pa.array(values))
    mask = [k in missing for k in range(6)]
    record = pa.StructArray.from_arrays([source], ["u"], mask=pa.array(mask))
    expected = [None if mask[k] else value for k, value in enumerate(source.to_pylist())]
    for part in (slice(None), slice(1, 5), slice(3, 3)):
        x = ah.asnested(record[part])["u"]
        assert x.to_list() == expected[part]
        assert x.is_null().tolist() == [value is None for value in expected[part]]
        back = pa.array(x)
        back.validate(full=True)
        assert back.to_pylist() == expected[part]
        assert ah.asnested(record[part], copy=True)["u"].to_list() == expected[part]
    assert record.is_null().to_pylist() == mask  # the import does not modify the records' bitmap


def test_as_torch_decodes_runs_and_their_nested_array_equally():
    for values, decoded in (([1, 2, 3], [1, 1, 2, 2, 2, 3]), ([True, False, True], [True] * 2 + [False] * 3 + [True])):
        source = runs(values=pa.array(values))
        for x in (source, ah.asnested(source), ah.asnested(pa.chunked_array([source[:3], source[3:]]))):
            for copy in (True, None):
                assert ah.as_torch(x, copy=copy).tolist() == decoded
    x = ah.asnested(runs(values=pa.array([1, 2, 3])))
    with pytest.raises(ah.Refusal, match="torch: the elements of run_end_encoded are converted") as raised:
        ah.as_torch(x)
    assert raised.value.call == "arrayhub.as_torch(x, copy=True)"
    with pytest.raises(ValueError, match=r"torch: element 2 is missing.*NestedArray.fill_null") as raised:
        ah.as_torch(ah.asnested(runs()), copy=True)
    assert len(eval(raised.value.call, {"arrayhub": ah, "x": ah.asnested(runs())})) == 6
    assert ah.as_torch(ah.asnested(runs()), missing=0.5).tolist() == [1.5, 1.5, 0.5, 0.5, 0.5, 3.0]


def test_run_ends_changed_after_the_import_do_not_exceed_the_values():
    ends = int32(1, 2, 3)
    numbers = Producer(b"l", [None, (ctypes.c_int64 * 3)(7, 8, 9)])
    made = Producer(b"+r", [], [Producer(b"i", [None, ends]), numbers], length=3)
    x = ah.asnested(made)
    assert x.to_list() == [7, 8, 9]
    ends[2] = 2
    for k in range(3):
        x[k]


PASSED_ON = {
    "decimals": lambda: ARRAYS["decimal64"](),
    "runs": runs,
    "list views": lambda: pa.ListViewArray.from_arrays([1, 0], [2, 1], pa.array([1, 2, 3])),
    "a union": lambda: pa.UnionArray.from_dense(
        pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]
    ),
}


@pytest.mark.parametrize("name", PASSED_ON)
def test_without_pyarrow_arrays_pass_through_and_conversions_are_refused(name, monkeypatch):
    source = PASSED_ON[name]()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        x = pickle.loads(pickle.dumps(ah.asnested(ah.asnested(source)[:2], copy=True)))
        again = ah.asnested(given("__arrow_c_array__", x.__arrow_c_array__()))
        chunks = ah.asnested(given("__arrow_c_stream__", x.__arrow_c_stream__()))
        conversions = [lambda: concatenate([x, chunks])]
        by_pyarrow = name in ("decimals", "a union")
        conversions += [lambda: x[0], x.to_list] if by_pyarrow else []
        assert by_pyarrow or (len(list(x)) == 2 and x.to_list() == source[:2].to_pylist())
        for convert in conversions:
            with pytest.raises(ah.Refusal, match="pip install pyarrow"):
                convert()
    assert ah.as_arrow(again).equals(source[:2])
