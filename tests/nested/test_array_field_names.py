"""Records with several fields of the same name, which Arrow allows, are imported, accessed and exported."""

import copy
import pickle
import re

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import arrayhub as ah

SOME = pa.array([1, 2, 3])
WORDS = pa.array(["a", None, "c"])
TWINS = pa.StructArray.from_arrays([SOME, WORDS], names=["a", "a"])
MASKED = pa.StructArray.from_arrays([SOME, WORDS], names=["a", "a"], mask=pa.array([False, True, False]))

ARRAYS = {
    "records": TWINS,
    "records with another field": pa.StructArray.from_arrays([SOME, WORDS, SOME], names=["a", "b", "a"]),
    "unnamed fields": pa.StructArray.from_arrays([SOME, WORDS], names=["", ""]),
    "missing records": MASKED,
    "slice": TWINS[1:],
    "no records": TWINS[:0],
    "lists of records": pa.ListArray.from_arrays([0, 2, 3], TWINS),
    "fixed lists of records": pa.FixedSizeListArray.from_arrays(TWINS, 3),
    "records of records": pa.StructArray.from_arrays([TWINS, TWINS], names=["x", "x"]),
    "categories of records": pa.DictionaryArray.from_arrays(pa.array([2, 0]), TWINS),
}


@pytest.fixture(params=list(ARRAYS))
def source(request):
    return ARRAYS[request.param]


@pytest.fixture
def twins():
    return ah.asnested(TWINS)


def test_arrow_round_trip_keeps_equal_names(source):
    x = ah.asnested(source)
    assert ah.as_arrow(x).equals(source)
    assert pa.array(x).equals(source)
    assert ah.as_arrow(x, copy=True).equals(source)
    assert pa.chunked_array(x).equals(pa.chunked_array([source]))
    assert pa.field(x).type.equals(source.type)
    assert ah.as_arrow(x[1:]).equals(source[1:])
    assert ah.as_arrow(ah.asnested(x, copy=True)).equals(source)


def test_record_batches_and_tables_keep_equal_names():
    batch = pa.record_batch([[1], [2]], names=["a", "a"])
    assert pa.record_batch(ah.asnested(batch)).equals(batch)
    table = pa.table([[1, 2], ["x", "y"]], names=["a", "a"])
    assert pa.table(ah.asnested(table, copy=True)).equals(table)
    chunks = ah.asnested(pa.concat_tables([table, table]))
    assert [pa.table(chunk).equals(table) for chunk in chunks.chunks] == [True, True]
    joined = ah.asnested(pa.concat_tables([table, table]), copy=True)
    assert pa.table(joined).equals(pa.concat_tables([table, table]).combine_chunks())


def test_requested_types_apply_to_fields_of_equal_names_by_position():
    wide = pa.struct([("a", pa.int64()), ("a", pa.large_string())])
    assert pa.array(ah.asnested(TWINS), type=wide).equals(TWINS.cast(wide))


def test_field_names_and_children_have_every_field(twins):
    assert twins.field_names == ("a", "a")
    assert [ah.asnested(child).to_list() for child in twins.children] == [[1, 2, 3], ["a", None, "c"]]
    assert str(twins.type) == "3 * {a: int64, a: ?string}"
    assert repr(twins).startswith("NestedArray(3 * {a: int64, a: ?string}")
    other = ah.asnested(pa.array([{"a": 1, "b": "x"}]))
    assert other.field_names == ("a", "b") == tuple(other.fields)
    assert other.children[1] is other.fields["b"]
    for name in ("field_names", "children"):
        with pytest.raises(AttributeError, match=f"{name}: not defined for kind 'string'"):
            getattr(ah.asnested(WORDS), name)


def test_access_by_an_ambiguous_name_raises_key_error():
    x = ah.asnested(ARRAYS["records with another field"])
    assert x["b"].to_list() == ["a", None, "c"]
    with pytest.raises(KeyError, match=r"accepted: the name of a single field. Use x\.children\[0\]['\"]"):
        x["a"]
    assert x.children[0].tolist() == [1, 2, 3]
    with pytest.raises(KeyError, match=r"Use x\.children\[0\], with x\.validity"):
        ah.asnested(MASKED)["a"]
    with pytest.raises(AttributeError, match=r"Use x\.field_names and x\.children"):
        x.fields  # noqa: B018


def test_conversions_to_dicts_raise(source):
    x = ah.asnested(source)
    with pytest.raises(ValueError, match=r"^to_list: field names are .*Use arrayhub\.as_arrow\(x\)"):
        x.to_list()
    if x.kind == "record" and len(x):
        with pytest.raises(ValueError, match=r"^x\[0\]: field names are .*Use arrayhub\.as_arrow\(x\)"):
            x[0]


def test_as_pandas_returns_columns_of_equal_names(twins):
    frame = ah.as_pandas(twins)
    assert list(frame.columns) == ["a", "a"]
    assert frame.iloc[:, 0].tolist() == [1, 2, 3]
    assert frame.iloc[:, 1].tolist() == ["a", pd.NA, "c"]
    pd.testing.assert_index_equal(ah.as_pandas(ah.asnested(pa.array([{"a": 1, "b": 2}]))).columns, pd.Index(["a", "b"]))
    assert ah.as_pandas(ah.asnested(pa.array([{}, {}]))).shape == (2, 0)


@pytest.mark.parametrize("call", [ah.as_awkward, ah.as_polars, lambda x: ah.as_numpy(x, copy=True)])
def test_exports_to_libraries_without_equal_names_are_rejected(call, twins):
    with pytest.raises(BufferError, match=r"arrayhub\.as_(arrow|numpy)\(x"):
        call(twins)
    for name in ("missing records", "records of records", "no records"):
        with pytest.raises(BufferError, match=r"field"):
            call(ah.asnested(ARRAYS[name]))


def test_awkward_records_with_equal_names_keep_both():
    contents = [ak.contents.NumpyArray(np.arange(2)), ak.contents.NumpyArray(np.arange(2) + 5)]
    x = ah.asnested(ak.Array(ak.contents.RecordArray(contents, ["a", "a"])))
    assert [child.tolist() for child in x.children] == [[0, 1], [5, 6]]


def test_inspection_shows_every_field(twins):
    assert re.findall(r"^  (children\[\d\]):", ah.debug_repr(twins), re.M) == ["children[0]", "children[1]"]
    assert ah.check(twins) == []
    assert twins._repr_html_().count("field a") == 2
    assert "a: int64, a: ?string" in str(ah.datashape.of(twins))
    assert "{a: int64, a: ?string}" in str(ah.explain(twins))
    (verdict,) = ah.explain(twins, to="polars").verdicts
    assert "('a', 'a')" in verdict.reason and verdict.call == "arrayhub.as_arrow(x)"


def test_inspection_shows_a_field_called_validity():
    x = ah.asnested(pa.StructArray.from_arrays([SOME], names=["validity"], mask=pa.array([True, False, False])))
    assert re.findall(r"^  (children\[\d\]|validity):", ah.debug_repr(x), re.M) == ["children[0]", "validity"]


def test_pickles_keep_the_fields(twins):
    for same in (pickle.loads(pickle.dumps(twins)), copy.copy(twins), copy.deepcopy(twins)):
        assert ah.as_arrow(same).equals(TWINS)
