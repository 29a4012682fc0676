"""Test `like`, `placement` and `adapt` with CUDA libraries: devices, streams and conflicts."""

import numpy as np
import pytest

import arrayhub as ah

LIBRARIES = ("cupy", "torch", "jax", "numba")
FIXTURES = {"cupy": "cp", "torch": "torch", "jax": "jax", "numba": "cuda"}
CUDA = ah.Device("cuda:0")
VALUES = np.arange(12, dtype="f4").reshape(3, 4)


def made(request, name, values=VALUES):
    """Return an array of the library `name` on the device, and its type."""
    library = request.getfixturevalue(FIXTURES[name])
    if name == "cupy":
        return library.asarray(values), library.ndarray
    if name == "torch":
        return library.as_tensor(values, device="cuda"), library.Tensor
    if name == "jax":
        return library.numpy.asarray(values), library.Array
    array = library.to_device(values)
    return array, type(array)


def on_host(x):
    return np.asarray(ah.to_host(ah.asarray(x)))


@pytest.mark.parametrize("target", LIBRARIES)
@pytest.mark.parametrize("source", LIBRARIES)
def test_like_converts_between_each_pair_of_libraries(request, source, target):
    x, _ = made(request, source)
    model, cls = made(request, target, np.zeros(2, "f4"))
    result = ah.like(x, model, copy=None)
    assert isinstance(result, cls), f"{source} to {target}: {type(result)}"
    array = ah.asarray(result)
    assert array.device == CUDA and array.shape == (3, 4), f"{source} to {target}: {array!r}"
    assert (on_host(result) == VALUES).all(), f"{source} to {target}: {on_host(result)}"
    if "jax" not in (source, target):  # jax may copy, and its arrays are immutable
        assert array.ptr == ah.asarray(x).ptr, f"{source} to {target}: the memory was copied"


@pytest.mark.parametrize("target", LIBRARIES)
def test_like_copies_to_the_device_and_back(request, target):
    model, cls = made(request, target, np.zeros(2, "f4"))
    with pytest.raises(BufferError, match=r"like: the memory is on cpu, but the model is on cuda:0; .* Pass copy=None"):
        ah.like(VALUES, model, copy=False)
    there = ah.like(VALUES.astype("f8"), model, dtype="model")
    assert isinstance(there, cls), f"to {target}: {type(there)}"
    assert ah.asarray(there).device == CUDA and ah.asarray(there).dtype == "f4"
    with pytest.raises(BufferError, match=r"like: the memory is on cuda:0; accepted: memory on cpu. Pass copy=None"):
        ah.like(there, VALUES, copy=False)
    back = ah.like(there, VALUES)
    assert type(back) is np.ndarray, f"from {target}: {type(back)}"
    assert (back == VALUES).all(), f"from {target}: {back}"


@pytest.mark.parametrize("target", LIBRARIES)
def test_like_casts_to_the_dtype_of_the_model(request, target):
    model, cls = made(request, target, np.zeros(2, "f4"))
    x, _ = made(request, "cupy", VALUES.astype("f8"))
    result = ah.like(x, model, copy=None, dtype="model")
    assert isinstance(result, cls) and ah.asarray(result).dtype == "f4", f"to {target}: {type(result)}"
    assert ah.asarray(result).device == CUDA and (on_host(result) == VALUES).all()


def test_autograd_leaf_can_be_a_model(torch, cp):
    leaf = torch.nn.Parameter(torch.ones(3, device="cuda"))
    result = ah.like(cp.arange(3.0), leaf, dtype="model", copy=None)
    assert type(result) is torch.Tensor and result.is_cuda and result.dtype == torch.float32
    place = ah.placement(np.ones(3), leaf)
    assert (place.library, place.device) == ("torch", CUDA)
    assert place.stream == ah.placement(torch.ones(3, device="cuda")).stream


# ----------------------------------------------------------------------------------------------------------- placement


@pytest.mark.parametrize("name", LIBRARIES)
def test_device_memory_takes_precedence(request, name):
    x, cls = made(request, name)
    place = ah.placement(np.ones(2), [1.0], x)
    assert (place.library, place.device) == (name, CUDA), repr(place)
    assert place == ah.placement(x) and hash(place) == hash(ah.placement(x))
    assert place.asarray(VALUES, copy=None).device == CUDA
    assert isinstance(place.convert(VALUES, copy=None), cls), name
    with pytest.raises(BufferError, match="placement: the memory is on cpu, but the model is on cuda:0"):
        place.convert(VALUES, copy=False)


