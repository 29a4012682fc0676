"""Nullability, metadata, item names and extension types of Arrow survive a round trip through NestedArray."""

import json
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arrow_columns import field_of, streamed

import arrayhub as ah
from tests.nested.test_array_extensions import tensors


def extension(name, storage, metadata=b""):
    """Return a record batch of one column whose extension type is not registered in any library."""
    pairs = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": metadata}
    return pa.record_batch([storage], pa.schema([pa.field("x", storage.type, metadata=pairs)]))


POINTS = pa.FixedSizeListArray.from_arrays(
    pa.array([1.0, 2.0, 3.0, 4.0]), type=pa.list_(pa.field("xy", pa.float64(), nullable=False), 2)
)
BATCHES = {
    "nullability": pa.record_batch(
        [[1], ["a"]], pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.string(), False)])
    ),
    "metadata": pa.record_batch([[1]], pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})], {"s": "t"})),
    "item names": pa.record_batch([pa.array([[1]], pa.list_(pa.field("el", pa.int8(), False, {"k": "v"})))], ["a"]),
    "fixed items": pa.record_batch([POINTS], ["a"]),
    "nested fixed items": pa.record_batch([pa.FixedSizeListArray.from_arrays(POINTS, 2)], ["a"]),
    "map": pa.record_batch([pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64()))], ["m"]),
    "sorted map": pa.record_batch([pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64(), keys_sorted=True))], ["m"]),
    "named map": pa.record_batch(
        [pa.array([[("k", 1)]], pa.map_(pa.field("ks", pa.string(), False), pa.field("vs", pa.int64(), False)))], ["m"]
    ),
    "records": pa.record_batch([pa.array([{"p": 1}], pa.struct([pa.field("p", pa.int8(), False, {"a": "b"})]))], ["r"]),
    "runs": pa.record_batch([pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int16()), pa.array(["a"]))], ["r"]),
    "union": pa.record_batch(
        [pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])], ["n"])], ["u"]
    ),
    "json": extension("arrow.json", pa.array(['{"a": 1}', None])),
    "uuid": extension("arrow.uuid", pa.array([b"0" * 16], pa.binary(16))),
    "opaque": extension("arrow.opaque", pa.nulls(2), b'{"type_name": "x", "vendor_name": "y"}'),
    "geoarrow": extension("geoarrow.point", POINTS, b'{"crs": "EPSG:4326"}'),
    "geoarrow records": extension("geoarrow.point", pa.StructArray.from_arrays([[1.0], [2.0]], ["x", "y"])),
    "unknown": extension("a.b", pa.array([1, 2]), b"\x00\xff"),
    "variable shapes": extension(
        "arrow.variable_shape_tensor",
        pa.array(
            [([1.0, 2.0], [1, 2])],
            pa.struct([("data", pa.list_(pa.float32())), ("shape", pa.list_(pa.int32(), 2))]),
        ),
        b'{"dim_names": ["a", "b"]}',
    ),
    "pandas": pa.RecordBatch.from_pandas(pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="name"))),
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_schemas_and_metadata_survive_a_round_trip(name):
    source = pa.RecordBatch._import_from_c_capsule(*BATCHES[name].__arrow_c_array__())
    x = ah.asnested(source)
    for y in (x, x[0:1], pickle.loads(pickle.dumps(x)), ah.asnested(source, copy=True)):
        back = pa.record_batch(y)
        back.validate(full=True)
        assert back.schema.equals(source.schema, check_metadata=True)
        assert back.equals(source[: len(y)], check_metadata=True)
    table = pa.table(source)
    assert pa.concat_tables([table, pa.Table.from_batches([pa.record_batch(x)])]).num_rows == 2 * len(source)


ROWS = pa.list_(pa.field("el", pa.int32(), False, {"k": "v"}), 2)
ROWS_OF_ROWS = pa.list_(pa.field("rows", ROWS), 2)


@pytest.mark.parametrize(
    ("kind", "dense", "missing"),
    [(ROWS, [[1, 2]], [[3, 4], None]), (ROWS_OF_ROWS, [[[1, 2], [3, 4]]], [[[5, 6], None], None])],
)
def test_item_fields_of_fixed_size_lists_survive_concatenation(kind, dense, missing):
    """The item field is kept, although only the chunk without missing rows becomes a multidimensional array."""
    chunks = [pa.array(dense, kind), pa.array(missing, kind)]
    assert ah.as_arrow(chunks[0]).type == kind
    field = pa.field("n", kind, metadata={"k": "v"})
    for order in (chunks, chunks[::-1]):
        x = ah.asnested(streamed(field, order), copy=True)
        assert field_of(x).equals(field, check_metadata=True)
        assert pa.array(x).equals(pa.concat_arrays(order))


def test_strides_of_empty_tensors_do_not_change_the_permutation():
    """Strides of empty tensors and of dimensions of length 1 do not determine the order in memory."""
    source = tensors([1, 0], ["h", "w"])
    column = pa.chunked_array([source, source[:0]])
    assert pa.chunked_array(ah.asnested(column)).equals(column)
    kind = pa.fixed_shape_tensor(pa.int8(), [1, 3], permutation=[1, 0])
    rows = pa.ExtensionArray.from_storage(kind, pa.array([[1, 2, 3]], pa.list_(pa.int8(), 3)))
    for array in (source[:0], rows, rows[:0]):
        assert pa.array(ah.asnested(array)).equals(array) and pa.array(ah.asnested(array)).type == array.type


def test_extension_arrays_are_imported_as_dense_arrays():
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8()))
    numbers = pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "a", "b"), pa.array([1, 2], pa.int8()))
    assert ah.asarray(bools).dtype == bool and ah.asarray(numbers).tolist() == [1, 2]
    assert ah.asarray(tensors()).shape == ah.as_numpy(ah.asnested(tensors())).shape == (4, 2, 3)
    assert pa.array(ah.asnested(numbers), type=pa.int8()).equals(numbers.storage)
    x = ah.asnested(numbers)
    assert x.extension[0] == "arrow.opaque" == x.metadata[b"ARROW:extension:name"].decode()


def test_polars_enum_and_categorical_survive_a_round_trip():
    frame = pl.DataFrame(
        {"e": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])), "c": pl.Series(["x", "y"], dtype=pl.Categorical)}
    )
    back = ah.as_polars(ah.asnested(frame))
    assert back.schema == frame.schema and back.equals(frame)
    series = ah.as_polars(ah.asnested(frame["e"]))
    assert series.dtype == pl.Enum(["a", "b"]) and series.to_list() == ["a", None]
    assert ah.as_polars(ah.asnested(frame)["e"]).dtype == pl.Enum(["a", "b"])


def test_pandas_index_survives_a_round_trip_through_pyarrow():
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="name"))
    table = pa.table(ah.asnested(pa.Table.from_pandas(frame).combine_chunks()))
    assert json.loads(table.schema.metadata[b"pandas"])["index_columns"] == ["name"]
    assert table.to_pandas().equals(frame)
