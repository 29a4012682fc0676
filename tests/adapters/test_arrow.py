"""Import and export dense arrays through Arrow's C data, stream and device interfaces, with real libraries."""

import array
import ctypes
import datetime
import gc
import sys
import weakref

import arrow_by_hand as by_hand
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from arrow_by_hand import Array, struct_in
from arrow_columns import Column
from children import python
from optional import optional
from producers import lives

import arrayhub as ah
from arrayhub.adapters.arrow import type_name
from arrayhub.nested.array import make

na = optional("nanoarrow")

NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


def address_of(array):
    return array.buffers()[1].address


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_imported_without_a_copy(dtype):
    source = pa.array(np.arange(10, dtype=dtype))
    x = ah.asarray(source, via="arrow")
    assert (x.ptr, x.shape, x.dtype, x.protocol, x.access) == (address_of(source), (10,), dtype, "arrow", "immutable")
    part = ah.asarray(source[3:7], via="arrow")
    assert part.ptr == x.ptr + 3 * x.itemsize
    assert ah.as_numpy(part).tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_exported_without_a_copy(dtype):
    source = np.arange(10, dtype=dtype)
    taken = pa.array(ah.asarray(source))
    assert taken.type == pa.from_numpy_dtype(np.dtype(dtype))
    assert address_of(taken) == source.ctypes.data
    assert taken.to_numpy().tolist() == source.tolist()


PRODUCERS = {
    "pyarrow chunked": lambda: pa.chunked_array([[1.0, 2.0, 3.0]]),
    "polars": lambda: pl.Series([1.0, 2.0, 3.0]),
    "nanoarrow": lambda: na.Array([1.0, 2.0, 3.0], na.float64()),
    "nanoarrow c": lambda: na.c_array([1.0, 2.0, 3.0], na.float64()),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_each_producer_is_recognized(name):
    own = "array_interface" if name == "polars" else "arrow"  # numbers of a Series are imported as its ndarray
    for via, protocol in ((None, own), ("arrow", "arrow")):
        x = ah.asarray(PRODUCERS[name](), via=via)
        gc.collect()
        assert (x.protocol, ah.as_numpy(x).tolist()) == (protocol, [1.0, 2.0, 3.0])


def test_polars_series_is_imported_without_a_copy():
    series = pl.Series(np.arange(5.0))
    assert ah.asarray(series).ptr == address_of(series.to_arrow())


def test_nested_fixed_size_lists_become_dimensions():
    flat = pa.array(np.arange(24, dtype="i4"))
    lists = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(flat, 3), 4)
    x = ah.asarray(lists)
    assert (x.shape, x.ptr) == ((2, 4, 3), address_of(flat))
    assert ah.as_numpy(ah.asarray(lists[1:])).tolist() == np.arange(24).reshape(2, 4, 3)[1:].tolist()
    frame = pl.Series(np.arange(12.0).reshape(2, 2, 3))
    assert ah.as_numpy(frame).tolist() == np.arange(12.0).reshape(2, 2, 3).tolist()


def test_times_have_numpy_units():
    for unit in ("s", "ms", "us", "ns"):
        source = np.array(["2020-01-01", "2021-02-03"], f"M8[{unit}]")
        assert ah.as_numpy(pa.array(source)).tolist() == source.tolist()
        assert ah.asarray(pa.array(source)).dtype == source.dtype
        assert pa.array(ah.asarray(source)).type == pa.timestamp(unit)
        assert pa.array(ah.asarray(source - source[0])).type == pa.duration(unit)
    assert ah.asarray(pa.array([1], pa.duration("us"))).dtype == "m8[us]"


@pytest.mark.parametrize("kind", ["M8[s]", "m8[ns]"])
def test_nat_is_exported_as_null(kind):
    times = np.arange(20).astype(kind)
    times[[0, 13]] = "NaT"
    expected = [None if np.isnat(time) else time.astype(int).item() for time in times]
    taken = pa.array(ah.asarray(times))
    assert (taken.null_count, taken.cast(pa.int64()).to_pylist()) == (2, expected)
    assert address_of(taken) == times.ctypes.data
    assert pa.array(ah.asarray(times)[5:]).cast(pa.int64()).to_pylist() == expected[5:]
    assert pa.array(ah.asarray(times)[1:5]).null_count == 0
    assert pa.chunked_array(ah.asarray(times)).null_count == 2
    records = ah.asnested(pa.array([{"a": k} for k in range(20)], mask=np.arange(20) == 7))[3:]
    both = make("record", 17, names=("t",), parts=(ah.asarray(times)[3:],), validity=records.validity, bit=3)
    assert pa.array(both).field("t").cast(pa.int64()).to_pylist() == expected[3:]
    masked = ah.asnested(np.ma.masked_array(times, np.arange(20) == 2))
    expected[2] = None
    assert pa.array(masked).cast(pa.int64()).to_pylist() == expected
    assert pa.array(masked[2:]).cast(pa.int64()).to_pylist() == expected[2:]
    assert [
        row[0] for row in pa.array(make("list", 20, offsets=ah.asarray(np.arange(21)), content=masked)).to_pylist()
    ][13] is None


