"""Test ``__sycl_usm_array_interface__``: its specification, invalid producers, and objects of other libraries."""

import ctypes
import gc
import sys
import types

import arrayhub as ah  # imported before dpctl, so that dpctl finds the CPU runtime

# isort: split
import numpy as np
import pytest
from children import python
from optional import optional

dpctl, dpm, dpnp = pytest.importorskip("dpctl"), pytest.importorskip("dpctl.memory"), optional("dpnp")
NAME = "__sycl_usm_array_interface__"
CLASSES = {"device": dpm.MemoryUSMDevice, "shared": dpm.MemoryUSMShared, "host": dpm.MemoryUSMHost}


class Result:
    """An object that owns and exports USM, like the result of a SYCL extension."""

    def __init__(self, memory, shape, typestr="|f4", read_only=False, **keys):
        self.memory = memory
        interface = {
            "data": (memory._pointer, read_only),
            "shape": shape,
            "typestr": typestr,
            "version": 1,
            "strides": None,
            "syclobj": memory.sycl_queue,
            **keys,
        }
        self.__sycl_usm_array_interface__ = {key: value for key, value in interface.items() if value != "missing"}


class Capsules:
    """An object whose ``_get_capsule()`` returns the capsule of a queue or a context."""

    def __init__(self, obj):
        self.obj = obj

    def _get_capsule(self):
        return self.obj._get_capsule()


FORMS = {
    "queue": lambda queue: queue,
    "context": lambda queue: queue.sycl_context,
    "filter": lambda queue: queue.sycl_device.filter_string,
    "queue capsule": lambda queue: queue._get_capsule(),
    "context capsule": lambda queue: queue.sycl_context._get_capsule(),
    "method with a queue capsule": Capsules,
    "method with a context capsule": lambda queue: Capsules(queue.sycl_context),
    "method on the instance": lambda queue: types.SimpleNamespace(_get_capsule=queue._get_capsule),
}


def filled(kind="shared", values=range(12), dtype="f4"):
    values = np.array(values, dtype)
    memory = CLASSES[kind](values.nbytes)
    memory.copy_from_host(values.view("u1"))
    return memory


# -------------------------------------------------------------------------------------------------------------- syclobj


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_syclobj_is_accepted(form, kind):
    memory = filled(kind)
    a = ah.asarray(Result(memory, (3, 4), syclobj=FORMS[form](memory.sycl_queue)))
    assert (a.shape, a.dtype, a.usm_type, a.protocol, a.access) == ((3, 4), np.float32, kind, "sycl", "readwrite")
    assert a.ptr == memory._pointer
    assert isinstance(a.base, CLASSES[kind])
    assert a.base.sycl_context == memory.sycl_context
    assert a.device == ah.Device(memory.sycl_queue)
    assert np.asarray(a.to_host()).tolist() == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize("form", ["queue capsule", "context capsule"])
def test_import_does_not_consume_the_capsule(form):
    memory = filled()
    result = Result(memory, (12,), syclobj=FORMS[form](memory.sycl_queue))
    first, second = ah.asarray(result), ah.asarray(result)
    assert first.ptr == second.ptr == ah.asarray(result).ptr
    assert dpm.as_usm_memory(result)._pointer == memory._pointer  # this call consumes the capsule


def test_imported_array_has_the_queue_of_the_producer():
    queue = dpctl.SyclQueue(property="in_order")
    memory = dpm.MemoryUSMShared(16, queue=queue)
    a = ah.asarray(Result(memory, (4,)))
    assert getattr(a, NAME)["syclobj"] == queue
    assert ah.as_dpnp(a).sycl_queue == queue


class Raises:
    def _get_capsule(self):
        raise RuntimeError("no capsule today")


@pytest.mark.parametrize(
    "syclobj",
    [
        None, "missing", 3, 2.5, b"cpu", (), object(), "no such device", "", "\0", dpctl.SyclDevice(),
        dpctl.SyclQueue, types.SimpleNamespace(_get_capsule=3), types.SimpleNamespace(_get_capsule=lambda: 3),
        types.SimpleNamespace(_get_capsule=lambda: None),
    ],
)  # fmt: skip
def test_invalid_syclobj_raises(syclobj):
    memory = filled()
    with pytest.raises(ah.InterfaceError, match=rf"{NAME}: syclobj is .*; accepted: "):
        ah.asarray(Result(memory, (12,), syclobj=syclobj))


