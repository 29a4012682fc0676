"""Test which layouts the export to awkward shares, and which it copies, so that copy=False raises."""

import re

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah


def int32(*values):
    return pa.array(values, pa.int32())


def dictionary(indices, width):
    return pa.DictionaryArray.from_arrays(pa.array(indices, width), pa.array(["a", "b"]))


def union(second, codes=(0, 1)):
    children = [pa.array([1, 2]), second]
    return pa.UnionArray.from_sparse(pa.array(codes, pa.int8()), children, ["a", "b"], sorted(codes))


COPIED = {
    "bits": (pa.array([True, None]), "packed booleans"),
    "bits in lists": (pa.array([[True], [False]]), "packed booleans"),
    "bits in records": (pa.array([{"a": True}]), "packed booleans"),
    "string views": (pa.array(["a", "b" * 20], pa.string_view()), "string views"),
    "days": (pa.array([1, 2], pa.date32()), "dates of 4 bytes"),
    "narrow indices": (dictionary([0, 1], pa.int8()), "int8 to int64"),
    "indices of missing elements": (dictionary([0, None], pa.int64()), "replaced by -1"),
    "rows out of order": (pa.ListViewArray.from_arrays(int32(1, 0), int32(2, 1), pa.array([1, 2, 3])), "out of order"),
    "runs": (pa.RunEndEncodedArray.from_arrays(int32(2), pa.array([7])), "each run"),
    "type codes": (union(pa.array(["a", "b"]), (5, 7)), r"\[5, 7\]"),
    "children of a common type": (union(pa.array([1.5, 2.5])), "merges children"),
}
SHARED = {
    "numbers": pa.array([1, None]),
    "a slice": pa.array([1, None, 2])[1:],
    "lists": pa.array([[1], None]),
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
        with pytest.raises(
            OverflowError, match=r"9007199254740993 would be rounded.* Use arrayhub.asnested\(x\)"
        ) as error:
            ah.as_awkward(source, copy=copy)
    call = re.search(r"Use (arrayhub\..*)", str(error.value))[1]
    assert eval(call, {"arrayhub": ah, "x": source}) == source.to_pylist()


def test_integers_that_a_union_does_not_use_or_that_are_not_merged_may_be_large():
    numbers = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, BIG]), pa.array([1.5, 2.5])])
    assert ah.as_awkward(numbers).to_list() == [1.0, 2.5]
    records = [pa.array([{"a": BIG, "b": 1}] * 2), pa.array([{"a": BIG, "b": 0.5}] * 2)]
    mixed = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), records)
    assert ah.as_awkward(mixed).to_list() == [{"a": BIG, "b": 1.0}, {"a": BIG, "b": 0.5}]


@pytest.mark.parametrize("x", [np.zeros(4, "V3")[::2], np.zeros((4, 2), "V3")[::2], np.zeros(3, "V4,f8")], ids=str)
def test_bytes_with_gaps_require_a_copy(x):
    for copy in (False,):
        with pytest.raises(
            BufferError, match=r"^awkward: elements of dtype \|V\d have byte strides .* Pass copy=True$"
        ):
            ah.as_awkward(x, copy=copy)
    assert len(ah.as_awkward(x, copy=True)) == len(ah.as_awkward(x, copy=None)) == len(x)
    assert ah.explain(x, "awkward").verdicts[0].verdict == "copy=True"


BIG = 2**60 + 1


def union(*children, codes):
    return pa.UnionArray.from_sparse(pa.array(codes, pa.int8()), list(children))


def test_rounding_beside_lists_of_the_same_type_raises():
    x = union(
        pa.array([BIG, 0, 0]), pa.array([0.0, 0.5, 0.0]), pa.array([[], [], [1]], pa.list_(pa.int64())), codes=[0, 1, 2]
    )
    with pytest.raises(OverflowError, match=f"awkward: {BIG} would be rounded"):
        ah.as_awkward(x, copy=None)


def test_rounding_in_lists_raises():
    x = union(pa.array([[BIG], []]), pa.array([[], [0.5]]), codes=[0, 1])
    with pytest.raises(OverflowError, match=f"awkward: {BIG} would be rounded"):
        ah.as_awkward(x, copy=None)


def test_values_that_awkward_does_not_use_are_not_checked():
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([BIG, 3]).buffers()[1]])
    x = union(hidden, pa.array([0.5, 1.5]), codes=[0, 1])
    assert ah.as_awkward(x, copy=None).to_list() == [None, 1.5]
    outside = pa.array([[BIG], [1], [2]]).slice(1)
    x = union(outside, pa.array([[0.5], [1.5]]), codes=[0, 1])
    assert ah.as_awkward(x, copy=None).to_list() == [[1.0], [1.5]]
