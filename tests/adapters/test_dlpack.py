"""Test import and export through legacy and versioned DLPack, with hand-made capsules and real libraries."""

import contextlib
import ctypes
import enum
import functools
import gc
import operator
import re
import sys
import threading
import weakref

import numpy as np
import pytest
from children import python
from dlpack_by_hand import (
    IS_COPIED,
    LEGACY,
    PADDED,
    READ_ONLY,
    VERSIONED,
    Handmade,
    Version,
    capsule_destructor,
    capsule_name,
    consume,
    delete,
    new_capsule,
    tensor_of,
)
from numpy_release import NUMPY
from producers import lives

import arrayhub
from arrayhub import InterfaceError
from arrayhub._core.errors import show

both = pytest.mark.parametrize("versioned", [False, True], ids=["legacy", "versioned"])


def take(producer):
    return arrayhub.asarray(producer, via="dlpack", copy=None)


# ---- import ----------------------------------------------------------------


@both
def test_consumed_capsule_is_renamed_and_its_tensor_deleted_once(versioned):
    made = Handmade(versioned=versioned)
    a = take(made)
    assert capsule_name(made.given) == (b"used_dltensor_versioned" if versioned else b"used_dltensor")
    assert capsule_destructor(made.given) is None
    assert np.asarray(a).tolist() == [0, 1, 2, 3]
    assert a.ptr == made.memory.ctypes.data
    assert (a.protocol, a.memory.kind, a.memory.nbytes) == ("dlpack", "dlpack", 32)
    del made.given
    view, block = a[1:], a.memory
    assert a.base is view.base is block is view.memory and block.owner is None
    del a
    gc.collect()
    assert (made.deleted, made.destroyed) == (0, 0)
    assert np.asarray(view).tolist() == [1, 2, 3]
    del view
    gc.collect()
    assert made.deleted == 0
    del block
    gc.collect()
    assert (made.deleted, made.destroyed) == (1, 0)


@both
def test_second_import_of_a_capsule_raises(versioned):
    made = Handmade(versioned=versioned)
    capsule = made.capsule()
    a = take(capsule)
    with pytest.raises(InterfaceError, match="consumed only once"):
        take(capsule)
    del a, capsule
    assert (made.deleted, made.destroyed) == (1, 0)


def test_capsule_with_another_name_is_rejected():
    for name in (b"tensor", b"used_dltensor", None):
        with pytest.raises(InterfaceError, match="capsule name"):
            take(new_capsule(ctypes.addressof(Version()), name, None))


# Fields of valid tensors, and the elements and strides of the array.
ACCEPTED = {
    "no deleter": ({"deleter": False}, [0, 1, 2, 3], (1,)),
    "strides NULL": ({"shape": (2, 2), "strides": None}, [[0, 1], [2, 3]], (2, 1)),
    "Fortran order": ({"shape": (2, 2), "strides": (1, 2)}, [[0, 2], [1, 3]], (1, 2)),
    "byte_offset": ({"shape": (2,), "byte_offset": 8}, [1, 2], (1,)),
    "negative strides": ({"strides": (-1,), "byte_offset": 24}, [3, 2, 1, 0], (-1,)),
    "0-d, shape NULL": ({"shape": None, "strides": None, "ndim": 0}, 0, ()),
    "a later minor version": ({"version": (1, 999)}, [0, 1, 2, 3], (1,)),
    **{f"stride {number} of length 1": ({"shape": (1, 4), "strides": (number, 1)}, [[0, 1, 2, 3]], (4, 1))
       for number in (0, -7, 2**62, -(2**63))},
}  # fmt: skip


@both
@pytest.mark.parametrize(("fields", "values", "strides"), ACCEPTED.values(), ids=ACCEPTED)
def test_valid_tensor_is_imported(fields, values, strides, versioned):
    a = take(Handmade(versioned=versioned, **fields))
    assert (np.asarray(a).tolist(), a.strides) == (values, strides)
    seen = np.asarray(a)
    assert (a.flags.c_contiguous, a.flags.f_contiguous) == (seen.flags.c_contiguous, seen.flags.f_contiguous)
    assert a.memory.address == np.lib.array_utils.byte_bounds(seen)[0]
    del seen
    del a
    gc.collect()


@both
@pytest.mark.parametrize("byte_offset", [0, 64])
def test_empty_tensor_may_have_a_null_pointer(versioned, byte_offset):
    made = Handmade(versioned=versioned, shape=(3, 0), data=0, byte_offset=byte_offset)
    a = take(made)
    assert (a.shape, a.ptr, a.size, a.nbytes) == ((3, 0), 0, 0, 0)
    assert np.asarray(a).shape == (3, 0)
    assert take(Handmade(versioned=versioned, shape=(0,))).size == 0


