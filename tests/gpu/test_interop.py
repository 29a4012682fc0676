"""Test import and export with CUDA libraries: addresses, values, read-only memory, and rejected arrays."""

import gc
import sys
import weakref

import numpy as np
import pytest
from children import python
from exporters import FAST_PATHS_OFF
from producers import lives

import arrayhub
from arrayhub import InterfaceError, asarray

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
LAYOUTS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "sliced": lambda x: x[::2, 1:],
    "negative": lambda x: x[::-1, ::-1],
    "column": lambda x: x[:, 1],
    "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:0],
}


def ramp(cp, dtype, shape=(4, 6)):
    return (cp.arange(int(np.prod(shape))) % 100).astype(dtype).reshape(shape)


# ----------------------------------------------------------------------------------------------------------- cupy


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy_round_trip_shares_memory(cp, dtype, layout):
    x = LAYOUTS[layout](ramp(cp, dtype))
    a = asarray(x)
    assert (a.shape == x.shape and a.dtype == x.dtype and a.byte_strides == x.strides) or x.size < 2
    assert a.ptr == x.data.ptr
    assert a.device == arrayhub.Device("cuda:0")
    assert a.access == "readwrite"
    y = arrayhub.as_cupy(a)
    assert type(y) is cp.ndarray
    assert y.data.ptr == x.data.ptr
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert (y.get() == x.get()).all()


def test_cupy_writes_to_shared_memory_and_releases_it(cp):
    x = ramp(cp, "f4")
    y = arrayhub.as_cupy(x)
    y[0, 0] = 77
    assert x.get()[0, 0] == 77
    died = weakref.ref(x)
    del x
    assert lives(died)
    del y
    assert not lives(died)


def test_cupy_bfloat16_and_records_round_trip(cp):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (np.dtype(ml_dtypes.bfloat16), np.dtype([("x", "i4"), ("y", "f4")])):
        try:
            x = cp.zeros((3, 2), dtype)
        except (ValueError, TypeError):
            continue  # this cupy does not support the type
        a = asarray(x)
        assert a.dtype == dtype
        assert a.ptr == x.data.ptr
        assert arrayhub.as_cupy(a).dtype == dtype


@pytest.mark.parametrize("stream", ["null", "ptds", "own"])
def test_cupy_array_has_the_current_stream(cp, stream):
    own = {"null": cp.cuda.Stream.null, "ptds": cp.cuda.Stream.ptds, "own": cp.cuda.Stream(non_blocking=True)}[stream]
    with own:
        a = asarray(cp.ones(3))
    assert a.__cuda_array_interface__["stream"] == (own.ptr or 1)


def test_array_keeps_the_cupy_stream_alive(cp):
    stream = cp.cuda.Stream(non_blocking=True)
    died = weakref.ref(stream)
    with stream:
        a = asarray(cp.ones(3))
    cp.cuda.get_current_stream().synchronize()
    del stream
    assert lives(died)
    arrayhub.as_cupy(a).get()
    del a


def test_cupy_without_the_attribute_is_hip():
    """`cupy.cuda.runtime` may lack the attribute `is_hip`."""
    python("""
        import cupy
        from arrayhub import as_cupy, asarray

        x = cupy.arange(6.0)
        del cupy.cuda.runtime.is_hip  # cupy itself reads the attribute when it compiles kernels
        a = asarray(x)
        assert (a.device.type, a.ptr, as_cupy(a).data.ptr) == ("cuda", x.data.ptr, x.data.ptr)
        assert a.device == asarray(x).to_device(cupy.cuda.Device(0)).device
    """)


# ------------------------------------------------------------------------------------------------- the dict itself


