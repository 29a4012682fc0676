"""Test arrayhub.hpp with ARRAYHUB_STANDALONE, which imports host arrays even if the package is not installed."""

import array
import ctypes
import gc
import os
import shutil
import site
import sys
import sysconfig
import weakref
from pathlib import Path

import native_build as build
import numpy as np
import pytest
from children import finished
from dlpack_by_hand import IS_COPIED, READ_ONLY, Handmade, OnlyDLPack

import arrayhub as ah

pytestmark = pytest.mark.slow

NATIVE = 0x100 | 0x200  # aligned, native byte order
C, F, WRITEABLE, IMMUTABLE, COPIED = 1, 2, 4, 0x1000, 0x4000
BUFFER, DLPACK = 5, 6
APIS = {"whole": (), "limited": (build.LIMITED,)}


@pytest.fixture(scope="module", params=APIS)
def path(request, tmp_path_factory):
    folder = build.shared_folder(tmp_path_factory, "standalone") / request.param
    folder.mkdir(exist_ok=True)
    flags = ("-std=c++17", *build.STRICT, "-Wsign-conversion", "-isystem", build.PYTHON_INCLUDE, *APIS[request.param])
    return build.compiled(folder, "standalone", [build.SOURCES / "standalone.cpp"], *flags, compiler=build.CXX)


@pytest.fixture(scope="module")
def alone(path):
    """Import the extension while the package arrayhub cannot be imported."""
    # Each shared library caches its function table, so this extension must be a separate file.
    copy = path.with_name("alone" + build.SUFFIX)
    if not copy.exists():
        shutil.copy(path, copy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "arrayhub", None)
        return build.load(copy, "standalone")


def refused(call, obj, exception, *words):
    references = sys.getrefcount(obj)
    with pytest.raises(exception) as raised:
        call(obj)
    for word in words:
        assert word in str(raised.value)
    del raised
    gc.collect()
    assert sys.getrefcount(obj) == references


# ------------------------------------------------------------------------------------- with and without the package


PROGRAM = """
import sys
import numpy as np
import standalone

try:
    import arrayhub
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("the package can be imported")
x = np.arange(6.0).reshape(2, 3)
assert standalone.total(x) == 15 and standalone.total(x[::-1, ::2]) == 10
assert standalone.bytes_sum(b"abc") == standalone.bytes_sum(bytearray(b"abc")) == 294
standalone.negate(x[0])
assert x[0].tolist() == [0, -1, -2]
try:
    import torch
except ModuleNotFoundError:
    pass
else:
    tensor = torch.arange(3.0, dtype=torch.float64)
    standalone.negate(tensor)
    assert tensor.tolist() == [0, -1, -2]
try:
    standalone.ones()
except ImportError as error:
    assert "needs the package arrayhub" in str(error)
else:
    raise AssertionError
print("done")
"""


def test_extension_works_without_the_package(path, tmp_path):
    """The path contains links to all packages of this environment except arrayhub."""
    folders = [*site.getsitepackages(), sysconfig.get_path("platlib"), *sys.path]
    for name in ("numpy", "torch"):
        for place in (Path(folder) for folder in folders if folder and (Path(folder) / name).is_dir()):
            for entry in place.iterdir():
                if "arrayhub" not in entry.name and entry.suffix != ".pth" and not (tmp_path / entry.name).exists():
                    (tmp_path / entry.name).symlink_to(entry)
    paths = os.pathsep.join((str(tmp_path), str(path.parent)))
    done = finished(sys.executable, "-S", "-P", "-c", PROGRAM, PYTHONPATH=paths)
    assert done.stdout.strip() == "done", done.stderr[-3000:]


def test_extension_uses_the_package_if_it_is_installed(path):
    module = build.load(path, "standalone")
    assert module.total([[1.0, 2.0]]) == 3
    assert type(module.ones()) is ah.USMArray and module.largest(np.array([1, 3])) == 3
    assert type(module.as_numpy(b"ab")) is np.ndarray


