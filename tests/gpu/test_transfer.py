"""Test large copies through the pool of pinned memory: layouts, streams, several devices, and failures."""

import gc
import itertools
import threading

import numpy as np
import pytest
from children import python, resident
from gpu_arrays import pinned_like

import arrayhub
from arrayhub import asarray, transfer
from arrayhub.transfer import pinned

ROUNDS = 100
SHAPE = (96, 250, 130)  # 25 MB of float64, which are copied in many chunks
VIEWS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "every second": lambda x: x[..., ::2],
    "negative": lambda x: x[::-1, :, ::-3],
    "permuted": lambda x: x.transpose(1, 2, 0)[3:],
    "rows": lambda x: x[:, ::4],
}


@pytest.fixture(autouse=True)
def small_pool():
    """Set a chunk size of 1 MiB, so that large arrays are copied in several chunks. Reset the settings afterwards."""
    transfer.configure(threads=5, chunk=1 << 20, buffers=3)
    yield
    transfer.configure(threads=0, chunk=0, buffers=0)
    transfer.release()


@pytest.fixture(scope="module")
def host():
    return np.random.default_rng(0).random(SHAPE)


def outs(cp, array):
    """Yield (name, out) for `out` arrays of several layouts and kinds of memory."""
    yield "fresh", None
    yield "contiguous", np.empty_like(array, order="C")
    yield "Fortran", np.empty(array.shape[::-1], array.dtype).T
    yield "strided", np.empty((*array.shape[:-1], array.shape[-1] * 2), array.dtype)[..., ::2]
    yield "negative", np.empty(array.shape, array.dtype)[::-1, :, ::-1]
    yield "pinned", pinned_like(cp, array)
    yield "pinned, Fortran", pinned_like(cp, array.T).T
    yield "pinned, strided", pinned_like(cp, np.empty((*array.shape[:-1], array.shape[-1] * 2)))[..., ::2]


@pytest.mark.parametrize("view", VIEWS)
def test_to_host_copies_each_layout(cp, host, view):
    x = VIEWS[view](cp.asarray(host))
    expected = VIEWS[view](host)
    for name, out in outs(cp, expected):
        if out is not None:
            out[...] = -1
        assert np.array_equal(np.asarray(arrayhub.to_host(x, out=out)), expected), name
    assert transfer.held()["pinned"] <= 3 << 20


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("is_pinned", [False, True])
def test_to_device_copies_each_layout(cp, host, view, is_pinned):
    source = host
    if is_pinned:
        source = pinned_like(cp, host)
        source[...] = host
    made = arrayhub.to_device(VIEWS[view](source), "cuda:0")
    assert made.device == arrayhub.Device("cuda:0")
    assert np.array_equal(arrayhub.as_cupy(made).get(), VIEWS[view](host))


@pytest.mark.parametrize("broadcast", [(5, *SHAPE[1:]), SHAPE])
def test_broadcast_arrays_are_copied(cp, host, broadcast):
    source = host[:1] if broadcast == SHAPE else host[0]
    x = np.broadcast_to(source, broadcast)
    y = cp.broadcast_to(cp.asarray(source), broadcast)
    assert np.array_equal(arrayhub.as_cupy(arrayhub.to_device(x, "cuda:0")).get(), x)
    assert np.array_equal(np.asarray(arrayhub.to_host(y)), x)
    lengthened = np.broadcast_to(host[0, :, :, None], (*host.shape[1:], 7))
    assert np.array_equal(arrayhub.as_cupy(arrayhub.to_device(lengthened, "cuda:0")).get(), lengthened)