def test_driver_determines_the_kind_of_memory(cp, describe):
    plain = cp.ones((3, 4))
    assert asarray(describe(plain), via="cuda").device.type == "cuda"
    managed = cp.ndarray((3, 4), "f8", cp.cuda.malloc_managed(96))
    managed[...] = 7
    cp.cuda.get_current_stream().synchronize()
    a = asarray(describe(managed), via="cuda")
    assert a.device.type == "cuda_managed"
    assert (np.asarray(a) == 7).all()
    assert np.asarray(a).ctypes.data == managed.data.ptr
    pinned = cp.cuda.alloc_pinned_memory(96)
    host = np.frombuffer(pinned, "f8", 12).reshape(3, 4)
    host[...] = 5
    a = asarray(describe(plain, data=(pinned.ptr, False), stream=None), via="cuda")
    assert a.device == arrayhub.Device("cuda_host:0")
    assert (np.asarray(a) == 5).all()
    assert (arrayhub.as_cupy(a).get() == 5).all()


def test_memory_unknown_to_the_driver_raises(cp, describe):
    x = cp.ones((3, 4))
    attribute = cp.cuda.runtime.deviceGetAttribute(88, 0)  # cudaDevAttrPageableMemoryAccess
    if attribute:
        pytest.skip("every address is CUDA memory on this machine")
    host = np.ones(12)
    with pytest.raises(InterfaceError, match="driver does not know"):
        asarray(describe(x, data=(host.ctypes.data, False)), via="cuda")
    with pytest.raises(InterfaceError, match="driver does not know"):
        asarray(describe(x, shape=(2**40,), strides=None), via="cuda")


def test_read_only_dict_requires_allow_readonly(cp, describe):
    x = cp.ones((3, 4))
    a = asarray(describe(x, data=(x.data.ptr, True)), via="cuda")
    assert a.access == "readonly"
    assert a.__cuda_array_interface__["data"][1] is True
    with pytest.raises(BufferError, match="allow_readonly"):
        arrayhub.as_cupy(a)
    assert arrayhub.as_cupy(a, allow_readonly=True).data.ptr == x.data.ptr


def test_types_missing_in_cupy_raise(cp, describe):
    x = cp.zeros(64, "u1")
    for typestr in (">i4", "<M8[s]", "|S4", "<U2", "|V8", "<f16"):
        a = asarray(describe(x, shape=(2,), strides=None, typestr=typestr), via="cuda")
        with pytest.raises(BufferError, match="cupy"):
            arrayhub.as_cupy(a)
        assert arrayhub.to_host(a).dtype == np.dtype(typestr)
    unaligned = asarray(describe(x, shape=(2,), strides=None, typestr="<f8", data=(x.data.ptr + 4, False)), via="cuda")
    with pytest.raises(BufferError, match="not aligned"):
        arrayhub.as_cupy(unaligned)
    assert (np.asarray(arrayhub.to_host(unaligned)) == 0).all()


def test_empty_array_is_exported_with_address_0(cp, describe):
    a = asarray(describe(cp.ones((0, 3))), via="cuda")
    assert a.shape == (0, 3)
    assert a.__cuda_array_interface__["data"][0] == 0
    assert arrayhub.as_cupy(a).shape == (0, 3)


def test_invalid_stream_in_a_dict_raises():
    program = """
        import cupy, arrayhub
        class P: pass
        x = cupy.ones(4)
        p = P(); p.__cuda_array_interface__ = dict(x.__cuda_array_interface__, stream=77)
        a = arrayhub.asarray(p, via="cuda")
        try:
            arrayhub.as_cupy(a)
        except BufferError as error:
            assert "77" in str(error), error
            print("refused")
    """
    assert python(program) == "refused\n"


# ---------------------------------------------------------------------------------------------------------- torch


@pytest.mark.skipif(FAST_PATHS_OFF, reason="without fast paths, arrays hold a detached tensor")
def test_import_does_not_create_another_tensor(torch, monkeypatch):
    """After the first imports, which are checked more thoroughly, an import holds the storage without `detach`."""
    tensor, made = torch.zeros(3, device="cuda"), []
    for _ in range(3):
        asarray(tensor)
    monkeypatch.setattr(torch.Tensor, "detach", made.append)
    asarray(tensor)
    assert made == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64", "float8_e4m3fn"])
