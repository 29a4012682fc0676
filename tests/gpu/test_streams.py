"""Test the order of streams: a long kernel is pending on the producer's stream during an import or export.

A consumer that does not wait for this kernel reads the old value, as `test_unordered_access_reads_old_values` shows.
"""

import numpy as np
import pytest

import arrayhub
from arrayhub import asarray

ROUNDS = 10
SIZE = 1 << 16
TRIES = 8


@pytest.fixture
def race(cp, spin):
    """Yield a Race: two streams that do not synchronize with the default stream, and a slow writer on the first.

    `is_lost` has verified that an unsynchronized consumer on the second stream reads the old value.
    """

    class Race:
        def __init__(self):
            self.ours = cp.cuda.Stream(non_blocking=True)
            self.theirs = cp.cuda.Stream(non_blocking=True)
            self.x = cp.zeros(SIZE, "f4")

        def write(self, value):
            """Queue a long kernel and a write of `value`. Both are pending when the function returns."""
            with self.ours:
                spin()
                self.x.fill(value)

        def rounds(self):
            """Yield pairs of a value and an imported array to which the value is still being written."""
            for value in range(1, ROUNDS):
                self.write(value)
                with self.ours:
                    a = asarray(self.x)
                yield value, a

        def arrives(self, value, a):
            """Return whether a consumer on the second stream reads `value` from `a`."""
            with self.theirs:
                y = arrayhub.as_cupy(a).copy()
                return (y.get(stream=self.theirs) == value).all()

        def is_lost(self):
            """Return whether a read on the second stream, without synchronization, gives the old value."""
            self.write(1)
            with self.theirs:
                seen = self.x.copy().get(stream=self.theirs)
            cp.cuda.Device().synchronize()
            self.x.fill(0)
            cp.cuda.Device().synchronize()
            return (seen == 0).all()

    for _ in range(TRIES):
        race = Race()
        race.write(1)  # a nonzero value, because cupy fills zeros without a kernel
        with race.theirs:  # load kernels and allocate memory, which may synchronize the device
            kept = [race.x.copy(), race.x[::2].copy(), race.x.copy(), cp.add(race.x, 1)]
        del kept
        cp.cuda.Device().synchronize()
        race.x.fill(0)
        cp.cuda.Device().synchronize()
        if race.is_lost():
            break
    else:
        pytest.fail("no two streams run concurrently, so a missing synchronization could not be detected")
    yield race
    cp.cuda.Device().synchronize()


def test_unordered_access_reads_old_values(cp, race):
    race.write(1)
    with race.theirs:
        y = race.x.copy()
        assert (y.get(stream=race.theirs) == 0).all()


@pytest.mark.parametrize("key", [slice(None), slice(None, None, 2)], ids=["whole", "a view"])
def test_cupy_waits_for_cupy(cp, race, key):
    """At the export, the producer's stream is no longer current."""
    for value, a in race.rounds():
        assert race.arrives(value, a[key])


@pytest.mark.parametrize("way", ["from_dlpack", "as_torch"])
def test_torch_waits_for_cupy(cp, torch, race, way):
    """`as_torch` uses torch's exchange table, which does not synchronize streams itself."""
    theirs = torch.cuda.ExternalStream(race.theirs.ptr)
    take = torch.from_dlpack if way == "from_dlpack" else arrayhub.as_torch
    for value, a in race.rounds():
        with torch.cuda.stream(theirs):
            y = take(a).clone()
        theirs.synchronize()
        assert (y.cpu() == value).all()


@pytest.mark.parametrize("via", [None, "cuda"])
def test_cupy_waits_for_torch(cp, torch, race, spin, via):
    """torch's dict has version 2 and does not contain a stream, so arrayhub reads torch's current stream."""
    x = torch.zeros(SIZE, device="cuda")
    ours = torch.cuda.ExternalStream(race.ours.ptr)
    for value in range(1, ROUNDS):
        with race.ours:
            spin()
        with torch.cuda.stream(ours):
            x.fill_(value)
            a = asarray(x, via=via)
            assert via is None or race.arrives(value, a)
        assert race.arrives(value, a)


