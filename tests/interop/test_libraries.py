"""Test every row of docs/libraries.md, in one process per library.

Libraries that are not in the extra ``test-all`` are tested if they are installed.
"""

import numpy as np
import pytest
from libraries.one import MISSING
from libraries.page import PAGE, ran, versions, written
from libraries.table import LIBRARIES
from numpy_release import FROM_DLPACK_WRITES, needs_dlpack_1

import arrayhub as ah

pytestmark = pytest.mark.slow


def asked(library):
    """Return a library as a test parameter. Skip numpy and array_api_strict if NumPy exports only legacy capsules."""
    marks = needs_dlpack_1 if library.name in ("numpy", "array_api_strict") else ()
    return pytest.param(library, id=library.name, marks=marks)


@pytest.mark.parametrize("library", [asked(library) for library in LIBRARIES])
def test_library_behaves_as_documented(library):
    status, said, errors = ran(library)
    if status == MISSING:
        pytest.skip(f"{library.name} is {'part of' if library.in_extra else 'not part of'} the extra test-all: {said}")
    assert status == 0, errors


def test_page_equals_the_tables():
    assert PAGE.read_text() == written(versions()), (
        "docs/libraries.md is out of date; run python -m tests.support.libraries"
    )


def test_page_has_the_version_of_every_library():
    assert set(versions()) == {library.name for library in LIBRARIES}


# ---- exports that do not depend on the consumer


@pytest.fixture
def shared():
    pytest.importorskip("dpctl")
    x = ah.USMArray((8,), dtype="f4", buffer="shared")
    np.asarray(x)[:] = range(8)
    return x


@needs_dlpack_1
def test_shared_usm_is_exported_with_its_sycl_device(shared):
    assert shared.__dlpack_device__() == (14, 0)
    seen = np.from_dlpack(shared, device="cpu")
    assert seen.ctypes.data == shared.ptr and seen.flags.writeable is FROM_DLPACK_WRITES
    back = ah.from_dlpack(shared)
    assert back.device == shared.device and back.usm_type == "shared"
    dpnp = pytest.importorskip("dpnp")
    assert ah.asarray(dpnp.from_dlpack(shared)).usm_type == "shared"


@needs_dlpack_1
def test_device_memory_is_copied_to_the_host_for_a_library_without_sycl():
    """The error suggests ``copy=True``, and the call with ``copy=True`` works."""
    pytest.importorskip("dpctl")
    pytest.importorskip("array_api_strict")
    x = ah.asarray(np.arange(3.0)).to_device("oneapi:0")
    with pytest.raises(BufferError, match="accepted: copy=True"):
        ah.convert(x, "array_api_strict")
    assert ah.asarray(ah.convert(x, "array_api_strict", copy=True)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("take", ["numpy", "jax", "torch"])
def test_errors_for_device_memory_suggest_a_copy(take):
    pytest.importorskip("dpctl")
    pytest.importorskip(take)
    x = ah.USMArray((8,), dtype="f4", buffer="device")
    with pytest.raises(ah.Refusal) as raised:
        getattr(ah, f"as_{take}")(x)
    assert raised.value.call == f"arrayhub.as_{take}(x, device='cpu')"
    assert eval(raised.value.call, {"arrayhub": ah, "x": x}).shape == (8,)


# ------------------------------------------------------------------------------------- convert to a library by its name


@needs_dlpack_1
def test_convert_accepts_the_name_of_a_module():
    x = np.arange(4.0)
    strict = pytest.importorskip("array_api_strict")
    y = ah.convert(x, "array_api_strict")
    assert type(y) is type(strict.zeros(1)) and ah.asarray(y).ptr == x.ctypes.data
    assert ah.asarray(ah.convert(x, "array_api_strict", copy=True)).ptr != x.ctypes.data
    assert ah.asarray(ah.convert(memoryview(b"abc"), "array_api_strict")).access == "readonly"


@pytest.mark.parametrize(
    "name", ["os", "no_such_module", "tensorflow", "", ".", "..x", "numpy.", "a b", "arrayhub;", b"os", 3, None, []]
)
def test_unknown_library_name_raises(name):
    with pytest.raises((ValueError, TypeError), match="to is.*numpy, torch, jax|unhashable"):
        ah.convert(np.arange(3.0), name)


def written_module(tmp_path, monkeypatch, text):
    (tmp_path / "taker.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "taker", raising=False)
    with pytest.raises(ValueError, match="import it, and pass the module"):
        ah.convert(np.ones(3), "taker")
    return __import__("taker")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import numpy\nfrom_dlpack = lambda x: numpy.from_dlpack(x).copy()",
            "copies the memory although no copy was requested",
        ),
        ("import numpy\nfrom_dlpack = lambda x: numpy.from_dlpack(x)[::-1]", "copies the memory"),
        ("from_dlpack = lambda x: object()", "cannot determine whether"),
        ("def from_dlpack(x): raise KeyError('no')", "rejects USMArray"),
        ("import arrayhub\nfrom_dlpack = lambda x: arrayhub.as_torch(x, allow_readonly=True)", "is read-only"),
    ],
    ids=["copies", "another view", "unknown memory", "raises", "drops the read-only flag"],
)
@needs_dlpack_1
def test_convert_raises_if_a_library_breaks_the_copy_rules(tmp_path, monkeypatch, text, words):
    if "torch" in text:
        pytest.importorskip("torch")
    taker = written_module(tmp_path, monkeypatch, text)
    x = np.arange(4.0)
    x.flags.writeable = False
    with pytest.raises(BufferError, match=words):
        ah.convert(x, taker)


