"""Columns and tables in several chunks are imported as one NestedArray of kind ``chunked``."""

import copy
import pickle
import re

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arrow_by_hand import given as given_arrow
from hypothesis import given

import arrayhub as ah
from arrayhub.nested.array import make, make_chunked, nested_of
from arrayhub.nested.pickling import nbytes
from tests.nested.export.test_arrow_chunks import COLUMNS, addresses, each

pytestmark = pytest.mark.slow

LISTS = pa.chunked_array([[[1], None], [[3, 4]], [], [[5], [], [6, 7]]], pa.list_(pa.int64()))
TABLE = pa.concat_tables([pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"a": [3], "b": ["z"]})])
FORMS = {
    "pyarrow": lambda column: column,
    "polars": pl.from_arrow,
    "pandas": lambda column: pd.Series(pd.arrays.ArrowExtensionArray(column)),
    "nested": ah.asnested,
}


@each
def test_chunked_column_is_imported_as_one_array(column):
    x = ah.asnested(column)
    assert x.kind == "chunked" and len(x.chunks) == column.num_chunks
    assert len(x) == len(column) and x.to_list() == column.to_pylist() and x.null_count == column.null_count
    assert x.type == ah.asnested(column, copy=True).type == ah.datashape.parse(str(x.type))
    assert pa.chunked_array(x).equals(column) and addresses(pa.chunked_array(x)) == addresses(column)
    assert pa.array(x).equals(column) and ah.check(x) == [] and x.access == "immutable" and x.protocol == "arrow"
    assert x.is_null().tolist() == [value is None for value in column.to_pylist()]


@each
def test_indexing_reads_the_right_chunk(column):
    x, expected = ah.asnested(column), column.to_pylist()

    def plain(value):
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return value.tolist() if isinstance(value, ah.USMArray) else value

    if pa.types.is_temporal(column.type):
        expected = [value for chunk in x.chunks for value in map(plain, chunk)]
    assert [plain(x[k]) for k in range(-len(x), len(x))] == expected + expected == list(map(plain, x)) * 2
    for key in (len(x), -len(x) - 1, 2**70):
        with pytest.raises(IndexError):
            x[key]


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=4), min_size=2, max_size=6), st.data())
def test_slices_are_views_across_chunks(chunks, data):
    column = pa.chunked_array(chunks, pa.int64())
    x, values = ah.asnested(column), column.to_pylist()
    for _ in range(2):  # the second pass slices a slice
        start, stop = data.draw(st.integers(-9, 25)), data.draw(st.integers(-9, 25))
        x, values = x[start:stop], values[start:stop]
        assert x.to_list() == values and len(x) == len(values)
    assert ah.as_arrow(x).to_pylist() == values
    held = {buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None}
    for chunk in x.chunks if len(x) else ():
        assert any(address <= chunk.content.ptr < address + 64 for address in held)


def test_attributes_and_operations_of_other_kinds_raise():
    x = ah.asnested(LISTS)
    for name in ("validity", "offsets", "content", "fields", "children"):
        with pytest.raises(AttributeError, match=r"kind 'chunked'; use x\.chunks"):
            getattr(x, name)
    for chunk, source in zip(x.chunks, LISTS.chunks, strict=True):
        assert chunk.kind == "list" and chunk.to_list() == source.to_pylist()
        assert len(chunk.chunks) == 1 and chunk.chunks[0] is chunk
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="comparison"):
        x == x  # noqa: B015


