"""Test nested arrays over memory that has gaps, is reversed or out of order, or changes during a read."""

import awkward as ak
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from children import python

import arrayhub as ah
from arrayhub.nested.array import make
from arrayhub.nested.export import polars as export_polars

RECORDS = np.array([(1, 2.5), (2, 3.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])


def awkward_lists(content, offsets=(0, 2, 4), index=ak.index.Index64):
    content = ak.contents.NumpyArray(content) if isinstance(content, np.ndarray) else content
    return ak.Array(ak.contents.ListOffsetArray(index(np.asarray(offsets)), content))


def awkward_rows(starts, stops, index=ak.index.Index64):
    return ak.Array(ak.contents.ListArray(index(starts), index(stops), ak.contents.NumpyArray(np.arange(4))))


# Arrays with gaps between the elements, or with elements in reversed order.
GAPS = {
    "records": lambda: RECORDS,
    "records backwards": lambda: RECORDS[::-1],
    "records with arrays": lambda: np.array([(1, [1, 2, 3]), (2, [4, 5, 6])], [("a", "i1"), ("b", "i4", 3)]),
    "masked backwards": lambda: np.ma.array(np.arange(10)[::-2], mask=[0, 1, 0, 0, 0]),
    "content with gaps": lambda: awkward_lists(np.arange(8)[::2]),
    "rows of a transposed matrix": lambda: torch.nested.nested_tensor_from_jagged(
        torch.arange(8.0).reshape(2, 4).T, torch.tensor([0, 1, 4])
    ),
}


@pytest.mark.parametrize("name", GAPS)
def test_gaps_are_not_read_as_elements(name):
    source = GAPS[name]()
    x = ah.asnested(source)
    expected = x.to_list()
    for take in (pa.array, pl.Series, ah.as_arrow, ah.as_polars, ah.as_pandas):
        with pytest.raises(BufferError, match="(not compact|unaligned).*copy=True"):
            take(x)
    assert ah.as_awkward(x).to_list() == expected
    copy = ah.asnested(source, copy=True)
    assert copy.to_list() == expected
    for array in (pa.array(copy), ah.as_arrow(source, copy=True)):
        array.validate(full=True)
        assert ah.asnested(array).to_list() == expected
    assert len(ah.as_polars(source, copy=True)) == len(ah.as_pandas(source, copy=True)) == len(x)


def test_copies_convert_records_to_native_byte_order():
    swapped = RECORDS.astype([("a", ">i4"), ("b", ">f8")])
    with pytest.raises(BufferError, match="byte order|not compact"):
        ah.as_arrow(swapped)
    assert ah.as_arrow(swapped, copy=True).to_pylist() == ah.asnested(RECORDS).to_list()


def test_rows_in_fortran_order_keep_their_values():
    rows = [np.asfortranarray(np.arange(6).reshape(2, 3)), np.asfortranarray(np.ones((1, 3), int))]
    assert ah.as_arrow(rows).to_pylist() == [[[0, 1, 2], [3, 4, 5]], [[1, 1, 1]]]


# Arrays whose offsets, characters, starts, bits or indices are not contiguous in memory.
APART = {
    "offsets of torch": lambda: torch.nested.nested_tensor_from_jagged(
        torch.arange(4.0), torch.tensor([0, 9, 2, 9, 4])[::2]
    ),
    "offsets of awkward": lambda: awkward_lists(np.arange(4.0), np.array([0, 9, 2, 9, 4])[::2]),
    "characters": lambda: ak.Array(
        ak.contents.ListOffsetArray(
            ak.index.Index64(np.array([0, 1, 3])),
            ak.contents.NumpyArray(np.frombuffer(b"a-b-c-", "u1")[::2], parameters={"__array__": "char"}),
            parameters={"__array__": "string"},
        )
    ),
    "starts": lambda: awkward_rows(np.array([2, 9, 0, 9])[::2], np.array([4, 9, 2, 9])[::2]),
    "bits": lambda: ak.Array(
        ak.contents.BitMaskedArray(
            ak.index.IndexU8(np.array([1, 0, 3, 0], "u1")[::2]), ak.contents.NumpyArray(np.arange(9)), True, 9, True
        )
    ),
    "indices": lambda: awkward_categories(np.array([1, 9, 0, 9])[::2]),
}


@pytest.mark.parametrize("name", APART)
def test_non_contiguous_offsets_are_copied(name):
    source = APART[name]()
    expected = [row.tolist() for row in source.unbind()] if isinstance(source, torch.Tensor) else source.to_list()
    x = ah.asnested(source)
    assert x.to_list() == expected
    assert [row.tolist() if hasattr(row, "tolist") else row for row in x] == expected
    assert pa.array(x).to_pylist() == expected
    assert ah.as_awkward(x).to_list() == expected


def test_sizes_narrower_than_offsets_are_rejected():
    buffers = (ah.asarray(np.zeros(1, "i8")), ah.asarray(np.zeros(1, "i4")))
    with pytest.raises(ValueError, match="accepted: 1 items of"):
        make("opaque", 1, meaning="+vL", buffers=buffers, parts=(ah.asarray(np.zeros(1)),), names=("item",))


# -------------------------------------------------------------------------------- offsets that are rewritten or invalid


@pytest.mark.parametrize("values", [[[1], [2, 3]], ["a", "bc"], [b"a", b"bc"], [[1], None], [1, None]])
def test_offsets_are_read_only(values):
    x = ah.asnested(values)
    x.to_list()
    for array in (getattr(x, "offsets", None), x.validity):
        if array is not None:
            assert array.access == "readonly"
            with pytest.raises((ValueError, TypeError)):
                np.asarray(array)[0] = 2**7
    assert x.access == x.content.access


# Expressions that read the offsets of `x`, by description.
REWRITTEN = {
    "rows": "x[0]",
    "to_list": "x.to_list()",
    "awkward": "ah.as_awkward(x).to_list()",
    "a copy": "ah.asnested(x, copy=True)",
    "dense": "x.to_dense()",
    "pyarrow": "pa.array(x).to_pylist()",
    "as_arrow": "ah.as_arrow(x).to_pylist()",
    "as_pandas": "ah.as_pandas(x).tolist()",
    "as_polars": "ah.as_polars(x).to_list()",
    "__arrow_c_array__": "x.__arrow_c_array__()",
    "a stream": "pa.chunked_array(x).to_pylist()",
    "__arrow_c_device_stream__": "x.__arrow_c_device_stream__()",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True])
