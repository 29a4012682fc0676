"""Test `convert` with names, modules and types of libraries as `to`."""

import importlib
import sys
import types

import numpy as np
import pytest

import arrayhub as ah

SPELLINGS = [
    ("np", "numpy", "ndarray"), ("NumPy", "numpy", "ndarray"), ("pytorch", "torch", "Tensor"),
    ("PyTorch", "torch", "Tensor"), ("jnp", "jax", "Array"), ("jax.numpy", "jax", "Array"),
    ("pyarrow", "pyarrow", "Array"),
    ("pa", "pyarrow", "Array"), ("pl", "polars", "Series"), ("pd", "pandas", "Series"), ("ak", "awkward", "Array"),
    ("xr", "xarray", "DataArray"), ("xarray", "xarray", "DataArray"), ("dpctl", "dpnp", "ndarray"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "library", "cls"), SPELLINGS)
def test_common_spellings_of_library_names_are_accepted(spelling, library, cls):
    module = pytest.importorskip(library)
    result = ah.convert(np.ones(3, "f4"), spelling, copy=True)
    assert isinstance(result, getattr(module, cls))
    assert isinstance(ah.convert(np.ones(3, "f4"), getattr(module, cls), copy=True), getattr(module, cls))


@pytest.mark.parametrize(
    "name",
    ["numpy", "torch", "jax", "jax.numpy", "pyarrow", "polars", "pandas", "xarray", "awkward", "array_api_strict"],
)
def test_modules_and_their_types_are_accepted(name):
    root = name.partition(".")[0]
    pytest.importorskip(root)
    module = importlib.import_module(name)
    result = ah.convert(np.ones(3, "f4"), module, copy=None)
    assert type(result).__module__.startswith(root)
    assert isinstance(ah.convert(np.ones(3, "f4"), type(result), copy=None), type(result))


def test_arrayhub_types_are_accepted():
    assert type(ah.convert(np.ones(3), ah)) is ah.USMArray
    assert type(ah.convert(np.ones(3), "USMArray")) is ah.USMArray
    assert type(ah.convert([[1], [2, 3]], ah.NestedArray)) is ah.NestedArray


def test_error_contains_the_message_of_the_librarys_from_dlpack(monkeypatch):
    pytest.importorskip("dpctl.memory")

    def from_dlpack(array):
        if array.__dlpack_device__()[0] != 1:
            raise RuntimeError("unsupported device")
        raise RuntimeError("call init() first")

    monkeypatch.setitem(sys.modules, "uninitialized", types.SimpleNamespace(from_dlpack=from_dlpack))
    shared, device = ah.ones(3, memory="usm_shared"), ah.ones(3, memory="usm_device")
    for x, copy in ((np.ones(3), False), (shared, False), (shared, True), (device, True)):
        with pytest.raises(BufferError, match=r"^convert: uninitialized\.from_dlpack rejects .*: call init\(\) first"):
            ah.convert(x, "uninitialized", copy=copy)
    with pytest.raises(BufferError, match=r"rejects .*: unsupported device; accepted: copy=True"):
        ah.convert(device, "uninitialized")


def test_classes_with_from_dlpack_are_accepted():
    onnxruntime = pytest.importorskip("onnxruntime")
    x = np.arange(3, dtype="f4")
    for to in ("onnxruntime.OrtValue", onnxruntime.OrtValue):
        result = ah.convert(x, to)
        assert isinstance(result, onnxruntime.OrtValue)
        assert result.numpy().tolist() == [0, 1, 2]
        assert ah.asarray(result).ptr == x.ctypes.data


NEAREST = {"numpi": "numpy", "pytroch": "torch", "panda": "pandas", "pyarow": "arrow"}
NOT_NAMES = ["quaternions", "dask", 3, int, None, ["numpy"], {}]


@pytest.mark.parametrize("to", [*NEAREST, *NOT_NAMES], ids=str)
def test_nearest_name_is_suggested(to):
    with pytest.raises(ValueError, match="convert: to is .*accepted: numpy, torch") as info:
        ah.convert(np.ones(3), to)
    near = NEAREST.get(to) if isinstance(to, str) else None
    assert (f"did you mean {near!r}?" in str(info.value)) if near else ("did you mean" not in str(info.value))


PILLOW, TENSORFLOW = "PIL.Image.fromarray(arrayhub.as_numpy(x))", "tensorflow.convert_to_tensor(arrayhub.as_numpy(x))"
ELSEWHERE = [("pil", PILLOW), ("Pillow", PILLOW), ("tf", TENSORFLOW), ("tensorflow", TENSORFLOW)]


@pytest.mark.parametrize(("name", "call"), ELSEWHERE)
def test_error_for_a_library_that_convert_does_not_export_to_names_a_call(name, call):
    for function in (lambda: ah.convert(np.ones(3), name), lambda: ah.adapt(name)):
        with pytest.raises(ValueError) as caught:
            function()
        assert str(caught.value).endswith(f". For an array of this library, use {call}")
        assert "did you mean" not in str(caught.value)


NOT_IN_THE_TABLE = ["this", "antigravity", "pil", "tf", "tensorflow", "mlx.core", "numpy.ndarray", "json", "this.s"]


@pytest.mark.parametrize("name", NOT_IN_THE_TABLE)
@pytest.mark.parametrize("call", [ah.convert, lambda x, to: ah.adapt(to), lambda x, to: ah.placement(x, prefer=to)])
def test_a_string_never_imports_a_module(call, name):
    before = set(sys.modules)
    with pytest.raises(ValueError, match="import it, and pass the module or the class itself") as info:
        call(np.ones(3), name)
    assert name.partition(".")[0] in before or name.partition(".")[0] not in sys.modules
    assert ("did you mean 'numpy'?" in str(info.value)) == (name == "numpy.ndarray")