def test_invalid_capsules_and_raising_methods_raise():
    memory = filled()
    with pytest.raises(ah.InterfaceError, match="capsule named 'SyclContextRef' or 'SyclQueueRef'"):
        ah.asarray(Result(memory, (12,), syclobj=np.arange(3).__dlpack__()))
    used = memory.sycl_queue._get_capsule()
    dpm.as_usm_memory(Result(memory, (12,), syclobj=used))
    with pytest.raises(ah.InterfaceError, match="syclobj"):
        ah.asarray(Result(memory, (12,), syclobj=used))
    with pytest.raises(ah.InterfaceError, match="no capsule today"):
        ah.asarray(Result(memory, (12,), syclobj=Raises()))


def test_import_releases_the_queue_capsule():
    memory = filled()
    capsule = memory.sycl_queue._get_capsule()
    before = sys.getrefcount(capsule)
    for _ in range(100):
        ah.asarray(Result(memory, (12,), syclobj=capsule))
    assert sys.getrefcount(capsule) == before


# --------------------------------------------------------------------------------------------------------------- layout


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((12,), None, 0), ((3, 4), None, 0), ((3, 4), (4, 1), None), ((4, 3), (1, 4), 0), ((2, 2), (4, 1), 5),
        ((), None, 7), ((4,), (-2,), 7), ((3, 4), (-4, -1), 11), ((2, 3), (0, 1), 2), ((3, 1), (-4, 99), 8),
        ((0, 4), (4, 1), 0), ((4, 2), (3, -1), 1), ((1, 1, 1), None, 11),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", CLASSES)
def test_layouts_are_imported_and_exported(kind, shape, strides, offset):
    memory = filled(kind)
    a = ah.asarray(Result(memory, shape, strides=strides, offset="missing" if offset is None else offset))
    flat = np.arange(12, dtype="f4")
    byte_strides = None if strides is None else [4 * step for step in strides]
    expected = np.ndarray(shape, "f4", flat, 4 * (offset or 0), byte_strides)
    assert np.array_equal(np.asarray(a.to_host()), expected)
    assert a.shape == shape
    if a.size:
        assert a.ptr == memory._pointer + 4 * (offset or 0)
    if strides is not None and a.size and 1 not in shape:
        assert a.strides == strides
    # import the exported dict
    again = ah.asarray(types.SimpleNamespace(**{NAME: getattr(a, NAME)}, keep=memory))
    assert np.array_equal(np.asarray(again.to_host()), expected)
    assert (again.ptr, again.strides) == (a.ptr, a.strides)