def test_nat_in_several_dimensions_is_exported_as_null():
    times = np.arange(6).astype("M8[s]").reshape(2, 3)
    times[1, 0] = "NaT"
    for column in (pa.array(ah.asarray(times)), ah.as_arrow(times, extension=True).storage):
        assert column.values.is_valid().to_pylist() == [True] * 3 + [False] + [True] * 2


def test_arrow_round_trip_keeps_the_type():
    smallest = pa.array([-(2**63), 1]).view(pa.timestamp("s"))
    assert pa.array(ah.asarray(smallest)).equals(smallest)


# The permutation example of Arrow's fixed shape tensors, with lengths divided by ten. The dimensions are x, y, z in
# memory order, and z, x, y in the array.
def test_permuted_tensors_of_the_specification_are_imported():
    kind = pa.fixed_shape_tensor(pa.int8(), [10, 20, 50], permutation=[2, 0, 1], dim_names=["x", "y", "z"])
    memory = np.arange(20000).astype("i1").reshape(2, 10, 20, 50)
    source = pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(pa.array(memory.ravel()), 10000))
    x = ah.asarray(source)
    assert (x.shape, x.dims) == ((2, 50, 10, 20), (None, "z", "x", "y"))
    assert (ah.as_numpy(x) == memory.transpose(0, 3, 1, 2)).all()
    back = ah.as_arrow(x, extension=True)
    assert (back.type, address_of(back.storage.values)) == (kind, address_of(source.storage.values))


def test_permuted_views_are_exported_as_tensors_in_memory_order():
    """Export dimensions in memory order, with the permutation that restores the order of the view."""
    x = ah.asarray(np.arange(24.0).reshape(4, 3, 2).transpose(0, 2, 1)).with_dims("KIJ")
    taken = ah.as_arrow(x, extension=True)
    assert (taken.type.shape, taken.type.permutation, taken.type.dim_names) == ([3, 2], [1, 0], ["J", "I"])
    assert (taken.to_numpy_ndarray() == ah.as_numpy(x)).all()
    assert (ah.as_numpy(ah.asarray(taken)) == ah.as_numpy(x)).all()


def test_requested_list_type_is_exported():
    x = ah.asarray(np.arange(24.0).reshape(2, 3, 4))
    wanted = pa.list_(pa.list_(pa.float64(), 4), 3)
    taken = pa.Array._import_from_c_capsule(*x.__arrow_c_array__(wanted.__arrow_c_schema__()))
    assert taken.type == wanted
    assert taken.to_pylist() == ah.as_numpy(x).tolist()
    assert address_of(taken.values.values) == x.ptr
    permuted = x.transpose(0, 2, 1)
    for export, accepted in ((ah.as_arrow, "extension=True"), (ah.as_polars, "")):
        with pytest.raises(ah.Refusal, match="not in C order") as raised:
            export(permuted)
        assert raised.value.accepted == accepted
        assert raised.value.call == f"arrayhub.{export.__name__}(x, copy=True)"
    assert pa.array(permuted).to_pylist() == ah.as_arrow(permuted, copy=True).to_pylist() == permuted.tolist()
    assert ah.as_arrow(permuted, extension=True).to_numpy_ndarray().tolist() == permuted.tolist()


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.array(1.0), r"0 dimensions.*reshape\(1\)"),
        (np.zeros(3, "c8"), "no format for dtype"),
        (np.zeros(3, ">f4"), "no format for dtype"),
        (np.zeros(3, "M8[D]"), "no format for dtype"),
    ],
)
def test_arrow_attributes_exist_only_if_valid(x, words):
    for name in ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__", "__arrow_c_schema__"):
        assert not hasattr(ah.asarray(x), name)
        with pytest.raises(AttributeError, match=f"^{name}: (the array has )?{words}"):
            getattr(ah.asarray(x), name)