@pytest.mark.parametrize(
    "dtype", ["?", "i2", "f4", "c16", "S5", "V7", "V24", np.dtype([("a", "i2"), ("b", "f8")])], ids=str
)
def test_elements_of_several_sizes_are_copied(cp, dtype):
    raw = np.random.default_rng(1).integers(0, 2, (40, 301, 50 * np.dtype(dtype).itemsize), "u1").view(dtype)
    for x in (raw, raw.T, raw[:, ::-2], raw[..., 1:]):
        there = arrayhub.to_device(x, "cuda:0")
        assert np.asarray(there.to_host()).tobytes() == x.tobytes()
        assert np.asarray(there[::-1, ::3].to_host()).tobytes() == x[::-1, ::3].tobytes()


def test_copies_of_sizes_near_the_limits_of_copy_methods(cp):
    """The method of a copy depends on its size and layout."""
    for power in (12, 13, 14, 15, 16, 17, 19, 21, 22, 23, 24):
        for nbytes in ((1 << power) - 1, 1 << power, (1 << power) + 4097):
            x = np.random.default_rng(power).integers(0, 256, nbytes, "u1")
            there = arrayhub.to_device(x, "cuda:0")
            assert np.array_equal(np.asarray(there.to_host()), x)
            assert np.array_equal(np.asarray(there[::-1].to_host()), x[::-1])
            assert np.array_equal(np.asarray(there[::3].to_host()), x[::3])
            strided = np.zeros(2 * nbytes, "u1")
            assert np.array_equal(arrayhub.to_host(there, out=strided[::-2]), x)
            assert not strided[::2].any() and np.array_equal(strided[::-2], x)


# --------------------------------------------------------------------------------------------------------- producers


def producers(cp, torch, jax, cuda):
    """Yield (name, array, values): a device array of a few megabytes, and the same values in a NumPy array."""
    x = np.random.default_rng(2).random((1000, 700))
    yield "cupy", cp.asarray(x), x
    yield "torch", torch.as_tensor(x, device="cuda"), x
    yield "torch, turned", torch.as_tensor(x, device="cuda").T, x.T
    small = x.astype("f4")
    yield "jax", jax.numpy.asarray(small), small
    yield "numba", cuda.to_device(x), x
    yield "numba, strided", cuda.to_device(x)[:, ::2], x[:, ::2]
    managed = cp.ndarray(x.shape, x.dtype, cp.cuda.malloc_managed(x.nbytes))
    managed[...] = cp.asarray(x)
    yield "managed", managed, x


def test_to_host_copies_arrays_of_each_producer(cp, torch, jax, cuda):
    for name, array, expected in producers(cp, torch, jax, cuda):
        assert np.array_equal(np.asarray(arrayhub.to_host(array)), expected), name
        out = np.empty_like(expected)
        assert arrayhub.to_host(array, out=out) is out
        assert np.array_equal(out, expected), name
        assert np.array_equal(np.asarray(arrayhub.to_host(array, copy=True)), expected), name


def test_cuda_core_buffer_is_copied(cp):
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(1 << 22, stream=stream)
    stream.sync()
    x = np.random.default_rng(3).integers(0, 127, 1 << 22, "i1")
    cp.cuda.runtime.memcpy(int(buffer.handle), x.ctypes.data, x.nbytes, 1)
    # cudaMemcpy of pageable memory may return before the transfer ends ("API synchronization behavior" in its manual).
    cp.cuda.runtime.deviceSynchronize()
    a = asarray(buffer)
    assert a.device.type == "cuda"
    assert np.array_equal(np.asarray(a.to_host()).view("i1"), x)
    buffer.close(stream)


def test_copy_of_pinned_memory_is_pinned(cp, describe):
    x = pinned_like(cp, np.empty((30, 40)))
    x[...] = np.arange(1200).reshape(30, 40)
    a = asarray(describe(cp.empty((30, 40)), data=(x.ctypes.data, False), stream=None), via="cuda")
    assert a.device.type == "cuda_host"
    made = a[:, ::2].copy()
    assert made.device.type == "cuda_host"
    assert np.array_equal(np.asarray(made), x[:, ::2])
    assert np.array_equal(arrayhub.as_cupy(a.to_device("cuda:0")).get(), x)


