"""Test the concatenation of chunks."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah
from arrayhub.nested.concatenate import concatenate


def chunks(*parts, ordered=False):
    """Return chunks of dictionaries from pairs of indices and categories."""
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), pa.array(c), ordered=ordered) for i, c in parts]
    )


DICTIONARIES = {
    "equal": (chunks(([0, 1], ["a", "b"]), ([1, 0], ["a", "b"])), ["a", "b"]),
    "overlapping": (chunks(([0, 1], ["a", "b"]), ([0, None, 1], ["b", "c"])), ["a", "b", "c"]),
    "new categories between": (chunks(([0], ["b"]), ([0, 1, 2], ["a", "b", "c"])), ["b", "a", "c"]),
    "contained": (chunks(([0, 1], ["a", "b"]), ([0], ["b"])), ["a", "b"]),
    "reversed": (chunks(([0, 1], ["a", "b"]), ([0, 1], ["b", "a"])), ["a", "b"]),
    "numbers": (chunks(([0, 1], [1.5, 2.5]), ([0, 1], [2.5, 3.5])), [1.5, 2.5, 3.5]),
    "signed zeros": (chunks(([0], [0.0]), ([0], [-0.0])), [0.0, -0.0]),
    "booleans": (chunks(([0], [True]), ([0, 1], [False, True])), [True, False]),
    "bytes": (chunks(([0], [b"a\0"]), ([0, 1], [b"a", b"a\0"])), [b"a\0", b"a"]),
    "missing categories": (chunks(([0, 1], ["a", None]), ([0, 1], [None, ""])), ["a", None, ""]),
    "views": (
        chunks(([0], pa.array(["a"], pa.string_view())), ([0, 1], pa.array(["b" * 20, "a"], pa.string_view()))),
        ["a", "b" * 20],
    ),
    "without categories": (chunks(([None], pa.array([], pa.string())), ([0], ["a"])), ["a"]),
    "only missing": (chunks(([None], pa.array([], pa.string())), ([None, None], pa.array([], pa.string()))), []),
    "slices": (chunks(([1], pa.array(["z", "a", "b"])[1:]), ([0], pa.array(["z", "b"])[1:])), ["a", "b"]),
}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_categories_are_not_repeated(name):
    source, categories = DICTIONARIES[name]
    x = ah.asnested(source, copy=True)
    assert x.to_list() == source.to_pylist()
    assert str(ah.asnested(x.content).to_list()) == str(categories)  # str, because 0.0 == -0.0
    assert x.indices.dtype == "int8"


def test_libraries_accept_joined_dictionaries():
    source = chunks(([0, 1], ["a", "b"]), ([0, 1], ["b", "c"]))
    x = ah.asnested(source, copy=True)
    assert pa.array(x).to_pandas().cat.categories.tolist() == ["a", "b", "c"]
    assert ah.as_pandas(x).value_counts().to_dict() == {"a": 1, "b": 2, "c": 1}
    assert (ah.as_awkward(source, copy=True) == "b").to_list() == [False, True, True, False]


def test_copies_of_ordered_categories_keep_their_order():
    source = chunks(([0, 1], ["lo", "hi"]), ([1, 0], ["lo", "hi"]), ordered=True)
    series = ah.as_arrow(source, copy=True).to_pandas()
    assert series.cat.ordered and series.cat.categories.tolist() == ["lo", "hi"]
    assert ah.as_polars(source, copy=True).dtype == pl.Enum(["lo", "hi"])


def test_an_enum_in_chunks_stays_an_enum_when_filled():
    kind = pl.Enum(["a", "b"])
    source = pl.concat([pl.Series(["a", None], dtype=kind), pl.Series(["b"], dtype=kind)], rechunk=False)
    made = ah.as_polars(source, missing="b")
    assert made.dtype == kind and made.to_list() == ["a", "b", "b"]


def test_joined_indices_are_widened_if_categories_exceed_their_type():
    first, second = (pa.array([str(k) for k in range(start, start + 100)]) for start in (0, 50))
    x = ah.asnested(chunks(([0, 99], first), ([0, 99], second)), copy=True)
    assert x.indices.dtype == "int64" and x.to_list() == ["0", "99", "50", "149"]
    assert ah.asnested(chunks(([0, 99], first), ([0, 99], first)), copy=True).indices.dtype == "int8"


def test_dictionaries_of_lists_are_shared_by_their_chunks():
    lists = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[1], [2, 3]]))
    x = ah.asnested(pa.chunked_array([lists, lists]), copy=True)
    assert x.to_list() == [[1], [2, 3], [1], [2, 3]]


def test_rows_of_list_views_share_their_dictionary():
    items = pa.array(["a", "b", "c"]).dictionary_encode()
    source = pa.ListViewArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array([2, 1], pa.int32()), items)
    x = ah.asnested(source, copy=True)
    assert x.to_list() == [["b", "c"], ["a"]] and x.children[0].content.to_list() == ["a", "b", "c"]


def test_copies_of_a_dictionary_have_their_own_memory():
    source = pa.array([1.5, 2.5]).dictionary_encode()
    x = ah.asnested(source, copy=True)
    assert x.content.ptr != source.dictionary.buffers()[1].address and x.access == "readwrite"


def test_equal_bytes_of_categories_of_several_types_are_distinct():
    strings, binary = pa.array(["a"]).dictionary_encode(), pa.array([b"a"]).dictionary_encode()
    with pytest.raises(TypeError, match="several types"):
        concatenate([ah.asnested(strings), ah.asnested(binary)])
    seconds, nanoseconds = (pa.array([1], pa.timestamp(unit)).dictionary_encode() for unit in ("s", "ns"))
    assert concatenate([ah.asnested(seconds), ah.asnested(nanoseconds)]).to_list() == [10**9, 1]  # in nanoseconds


def test_copies_of_list_views_out_of_order_have_the_same_rows():
    rng = np.random.default_rng(0)
    starts, sizes = rng.integers(0, 90, 200), rng.integers(0, 10, 200)
    for content in (pa.array(np.arange(100.0)), pa.array([str(k) for k in range(100)])):
        source = pa.ListViewArray.from_arrays(pa.array(starts, pa.int32()), pa.array(sizes, pa.int32()), content)
        assert concatenate([ah.asnested(source)]).to_list() == source.to_pylist()
        assert ah.as_pandas(source).tolist() == source.to_pylist()
