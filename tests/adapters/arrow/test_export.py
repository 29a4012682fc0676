"""Test that Arrow consumers import the same elements from a USMArray as from the NumPy array."""

import weakref

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from producers import lives

import arrayhub as ah
from arrayhub.nested.array import make

BOOLEANS = np.arange(37) % 3 == 0
COLUMNS = {
    **{
        dtype: np.arange(5).astype(dtype)
        for dtype in (
            *("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"),
            *("M8[ms]", "M8[us]", "M8[ns]", "m8[ms]", "m8[us]", "m8[ns]"),
        )
    },
    "NaT": np.array(["2020-01-01", "NaT"], "M8[us]"),
    "NaN": np.array([1.5, np.nan]),
    "no numbers": np.zeros(0),
    "no booleans": np.zeros(0, bool),
    "37 booleans": BOOLEANS,
    "read-only booleans": np.frombuffer(b"\0\1\2\0", bool),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_libraries_create_the_same_column_as_from_the_numpy_array(name):
    values = COLUMNS[name]
    x = ah.asarray(values)
    expected = pa.array(values)
    assert pa.array(x).equals(expected) or name == "NaN"
    assert (pa.array(x).type, str(pa.array(x))) == (expected.type, str(expected))
    assert pa.chunked_array(x).type == ah.as_arrow(x).type == expected.type
    for series in (pl.Series(x), ah.as_polars(x)):
        assert series.dtype == pl.Series(values).dtype
        assert series.equals(pl.Series(values), null_equal=True)
    assert ah.as_pandas(x).equals(pd.Series(values))


ROWS = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "small": np.arange(6, dtype="i2").reshape(3, 2),
    "booleans": BOOLEANS[:36].reshape(12, 3),
    "boxes": np.arange(24).reshape(2, 3, 4),
    "boxes of booleans": BOOLEANS[:30].reshape(5, 3, 2),
    "no rows": np.zeros((0, 3)),
    "no rows of booleans": np.zeros((0, 3), bool),
    "one row": np.arange(3, dtype="f4")[None],
}


@pytest.mark.parametrize("name", ROWS)
def test_matrix_rows_become_elements_of_a_polars_array_series(name):
    values = ROWS[name]
    x = ah.asarray(values)
    expected = pl.Series(values)
    for series in (pl.Series(x), ah.as_polars(x)):
        assert (series.dtype, series.shape) == (expected.dtype, expected.shape)
        assert series.equals(expected)
    column = pa.array(x)
    assert column.to_pylist() == values.tolist()
    assert column.type == pa.array(expected.to_arrow()).type or values.ndim == 3
    assert pa.types.is_fixed_size_list(column.type)
    column.validate(full=True)
    assert pa.chunked_array(x).combine_chunks().equals(column)
    made = ah.as_pandas(x)
    assert (made.tolist() if values.ndim == 3 else made.to_numpy().tolist()) == values.tolist()


def test_polars_dataframe_receives_the_array_of_every_consumer():
    """polars refuses an array that is not a struct (polars#23068); a frame of the NumPy array works."""
    for array in (np.arange(6.0).reshape(2, 3), np.arange(3.0), ROWS["boxes"]):
        x = ah.asarray(array)
        assert isinstance(pl.from_arrow(x), pl.Series)
        with pytest.raises(pl.exceptions.SchemaError, match="expected `Struct`"):
            pl.DataFrame(x)
    assert pl.DataFrame(ah.as_numpy(ah.asarray(np.ones((2, 3))))).columns == ["column_0", "column_1", "column_2"]


@pytest.mark.parametrize("name", ["numbers", "booleans", "boxes", "boxes of booleans"])
def test_extension_true_exports_tensors_without_a_copy(name):
    values = ROWS[name]
    x = ah.asarray(values)
    y = ah.as_arrow(x, extension=True)
    assert y.type.extension_name == "arrow.fixed_shape_tensor"
    assert y.type.value_type == (pa.bool8() if values.dtype == bool else pa.from_numpy_dtype(values.dtype))
    back = ah.asarray(y)
    assert (back.ptr, back.shape, back.dtype, back.tolist()) == (x.ptr, x.shape, x.dtype, values.tolist())
    assert ah.asarray(ah.as_arrow(x, extension=True, copy=True)).tolist() == values.tolist()
    assert ah.as_arrow(x, extension=True, copy=False).equals(y)
    assert ah.as_arrow(x, extension=True, copy=None).equals(y)
    assert pa.Array._import_from_c_capsule(*x.__arrow_c_array__(y.type.__arrow_c_schema__())).equals(y)
    assert pa.array(x, type=y.type).equals(y.storage)  # pyarrow requests and returns only the storage
    stream = pa.chunked_array(x, type=y.type)
    assert stream.type == y.type and stream.chunk(0).equals(y)