@pytest.mark.parametrize("convert", [ah.as_arrow, ah.as_polars])
@pytest.mark.parametrize(
    ("x", "values"),
    [
        (np.arange(3, dtype=">i4"), [0, 1, 2]),
        (np.array([0.5, 1], ">f8"), [0.5, 1]),
        (np.array([0.5, 1], "g"), [0.5, 1]),
    ],
)
def test_errors_for_element_types_suggest_a_working_call(convert, x, values):
    with pytest.raises(BufferError, match="no format for dtype") as raised:
        convert(x)
    assert convert.__name__ in raised.value.call
    assert ah.asnested(eval(raised.value.call, {"arrayhub": ah, "x": x})).to_list() == values


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test uses what Python 3.16 removes
@pytest.mark.parametrize("convert", [ah.as_arrow, ah.as_polars])
def test_text_is_encoded_whatever_copy_says(convert):
    assert ah.asnested(convert(array.array("u", "ab"))).to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (pa.array([1, None]), r"1 missing value,.*asnested\(x\)"),
        (pa.array(["a"]), r"strings.*asnested\(x\)"),
        (pa.array([[1], [2, 3]]), r"different lengths.*asnested\(x\)"),
        (pa.array([True]), r"eight values into a byte.*unpacks"),
        (pa.array([{"a": 1}]), r"columns.*asnested"),
        (pa.array(["a"]).dictionary_encode(), r"dictionary.*asnested"),
        (pa.chunked_array([[1], [2]]), r"2 chunks.*asnested"),
        (pa.array([1], pa.timestamp("ns", "Europe/Zurich")), r"timestamp\[ns, Europe/Zurich\].*asnested"),
        (pa.array([1], pa.decimal128(5)), "decimal, .*asnested"),
        (pa.nulls(3), "null"),
    ],
    ids=lambda x: str(getattr(x, "type", "")),
)
def test_columns_that_are_not_dense_are_rejected(x, words):
    with pytest.raises(BufferError, match=words):
        ah.asarray(x, via="arrow")


def test_null_count_is_computed_from_the_bitmap():
    source = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x07"), pa.py_buffer(np.arange(3))], null_count=-1)
    assert ah.as_numpy(ah.asarray(source, via="arrow")).tolist() == [0, 1, 2]


def test_empty_arrays_round_trip():
    for source in (pa.array([], pa.float32()), pa.array([1.0])[:0]):
        assert ah.asarray(source, via="arrow").shape == (0,)
    assert len(pa.array(ah.asarray(np.zeros(0)))) == 0
    assert len(pa.array(ah.asarray(np.zeros((0, 3))))) == 0


def test_exported_memory_lives_as_long_as_its_consumers():
    source = np.arange(1000.0)
    alive = weakref.ref(source)
    taken = pa.array(ah.asarray(source))
    part = taken[10:20]
    del source, taken
    assert lives(alive)
    assert part.to_pylist() == list(range(10, 20))
    del part
    assert not lives(alive)


ATTRIBUTES = (
    *("__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_stream__"),
    *("__arrow_c_device_array__", "__arrow_c_device_stream__"),
)
STRUCTS = {
    "__arrow_c_array__": (Array, by_hand.RELEASE_ARRAY),
    "__arrow_c_stream__": (by_hand.Stream, by_hand.STREAM_FUNCTIONS[-1]),
    "__arrow_c_device_stream__": (by_hand.DeviceStream, by_hand.DEVICE_FUNCTIONS[-1]),
}


@pytest.mark.parametrize("name", STRUCTS)
def test_consumer_may_call_release_before_the_capsule_is_freed(name):
    """After a call of the release callback, a second call and the capsule's destructor do nothing."""
    kind, release_type = STRUCTS[name]
    source = np.arange(10.0)
    alive = weakref.ref(source)
    capsules = getattr(ah.asarray(source), name)()
    del source
    struct = struct_in(capsules[1] if isinstance(capsules, tuple) else capsules, kind)
    release = release_type(ctypes.cast(struct.release, ctypes.c_void_p).value)
    assert lives(alive)
    release(ctypes.byref(struct))
    assert not struct.release
    assert not lives(alive)
    release(ctypes.byref(struct))
    del capsules