def test_per_thread_default_stream_waits_for_torch(cp, torch, race, spin):
    """``torch.Tensor.__dlpack__`` rejects the per-thread default stream, so arrayhub orders the streams itself."""
    x = torch.zeros(SIZE, device="cuda")
    ours = torch.cuda.ExternalStream(race.ours.ptr)
    theirs = cp.cuda.Stream.ptds
    for value in range(1, ROUNDS):
        with race.ours:
            spin()
        with torch.cuda.stream(ours):
            x.fill_(value)
            if value % 3 == 0:
                a = asarray(x)
            elif value % 3 == 1:
                a = asarray(x, stream=2)
            else:
                a = asarray(x, stream=theirs, via="dlpack")
            with theirs:
                y = arrayhub.as_cupy(a).copy()
                assert (y.get(stream=theirs) == value).all()


def test_consumer_waits_for_the_stream_in_a_dict_of_version_3(cp, race, describe):
    for value in range(1, ROUNDS):
        race.write(value)
        a = asarray(describe(race.x, stream=race.ours.ptr), via="cuda")
        assert race.arrives(value, a)


def test_consumer_of_a_dict_of_version_2_waits_for_the_legacy_default_stream(cp, race, spin, describe):
    for value in range(1, ROUNDS):
        spin()
        race.x.fill(value)
        a = asarray(describe(race.x, version=2), via="cuda")
        assert race.arrives(value, a)


def test_exported_dict_has_the_producers_stream(cp, race):
    for value, a in race.rounds():
        stream = cp.cuda.ExternalStream(a.__cuda_array_interface__["stream"])
        with stream:
            assert (race.x.copy().get(stream=stream) == value).all()


def test_stream_passed_to_asarray_waits_for_the_producer(cp, race):
    """After the import, the exported dict has the stream that was passed as ``stream=``."""
    for value in range(1, ROUNDS):
        race.write(value)
        with race.ours:
            a = asarray(race.x, stream=race.theirs)
        with race.theirs:
            assert (race.x.copy().get(stream=race.theirs) == value).all()
        assert a.__cuda_array_interface__["stream"] == race.theirs.ptr


def test_numba_waits_for_cupy(cp, cuda, race):
    for value, a in race.rounds():
        with race.ours:
            y = cuda.as_cuda_array(a)
        assert (y.copy_to_host() == value).all()


def test_consumer_waits_for_numba_kernels_on_the_default_stream(cp, cuda, kernels, race):
    """numba's dict does not name a stream, so arrayhub waits for the default stream."""

    @cuda.jit
    def slowly(out, value, turns):
        total = np.float32(0)
        for k in range(turns):
            total += out[k % 7]
        out[cuda.grid(1)] = value if total == total else total

    x = cuda.to_device(np.zeros(256, "f4"))
    slowly[1, 256](x, 0, 1)
    cuda.synchronize()
    for value in range(1, ROUNDS):
        slowly[1, 256](x, value, 1_000_000)
        a = asarray(x)
        assert race.arrives(value, a)


def test_cupy_waits_for_jax(cp, jax, race):
    @jax.jit
    def long(x):
        return jax.lax.fori_loop(0, 60, lambda _, y: (x @ y) / 2048, x)

    long(jax.numpy.ones((2048, 2048), "float32")).block_until_ready()
    for value in range(1, ROUNDS):
        factor = 1 + value / 64
        x = jax.numpy.full((2048, 2048), factor, "float32").block_until_ready()
        a = asarray(long(x))
        with race.theirs:
            y = arrayhub.as_cupy(a, allow_readonly=True).copy()
            # The tolerance is high, because tensor cores round to about ten bits. The results of successive values
            # differ by at least a factor of two.
            np.testing.assert_allclose(y.get(stream=race.theirs), factor**61, rtol=0.2)


def test_jax_waits_for_cupy(cp, jax, race):
    for value, a in race.rounds():
        y = jax.dlpack.from_dlpack(a)
        assert (np.asarray(y + 0) == value).all()