def test_access_follows_the_flags_of_a_versioned_tensor():
    assert take(Handmade()).access == "readwrite"
    readonly = take(Handmade(flags=READ_ONLY))
    assert readonly.access == "readonly"
    assert not np.asarray(readonly).flags.writeable
    assert take(Handmade(flags=IS_COPIED)).access == "readwrite"
    assert take(Handmade(flags=1 << 63)).access == "readwrite"  # an unknown flag of a later minor version


def test_legacy_capsules_are_imported_as_read_only():
    assert take(Handmade(versioned=False)).access == "readonly"
    libraries_own = type("Array", (Handmade,), {"__module__": "torch.testing"})
    assert take(libraries_own(versioned=False)).access == "readwrite"
    nameless = type("Array", (Handmade,), {"__module__": 5})
    assert take(nameless(versioned=False)).access == "readonly"


def legacy_consumer(jax):
    """Return whether this jax (before 0.12) requests legacy capsules, which cannot represent read-only memory."""
    return tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12)


def test_error_for_read_only_memory_in_a_legacy_capsule_suggests_as_jax():
    jax = pytest.importorskip("jax")
    x = arrayhub.asarray(jax.numpy.arange(3.0))
    with pytest.raises(BufferError, match=r"arrayhub\.as_jax\(x\), or pass max_version"):
        x.__dlpack__()
    assert arrayhub.as_jax(x).unsafe_buffer_pointer() == x.ptr
    if legacy_consumer(jax):
        with pytest.raises(BufferError, match=r"arrayhub\.as_jax\(x\), or pass max_version"):
            jax.dlpack.from_dlpack(x)
    else:
        assert jax.dlpack.from_dlpack(x).unsafe_buffer_pointer() == x.ptr


def test_legacy_capsules_are_writable_from_torch_but_not_from_jax():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(3)
    assert arrayhub.asarray(tensor.__dlpack__()).access == "readonly"  # the producer of a bare capsule is unknown
    assert take(tensor).access == "readwrite"
    jax = pytest.importorskip("jax")
    assert take(jax.numpy.arange(3)).access != "readwrite"


PACKED_CASES = [
    ((0, 4, 1), (4,), 2),
    ((1, 2, 1), (3,), 1),
    ((17, 4, 1), (3, 3), 5),
    ((15, 6, 1), (5,), 4),
    ((0, 1, 1), (), 1),
]


@pytest.mark.parametrize(("dtype", "shape", "nbytes"), PACKED_CASES)
def test_elements_smaller_than_a_byte_are_packed_unless_flagged(dtype, shape, nbytes):
    memory = np.zeros(16, "u1")
    packed = take(Handmade(memory=memory, shape=shape, dtype=dtype))
    assert (packed.nbytes, packed.memory.nbytes) == (nbytes, nbytes)
    with pytest.raises(BufferError, match="packed"):
        memoryview(packed)
    with pytest.raises(BufferError, match="packed"):
        packed[...]
    out = tensor_of(packed.__dlpack__(max_version=(1, 0)))
    assert (out.flags, out.dl_tensor.data) == (0, memory.ctypes.data)
    padded = take(Handmade(memory=memory, shape=shape, dtype=dtype, flags=PADDED))
    assert padded.nbytes == padded.size
    for known in ((1, 1), (1, 2**32), (1, 10**30), (2, 0), (10**30, 0)):
        assert tensor_of(padded.__dlpack__(max_version=known)).flags == PADDED
    # Consumers of legacy capsules would treat the elements as packed.
    for known in ((1, 0), (1, -1), (1, 1 - 2**32), (1, -(10**30)), None):
        with pytest.raises(BufferError, match=r"padded to bytes, and .*pass max_version=\(1, "):
            padded.__dlpack__(max_version=known)


def test_packed_elements_require_compact_strides():
    memory = np.zeros(16, "u1")
    made = Handmade(memory=memory, shape=(2, 3), strides=(4, 1), dtype=(0, 4, 1))
    with pytest.raises(BufferError, match=r"strides\[0\] is 4"):
        take(made)
    assert made.deleted == 1
    assert take(Handmade(memory=memory, shape=(1, 3), strides=(99, 1), dtype=(0, 4, 1))).strides == (3, 1)


def test_padded_elements_are_not_exported_as_packed():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = arrayhub.asarray(np.zeros(4, ml_dtypes.int4))
    with pytest.raises(BufferError, match=r"padded to bytes.*max_version"):
        a.__dlpack__()


