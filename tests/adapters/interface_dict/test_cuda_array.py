"""Test import and export through ``__cuda_array_interface__``, without access to the memory.

The tests run only without a CUDA driver, because a driver rejects their invented addresses.
"""

import weakref

import numpy as np
import pytest
from exporters import Index, has_driver
from producers import lives

import arrayhub
from arrayhub import InterfaceError, asarray

ADDRESS = 0x7F3A_0000_1000
STREAM = 0x5581_2345_6780


pytestmark = pytest.mark.skipif(has_driver(), reason="a CUDA driver rejects the invented addresses of this file")


class Producer:
    """A producer whose ``__cuda_array_interface__`` is a property. It counts reads of the property."""

    def __init__(self, **keys):
        self.keys = keys
        self.reads = 0

    @property
    def __cuda_array_interface__(self):
        self.reads += 1
        return self.keys


def description(**changes):
    keys = {"shape": (2, 3), "typestr": "<f4", "data": (ADDRESS, False), "version": 3, "strides": None}
    keys.update(changes)
    return {key: value for key, value in keys.items() if value is not MISSING}


MISSING = object()


def take(**changes):
    return asarray(Producer(**description(**changes)), via="cuda")


# --------------------------------------------------------------------------------------------------------- import


def test_each_key_of_the_dict_is_imported():
    producer = Producer(**description())
    a = asarray(producer, via="cuda")
    assert (a.shape, a.strides, a.byte_strides) == ((2, 3), (3, 1), (12, 4))
    assert (a.ptr, a.dtype, a.itemsize, a.nbytes) == (ADDRESS, np.dtype("f4"), 4, 24)
    assert a.device == arrayhub.Device("cuda:0")
    assert a.usm_type is None
    assert (a.access, a.protocol) == ("readwrite", "cuda")
    assert a.base is producer
    assert producer.reads == 1
    assert (a.memory.address, a.memory.nbytes) == (ADDRESS, 24)


def test_cuda_dict_is_used_without_via():
    assert asarray(Producer(**description())).protocol == "cuda"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 17, Index(3)])
def test_all_versions_of_the_dict_are_accepted(version):
    assert take(version=version).shape == (2, 3)


@pytest.mark.parametrize(
    ("shape", "strides", "elements", "c", "f"),
    [
        ((4, 5), None, (5, 1), True, False),
        ((2, 3), (12, 4), (3, 1), True, False),
        ((2, 3), (4, 8), (1, 2), False, True),
        ((2, 3), (24, 8), (6, 2), False, False),
        ((3,), (-4,), (-1,), False, False),
        ((5, 4), (0, 0), (0, 0), False, False),
        ((), (), (), True, True),
        ((1, 3), (999, 4), (3, 1), True, True),  # the stride of a dimension of length 1 is ignored
    ],
)
def test_byte_strides_become_element_strides_and_flags(shape, strides, elements, c, f):
    a = take(shape=shape, strides=strides)
    assert (a.strides, a.flags.c_contiguous, a.flags.f_contiguous) == (elements, c, f)


def test_strides_that_are_not_multiples_of_the_item_size():
    a = take(strides=(15, 5))
    assert a.byte_strides == (15, 5)
    with pytest.raises(ValueError, match="byte_strides"):
        _ = a.strides
    with pytest.raises(BufferError, match="multiples of the item size"):
        a.__dlpack__(max_version=(1, 0))


def test_memory_of_negative_strides_starts_below_the_pointer():
    a = take(shape=(4,), strides=(-4,))
    assert (a.ptr, a.memory.address, a.offset) == (ADDRESS, ADDRESS - 12, 3)


@pytest.mark.parametrize("address", [0, ADDRESS])
def test_empty_array_exports_a_null_pointer(address):
    a = take(shape=(0, 5), data=(address, False))
    assert (a.size, a.nbytes) == (0, 0)
    assert a.__cuda_array_interface__["data"] == (0, False)


@pytest.mark.parametrize(
    "typestr",
    ["|b1", "<i1", "|i1", "<i8", "<u2", "<f2", "<f8", "<c8", "<c16", ">i4", "<M8[ns]", "<m8[s]", "|S5", "<U7", "|V6"],
)
def test_typestr_round_trips(typestr):
    a = take(typestr=typestr)
    assert a.dtype == np.dtype(typestr)
    assert np.dtype(a.__cuda_array_interface__["typestr"]) == np.dtype(typestr)