def test_tables_have_chunked_columns():
    x = ah.asnested(TABLE)
    assert str(x.type) == "3 * {a: int64, b: ?string}" and x.field_names == ("a", "b")
    assert x.fields["b"].to_list() == x["b"].to_list() == x.children[1].to_list() == ["x", None, "z"]
    assert x["a"].chunks[1].content.ptr == TABLE["a"].chunk(1).buffers()[1].address
    assert x[2]["b"] == x[2, "b"] == x["b", 2] == "z" and x.to_list() == TABLE.to_pylist()
    assert ah.as_numpy(x["a"], copy=True).tolist() == [1, 2, 3] == ah.asarray(x["a"], copy=True).tolist()
    assert x["b"].fill_null("y").to_list() == ["x", "y", "z"]
    assert ah.as_arrow(x).num_chunks == 2 and pa.table(x).equals(TABLE) and pl.DataFrame(x).equals(pl.DataFrame(TABLE))
    with pytest.raises(KeyError, match="^'c: the record does not have this field; accepted: a, b'$"):
        x["c"]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_dense_copies_concatenate_the_chunks(form):
    numbers = pa.chunked_array([[1.0, 2.0], [], [3.0]], pa.float64())
    obj = form(numbers)
    x = ah.asnested(obj)
    assert x.to_dense(copy=True).tolist() == [1, 2, 3] == ah.asarray(obj, copy=True).tolist()
    assert x.to_dense(copy=None).is_copy and ah.as_torch(obj, copy=True).tolist() == [1, 2, 3]
    assert ah.as_torch(x, copy=True).tolist() == ah.as_numpy(x, copy=None).tolist() == [1, 2, 3]
    for call in (ah.as_numpy, ah.as_torch, ah.as_awkward):
        with pytest.raises(BufferError, match="copy=True"):
            call(x)
    with pytest.raises(TypeError, match="copy=True"):
        np.asarray(x)
    assert np.array(x, copy=True).tolist() == [1, 2, 3]


def test_slice_within_one_chunk_is_a_view():
    x = ah.asnested(pa.chunked_array([[1.0, 2.0], [3.0]]))
    first, last = x[:2], x[2:]
    for part, chunk in ((first, x.chunks[0]), (last, x.chunks[1])):
        address = chunk.content.ptr
        assert ah.asarray(part).ptr == part.to_dense().ptr == ah.as_numpy(part).ctypes.data == address
        assert ah.asarray(chunk).ptr == ah.as_awkward(part).layout.data.ctypes.data == address


def test_fill_null_returns_one_array():
    assert isinstance(ah.asnested(pa.chunked_array([[1, None], [3]])).fill_null(0), ah.USMArray)
    filled = ah.asnested(LISTS).fill_null([])
    assert filled.kind == "list" and filled.to_list() == [[1], [], [3, 4], [5], [], [6, 7]]
    complete = ah.asnested(pa.chunked_array([["a"], ["b"]]))
    assert complete.fill_null("c") is complete


@each
def test_pickles_and_copies_keep_chunks(column):
    x, buffers = ah.asnested(column), []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    for y in (pickle.loads(data, buffers=buffers), pickle.loads(pickle.dumps(x, 2)), copy.deepcopy(x)):
        assert len(y.chunks) == len(x.chunks) and y.to_list() == x.to_list() and y.type == x.type
        assert ah.as_arrow(y).type == column.type
    assert copy.copy(x) is x
    assert nbytes(x) == sum(map(nbytes, x.chunks)) <= x.__sizeof__()


@pytest.mark.parametrize(
    "parts",
    [(), (np.arange(3),), (ah.asnested([1, None]), 3), (ah.asnested([1, None]),)],
    ids=["none", "ndarray", "number", "length"],
)
def test_inconsistent_pickles_are_rejected(parts):
    state = {"kind": "chunked", "length": 3, "parts": tuple(map(_state, parts))}
    with pytest.raises(pickle.UnpicklingError, match="arrayhub"):
        ah._unpickle_nested(state)


def _state(part):
    return part.__reduce__()[1][0] if isinstance(part, ah.NestedArray) else part


def test_only_the_outermost_array_is_chunked():
    x = ah.asnested(LISTS)
    for arguments in (
        {"kind": "record", "length": 1, "parts": (x,), "names": ("a",)},
        {"kind": "regular", "length": 2, "width": 3, "content": x},
    ):
        with pytest.raises(TypeError, match="a part of the array has chunks"):
            make(**arguments)
    assert len(make_chunked([x, x]).chunks) == 8  # four chunks of each array


@pytest.mark.parametrize(
    "chunks",
    [
        [[1, 2], ["a"]],
        [[[1, 2]], [["a"]]],
        [pa.array([{"a": 1}], pa.struct([pa.field("a", pa.int64(), nullable=nullable)])) for nullable in (False, True)],
        [pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), name, "v"), pa.array([1])) for name in ("a", "b")],
    ],
    ids=["elements", "content", "nullable", "metadata of an extension type"],
)
def test_chunks_of_several_types_are_not_exported(chunks):
    x = make_chunked(list(map(ah.asnested, chunks)))
    assert x.to_list() == [value for chunk in x.chunks for value in chunk.to_list()]
    with pytest.raises(AttributeError, match="several chunks"):
        x.__arrow_c_array__  # noqa: B018
    for call in (lambda x: x.__arrow_c_stream__(), ah.as_arrow, ah.as_polars, ah.as_pandas):
        with pytest.raises(BufferError, match="chunks 0 and 1 have different types"):
            call(x)


