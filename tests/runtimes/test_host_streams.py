"""Imports with ``stream=`` are ordered after the producer's work, and invalid streams are rejected."""

import numpy as np
import pytest
from dlpack_by_hand import Handmade
from exporters import has_driver

import arrayhub
from arrayhub.runtimes import sycl
from arrayhub.runtimes.cuda import stream_handle

SYCL = "__sycl_usm_array_interface__"
NBYTES = 1 << 24
ROUNDS = 6


class ByDict:
    """A producer that exports USM only through its interface dict."""

    def __init__(self, interface, queue):
        self.keep = interface
        self.__sycl_usm_array_interface__ = {**interface, "syclobj": queue}


@pytest.fixture
def race(dpctl):
    return Race(dpctl)


class Race:
    """A block of USM that one queue writes repeatedly, and another queue reads."""

    def __init__(self, dpctl, *, in_order=False):
        memory = dpctl.memory
        device = dpctl.SyclDevice("cpu")
        context = dpctl.SyclQueue(device).sycl_context
        order = {"property": "in_order"} if in_order else {}
        self.writing = dpctl.SyclQueue(context, device)
        self.reading = dpctl.SyclQueue(context, device, **order)
        self.memory = memory.MemoryUSMDevice(NBYTES, queue=self.writing)
        self.sources = [memory.MemoryUSMHost(NBYTES, queue=self.writing) for _ in range(2)]
        for value, source in enumerate(self.sources):
            np.frombuffer(source, "u1")[:] = value
        self.out = memory.MemoryUSMHost(NBYTES, queue=self.reading)

    def stale(self, take):
        """Return the number of rounds in which the reading queue reads bytes from before the write.

        Each round calls ``take(queue)`` with the reading queue after the write is submitted and before the read.
        """
        count = 0
        for turn in range(ROUNDS):
            value = turn % 2
            self.writing.memcpy(self.memory, self.sources[1 - value], NBYTES)
            event = self.writing.memcpy_async(self.memory, self.sources[value], NBYTES)
            keep = take(self.reading)
            self.reading.memcpy(self.out, self.memory, NBYTES)
            event.wait()
            count += bool((np.frombuffer(self.out, "u1") != value).any())
            del keep
        return count


def dpnp_array(race):
    return pytest.importorskip("dpnp").ndarray((NBYTES,), dtype="u1", buffer=race.memory)


PRODUCERS = {
    "Memory": lambda race: race.memory,
    "dict": lambda race: ByDict(race.memory.__sycl_usm_array_interface__, race.writing),
    "dpnp": dpnp_array,
    "USMArray": lambda race: arrayhub.asarray(race.memory),
    "view of a USMArray": lambda race: arrayhub.asarray(race.memory)[::2],
}
WAYS = {
    "asarray": lambda x, stream: arrayhub.asarray(x, stream=stream),
    "via sycl": lambda x, stream: arrayhub.asarray(x, stream=stream, via="sycl"),
    "via dlpack": lambda x, stream: arrayhub.asarray(x, stream=stream, via="dlpack"),
    "to_device": lambda x, stream: arrayhub.to_device(x, arrayhub.asarray(x).device, stream=stream),
    "to_device method": lambda x, stream: arrayhub.asarray(x).to_device(arrayhub.asarray(x).device, stream=stream),
    "device=": lambda x, stream: arrayhub.asarray(x, device=arrayhub.asarray(x).device, stream=stream),
}


def applies(way, producer):
    """Return whether a producer supports the protocol that `way` uses."""
    return way != "via dlpack" or producer in ("dpnp", "USMArray", "view of a USMArray")