def test_to_device_copies_managed_memory(cp):
    managed = cp.ndarray((300, 4000), "f8", cp.cuda.malloc_managed(9_600_000))
    managed[...] = cp.arange(1_200_000).reshape(300, 4000)
    made = arrayhub.to_device(managed[:, ::2], "cuda:0")
    assert made.device.type == "cuda"
    assert np.array_equal(np.asarray(made.to_host()), managed.get()[:, ::2])


def test_arrays_without_elements_are_copied(cp):
    for shape in ((0,), (3, 0, 5)):
        x = cp.empty(shape)
        assert arrayhub.to_host(x).shape == shape
        assert arrayhub.to_host(x, out=np.empty(shape)).shape == shape
        assert arrayhub.to_device(np.empty(shape), "cuda:0").shape == shape
        assert asarray(x).copy().shape == shape


# ----------------------------------------------------------------------------------------------------------- streams


@pytest.fixture
def linger(spin):
    """Return a function that queues a kernel of about 4 ms."""
    return lambda: spin(8_000_000)


STREAMS = {
    "own": lambda cp: cp.cuda.Stream(non_blocking=True),
    "blocking": lambda cp: cp.cuda.Stream(),
    "legacy": lambda cp: cp.cuda.Stream.null,
    "per thread": lambda cp: cp.cuda.Stream.ptds,
}


@pytest.fixture(scope="module")
def loaded():
    """Load kernels and allocate memory before a race, because both may synchronize the device."""
    cp = pytest.importorskip("cupy")
    x = cp.zeros(1 << 20)
    x.fill(1)
    for view in (x, x[::2], x[:10]):
        arrayhub.to_host(view)
        asarray(view).copy()
    cp.cuda.Device().synchronize()


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_to_host_waits_for_the_producer(cp, linger, loaded, stream, size):
    x = cp.zeros(size)
    cp.cuda.Device().synchronize()
    ours = STREAMS[stream](cp)
    out = np.zeros(size)
    for value in range(1, ROUNDS):
        with ours:
            linger()
            x.fill(value)
            a = asarray(x)
        if value % 3 == 0:
            assert (np.asarray(a.to_host()) == value).all()
        elif value % 3 == 1:
            assert (np.asarray(a[::2].to_host()) == value).all()
        else:
            assert (arrayhub.to_host(a, out=out) == value).all()


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.permutations(["own", "legacy", "per thread"], 2)))
def test_copy_is_ordered_between_producer_and_consumer(cp, linger, loaded, ours, theirs):
    """A copy on another stream runs after the producer's write, and before its next write and a later read."""
    x, seen = cp.zeros(1 << 20), cp.zeros(1 << 20)
    cp.cuda.Device().synchronize()
    ours, theirs, third = STREAMS[ours](cp), STREAMS[theirs](cp), STREAMS["own"](cp)
    for value in range(1, ROUNDS):
        with ours:
            linger()
            x.fill(value)
            a = asarray(x)
        with theirs:
            b = a.copy()
        with ours:
            x.fill(-1)
        with third:
            cp.copyto(seen, arrayhub.as_cupy(b))
        assert (seen.get(stream=third) == value).all()


def test_to_host_waits_for_torch_streams(cp, torch, loaded):
    x = torch.zeros(1 << 20, device="cuda")
    ours = torch.cuda.Stream()
    torch.cuda.synchronize()
    for value in range(1, ROUNDS):
        with torch.cuda.stream(ours):
            torch.cuda._sleep(6_000_000)
            x.fill_(value)
            a = asarray(x)
        assert (np.asarray((a if value % 2 else a[::2]).to_host()) == value).all()


