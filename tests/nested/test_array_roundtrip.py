"""Arrays of each Arrow type survive slices, pickles, copies and exports, alone and inside other arrays."""

import copy
import pickle

import pyarrow as pa
import pytest
from arrow_by_hand import given

import arrayhub as ah
from tests.nested.test_array import ARRAYS as COMMON
from tests.nested.test_array_types import ARRAYS as RARE
from tests.nested.test_array_unions import UNIONS

ARRAYS = {
    **{name: source for name, (source, _) in COMMON.items()},
    **{name: make() for name, make in (RARE | UNIONS).items()},
    "categories of booleans": pa.array([True, False, True]).dictionary_encode(),
    "booleans in lists": pa.array([[True, None], [False]]),
    "days": pa.array([1, None], pa.date32()),
    "zones": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
    "days in milliseconds": pa.array([0, None, 86_400_000], pa.date64()),
    "times of day": pa.array([1, 2], pa.time32("s")),
    "times of day in microseconds": pa.array([1, None], pa.time64("us")),
}
SLICES = {"": slice(None), ", slice": slice(1, None), ", without elements": slice(0, 0), ", end": slice(2, 2)}


def out_of_band(x):
    buffers = []
    stream = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(stream, buffers=buffers)


COPIES = {
    "view": lambda x: x,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "oldest pickle": lambda x: pickle.loads(pickle.dumps(x, 0)),
    "pickle out of band": out_of_band,
    "deep copy": copy.deepcopy,
    "copy": lambda x: ah.asnested(x, copy=True),
    "device stream": lambda x: ah.asnested(given("__arrow_c_device_stream__", x.__arrow_c_device_stream__())),
}


def each(function):
    function = pytest.mark.parametrize("part", SLICES)(function)
    return pytest.mark.parametrize("name", ARRAYS)(function)


def assert_exported(x, source):
    back = pa.array(x)
    back.validate(full=True)
    assert back.type == source.type and back.equals(source)


@each
def test_arrays_survive_a_round_trip(name, part):
    source = ARRAYS[name][SLICES[part]]
    for x in (ah.asnested(source), ah.asnested(ARRAYS[name])[SLICES[part]]):
        for way, again in COPIES.items():
            y = again(x)
            assert part or y.type == x.type  # all rows of a slice may be valid
            assert "pickle" not in way or y.access == x.access
            assert_exported(y, source)
    assert_exported(ah.asnested(source, copy=True), source)
    assert ah.datashape.parse(str(x.type)) == x.type
    assert x.is_null().tolist() == [value is None for value in source.to_pylist()]
    assert repr(x) and ah.check(x) == [] and ah.debug_repr(x) and "<pre" in x._repr_html_()


def plain(item):
    """Return an element of a nested array as Python objects."""
    if isinstance(item, dict):
        return {name: plain(value) for name, value in item.items()}
    return item.tolist() if isinstance(item, ah.USMArray) else getattr(item, "to_list", lambda: item)()


@each
def test_arrays_have_the_elements_of_pyarrow(name, part):
    if name in ("times", "days in milliseconds"):
        pytest.skip("times in nanoseconds become integers, and days in milliseconds datetimes, as in NumPy")
    source = ARRAYS[name][SLICES[part]]
    x, values = ah.asnested(source), source.to_pylist()
    assert x.to_list() == values and len(x) == len(source)
    if not pa.types.is_temporal(source.type):  # the elements of these are arrays of NumPy's times
        assert [plain(item) for item in x] == values


@each
def test_arrays_inside_records_and_lists_survive_a_round_trip(name, part):
    inner = ARRAYS[name]
    count = len(inner)
    mask = pa.array([k == 1 for k in range(count)], pa.bool_())
    sources = [
        pa.StructArray.from_arrays([inner, pa.array(range(count), pa.int64())], ["u", "k"]),
        pa.StructArray.from_arrays([inner], ["u"], mask=mask),
        pa.ListArray.from_arrays(pa.array([0, count // 2, count // 2, count], pa.int32()), inner),
        pa.FixedSizeListArray.from_arrays(inner.slice(0, count // 2 * 2), count // 2 or 1),
    ]
    if count > 1 and not pa.types.is_union(inner.type):
        sources.append(pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), inner))
    for source in sources:
        assert_exported(ah.asnested(source[SLICES[part]]), source[SLICES[part]])


@pytest.mark.parametrize("name", ARRAYS)
def test_chunks_are_concatenated(name):
    source = ARRAYS[name]
    back = pa.array(ah.asnested(pa.chunked_array([source, source[:0], source[1:]]), copy=True))
    back.validate(full=True)
    assert back.type == source.type and back.to_pylist() == source.to_pylist() + source[1:].to_pylist()