def test_torch_round_trip_shares_memory(torch, dtype):
    x = torch.ones((3, 4), device="cuda").to(getattr(torch, dtype))[:, 1:]
    if dtype.startswith("float8"):
        try:
            x.__dlpack__()
        except (BufferError, RuntimeError) as error:
            pytest.skip(f"this torch does not export float8: {error}")
    a = asarray(x)
    assert (a.shape, a.ptr, a.strides) == ((3, 3), x.data_ptr(), (4, 1))
    assert a.device == arrayhub.Device("cuda:0")
    assert a.device == arrayhub.Device(x.device)
    y = torch.from_dlpack(a)
    assert y.data_ptr() == x.data_ptr()
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert y.float().sum().item() == 9 or dtype == "complex64"


def test_torch_tensors_that_memory_does_not_represent_raise(torch):
    """Conjugated, negated, sparse and differentiable tensors raise, even after the import of a plain tensor."""
    plain = torch.ones((3, 4), device="cuda")
    complex_ = torch.ones(3, dtype=torch.complex64, device="cuda")
    for unsafe, message in (
        (torch.ones(3, device="cuda", requires_grad=True), "detach"),
        (torch.nn.Parameter(torch.ones(3, device="cuda")), "detach"),
        (complex_.conj(), "resolve_conj"),
        (complex_.conj().imag, "resolve_neg"),
        (torch.eye(3, device="cuda").to_sparse(), "to_dense"),
    ):
        assert asarray(plain).ptr == plain.data_ptr()
        assert asarray(plain).access == "readwrite"
        with pytest.raises(BufferError, match=message):
            asarray(unsafe)
    assert asarray(complex_).ptr == complex_.data_ptr()
    with torch.inference_mode():
        inferred = torch.ones(5, device="cuda")
        assert asarray(inferred).ptr == inferred.data_ptr()
    assert asarray(torch.ones(3, device="cuda", requires_grad=True).detach()).shape == (3,)


def test_torch_memory_is_freed_with_the_array(torch, cp):
    x = torch.ones(4, device="cuda")
    asarray(x)  # the first import of a torch tensor uses a different code path
    a = asarray(x)
    died = weakref.ref(x)
    del x
    gc.collect()
    assert FAST_PATHS_OFF or died() is not None  # without fast paths, `a` holds a detached tensor
    held = torch.cuda.memory_allocated()
    assert arrayhub.as_cupy(a).get().sum() == 4
    del a
    assert not lives(died)
    assert torch.cuda.memory_allocated() < held


def test_torch_dict_is_imported(torch):
    """torch's dict has version 2, which does not contain a stream, so arrayhub synchronizes through torch."""
    x = torch.arange(12, device="cuda", dtype=torch.float32).reshape(3, 4)
    a = asarray(x, via="cuda")
    assert a.ptr == x.data_ptr()
    assert a.protocol == "cuda"
    assert a.__cuda_array_interface__["stream"] == 1
    with pytest.raises((RuntimeError, BufferError), match="grad"):
        asarray(x.requires_grad_(), via="cuda")


def test_cupy_and_torch_share_memory(cp, torch):
    x = ramp(cp, "f4")
    t = torch.from_dlpack(asarray(x))
    t += 1
    torch.cuda.synchronize()
    assert (x.get() == ramp(cp, "f4").get() + 1).all()
    assert arrayhub.as_cupy(t).data.ptr == x.data.ptr
    t = torch.as_tensor(asarray(x), device="cuda")  # through the CUDA dict
    assert t.data_ptr() == x.data.ptr


# ------------------------------------------------------------------------------------------------------------ jax


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
def test_jax_arrays_are_imported_as_immutable(jax, cp, dtype):
    x = jax.numpy.ones((3, 4), dtype)
    a = asarray(x)
    assert a.shape == (3, 4)
    assert a.ptr == x.unsafe_buffer_pointer()
    assert a.access == "immutable"
    assert a.device == arrayhub.Device(next(iter(x.devices())))
    with pytest.raises(BufferError, match="allow_readonly"):
        arrayhub.as_cupy(a)
    if dtype != "bfloat16":
        y = arrayhub.as_cupy(a, allow_readonly=True)
        assert y.data.ptr == a.ptr
        assert (y.get() == 1).all()
    died = weakref.ref(x)
    del x
    assert lives(died)