def test_consumer_waits_for_to_device(cp, loaded):
    theirs = STREAMS["own"](cp)
    x = np.zeros(1 << 19)
    for value in range(1, ROUNDS):
        x[...] = value
        with STREAMS["own"](cp):
            there = arrayhub.to_device(x[:: 1 + value % 2], "cuda:0")
        x[...] = -1
        with theirs:
            y = arrayhub.as_cupy(there).copy()
        assert (y.get(stream=theirs) == value).all()


@pytest.mark.parametrize("layout", ["contiguous", "sorted", "strided out"])
def test_copy_to_pinned_memory_on_a_stream_does_not_wait(cp, linger, loaded, layout):
    """With ``stream=`` and pinned memory, the call queues the copy on the stream and returns."""
    x = cp.zeros((1 << 10, 1 << 9))
    cp.cuda.Device().synchronize()
    source = {"contiguous": x, "sorted": x.T, "strided out": x}[layout]
    out = pinned_like(cp, np.empty(source.shape))
    if layout == "strided out":
        out = pinned_like(cp, np.empty((1 << 10, 1 << 10)))[:, ::2]
    ours, theirs = STREAMS["own"](cp), STREAMS["own"](cp)
    arrayhub.to_host(source, out=out, stream=theirs)  # compile kernels and allocate memory
    theirs.synchronize()
    ahead = 0
    for value in range(1, ROUNDS):
        with ours:
            linger()
            x.fill(value)
            a = asarray(source)
        assert arrayhub.to_host(a, out=out, stream=theirs) is out
        ahead += not theirs.done
        theirs.synchronize()
        assert (out == value).all()
    assert ahead > ROUNDS * 0.8


def test_copy_to_pageable_memory_on_a_stream_is_complete_on_return(cp, linger, loaded):
    x = cp.zeros(1 << 20)
    out = np.empty(1 << 20)
    stream = STREAMS["own"](cp)
    for value in range(1, 10):
        with stream:
            linger()
            x.fill(value)
        assert (arrayhub.to_host(x, out=out, stream=stream) == value).all()


def test_copies_do_not_wait_for_other_streams(cp, spin, loaded):
    """When the copies are complete, a kernel of about 0.3 s on another stream is still pending."""
    busy, ours = STREAMS["own"](cp), STREAMS["own"](cp)
    x = np.ones(1 << 20)
    with ours:
        for is_busy in (False, True):  # the first round loads kernels and allocates memory
            if is_busy:
                with busy:
                    spin(600_000_000)
            there = arrayhub.to_device(x, "cuda:0")
            arrayhub.to_host(there)
            arrayhub.to_host(there[::2])
            there[::2].copy()
            there[:10].to_host()
            ours.synchronize()
    assert not busy.done
    busy.synchronize()


# ------------------------------------------------------------------------------------------------------------ graphs


def test_copy_to_pinned_memory_can_be_captured_in_a_graph(cp, loaded):
    x = cp.zeros(1 << 12)
    out = pinned_like(cp, np.empty(1 << 12))
    stream = STREAMS["own"](cp)
    cp.cuda.Device().synchronize()
    a = asarray(x)
    with stream:
        stream.begin_capture()
        arrayhub.to_host(a, out=out, stream=stream)
        graph = stream.end_capture()
    out[...] = 0
    x.fill(6)
    cp.cuda.Device().synchronize()
    graph.launch(stream)
    stream.synchronize()
    assert (out == 6).all()


def test_copies_that_wait_raise_during_graph_capture(cp, loaded):
    x = cp.zeros(1 << 20)
    stream = STREAMS["own"](cp)
    out = pinned_like(cp, np.empty(1 << 19))
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        for call in (
            lambda: arrayhub.to_host(x),
            lambda: arrayhub.to_host(x[:4]),
            lambda: arrayhub.to_host(x, out=np.empty(1 << 20), stream=stream),
            lambda: arrayhub.to_host(x[::2], out=out, stream=stream),
        ):
            with pytest.raises(BufferError, match="captured"):
                call()
        cp.add(x, 1, out=x)
        graph = stream.end_capture()  # the failed calls must not invalidate the capture
    graph.launch(stream)
    stream.synchronize()
    assert (x.get() == 1).all()