def test_reads_are_not_ordered_without_a_stream(race):
    """Without ``stream=``, some reads precede the write, so the tests below can fail."""
    assert any(race.stale(lambda queue: arrayhub.asarray(race.memory)) for _ in range(20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("producer", "way"), [(p, w) for p in PRODUCERS for w in WAYS if applies(w, p)], ids=lambda name: name
)
def test_queue_of_the_caller_waits_for_the_producer(race, producer, way):
    x = PRODUCERS[producer](race)
    assert race.stale(lambda queue: WAYS[way](x, queue)) == 0


def test_in_order_queue_of_the_caller_waits_for_the_producer(dpctl):
    race = Race(dpctl, in_order=True)
    assert race.stale(lambda queue: arrayhub.asarray(race.memory, stream=queue)) == 0


def test_array_uses_the_queue_of_the_caller_afterwards(race):
    """Later consumers of the result wait for the caller's queue. The original array keeps its own queue."""
    x = arrayhub.asarray(race.memory)
    a = arrayhub.asarray(x, stream=race.reading)
    assert a is not x
    assert a.memory is x.memory
    assert getattr(a, SYCL)["syclobj"] == race.reading
    assert getattr(x, SYCL)["syclobj"] == race.writing
    early = 0
    for turn in range(ROUNDS):
        race.reading.memcpy_async(race.memory, race.sources[turn % 2], NBYTES)
        early += race.reading.submit_barrier().execution_status.name != "complete"
        assert (np.frombuffer(getattr(a, SYCL) and race.memory.copy_to_host(), "u1") == turn % 2).all()
    assert early > 0


def test_dpnp_array_uses_the_queue_of_the_caller(race):
    """The dpnp array has the caller's queue, although the memory was allocated with another queue."""
    dpnp = pytest.importorskip("dpnp")
    a = arrayhub.asarray(race.memory, stream=race.reading)
    for x in (a, a[16:], a[::2]):
        array = arrayhub.as_dpnp(x)
        assert array.sycl_queue == race.reading
        assert arrayhub.asarray(array).ptr == x.ptr
    assert arrayhub.as_dpnp(arrayhub.asarray(race.memory)).sycl_queue == race.writing
    race.reading.memcpy(race.memory, race.sources[1], NBYTES)
    del a, x
    assert (dpnp.asnumpy(array) == 1).all()  # `array` holds the memory


def test_memory_is_copied_on_the_callers_queue(race):
    """Strided memory is copied by dpnp's kernel, which requires all arrays to have the same queue."""
    pytest.importorskip("dpnp.tensor")
    for take in (
        lambda x: arrayhub.asarray(x, copy=True, stream=race.reading),
        lambda x: arrayhub.asarray(x, stream=race.reading).copy(),
        lambda x: arrayhub.to_device(x, x.device, copy=True, stream=race.reading),
    ):
        for turn in range(2):
            race.writing.memcpy(race.memory, race.sources[turn], NBYTES)
            for step in (1, 2):
                copied = take(arrayhub.asarray(race.memory)[::step])
                assert getattr(copied, SYCL)["syclobj"] == race.reading
                assert (np.asarray(arrayhub.to_host(copied)) == turn).all()


def test_host_copy_waits_for_the_queue_of_the_caller(dpctl, race):
    """The host reads shared and host USM directly, so it must wait for the queue in ``stream=``."""
    shared = dpctl.memory.MemoryUSMShared(NBYTES, queue=race.writing)
    out = np.empty(NBYTES, "u1")
    for turn in range(ROUNDS):
        race.reading.memcpy_async(shared, race.sources[turn % 2], NBYTES)
        arrayhub.to_host(shared, out=out, stream=race.reading)
        assert (out == turn % 2).all()


def test_queue_of_another_context_is_rejected(dpctl, race):
    device = race.memory.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    for way in (arrayhub.asarray, lambda x, stream: arrayhub.to_device(x, "oneapi:0", stream=stream)):
        with pytest.raises(BufferError, match="whose context differs from the memory"):
            way(race.memory, stream=elsewhere)


# ------------------------------------------------------------------------------------------------- invalid streams

NO_STREAMS = ["nonsense", 3.0, object(), True, [], b"1", np.zeros(1), 0, np.int64(0), 7, -2, 2**63, lambda: 1]
HOST = {
    "ndarray": lambda: np.zeros(3),
    "bytes": lambda: b"abc",
    "list": lambda: [1, 2],
    "number": lambda: 1.5,
    "USMArray": lambda: arrayhub.USMArray(3, "u1", "cpu"),
    "wrapper": lambda: pytest.importorskip("xarray").DataArray(np.zeros(3)),
    "dict": lambda: type("P", (), {"__array_interface__": np.zeros(3).__array_interface__, "keep": 1})(),
}
CALLS = {
    "asarray": lambda x, stream: arrayhub.asarray(x, stream=stream),
    "from_dlpack": lambda x, stream: arrayhub.from_dlpack(arrayhub.asarray(x), stream=stream),
    "from_dlpack copy=": lambda x, stream: arrayhub.from_dlpack(arrayhub.asarray(x), copy=True, stream=stream),
    "dtype=": lambda x, stream: arrayhub.asarray(x, dtype="i1", stream=stream),
    "device=": lambda x, stream: arrayhub.asarray(x, device="cpu", stream=stream),
    "copy=": lambda x, stream: arrayhub.asarray(x, copy=True, stream=stream),
    "to_host": lambda x, stream: arrayhub.to_host(x, stream=stream),
    "to_host copy=": lambda x, stream: arrayhub.to_host(x, copy=True, stream=stream),
    "to_device": lambda x, stream: arrayhub.to_device(x, "cpu", stream=stream),
    "to_host method": lambda x, stream: arrayhub.asarray(x).to_host(stream=stream),
    "to_device method": lambda x, stream: arrayhub.asarray(x).to_device("cpu", stream=stream),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("stream", NO_STREAMS)
def test_invalid_stream_is_rejected_for_host_memory(call, stream):
    for make in HOST.values():
        with pytest.raises((BufferError, TypeError, arrayhub.InterfaceError), match="stream"):
            CALLS[call](make(), stream)


@pytest.mark.parametrize("call", CALLS)
def test_stream_is_accepted_for_host_memory(call):
    """Streams are accepted for host memory, because libraries pass their stream for every array."""
    streams = [None, -1, 1, 2, 0x7F0000001000, type("S", (), {"ptr": 0})()]
    for make in HOST.values():
        for stream in streams:
            assert CALLS[call](make(), stream).device == arrayhub.Device("cpu")


def test_queue_is_accepted_for_host_memory(race):
    for make in HOST.values():
        assert arrayhub.asarray(make(), stream=race.reading).device == arrayhub.Device("cpu")
    x = arrayhub.asarray(np.zeros(3))
    assert arrayhub.asarray(x, stream=race.reading) is x


@pytest.mark.parametrize("stream", [*NO_STREAMS, -1, 1, 2, 0x7F0000001000])
def test_invalid_queue_is_rejected_for_usm(race, stream):
    x = arrayhub.asarray(race.memory)
    producers = (
        race.memory,
        x,
        x[1:],
        ByDict(race.memory.__sycl_usm_array_interface__, race.writing),
    )
    for producer in producers:
        with pytest.raises(BufferError, match="dpctl.SyclQueue"):
            arrayhub.asarray(producer, stream=stream)


def test_dlpack_for_a_queue_exports_shared_memory_on_its_device(race):
    x = arrayhub.asarray(race.memory)
    assert arrayhub.from_dlpack(x.__dlpack__(stream=race.reading)).device == x.device


def test_queue_is_rejected_for_cuda_memory(race):
    interface = {"shape": (0,), "typestr": "<f8", "data": (0, False), "version": 3, "stream": None}
    producer = type("P", (), {"__cuda_array_interface__": interface})()
    with pytest.raises(TypeError, match="stream"):
        arrayhub.asarray(producer, stream=race.reading)


@pytest.mark.skipif(has_driver(), reason="a CUDA driver would dereference the invented stream handle")
def test_import_of_a_usm_array_with_another_stream_returns_a_view():
    """The import returns a view with the new stream. The original array keeps the producer's stream."""
    interface = {"shape": (0,), "typestr": "<f8", "data": (0, False), "version": 3, "stream": 1}
    x = arrayhub.asarray(type("P", (), {"__cuda_array_interface__": interface})())
    a = arrayhub.asarray(x, stream=0x7F0000001000)
    assert a.__cuda_array_interface__["stream"] == 0x7F0000001000
    assert x.__cuda_array_interface__["stream"] == 1


# ------------------------------------------------------------------- memory of a device whose runtime is not known here


@pytest.mark.parametrize("make", [lambda made: made, lambda made: made.capsule()], ids=["producer", "capsule"])
def test_stream_is_rejected_for_memory_without_streams(make):
    with pytest.raises(BufferError, match="stream is 5 for memory on ext_dev"):
        arrayhub.asarray(make(Handmade(device=(12, 0), announced=(12, 0))), stream=5)


# --------------------------------------------------------------------------------------- each import is ordered once


class Counted:
    """A stream object that counts reads of its handle."""

    def __init__(self):
        self.asked = 0

    def __cuda_stream__(self):
        self.asked += 1
        return (0, 0x7F0000001000)


EMPTY_DICT = {"shape": (0,), "typestr": "<f8", "data": (0, False), "version": 3, "stream": 1}
ON_CUDA = {
    "dict": lambda: type("P", (), {"__cuda_array_interface__": EMPTY_DICT})(),
    "dict of version 2": lambda: type("P", (), {"__cuda_array_interface__": {**EMPTY_DICT, "version": 2}})(),
    "DLPack": lambda: Handmade(device=(2, 0), announced=(2, 0), shape=(0,)),
    "capsule": lambda: Handmade(device=(2, 0), announced=(2, 0), shape=(0,)).capsule(),
    "managed memory": lambda: Handmade(device=(13, 0), announced=(13, 0), shape=(0,)),
    "USMArray": lambda: arrayhub.asarray(Handmade(device=(2, 0), announced=(2, 0), shape=(0,))),
}
IN = {
    "asarray": lambda x, stream: arrayhub.asarray(x, stream=stream),
    "asarray device=": lambda x, stream: arrayhub.asarray(x, device="cuda:0", stream=stream),
    "to_device": lambda x, stream: arrayhub.to_device(x, "cuda:0", stream=stream),
}


@pytest.mark.skipif(has_driver(), reason="a CUDA driver would dereference the invented stream handle")
@pytest.mark.parametrize(
    ("memory", "call"), [(m, c) for m in ON_CUDA for c in IN if m != "managed memory" or c == "asarray"]
)
def test_handle_of_a_stream_object_is_read_once(memory, call):
    """If the handle changed between two reads, the array would record a stream that does not wait for the producer."""
    stream, x = Counted(), ON_CUDA[memory]()
    a = IN[call](x, stream)
    assert stream.asked == 1
    assert a.__cuda_array_interface__["stream"] == 0x7F0000001000
    assert stream.asked == 1


@pytest.mark.skipif(has_driver(), reason="a CUDA driver would dereference the invented stream handle")
def test_cuda_producer_is_called_once_with_the_stream():
    made = Handmade(device=(2, 0), announced=(2, 0), shape=(0,))
    a = arrayhub.asarray(made, stream=Counted())
    assert [request["stream"] for request in made.requests] == [0x7F0000001000]
    arrayhub.asarray(a, stream=0x7F0000001000)
    assert len(made.requests) == 1


@pytest.mark.parametrize("call", ["asarray", "via", "from_dlpack"])
def test_producer_of_an_unsupported_runtime_is_called_once_with_the_stream(call):
    made = Handmade(device=(10, 0), announced=(10, 0))
    ways = {
        "asarray": arrayhub.asarray,
        "via": lambda x, stream: arrayhub.asarray(x, stream=stream, via="dlpack"),
        "from_dlpack": arrayhub.from_dlpack,
    }
    ways[call](made, stream=5)
    assert [request["stream"] for request in made.requests if request.get("stream") != -1] == [5]


class Null:
    """A stream object whose handle is null."""

    ptr = 0


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(5, 5), (Counted(), 0x7F0000001000), (0, 0), (np.int64(0), 0), (Null(), 0)],
    ids=["5", "object", "0", "0 of NumPy", "null object"],
)
def test_stream_of_an_unsupported_runtime_is_passed_to_the_producer(stream, handle):
    """arrayhub does not support the ROCm runtime, so it passes the stream to the producer's ``__dlpack__``."""
    made = Handmade(device=(10, 0), announced=(10, 0))
    a = arrayhub.asarray(made)
    made.requests.clear()
    assert arrayhub.asarray(a, stream=stream) is a
    assert made.requests == [{"stream": handle}]
    assert getattr(stream, "asked", 1) == 1