@pytest.mark.parametrize("order", ["|", "<", "=", ""])
@pytest.mark.parametrize("kind", ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_typestr_accepts_each_native_byte_order_character(order, kind):
    memory = dpm.MemoryUSMShared(64)
    a = ah.asarray(Result(memory, (4,), order + kind))
    assert a.dtype == np.dtype(kind)
    assert getattr(a, NAME)["typestr"] == "|" + kind
    assert dpm.as_usm_memory(a)._pointer == memory._pointer


@pytest.mark.parametrize(
    "typestr",
    [
        ">f8", ">i2", "zz", "", "f", "f3", "|f16", "|c32", "|S3", "|V8", "<M8[ns]", "O", "|O8", "|U2", "f8,f8", 8,
        None, b"|f4", "missing", "|f4 ", "float32", "StringDType()",
    ],
)  # fmt: skip
def test_invalid_typestr_raises(typestr):
    with pytest.raises((ah.InterfaceError, TypeError), match=f"{NAME}: (typestr|dtype) is"):
        ah.asarray(Result(dpm.MemoryUSMShared(64), (4,), typestr))


def test_typedescr_must_agree_with_typestr():
    memory = dpm.MemoryUSMShared(64)
    assert ah.asarray(Result(memory, (4,), typedescr=[("", "|f4")])).dtype == np.float32
    assert ah.asarray(Result(memory, (4,), typedescr=None)).dtype == np.float32
    for bad in ([("", "|f8")], [("x", "<f4"), ("y", "<f4")], "f4", [], [()], {"a": 1}, [("", ">f4")]):
        with pytest.raises(ah.InterfaceError, match="descr is"):
            ah.asarray(Result(memory, (4,), typedescr=bad))


# --------------------------------------------------------------------------------------------------------------- access


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("via", [None, "sycl"])
def test_dpctl_memory_objects_are_writable_despite_their_flag(kind, via):
    memory = CLASSES[kind](16)
    assert getattr(memory, NAME)["data"][1] is True
    a = ah.asarray(memory, via=via)
    assert (a.access, a.shape, a.dtype, a.usm_type, a.ptr) == ("readwrite", (16,), np.uint8, kind, memory._pointer)
    assert a.base is memory
    assert (a.memory.kind, a.memory.address, a.memory.nbytes, a.memory.owner) == ("usm", memory._pointer, 16, memory)


def test_read_only_flag_is_read_if_a_subclass_of_dpctl_memory_overrides_the_dict():
    class Plain(dpm.MemoryUSMShared):
        pass

    class Own(dpm.MemoryUSMShared):  # True means read-only, as in the specification
        @property
        def __sycl_usm_array_interface__(self):
            return {**super().__sycl_usm_array_interface__, "shape": (4,), "typestr": "|f4"}

    assert ah.asarray(Plain(16)).access == "readwrite"
    assert ah.asarray(Own(16)).access == "readonly"
    assert ah.asarray(Own(16)).shape == (4,)


def test_other_class_with_the_name_of_a_dpctl_memory_class_is_rejected():
    for name in CLASSES.values():
        impostor = type(name.__name__, (), {"__module__": "dpctl.memory._memory"})
        with pytest.raises((TypeError, BufferError)):
            ah.asarray(impostor())


# ------------------------------------------------------------------------ dicts without data, whose object has a buffer


def described(base, **keys):
    """Return a subclass of the buffer exporter `base`, with a SYCL interface dict without ``data``."""
    interface = {"shape": (4,), "typestr": "|f4", "version": 1, **keys}
    return type("Described", (base,), {NAME: interface})


@pytest.mark.parametrize("kind", ["shared", "host"])
@pytest.mark.parametrize("form", FORMS)
def test_dict_without_data_describes_the_usm_of_the_object(kind, form):
    queue = dpctl.SyclQueue()
    memory = described(CLASSES[kind], syclobj=FORMS[form](queue), strides=(-1,), offset=3)(16)
    memory.copy_from_host(np.arange(4, dtype="f4").view("u1"))
    a = ah.asarray(memory)
    assert (a.usm_type, a.ptr, a.access) == (kind, memory._pointer + 12, "readwrite")
    assert np.asarray(a).tolist() == [3, 2, 1, 0]
    assert isinstance(a.base, CLASSES[kind])
    out = np.asarray(a)
    del a, memory
    gc.collect()
    assert (out + 1).tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "keys", [{}, {"data": None}, *({"syclobj": form(dpctl.SyclQueue())} for form in FORMS.values())]
)
def test_dict_without_data_describes_the_host_buffer_of_the_object(keys):
    data = described(bytearray, **keys)(np.arange(4, dtype="f4").tobytes())
    a = ah.asarray(data)
    assert (str(a.device), a.usm_type, a.access, a.protocol) == ("cpu", None, "readwrite", "sycl")
    np.asarray(a)[0] = 9
    assert np.frombuffer(data, "f4").tolist() == [9, 1, 2, 3]
    with pytest.raises(BufferError):
        data.extend(b"x")
    assert not hasattr(a, NAME)
    del a
    data.extend(b"x")
    assert ah.asarray(described(bytes)(bytes(16))).access in ("readonly", "immutable")
    characters = described(ctypes.c_char * 16)()
    a = ah.asarray(characters)
    assert (a.ptr, a.access) == (ctypes.addressof(characters), "readwrite")