def test_offsets_rewritten_after_validation_raise(text):
    """Offsets that change after their validation raise an error. Runs in a subprocess, because it could crash."""
    expressions = [read for name, read in REWRITTEN.items() if not (text and name == "dense")]  # strings are not dense
    words = "parameters={'__array__': 'string'}" if text else ""
    inner = "np.frombuffer(b'abc', 'u1'), parameters={'__array__': 'char'}" if text else "np.arange(3)"
    python(f"""
        import awkward as ak, numpy as np, pyarrow as pa, arrayhub as ah
        for read in {expressions}:
            offsets = np.array([0, 1, 3])
            index, inner = ak.index.Index64(offsets), ak.contents.NumpyArray({inner})
            x = ah.asnested(ak.Array(ak.contents.ListOffsetArray(index, inner, {words})))
            x.to_list()
            offsets[1:] = 2**30
            assert ah.check(x)
            try:
                eval(read)
            except ah.InterfaceError:
                continue
            raise AssertionError(read)
    """)


def misled(kind, buffers, children=()):
    """Return an array of two elements whose Arrow buffers have not been validated."""
    return pa.Array.from_buffers(kind, 2, [None, *map(pa.py_buffer, buffers)], children=list(children))


MISLED = {
    "lists": lambda: misled(pa.list_(pa.int64()), [np.array([0, 2**30, 2], "i4")], [pa.array([1, 2])]),
    "strings": lambda: misled(pa.string(), [np.array([0, 2**30, 2], "i4"), b"ab"]),
    "list views": lambda: misled(
        pa.list_view(pa.int64()), [np.array([0, 2**30], "i4"), np.array([1, 1], "i4")], [pa.array([1, 2])]
    ),
    "string views": lambda: misled(pa.string_view(), [np.array([[20, 0, 5, 0]] * 2, "i4")]),
    "categories": lambda: awkward_categories([0, 10**9]),
    "lists in records": lambda: ak.Array(
        ak.contents.RecordArray([awkward_lists(np.arange(3), [0, 99, 9999]).layout], ["a"])
    ),
    "lists in lists": lambda: awkward_lists(awkward_lists(np.arange(3), [0, 99, 9999]).layout, [0, 1, 2]),
}


def awkward_categories(numbers):
    words, index = ak.Array(["x", "y"]).layout, ak.index.Index64(np.asarray(numbers))
    return ak.Array(ak.contents.IndexedArray(index, words, parameters={"__array__": "categorical"}))