def test_booleans_are_exported_as_bool8_on_request():
    x = ah.asarray(BOOLEANS)
    for column in (
        ah.as_arrow(x, extension=True),
        ah.as_arrow(x, extension=True, copy=False),
        pa.Array._import_from_c_capsule(*x.__arrow_c_array__(pa.bool8().__arrow_c_schema__())),
    ):
        assert column.type == pa.bool8()
        assert (ah.asarray(column).ptr, ah.asarray(column).dtype) == (x.ptr, np.dtype(bool))
    assert pa.chunked_array(x, type=pa.bool8()).chunk(0).storage.buffers()[1].address == x.ptr
    assert ah.as_arrow(np.arange(3), extension=True).equals(pa.array(np.arange(3)))
    bits = pa.fixed_shape_tensor(pa.bool_(), [1])
    assert pa.chunked_array(x.reshape(37, 1), type=bits).type == bits
    bytes_in_rows = pa.list_(pa.bool8(), 1)
    assert pa.array(x.reshape(37, 1), type=bytes_in_rows).values.storage.buffers()[1].address == x.ptr


def test_booleans_round_trip_by_a_copy():
    for values in (BOOLEANS, ROWS["booleans"], ROWS["boxes of booleans"]):
        with pytest.raises(BufferError, match="packs eight values into a byte|has fixed-size lists"):
            ah.asarray(ah.as_arrow(values))
        back = ah.asarray(ah.as_arrow(values), copy=True)
        assert (back.shape, back.dtype, back.tolist()) == (values.shape, values.dtype, values.tolist())


@pytest.mark.parametrize("make", [BOOLEANS.copy, lambda: np.arange(37)[::2]], ids=["booleans", "strided"])
def test_copied_export_does_not_follow_the_array(make):
    source = make()
    alive, expected = weakref.ref(source), source.tolist()
    column = pa.array(ah.asarray(source))
    source[:] = False
    assert column.to_pylist() == expected
    del source, column
    assert not lives(alive)


def test_stream_copies_booleans_when_the_consumer_reads_the_chunk():
    x = ah.asarray(BOOLEANS.copy())
    reader = x.__arrow_c_stream__()

    class Opened:
        def __arrow_c_stream__(self, requested_schema=None):
            return reader

    x[:] = True
    assert pa.chunked_array(Opened()).to_pylist() == [True] * 37


@pytest.mark.parametrize("start", [0, 3, 9])
def test_booleans_in_records_and_lists_are_exported_as_bits(start):
    """If the parent's validity bitmap has an offset, the bits of its children start at the same offset."""
    values = BOOLEANS[start:]
    n = len(values)
    records = ah.asnested(pa.array([{"a": k} for k in range(37)], mask=np.arange(37) == 20))[start:]
    both = make(
        "record", n, names=("t", "r"), parts=(ah.asarray(values), ah.asarray(np.repeat(values, 3).reshape(n, 3))),
        validity=records.validity, bit=records.validity_offset,
    )  # fmt: skip
    column = pa.array(both)
    column.validate(full=True)
    assert column.type == pa.struct([("t", pa.bool_()), ("r", pa.list_(pa.bool_(), 3))])
    expected = [None if k + start == 20 else {"t": v, "r": [v] * 3} for k, v in enumerate(values.tolist())]
    assert column.to_pylist() == expected
    masked = ah.asnested(np.ma.masked_array(values, np.arange(n) == 2))
    assert pa.array(masked).to_pylist() == [None if k == 2 else v for k, v in enumerate(values.tolist())]
    assert pa.array(masked[1:]).to_pylist() == [None if k == 2 else v for k, v in enumerate(values.tolist())][1:]
    lists = ah.asnested([[True], [False, True]])
    assert pa.array(lists).equals(pa.array([[True], [False, True]]))
    assert pl.Series(lists).list.any().to_list() == [True, True]


BOOL8 = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 1, 0], pa.int8()))


