"""Nested arrays are pickled, copied, hashed by dask and joblib, and passed to NumPy and pandas functions."""

import copy
import multiprocessing
import pickle
import sys

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from optional import optional

import arrayhub as ah
from arrayhub.nested.pickling import _unpickle_nested

dask = optional("dask")
joblib = optional("joblib")

LONG = "a string of more than twelve bytes"
SOURCES = {
    "lists": pa.array([[1.0], [2.0, 3.0], [], None]),
    "strings": pa.array(["This", None, LONG, "é"]),
    "string views": pa.array(["This", None, LONG, "é" * 10], pa.string_view()),
    "records": pa.array([{"x": 1, "y": ["a"]}, None, {"x": 2, "y": []}]),
}


def out_of_band(x):
    buffers = []
    return pickle.dumps(x, 5, buffer_callback=buffers.append), buffers


def assert_same(y, source):
    back = ah.as_arrow(y)
    back.validate(full=True)
    assert back.equals(source)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())], ids=str)
def test_slice_pickles_only_its_own_elements(kind):
    x = ah.asnested(pa.array([list(range(100))] * 1000, kind))
    assert len(pickle.dumps(x[:10])) < 20_000 < len(pickle.dumps(x))
    _, buffers = out_of_band(x[5:15])
    assert sum(buffer.raw().nbytes for buffer in buffers) <= 10 * 100 * 8 + 2 * 11 * 8


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()], ids=str)
def test_slice_of_strings_pickles_only_its_own_characters(kind):
    x = ah.asnested(pa.array([LONG * 10] * 1000, kind))
    part = pickle.loads(pickle.dumps(x[2:4]))
    assert len(pickle.dumps(x[2:4])) < 3000 and part.to_list() == [LONG * 10] * 2 and part.kind == x.kind


def test_buffer_shared_by_fields_is_pickled_once():
    column = pa.array(np.arange(10_000.0))
    x = ah.asnested(pa.table({"a": column, "b": column}).to_struct_array().chunk(0))
    _, buffers = out_of_band(x)
    assert sum(buffer.raw().nbytes for buffer in buffers) == 80_000
    assert pickle.loads(pickle.dumps(x)).to_list() == x.to_list()


def test_out_of_band_buffers_are_views_of_the_memory():
    x = ah.asnested(pa.array([list(map(float, range(1000)))]))
    _, buffers = out_of_band(x)
    assert x.content.ptr in [np.frombuffer(buffer.raw(), np.uint8).ctypes.data for buffer in buffers]


def test_copies_of_the_structure_are_the_array_and_deep_copies_have_their_own_memory():
    x = ah.asnested(SOURCES["lists"])
    assert copy.copy(x) is x
    y = copy.deepcopy(x)
    assert_same(y, SOURCES["lists"])
    assert y.offsets.ptr != x.offsets.ptr and y.content.ptr != x.content.ptr


@pytest.mark.slow
def test_array_is_sent_to_another_process():
    x = ah.asnested(pa.array([[1, 2], [], None, [3]]))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (back,) = pool.map(ah.NestedArray.to_list, [x])  # functions that the new process can import
        (same,) = pool.map(copy.copy, [x])
    assert back == same.to_list() == [[1, 2], [], None, [3]]


def test_dask_computes_and_tokenizes_nested_arrays():
    x = ah.asnested(SOURCES["records"])
    assert dask.delayed(ah.NestedArray.to_list)(x).compute(scheduler="threads") == x.to_list()
    tokenize = dask.base.tokenize
    assert tokenize(x) == tokenize(ah.asnested(SOURCES["records"])) != tokenize(x[1:])
    assert tokenize(ah.asnested(pa.array(["a", "b"]))) != tokenize(ah.asnested(pa.array([b"a", b"b"])))
    big = ah.asnested(pa.array([[1.0] * 1000]))
    assert sys.getsizeof(big) > 8000


