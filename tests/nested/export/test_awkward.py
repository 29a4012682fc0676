"""Test which layouts the export to awkward shares, and which it copies, so that copy=False raises."""

import pickle

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah


def int32(*values):
    return pa.array(values, pa.int32())


def dictionary(indices, width):
    return pa.DictionaryArray.from_arrays(pa.array(indices, width), pa.array(["a", "b"]))


def union(second):
    children = [pa.array([1, 2]), second]
    return pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), children, ["a", "b"])


SHARED = {
    "numbers": pa.array([1, None]),
    "a slice": pa.array([1, None, 2])[1:],
    "lists": pa.array([[1], None]),
    "rows out of order": pa.ListViewArray.from_arrays(int32(1, 0), int32(2, 1), pa.array([1, 2, 3])),
    "rows in order": pa.ListViewArray.from_arrays(int32(0, 1), int32(1, 2), pa.array([1, 2, 3])),
    "strings": pa.array(["a", None]),
    "records": pa.array([{"a": 1, "b": "x"}]),
    "wide indices": dictionary([0, 1], pa.int64()),
    "nulls": pa.nulls(2),
    "union": union(pa.array(["a", "b"])),
    "milliseconds": pa.array([86_400_000], pa.date64()),
    "bytes per boolean": np.array([True, False]),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_layouts_are_exported_with_copy_false(name):
    source = SHARED[name]
    assert ah.as_awkward(source, copy=False).to_list() == ah.as_awkward(source, copy=True).to_list()


def test_int64_indices_are_shared():
    source = dictionary([0, 1], pa.int64())
    assert ak.to_layout(ah.as_awkward(source)).index.data.ctypes.data == source.indices.buffers()[1].address


@pytest.mark.parametrize("width", ["int8", "uint8", "uint16", "uint32", "uint64"])
def test_a_missing_category_is_missing_for_each_type_of_indices(width):
    values = range(256 if width == "uint8" else 2)
    indices = pa.array([1, None, 0], width)
    made = ah.as_awkward(pa.DictionaryArray.from_arrays(indices, pa.array(values)))
    assert made.to_list() == [1, None, 0]


BIG = 2**53 + 1
MERGED = {
    "int64 and float64": [pa.array([BIG, 0]), pa.array([1.5, 2.5])],
    "int64 and uint64": [pa.array([-BIG, 0]), pa.array([1, 2], pa.uint64())],
    "lists": [pa.array([[BIG], []]), pa.array([[1.5], [2.5]])],
    "records": [pa.array([{"a": BIG}, {"a": 0}]), pa.array([{"a": 1.5}, {"a": 2.5}])],
}


@pytest.mark.parametrize("name", MERGED)
def test_integers_of_unions_are_not_rounded(name):
    source = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), MERGED[name])
    for copy in (False, True, None):
        with pytest.raises(OverflowError, match="9007199254740993 would be rounded") as error:
            ah.as_awkward(source, copy=copy)
    assert eval(error.value.call, {"arrayhub": ah, "x": source}) == source.to_pylist()


def test_integers_that_a_union_does_not_use_or_that_are_not_merged_may_be_large():
    numbers = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, BIG]), pa.array([1.5, 2.5])])
    assert ah.as_awkward(numbers).to_list() == [1.0, 2.5]
    records = [pa.array([{"a": BIG, "b": 1}] * 2), pa.array([{"a": BIG, "b": 0.5}] * 2)]
    mixed = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), records)
    assert ah.as_awkward(mixed).to_list() == [{"a": BIG, "b": 1.0}, {"a": BIG, "b": 0.5}]


@pytest.mark.parametrize("x", [np.zeros(4, "V3")[::2], np.zeros((4, 2), "V3")[::2], np.zeros(3, "V4,f8")], ids=str)
def test_bytes_with_gaps_require_a_copy(x):
    with pytest.raises(ah.Refusal, match=r"^awkward: elements of dtype \|V\d have byte strides ") as raised:
        ah.as_awkward(x, copy=False)
    assert raised.value.call == "arrayhub.as_awkward(x, copy=True)"
    assert len(ah.as_awkward(x, copy=True)) == len(ah.as_awkward(x, copy=None)) == len(x)
    assert ah.explain(x, "awkward").verdicts[0].verdict == "copy=True"


def test_values_that_awkward_does_not_use_are_not_checked():
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([BIG, 3]).buffers()[1]])
    x = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [hidden, pa.array([0.5, 1.5])])
    assert ah.as_awkward(x, copy=None).to_list() == [None, 1.5]
    outside = pa.array([[BIG], [1], [2]]).slice(1)
    x = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [outside, pa.array([[0.5], [1.5]])])
    assert ah.as_awkward(x, copy=None).to_list() == [[1.0], [1.5]]


# -------------------------------------------------------------------------------------------------- missing categories


