"""Test that nested arrays are converted to the layouts that consumers expect."""

import awkward as ak
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

TEXTS = ["u", "more than twelve characters", None]


def test_strings_in_columns_and_categories_are_converted():
    frame = ah.as_pandas(pl.DataFrame({"a": TEXTS, "b": [1, 2, 3]}))
    assert frame["a"].str.upper()[0] == "U" and frame["b"].tolist() == [1, 2, 3]
    categories = ah.as_pandas(pl.Series(["u", "v", "u"], dtype=pl.Categorical))
    assert "string_view" not in str(categories.dtype) and categories.tolist() == ["u", "v", "u"]


def test_strings_with_offsets_are_shared():
    source = pa.array(["u", "v"])
    column = ah.as_pandas(source).array.__arrow_array__()
    assert column.chunk(0).buffers()[2].address == source.buffers()[2].address


def test_string_views_in_many_buffers_are_converted():
    texts = [f"element number {k:06}" for k in range(150_000)]
    source = pa.array([*texts, None], pa.string_view())
    assert len(ah.asnested(source).buffers) > 64  # pyarrow allocates blocks of 32 KiB
    assert ah.as_pandas(source).tolist()[:-1] == texts
    assert ah.as_pandas(source[:2]).tolist() == texts[:2]
    assert ah.as_awkward(source).to_list() == [*texts, None]
    assert ah.as_arrow(source, copy=True).to_pylist() == [*texts, None]
    assert ah.as_polars(source, missing="z").to_list() == [*texts, "z"]
    assert ah.as_numpy(source, copy=True).tolist() == [*texts, None]


def nested(values, items="string_view", list_type=pa.list_):
    return pa.array(values, list_type(getattr(pa, items)()))


LONG = "more than twelve characters"
LIST_VIEWS = pa.ListViewArray.from_arrays(
    pa.array([2, 0], pa.int32()), pa.array([2, 1], pa.int32()), pa.array([1, 2, 3, 4])
)
IN_ORDER = pa.array([[1, 2], [3]], pa.list_view(pa.int64()))
VIEWS = {
    "strings of polars": pl.Series("a", TEXTS),
    "strings": pa.array(TEXTS, pa.string_view()),
    "chunks of strings": pa.chunked_array([TEXTS[:1], TEXTS[1:]], pa.string_view()),
    "lists of polars": pl.Series([["x"], [LONG, None], None]),
    "lists": nested([["x"], [LONG, "y"], []]),
    "a slice of lists": nested([["w", LONG], ["x"], [LONG, "y"]])[1:],
    "lists of binary": nested([[b"x"], [b"y" * 20]], "binary_view"),
    "fixed-size lists": pa.FixedSizeListArray.from_arrays(pa.array(["x", LONG], pa.string_view()), 1),
    "lists of records": pl.Series([[{"k": "x"}], [], [{"k": LONG}]]),
    "maps": pa.array([[("a", "x")], [("b", LONG)]], pa.map_(pa.string_view(), pa.string_view())),
    "list views": LIST_VIEWS,
    "list views in order": IN_ORDER,
    "list views of strings": nested([["x"], [LONG]], list_type=pa.list_view),
    "list views in lists": pa.array([[[1], [2]], [[3]]], pa.list_(pa.list_view(pa.int64()))),
    "chunks": pa.chunked_array([IN_ORDER, LIST_VIEWS]),
    "empty list views": pa.ListViewArray.from_arrays(
        pa.array([1, 9, 0], pa.int32()), pa.array([2, 0, 0], pa.int32()), pa.array(range(9))
    ),
    "slices of awkward": ak.Array([[1.0], [2.0], [3.0, 4.0]])[::2],
    "missing rows of awkward": ak.Array([[1.0], None, [3.0, 4.0]]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_pandas_functions_accept_exported_views_at_any_depth(name):
    source = VIEWS[name]
    made = ah.as_pandas(source)
    assert "view" not in str(made.dtype)
    assert ah.asnested(made).to_list() == ah.asnested(source).to_list()
    assert repr(made) and made.to_csv() and len(made.explode()) >= len(made)
    assert len(made.to_numpy()) == len(made.iloc[[1, 0]]) + len(made) - 2
    assert len(pd.concat([made, made])) == 2 * len(made)
    frame = ah.as_pandas(pa.table({"v": ah.as_arrow(source)}))
    assert frame["v"].dtype == made.dtype and repr(frame)


def test_list_views_in_order_share_their_elements():
    column = ah.as_pandas(IN_ORDER).array.__arrow_array__().chunk(0)
    assert column.values.buffers()[1].address == IN_ORDER.values.buffers()[1].address


def test_strings_outside_a_slice_of_lists_are_not_copied():
    source = nested([["w", LONG * 100], ["x"], [LONG, "y"]])[1:]
    column = ah.as_pandas(source).array.__arrow_array__().chunk(0)
    assert column.values.to_pylist() == ["x", LONG, "y"]