BIG = 2**62
MALFORMED = {
    "lanes 2": ({"dtype": (2, 32, 2)}, BufferError, "lanes is 2"),
    "lanes 0": ({"dtype": (2, 64, 0)}, BufferError, "lanes is 0"),
    "bool of one bit": ({"dtype": (6, 1, 1)}, InterfaceError, r"\(6, 1\)"),
    "bool of 32 bits": ({"dtype": (6, 32, 1)}, InterfaceError, r"\(6, 32\)"),
    "opaque handle": ({"dtype": (3, 64, 1)}, InterfaceError, r"\(3, 64\)"),
    "unknown code": ({"dtype": (18, 8, 1)}, InterfaceError, r"\(18, 8\)"),
    "largest code": ({"dtype": (255, 255, 1)}, InterfaceError, r"\(255, 255\)"),
    "float of 128 bits": ({"dtype": (2, 128, 1)}, InterfaceError, r"\(2, 128\)"),
    "no bits": ({"dtype": (2, 0, 1)}, InterfaceError, r"\(2, 0\)"),
    "fp6 of 8 bits": ({"dtype": (15, 8, 1)}, InterfaceError, r"\(15, 8\)"),
    "negative length": ({"shape": (-1,), "strides": (1,)}, InterfaceError, r"shape\[0\] is -1"),
    "negative length, no strides": ({"shape": (4, -4), "strides": None}, InterfaceError, r"shape\[1\] is -4"),
    "negative length, packed": (
        {"shape": (-1,), "strides": None, "dtype": (0, 4, 1)},
        InterfaceError,
        r"shape\[0\] is -1",
    ),
    "smallest length": ({"shape": (-(2**63),), "strides": (1,)}, InterfaceError, r"shape\[0\]"),
    "ndim -1": ({"ndim": -1}, InterfaceError, "ndim is -1"),
    "ndim 1000": ({"ndim": 1000}, InterfaceError, "ndim is 1000"),
    "ndim 65": ({"shape": (1,) * 65}, InterfaceError, "ndim is 65"),
    "ndim largest": ({"ndim": 2**31 - 1}, InterfaceError, "ndim"),
    "shape NULL": ({"shape": None, "strides": (1,), "ndim": 1}, InterfaceError, "shape is None"),
    "product overflows": ({"shape": (BIG, 4), "strides": (0, 0)}, InterfaceError, "shape"),
    "product wraps to a small number": ({"shape": (2**33, 2**33), "strides": (0, 0)}, InterfaceError, "shape"),
    "bytes overflow": ({"shape": (2**60,), "strides": (0,)}, InterfaceError, "shape"),
    "bytes overflow, no strides": ({"shape": (2**61, 1), "strides": None}, InterfaceError, "strides"),
    "bits overflow": ({"shape": (BIG,), "strides": None, "dtype": (0, 4, 1)}, InterfaceError, "shape"),
    "no elements, strides overflow": ({"shape": (0, BIG, 4), "strides": None}, InterfaceError, "strides"),
    "stride in bytes overflows": ({"shape": (2,), "strides": (2**61,)}, InterfaceError, "strides"),
    "stride times length overflows": ({"shape": (2**20,), "strides": (2**45,)}, InterfaceError, "strides"),
    "negative stride overflows": ({"shape": (2,), "strides": (-(2**61),)}, InterfaceError, "strides|data"),
    "sum of strides overflows": ({"shape": (2, 2, 2), "strides": (2**59,) * 3}, InterfaceError, "strides"),
    "extent leaves the address space": ({"shape": (2,), "strides": (2**60 - 2,)}, InterfaceError, "data"),
    "extent falls below zero": ({"shape": (2,), "strides": (-(2**50),)}, InterfaceError, "data"),
    "address beyond 2**63": ({"data": 2**63 + 8}, InterfaceError, "data"),
    "address at the end of memory": ({"data": 2**64 - 8, "shape": (1,)}, InterfaceError, "data"),
    "packed extent leaves": ({"data": 2**63 - 1, "dtype": (0, 4, 1)}, InterfaceError, "data"),
    "data NULL": ({"data": 0}, InterfaceError, "data is 0"),
    "data NULL, packed": ({"data": 0, "dtype": (0, 4, 1)}, InterfaceError, "data is 0"),
    "data NULL with an offset": ({"data": 0, "byte_offset": 4096}, InterfaceError, "data is None"),
    "byte_offset wraps": ({"byte_offset": 2**64 - 8}, InterfaceError, "byte_offset"),
    "byte_offset leaves": ({"byte_offset": 2**63 - 1}, InterfaceError, "byte_offset"),
    "device type 0": ({"device": (0, 0)}, InterfaceError, "device_type is 0"),
    "device type 5": ({"device": (5, 0)}, InterfaceError, "device_type is 5"),
    "device type -1": ({"device": (-1, 0)}, InterfaceError, "device_type is -1"),
    "device type 1000": ({"device": (1000, 0)}, InterfaceError, "device_type is 1000"),
    "device id -1": ({"device": (2, -1)}, InterfaceError, "device_id is -1"),
    "OpenCL handle": ({"device": (4, 0)}, BufferError, "cl_mem"),
    "Vulkan handle": ({"device": (7, 0)}, BufferError, "VkBuffer"),
    "Metal handle": ({"device": (8, 0)}, BufferError, "MTLBuffer"),
    "WebGPU handle": ({"device": (15, 0)}, BufferError, "GPUBuffer"),
}