@pytest.mark.parametrize("indices", [[0, 1, None, 2], [0, 1, 2, 0], [1, 1], [None], []], ids=str)
@pytest.mark.parametrize("width", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8()], ids=str)
@pytest.mark.parametrize(
    "categories",
    [["a", None, "b"], [1, None, 3], [None, 1.5, None], [True, None, False], [b"x", None, b"y"], [None, None, None],
     [[1], None, [2, 3]]],
    ids=str,
)  # fmt: skip
def test_elements_of_a_missing_category_are_missing_in_awkward(categories, width, indices):
    source = pa.DictionaryArray.from_arrays(pa.array(indices, width), pa.array(categories))
    for x in (source, ah.asnested(source), ah.asnested(source)[: len(source)]):
        made = ah.as_awkward(x, copy=True)
        assert made.to_list() == source.to_pylist()
        assert ah.asnested(made).to_list() == source.to_pylist()
        assert ah.as_awkward(x).to_list() == source.to_pylist()


def test_missing_categories_are_not_categories_of_awkward():
    source = pa.DictionaryArray.from_arrays(pa.array([0, 2]), pa.array(["a", None, "b"]))
    made = ah.as_awkward(source, copy=True)
    assert ak.categories(made).to_list() == ["a", "b"]


# ------------------------------------------------------------------------------------------ types that only awkward has


def vectors():
    return ak.Array([{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}], with_name="Vector2D")


def characters(name):
    return ak.contents.NumpyArray(np.frombuffer(b"hey", "u1"), parameters={"__array__": name})


OWN_TYPES = {
    "tuples": lambda: ak.Array([(1, 1.5), (2, 2.5)]),
    "tuples of tuples": lambda: ak.Array([((1, 2), "a"), ((3, 4), "b")]),
    "tuples in lists": lambda: ak.Array([[(1, 2)], [], [(3, 4), (5, 6)]]),
    "missing tuples": lambda: ak.Array([(1, 2), None]),
    "empty tuples": lambda: ak.Array(ak.contents.RecordArray([], None, length=2)),
    "named records": vectors,
    "named records in lists": lambda: ak.Array([vectors().to_list(), []], with_name="Vector2D"),
    "named tuples": lambda: ak.with_name(ak.Array([(1, 2)]), "pair"),
    "records with parameters": lambda: ak.with_parameter(ak.Array([{"x": 1}]), "unit", {"length": ["m", None]}),
    "records of named records": lambda: ak.zip({"v": vectors(), "t": [1, 2]}, depth_limit=1),
    "characters": lambda: ak.Array(characters("char")),
    "byte characters": lambda: ak.Array(characters("byte")),
    "characters in records": lambda: ak.Array(ak.contents.RecordArray([characters("char")], ["c"])),
    "unknown": lambda: ak.Array([]),
    "unknown in lists": lambda: ak.Array([[], []]),
    "unknown in records": lambda: ak.Array([{"x": []}]),
    "unknown missing elements": lambda: ak.Array([None, None]),
    "unknown missing elements in lists": lambda: ak.Array([[None], []]),
}


@pytest.mark.parametrize("name", OWN_TYPES)
def test_types_of_awkward_survive_the_round_trip(name):
    a = OWN_TYPES[name]()
    x = ah.asnested(a, copy=None)
    for again in (x, x[:], ah.asnested(a, copy=True), pickle.loads(pickle.dumps(x)), x[:1]):
        made = ah.as_awkward(again, copy=True)
        assert made.type.content == a.type.content or name == "missing tuples"  # a slice may not have missing tuples
        assert made.to_list() == a.to_list()[: len(made)]
    assert ah.as_awkward(x).type == a.type
    if "characters" not in name:
        assert x.to_list() == a.to_list()


def test_elements_of_tuples_are_tuples():
    x = ah.asnested(ak.Array([(1, "a"), None, (2, "b")]))
    assert type(x[0]) is tuple and (x[0][0].item(), x[0][1], x[1], list(x)[2][1]) == (1, "a", None, "b")
    assert x.field_names == ("0", "1") and x["1"].to_list() == ["a", None, "b"]
    assert ah.as_arrow(x).to_pylist() == [{"0": 1, "1": "a"}, None, {"0": 2, "1": "b"}]


def test_names_of_records_are_kept_when_missing_elements_are_filled():
    a = ak.Array([{"x": 1.0}, {"x": None}], with_name="Point")
    made = ah.as_awkward(a, missing=7.0)
    assert made.to_list() == [{"x": 1.0}, {"x": 7.0}] and made.layout.parameter("__record__") == "Point"


def test_unknown_type_is_arrows_null():
    assert ah.as_arrow(ak.Array([])).type == pa.null()
    assert ah.as_arrow(ak.Array([[], []])).type == pa.large_list(pa.null())
    assert ah.as_numpy(ak.Array([]), copy=True).shape == (0,)


@pytest.mark.parametrize("value", [20, 2**53 + 1])
def test_integers_of_a_union_with_an_unknown_child_stay_integers(value):
    tags, index = ak.index.Index8(np.array([1, 1], "i1")), ak.index.Index64(np.array([0, 1]))
    contents = [ak.contents.EmptyArray(), ak.contents.NumpyArray(np.array([10, value]))]
    made = ah.as_awkward(ak.Array(ak.contents.UnionArray(tags, index, contents)), copy=True)
    assert repr(made.to_list()) == f"[10, {value}]"