@pytest.mark.parametrize(
    "keys",
    [
        {"shape": (5,)}, {"offset": 1}, {"offset": -1}, {"strides": (2,)}, {"strides": (-1,)}, {"typestr": "|f8"},
        {"offset": 2**61 - 1}, {"offset": -(2**61)}, {"strides": (-(2**60),), "offset": 2**60, "shape": (2,)},
    ],
    ids=str,
)  # fmt: skip
def test_layouts_outside_the_buffer_raise(keys):
    for base, size in ((bytearray, 16), (dpm.MemoryUSMShared, 16)):
        with pytest.raises(ah.InterfaceError, match="a view within|below address 2"):
            ah.asarray(described(base, syclobj=dpctl.SyclQueue(), **keys)(size))


def test_missing_data_without_a_buffer_raises():
    with pytest.raises(ah.InterfaceError, match=f"{NAME}: data is None; accepted: a pair"):
        ah.asarray(Result(filled(), (12,), data="missing"))


# ------------------------------------------------------------------------------------------------------- foreign memory

FOREIGN = """
from test_sycl_usm import *
memory = np.arange(16, dtype="f4") if {kind!r} == "numpy" else dpm.MemoryUSM{usm}(64)
queue = dpctl.SyclQueue()
pointer = memory.ctypes.data if {kind!r} == "numpy" else memory._pointer
if {kind!r} == "freed":
    del memory
elif {kind!r} == "wild":
    pointer = 0xdeadbeef000
for form in FORMS.values():
    interface = {{"data": (pointer, False), "shape": (16,), "typestr": "|f4", "version": 1, "syclobj": form(queue)}}
    with pytest.raises(ah.InterfaceError, match="a pointer to USM of the context"):
        ah.asarray(types.SimpleNamespace(**{{NAME: interface}}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "usm"), [("numpy", "Host"), ("freed", "Device"), ("freed", "Shared"), ("wild", "Host")]
)
def test_pointers_that_are_not_usm_of_the_context_raise(kind, usm):
    python(FOREIGN.format(kind=kind, usm=usm), beside=__file__)


MASKS = """
from test_sycl_usm import *
from unittest import mock
memory = filled("device", [1, 2])
masks = [mock.NonCallableMock(spec=cls) for cls in (dpctl.SyclQueue, dpctl.SyclContext, dpm.MemoryUSMDevice)]
for mask in masks:
    with pytest.raises(ah.InterfaceError, match="syclobj"):
        ah.asarray(Result(memory, (2,), syclobj=mask))
    for refusing in (lambda: ah.asarray(memory).to_host(stream=mask), lambda: ah.USMArray((2,), buffer=mask)):
        with pytest.raises((BufferError, TypeError)):
            refusing()
class Mask(Result):
    __class__ = dpm.MemoryUSMDevice
assert ah.asarray(Mask(memory, (2,), "|f4")).memory.address == memory._pointer
"""


@pytest.mark.slow
def test_mocks_of_dpctl_classes_are_rejected():
    """The ``__class__`` of a mock is the class that it imitates, but the mock does not have the class's C struct."""
    python(MASKS, beside=__file__)


OTHER_CONTEXT = """
from test_sycl_usm import *
device = dpctl.SyclDevice()
other = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
assert other.sycl_context != dpctl.SyclQueue().sycl_context
memory = dpm.MemoryUSMShared(64, queue=other)
for name, form in FORMS.items():
    with pytest.raises(ah.InterfaceError, match="a pointer to USM of the context"):
        ah.asarray(Result(memory, (16,), syclobj=form(dpctl.SyclQueue())))
    if name != "filter":
        assert ah.asarray(Result(memory, (16,), syclobj=form(other))).ptr == memory._pointer
"""