@pytest.mark.slow
@both
@pytest.mark.parametrize("case", MALFORMED)
def test_invalid_tensor_raises_and_is_freed_once(case, versioned):
    fields, error, text = MALFORMED[case]
    made = Handmade(versioned=versioned, **fields)
    with pytest.raises(error, match=text) as caught:
        take(made)
    assert str(caught.value).startswith("DLPack: ")
    del caught
    gc.collect()
    assert (made.deleted, made.destroyed) == (1, 0)
    assert capsule_name(made.given).startswith(b"used_")


@pytest.mark.parametrize("version", [(0, 8), (2, 0), (2**32 - 1, 0)])
def test_only_the_deleter_is_read_from_another_major_version(version):
    made = Handmade(version=version, ndim=-7, data=1, flags=2**64 - 1)
    ctypes.memset(ctypes.addressof(made.managed.dl_tensor), 0xFF, ctypes.sizeof(made.managed.dl_tensor))
    with pytest.raises(BufferError, match=f"version is {version[0]}.{version[1]}"):
        take(made)
    assert (made.deleted, made.destroyed) == (1, 0)


# ---- arguments of the producer's __dlpack__ -------------------------------------------------


def answering(accepts, **fields):
    """Return a producer whose ``__dlpack__`` calls ``accepts(**keywords)``, and raises the error that it returns."""

    class Producer(Handmade):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            error = accepts(**keywords)
            if error is not None:
                raise error
            return capsule

    return Producer(**fields)


BY_VERSION = {"max_version": (1, 3)}
# Which keywords a producer rejects, and with which of them it is called.
KEYWORDS = {
    "all are accepted": (lambda **keywords: None, [BY_VERSION]),  # some releases of jax and mlx return legacy capsules
    "only `stream` is accepted": (
        lambda stream=None, **more: TypeError("unexpected keyword") if more else None,
        [BY_VERSION, {}],
    ),
    "values of `max_version` are rejected": (  # like array_api_strict on NumPy 2.0
        lambda max_version=None: NotImplementedError("not yet implemented") if max_version else None,
        [BY_VERSION, {}],
    ),
}


@pytest.mark.parametrize(("accepts", "requests"), KEYWORDS.values(), ids=KEYWORDS)
def test_dlpack_is_called_again_without_rejected_keywords(accepts, requests):
    """The name of the capsule determines its version, whatever was requested."""
    made = answering(accepts, versioned=False)
    assert take(made).size == 4
    assert made.requests == requests


def test_type_error_of_both_dlpack_calls_propagates():
    made = answering(lambda **keywords: TypeError("never"))
    with pytest.raises(TypeError, match="never"):
        take(made)
    assert made.requests == [BY_VERSION, {}]


@pytest.mark.parametrize(
    ("kind", "keywords"), [(2, {"stream": -1}), (10, {"stream": -1}), (3, {}), (13, {}), (14, {}), (16, {})]
)
def test_stream_is_passed_only_for_devices_with_streams(kind, keywords):
    made = Handmade(device=(kind, 0), announced=(kind, 0))
    with contextlib.suppress(InterfaceError):  # raised for SYCL devices, because the pointer is not USM
        take(made)
    assert made.requests == [BY_VERSION | keywords]


def test_jax_is_called_without_unsupported_streams():
    made = type("Array", (Handmade,), {"__module__": "jaxlib._jax"})(versioned=False, device=(2, 0), announced=(2, 0))
    take(made)
    assert made.requests == [BY_VERSION | {"stream": None}]


@pytest.mark.parametrize("error", [ValueError, BufferError, RuntimeError, AttributeError])
def test_other_errors_of_dlpack_are_refusals_without_a_second_call(error):
    calls = []

    class Refusing(Handmade):
        def __dlpack__(self, **keywords):
            calls.append(keywords)
            raise error("not today")

    for call in (take, arrayhub.from_dlpack):
        with pytest.raises(arrayhub.Refusal, match="Refusing refuses: not today") as raised:
            call(Refusing())
        assert type(raised.value.__cause__) is error
    assert len(calls) == 2


def test_dlpack_methods_on_an_instance_are_ignored():
    class Plain:
        pass

    plain = Plain()
    plain.__dlpack__ = Handmade().__dlpack__
    plain.__dlpack_device__ = lambda: (1, 0)
    with pytest.raises(TypeError):
        take(plain)
    switched_off = type("SwitchedOff", (Handmade,), {"__dlpack__": None})
    with pytest.raises(TypeError):
        take(switched_off())