@pytest.mark.parametrize("first", LIBRARIES)
def test_first_of_two_libraries_takes_precedence(request, first):
    second = "torch" if first == "cupy" else "cupy"
    x, y = made(request, first)[0], made(request, second)[0]
    assert ah.placement(x, y).library == first
    assert ah.placement(x, y, prefer=second).library == second
    assert ah.placement(x, y, prefer=y).library == second


def test_prefer_accepts_a_device_name(cp):
    place = ah.placement(VALUES, prefer="cuda:0")
    assert (place.library, place.device, place.stream) == ("arrayhub", CUDA, None)
    assert place.convert(VALUES, copy=None).device == CUDA
    assert ah.placement(VALUES, cp.ones(2), prefer="cuda:0").library == "cupy"


def test_placement_has_the_current_stream_of_cupy(cp):
    x = cp.ones(3)
    assert ah.placement(x).stream == 1, "the legacy default stream"
    own = cp.cuda.Stream(non_blocking=True)
    with own:
        place = ah.placement(np.ones(3), x)
    assert place.stream == own.ptr


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_placement_has_the_current_stream_of_torch(torch, dtype):
    """torch's dict does not contain the stream, and tensors of bfloat16 do not have a dict."""
    x = torch.ones(3, device="cuda", dtype=getattr(torch, dtype))
    assert ah.placement(x).stream == 1, "the legacy default stream"
    own = torch.cuda.Stream()
    with torch.cuda.stream(own):
        place = ah.placement(x)
    assert place.stream == own.cuda_stream


@pytest.mark.parametrize("name", ["jax", "numba"])
def test_placement_of_jax_and_numba_has_the_default_stream(request, name):
    x, _ = made(request, name)
    assert ah.placement(x).stream == 1, name


def test_work_on_the_stream_of_the_placement_runs_after_the_producer(cp, torch, spin):
    """A copy on `Placement.stream` runs after the slow kernel that fills the array."""
    ours = cp.cuda.Stream(non_blocking=True)
    x, seen = cp.zeros(1 << 16, "f4"), cp.zeros(1 << 16, "f4")
    cp.cuda.Device().synchronize()
    for value in range(1, 6):
        with ours:
            spin()
            x.fill(value)
            place = ah.placement(x)
        with cp.cuda.ExternalStream(place.stream):
            seen[...] = x
            read = seen.get()
        assert (read == value).all(), f"round {value}: read {read[0]}"


def test_placement_convert_waits_for_the_producer(cp, torch, spin):
    ours, theirs = cp.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    x = cp.zeros(1 << 16, "f4")
    place = ah.placement(torch.ones(1, device="cuda"))
    cp.cuda.Device().synchronize()
    for value in range(1, 6):
        with ours:
            spin()
            x.fill(value)
            a = ah.asarray(x)
        with torch.cuda.stream(theirs):
            y = place.convert(a).clone()
        theirs.synchronize()
        assert (y.cpu() == value).all(), f"round {value}: read {y[0].item()}"


def test_error_for_conflicting_devices_names_both_arguments(cp):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device")
    x = cp.ones(2)
    with cp.cuda.Device(1):
        y = cp.ones(2)
    with pytest.raises(ValueError, match="argument 2 is on cuda:0, and argument 3 on cuda:1; accepted: one device"):
        ah.placement(np.ones(2), x, y)


# --------------------------------------------------------------------------------------------------------------- adapt


@pytest.mark.parametrize("name", LIBRARIES)
def test_adapted_functions_return_the_array_type_of_the_argument(request, cp, name):
    @ah.adapt("cupy", device="cuda:0")
    def double(x, shift=0):
        assert type(x) is cp.ndarray
        return x * 2 + shift

    x, cls = made(request, name)
    result = double(x, shift=1)
    assert isinstance(result, cls) and (on_host(result) == VALUES * 2 + 1).all(), f"{name}: {type(result)}"
    assert ah.asarray(result).device == CUDA
    assert type(double(VALUES)) is np.ndarray and (double(VALUES) == VALUES * 2).all()


def test_functions_adapted_to_numpy_accept_device_arrays_with_device(request, cp):
    @ah.adapt("numpy", device="cpu")
    def double(x):
        return x * 2

    result = double(cp.asarray(VALUES))
    assert type(result) is cp.ndarray and (result.get() == VALUES * 2).all()

    @ah.adapt("numpy")
    def strict(x):
        return x

    with pytest.raises(BufferError, match="strict: x: .*Pass device='cpu' to arrayhub.adapt"):
        strict(cp.asarray(VALUES))