def test_types_that_a_library_does_not_have_are_narrowed_only_on_request():
    mlx = pytest.importorskip("mlx.core")
    model = mlx.ones(2)
    for values, narrow in (([1.5, 0.1], "float32"), ([1 + 2j, 2], "complex64")):
        x = np.array(values)
        for copy in (None, True):
            with pytest.raises(ah.Refusal, match=rf"converts elements of {x.dtype} to {narrow}.*dtype='{narrow}'"):
                ah.convert(x, mlx, copy=copy)
        assert ah.asarray(ah.convert(x, mlx, dtype=narrow)).tolist() == x.astype(narrow).tolist()
    assert ah.like(np.array([1.5, 0.1]), model).tolist() == np.array([1.5, 0.1], "f4").tolist()
    with pytest.raises(OverflowError, match=r"1e\+300 is out of the range of float32"):
        ah.like(np.array([1e300]), model)


def test_read_only_memory_in_a_legacy_capsule_needs_allow_readonly(tmp_path, monkeypatch):
    taker = written_module(tmp_path, monkeypatch, "import arrayhub\nfrom_dlpack = lambda x: arrayhub.as_torch(x)")
    pytest.importorskip("torch")
    x = np.arange(4.0)
    x.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        ah.convert(x, taker)
    assert ah.convert(x, taker, allow_readonly=True).data_ptr() == x.ctypes.data
    assert ah.convert(x, taker, copy=True).data_ptr() != x.ctypes.data


# --------------------------------------------------------------------------------------- exception classes of libraries


class Odd:
    """A producer whose ``__dlpack__`` raises an exception type defined by its own library."""

    class Error(Exception):
        pass

    def __dlpack__(self, **keywords):
        raise self.Error("no DLPack for this")

    def __dlpack_device__(self):
        return (1, 0)


def test_any_exception_of_a_protocol_becomes_a_buffer_error():
    for call in (ah.asarray, ah.from_dlpack, lambda x: ah.asarray(x, via="dlpack")):
        with pytest.raises(ah.Refusal, match="^DLPack: .*Odd refuses: no DLPack for this") as raised:
            call(Odd())
        assert type(raised.value.__cause__) is Odd.Error