def test_import_of_the_extension_fails_with_a_broken_package(path, tmp_path):
    """An installed package that cannot be imported, or does not have the C interface, raises an ImportError."""
    (tmp_path / "arrayhub.py").write_text("import missing_by_arrayhub")
    paths = os.pathsep.join((str(tmp_path), str(path.parent)))
    done = finished(sys.executable, "-P", "-S", "-c", "import standalone", PYTHONPATH=paths)
    assert "No module named 'missing_by_arrayhub'" in done.stderr
    (tmp_path / "arrayhub.py").write_text("")
    done = finished(sys.executable, "-P", "-S", "-c", "import standalone", PYTHONPATH=paths)
    assert "arrayhub.py'> does not have the C interface; upgrade arrayhub" in done.stderr


def test_folder_without_a_module_is_not_the_package(path, tmp_path):
    """A clone of the repository is such a folder, from which Python makes a namespace package."""
    (tmp_path / "arrayhub").mkdir()
    paths = os.pathsep.join((str(tmp_path), str(path.parent)))
    done = finished(sys.executable, "-PSc", "import standalone as s; print(s.bytes_sum(b'abc'))", PYTHONPATH=paths)
    assert done.stdout == "294\n", done.stderr


# ------------------------------------------------------------------------------------------------------------ buffers