@pytest.mark.slow
def test_usm_of_another_context_raises():
    python(OTHER_CONTEXT, beside=__file__)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((13,), None, 0), ((12,), None, 1), ((2,), (12,), 0), ((2,), (-1,), 0), ((12,), None, -1), ((1000,), None, 0),
        ((3,), (-6,), 11), ((), None, 12), ((), None, -1), ((2, 2), (11, 1), 0),
    ],
)  # fmt: skip
def test_view_outside_its_allocation_raises(kind, shape, strides, offset):
    with pytest.raises(ah.InterfaceError, match=f"{NAME}: (\\(shape, strides, offset\\)|data) is"):
        ah.asarray(Result(filled(kind), shape, strides=strides, offset=offset))


# ------------------------------------------------------------------------------------------------------ invalid keys


def test_empty_arrays_may_have_a_null_pointer():
    for pointer in (0, 0xDEADBEEF000):
        for form in FORMS.values():
            result = Result(filled(), (0, 3), data=(pointer, False), syclobj=form(dpctl.SyclQueue()))
            a = ah.asarray(result)
            assert (a.shape, a.size, str(a.device)) == ((0, 3), 0, str(ah.Device(dpctl.SyclQueue())))
            assert isinstance(a.base, dpm.MemoryUSMDevice)
            assert ah.as_dpnp(a).shape == (0, 3)
            assert np.asarray(a.to_host()).shape == (0, 3)
            assert a[::2].offset == 0


# -------------------------------------------------------------------------------------------------- third-party outputs


@pytest.mark.parametrize("usm_type", CLASSES)
@pytest.mark.parametrize("source", ["dpnp", "usm_ndarray", "read-only"])
def test_onedal_tables_are_imported_without_a_copy_and_read_only(usm_type, source):
    """oneDAL's DLPack capsules set the read-only flag. Its SYCL interface dicts do not (sklearnex 2026.2)."""
    to_table = pytest.importorskip("onedal.datatypes").to_table
    x = dpnp.asarray(np.arange(6, dtype="f4").reshape(2, 3), usm_type=usm_type)
    if source != "dpnp":
        x = x.get_array()
        x.flags.writable = source != "read-only"
    table = to_table(x)
    assert isinstance(getattr(table, NAME)["data"], list)  # the specification requires a tuple
    assert ah.asarray(table.__dlpack__(max_version=(1, 1), copy=False)).access == "readonly"
    for a in (ah.asarray(table), ah.asarray(table, via="sycl")):
        assert (a.shape, a.dtype, a.usm_type, a.protocol) == ((2, 3), np.float32, usm_type, "sycl")
        assert (a.access, a.is_copy, a.ptr) == ("readonly", False, ah.asarray(x).ptr)
        assert a.to_host().tolist() == [[0, 1, 2], [3, 4, 5]]
    if usm_type == "device":
        with pytest.raises(BufferError, match="device='cpu'"):
            ah.as_numpy(table)
        return
    out = ah.as_numpy(table)
    assert out.ctypes.data == ah.as_torch(table, allow_readonly=True).data_ptr() == a.ptr
    assert not out.flags.writeable
    with pytest.raises(BufferError, match="copy=True"):
        ah.as_torch(table)
    assert ah.as_torch(table, copy=True).tolist() == out.tolist()


def test_results_of_onedal_are_imported():
    """Import tables that oneDAL has computed in host memory or USM."""
    module = pytest.importorskip("onedal.basic_statistics")
    results = []

    class Keeping(module.BasicStatistics):
        def compute(self, *arguments, **keywords):
            results.append(super().compute(*arguments, **keywords))
            return results[-1]

    x = dpnp.arange(12, dtype="f4", usm_type="shared").reshape(4, 3)
    Keeping(result_options="mean|max").fit(x, queue=x.sycl_queue)
    for table, values in ((results[0].mean, [4.5, 5.5, 6.5]), (results[0].max, [9, 10, 11])):
        a = ah.asarray(table, copy=None)
        assert a.protocol == ("sycl" if hasattr(table, NAME) else "dlpack")
        assert (a.shape, np.asarray(a.to_host()).ravel().tolist()) == ((1, 3), values)
        if a.usm_type != "device":
            assert ah.as_numpy(a).ctypes.data == ah.as_torch(a, allow_readonly=True).data_ptr() == a.ptr
        del table
        assert ah.as_torch(a.to_host()).ravel().tolist() == values
