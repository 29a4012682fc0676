"""torch's functions return correct results for a USMArray, or raise before torch reads wrong values or crashes."""

import contextlib
import hashlib
import io
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from children import python

import arrayhub as ah

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


@pytest.mark.parametrize("name", READERS)
def test_negative_strides_do_not_end_the_process(name):
    code = f"""
import numpy as np, torch, arrayhub
try:
    torch.{name}(arrayhub.asarray(np.arange(6.0))[::-2])
except BufferError as error:
    print(error)
"""
    assert "as_torch(x, copy=True)" in python(code)


@pytest.mark.parametrize("name", ["from_dlpack", "as_tensor"])
def test_read_only_memory_causes_a_warning(name):
    """arrayhub warns, as torch does for read-only NumPy arrays, because torch ignores DLPack's read-only flag."""
    take = getattr(torch, name)
    for x in (ah.asarray(b"hello"), ah.asarray(np.broadcast_to(np.zeros(1), 3))):
        with pytest.warns(UserWarning, match="read-only.*allow_readonly") as caught:
            assert take(x).tolist() == np.asarray(x).tolist()
        assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        take(ah.asarray(np.zeros(3)))
        ah.as_torch(x, allow_readonly=True)
        np.from_dlpack(x)


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


def test_torch_is_recognized_in_any_folder(tmp_path):
    """torch is recognized even if it is installed below a folder named arrayhub, such as a checkout of this package."""
    (tmp_path / "arrayhub").mkdir()
    (tmp_path / "arrayhub" / "torch").symlink_to(Path(torch.__file__).parent)
    code = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np, torch, arrayhub
assert torch.__file__.startswith(sys.argv[1])
warnings.simplefilter("ignore")
try:
    torch.asarray(arrayhub.asarray(np.arange(3.0)))
except (RuntimeError, ValueError):
    print("refused")
"""
    assert python(code, str(tmp_path / "arrayhub")) == "refused\n"


def test_other_consumers_accept_negative_strides():
    x = ah.asarray(np.arange(3.0))[::-1]
    assert np.from_dlpack(x).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("a", [np.arange(3.0), np.arange(3, dtype="u1"), np.array(1.5), np.frombuffer(b"abcd", "i4")])
@pytest.mark.parametrize("read", [torch.asarray, lambda x: torch.frombuffer(x, dtype=torch.uint8)])
def test_torch_functions_that_read_raw_bytes_warn_and_raise(a, read):
    with pytest.warns(RuntimeWarning, match=r"arrayhub\.as_torch\(x\)"), pytest.raises((RuntimeError, ValueError)):
        read(ah.asarray(a))


def test_an_interrupt_during_the_warning_is_not_lost(monkeypatch):
    """An interrupt is sent again as a signal, because torch discards exceptions of its buffer request."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    def read(x):
        with contextlib.suppress(RuntimeError):
            torch.asarray(x)
        for _ in range(100):  # Python handles signals at the end of each iteration
            pass

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(warnings, "showwarning", interrupted)
            with pytest.raises(KeyboardInterrupt):
                read(ah.asarray(np.arange(3.0)))
    finally:
        signal.signal(signal.SIGINT, before)


def test_bytes_are_exported_to_other_consumers():
    a = np.arange(3.0)
    x = ah.asarray(a)
    file = io.BytesIO()
    file.write(x)
    assert file.getvalue() == bytes(x) == a.tobytes()
    assert hashlib.sha256(x).digest() == hashlib.sha256(a).digest()
    np.testing.assert_array_equal(np.frombuffer(x, "f8"), a)
    assert torch.frombuffer(memoryview(x), dtype=torch.float64).tolist() == a.tolist()
    assert file.seek(0) == file.seek(0) and file.readinto(x) == a.nbytes


def test_python_code_called_by_torch_may_request_bytes():
    """arrayhub checks only the direct caller of the buffer request, and ignores torch further up in the stack."""
    written = []

    class Tensor(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            written.append(hashlib.sha256(ah.asarray(np.arange(3.0))).digest())
            return 0

    torch.add(torch.ones(2).as_subclass(Tensor), 1)
    assert written


BACKWARDS = {
    "device": "torch.from_dlpack(x, device='cpu')",
    "copy=False": "torch.from_dlpack(x, device='cpu', copy=False)",
    "by name": "arrayhub.convert(x, 'torch.utils.dlpack')",
    "by the name of another module": "arrayhub.convert(x, 'reader')",
}


@pytest.mark.parametrize("memory", ["host", "shared"])
@pytest.mark.parametrize("call", BACKWARDS)
def test_export_of_negative_strides_to_torch_functions_raises(call, memory):
    """torch.from_dlpack with a device, and `convert` with a module name, must not fall back to another protocol."""
    if memory == "shared":
        pytest.importorskip("dpctl")
    made = "asarray(np.arange(6.0))" if memory == "host" else "USMArray((6,), 'f8', buffer='shared')"
    code = f"""
import sys, types
import numpy as np, torch, torch.utils.dlpack, arrayhub
sys.modules["reader"] = types.SimpleNamespace(from_dlpack=lambda x: torch.from_dlpack(x))
x = arrayhub.{made}[::-1]
try:
    {BACKWARDS[call]}
except (BufferError, ValueError) as error:
    print(error)
"""
    # With copy=False, torch itself rejects a device that is not the producer's.
    by_torch = memory == "shared" and call == "copy=False"
    assert ("without copying" if by_torch else "negative, and torch ends the process") in python(code)


@pytest.mark.parametrize("name", READERS)
def test_export_of_usm_with_negative_strides_to_torch_functions_raises(name):
    pytest.importorskip("dpctl")
    code = f"""
import torch, arrayhub
try:
    torch.{name}(arrayhub.USMArray((4,), "f8", buffer="shared")[::-1])
except BufferError as error:
    print(error)
"""
    assert "as_torch(x, copy=True)" in python(code)


def test_copy_of_negative_strides_is_accepted():
    x = ah.asarray(np.arange(3.0))[::-1]
    assert ah.convert(x, "torch.utils.dlpack", copy=True).tolist() == [2.0, 1.0, 0.0]
    assert torch.from_dlpack(x, copy=True).tolist() == [2.0, 1.0, 0.0]