@pytest.mark.parametrize("stream", [0, np.int64(0), np.uint8(0)])
def test_stream_0_is_rejected_for_cuda(stream):
    with pytest.raises(arrayhub.InterfaceError, match="stream is 0; .*0 could mean either default stream"):
        stream_handle(stream)
    assert stream_handle(Null()) == 1


@pytest.mark.parametrize("stream", ["nonsense", 3.0, object(), True, [], b"1", -2, 2**63])
def test_invalid_stream_is_rejected_for_cuda_and_unsupported_runtimes(stream):
    """An invalid stream is rejected before the producer is called."""
    for kind in (2, 10):
        made = Handmade(device=(kind, 0), announced=(kind, 0), shape=(0,))
        a = arrayhub.asarray(made)
        made.requests.clear()
        for x in (made, a):
            with pytest.raises((BufferError, TypeError, arrayhub.InterfaceError), match="stream"):
                arrayhub.asarray(x, stream=stream)
        assert [request for request in made.requests if request.get("stream") != -1] == []


def test_stream_minus_one_does_not_synchronize():
    made = Handmade(device=(10, 0), announced=(10, 0))
    a = arrayhub.asarray(made, stream=-1)
    assert arrayhub.asarray(a, stream=-1) is a
    assert [request for request in made.requests if request.get("stream") != -1] == []


@pytest.mark.parametrize("call", ["asarray", "device=", "copy=", "to_device", "to_device copy=", "the copy of a view"])
def test_in_order_queue_receives_one_barrier(dpctl, call, monkeypatch):
    race = Race(dpctl, in_order=True)
    queue, barriers = race.reading, []
    submit = sycl.submit_barrier
    monkeypatch.setattr(sycl, "submit_barrier", lambda queue, *after: barriers.append(queue) or submit(queue, *after))
    where = arrayhub.asarray(race.memory).device
    calls = {
        "asarray": lambda: arrayhub.asarray(race.memory, stream=queue),
        "device=": lambda: arrayhub.asarray(race.memory, device=where, stream=queue),
        "copy=": lambda: arrayhub.asarray(race.memory, copy=True, stream=queue),
        "to_device": lambda: arrayhub.to_device(race.memory, where, stream=queue),
        "to_device copy=": lambda: arrayhub.to_device(race.memory, where, copy=True, stream=queue),
        "the copy of a view": lambda: arrayhub.asarray(arrayhub.asarray(race.memory)[::2], copy=True, stream=queue),
    }
    calls[call]()
    assert barriers.count(queue) == 1