# ------------------------------------------------------------------------------------------------------- two devices


@pytest.fixture
def two(cp):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device")


def test_managed_and_pinned_memory_is_copied_to_the_second_device(cp, two, describe):
    managed = cp.ndarray((1 << 20,), "f8", cp.cuda.malloc_managed(8 << 20))
    managed[...] = cp.arange(1 << 20)
    made = arrayhub.to_device(managed, "cuda:1")
    assert made.device == arrayhub.Device("cuda:1")
    assert np.array_equal(np.asarray(made.to_host()), np.arange(1 << 20))
    x = pinned_like(cp, np.empty(1 << 20))
    x[...] = 3
    a = asarray(describe(cp.empty(1 << 20), data=(x.ctypes.data, False), stream=None), via="cuda")
    assert (np.asarray(a.to_device("cuda:1").to_host()) == 3).all()


# ------------------------------------------------------------------------------------------------------------ faults


def test_pool_is_bounded_and_released(cp, host):
    x = cp.asarray(host)
    transfer.release()
    assert transfer.held()["pinned"] == 0
    arrayhub.to_host(x)
    assert 0 < transfer.held()["pinned"] <= 3 << 20
    transfer.configure(chunk=1 << 16, buffers=2)
    arrayhub.to_host(x)
    assert 0 < transfer.held()["pinned"] <= 1 << 17
    for nbytes in (1 << 16, 1 << 17, 1 << 18, 1 << 20):
        gaps = np.arange(nbytes // 4, dtype="f8")[::2]
        assert np.array_equal(np.asarray(arrayhub.to_device(gaps, "cuda:0").to_host()), gaps)
        assert 0 < transfer.held()["pinned"] <= 1 << 17
    transfer.release()
    assert transfer.held()["pinned"] == 0
    assert np.array_equal(np.asarray(arrayhub.to_host(x)), host)


def test_copies_succeed_if_memory_cannot_be_pinned(cp, host):
    """The requested buffer is too large to be pinned, so the copies use pageable memory."""
    transfer.release()
    transfer.configure(chunk=1 << 50, buffers=2, threads=1)
    x = cp.asarray(host)
    real, pinned.Pinned = pinned.Pinned, lambda nbytes, device: real(1 << 50, device)
    try:
        assert np.array_equal(np.asarray(arrayhub.to_host(x)), host)
        assert np.array_equal(np.asarray(arrayhub.to_host(x.T)), host.T)
        assert np.array_equal(np.asarray(arrayhub.to_device(host[:, ::2], "cuda:0").to_host()), host[:, ::2])
        assert transfer.held()["pinned"] == 0
    finally:
        pinned.Pinned = real
    assert np.array_equal(np.asarray(arrayhub.to_host(x)), host)


def test_device_memory_exhaustion_raises(cp):
    x = np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 40,), (0,))
    with pytest.raises(MemoryError):
        arrayhub.to_device(x, "cuda:0")
    assert (arrayhub.as_cupy(arrayhub.to_device(np.ones(1 << 20), "cuda:0")).get() == 1).all()


def test_host_memory_exhaustion_raises(cp):
    x = cp.broadcast_to(cp.ones(1), (1 << 56,))
    with pytest.raises(MemoryError):
        arrayhub.to_host(x)


def test_missing_device_raises():
    with pytest.raises(BufferError, match="device is 63"):
        arrayhub.to_device(np.ones(3), "cuda:63")


def test_progress_reports_all_bytes_and_may_raise(cp, host):
    x = cp.asarray(host)
    for source in (x, x.T):
        seen = []
        arrayhub.to_host(source, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1] == (host.nbytes, host.nbytes)
        assert sorted(seen) == seen

    class Enough(Exception):
        pass

    def stop(done, total):
        raise Enough

    for source in (x, x.T):
        with pytest.raises(Enough):
            arrayhub.to_host(source, progress=stop)
        assert np.array_equal(np.asarray(arrayhub.to_host(x)), host)