def test_dlpack_attribute_is_read_once_per_call():
    reads = []

    class Property(Handmade):
        @property
        def __dlpack__(self):
            reads.append(1)
            return functools.partial(self.answer)

        def answer(self, max_version=None, stream=None):
            return self.capsule()

    class Old(Property):
        def answer(self, stream=None):
            return self.capsule()

    assert take(Property()).size == 4
    assert len(reads) == 1
    assert take(Old()).size == 4  # `Old.__dlpack__` is called again without `max_version`
    assert len(reads) == 3


def test_changed_type_is_inspected_again():
    """A change of a type invalidates its cache entry."""

    class Changing(Handmade):
        pass

    made = Changing()
    assert take(made).size == 4
    del_later = Changing.__dlpack__
    Changing.__dlpack__ = None
    with pytest.raises(TypeError):
        take(made)
    Changing.__dlpack__ = del_later
    assert take(made).size == 4
    Changing.__dlpack_device__ = lambda self: "cpu"
    with pytest.raises(InterfaceError, match="__dlpack_device__"):
        take(made)
    Changing.__dlpack_device__ = None  # without this method, the device is read from the capsule
    assert take(made).size == 4


def test_producer_may_import_another_array_in_dlpack():
    """A producer's methods may import other types, which may evict the cache entry of the producer's type."""

    class Inner(Handmade):
        __dlpack_device__ = None

    class Outer(Handmade):
        def __dlpack_device__(self):
            assert take(Inner()).size == 4
            return super().__dlpack_device__()

        def __dlpack__(self, **keywords):
            assert take(Inner()).size == 4
            return super().__dlpack__(**keywords)

    assert [take(Outer()).size for _ in range(3)] == [4, 4, 4]


@pytest.mark.parametrize(
    "pair", [(2**80, 0), (-(2**80), 0), (-1, 0), (0, 0), (2**31, 0), (2**40, 0), (-5, 0), (1, 2**70)]
)
def test_producers_on_unknown_devices_are_called_without_a_stream(pair):
    """The device of the array is read from the capsule, not from ``__dlpack_device__``."""
    made = Handmade(announced=pair)
    assert take(made).device == arrayhub.Device("cpu")
    assert made.requests == [{"max_version": (1, 3)}]


@pytest.mark.parametrize("answer", [None, 5, "capsule", b"dltensor", object()])
def test_invalid_capsule_raises(answer):
    producer = type("Producer", (Handmade,), {"__dlpack__": lambda self, **_: answer})
    with pytest.raises(InterfaceError, match="__dlpack__"):
        take(producer())


@pytest.mark.parametrize("pair", [None, 1, (1,), (1, 0, 0), ("cpu", 0), (1.0, 0), (True, 0), [1, 0], (1, None)])
def test_invalid_device_raises(pair):
    made = Handmade(announced=pair)
    with pytest.raises(InterfaceError, match="__dlpack_device__"):
        take(made)
    assert made.requests == []


class Number:
    """A member of an enumeration without ``__index__``, as in old versions of pybind11."""

    def __int__(self):
        return 2


@pytest.mark.parametrize(
    "kind", [enum.Enum("DLDeviceType", {"kDLCUDA": 2}).kDLCUDA, enum.IntEnum("T", {"c": 2}).c, Number()]
)
def test_a_device_type_may_be_an_enumeration(kind):
    """Accept an IntEnum, and enumerations without ``__index__``, as in open3d."""
    made = Handmade(device=(2, 0), announced=(kind, 0))
    assert take(made).device == "cuda:0"
    assert made.requests == [{"max_version": (1, 3), "stream": -1}]


def test_device_memory_is_not_read():
    made = Handmade(device=(2, 1), announced=(2, 1), data=0xDEAD000)
    a = take(made)
    assert (str(a.device), a.ptr, a.base) == ("cuda:1", 0xDEAD000, made)
    with pytest.raises((TypeError, BufferError), match="to_host"):
        np.asarray(a)
    with pytest.raises(BufferError):
        memoryview(a)


# ---- export ----------------------------------------------------------------


def exported(a, **keywords):
    capsule = a.__dlpack__(**keywords)
    return capsule, tensor_of(capsule)


@pytest.mark.parametrize(
    ("max_version", "name"),
    [(None, LEGACY), ((0, 8), LEGACY), ((1, 0), VERSIONED), ((1, 3), VERSIONED), ((2, 0), VERSIONED)],
)
def test_max_version_determines_the_capsule_version(max_version, name):
    for array in (np.zeros(3), np.zeros((3, 0)), np.zeros(5)[5:]):
        capsule, managed = exported(arrayhub.asarray(array), max_version=max_version)
        assert capsule_name(capsule) == name
        if name == VERSIONED:
            assert (managed.version.major, managed.version.minor) == (1, 3)
        if array.size == 0:
            assert (managed.dl_tensor.data, managed.dl_tensor.byte_offset) == (None, 0)


