"""Test that arrays are passed to and returned by an onnxruntime session without copies."""

import numpy as np
import pytest

import arrayhub as ah

pytestmark = pytest.mark.slow

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def session():
    """Return a session of the model y = x + x."""
    n = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "double", n[:1], n[1:])
    opsets = [onnx.helper.make_opsetid("", 20)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(session, x):
    """Run the session. Return its output as a USMArray, and the OrtValue of the input."""
    value = ah.convert(x, "onnxruntime.OrtValue", copy=None)
    (y,) = session.run_with_ort_values(["y"], {"x": value})
    return ah.asarray(y), value


def test_session_reads_memory_of_the_caller(session):
    x = np.arange(3, dtype="f4")
    y, value = run(session, x)
    assert value.data_ptr() == x.ctypes.data
    assert ah.as_numpy(y).tolist() == [0, 2, 4]


def test_numpy_view_of_an_output_keeps_its_memory_alive(session):
    (value,) = session.run_with_ort_values(["y"], {"x": ah.convert(np.ones(3, "f4"), "onnxruntime.OrtValue")})
    y = ah.as_numpy(value)
    assert y.ctypes.data == value.data_ptr()
    del value
    assert y.tolist() == [2, 2, 2]


def test_torch_tensors_are_read_without_a_copy(session):
    torch = pytest.importorskip("torch")
    x = torch.arange(3, dtype=torch.float32)
    y, value = run(session, x)
    assert value.data_ptr() == x.data_ptr()
    tensor = ah.as_torch(y, allow_readonly=True)
    assert tensor.tolist() == [0, 2, 4] and tensor.data_ptr() == y.ptr


def test_shared_usm_is_read_without_a_copy(session):
    dpctl = pytest.importorskip("dpctl")
    if not dpctl.get_num_devices():
        pytest.skip("no SYCL device")
    x = ah.USMArray(3, "f4", buffer="shared")
    ah.as_numpy(x)[:] = [1, 2, 3]
    y, value = run(session, x)
    assert value.data_ptr() == x.ptr and ah.as_numpy(y).tolist() == [2, 4, 6]


def test_strided_arrays_require_copy_true():
    x = np.arange(6, dtype="f4")[::2]
    with pytest.raises(BufferError, match=r"onnxruntime\.OrtValue\.from_dlpack rejects .*; accepted: copy=True"):
        ah.convert(x, "onnxruntime.OrtValue")
    assert ah.convert(x, "onnxruntime.OrtValue", copy=True).numpy().tolist() == [0, 2, 4]


def test_unknown_target_names_raise():
    for name in ("onnxruntime.NoClass", "onnxruntime.get_device", "no_module.Class", "onnxruntime."):
        with pytest.raises(ValueError, match="accepted: numpy, .* module or class"):
            ah.convert(np.zeros(3), name)
