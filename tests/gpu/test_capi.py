"""Test the C interface with CUDA memory: requests by memory kind, arrays over device pointers, and streams."""

import gc
import sys

import native_build as build
import numpy as np
import pytest

import arrayhub

cupy = pytest.importorskip("cupy", reason="cupy is not installed")
pytestmark = pytest.mark.gpu

F8, F4 = (2, 64, 1), (2, 32, 1)
WRITEABLE = 4
ON_HOST, ON_USM, ON_CUDA, ANYWHERE = 1, 2, 4, 15
MAY_CAST, MAY_TRANSFER = 1, 4
CUDA = (2, 0)


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    """Return an extension module that wraps each function of arrayhub.h."""
    folder = build.shared_folder(tmp_path_factory, "native_gpu")
    flags = (*build.STRICT, "-std=c11", "-DNAME=probe_gpu")
    return build.load(build.compiled(folder, "probe_gpu", [build.SOURCES / "probe.c"], *flags))


def sources():
    yield "cupy", cupy.arange(12.0).reshape(3, 4)
    yield "cupy, strided", cupy.arange(24.0).reshape(3, 8)[:, ::-2]
    torch = pytest.importorskip("torch")
    yield "torch", torch.arange(12.0, dtype=torch.float64, device="cuda").reshape(3, 4)


@pytest.mark.parametrize("which", range(3))
def test_where_determines_whether_device_memory_is_accepted(c, which):
    _, source = list(sources())[which]
    for where in (ON_CUDA, ANYWHERE, ON_HOST | ON_CUDA):
        x = c.request(source, name="f: x", where=where, dtypes=(F8,))
        assert x.ptr == arrayhub.asarray(source).ptr and c.device(x) == CUDA
        assert c.match(x, where=where)
    for where, words in ((ON_HOST, r"f: x: this .* is on cuda:0; .*device='cpu'\)"), (ON_USM, "accepted: SYCL USM")):
        with pytest.raises(arrayhub.Refusal, match=words) as raised:
            c.request(source, name="f: x", where=where)
        assert not c.match(arrayhub.asarray(source), where=where)
        call = raised.value.call
        assert where == ON_USM or c.match(eval(call, {"arrayhub": arrayhub, "x": source}), where=where)
    assert "device='cpu'" in c.explain(source, where=ON_HOST)


def test_may_transfer_allows_copies_in_both_directions(c):
    source = cupy.arange(6.0)
    host = c.request(source, where=ON_HOST, may=MAY_TRANSFER)
    assert host.device.type == "cpu" and np.asarray(host).tolist() == list(range(6))
    assert np.asarray(c.to_host(source)).tolist() == list(range(6))
    there = c.request(np.arange(6.0), where=ON_CUDA, may=MAY_TRANSFER)
    assert c.device(there) == CUDA and cupy.asarray(there).tolist() == list(range(6))
    narrow = c.request(source, where=ON_HOST, dtypes=(F4,), may=MAY_TRANSFER | MAY_CAST)
    assert narrow.dtype == "f4" and np.asarray(narrow).tolist() == list(range(6))
    with pytest.raises(BufferError):
        c.request(source, where=ON_HOST, may=MAY_TRANSFER, flags=WRITEABLE)