@pytest.mark.parametrize("max_version", [1, 1.0, "1.0", (1,), (1, 0, 0), (1.0, 0), ("1", "0"), [1, 0]])
def test_max_version_must_be_two_integers(max_version):
    with pytest.raises(TypeError, match="max_version"):
        arrayhub.asarray(np.zeros(3)).__dlpack__(max_version=max_version)


@pytest.mark.parametrize("stream", [0, 1, 2, -2, 2**70, True, False, -1.0, "0", object()])
def test_stream_must_be_none_or_minus_one_for_host_memory(stream):
    a = arrayhub.asarray(np.zeros(3))
    assert a.__dlpack__(stream=None)
    assert a.__dlpack__(stream=-1)
    with pytest.raises(BufferError, match="accepted: None or -1"):
        a.__dlpack__(stream=stream)


BASE = np.arange(24.0).reshape(2, 3, 4)
LAYOUTS = {
    "c": BASE, "f": BASE.T, "sliced": BASE[:, 1:, ::2],
    "broadcast": np.lib.stride_tricks.as_strided(np.zeros(1), (3, 4), (0, 0), writeable=True),
    "zero_d": np.array(7.0), "length_one": BASE[:, :1], "many_dimensions": BASE.reshape(BASE.shape + (1,) * 30),
    "unaligned": np.frombuffer(bytearray(33), "u1")[1:].view("f8"),
}  # fmt: skip


@pytest.mark.parametrize("view", [BASE[::-1], BASE[:, ::-1, 1:], BASE[..., ::-2]])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_negative_strides_are_only_exported_as_a_copy(view, version):
    """torch aborts the process for a lawful capsule with negative strides (pytorch/pytorch#188023)."""
    x = arrayhub.asarray(view)
    for keywords in ({}, {"copy": False}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match=r"byte strides .* are negative.*copy=True"):
            x.__dlpack__(max_version=version, **keywords)
    copy = arrayhub.asarray(x.__dlpack__(max_version=version, copy=True), copy=None)
    assert np.array_equal(np.asarray(copy), view)
    made = arrayhub.from_dlpack(x)
    assert made.is_copy and made.protocol == "dlpack" and np.array_equal(np.asarray(made), view)
    # A dimension of length 1 does not have a step.
    assert arrayhub.asarray(BASE[:1])[::-1].__dlpack__(max_version=version)


@both
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensor_fields_equal_the_fields_of_numpy(layout, versioned):
    array = LAYOUTS[layout]
    capsule, managed = exported(arrayhub.asarray(array), max_version=(1, 0) if versioned else None)
    tensor = managed.dl_tensor
    shape, strides = tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]
    assert tuple(shape) == array.shape
    assert bool(tensor.strides) or tensor.ndim == 0
    assert [s * 8 for s, n in zip(strides, shape, strict=True) if n > 1] == [
        s for s, n in zip(array.strides, shape, strict=True) if n > 1
    ]
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (2, 64, 1)
    assert (tensor.device.device_type, tensor.device.device_id) == (1, 0)
    assert tensor.data + tensor.byte_offset == array.__array_interface__["data"][0]
    assert tensor.byte_offset == 0  # as in NumPy, and because warp ignores byte_offset
    if versioned:
        assert managed.flags == 0
    del capsule


RECORDS = np.zeros(4, [("a", "i1"), ("b", "<f8")])
UNSAYABLE = {
    "byte-swapped": (np.zeros(3, ">f8"), r"native\(\)"),
    "longdouble": (np.zeros(3, "g"), "dtype='float64'"),
    "clongdouble": (np.zeros(3, "G"), "dtype='complex128'"),
    "datetime": (np.zeros(3, "M8[ns]"), "dtype='int64'"),
    "timedelta": (np.zeros(3, "m8[s]"), "dtype='int64'"),
    "record": (RECORDS, "as_numpy"),
    "bytes": (np.zeros(3, "S5"), "as_numpy"),
    "text": (np.zeros(3, "U5"), "as_numpy"),
    "odd strides": (RECORDS["b"], r"copy\(\)"),
}


@both
@pytest.mark.parametrize("case", UNSAYABLE)
def test_error_for_types_without_a_dlpack_code_suggests_a_call(case, versioned):
    array, way_out = UNSAYABLE[case]
    with pytest.raises(BufferError, match=way_out):
        arrayhub.asarray(array).__dlpack__(max_version=(1, 0) if versioned else None)


def test_read_only_memory_requires_a_versioned_capsule():
    with pytest.raises(BufferError, match=r"read-only.*max_version.*copy"):
        arrayhub.asarray(b"abcd").__dlpack__()


