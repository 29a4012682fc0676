"""Structs of Arrow's that say something false: an error in words, nothing read that is not described, released once."""

import ctypes
import json
import re
from pathlib import Path

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

OTHER = b"other"  # a capsule keeps no copy of its name
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(python("import arrow_by_hand; arrow_by_hand.main()", silent=True))


# What an error begins with: the format (or the kind of array that it makes) and the field.
NAMED = re.compile(
    r"Arrow: ('[^']*' (array|schema)'s [a-z]|format is |(list|list_view|string|string_view|categorical) array's [(a-z]|"
    r"Arrow(Schema|Array|DeviceArray\.array)\.release)|arrow\.fixed_shape_tensor: [a-z_]+ is "
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_false_struct_is_an_error_and_is_released_once(case, form, outcomes):
    kind, message, schemas, arrays = outcomes[f"{form}: {case}"]
    if case == "released array" and "stream" in form:
        return  # the end of it
    assert kind == "InterfaceError", message
    assert "accepted" in message
    assert re.match(NAMED, message), message
    assert schemas == (0 if case == "released schema" else 1)
    if case != "released schema":  # whose array may stay where it is
        assert arrays == (0 if case == "released array" else 1)


@pytest.mark.parametrize("case", dict(false_streams()))
def test_a_false_stream_or_place_is_an_error(case, outcomes):
    kind, message, schemas, arrays = outcomes[case]
    assert kind == "InterfaceError", message
    assert "accepted" in message
    assert (schemas, arrays) == ((0, 0) if "NULL" in case else (1, 1))


@pytest.mark.parametrize("kind", [Streamed, StreamedOnDevice])
def test_streams_are_read_to_their_end_and_released_once(kind):
    stream = kind(numbers(2), numbers(3))
    chunks = ah.asnested(stream)
    assert [chunk.to_list() for chunk in chunks] == [[0, 1], [0, 1, 2]]
    assert (stream.streams_released, stream.released) == (1, [1, 0])
    del chunks
    assert (stream.streams_released, stream.released) == (1, [1, 2])
    with pytest.raises(ah.InterfaceError, match="consumed before"):
        ah.asnested(stream)
    assert ah.asnested(kind(numbers(2), numbers(3)), copy=True).to_list() == [0, 1, 0, 1, 2]
    assert ah.as_numpy(ah.asarray(kind(numbers(3)))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", [Streamed, StreamedOnDevice])
@pytest.mark.parametrize("code", ["code", "schema_code"])
def test_a_stream_that_fails_says_so_with_its_words_and_without(kind, code):
    function = "get_next" if code == "code" else "get_schema"
    stream = kind(numbers(), **{code: 5})
    with pytest.raises(BufferError, match=f"{function} failed with the error number 5: the disk is full"):
        ah.asnested(stream)
    assert stream.streams_released == 1
    functions = STREAM_FUNCTIONS if kind is Streamed else DEVICE_FUNCTIONS
    with pytest.raises(BufferError, match=f"{function} failed with the error number 5$"):
        ah.asnested(kind(numbers(), **{code: 5}, get_last_error=functions[2]()))


def test_an_event_where_there_is_none():
    for make in (OnDevice, lambda *a, **k: StreamedOnDevice(*a, array_type=8, **k)):
        producer = numbers()
        with pytest.raises(BufferError, match="sync_event is set for vulkan|sync_event is set"):
            ah.asnested(make(producer, device_type=8, device_id=0, sync_event=1))
        assert producer.released == [1, 1]


def test_a_true_struct_is_taken_and_released_once():
    producer = numbers()
    x = ah.asarray(producer)
    assert ah.as_numpy(x).tolist() == [0, 1, 2]
    assert producer.released == [1, 0]
    y = x[1:]
    del x
    assert producer.released == [1, 0]
    del y
    assert producer.released == [1, 1]


def test_structs_are_moved_so_that_nobody_else_releases_them():
    producer = numbers()
    x = ah.asarray(producer)
    assert not producer.array.release
    with pytest.raises(ah.InterfaceError, match="consumed before"):
        ah.asarray(producer)
    assert ah.as_numpy(x).tolist() == [0, 1, 2]


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
def test_what_is_no_pair_of_capsules(answer):
    class Liar:
        def __arrow_c_array__(self, requested_schema=None):
            return answer

    with pytest.raises(ah.InterfaceError, match="__arrow_c_array__"):
        ah.asarray(Liar())


def test_a_stream_that_fails_says_why():
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(BufferError, match=r"get_next failed.*the disk is on fire"):
        ah.asnested(reader)


def test_a_bitmap_that_says_more_than_its_count():
    producer = Producer(b"l", [(ctypes.c_uint8 * 1)(0b101), int64(1, 2, 3)], null_count=-1)
    assert ah.asnested(producer).to_list() == [1, None, 3]
