"""Test that pyarrow, polars and pandas receive the chunks of columns and tables without a copy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import arrayhub as ah

COLUMNS = {
    "numbers": pa.chunked_array([[1, 2], [3]]),
    "missing numbers": pa.chunked_array([[1, None], [3]]),
    "floats": pa.chunked_array([[1.5], [2.5, 3.5]]),
    "truth values": pa.chunked_array([[True, None], [False]]),
    "lists": pa.chunked_array([[[1], [2]], [[3, 4], None]]),
    "large lists": pa.chunked_array([[[1]], [[2, 3]]], pa.large_list(pa.int64())),
    "strings": pa.chunked_array([["a", None], ["a string of more than twelve bytes"]]),
    "string views": pa.chunked_array([["a"], ["b" * 20]], pa.string_view()),
    "days": pa.chunked_array([[1], [2]], pa.date32()),
    "zones": pa.chunked_array([[1], [2]], pa.timestamp("us", "Europe/Berlin")),
    "records": pa.chunked_array([[{"x": 1, "y": "a"}], [{"x": 2, "y": None}]]),
    "three": pa.chunked_array([[1], [2], [3]]),
}


def each(function):
    return pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)(function)


def addresses(column):
    return [[None if buffer is None else buffer.address for buffer in chunk.buffers()] for chunk in column.chunks]


@each
@pytest.mark.parametrize("copy", [False, None])
def test_pyarrow_receives_the_chunks(column, copy):
    back = ah.as_arrow(column, copy=copy)
    back.validate(full=True)
    assert isinstance(back, pa.ChunkedArray) and back.equals(column) and back.type == column.type
    lengths = [len(chunk) for chunk in column.chunks]
    assert [len(chunk) for chunk in back.chunks] == lengths and addresses(back) == addresses(column)


@each
def test_as_arrow_copy_concatenates_the_chunks(column):
    back = ah.as_arrow(column, copy=True)
    assert isinstance(back, pa.Array) and back.to_pylist() == column.to_pylist()


@each
@pytest.mark.parametrize("copy", [False, None])
def test_polars_receives_the_chunks(column, copy):
    back = ah.as_polars(column, copy=copy)
    expected = pl.from_arrow(column)
    if isinstance(back, pl.DataFrame):
        expected = expected.struct.unnest()
        assert back.equals(expected)
        back = back.to_series(0)
    else:
        assert back.equals(expected) and back.dtype == expected.dtype
    assert back.n_chunks() == column.num_chunks


def test_polars_shares_the_memory_of_the_chunks():
    column = pa.chunked_array([np.arange(5.0), np.arange(3.0)])
    chunks = ah.as_polars(column).get_chunks()
    assert [chunk.to_arrow().buffers()[1].address for chunk in chunks] == [
        chunk.buffers()[1].address for chunk in column.chunks
    ]


@each
def test_pandas_receives_the_chunks(column):
    back = ah.as_pandas(column)
    if isinstance(back, pd.DataFrame):
        assert back["x"].tolist() == [1, 2]
        back = back["x"]
    else:
        assert pa.chunked_array(back.array.__arrow_array__()).to_pylist() == column.to_pylist()
    assert back.array.__arrow_array__().num_chunks == column.num_chunks


@each
def test_as_arrow_keeps_the_chunks_of_polars_and_pandas(column):
    series = pl.from_arrow(column)
    assert getattr(ah.as_arrow(series), "num_chunks", 1) == series.n_chunks()  # polars imports records as one chunk
    assert ah.as_arrow(series).to_pylist() == column.to_pylist()
    on_arrow = pd.Series(pd.arrays.ArrowExtensionArray(column))
    assert ah.as_arrow(on_arrow).equals(column)


def test_tables_keep_their_chunks():
    table = pa.concat_tables([pa.table({"a": [1], "b": ["x"]}), pa.table({"a": [2], "b": ["y"]})])
    frame = ah.as_polars(table)
    assert frame.equals(pl.from_arrow(table)) and frame.n_chunks() == 2
    assert ah.as_pandas(table).to_dict("list") == table.to_pydict()
    back = ah.as_arrow(table)
    assert back.to_pylist() == table.to_pylist() and back.num_chunks == 2


def test_chunks_with_different_categories_are_exported():
    column = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()])
    assert ah.as_arrow(column).to_pylist() == ["a", "b", "c", "a"]
    assert ah.as_polars(column).to_list() == ["a", "b", "c", "a"]