ORDERS = {"C": np.s_[:], "reversed": np.s_[::-1, ::-1], "steps": np.s_[::2, ::3], "column": np.s_[:, 1]}


@pytest.mark.parametrize("size", [30, 300, 3000])
@pytest.mark.parametrize("order", ORDERS)
def test_progress_of_copies_of_any_size_ends_with_all_bytes(cp, order, size):
    """The method of a copy depends on its size and layout. The last report of each method is the total."""
    values = np.arange(size * size, dtype="f4").reshape(size, size)
    near, far = values[ORDERS[order]], arrayhub.asarray(cp.asarray(values))[ORDERS[order]]
    strided = np.zeros((2 * near.shape[0], *near.shape[1:]), "f4")[::2]
    fresh = arrayhub.asarray(cp.zeros(near.shape, "f4"))
    seen = []

    def report(done, total):
        seen.append((done, total))

    for copy in (
        lambda: arrayhub.to_host(far, progress=report),
        lambda: arrayhub.to_host(far, out=strided, progress=report),
        lambda: arrayhub.to_device(near, "cuda:0", progress=report),
        lambda: arrayhub.to_device(near, "cuda:0", out=far, progress=report),
        lambda: arrayhub.to_device(far, "cuda:0", out=fresh, progress=report),
    ):
        seen.clear()
        copied = copy()
        assert np.array_equal(np.asarray(arrayhub.to_host(copied)), near)
        assert seen[-1] == (near.nbytes, near.nbytes) and sorted(seen) == seen


def test_progress_callback_may_copy_and_release_the_pool(cp, host):
    x = cp.asarray(host)

    def report(done, total):
        assert np.array_equal(np.asarray(arrayhub.to_host(x[3])), host[3])
        assert np.array_equal(np.asarray(arrayhub.to_host(x[..., ::2])), host[..., ::2])
        transfer.release()

    assert np.array_equal(np.asarray(arrayhub.to_host(x, progress=report)), host)
    assert transfer.held()["pinned"] == 0


def test_copies_in_several_threads_are_correct(cp, host):
    x = cp.asarray(host)
    cp.cuda.Device().synchronize()
    wrong = []

    def work():
        try:
            for view in VIEWS.values():
                wrong.extend([1] * (not np.array_equal(np.asarray(arrayhub.to_host(view(x))), view(host))))
                there = arrayhub.to_device(view(host), "cuda:0")
                wrong.extend([2] * (not np.array_equal(np.asarray(there.to_host()), view(host))))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_copies_do_not_leak(cp, host):
    """Repeated copies, including failed copies, do not increase the host memory and device memory in use."""
    x = cp.asarray(host)
    pool = cp.get_default_memory_pool()

    def fail(done, total):
        raise ZeroDivisionError

    def once():
        for source in (x, x.T):
            arrayhub.to_host(source)
            arrayhub.to_device(host[::2], "cuda:0")
            with pytest.raises(ZeroDivisionError):
                arrayhub.to_host(source, progress=fail)

    for _ in range(3):
        once()
    gc.collect()
    used, before = pool.used_bytes(), resident()
    for _ in range(30):
        once()
    gc.collect()
    assert pool.used_bytes() == used
    assert resident() - before < 2 * host.nbytes  # after 180 copies of up to host.nbytes