def test_jax_dict_is_imported(jax):
    """jax's dict has version 2 and does not contain strides."""
    x = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
    a = asarray(x, via="cuda")
    assert a.byte_strides == (16, 4)
    assert a.ptr == x.unsafe_buffer_pointer()


def test_jax_array_is_imported_on_a_stream(jax, cp):
    stream = cp.cuda.Stream(non_blocking=True)
    x = jax.numpy.ones(5)
    a = asarray(x, stream=stream)
    assert a.__cuda_array_interface__["stream"] == stream.ptr


def test_jax_import_holds_memory_after_delete(jax, cp):
    """Test the private function of jaxlib that arrayhub calls after a first GPU array has been imported.

    The import holds the memory, even after `delete`. The deleted array cannot be imported again.
    """
    asarray(jax.numpy.zeros(3))
    x = jax.numpy.full(5, 7.0)
    address = x.unsafe_buffer_pointer()
    a = asarray(x)
    assert (a.ptr, a.access, a.device.type) == (address, "immutable", "cuda")
    x.delete()
    others = [jax.numpy.full(5, 3.0).block_until_ready() for _ in range(4)]
    assert (np.asarray(a.to_host()) == 7).all()
    assert all(other.unsafe_buffer_pointer() != address for other in others)
    with pytest.raises(BufferError, match="deleted"):
        asarray(x)
    near = jax.device_put(np.arange(4.0, dtype="f4"), jax.devices("cpu")[0])
    assert asarray(near).device == arrayhub.Device("cpu")
    assert asarray(jax.numpy.zeros(3)).device.type == "cuda"


def test_jax_arrays_are_imported_without_the_private_function_of_jaxlib(jax):
    """Without the private function, GPU arrays are imported through ``__dlpack__``."""
    python(
        """
    import os, sys, types
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax, numpy as np
    import arrayhub
    x = jax.numpy.full(5, 7.0)
    assert hasattr(sys.modules["jaxlib._jax"], "buffer_to_dlpack_managed_tensor")
    sys.modules["jaxlib._jax"] = types.ModuleType("jaxlib._jax")
    for stream in (None, 1, -1):
        for turn in range(3):
            a = arrayhub.asarray(jax.numpy.full(5, float(turn)), stream=stream)
            assert a.device.type == "cuda" and a.access == "immutable"
            assert np.array_equal(arrayhub.to_host(a), np.full(5, turn))
    """
    )


def test_jax_imports_device_memory(jax, cp):
    x = ramp(cp, "f4")
    y = jax.dlpack.from_dlpack(asarray(x))
    assert (np.asarray(y) == x.get()).all()
    assert y.unsafe_buffer_pointer() == x.data.ptr


# ---------------------------------------------------------------------------------------------------------- numba


def test_numba_round_trip_shares_memory(cuda, cp):
    x = cuda.to_device(np.arange(12, dtype="f4").reshape(3, 4))
    a = asarray(x)
    assert a.shape == (3, 4)
    assert a.ptr == x.__cuda_array_interface__["data"][0]
    assert a.protocol == "cuda"
    assert arrayhub.as_numba(x) is x and arrayhub.as_numba(a) is x
    assert arrayhub.as_numba(a[1:]) is not x and arrayhub.as_numba(x, copy=True) is not x
    assert (arrayhub.as_cupy(a).get() == np.arange(12).reshape(3, 4)).all()
    y = cuda.as_cuda_array(a)
    assert y.__cuda_array_interface__["data"][0] == a.ptr
    assert (y.copy_to_host() == np.arange(12).reshape(3, 4)).all()