def test_copy_is_on_the_current_device_or_the_streams_device(c):
    """Without a stream in the request, the copy is on the current device."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device")
    with cupy.cuda.Device(1):
        stream = cupy.cuda.Stream(non_blocking=True)
        assert c.device(c.request(np.arange(6.0), where=ON_CUDA, may=MAY_TRANSFER)) == (2, 1)
        assert "'cuda:1'" in c.explain(np.arange(6.0), where=ON_CUDA)
    for given, device in ((None, 0), (1, 0), (stream, 1)):
        x = c.request(np.arange(6.0), where=ON_CUDA, may=MAY_TRANSFER, stream=given)
        assert c.device(x) == (2, device) and np.asarray(c.to_host(x)).tolist() == list(range(6))


def test_pinned_memory_is_host_memory_and_managed_memory_is_both(c):
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(64), "f8", 8)
    managed = cupy.ndarray(8, "f8", cupy.cuda.malloc_managed(64))
    for source in (pinned, managed):
        for where in (ON_HOST, ON_CUDA) if source is managed else (ON_HOST,):
            assert c.request(source, where=where).ptr == arrayhub.asarray(source).ptr


def test_array_over_a_device_pointer_shares_the_memory(c):
    source = cupy.arange(24.0).reshape(4, 6)
    x = c.make(source.data.ptr, (4, 6), access=WRITEABLE, device=CUDA, owner=source)
    assert (x.device.type, x.ptr, x.base) == ("cuda", source.data.ptr, source)
    assert cupy.shares_memory(cupy.asarray(x), source)
    strided = c.make(source.data.ptr + 40, (4, 3), byte_strides=(48, -16), access=WRITEABLE, device=CUDA, owner=source)
    assert cupy.array_equal(cupy.asarray(strided), source[:, ::-2])
    torch = pytest.importorskip("torch")
    assert type(c.convert(x, "torch")) is torch.Tensor and c.convert(x, "torch").data_ptr() == source.data.ptr
    assert type(c.like(x, torch.zeros(1, device="cuda"))) is torch.Tensor


def test_invalid_stream_raises(c):
    source = cupy.zeros(4)
    with pytest.raises(BufferError, match="a handle from CUDA"):
        c.make(source.data.ptr, (4,), device=CUDA, owner=source, stream=-5)


@pytest.mark.parametrize("how", ["to_host", "host_ready", "request"])
def test_host_waits_for_the_stream_of_the_array(c, spin, how):
    """The first round does not pass the stream, and checks that the kernel is still pending."""
    stream = cupy.cuda.Stream(non_blocking=True)
    for named in (False, True):
        source = cupy.zeros(1 << 20)
        source.fill(1)  # load the kernel before the race
        cupy.cuda.Device().synchronize()
        with stream:
            spin()
            source.fill(7)
        x = c.make(source.data.ptr, (1 << 20,), device=CUDA, owner=source, stream=stream.ptr if named else 0)
        if not named:
            assert not stream.done, "the kernel was too short for a race"
            stream.synchronize()
            continue
        if how == "host_ready":
            c.host_ready(x)
            assert stream.done
        else:
            host = c.to_host(x) if how == "to_host" else c.request(x, where=ON_HOST, may=MAY_TRANSFER)
            assert (np.asarray(host) == 7).all()


def test_consumer_waits_for_the_stream_of_the_array(c, spin):
    producer, consumer = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    source = cupy.zeros(1 << 20)
    for _ in range(5):
        source.fill(0)
        cupy.cuda.Device().synchronize()
        with producer:
            spin()
            source.fill(7)
        x = c.make(source.data.ptr, (1 << 20,), device=CUDA, owner=source, stream=producer.ptr)
        with consumer:
            total = cupy.asarray(x).sum()
        consumer.synchronize()  # float(total) copies on the default stream, which does not wait for `consumer`
        assert float(total) == 7 * (1 << 20)


def test_owner_is_released_once(c):
    source = cupy.zeros(8)
    count = sys.getrefcount(source)
    x = c.make(source.data.ptr, (8,), device=CUDA, owner=source, access=WRITEABLE)
    views = [cupy.asarray(x), x[1:], arrayhub.as_cupy(x[::-1])]
    assert sys.getrefcount(source) > count
    del x, views
    gc.collect()
    assert sys.getrefcount(source) == count


def test_new_arrays_get_memory_of_the_models_library(c):
    torch = pytest.importorskip("torch")
    model = torch.zeros(3, device="cuda")
    before = torch.cuda.memory_allocated()
    theirs = torch.empty(1000, dtype=torch.float64, device="cuda")
    grown = torch.cuda.memory_allocated() - before
    x = c.make(0, (1000,), model=model)
    assert torch.cuda.memory_allocated() - before == 2 * grown
    assert c.device(x) == CUDA and x.shape == (1000,) and x.dtype == "f8"
    del x, theirs
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    pool, model = cupy.cuda.MemoryPool(), cupy.zeros(3)
    with cupy.cuda.using_allocator(pool.malloc):
        x = c.make(0, (1000,), model=model)
    assert pool.used_bytes() >= 8000 and c.device(x) == CUDA
    del x
    gc.collect()
    assert pool.used_bytes() == 0
