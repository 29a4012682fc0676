"""Copies to, from and on the device: exactly the bytes of the view, any element type, in order."""

import numpy as np
import pytest

import arrayhub
from arrayhub import asarray
from arrayhub.transfer import cuda as engine

LAYOUTS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "sliced": lambda x: x[::2, 1:],
    "negative": lambda x: x[::-1, ::-2],
    "permuted": lambda x: x.transpose(1, 0),
    "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:, :0],
    "one": lambda x: x[1:2, 1:2],
}
DTYPES = ["?", "u1", "f2", "f4", "f8", "c16", ">i4", "M8[ns]", "S5", "U3", "V7",
          np.dtype([("a", "i2"), ("b", "f8")]), "g"]


def sample(dtype):
    """A (4, 6) array of distinct values of any dtype."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.integers(0, 2, (4, 6)).astype(bool)
    return rng.integers(0, 100, 24 * dtype.itemsize, "u1").view(dtype).reshape(4, 6)


def same(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_and_back(cp, dtype, layout):
    host = LAYOUTS[layout](sample(dtype))
    there = engine.from_host(host, arrayhub.Device("cuda:0"))
    assert there.device == arrayhub.Device("cuda:0") and there.access == "readwrite" and there.shape == host.shape
    back = engine.to_host(there)
    assert same(back, host)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strided_on_the_device(cp, dtype, layout):
    """The view is taken on the device, so the copy must gather."""
    host = sample(dtype)
    view = LAYOUTS[layout](engine.from_host(host, arrayhub.Device("cuda:0")))
    expected = LAYOUTS[layout](host)
    assert same(engine.to_host(view), expected)
    for order in "CFK":
        made = engine.copy(view, order)
        assert made.ptr != view.ptr or view.size == 0
        assert same(engine.to_host(made), expected)
    out = np.empty(expected.shape[::-1], host.dtype).T
    assert engine.to_host(view, out) is out and same(out, expected)


def test_orders_of_a_copy(cp):
    x = asarray(cp.arange(24, dtype="f4").reshape(2, 3, 4).transpose(1, 2, 0))
    assert engine.copy(x, "C").flags.c_contiguous
    assert engine.copy(x, "F").flags.f_contiguous
    assert engine.copy(x, "K").strides == x.strides
    with pytest.raises(ValueError, match="order"):
        engine.copy(x, "Z")


def test_a_copy_of_read_only_memory_can_be_written(cp, describe):
    x = cp.ones((3, 4))
    a = asarray(describe(x, data=(x.data.ptr, True)), via="cuda")
    assert engine.copy(a, "C").access == "readwrite"
    assert (engine.to_host(a) == 1).all()


def test_types_that_only_dlpack_says(cp, torch):
    x = torch.ones((3, 4), device="cuda").to(torch.float8_e4m3fn)
    pytest.importorskip("ml_dtypes")
    made = engine.copy(asarray(x)[:, ::2], "C")
    assert (engine.to_host(made).astype("f4") == 1).all()


def test_copies_wait_for_the_producer(cp, spin):
    ours = cp.cuda.Stream(non_blocking=True)
    x = cp.zeros(1 << 16, "f4")
    cp.cuda.Device().synchronize()
    for value in range(1, 8):
        with ours:
            spin()
            x.fill(value)
            a = asarray(x)
        if value % 2:
            assert (engine.to_host(a) == value).all()
        else:
            assert (engine.to_host(engine.copy(a[::2], "C")) == value).all()


@pytest.mark.parametrize("stream", [1, 2, "own"])
def test_copies_on_a_given_stream(cp, stream):
    own = cp.cuda.Stream(non_blocking=True)
    stream = own if stream == "own" else stream
    x = np.arange(10.0)
    there = engine.from_host(x, arrayhub.Device("cuda:0"), stream)
    assert there.__cuda_array_interface__["stream"] == (own.ptr if stream is own else stream)
    assert (engine.to_host(engine.copy(there, "C", None, stream), None, stream) == x).all()


def test_managed_memory_stays_managed(cp):
    managed = cp.ndarray((5,), "f8", cp.cuda.malloc_managed(40))
    managed[...] = 2
    made = engine.copy(asarray(managed), "C")
    assert made.device.type == "cuda_managed" and (np.asarray(made) == 2).all()


def test_between_devices(cp):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device")
    x = cp.arange(24, dtype="f4").reshape(4, 6)[:, ::2]
    made = engine.copy(asarray(x), "C", arrayhub.Device("cuda:1"))
    assert made.device == arrayhub.Device("cuda:1")
    assert (engine.to_host(made) == x.get()).all()