@pytest.mark.parametrize("name", ["lists", "strings", "string views", "records"])
def test_joblib_stores_and_hashes_nested_arrays(tmp_path, name):
    x = ah.asnested(SOURCES[name])
    joblib.dump(x, tmp_path / "x")
    assert_same(joblib.load(tmp_path / "x"), SOURCES[name])
    assert joblib.hash(x) == joblib.hash(ah.asnested(SOURCES[name])) != joblib.hash(x[1:])


BROKEN = {
    "an unknown kind": {"kind": "tree"},
    "a negative length": {"length": -1},
    "more rows than offsets": {"length": 5},
    "no offsets": {"offsets": None},
    "offsets in a list": {"offsets": [0, 1]},
    "no content": {"content": 5},
    "flat of another length": {"kind": "flat"},
    "a bitmap that is too short": {"validity": ah.asarray(np.zeros(0, np.uint8))},
    "strings of numbers": {"kind": "string"},
    "views of numbers": {"kind": "string_view", "parts": ()},
    "regular without a width": {"kind": "regular"},
    "a record without names": {"kind": "record"},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_pickle_with_inconsistent_parts_is_rejected(change):
    state = {
        "kind": "list",
        "length": 2,
        "offsets": ah.asarray(np.array([0, 1, 3], np.int32)),
        "content": ah.asarray(np.arange(3.0)),
    }
    assert _unpickle_nested(dict(state)).to_list() == [[0.0], [1.0, 2.0]]
    with pytest.raises(pickle.UnpicklingError, match="arrayhub"):
        _unpickle_nested(state | change)


def test_offsets_of_a_pickle_are_validated_on_use():
    state = {
        "kind": "list",
        "length": 1,
        "offsets": ah.asarray(np.array([0, 9], np.int64)),
        "content": ah.asarray(np.arange(3.0)),
    }
    with pytest.raises(ah.InterfaceError, match="offsets"):
        _unpickle_nested(state).to_list()


# --------------------------------------------------------------------------------------- NumPy and Python's operators


def test_numpy_asarray_returns_a_view_or_raises_the_error_of_as_numpy():
    source = pa.array([[1, 2], [3, 4]])
    dense = np.asarray(ah.asnested(source))
    assert dense.dtype == np.int64 and dense.ctypes.data == source.values.buffers()[1].address
    assert np.asarray(ah.asnested([1, 2]), dtype=float).tolist() == [1.0, 2.0]
    for refused, says in {
        "ragged": (ah.asnested([[1], [2, 3]]), "equal lengths"),
        "missing": (ah.asnested([1, None]), "missing='mask'"),
        "strings": (ah.asnested(["a"]), r"[cC]all arrayhub.as_numpy\(x, copy=True\)"),
        "records": (ah.asnested([{"a": 1}]), r"[cC]all arrayhub.as_numpy\(x, copy=True\)"),
    }.values():
        with pytest.raises((TypeError, ValueError), match=says):
            np.asarray(refused)


def test_pandas_constructors_raise_instead_of_storing_objects():
    for x in (ah.asnested([[1], [2, 3]]), ah.asnested([1, None])):
        with pytest.raises((TypeError, ValueError), match="equal lengths|missing"):
            pd.DataFrame({"a": x})
        with pytest.raises((TypeError, ValueError), match="equal lengths|missing"):
            pd.Series(x)


def test_comparisons_hashes_and_truth_values_are_rejected():
    x = ah.asnested([[1], [2, 3]])
    for compare in (lambda: x == x, lambda: x != [1], lambda: x in [1, 2], lambda: x == ah.asnested([1])):
        with pytest.raises(TypeError, match="does not implement comparison"):
            compare()
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)


def test_pyarrow_and_awkward_keep_the_structure():
    x = ah.asnested([[1], [2, 3]])
    assert pa.array(x).to_pylist() == x.to_list()
    assert ak.to_list(ah.as_awkward(x)) == x.to_list()