@pytest.mark.parametrize("via", [None, "dlpack"])
def test_host_waits_for_writes_to_managed_memory(cp, race, via):
    """A DLPack capsule does not contain the producer's stream."""
    managed = cp.ndarray((SIZE,), "f4", cp.cuda.malloc_managed(4 * SIZE))
    managed.fill(0)
    cp.cuda.Device().synchronize()
    race.x = managed
    for value in range(1, ROUNDS):
        race.write(value)
        with race.ours:
            a = asarray(managed, via=via)
        assert (np.asarray(a) == value).all()
        assert np.asarray(a).ctypes.data == managed.data.ptr


def test_host_waits_for_the_stream_in_a_dict_of_pinned_memory(cp, race, describe):
    pinned = cp.cuda.alloc_pinned_memory(4 * SIZE)
    host = np.frombuffer(pinned, "f4", SIZE)
    host[...] = 0
    for value in range(1, ROUNDS):
        race.write(value)
        with race.ours:
            race.x.get(stream=race.ours, out=host, blocking=False)
        a = asarray(describe(race.x, data=(pinned.ptr, False), stream=race.ours.ptr), via="cuda")
        assert (np.asarray(a) == value).all()


def test_stream_minus_one_does_not_wait(cp, race):
    race.write(1)
    with race.ours:
        a = asarray(race.x)
    capsule = a.__dlpack__(stream=-1, max_version=(1, 0))
    assert not race.ours.done
    del capsule


def test_import_does_not_block_the_host(cp, race):
    """Import and export only queue a wait on the consumer's stream, and return while the producer's work is pending."""
    race.write(1)
    with race.ours:
        a = asarray(race.x)
    with race.theirs:
        arrayhub.as_cupy(a)
    a.__dlpack__(stream=race.theirs.ptr, max_version=(1, 0))
    assert not race.ours.done


# ---------------------------------------------------------------------------------------------------------- graphs


def test_export_is_permitted_during_graph_capture(cp, race):
    """The export does not synchronize, so it is permitted while a CUDA graph is being captured."""
    with race.ours:
        a = asarray(race.x)
    out = cp.zeros(SIZE, "f4")
    cp.cuda.Device().synchronize()
    with race.theirs:
        race.theirs.begin_capture()
        y = arrayhub.as_cupy(a)
        cp.add(y, 1, out=out)
        graph = race.theirs.end_capture()
    race.x.fill(4)
    cp.cuda.Device().synchronize()
    graph.launch(race.theirs)
    race.theirs.synchronize()
    assert (out.get() == 5).all()


def test_import_and_export_are_permitted_on_the_captured_stream(cp, race):
    out = cp.zeros(SIZE, "f4")
    cp.cuda.Device().synchronize()
    with race.theirs:
        race.theirs.begin_capture()
        cp.add(arrayhub.as_cupy(asarray(race.x)), 1, out=out)
        graph = race.theirs.end_capture()
    graph.launch(race.theirs)
    race.theirs.synchronize()
    assert (out.get() == 1).all()


def test_array_of_a_captured_stream_is_rejected_on_another_stream(cp, race):
    with race.ours:
        race.ours.begin_capture()
        race.x.fill(3)
        a = asarray(race.x)
    with race.theirs, pytest.raises(BufferError, match="captured"):
        arrayhub.as_cupy(a)
    with race.ours:
        graph = race.ours.end_capture()
        graph.launch(race.ours)
    race.ours.synchronize()
    assert (race.x.get() == 3).all()


class Hidden:
    """A producer that exports a cupy array only through DLPack, which does not transmit the producer's stream."""

    def __init__(self, x, stream):
        self.x, self.stream = x, stream

    def __dlpack__(self, **keywords):
        with self.stream:
            return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("show", [Hidden, lambda x, stream: None], ids=["DLPack", "a dict without a stream"])
def test_copy_is_complete_before_a_producer_without_a_stream_writes_again(cp, race, spin, describe, show):
    """The producer writes again without waiting for the pending copy. The copy must have the earlier values."""
    for value in range(1, ROUNDS):
        cp.cuda.Device().synchronize()
        race.x.fill(value)
        cp.cuda.Device().synchronize()
        source = asarray(show(race.x, race.ours) or describe(race.x, stream=None))
        with race.theirs:
            spin()
            y = source.copy()
        del source
        with race.ours:
            race.x.fill(99)
        cp.cuda.Device().synchronize()
        assert (np.asarray(y.to_host()) == value).all()
