"""Test that nested arrays are converted to the layouts that consumers expect."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

TEXTS = ["u", "more than twelve characters", None]
SOURCES = {
    "series": pl.Series("a", TEXTS),
    "pyarrow": pa.array(TEXTS, pa.string_view()),
    "chunks": pa.chunked_array([TEXTS[:1], TEXTS[1:]], pa.string_view()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_pandas_functions_accept_exported_string_views(source):
    series = ah.as_pandas(SOURCES[source])
    assert series.str.len().tolist()[:2] == [1, 27]
    assert series.value_counts()["u"] == 1 and series.sort_values().iloc[-1] is pd.NA
    assert (series == "u").tolist()[:2] == [True, False]


def test_strings_in_columns_and_categories_are_converted():
    frame = ah.as_pandas(pl.DataFrame({"a": TEXTS, "b": [1, 2, 3]}))
    assert frame["a"].str.upper()[0] == "U" and frame["b"].tolist() == [1, 2, 3]
    categories = ah.as_pandas(pl.Series(["u", "v", "u"], dtype=pl.Categorical))
    assert "string_view" not in str(categories.dtype) and categories.tolist() == ["u", "v", "u"]


def test_copy_false_forbids_the_copy_of_string_views():
    with pytest.raises(BufferError, match="string views") as error:
        ah.as_pandas(SOURCES["series"], copy=False)
    assert "arrayhub.as_arrow(x)" in str(error.value)
    assert ah.as_arrow(SOURCES["series"]).to_pylist() == TEXTS


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