def test_tensors_with_missing_rows_in_one_chunk_keep_their_type():
    kind = pa.fixed_shape_tensor(pa.int32(), (2, 2))
    rows = [pa.array([[1, 2, 3, 4]], pa.list_(pa.int32(), 4)), pa.array([None, [5, 6, 7, 8]], pa.list_(pa.int32(), 4))]
    x = ah.asnested(pa.chunked_array([pa.ExtensionArray.from_storage(kind, row) for row in rows]))
    assert len(x) == 3 and x[1] is None
    assert ah.as_arrow(x).type == kind and ah.as_arrow(x).null_count == 1
    assert [len(ah.as_arrow(chunk)) for chunk in x.chunks] == [1, 2]


def test_nat_in_chunks_is_exported_as_missing():
    times = nested_of(ah.asarray(np.array(["2020-01-01", "NaT"], "M8[s]")))
    back = pa.chunked_array(make_chunked([times, times[1:]]))
    assert back.null_count == 2 and back.num_chunks == 2


def test_chunked_arrays_are_copied_to_a_device_and_back():
    pytest.importorskip("dpctl")
    try:
        x = ah.asnested(LISTS).to_device("oneapi:0")
    except BufferError as error:
        pytest.skip(str(error))
    assert x.kind == "chunked" and str(x.device) == "oneapi:0" and x.to_host().to_list() == LISTS.to_pylist()
    assert x.to_device("cpu").to_list() == LISTS.to_pylist() and len(x.to_host().chunks) == 4
    assert x.is_null().to_host().tolist() == ah.asnested(LISTS).is_null().tolist()


def test_device_streams_keep_the_chunks():
    x = ah.asnested(LISTS)
    back = ah.asnested(given_arrow("__arrow_c_device_stream__", x.__arrow_c_device_stream__()))
    assert len(back.chunks) == 4 and back.to_list() == LISTS.to_pylist()


def test_inspection_functions_describe_each_chunk():
    x = ah.asnested(LISTS)
    text = ah.debug_repr(x)
    assert re.findall(r"^  (chunks\[\d\]):", text, re.M) == [f"chunks[{k}]" for k in range(4)]
    assert "  chunked arrmeta\n" in text and "chunk 0 of 4" in x._repr_html_()
    assert ah.datashape.of(LISTS) == ah.datashape.of(x) == "6 * option[var * int64]"
    verdicts = {v.consumer: v.verdict for v in ah.explain(x).verdicts}
    assert verdicts["arrow"] == verdicts["polars"] == verdicts["pandas"] == "zero-copy"
    assert verdicts["awkward"] == "copy=True" and "in 4 chunks" in ah.explain(x).summary
    numbers = ah.explain(ah.asnested(COLUMNS["floats"]))
    assert {v.consumer: v.verdict for v in numbers.verdicts}["numpy"] == "copy=True"


def test_like_and_convert_keep_chunks():
    x = ah.asnested(LISTS)
    assert ah.convert(x, "polars").n_chunks() >= 3
    assert ah.like(x, pa.chunked_array([[1]])).equals(LISTS)
    assert ah.like(TABLE, pa.Table).equals(TABLE) and ah.like(ah.asnested(TABLE), TABLE).equals(TABLE)
    for allowed in (None, True):
        batch = ah.like(TABLE, pa.RecordBatch, copy=allowed)
        assert pa.Table.from_batches([batch]).equals(TABLE.combine_chunks())
    with pytest.raises(BufferError, match="copy=True"):
        ah.like(TABLE, pa.RecordBatch, copy=False)
    assert ah.like(LISTS, x).kind == "chunked" and ah.convert(LISTS, "arrayhub.NestedArray").kind == "chunked"


def test_error_for_a_stream_that_was_read_names_the_cause():
    batches = pa.table({"a": [[1], [2, 3]]}).to_batches(max_chunksize=1)
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    with pytest.raises(BufferError, match="create the stream again"):
        ah.as_awkward(reader)