@pytest.mark.parametrize("take", [ah.as_awkward, ah.as_arrow, ah.as_pandas, ah.as_polars, pa.array, pa.chunked_array])
@pytest.mark.parametrize("name", MISLED)
def test_offsets_outside_the_content_are_not_exported(name, take):
    """Exports reject invalid offsets. The elements are not read, because an invalid offset could crash the process."""
    x = ah.asnested(MISLED[name]())
    with pytest.raises(ah.InterfaceError, match="offsets|views|indices"):
        take(x)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_polars_receives_offsets_as_int64(length, start):
    rows = [None if k % 5 == 1 else [[k], [], [k, k]][: k % 4] for k in range(length + start)]
    source = pa.array(rows, pa.list_(pa.list_(pa.int64())))[start:]
    x = ah.asnested(source)
    made = export_polars.for_polars(x)
    assert {lists.offsets.dtype for lists in (made, made.content)} == {np.dtype(np.int64)}
    assert made.content.content.ptr == x.content.content.ptr
    assert not made.offsets.flags.writeable
    assert made.to_list() == rows[start:]
    for _ in range(2):
        assert ah.as_polars(x).to_list() == rows[start:]


def test_polars_receives_a_copy_of_offsets_that_may_change():
    offsets = np.array([0, 1, 3], "i4")
    x = ah.asnested(awkward_lists(np.arange(3), offsets, ak.index.Index32))
    assert export_polars.for_polars(x).offsets.dtype == np.int64
    offsets[1:] = 2**30
    with pytest.raises(ah.InterfaceError, match="offsets"):
        ah.as_polars(x)


def test_chunks_exported_before_have_one_type_for_polars():
    chunks = pa.chunked_array([[[1]], pa.array([], pa.list_(pa.int64())), [[2, 3], None]])
    x = ah.asnested(chunks)
    for _ in range(2):
        assert ah.as_polars(x).to_list() == [[1], [2, 3], None]
    x.chunks[0][0]
    assert ah.as_polars(x).to_list() == [[1], [2, 3], None]


def test_stream_reports_offsets_changed_before_reading():
    offsets = np.array([0, 1, 3])
    x = ah.asnested(awkward_lists(np.arange(3), offsets))
    stream = x.__arrow_c_stream__()
    offsets[1:] = 2**30
    with pytest.raises(pa.ArrowInvalid, match="offsets"):
        pa.ChunkedArray._import_from_c_capsule(stream)


# --------------------------------------------------------------------------------------------- records without fields


EMPTY = {
    "a table": lambda: pa.table({}),
    "dicts": lambda: [{}, {}],
    "dicts in dicts": lambda: [{"a": {}}, {"a": {}}],
    "a missing record": lambda: [{}, None],
    "a struct": lambda: pa.array([{}, {}], pa.struct([])),
    "lists of dicts": lambda: [[{}, {}], []],
    "a frame": lambda: pl.DataFrame(),
}


@pytest.mark.parametrize("name", EMPTY)
def test_records_without_fields_are_described_and_exported(name):
    source = EMPTY[name]()
    x = ah.asnested(source)
    expected = source if isinstance(source, list) else [{}] * len(x)
    assert x.to_list() == expected
    assert "device='cpu'" in repr(x)
    assert x.access in ("immutable", "readonly")
    assert x.protocol
    assert ah.check(x) == []
    assert f"   size: {len(x)}\n" in ah.debug_repr(x)
    assert "<pre" in x._repr_html_()
    assert pa.array(x).to_pylist() == expected
    assert len(pa.chunked_array(x)) == len(x)
    assert ah.asnested(x, copy=True).to_list() == x.to_host().to_list() == expected
    assert ah.as_awkward(x).to_list() == expected
    assert {v.verdict for v in ah.explain(x, "arrow").verdicts} == {"zero-copy"}
    assert len(pa.Array._import_from_c_device_capsule(*x.__arrow_c_device_array__())) == len(x)


# -------------------------------------------------------------------------------------- layouts that only awkward has


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (awkward_rows(np.array([0, 999, 2]), np.array([2, 999, 4])), [[0, 1], [], [2, 3]]),
        (awkward_rows(np.array([2, 0], "u4"), np.array([4, 2], "u4"), ak.index.IndexU32), [[2, 3], [0, 1]]),
    ],
    ids=["empty rows outside of the content", "uint32"],
)
def test_starts_of_awkward_are_imported(rows, expected):
    assert ak.is_valid(rows) and ah.asnested(rows).to_list() == expected


@pytest.mark.parametrize("values", [["a", None], [[1, 2], None], [{"x": 1}, None], [b"a", None], [1, None]])
def test_all_missing_column_keeps_its_type(values):
    rest = ak.to_packed(ak.Array(values)[1:])
    x = ah.asnested(rest)
    assert x.to_list() == [None]
    assert str(x.type) == str(rest.type)
    assert ah.asnested(ak.Array([None, None])).to_list() == [None, None]