# Arrays, keywords of the export, and the flags of the tensor.
FLAGS = {
    "an array": (np.zeros(3), {}, 0),
    "a 0-d array": (np.array(1.0), {}, 0),
    "read-only": (b"abcd", {}, READ_ONLY),
    "a copy for the capsule": (np.arange(3.0), {"copy": True}, IS_COPIED),
    "a copy": (arrayhub.asarray(np.arange(3.0)).copy(), {}, 0),
    "a view of a copy": (arrayhub.asarray(np.arange(3.0)).copy()[1:], {}, 0),
    "a copy on its device": (arrayhub.asarray(np.arange(3.0)).copy(), {"dl_device": (1, 0)}, 0),
    "an import that is a copy": (Handmade(flags=IS_COPIED), {}, 0),
}


@pytest.mark.parametrize(("source", "keywords", "flags"), FLAGS.values(), ids=FLAGS)
def test_flags_of_exported_tensors(source, keywords, flags):
    a = arrayhub.asarray(source, copy=None)
    _capsule, managed = exported(a, max_version=(1, 0), **keywords)
    assert managed.flags == flags
    assert (managed.dl_tensor.data == a.ptr) is (flags != IS_COPIED)


@pytest.mark.parametrize(
    ("dl_device", "error", "why"),
    [
        (5, TypeError, r"such as x.__dlpack_device__\(\) \(int is not a pair\)$"),
        ("cpu", TypeError, r"str is not a pair\)$"),
        ((1,), ValueError, r"__\(\) .*not a DLPack pair"),
        ((1, "a"), TypeError, r"__\(\) .*not a DLPack pair"),
        ((99, 0), ValueError, r"__\(\) .*device type 99 is unknown"),
        ((1, 10**30), ValueError, r"__\(\) .*fit in 64 bits"),
    ],
)
def test_invalid_device_pairs_raise(dl_device, error, why):
    x = arrayhub.asarray(np.arange(3.0))
    says = rf"^__dlpack__: dl_device is {re.escape(show(dl_device))}; accepted: a pair of integers .*{why}"
    with pytest.raises(error, match=says):
        x.__dlpack__(dl_device=dl_device)
    assert x.__dlpack__(dl_device=x.__dlpack_device__()) is not None
    assert x.__dlpack__(dl_device=list(x.__dlpack_device__())) is not None


@both
def test_unconsumed_capsule_releases_the_array(versioned):
    owner = np.arange(4.0)
    alive = weakref.ref(owner)
    capsule = arrayhub.asarray(owner).__dlpack__(max_version=(1, 0) if versioned else None)
    del owner
    assert lives(alive)
    del capsule
    assert not lives(alive)


@both
def test_deleter_can_be_called_without_the_gil(versioned):
    owner = np.arange(4.0)
    alive = weakref.ref(owner)
    managed = consume(arrayhub.asarray(owner).__dlpack__(max_version=(1, 0) if versioned else None))
    del owner
    assert lives(alive)
    thread = threading.Thread(target=delete, args=(managed,))
    thread.start()
    thread.join()
    assert alive() is None


@both
def test_deleter_keeps_a_pending_exception(versioned):
    """A deleter that runs while an exception is being raised does not change the exception."""
    made = Handmade(versioned=versioned)
    with pytest.raises(TypeError, match="accepted: arrays of integers without dimensions"):
        operator.index(take(made))
    assert made.deleted == 1
    again = Handmade()
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        operator.index(take(again).__dlpack__(max_version=(1, 0) if versioned else None))
    assert again.deleted == 1


def test_exception_of_a_deleter_is_not_propagated(capsys):
    class Failing(Handmade):
        def _delete(self, address):
            super()._delete(address)
            raise KeyError("in the deleter")

    made = Failing()
    a = take(made)
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    try:
        del a
    finally:
        sys.unraisablehook = hook
    assert made.deleted == 1


AT_EXIT = """
import ctypes, sys
import numpy as np
import arrayhub
from dlpack_by_hand import Handmade, OnlyDLPack, consume
{body}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        # C++ destructors may call the deleter after finalization
        "m = consume(arrayhub.asarray(np.zeros(3)).__dlpack__(max_version={version}))\n"
        "ctypes.CDLL(None).__cxa_atexit(ctypes.c_void_p(m.deleter), ctypes.c_void_p(ctypes.addressof(m)), None)",
        # objects that finalization frees with their module
        "import builtins; builtins.kept = np.from_dlpack(arrayhub.asarray(np.zeros(3)))",
        "import builtins; builtins.kept = arrayhub.asarray(np.zeros(3)).__dlpack__(max_version={version})",
        "sys.kept = arrayhub.asarray(OnlyDLPack(np.zeros(3)), via='dlpack')",
        "import torch; torch.kept = [torch.from_dlpack(arrayhub.asarray(np.zeros(3)))]",
        "a = arrayhub.asarray(np.zeros(3)); cycle = [a, a.__dlpack__(max_version={version})]; cycle.append(cycle)",
    ],
)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_tensors_are_freed_during_and_after_finalization(body, version, tmp_path):
    if "torch" in body:
        pytest.importorskip("torch")
    script = AT_EXIT.format(body=body.format(version=version))
    python(script, silent=True)


@pytest.mark.slow
@pytest.mark.skipif(NUMPY < (2, 1), reason="NumPy imports read-only arrays and does not export them")
def test_a_long_chain_of_arrays_is_freed_without_recursion():
    """Each array holds the previous one, as after repeated exchanges between two libraries."""
    script = AT_EXIT.format(
        body="""