@pytest.mark.parametrize("name", ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "F", "D"])
@pytest.mark.parametrize("layout", ["c", "f", "strided", "reversed", "broadcast"])
def test_fields_equal_the_fields_that_the_package_returns(alone, name, layout):
    a = np.ones((3, 4), name)
    repeated = np.broadcast_to(a[0], (2, 4))
    x = {"c": a, "f": a.T, "strided": a[:, ::2], "reversed": a[::-1], "broadcast": repeated}[layout]
    address, shape, steps, code, bits, flags, protocol, whole = alone.fields(x)
    y = ah.asarray(x, via="buffer")
    assert (address, shape, steps, protocol, whole) == (y.ptr, [*y.shape], [*y.byte_strides], BUFFER, 1)
    assert (code, bits) == ({"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}[x.dtype.kind], 8 * x.itemsize)
    assert bool(flags & C) == y.flags.c_contiguous and bool(flags & F) == y.flags.f_contiguous
    assert bool(flags & WRITEABLE) == y.flags.writeable and flags & NATIVE == NATIVE


@pytest.mark.parametrize(
    "obj",
    [b"abc", b"", bytearray(b"ab"), memoryview(b"ab"), array.array("q", [1]), (ctypes.c_int64 * 3)(), np.zeros((0, 2))],
    ids=lambda obj: type(obj).__name__,
)
def test_buffer_exporters_are_imported(alone, obj):
    address, shape, _, _, bits, flags, protocol, _ = alone.fields(obj)
    view = memoryview(obj)
    assert (shape, bits, protocol) == ([*view.shape], 8 * view.itemsize, BUFFER)
    assert bool(flags & WRITEABLE) == (not view.readonly) and bool(flags & IMMUTABLE) == (type(obj) is bytes)
    if view.nbytes:
        assert address == np.asarray(view).ctypes.data


def test_unmet_conditions_raise(alone):
    x = np.arange(6.0).reshape(2, 3)
    refused(alone.total, x[0], ValueError, "this numpy.ndarray has a different number", "float64, 2 dimensions")
    refused(alone.total, x.astype("f4"), TypeError, "total: x: ", "float32", "2 dimensions. Convert it first")
    refused(alone.negate, x, ValueError, "1 dimension, writeable")
    x.flags.writeable = False
    refused(alone.negate, x[0], ValueError, "is read-only")
    refused(alone.bytes_sum, memoryview(b"abc")[::2], BufferError, "not contiguous", "C order")
    unaligned = np.zeros(17, "u1")[1:].view("f8")
    refused(alone.negate, unaligned, BufferError, "not aligned")
    part = np.zeros(3, [("a", "c16"), ("b", "f8")])["a"]  # 24 bytes apart
    assert alone.fields(part)[2] == [24] and not alone.fields(part)[7]
    assert alone.largest(np.ma.array([1.0, 4.0], mask=[False, True])) == 4  # masks are ignored
    assert alone.largest(np.float32([1, 3, 2])) == 3 and alone.largest(np.array([1.0, 4.0])) == 4


@pytest.mark.parametrize("obj", [None, 3, [1.0], "text", {}, object()], ids=lambda obj: type(obj).__name__)
def test_error_for_other_objects_suggests_installing_the_package(alone, obj):
    with pytest.raises(TypeError, match=r"^total: x: this \w+ supports neither .*; install arrayhub$"):
        alone.total(obj)


@pytest.mark.parametrize("dtype", ["M8[s]", ">f8", "O", "S3", "U2", "g", [("a", "i4")]], ids=str)
def test_error_for_types_without_a_dlpack_code_suggests_installing_the_package(alone, dtype):
    refused(alone.total, np.zeros((2, 2), dtype), BufferError, "Install arrayhub")


@pytest.mark.parametrize(("call", "words"), [("ones", "hand_out"), ("as_numpy", "Conversion")])
def test_functions_that_require_the_package_raise_import_error(alone, call, words):
    with pytest.raises(ImportError, match=f"{words}.*needs the package arrayhub"):
        getattr(alone, call)(*[b"abc"] * (call != "ones"))


def test_buffer_is_released_once(alone):
    owner = bytearray(8)
    held = alone.held(owner)
    with pytest.raises(BufferError, match="re-sized"):
        owner.append(0)
    again = alone.held(held)
    assert again is held
    with pytest.raises(TypeError, match="cannot create"):
        type(held)()
    del held, again
    owner.append(0)
    references = sys.getrefcount(owner)
    for _ in range(100):
        alone.fields(owner)
    assert sys.getrefcount(owner) == references
    owner.append(0)


# ------------------------------------------------------------------------------------------------------------- DLPack


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("strides", ["c", None])
def test_tensor_is_released_once(alone, versioned, strides):
    producer = Handmade(versioned=versioned, strides=strides, shape=(2, 2))
    assert producer.requests == []
    held = alone.held(producer)
    address, shape, steps, code, bits, flags, protocol, _ = alone.fields(held)
    assert (address, shape, steps, protocol) == (producer.memory.ctypes.data, [2, 2], [16, 8], DLPACK)
    assert (code, bits, flags & C) == (2, 64, C)
    assert bool(flags & WRITEABLE) == versioned  # legacy capsules do not have a read-only flag
    assert producer.requests == [{"max_version": (1, 0)}] and producer.deleted == 0
    del producer.given  # the used capsule
    assert producer.deleted == 0
    del held
    assert producer.deleted == 1


def test_flags_of_a_tensor_are_imported(alone):
    assert not alone.fields(Handmade(flags=READ_ONLY))[5] & WRITEABLE
    assert alone.fields(Handmade(flags=IS_COPIED))[5] & COPIED
    refused(alone.negate, Handmade(flags=IS_COPIED), ValueError, "was exported as a copy")
    assert alone.fields(Handmade(byte_offset=8, shape=(3,)))[0] % 8 == 0
    assert alone.fields(Handmade(deleter=False))[1] == [4]


def test_producer_before_dlpack_1_is_imported(alone):
    class Old(Handmade):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()

    producer = Old(versioned=False)
    assert alone.fields(producer)[1] == [4]
    assert producer.requests == [{}] and producer.deleted == 1


INVALID = {
    "device": dict(device=(2, 0)),
    "announced device": dict(announced=(14, 0)),
    "version": dict(version=(2, 0)),
    "negative length": dict(shape=(-1,), strides=None),
    "negative rank": dict(ndim=-1),
    "rank": dict(ndim=65),
    "no shape": dict(shape=None, ndim=1, strides=None),
    "too long": dict(shape=(2**62, 2**62), strides=None),
    "overflow": dict(shape=(2**40, 2**40), strides=(1, 1)),
    "stride": dict(shape=(2,), strides=(2**61,)),
    "smallest stride": dict(shape=(2,), strides=(-(2**63),)),
    "reach": dict(shape=(3, 3), strides=(2**59, 2**59)),
    "no data": dict(data=0),
    "offset": dict(byte_offset=2**63),
    "type code": dict(dtype=(99, 64, 1)),
    "type bits": dict(dtype=(2, 7, 1)),
    "no bits": dict(dtype=(0, 0, 1)),
    "lanes": dict(dtype=(2, 64, 2)),
    "packed": dict(dtype=(0, 4, 1)),
}


# Legacy capsules do not have a version, so the case "version" applies only to versioned capsules.
CASES = [*((case, True) for case in INVALID), *((case, False) for case in INVALID if case != "version")]


@pytest.mark.parametrize(("case", "versioned"), CASES)
def test_invalid_tensors_raise_and_stay_owned_by_the_capsule(alone, case, versioned):
    producer = Handmade(versioned=versioned, **INVALID[case])
    with pytest.raises(BufferError, match=r"^total: x: this \S*Handmade"):
        alone.total(producer)
    producer.given = None
    assert producer.deleted == 0
    assert producer.destroyed == bool(producer.requests)  # the capsule's destructor releases the tensor


@pytest.mark.parametrize("given", [None, 3, "capsule", "used"])
def test_objects_that_are_not_an_unused_capsule_raise(alone, given):
    producer = Handmade()
    capsule = producer.capsule()
    if given == "used":
        ah.asarray(capsule)
    elif given == "capsule":
        capsule = type("", (), {})()
    elif given != "used":
        capsule = given
    wrong = type("Wrong", (), {"__dlpack__": lambda self, **_: capsule, "__dlpack_device__": lambda self: (1, 0)})()
    refused(alone.total, wrong, BufferError, "unused DLPack capsule")


@pytest.mark.parametrize("error", [KeyError, BufferError, ValueError, KeyboardInterrupt, AttributeError, TypeError])
@pytest.mark.parametrize("method", ["__dlpack__", "__dlpack_device__"])
def test_errors_of_a_producer_propagate_or_become_buffer_errors(alone, error, method):
    def fails(self, **_):
        raise error("the producer failed")

    methods = {"__dlpack__": lambda self, **_: None, "__dlpack_device__": lambda self: (1, 0), method: fails}
    producer = type("Wrong", (), methods)()
    with pytest.raises(error if error is KeyboardInterrupt else BufferError, match="the producer failed"):
        alone.total(producer)


@pytest.mark.parametrize("device", [None, (), 3, ("cpu", 0), (2**70, 0)])
def test_invalid_device_pairs_raise(alone, device):
    methods = {"__dlpack__": lambda self, **_: None, "__dlpack_device__": lambda self: device}
    with pytest.raises((BufferError, IndexError, OverflowError)):
        alone.total(type("Wrong", (), methods)())


def test_held_array_keeps_the_memory_alive(alone):
    class Owner(np.ndarray):
        pass

    owner = np.arange(4.0).reshape(2, 2).view(Owner)
    alive = weakref.ref(owner)
    held = alone.held(OnlyDLPack(owner))
    del owner
    gc.collect()
    assert alive() is not None and alone.total(held) == 6
    del held
    gc.collect()
    assert alive() is None


def test_torch_tensors_are_imported_or_rejected(alone):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4.0, dtype=torch.float64)
    alone.negate(tensor)
    assert tensor.tolist() == [0, -1, -2, -3]
    assert alone.fields(torch.zeros(3, dtype=torch.bfloat16))[3:5] == (4, 16)
    assert alone.total(torch.ones((3, 2), dtype=torch.float64).T) == 6
    refused(alone.negate, torch.zeros(3, requires_grad=True), BufferError, "detach()")
    refused(alone.negate, torch.zeros(3, dtype=torch.float8_e5m2), BufferError, "Install arrayhub")


def test_jax_arrays_are_read_only(alone):
    jnp = pytest.importorskip("jax.numpy")
    flags = alone.fields(jnp.ones(3, "float32"))[5]
    assert flags & C and not flags & WRITEABLE