def test_numba_records_keep_their_fields(cuda):
    dtype = np.dtype([("x", "i4"), ("y", "f8")])
    host = np.zeros(3, dtype)
    host["y"] = 2.5
    x = cuda.to_device(host)
    a = asarray(x)
    assert a.dtype == dtype
    assert (np.asarray(arrayhub.to_host(a)) == host).all()
    assert (np.asarray(arrayhub.to_host(a["y"])) == 2.5).all()


def test_numba_kernel_accepts_the_array(cuda, cp, kernels):
    @cuda.jit
    def double(out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] *= 2

    x = cp.arange(100, dtype="f4")
    double[4, 32](asarray(x))
    cuda.synchronize()
    assert (x.get() == 2 * np.arange(100)).all()


# ------------------------------------------------------------------------------------------------------ cuda.core


def _cuda_core():
    core = pytest.importorskip("cuda.core", reason="cuda.core")
    if not hasattr(core, "Device"):
        core = pytest.importorskip("cuda.core.experimental")
    return core


def test_cuda_core_buffer_is_imported(cp):
    core = _cuda_core()
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    a = asarray(buffer)
    assert a.nbytes == 64
    assert a.ptr == int(buffer.handle)
    assert a.device == arrayhub.Device(device)
    y = arrayhub.as_cupy(a)
    y[...] = 3
    assert (cp.asarray(y).get() == 3).all()
    assert asarray(buffer, stream=stream).__cuda_array_interface__["stream"] == int(stream.handle)


def test_cuda_core_views_an_array(cp):
    utils = pytest.importorskip("cuda.core.utils", reason="cuda.core")
    x = ramp(cp, "f4")[:, ::2]
    view = utils.StridedMemoryView(asarray(x), stream_ptr=-1)
    assert (view.ptr, tuple(view.shape), tuple(view.strides)) == (x.data.ptr, (4, 3), (6, 2))
    assert view.is_device_accessible
    if hasattr(view, "__dlpack__"):
        assert asarray(view).ptr == x.data.ptr


# ------------------------------------------------------------------------------------------------- many rounds


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_repeated_exchanges_do_not_leak_references(library, request):
    cp = request.getfixturevalue("cp" if library == "cupy" else "torch")
    x = ramp(cp, "f4") if library == "cupy" else cp.ones((3, 4), device="cuda")
    before = sys.getrefcount(x)
    for _ in range(5_000):
        a = asarray(x)
        assert a.__cuda_array_interface__
        a.__dlpack__(stream=2, max_version=(1, 0))
        arrayhub.convert(a, library)
    del a
    gc.collect()
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("change", ["data", "set_", "half", "storage known to Python"])
def test_array_outlives_the_storage_of_its_tensor(change):
    """If the storage were freed, torch would reuse its memory for the tensors in `others`."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(1 << 20, 1, bias=False).cuda().requires_grad_(False)
    tensor = module.weight
    tensor.fill_(7)
    storage = tensor.untyped_storage() if change == "storage known to Python" else None
    x = arrayhub.asarray(tensor)
    if change == "set_":
        tensor.set_(torch.zeros(2, device="cuda"))
    elif change == "half":
        module.half()
    else:
        tensor.data = torch.zeros(2, device="cuda")
    del storage
    others = [torch.full((1, 1 << 20), 3.0, device="cuda") for _ in range(4)]
    assert (arrayhub.as_torch(x) == 7).all()
    assert all((other == 3).all() for other in others)
    before = torch.cuda.memory_allocated()
    del x
    assert torch.cuda.memory_allocated() == before - (1 << 22)


def test_empty_float8_array_does_not_raise_assertion_error():
    """torch raises an AssertionError for the null pointer. `as_torch` must not propagate it."""
    torch = pytest.importorskip("torch")
    x = arrayhub.asarray(torch.empty((0, 3), dtype=torch.float8_e5m2, device="cuda"))
    try:
        shape = arrayhub.as_torch(x).shape
    except BufferError as error:
        said = str(error)
    else:
        said = f"torch: {tuple(shape)}"
    assert said.startswith("torch: ") and "AssertionError" not in said