def test_moved_child_outlives_its_released_parent():
    source = np.arange(6.0)
    alive = weakref.ref(source)
    capsules = ah.asarray(source.reshape(2, 3)).__arrow_c_array__()
    del source
    parent = struct_in(capsules[1], Array)
    child = Array()
    ctypes.memmove(ctypes.byref(child), parent.children[0], ctypes.sizeof(Array))
    parent.children[0].contents.release = by_hand.RELEASE_ARRAY()
    parent.release(ctypes.byref(parent))
    del capsules, parent
    assert lives(alive)
    assert (ctypes.c_double * 6).from_address(child.buffers[1])[:] == [0, 1, 2, 3, 4, 5]
    child.release(ctypes.byref(child))
    assert not lives(alive)


def test_unconsumed_capsules_release_the_array():
    source = np.arange(10.0)
    alive = weakref.ref(source)
    x = ah.asarray(source)
    kept = [getattr(x, name)() for name in ATTRIBUTES]
    del source, x
    assert lives(alive)
    del kept
    assert not lives(alive)


def test_each_consumer_gets_a_new_stream_capsule():
    x = ah.asarray(np.arange(5))
    assert pa.chunked_array(x).to_pylist() == list(range(5))
    assert pl.Series(x).to_list() == list(range(5))


@pytest.mark.parametrize("name", ["__arrow_c_device_array__", "__arrow_c_device_stream__"])
def test_device_interfaces_reject_unknown_keywords(name):
    export = getattr(ah.asarray(np.arange(5)), name)
    with pytest.raises(NotImplementedError, match=f"{name}: keyword future"):
        export(future=1)
    export(future=None)


def test_device_interface_of_a_host_array_exports_the_cpu_device():
    x = ah.asarray(np.arange(5))
    assert optional("nanoarrow.device").c_device_array(x).device_type_id == 1


@pytest.mark.slow
def test_arrays_held_by_pyarrow_are_released_during_finalization():
    """Release arrays that pyarrow holds during finalization without running Python code."""
    program = (
        "import pyarrow, numpy, arrayhub, sys; sys.kept = pyarrow.array(arrayhub.asarray(numpy.arange(9)));"
        "pyarrow.kept = pyarrow.array(arrayhub.asarray(numpy.arange(9)))"
    )
    python(program, silent=True)


