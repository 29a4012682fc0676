"""Test dense and sparse unions, whose elements have several types."""

import pickle
import re

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah


def dense(codes=(0, 1, 1, 0), offsets=(0, 0, 1, 1), type_codes=None):
    children = [pa.array([1, None]), pa.array(["a", "b"])]
    codes, offsets = pa.array(codes, pa.int8()), pa.array(offsets, pa.int32())
    return pa.UnionArray.from_dense(codes, offsets, children, ["n", "s"], type_codes)


def sparse():
    children = [pa.array([1, 2, 3, 4]), pa.array(["a", "b", None, "d"])]
    return pa.UnionArray.from_sparse(pa.array([5, 7, 7, 5], pa.int8()), children, ["n", "s"], [5, 7])


UNIONS = {
    "dense": dense,
    "dense with other codes": lambda: dense((9, 3, 3, 9), type_codes=[9, 3]),
    "dense slice": lambda: dense()[1:3],
    "dense without elements": lambda: dense()[:0],
    "sparse": sparse,
    "sparse slice": lambda: sparse()[1:],
    "sparse without elements": lambda: sparse()[:0],
    "without children": lambda: pa.UnionArray.from_sparse(pa.array([], pa.int8()), []),
}


def test_unions_are_exported_on_the_same_memory():
    for source in (dense(), dense()[1:3], sparse()):
        back = pa.array(ah.asnested(source))
        assert back.buffers()[1].address + back.offset == source.buffers()[1].address + source.offset


@pytest.mark.parametrize("name", [name for name in UNIONS if "without" not in name])
def test_elements_of_missing_records_are_missing_in_the_children(name):
    union = UNIONS[name]()
    mask = [k % 2 == 1 for k in range(len(union))]
    source = pa.StructArray.from_arrays([union, union], ["u", "v"], mask=pa.array(mask))
    values = [None if missing else value for value, missing in zip(union.to_pylist(), mask, strict=True)]
    for record, expected in ((source, values), (source[1:], values[1:])):
        u = ah.asnested(record)["u"]
        assert u.validity is None and u.null_count == 0
        assert u.to_list() == expected and u.is_null().tolist() == [value is None for value in expected]
        back = ah.as_arrow(u)
        back.validate(full=True)
        assert back.type == union.type and back.to_pylist() == expected
        assert ah.as_awkward(u).to_list() == expected
        assert ah.asnested(record, copy=True)["u"].to_list() == expected
        assert pickle.loads(pickle.dumps(u)).to_list() == expected
    column = ah.asnested(pa.chunked_array([source, source[:1]]))["u"]
    assert column.to_list() == [*values, values[0]] and ah.as_arrow(column).to_pylist() == [*values, values[0]]


def test_nested_unions_of_missing_records_have_missing_elements():
    inner = sparse()
    outer = pa.UnionArray.from_sparse(pa.array([0, 1, 1, 0], pa.int8()), [inner, pa.nulls(4)])
    record = pa.StructArray.from_arrays([outer], ["u"], mask=pa.array([False, False, False, True]))
    u = ah.asnested(record)["u"]
    assert u.to_list() == [1, None, None, None]
    ah.as_arrow(u).validate(full=True)


def test_missing_records_may_share_an_element_of_a_union():
    union = dense((0, 1, 0, 0), (0, 0, 1, 0))
    x = ah.asnested(pa.StructArray.from_arrays([union], ["u"], mask=pa.array([False, False, False, True])))
    assert x["u"].to_list() == [1, "a", None, None]
    assert x.to_list() == [{"u": 1}, {"u": "a"}, {"u": None}, None]
    assert x.children[0].to_list() == [1, "a", None, 1]
    both = pa.StructArray.from_arrays([union], ["u"], mask=pa.array([True, False, False, True]))
    assert ah.asnested(both)["u"].to_list() == [None, "a", None, None]