def test_chunked_streams_honor_a_requested_storage_type():
    chunks = ah.asnested(pa.chunked_array([BOOL8, BOOL8]))
    assert pa.chunked_array(chunks).type == pa.bool8()
    stream = chunks.__arrow_c_stream__(pa.int8().__arrow_c_schema__())

    class Opened:
        def __arrow_c_stream__(self, requested_schema=None):
            return stream

    assert pa.chunked_array(Opened()).equals(pa.chunked_array([BOOL8.storage, BOOL8.storage]))


ELEMENTS = st.sampled_from(
    [*"?bBhHiIlLefd", *("M8[ms]", "M8[us]", "M8[ns]", "m8[ms]", "m8[us]", "m8[ns]")],
).map(np.dtype)
LAYOUTS = {
    "compact": lambda a: a,
    "reversed": lambda a: a[::-1],
    "every second": lambda a: a[::2],
    "transposed": lambda a: a.T,
    "last columns": lambda a: a[..., a.shape[-1] // 2 :],
    "Fortran": np.asfortranarray,
}


def outcome(function, values):
    """Return ``function(values)``, or None if the function rejects `values`."""
    try:
        return function(values)
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError):
        return None


@pytest.mark.slow
@given(
    ELEMENTS.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))),
    st.sampled_from(sorted(LAYOUTS)),
)
def test_random_arrays_equal_the_ndarray_in_each_library(source, layout):
    """Protocol exports copy arrays that are not in C order. `as_arrow` copies only booleans without copy=True."""
    values = LAYOUTS[layout](source)
    x = ah.asarray(values)
    column = pa.array(x)
    column.validate(full=True)
    assert column.equals(pa.array(x.copy())) or values.dtype.kind == "f"
    if not values.flags.c_contiguous and values.dtype != bool:
        with pytest.raises(ah.Refusal) as raised:
            ah.as_arrow(x)
        assert raised.value.call == "arrayhub.as_arrow(x, copy=True)"
        assert pl.Series(x).equals(pl.Series(x.copy()), null_equal=True)
    if not values.flags.c_contiguous:
        x = x.copy()
    expected = outcome(pa.array, values)
    if expected is not None:
        assert (column.type, str(column), column.null_count) == (expected.type, str(expected), expected.null_count)
    expected = outcome(pl.Series, values)
    if expected is not None:
        series = pl.Series(x)
        assert (series.dtype, series.null_count()) == (expected.dtype, expected.null_count())
        assert series.equals(expected, null_equal=True)
        assert ah.as_polars(x).equals(expected, null_equal=True)
    if values.ndim == 1:
        pd.testing.assert_series_equal(ah.as_pandas(x), pd.Series(values))
    if column.null_count or (values.ndim > 1 and values.dtype.kind in "mM" and np.isnat(values).any()):
        return  # Arrow represents NaT as null
    back = ah.asarray(ah.as_arrow(x, extension=True))
    assert (back.shape, back.dtype, back.ptr) == (x.shape, x.dtype, x.ptr)
    assert np.array_equal(back, values, equal_nan=values.dtype.kind in "fmM")