def test_keyboard_interrupts_end_copies():
    """Send SIGINT during copies at 40 different times. Afterwards, the lock is free and copies are correct."""
    assert "40 interrupts" in python("""
        import os, signal, threading, cupy, numpy as np, arrayhub
        from arrayhub.transfer import pinned
        signal.signal(signal.SIGINT, signal.default_int_handler)
        host = np.random.default_rng(0).random(1 << 27)
        x = cupy.asarray(host)
        arrayhub.to_host(x[::2])  # compile the kernel, because NVRTC ends the process on SIGINT
        seen = 0
        for k in range(40):
            timer = threading.Timer(0.002 + 0.0031 * k, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                while True:
                    arrayhub.to_host(x[::2] if k % 3 == 0 else x)
                    arrayhub.to_device(host, "cuda:0")
            except KeyboardInterrupt:
                seen += 1
            assert not pinned.pool.lock.locked()
        assert np.array_equal(np.asarray(arrayhub.to_host(x)), host)
        print(seen, "interrupts")
    """)


def test_keyboard_interrupt_ends_the_wait_for_a_kernel():
    assert "interrupted" in python("""
        import os, signal, threading, time, cupy, arrayhub
        signal.signal(signal.SIGINT, signal.default_int_handler)
        spin = cupy.RawKernel('extern "C" __global__ void spin(long long n) {'
                              'long long t = clock64(); while (clock64() - t < n); }', "spin")
        x = cupy.zeros(1 << 22)
        x.fill(1)  # load the kernels before the race, because loading may synchronize the device
        x.fill(0)
        spin((1,), (1,), (1,))
        arrayhub.to_host(x)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            spin((1,), (1,), (8_000_000_000,))
            x.fill(1)
            a = arrayhub.asarray(x)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            a.to_host()
        except KeyboardInterrupt:
            assert not stream.done
            print("interrupted")
        stream.synchronize()
        assert (arrayhub.as_numpy(a, copy=True) == 1).all()
    """)


def test_copies_in_a_forked_child_raise(cp):
    """Copies in a forked child raise. They do not free the parent's pinned memory or wait for the parent's lock."""
    text = python("""
        import os, cupy, numpy as np, arrayhub
        from arrayhub import transfer
        host = np.random.default_rng(0).random(1 << 22)
        x = cupy.asarray(host)
        a = arrayhub.asarray(x)
        a.to_host()
        child = os.fork()
        if child == 0:
            for call in (a.to_host, a[:3].to_host, a[::2].to_host, lambda: arrayhub.to_device(host, "cuda:0")):
                try:
                    call()
                except BufferError as error:
                    print("advised" if "spawn" in str(error) else error, flush=True)
            assert transfer.held()["pinned"] == 0
            transfer.release()
            assert (np.asarray(arrayhub.asarray(host).copy()) == host).all()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert transfer.held()["pinned"] > 0
        assert (np.asarray(a.to_host()) == host).all()
        transfer.release()
    """)
    assert text.split() == ["advised"] * 4


def test_atexit_functions_may_copy():
    assert "True" in python("""
        import atexit, cupy, numpy as np, arrayhub
        x = cupy.ones(1 << 22)
        arrayhub.to_host(x)
        atexit.register(lambda: print((np.asarray(arrayhub.to_host(x)) == 1).all()))
    """)


@pytest.mark.parametrize("to_host", [True, False])
def test_missing_kernel_raises_an_error(cp, host, to_host):
    """If arrayhub's kernel for reordering elements is missing, the error is raised after all threads have ended."""
    assert "refused" in python(f"""
        import numpy as np, cupy, arrayhub
        from arrayhub.transfer import cuda_copies, pinned
        x, host = arrayhub.asarray(cupy.ones(1 << 22)), arrayhub.asarray(np.ones(1 << 22))
        block, staging = pinned.Pinned(8 << 20, 0), cupy.cuda.alloc(8 << 20)
        route, lanes = cuda_copies.Route(host, x[::-1]), pinned.pool.lanes_on(0, 4)
        try:
            cuda_copies.copy_by_lanes(route, {to_host}, 1 << 16, 2, 0, lanes, block.address, staging.ptr, None, True)
        except BufferError as error:
            print("refused", error)
    """)