def test_record_descr_round_trips():
    dtype = np.dtype([("x", "<i4"), ("y", "<f8", (2,))])
    a = take(typestr="|V20", descr=dtype.descr, shape=(3,))
    assert a.dtype == dtype
    out = a.__cuda_array_interface__
    assert (out["typestr"], out["descr"]) == ("|V20", dtype.descr)


def test_read_only_flag_is_imported_and_exported():
    a = take(data=(ADDRESS, True))
    assert a.access == "readonly"
    assert a.__cuda_array_interface__["data"] == (ADDRESS, True)
    with pytest.raises(BufferError, match="read-only"):
        a.__dlpack__()  # legacy capsules lack the read-only flag


# -------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize(
    ("named", "emitted"), [(MISSING, None), (None, None), (1, 1), (2, 2), (STREAM, STREAM), (Index(STREAM), STREAM)]
)
def test_stream_of_version_3_is_emitted(named, emitted):
    assert take(stream=named).__cuda_array_interface__["stream"] == emitted


@pytest.mark.parametrize("version", [0, 1, 2])
def test_stream_key_is_ignored_below_version_3(version):
    """Versions before 3 do not define `stream`. The array is ordered after the legacy default stream, number 1."""
    assert take(version=version, stream=STREAM).__cuda_array_interface__["stream"] == 1


def test_a_view_keeps_the_stream():
    assert take(stream=STREAM)[1:].T.__cuda_array_interface__["stream"] == STREAM


class CudaStream:
    def __init__(self, handle, version=0):
        self.pair = (version, handle)

    def __cuda_stream__(self):
        return self.pair


class TorchStream:
    cuda_stream = STREAM


class CupyStream:
    ptr = STREAM


class NullStream:
    ptr = 0


@pytest.mark.parametrize(
    ("stream", "emitted"),
    [
        (1, 1), (2, 2), (STREAM, STREAM), (CudaStream(STREAM), STREAM), (CudaStream(0), 1), (TorchStream(), STREAM),
        (CupyStream(), STREAM), (NullStream(), 1), (Index(STREAM), STREAM),
    ],
)  # fmt: skip
def test_stream_argument_of_asarray_becomes_the_stream_of_the_array(stream, emitted):
    a = asarray(Producer(**description(stream=1)), via="cuda", stream=stream)
    assert a.__cuda_array_interface__["stream"] == emitted


def test_stream_minus_one_keeps_the_producers_stream():
    a = asarray(Producer(**description(stream=STREAM)), via="cuda", stream=-1)
    assert a.__cuda_array_interface__["stream"] == STREAM


def test_array_keeps_the_stream_object_alive():
    stream = CudaStream(STREAM)
    died = weakref.ref(stream)
    a = asarray(Producer(**description(stream=1)), via="cuda", stream=stream)
    del stream
    assert lives(died)
    del a
    assert not lives(died)


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (0, InterfaceError), (-2, InterfaceError), (2**63, InterfaceError), (True, TypeError), ("1", TypeError),
        (1.0, TypeError), (object(), TypeError), (CudaStream(STREAM, version=1), InterfaceError),
        (CudaStream(None), TypeError), (CudaStream(-1), InterfaceError),
    ],
)  # fmt: skip
def test_invalid_streams_raise(stream, error):
    producer = Producer(**description(stream=1))
    with pytest.raises(error, match="stream"):
        asarray(producer, via="cuda", stream=stream)
    with pytest.raises(error, match="stream"):
        asarray(producer, via="cuda").__dlpack__(stream=stream, max_version=(1, 0))


# ------------------------------------------------------------------------------------------------- invalid dicts


@pytest.mark.parametrize(
    "descr",
    [
        [], "x", [("x", "<i4")], [("x", "|O8"), ("y", "<f8", (2,))], [("x",)], [1],
        [("x", "<i4"), ("x", "<f8", (2,))], [("x", "<V20", (2**40,))],
    ],
)  # fmt: skip
def test_malformed_descr_raises(descr):
    with pytest.raises((ValueError, TypeError)) as caught:
        take(typestr="|V20", descr=descr)
    assert "descr" in str(caught.value) or "dtype" in str(caught.value)


# ---------------------------------------------------------------------------------------------------------- export


def test_dict_round_trips_without_changes():
    keys = description(stream=STREAM, strides=(24, 8))
    out = asarray(Producer(**keys), via="cuda").__cuda_array_interface__
    assert out == keys
    assert asarray(Producer(**out), via="cuda").__cuda_array_interface__ == out


