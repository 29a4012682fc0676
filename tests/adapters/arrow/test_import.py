"""Test that invalid Arrow structs raise an error, are released once, and are not read out of bounds."""

import ctypes
import json
import re
import textwrap

import pytest
from arrow_by_hand import (
    CASES,
    DEVICE_FUNCTIONS,
    FORMS,
    STREAM_FUNCTIONS,
    OnDevice,
    Producer,
    Streamed,
    StreamedOnDevice,
    false_streams,
    int64,
    numbers,
)
from children import python
from dlpack_by_hand import new_capsule

import arrayhub as ah

OTHER = b"other"  # global, because a capsule does not copy its name


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(python("import arrow_by_hand; arrow_by_hand.main()", silent=True))


# Matches the start of the expected error: the format or kind of the array, and the invalid field.
NAMED = re.compile(
    r"Arrow: ('[^']*' (array|schema)'s [(a-z]|format is |"
    r"(list|string|string_view|categorical) array's [(a-z]|"
    r"Arrow(Schema|Array|DeviceArray\.array)\.release|ArrowSchema(\.[a-z_]+ is | has more than ))|"
    r"arrow\.fixed_shape_tensor: [a-z_]+ is "
)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_invalid_struct_raises_and_is_released_once(case, form, outcomes):
    kind, message, schemas, arrays = outcomes[f"{form}: {case}"]
    if case == "released array" and "stream" in form:
        return  # a released array marks the end of a stream
    assert kind == "InterfaceError", message
    assert "accepted" in message
    assert re.match(NAMED, message), message
    assert schemas == (0 if case == "released schema" else 1)
    if case != "released schema":  # if the schema is released, the array may stay in its capsule
        unasked = "stream" in form and message.startswith("Arrow: ArrowSchema")  # the stream is not asked for its array
        assert arrays == (0 if case == "released array" or unasked else 1)


@pytest.mark.slow
@pytest.mark.parametrize("case", dict(false_streams()))
def test_invalid_stream_or_device_raises(case, outcomes):
    kind, message, schemas, arrays = outcomes[case]
    assert kind == "InterfaceError", message
    assert "accepted" in message
    assert (schemas, arrays) == ((0, 0) if "NULL" in case else (1, 1))


@pytest.mark.parametrize("kind", [Streamed, StreamedOnDevice])
def test_streams_are_read_to_their_end_and_released_once(kind):
    stream = kind(numbers(2), numbers(3))
    chunks = ah.asnested(stream)
    assert [chunk.to_list() for chunk in chunks.chunks] == [[0, 1], [0, 1, 2]]
    assert (stream.streams_released, stream.released) == (1, [1, 0])
    del chunks
    assert (stream.streams_released, stream.released) == (1, [1, 2])
    with pytest.raises(ah.InterfaceError, match="consumed before"):
        ah.asnested(stream)
    assert ah.asnested(kind(numbers(2), numbers(3)), copy=True).to_list() == [0, 1, 0, 1, 2]
    assert ah.as_numpy(ah.asarray(kind(numbers(3)))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", [Streamed, StreamedOnDevice])
@pytest.mark.parametrize("code", ["code", "schema_code"])
def test_failing_stream_raises_with_and_without_a_message(kind, code):
    function = "get_next" if code == "code" else "get_schema"
    stream = kind(numbers(), **{code: 5})
    with pytest.raises(BufferError, match=f"{function} failed with error number 5: the disk is full"):
        ah.asnested(stream)
    assert stream.streams_released == 1
    functions = STREAM_FUNCTIONS if kind is Streamed else DEVICE_FUNCTIONS
    with pytest.raises(BufferError, match=f"{function} failed with error number 5$"):
        ah.asnested(kind(numbers(), **{code: 5}, get_last_error=functions[2]()))


def test_sync_event_on_a_device_without_events_raises():
    for make in (OnDevice, lambda *a, **k: StreamedOnDevice(*a, array_type=8, **k)):
        producer = numbers()
        with pytest.raises(BufferError, match="sync_event is set for vulkan|sync_event is set"):
            ah.asnested(make(producer, device_type=8, device_id=0, sync_event=1))
        assert producer.released == [1, 1]


def test_valid_struct_is_moved_and_released_once():
    producer = numbers()
    x = ah.asarray(producer)
    assert ah.as_numpy(x).tolist() == [0, 1, 2]
    assert not producer.array.release and producer.released == [1, 0]
    with pytest.raises(ah.InterfaceError, match="consumed before"):
        ah.asarray(producer)
    y = x[1:]
    del x
    assert producer.released == [1, 0]
    del y
    assert producer.released == [1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (),
        (1, 2),
        [1, 2],
        (new_capsule(1, OTHER, None), new_capsule(1, OTHER, None)),
        (new_capsule(1, None, None), new_capsule(1, None, None)),
    ],
    ids=["None", "empty", "numbers", "a list", "other names", "no names"],
)
def test_invalid_capsule_pairs_raise(answer):
    class Liar:
        def __arrow_c_array__(self, requested_schema=None):
            return answer

    with pytest.raises(ah.InterfaceError, match="__arrow_c_array__"):
        ah.asarray(Liar())