# For each case, an array, and another Arrow type, which a consumer requests.
FLOATS, LISTS = ah.asarray(np.arange(3.0)), ah.asnested([[1], [2, 3]])
CATEGORIES = ah.asnested(pa.array(["a"]).dictionary_encode())
OTHER_TYPES = {
    "float32": (FLOATS, pa.float32()),
    "int64": (FLOATS, pa.int64()),
    "string": (FLOATS, pa.string()),
    "bool": (FLOATS, pa.bool_()),
    "booleans": (ah.asarray(np.array([True, False])), pa.uint8()),
    "rows of booleans": (ah.asarray(np.zeros((2, 3), bool)), pa.list_(pa.uint8(), 3)),
    "a matrix as variable-size lists": (ah.asarray(np.arange(6).reshape(2, 3)), pa.list_(pa.int64())),
    "a matrix of another element type": (ah.asarray(np.arange(6).reshape(2, 3)), pa.list_(pa.float64(), 3)),
    "lists of another element type": (LISTS, pa.list_(pa.int32())),
    "lists with 64-bit offsets": (LISTS, pa.large_list(pa.int32())),
    "numbers with nulls": (ah.asnested([1, None]), pa.int32()),
    "records of another field type": (ah.asnested([{"a": 1}]), pa.struct([("a", pa.int32())])),
    "records of another field name": (ah.asnested([{"a": 1}]), pa.struct([("b", pa.int64())])),
    "strings as binary": (ah.asnested(["a"]), pa.binary()),
    "strings as a dictionary": (ah.asnested(["a"]), pa.dictionary(pa.int32(), pa.string())),
    "a dictionary as indices": (CATEGORIES, pa.int32()),
    "an unordered dictionary as ordered": (CATEGORIES, pa.dictionary(pa.int32(), pa.string(), ordered=True)),
    "a dictionary of another value type": (CATEGORIES, pa.dictionary(pa.int32(), pa.large_string())),
    "nullable as required": (ah.asnested([[1]]), pa.list_(pa.field("item", pa.int64(), nullable=False))),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_requested_types_are_cast_by_pyarrow(name):
    x, requested = OTHER_TYPES[name]
    try:
        expected = pa.array(x).cast(requested)
    except pa.ArrowException:
        with pytest.raises(ah.Refusal, match="^__arrow_c_device_array__: pyarrow does not cast"):
            pa.array(x, type=requested)
        return
    made = pa.Array._import_from_c_capsule(*x.__arrow_c_array__(requested.__arrow_c_schema__()))
    assert made.equals(expected) and made.type == requested
    assert pa.array(x, type=requested).equals(expected)
    assert pa.chunked_array(x, type=requested).combine_chunks().equals(expected)


def test_requests_are_ignored_without_pyarrow(monkeypatch):
    x = ah.asnested([1, None])
    request = pa.int8().__arrow_c_schema__()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    capsules = x.__arrow_c_array__(request)
    assert pa.Array._import_from_c_capsule(*capsules).type == pa.int64()


@pytest.mark.parametrize("take", [pa.record_batch, pa.table])
def test_pyarrow_casts_record_columns_to_the_requested_schema(take):
    records = ah.asnested([{"a": 1}, {"a": 2}])
    schema = pa.schema([("a", pa.int32())])
    assert take(records, schema=schema).equals(take({"a": pa.array([1, 2], pa.int32())}))


def test_requested_schema_that_equals_the_type_is_honored():
    for x in (
        ah.asnested([[1], [2, 3]]),
        ah.asnested([{"a": 1, "b": ["x", None]}]),
        ah.asnested(pa.array(["a", None]).dictionary_encode()),
        ah.asnested(pa.array([1], pa.timestamp("us", "Europe/Paris"))),
        ah.asnested(pa.array([True, None])),
        ah.asarray(np.arange(3)),
    ):
        assert pa.array(x, type=pa.array(x).type).equals(pa.array(x))
    rows = ah.asarray(np.eye(3, dtype=bool))
    for x, requested in ((rows[0], pa.int8()), (rows, pa.list_(pa.int8(), 3))):
        assert pa.array(x, type=requested).to_pylist() == x.astype("i1").tolist()
        assert pa.array(x, type=requested).buffers()[-1].address == x.ptr
        assert pa.chunked_array(x, type=requested).chunk(0).buffers()[-1].address == x.ptr
    lists = ah.asnested([[1], [2, 3]])
    assert pa.array(lists, type=pa.list_(pa.field("another name", pa.int64()))).to_pylist() == [[1], [2, 3]]


@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("M8[ps]", "int64"),
        ("m8[as]", "int64"),
        ("M8[10ms]", "M8[ms]"),
        ("M8[h]", "M8[s]"),
        ("m8[W]", "m8[s]"),
        ("m8[Y]", "int64"),
        ("M8[M]", "M8[s]"),
        ("m8[D]", "m8[s]"),
        ("M8[10s]", "M8[s]"),
    ],
)
def test_calls_suggested_for_time_units_lose_nothing(dtype, other):
    x = np.arange(3).astype(dtype)
    for copy in (False, True):
        with pytest.raises(ah.Refusal, match="no format for dtype") as raised:
            ah.as_arrow(x, copy=copy)
        assert raised.value.call == f"arrayhub.as_arrow(x, dtype={other!r})"
    converted = ah.as_numpy(eval(raised.value.call, {"arrayhub": ah, "x": x}))
    assert converted.dtype == other and (converted.astype(dtype) == x).all()


@pytest.mark.parametrize(("kind", "dtype"), [(pa.date32(), "M8[D]"), (pa.date64(), "M8[ms]")])
def test_errors_for_dates_suggest_copy_true(kind, dtype):
    column = Column(pa.field("day", kind), pa.array([datetime.date(2020, 1, 2)], kind))
    with pytest.raises(BufferError, match=r"elements of date\d\d, .*accepted: copy=True, .* datetime64\[") as raised:
        ah.asarray(column)
    copied = ah.as_numpy(ah.asarray(column, copy=True))
    assert copied.dtype == dtype and copied.astype("M8[D]").tolist() == [datetime.date(2020, 1, 2)]
    assert f"datetime64[{np.datetime_data(copied.dtype)[0]}]" in str(raised.value)


@pytest.mark.parametrize(("meaning", "name"), [("tsu:UTC", "timestamp[us, UTC]"), ("tsu:", "timestamp[us]")])
def test_type_name_contains_the_unit_and_time_zone_of_timestamps(meaning, name):
    assert type_name(meaning) == name