def test_emitted_strides_of_contiguous_memory_are_none():
    assert take(strides=(12, 4)).__cuda_array_interface__["strides"] is None


def test_host_memory_does_not_have_the_cuda_dict():
    a = asarray(np.ones(3))
    assert not hasattr(a, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="to_device"):
        _ = a.__cuda_array_interface__


def test_types_without_typestr_do_not_have_the_cuda_dict():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"):
        number = np.dtype(getattr(ml_dtypes, name))
        for dtype in (number, [("a", number), ("b", "i4")], [("q", [("a", number)], 2)], [("a", number, (3,))]):
            dtype = np.dtype(dtype)
            a = take(typestr="|u1", shape=(2 * dtype.itemsize,)).view(dtype)
            assert a.dtype == dtype
            with pytest.raises(AttributeError, match="__cuda_array_interface__: (typestr|descr) cannot represent"):
                _ = a.__cuda_array_interface__


def test_host_protocols_reject_device_memory():
    a = take()
    for attribute in ("__array_interface__", "__array_struct__", "__sycl_usm_array_interface__"):
        assert not hasattr(a, attribute)
    with pytest.raises(BufferError, match="to_host"):
        memoryview(a)
    with pytest.raises(TypeError, match="to_host"):
        np.asarray(a)
    with pytest.raises((BufferError, RuntimeError)):  # NumPy rejects the device
        np.from_dlpack(a)


def test_array_imported_from_a_cuda_dict_is_exported_by_dlpack():
    a = take(stream=STREAM)
    assert a.__dlpack_device__() == (2, 0)
    for stream in (None, -1, 1, 2, STREAM):
        assert "dltensor_versioned" in repr(a.__dlpack__(stream=stream, max_version=(1, 0)))
    assert '"dltensor"' in repr(a.__dlpack__(stream=1))


def test_numba_recognizes_a_cuda_array():
    """``numba.cuda.is_cuda_array`` only tests whether the attribute exists, so the test does not require a GPU."""
    devicearray = pytest.importorskip("numba.cuda.cudadrv.devicearray")
    assert devicearray is not None
    from numba import cuda

    assert cuda.is_cuda_array(take())
    assert not cuda.is_cuda_array(asarray(np.ones(3)))


@pytest.mark.parametrize("name", ["jax", "numba"])
def test_library_without_cuda_support_states_that_nothing_works(name):
    pytest.importorskip(name)
    x = asarray(Producer(**description()))
    with pytest.raises(arrayhub.Refusal, match=f"^{name}: the memory is on cuda:0, and no CUDA driver") as raised:
        arrayhub.convert(x, name)
    assert raised.value.call == arrayhub.explain(x, name).call == ""


class Records:
    """A producer of records, like numba's device arrays: the dict lacks ``descr``, and `dtype` has the fields."""

    def __init__(self, dtype, shape=(3,), **keys):
        self.dtype = np.dtype(dtype)
        size = self.dtype.itemsize
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": f"|V{size}", "data": (ADDRESS, False), "version": 3, "strides": None, **keys
        }  # fmt: skip


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "i4"), ("b", "f4")],
        [("a", "i1"), ("b", "f8")],
        np.dtype([("a", "i1"), ("b", "f8")], align=True),
        [("a", "f4", (2, 3)), ("b", [("c", "i2"), ("d", "S3")])],
        {"names": ["x", "y"], "formats": ["f4", "f4"], "offsets": [8, 0], "itemsize": 32},
    ],
    ids=str,
)
def test_records_without_descr_keep_the_fields_of_their_dtype(dtype):
    x = asarray(Records(dtype))
    assert (x.dtype, x.shape, x.ptr) == (np.dtype(dtype), (3,), ADDRESS)
    assert x[np.dtype(dtype).names[0]].shape[:1] == (3,)


@pytest.mark.parametrize("dtype", ["V8", "f8", [("a", "i4")], [("a", "O")]], ids=str)
def test_dtype_of_another_kind_or_size_is_ignored(dtype):
    producer = Records([("a", "i8")])
    producer.dtype = np.dtype(dtype)
    assert asarray(producer).dtype == "V8"
    producer.dtype = "not a dtype"
    assert asarray(producer).dtype == "V8"


def test_descr_takes_precedence_over_the_dtype():
    producer = Records([("a", "i4"), ("b", "i4")], descr=[("c", "<f4"), ("d", "<f4")])
    assert asarray(producer).dtype.names == ("c", "d")