def test_failing_stream_error_has_the_message():
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(BufferError, match=r"get_next failed.*the disk is on fire"):
        ah.asnested(reader)


def test_unknown_null_count_is_computed():
    producer = Producer(b"l", [(ctypes.c_uint8 * 1)(0b101), int64(1, 2, 3)], null_count=-1)
    assert ah.asnested(producer).to_list() == [1, None, 3]


# A program that creates arrays of length 0. Their empty offsets buffer starts at a page without read access.
GUARDED = """
import arrow_by_hand as by_hand
import arrayhub as ah

NOTHING = by_hand.unreadable()

def pairs():
    fields = [by_hand.Producer(b"u", [None, NOTHING, NOTHING], length=0), by_hand.numbers(0)]
    for field, name in zip(fields, (b"key", b"value"), strict=True):
        field.keep.append(name)
        field.schema.name = name
    return by_hand.Producer(b"+s", [None], fields, length=0)

FORMATS = {
    **{format: ([NOTHING, NOTHING], list) for format in (b"u", b"U", b"z", b"Z")},
    **{format: ([NOTHING], lambda: [by_hand.numbers(0)]) for format in (b"+l", b"+L")},
    b"+m": ([NOTHING], lambda: [pairs()]),
    **{format: ([NOTHING, NOTHING], lambda: [by_hand.numbers(0)]) for format in (b"+vl", b"+vL")},
    **{format: ([NOTHING, by_hand.int64(0)], list) for format in (b"vu", b"vz")},
    b"b": ([NOTHING], list),
}

kept = []

def empty(format, form, offset=0):
    buffers, children = FORMATS[format]
    kept.append(by_hand.Producer(format, [NOTHING, *buffers], children(), length=0, offset=offset))
    return by_hand.FORMS[form](kept[-1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_offsets_of_empty_arrays_are_not_read(form):
    program = f"""
        for format in FORMATS:
            for offset in (0, 5):
                make = lambda: empty(format, {form!r}, offset)
                x = ah.asnested(make())
                x = x[0] if isinstance(x, list) else x
                assert (len(x), x.to_list(), x[0:0].to_list(), ah.asnested(x, copy=True).to_list()) == (0, [], [], [])
                assert ah.asnested(make(), copy=True).to_list() == []
                repr(x), str(x.type)
                again = ah.asnested(by_hand.given("__arrow_c_array__", x.__arrow_c_array__()))
                assert (str(again.type), again.to_list()) == (str(x.type), [])
    """
    python(GUARDED + textwrap.dedent(program))


@pytest.mark.slow
def test_inspection_and_exports_do_not_read_offsets_of_empty_arrays():
    pytest.importorskip("awkward"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    program = """
        import pyarrow

        class Fresh:
            made = []
            def __init__(self, format):
                self.format = format
            def __arrow_c_array__(self, requested_schema=None):
                self.made.append(empty(self.format, "array"))
                return self.made[-1].__arrow_c_array__()

        for format in FORMATS:
            ah.check(Fresh(format)), ah.debug_repr(Fresh(format))
            assert str(ah.explain(Fresh(format)))
            x = ah.asnested(Fresh(format))
            assert ah.picture(x)
            taken = ah.as_arrow(x)
            taken.validate(full=True)
            assert taken.to_pylist() == []
            if format != b"+m":
                assert ah.as_awkward(x, copy=True).to_list() == []
                assert ah.as_polars(x, copy=True).to_list() == []
            chunks = pyarrow.chunked_array([taken, taken])
            assert chunks.combine_chunks().to_pylist() == ah.asnested(chunks, copy=True).to_list() == []
    """
    python(GUARDED + textwrap.dedent(program))


@pytest.mark.slow
def test_offsets_of_empty_arrays_on_host_readable_devices_are_not_read():
    program = """
        import importlib.util
        from arrayhub.nested.concatenate import concatenate
        from arrayhub.nested.array import with_views

        def check(format, nothing):
            buffers, children = FORMATS[format]
            made = by_hand.Producer(format, [None] + [nothing] * len(buffers), children(), length=0)
            x = ah.asnested(by_hand.OnDevice(made, device_type=3, device_id=0))
            assert all(y.to_list() == [] for y in (x, x[0:0], x.to_host(), ah.asnested(x, copy=True)))
            again = by_hand.given("__arrow_c_device_array__", x.__arrow_c_device_array__())
            assert ah.asnested(again).to_list() == []
            assert concatenate([x, x]).to_list() == []
            assert x.kind == "list" or with_views(x).to_list() == []
            if importlib.util.find_spec("awkward"):
                assert ah.as_awkward(x).to_list() == []

        # A function, so that its arrays are released before ctypes is unloaded, whose callbacks release them.
        for format in (b"u", b"Z", b"+l", b"+L"):
            for nothing in (None, NOTHING):
                check(format, nothing)
    """
    python(GUARDED + textwrap.dedent(program))


@pytest.mark.slow
def test_schema_with_too_many_shared_children_raises():
    program = """
        import ctypes, resource
        import arrow_by_hand as by_hand
        import arrayhub as ah

        def shared(width, levels):
            made = by_hand.numbers(0)
            for _ in range(levels):
                made = by_hand.Producer(b"+s", [None], [made] * width, length=0)
            return made

        for width, levels in ((2, 22), (50, 5), (2, 63), (100_000, 3)):
            for kind in (by_hand.Streamed, by_hand.StreamedOnDevice):
                made = shared(width, levels)
                stream = kind(made)
                stream.left = []
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                try:
                    ah.asnested(stream)
                except ah.InterfaceError as error:
                    assert "more than 100000 nodes" in str(error), error
                else:
                    raise AssertionError((width, levels))
                grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                assert grown < 200_000, (width, levels, grown)
                assert made.released[0] == 1
    """
    python(program)


@pytest.mark.slow
@pytest.mark.parametrize("device_type", [2, 13])
def test_missing_driver_is_reported_before_reading_the_event(device_type):
    program = f"""
        import arrow_by_hand as by_hand
        import arrayhub as ah

        made = by_hand.numbers()
        try:
            ah.asnested(by_hand.OnDevice(made, device_type={device_type}, device_id=1_000_000, sync_event=8))
        except BufferError as error:
            assert str(error).startswith("CUDA: "), error
        else:
            raise AssertionError("accepted")
        assert made.released == [1, 1]
    """
    python(program)


def test_address_outside_usm_raises_an_arrow_error():
    pytest.importorskip("dpctl")
    with pytest.raises(ah.InterfaceError, match="^Arrow: data is '0x"):
        ah.asnested(OnDevice(numbers(), device_type=14, device_id=0))
