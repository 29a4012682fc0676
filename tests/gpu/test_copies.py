"""Test copies to, from and on a CUDA device: layouts, element types and the order of work."""

import numpy as np
import pytest
from gpu_arrays import same, sample

import arrayhub
from arrayhub import asarray
from arrayhub.transfer import cuda as engine

GPU = arrayhub.Device("cuda:0")

LAYOUTS = {
    "C": lambda x: x, "F": lambda x: x.T, "sliced": lambda x: x[::2, 1:], "negative": lambda x: x[::-1, ::-2],
    "permuted": lambda x: x.transpose(1, 0), "0-d": lambda x: x[1, 2, ...], "empty": lambda x: x[:, :0],
    "one": lambda x: x[1:2, 1:2],
}  # fmt: skip
DTYPES = [
    "?", "u1", "f2", "f4", "f8", "c16", ">i4", "M8[ns]", "S5", "U3", "V7", np.dtype([("a", "i2"), ("b", "f8")]), "g",
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_host_device_round_trip_preserves_values(cp, dtype, layout):
    host = LAYOUTS[layout](sample(dtype))
    there = arrayhub.to_device(host, "cuda:0")
    assert there.device == GPU
    assert there.access == "readwrite"
    assert there.shape == host.shape
    assert same(arrayhub.to_host(there), host)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strides_that_are_not_multiples_of_the_item_size(cp, dtype):
    records = np.zeros((4, 6), [("a", "i1"), ("b", dtype)])
    records["b"] = sample(dtype)
    for host in (records["b"], records["b"].T, records["b"][::-1, ::2], records["b"][0]):
        for memory in ("cuda", "cuda_managed", "cuda_host"):
            assert same(arrayhub.to_host(arrayhub.from_array(host, memory=memory)), host)
        assert same(arrayhub.to_host(arrayhub.to_device(host, "cuda:0")), host)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strided_device_views_are_copied(cp, dtype, layout):
    """Copy views of device memory to the host, to new device memory, and to `out`."""
    host = sample(dtype)
    view = LAYOUTS[layout](arrayhub.to_device(host, GPU))
    expected = LAYOUTS[layout](host)
    assert same(view.to_host(), expected)
    for order in "CFK":
        made = view.copy(order)
        assert made.ptr != view.ptr
        assert made.device == GPU
        assert same(made.to_host(), expected)
    out = np.empty(expected.shape[::-1], host.dtype).T
    assert arrayhub.to_host(view, out=out) is out
    assert same(out, expected)


def test_copy_supports_orders_c_f_and_k(cp):
    x = asarray(cp.arange(24, dtype="f4").reshape(2, 3, 4).transpose(1, 2, 0))
    assert x.copy("C").flags.c_contiguous
    assert x.copy("F").flags.f_contiguous
    assert x.copy("K").strides == x.strides
    with pytest.raises(ValueError, match="order"):
        x.copy("Z")
    assert arrayhub.to_device(np.ones((3, 4)).T, "cuda:0").flags.f_contiguous


def test_copies_of_read_only_memory_are_writable(cp, describe):
    x = cp.ones((3, 4))
    a = asarray(describe(x, data=(x.data.ptr, True)), via="cuda")
    assert a.copy().access == "readwrite"
    assert (arrayhub.as_cupy(a, copy=True).get() == 1).all()
    assert (np.asarray(a.to_host()) == 1).all()


def test_as_cupy_copies_host_arrays_only_on_request(cp):
    with pytest.raises(BufferError, match="device='cuda:0'"):
        arrayhub.as_cupy(np.ones(3))
    assert (arrayhub.as_cupy(np.ones(3), copy=True).get() == 1).all()


def test_bfloat16_is_copied(cp, torch):
    pytest.importorskip("ml_dtypes")
    x = torch.ones((3, 4), device="cuda").to(torch.bfloat16)
    made = asarray(x)[:, ::2].copy()
    assert (np.asarray(made.to_host()).astype("f4") == 1).all()


@pytest.mark.parametrize("stream", [1, 2, "own"])
def test_copies_use_the_given_stream(cp, stream):
    own = cp.cuda.Stream(non_blocking=True)
    stream = own if stream == "own" else stream
    x = np.arange(10.0)
    there = arrayhub.to_device(x, "cuda:0", stream=stream)
    assert there.__cuda_array_interface__["stream"] == (own.ptr if stream is own else stream)
    assert same(engine.to_host(engine.copy(there, "C", stream=stream), "C", stream=stream), x)


def test_managed_memory_stays_managed(cp):
    managed = cp.ndarray((5,), "f8", cp.cuda.malloc_managed(40))
    managed[...] = 2
    made = asarray(managed).copy()
    assert made.device.type == "cuda_managed"
    assert (np.asarray(made) == 2).all()
    view = asarray(managed).to_host()
    assert view.ptr == managed.data.ptr
    assert view.device == arrayhub.Device("cpu")


def test_buffer_protocol_rejects_device_memory(cp):
    a = asarray(cp.ones(3))
    with pytest.raises(TypeError, match="to_host"):
        np.asarray(a)
    with pytest.raises(BufferError, match="to_host"):
        memoryview(a)
