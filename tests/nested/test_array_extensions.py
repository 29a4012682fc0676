"""Test extension types inside records, lists, dictionaries, runs and unions, and requests for such types."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

import arrayhub as ah

FLOAT = pa.float32()
MISSING = pa.array([True, False, False, False])


def tensors(permutation=None, names=None, value=FLOAT, shape=(2, 3), missing=None, missing_items=False):
    """Return four tensors. If `missing_items` is true, the first tensor and its items are missing."""
    size = int(np.prod(shape))
    mask = np.arange(4 * size) < size if missing_items else None
    missing = MISSING if missing_items else missing
    values = pa.array(np.arange(4 * size) % 2, pa.int8(), mask=mask).cast(value)
    storage = pa.FixedSizeListArray.from_arrays(values, size, mask=missing)
    kind = pa.fixed_shape_tensor(value, list(shape), permutation=permutation, dim_names=names)
    return pa.ExtensionArray.from_storage(kind, storage)


def variable_tensors():
    fields = [("data", pa.list_(pa.float32())), ("shape", pa.list_(pa.int32(), 2))]
    storage = pa.array([([1.0, 2.0], [1, 2]), ([], [0, 1]), None, ([3.0], [1, 1])], pa.struct(fields))
    pairs = {
        b"ARROW:extension:name": b"arrow.variable_shape_tensor",
        b"ARROW:extension:metadata": b'{"dim_names": ["h", "w"], "permutation": [1, 0], "uniform_shape": [null, 2]}',
    }
    return storage, pairs


TENSORS = {
    "plain": tensors(),
    "permuted": tensors([1, 0]),
    "named": tensors(names=["h", "w"]),
    "permuted and named": tensors([1, 0], ["h", "w"]),
    "0-d tensors": tensors(shape=()),
    "1-d tensors": tensors(shape=(3,)),
    "tensors of booleans": tensors(value=pa.bool_()),
    "tensors of bool8": tensors(value=pa.bool8()),
    "with missing tensors": tensors(missing=MISSING),
    "permuted, with missing tensors": tensors([1, 0], missing=MISSING),
    "with missing items": tensors([1, 0], missing_items=True),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 1, 0], pa.int8())),
    "missing bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, None, 1, 0], pa.int8())),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None] * 2, pa.binary(16))),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None, "2", "3"])),
    "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "a", "b"), pa.array([1, 2, 3, 4], pa.int8())),
}


def int32(*values):
    return pa.array(values, pa.int32())


PARENTS = {
    "itself": lambda a: a,
    "a record": lambda a: pa.StructArray.from_arrays([a], ["t"]),
    "a list": lambda a: pa.ListArray.from_arrays(int32(0, 2, 4), a),
    "list views": lambda a: pa.ListViewArray.from_arrays(int32(2, 0), int32(2, 2), a),
    "rows": lambda a: pa.FixedSizeListArray.from_arrays(a, 2),
    "rows of rows": lambda a: pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(a, 2), 1),
    "a dictionary": lambda a: pa.DictionaryArray.from_arrays(int32(0, 0, 3), a),
    "runs": lambda a: pa.RunEndEncodedArray.from_arrays(int32(1, 2, 3, 9), a),
    "a union": lambda a: pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), int32(0, 2), [a]),
    "records in lists": lambda a: pa.ListArray.from_arrays(int32(0, 3, 4), pa.StructArray.from_arrays([a], ["t"])),
}


@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("tensor", TENSORS)
def test_nested_extension_types_survive_a_round_trip(tensor, parent):
    source = PARENTS[parent](TENSORS[tensor])
    x = ah.asnested(source)
    for back in (pa.array(x), ah.as_arrow(source), pa.array(pickle.loads(pickle.dumps(x)))):
        back.validate(full=True)
        assert back.type == source.type and back.equals(source)
    part = pa.array(x[1:])
    part.validate(full=True)
    assert part.type == source.type and part.equals(source[1:])
    copy = pa.array(ah.asnested(source, copy=True))
    copy.validate(full=True)
    assert "extension<" in str(copy.type)


@pytest.mark.parametrize("parent", ["a record", "a list", "rows"])
def test_copies_of_nested_permuted_tensors_keep_dimension_names(parent):
    copy = pa.array(ah.asnested(PARENTS[parent](TENSORS["permuted and named"]), copy=True))
    kind = copy.type.field(0).type
    assert kind.shape == [3, 2] and kind.dim_names == ["w", "h"] and kind.permutation is None


def test_tensors_in_records_become_multidimensional_arrays():
    x = ah.asnested(PARENTS["a record"](TENSORS["permuted and named"]))
    assert x["t"].shape == (4, 3, 2) and x["t"].dims == (None, "w", "h")
    assert ah.asarray(PARENTS["rows"](TENSORS["plain"])).shape == (2, 2, 2, 3)


PERMUTED = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0])


def test_the_shape_of_tensors_does_not_depend_on_missing_tensors():
    """`pyarrow.array` marks each item of a missing list as missing."""
    storage = pa.array([[1, 2, 3, 4, 5, 6], None], pa.list_(pa.int32(), 6))
    source = pa.ExtensionArray.from_storage(PERMUTED, storage)
    rows = [[[1, 4], [2, 5], [3, 6]], None]
    for given in (source, source[1:], pa.chunked_array([source[:1], source[1:]])):
        x = ah.asnested(given)
        assert x.to_list() == rows[-len(given) :] and str(x.type).endswith("option[3 * 2 * int32]")
        assert ah.as_awkward(given, copy=None).to_list() == x.to_list()
        assert ah.as_numpy(given, missing=0, copy=True)[-1].tolist() == np.zeros((3, 2)).tolist()
        assert ah.as_numpy(given, missing="mask", copy=True).shape == (len(given), 3, 2)
    assert pa.array(ah.asnested(source)).equals(source)
    chunks = pa.chunked_array([source[:1], source])
    assert ah.asnested(chunks, copy=True).to_list() == [rows[0], *rows]
    assert ah.as_arrow(chunks, copy=True).type.shape == [3, 2]


@pytest.mark.parametrize("items", [[None, 2, 3, 4, 5, 6], [None] * 6])
def test_missing_items_of_tensors_stay_missing(items):
    storage = pa.array([items, None], pa.list_(pa.int32(), 6))
    source = pa.ExtensionArray.from_storage(PERMUTED, storage)
    assert ah.asnested(source).to_list() == [items, None]
    assert pa.array(ah.asnested(source)).equals(source)


@pytest.mark.parametrize("parent", ["a record", "a list", "list views", "records in lists"])
def test_nested_tensors_of_variable_shape_survive_a_round_trip(parent):
    storage, pairs = variable_tensors()
    column = PARENTS[parent](storage)
    kind = with_metadata(column.type, storage.type, pairs)
    batch = pa.record_batch([column.cast(kind)], pa.schema([pa.field("c", kind)]))
    # After this import, the column has pyarrow's extension type.
    source = pa.RecordBatch._import_from_c_capsule(*batch.__arrow_c_array__())
    for x in (ah.asnested(source), pickle.loads(pickle.dumps(ah.asnested(source)))):
        back = pa.record_batch(x)
        back.validate(full=True)
        assert back.schema.equals(source.schema, check_metadata=True) and back.equals(source)


def with_metadata(kind, inner, pairs):
    """Return the type `kind`, with the metadata `pairs` on each field of type `inner`."""

    def changed(field):
        return field.with_type(with_metadata(field.type, inner, pairs)).with_metadata(
            pairs if field.type == inner else None
        )

    if kind == inner or not kind.num_fields:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([changed(kind.field(k)) for k in range(kind.num_fields)])
    make = pa.list_view if pa.types.is_list_view(kind) else pa.list_
    return make(changed(kind.value_field))


def requested(x, kind):
    return pa.Array._import_from_c_capsule(*x.__arrow_c_array__(kind.__arrow_c_schema__()))


ROWS = ah.asarray(np.arange(12.0).reshape(2, 2, 3))
BYTES = pa.array([b"0" * 16], pa.binary(16))
UUIDS = pa.ListArray.from_arrays(int32(0, 1), pa.ExtensionArray.from_storage(pa.uuid(), BYTES))
REQUESTS = {
    "bool8 in lists": (ah.asnested([[True], [False]]), pa.list_(pa.bool8())),
    "bool8 in rows": (ah.asnested(ah.asarray(np.array([[True], [False]]))), pa.list_(pa.bool8(), 1)),
    "bool8 of integers": (ah.asnested(pa.array([[1]], pa.list_(pa.int8()))), pa.list_(pa.bool8())),
    "int8 of bool8": (ah.asnested(PARENTS["a record"](TENSORS["bool8"])), pa.struct({"t": pa.int8()})),
    "bool of bool8": (ah.asnested(PARENTS["a record"](TENSORS["bool8"])), pa.struct({"t": pa.bool_()})),
    "int8 of bool8 in rows": (ah.asnested(PARENTS["rows"](TENSORS["bool8"])), pa.list_(pa.int8(), 2)),
    "bool8 of bits": (ah.asnested(pa.array([[True, None]])), pa.list_(pa.bool8())),
    "lists of tensors": (
        ah.asnested(PARENTS["a list"](TENSORS["permuted"])),
        pa.list_(pa.list_(pa.float32(), 6)),
    ),
    "uuid": (ah.asnested(BYTES), pa.uuid()),
    "uuid in a record": (ah.asnested(pa.StructArray.from_arrays([BYTES], ["u"])), pa.struct({"u": pa.uuid()})),
    "json and wide offsets": (ah.asnested([["1"]]), pa.large_list(pa.json_(pa.large_string()))),
    "binary of uuid": (ah.asnested(UUIDS), pa.list_(pa.binary(16))),
}  # fmt: skip


@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_for_nested_extension_types_are_honored(request_):
    x, kind = REQUESTS[request_]
    made = requested(x, kind)
    made.validate(full=True)
    assert made.type == kind
    stream = pa.ChunkedArray._import_from_c_capsule(x.__arrow_c_stream__(kind.__arrow_c_schema__()))
    assert stream.type == kind and stream.chunk(0).equals(made)
    if not isinstance(kind, pa.BaseExtensionType):  # for an extension type, pyarrow requests its storage type
        assert pa.array(x, type=kind).equals(made)


def test_request_for_a_tensor_of_another_shape_is_rejected():
    rows = ah.asnested(PARENTS["a record"](tensors(value=pa.float64())))
    for x, kind in ((ah.asnested([ROWS]), pa.list_), (rows, lambda item: pa.struct({"t": item}))):
        with pytest.raises(ah.Refusal, match="pyarrow does not cast"):
            requested(x, kind(pa.fixed_shape_tensor(pa.float64(), [3, 2])))
