"""Test Arrow's logical types in the type of a NestedArray, and their names in `datashape.parse`."""

import datetime
import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

LOGICAL = {
    pa.date32(): "date32",
    pa.date64(): "date64",
    pa.time32("s"): "time32[s]",
    pa.time32("ms"): "time32[ms]",
    pa.time64("us"): "time64[us]",
    pa.time64("ns"): "time64[ns]",
    pa.timestamp("s", "UTC"): "timestamp[s, UTC]",
    pa.timestamp("ms", "+05:30"): "timestamp[ms, +05:30]",
    pa.timestamp("us", "Europe/Berlin"): "timestamp[us, Europe/Berlin]",
    pa.timestamp("ns", "America/Argentina/Buenos_Aires"): "timestamp[ns, America/Argentina/Buenos_Aires]",
    pa.timestamp("us", "Etc/GMT-3"): "timestamp[us, Etc/GMT-3]",
    pa.timestamp("us", "a zone]"): 'timestamp[us, "a zone]"]',
    pa.timestamp("us"): "datetime64[us]",
    pa.duration("ns"): "timedelta64[ns]",
}


@pytest.mark.parametrize("kind", LOGICAL, ids=str)
def test_logical_types_are_named_and_parsed(kind):
    x = ah.asnested(pa.array([1, None], kind))
    assert str(x.type) == ah.datashape.of(x) == f"2 * ?{LOGICAL[kind]}"
    assert ah.datashape.parse(str(x.type)) == x.type
    lists = ah.asnested(pa.array([[1], []], pa.list_(kind)))
    assert str(lists.type) == f"2 * var * {LOGICAL[kind]}" and ah.datashape.parse(str(lists.type)) == lists.type
    record = ah.asnested(pa.array([{"t": 1}], pa.struct([("t", kind)])))
    assert ah.datashape.parse(str(record.type)) == record.type
    assert LOGICAL[kind] in repr(record)


def test_columns_of_pandas_and_polars_have_logical_types():
    zoned = pd.Series(pd.date_range("2020", periods=2, tz="Europe/Berlin", unit="us"))
    assert str(ah.asnested(zoned).type) == "2 * timestamp[us, Europe/Berlin]"
    assert str(ah.asnested(pl.Series([datetime.date(2020, 1, 1)])).type) == "1 * date32"
    assert str(ah.asnested([datetime.date(2020, 1, 1), None]).type) == "2 * ?date32"


PAIRS = pa.list_(pa.int8(), 2)
CHUNKS = {
    "missing in lists": ([[[1]], [[None]], [None]], pa.list_(pa.int8()), "option[var * ?int8]"),
    "rows of one length": ([[[1, 2]], [[3, None]], [None]], PAIRS, "option[2 * ?int8]"),
    "fields": ([[{"a": None, "b": [1, 2]}], [{"a": "x", "b": None}]], pa.struct({"a": pa.string(), "b": PAIRS}),
               "{a: ?string, b: option[2 * ?int8]}"),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "kind", "text"), CHUNKS.values(), ids=CHUNKS)
def test_type_of_chunks_is_an_option_if_an_element_of_a_chunk_is_missing(chunks, kind, text):
    x = ah.asnested(pa.chunked_array(chunks, kind))
    assert len(x.chunks) > 1 and str(x.type) == f"{len(x)} * {text}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("timestamp[us]", "datetime64 is the type of timestamps without a time zone"),
        ("timestamp[D, UTC]", "a unit: s, ms, us, ns"),
        ("timestamp[us, ]", "a time zone such as Europe"),
        ("timestamp[us, UTC", r"'\]'"),
        ("time32[us]", "a unit: s, ms"),
        ("time64", r"'\['"),
        ("date32[D]", "the end of the type"),
        ("extension[3, int64]", "the name of an extension type"),
        ("extension[int64]", "','"),
    ],
)
def test_parse_type_rejects_invalid_logical_types(text, says):
    with pytest.raises(ValueError, match=says):
        ah.datashape.parse(text)


def test_logical_types_do_not_have_a_numpy_dtype():
    with pytest.raises(TypeError, match="date32"):
        ah.datashape.parse("2 * date32").dtype  # noqa: B018


def test_attributes_of_other_libraries_raise_an_error_that_suggests_a_call():
    x = ah.asnested(pa.array([[1], [2, 3]]))
    calls = {
        "tolist": "x.to_list()",
        "shape": "len(x)",
        "dtype": "x.type",
        "copy": "copy=True",
        "to_pylist": "x.to_list()",
    }
    for library in ("arrow", "awkward", "jax", "numpy", "pandas", "polars", "torch"):
        calls[library] = calls[f"to_{library}"] = f"arrayhub.as_{library}(x)"
    for name, call in calls.items():
        assert not hasattr(x, name)
        with pytest.raises(AttributeError, match=re.escape(call)):
            getattr(x, name)
    with pytest.raises(AttributeError, match="NestedArray' object has no attribute 'nonsense'$"):
        x.nonsense  # noqa: B018