STRIDED = {
    "every other": lambda a: a[::2],
    "reversed": lambda a: a[::-1],
    "reversed times": lambda a: a.astype("M8[ms]")[::-1],
    "columns of a matrix": lambda a: a.reshape(-1, 2)[:, 1],
    "a matrix with gaps": lambda a: a.reshape(-1, 2)[::2],
    "a transposed matrix": lambda a: a.reshape(-1, 2).T,
    "a repeated number": lambda a: np.broadcast_to(a[:1], 5),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_arrays_are_copied_and_traced(name):
    values = STRIDED[name](np.arange(12.0))
    x = ah.asarray(values)
    for export in (
        pa.array,
        lambda x: pa.array(x, type=pa.array(values.copy() if values.ndim == 1 else x).type),
        lambda x: pa.chunked_array(x).chunk(0),
        lambda x: pa.Array._import_from_c_capsule(*x.__arrow_c_array__()),
    ):
        with ah.trace() as traced:
            made = export(x)
        made.validate(full=True)
        assert made.equals(pa.array(x.copy()))
        assert values.nbytes in [event.nbytes for event in traced.events if event.kind == "copy"]
    assert np.shares_memory(ah.as_pandas(x, copy=False).to_numpy(), ah.as_numpy(x))
    for call in (ah.as_arrow, ah.as_polars):  # these copy only on request
        with pytest.raises(ah.Refusal, match="strides ") as raised:
            call(x, copy=False)
        assert raised.value.call == f"arrayhub.{call.__name__}(x, copy=True)"
        assert len(call(x, copy=True)) == len(call(x, copy=None)) == len(x)
    assert pl.Series(x).to_list() == pl.Series(values.copy()).to_list()
    assert made.type == pa.array(x).type and pa.DataType._import_from_c_capsule(x.__arrow_c_schema__()) == made.type


def test_strided_tensors_are_copied_in_c_order():
    wanted = pa.fixed_shape_tensor(pa.float64(), [2])
    x = ah.asarray(np.arange(12.0).reshape(-1, 2)[::2])
    made = pa.Array._import_from_c_capsule(*x.__arrow_c_array__(wanted.__arrow_c_schema__()))
    assert made.type == wanted and made.to_numpy_ndarray().tolist() == x.tolist()


def test_invalid_requested_schemas_are_described():
    x = ah.asnested([[1], [2, 3]])
    kind = pa.int64()
    for _ in range(70):
        kind = pa.list_(kind)
    with pytest.raises(ah.InterfaceError, match=r"^Arrow: requested_schema has more than 64 levels of children"):
        x.__arrow_c_array__(kind.__arrow_c_schema__())
    consumed = pa.int64().__arrow_c_schema__()
    pa.DataType._import_from_c_capsule(consumed)
    with pytest.raises(ah.InterfaceError, match=r"^Arrow: requested_schema\.release is None"):
        x.__arrow_c_array__(consumed)
    with pytest.raises(ah.InterfaceError, match=r"^Arrow: requested_schema is 'schema'; accepted: a capsule"):
        x.__arrow_c_array__("schema")


MASK = np.array([[True, False, True], [False, False, True], [True, True, False], [False, True, True]])
STRIDED_MASKS = {
    "contiguous": MASK[0],
    "every second": MASK[:, 0][1::2],
    "reversed": MASK[:, 1][::-1],
    "a column": MASK[:, 2],
    "broadcast": np.broadcast_to(np.array([True]), (9,)),
    "transposed": MASK.T,
    "rows reversed": MASK[::-1, ::2],
    "Fortran order": np.asfortranarray(MASK),
    "empty": MASK[:0, ::2],
}


@pytest.mark.parametrize("copy", [False, None, True])
@pytest.mark.parametrize("name", STRIDED_MASKS)
def test_booleans_of_any_strides_are_encoded(name, copy):
    mask = STRIDED_MASKS[name]
    expected = ah.as_arrow(np.ascontiguousarray(mask))
    for made in (ah.as_arrow(mask, copy=copy), pa.array(ah.asarray(mask)), ah.as_polars(mask, copy=copy).to_arrow()):
        assert made.to_pylist() == expected.to_pylist() == mask.tolist()
    assert ah.as_pandas(mask, copy=copy).to_numpy().tolist() == mask.tolist()
    assert ah.as_arrow(mask, copy=copy).type == expected.type
    assert ah.as_arrow(mask, extension=True, copy=True).to_pylist() == mask.tolist()


def test_strided_booleans_in_records_are_encoded():
    values = np.zeros(5, [("a", "?"), ("b", "i4")])
    values["a"][::2] = True
    record = make("record", 5, names=("a",), parts=(ah.asarray(values["a"]),))
    lists = make("list", 2, offsets=ah.asarray(np.array([0, 2, 5])), content=ah.asarray(values["a"]))
    assert ah.as_arrow(record).field(0).to_pylist() == ah.as_polars(record)["a"].to_list() == values["a"].tolist()
    assert ah.as_arrow(lists).to_pylist() == [[True, False], [True, False, True]]


def test_strided_booleans_are_not_shared_as_bytes():
    with pytest.raises(BufferError, match="byte strides"):
        ah.as_arrow(MASK[:, 0], extension=True)


@pytest.mark.parametrize("values", [["a", "bc", ""], [b"a", b"bc", b""]], ids=["str", "bytes"])
def test_strings_of_any_strides_are_encoded(values):
    for dtype in ("U2", "S2") if isinstance(values[0], str) else ("S2",):
        array = np.array(values, dtype)
        for strided in (array[::2], array[::-1], np.asfortranarray(np.stack([array, array]))[:, 1]):
            expected = strided.tolist() if dtype == "U2" else [bytes(item) for item in strided.tolist()]
            made = ah.as_arrow(strided).to_pylist()
            assert [item if dtype == "U2" else item.rstrip(b"\0") for item in made] == expected
