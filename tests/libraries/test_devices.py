"""Device objects of libraries are read without importing the libraries."""

import pytest

import arrayhub


def test_torch_devices_are_accepted():
    torch = pytest.importorskip("torch")
    assert arrayhub.Device(torch.device("cpu")) == arrayhub.Device("cpu")
    assert arrayhub.Device(torch.device("cuda:1")).dlpack == (2, 1)
    assert arrayhub.Device(torch.device("xpu:2")).dlpack == (14, 2)
    assert arrayhub.Device(torch.ones(2).device) == arrayhub.asarray(torch.ones(2)).device
    with pytest.raises(TypeError, match="meta"):
        arrayhub.Device(torch.device("meta"))
    with pytest.raises(TypeError, match="accepted"):
        arrayhub.Device(torch.ones(2))


def test_jax_devices_are_accepted():
    jax = pytest.importorskip("jax")
    assert arrayhub.Device(jax.devices("cpu")[0]) == arrayhub.Device("cpu")
    with pytest.raises(TypeError, match="accepted"):
        arrayhub.Device(jax.numpy.ones(2))


def test_dpnp_devices_are_accepted():
    """New memory is allocated with the queue of dpnp's device object."""
    dpnp = pytest.importorskip("dpnp")
    x = dpnp.zeros(2, sycl_queue=pytest.importorskip("dpctl").SyclQueue())
    assert arrayhub.Device(x.device) == arrayhub.Device(dpnp.tensor.zeros(2).device) == arrayhub.asarray(x).device
    for made in (
        arrayhub.to_device([1.0, 2.0], x.device),
        arrayhub.asarray([1.0, 2.0], device=x.device),
        arrayhub.full(2, 1.5, memory="usm_shared", device=x.device),
    ):
        assert made.base.sycl_queue == x.sycl_queue
        assert (arrayhub.as_dpnp(made) + x).tolist() == arrayhub.to_host(made).tolist()
    with pytest.raises(TypeError, match=r"accepted: the x\.device of a dpnp array"):
        arrayhub.Device(x)


def test_jax_arrays_are_immutable():
    jax = pytest.importorskip("jax")
    for dtype, protocol in (("float32", "buffer"), ("bfloat16", "dlpack")):
        x = jax.numpy.ones((2, 3), dtype)
        a = arrayhub.asarray(x)
        assert (a.access, a.protocol, a.ptr) == ("immutable", protocol, x.unsafe_buffer_pointer())
    with pytest.raises(BufferError, match="read-only"):
        arrayhub.as_torch(jax.numpy.ones(3))


def test_devices_of_tvm_ffi_are_accepted():
    tvm_ffi = pytest.importorskip("tvm_ffi")
    assert arrayhub.Device(tvm_ffi.device("cpu", 0)) == arrayhub.Device("cpu")
    assert arrayhub.Device(tvm_ffi.device("cuda", 1)).dlpack == (2, 1)
    assert arrayhub.asarray([1.0], device=tvm_ffi.device("cpu", 0)).device == arrayhub.Device("cpu")
    with pytest.raises(TypeError, match=r"accepted: tvm_ffi\.Device"):
        arrayhub.Device(tvm_ffi.from_dlpack(arrayhub.asarray([1.0])))


def test_device_has_the_method_of_dlpack():
    for device in (arrayhub.Device("cpu"), arrayhub.Device("cuda:1"), arrayhub.asarray([1]).device):
        assert device.__dlpack_device__() == device.dlpack