for step in (
    lambda x: np.from_dlpack(arrayhub.asarray(OnlyDLPack(x), via="dlpack")),
    lambda x: arrayhub.asarray(OnlyDLPack(x), via="dlpack"),
    lambda x: np.asarray(memoryview(arrayhub.asarray(x))),
):
    x = np.zeros(3)
    for _ in range(50_000):
        x = step(x)
    del x
""",
    )
    python(script, silent=True)


# ---- real libraries ----------------------------------------------------------------


ML_DTYPES = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float32", *ML_DTYPES])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_torch_and_jax_from_dlpack_share_memory(library, name):
    """Test ``from_dlpack`` of torch and jax, which the matrix of conversions does not call."""
    pytest.importorskip("ml_dtypes")
    module = pytest.importorskip(library)
    if library == "torch" and not hasattr(module, name):
        pytest.skip(f"torch lacks {name}")
    raw = np.arange(128, dtype="u1")
    alive, dtype = weakref.ref(raw), np.dtype(name)
    array = raw[-raw.ctypes.data % 64 :][: 8 * dtype.itemsize].view(dtype).reshape(2, 4)  # jax requires this alignment
    sources = [array, array.T]
    if library == "torch":
        sources += [array[1], array[:, 1::2], np.broadcast_to(array[0], (3, 4))]
    for source in sources:
        a = arrayhub.asarray(source)
        got = module.from_dlpack(a) if library == "torch" else module.dlpack.from_dlpack(a)
        back = take(got)
        assert name in str(got.dtype) and tuple(got.shape) == a.shape
        assert (back.dtype, back.ptr, np.asarray(back).tobytes()) == (dtype, a.ptr, source.tobytes())
    del raw, array, sources, source, a, back
    assert lives(alive)
    del got
    assert not lives(alive)


def test_numpy_imports_read_only_memory_only_from_versioned_capsules():
    a = arrayhub.asarray(b"abcd")
    if NUMPY < (2, 1):  # this NumPy requests legacy capsules, which cannot represent read-only memory
        with pytest.raises(BufferError, match="read-only"):
            np.from_dlpack(a)
    else:
        assert not np.from_dlpack(a).flags.writeable
    jax = pytest.importorskip("jax")
    if legacy_consumer(jax):
        with pytest.raises(BufferError, match="read-only"):
            jax.dlpack.from_dlpack(a)
    else:
        taken = np.asarray(jax.dlpack.from_dlpack(a))
        assert bytes(taken) == b"abcd" and not taken.flags.writeable


def test_jax_four_bit_elements_are_packed():
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        a = take(jax.numpy.array([1, 2, 3, 0.5, 6, -1], jax.numpy.float4_e2m1fn))
    assert (a.nbytes, a.memory.nbytes) == (3, 3)
    with pytest.raises(BufferError, match="packed"):
        np.from_dlpack(a.__array__())


EMPTY = {
    "no dimensions of one": np.ones(0),
    "a slice": np.ones(5)[2:2],
    "every second": np.ones(5)[2:2:2],
    "reversed": np.ones(0)[::-1],
    "no rows": np.ones((0, 3)),
    "no columns": np.ones((3, 0)),
    "no columns of a slice": np.ones((3, 4))[:, 1:1],
    "Fortran order": np.ones((0, 3, 2), order="F"),
    "three dimensions": np.ones((2, 0, 3)),
    "broadcast": np.broadcast_to(np.ones((1, 1)), (5, 0)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_arrays_have_the_strides_of_torch(name):
    torch = pytest.importorskip("torch")
    x = arrayhub.asarray(EMPTY[name])
    assert x.strides == torch.ones(x.shape).stride() == torch.from_dlpack(x).stride()
    assert x.strides == arrayhub.asarray(torch.ones(EMPTY[name].shape)).strides
    assert arrayhub.as_numpy(x).shape == EMPTY[name].shape


@pytest.mark.parametrize("name", ["no dimensions of one", "a slice", "every second", "reversed"])
def test_pyarrow_imports_empty_arrays_through_dlpack(name):
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa.Array, "from_dlpack"):
        pytest.skip("pyarrow 26 or newer")
    for x in (
        arrayhub.asarray(EMPTY[name]),
        arrayhub.asarray(EMPTY[name], copy=True),
        arrayhub.asarray(EMPTY[name].astype("i2"))[:0],
    ):
        assert len(pa.Array.from_dlpack(x)) == 0