def test_awkward_shares_the_children_of_unions():
    x = ah.asnested(dense())
    a = ah.as_awkward(x)
    assert a.to_list() == [1, "a", "b", None]
    back = ah.asnested(a)
    assert str(back.type) == "4 * union[?int64, string]" and back.to_list() == [1, "a", "b", None]
    assert ah.as_awkward(ah.asnested(sparse())).to_list() == [1, "b", None, 4]
    mixed = ah.asnested(ak.Array([1.5, "x", [1, 2]]))
    assert mixed.to_list() == [1.5, "x", [1, 2]]
    assert pa.array(mixed).to_pylist() == [1.5, "x", [1, 2]]


def out_of_order(first, last):
    """Return the awkward union of ``first[1], last[0], first[0], last[1]``."""
    tags, index = ak.index.Index8([0, 1, 0, 1]), ak.index.Index32(np.array([1, 0, 0, 1], "i4"))
    return ak.Array(ak.contents.UnionArray(tags, index, [ak.Array(first).layout, ak.Array(last).layout]))


PARTS = {
    "strings": ([1, 2], ["x", "y"]),
    "missing": ([1, None], ["x", None]),
    "lists": ([[1, 2], []], ["x", "y"]),
    "records": ([{"a": 1}, {"a": 2}], ["x", "y"]),
}


@pytest.mark.parametrize(("first", "last"), PARTS.values(), ids=PARTS)
def test_awkward_unions_have_offsets_in_order(first, last):
    union = out_of_order(first, last)
    x = ah.asnested(union)
    assert x.to_list() == union.to_list() == [first[1], last[0], first[0], last[1]]
    pa.array(x).validate(full=True)
    assert ah.as_awkward(x).to_list() == ah.as_awkward(union).to_list() == union.to_list()


@pytest.mark.parametrize("index", [[9, 0, 0], [0, 0, -1]])
def test_index_of_an_awkward_union_that_is_out_of_range_is_reported(index):
    contents = [ak.contents.NumpyArray(np.array([1, 2])), ak.Array(["x"]).layout]
    union = ak.contents.UnionArray(ak.index.Index8([0, 1, 0]), ak.index.Index64(index), contents)
    assert "offsets" in ah.check(ak.Array(union))[-1]
    with pytest.raises(ah.InterfaceError, match="offsets"):
        ah.asnested(ak.Array(union)).to_list()


def test_children_of_awkward_unions_in_order_are_shared():
    numbers = np.array([1, 2, 3])
    contents = [ak.contents.NumpyArray(numbers), ak.Array(["x"]).layout]
    tags, index = ak.index.Index8([0, 1, 0, 0]), ak.index.Index32(np.array([0, 0, 2, 2], "i4"))
    x = ah.asnested(ak.Array(ak.contents.UnionArray(tags, index, contents)), copy=False)
    assert x.to_list() == [1, "x", 3, 3] and x.children[0].ptr == numbers.ctypes.data


def test_errors_of_libraries_without_unions_suggest_a_call():
    x = ah.asnested(dense())
    with pytest.raises(ah.Refusal, match="polars: Arrow.s union") as raised:
        ah.as_polars(x)
    assert len(eval(raised.value.call, {"arrayhub": ah, "x": x})) == len(x)
    assert ah.as_polars(x.children[0]).to_list() == [1, None]
    with pytest.raises(BufferError, match=r"numpy: the elements have several types; use x\.children"):
        ah.as_numpy(x, copy=True)
    with pytest.raises(TypeError, match=r"x\.children\[0\]\.fill_null\(value\)"):
        x.fill_null(0)
    assert np.asarray(x.children[0].fill_null(0)).tolist() == [1, 0]
    with pytest.raises(KeyError, match=r"use x\.children"):
        x["n"]
    assert ah.as_pandas(x).tolist()[:3] == [1, "a", "b"]


def test_inspection_functions_describe_unions():
    x = ah.asnested(dense())
    parts = re.findall(r"^  ([a-z_]+(?:\[\d\])?):", ah.debug_repr(x), re.M)
    assert set(parts) >= {"children[0]", "children[1]", "buffers[0]", "buffers[1]"}
    assert ah.check(x) == [] and "union" in ah.debug_repr(x) and "<pre" in x._repr_html_()
    assert "several types" in str(ah.explain(dense(), to="numpy"))
