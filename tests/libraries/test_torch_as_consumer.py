"""torch's functions receive the exports of a USMArray that every consumer receives.

docs/conformance.md lists the exports that torch misreads.
"""

import numpy as np
import pytest
from children import python

import arrayhub as ah

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

READERS = ("from_dlpack", "utils.dlpack.from_dlpack", "as_tensor", "tensor")


def reader(name):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    return function


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c8"])
def test_torch_functions_read_the_right_values(name, dtype):
    a = np.arange(6).astype(dtype).reshape(2, 3)
    for view in (a, a.T, a[:, ::2]):
        np.testing.assert_array_equal(reader(name)(ah.asarray(view)).numpy(), view)


MEMORY = {"host": "asarray(np.arange(6.0))", "shared USM": "USMArray((6,), 'f8', buffer='shared')"}


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize(
    "call", ["torch.from_dlpack(x)", "torch.as_tensor(x)", "torch.tensor(x)", "read(x)", "np.from_dlpack(x)"]
)
def test_dlpack_export_of_negative_strides_raises_for_every_consumer(call, memory):
    """torch aborts the process for negative strides (pytorch/pytorch#188023), also if other functions call torch's."""
    if memory != "host":
        pytest.importorskip("dpctl")
    code = f"""
import numpy as np, torch, arrayhub
def read(x):
    return torch.utils.dlpack.from_dlpack(x)
x = arrayhub.{MEMORY[memory]}[::-2]
try:
    {call}
except BufferError as error:
    print(error)
"""
    assert "as_torch(x, copy=True)" in python(code)


def test_array_with_negative_strides_is_exported_as_a_copy():
    x = ah.asarray(np.arange(3.0))[::-1]
    assert ah.convert(x, torch.utils.dlpack, copy=True).tolist() == [2.0, 1.0, 0.0]
    for made in (torch.from_dlpack(x, copy=True), np.from_dlpack(x, copy=True), np.asarray(x), ah.as_numpy(x)):
        assert made.tolist() == [2.0, 1.0, 0.0]


def test_copies_have_memory_in_a_fake_mode():
    with torch._subclasses.FakeTensorMode():  # rejects clone()
        made = ah.as_torch(np.arange(3.0), copy=True)
    assert type(made) is torch.Tensor and made.tolist() == [0, 1, 2]


def test_read_only_memory_has_the_flag_in_its_capsule():
    """torch ignores the flag (pytorch/pytorch#44027); as_torch does not."""
    x = ah.asarray(b"hello")
    assert not ah.asarray(x.__dlpack__(max_version=(1, 0))).flags.writeable
    assert torch.from_dlpack(x).tolist() == list(b"hello")
    with pytest.raises(BufferError, match="read-only"):
        ah.as_torch(x)


def test_negative_stride_of_a_dimension_of_length_1_is_accepted():
    x = ah.asarray(np.arange(6.0).reshape(2, 3))
    assert torch.from_dlpack(x[:1, :][::-1, ::2]).tolist() == [[0.0, 2.0]]


@pytest.mark.skipif(torch.version.xpu is not None, reason="this torch supports oneAPI devices")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["shared", "host"])
def test_torch_without_xpu_imports_host_readable_usm_as_host_memory(name, kind):
    pytest.importorskip("dpctl")
    x = ah.USMArray((2, 3), "f4", buffer=kind)
    x[...] = np.arange(6).reshape(2, 3)
    with pytest.raises(RuntimeError, match="XPU"):
        reader(name)(x)
    for t in (reader(name)(x.to_host()), ah.as_torch(x)):
        assert t.device.type == "cpu" and t.tolist() == x.tolist()
        assert t.data_ptr() == x.ptr or name == "tensor"
