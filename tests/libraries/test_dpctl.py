"""Test that dpctl and dpnp arrays are imported and exported without copies, in queue order, and released."""

import weakref

import arrayhub as ah  # imported before dpctl, so that dpctl finds the CPU runtime

# isort: split
import numpy as np
import pytest
from numpy_release import HAS_DLPACK_1
from producers import lives

from arrayhub.libraries.dpctl import assign_by_kernel

dpctl, dpm = pytest.importorskip("dpctl"), pytest.importorskip("dpctl.memory")
dpnp = pytest.importorskip("dpnp")
dpt = pytest.importorskip("dpnp.tensor")
dpnp_array = pytest.importorskip("dpnp.dpnp_array").dpnp_array

NAME = "__sycl_usm_array_interface__"
KINDS = ["device", "shared", "host"]
CLASSES = {"device": dpm.MemoryUSMDevice, "shared": dpm.MemoryUSMShared, "host": dpm.MemoryUSMHost}


def whole(kind, dtype):
    values = dpt.reshape(dpt.arange(24, dtype="i4", usm_type=kind), (4, 6))
    return dpt.astype(values, dtype)


LAYOUTS = {  # tests/interop/test_random_layouts.py tests others
    "transposed": lambda u: u.T,  # the strides of an F-contiguous array are NULL in the struct
    "negative": lambda u: u[::-1, ::-2],
    "0-d": lambda u: dpt.reshape(u[1:2, 1:2], ()),
    "broadcast": lambda u: dpt.broadcast_to(u[:1], (4, 6)),
}


def read_only(u):
    view = dpt.usm_ndarray(u.shape, dtype=u.dtype, buffer=u.usm_data, strides=u.strides, offset=offset_of(u))
    view.flags.writable = False
    return view


def offset_of(u):
    return getattr(u, NAME)["offset"]


# ---------------------------------------------------------------------------------------------- the struct and the dict


def test_an_unknown_struct_falls_back_to_the_dict():
    class Other(dpt.usm_ndarray):  # its instances are larger than those of usm_ndarray, because they have a __dict__
        pass

    plain = whole("shared", "f4")
    u = Other(plain.shape, dtype="f4", buffer=plain, strides=(6, -1), offset=5)
    for obj in (u, dpnp_array._create_from_usm_ndarray(u)):
        a = ah.asarray(obj)
        assert (a.ptr, a.strides, a.usm_type) == (plain._pointer + 20, (6, -1), "shared")
        assert np.array_equal(np.asarray(a), dpt.asnumpy(plain)[:, ::-1])
    assert ah.asarray(dpnp_array._create_from_usm_ndarray(u)).base is plain.usm_data  # base is the complete allocation


def test_fake_usm_ndarrays_are_rejected():
    impostor = type("usm_ndarray", (), {"__module__": "dpnp.tensor._usmarray", "__slots__": tuple("abcdefgh")})
    with pytest.raises((TypeError, BufferError)):
        ah.asarray(impostor())
    hollow = dpnp.arange(3)
    hollow._array_obj = impostor()
    with pytest.raises((TypeError, BufferError, AttributeError)):
        ah.asarray(hollow)


def test_dict_is_used_if_it_points_outside_the_memory_object():
    """The array's dict is used if its address is outside the array's Memory object."""
    true = dpnp.arange(4, dtype="f4", usm_type="shared")
    described = true._array_obj.__sycl_usm_array_interface__

    class Inner:
        usm_data = dpm.MemoryUSMShared(64)
        __sycl_usm_array_interface__ = described

    array = dpnp.zeros(4, dtype="f4")
    array._array_obj = Inner()
    x = ah.asarray(array)
    assert x.memory.address == x.ptr == described["data"][0]
    assert list(np.asarray(x)) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_dpnp_receives_whole_elements_of_the_memory(kind):
    """dpnp views the complete memory, so it receives a whole number of elements, for example 32 of 33 bytes."""
    memory = CLASSES[kind](33)
    memory.copy_from_host(np.arange(33, dtype="u1"))
    x = ah.USMArray((4,), "i8", memory)
    words = np.arange(32, dtype="u1").view("i8")
    narrow, shorts = x.view("i2")[::-3], words.view("i2")[::-3]
    for a, shown in ((x, words), (x[1:3], words[1:3]), (x[1:1], words[1:1]), (narrow, shorts)):
        made = ah.as_dpnp(a)
        assert dpnp.asnumpy(made).tolist() == made.tolist() == shown.tolist()
        assert dpt.asnumpy(dpt.asarray(a)).tolist() == shown.tolist()
    assert ah.as_dpnp(x).get_array().usm_data.nbytes == 32 and x.base is memory and x.memory.nbytes == 33
    assert ah.as_dpnp(ah.USMArray((33,), "u1", memory)).get_array().usm_data is memory
    other = dpctl.SyclQueue(property="in_order")
    assert dpnp.asnumpy(ah.as_dpnp(ah.asarray(x, stream=other))).tolist() == words.tolist()


@pytest.mark.parametrize("typestr", [">f4", ">i8", "g", "G"])
def test_error_for_types_missing_in_dpnp_suggests_a_conversion(typestr):
    host = np.ones(3, typestr)
    swapped = not host.dtype.isnative  # `copy=True` converts to native byte order
    for x, copy in ((ah.to_device(host, "oneapi:0"), False), *([] if swapped else [(host, True)])):
        with pytest.raises(BufferError) as raised:
            ah.as_dpnp(x, copy=copy)
        converted = eval(raised.value.call, {"arrayhub": ah, "x": x})
        assert dpnp.asnumpy(converted).tolist() == [1, 1, 1]


# ------------------------------------------------------------------------------------------------------- memory objects


@pytest.mark.parametrize("make", [lambda u: u, dpnp_array._create_from_usm_ndarray], ids=["usm_ndarray", "dpnp"])
def test_base_is_the_memory_object(make):
    u = whole("device", "f8")
    a = ah.asarray(make(u[1:, 2:]))
    assert a.base is u.usm_data
    assert (a.memory.address, a.memory.nbytes) == (u.usm_data._pointer, u.usm_data.nbytes)
    assert a.offset == 8
    assert a[1, 1].offset == 8 + 7
    assert a[1, 1].base is u.usm_data


class Tracked(dpm.MemoryUSMShared):
    """A Memory object that can be weakly referenced."""


@pytest.mark.parametrize("hold", ["view", "usm_ndarray", "capsule"])  # the matrix has consumers
def test_the_producer_is_freed_exactly_once_and_last(hold):
    memory = Tracked(128, alignment=64)
    gone = weakref.ref(memory)
    u = dpt.usm_ndarray((4, 8), dtype="f4", buffer=memory)
    assert u.usm_data is memory
    a = ah.asarray(u)
    kept = {
        "view": lambda a: a[1:],
        "usm_ndarray": lambda a: a.__usm_ndarray__,
        "capsule": lambda a: a.__dlpack__(max_version=(1, 0)),
    }[hold](a)
    del a, u, memory
    assert lives(gone)
    del kept
    assert not lives(gone)


# ------------------------------------------------------------------------------------------------ USM to host libraries


def test_host_libraries_reject_device_usm():
    u = whole("device", "f4")
    a = ah.asarray(u)
    with pytest.raises(TypeError, match=r"numpy: the memory is on oneapi:\d+.*call arrayhub.to_host\(x\)"):
        np.asarray(a)
    for absent in ("__array_interface__", "__array_struct__", "__cuda_array_interface__"):
        assert not hasattr(a, absent)
    for made in (ah.as_numpy(u, copy=True), ah.as_torch(u, copy=True).numpy()):
        assert np.array_equal(made, dpt.asnumpy(u))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_compact_and_uses_the_queue_of_the_original(kind):
    u = whole(kind, "f8")[1:, ::2]
    copied = ah.asarray(u).copy()
    assert (copied.device, copied.access, copied.memory.nbytes) == (ah.asarray(u).device, "readwrite", u.size * 8)
    assert copied.base.sycl_queue == u.sycl_queue


def test_copy_with_order_k_keeps_the_order_of_strides():
    u = dpt.permute_dims(dpt.reshape(dpt.arange(24, usm_type="device"), (2, 3, 4)), (1, 0, 2))
    copied = ah.asarray(u).copy(order="K")  # compact, and neither C- nor F-contiguous
    assert copied.strides == u.strides
    assert np.array_equal(np.asarray(copied.to_host()), dpt.asnumpy(u))


# --------------------------------------------------------------------------------------------------- queues and waiting

QUEUES = {
    "dpnp's own": lambda: dpnp.arange(1).sycl_queue,
    "out of order": dpctl.SyclQueue,
    "in order": lambda: dpctl.SyclQueue(property="in_order"),
}
READERS = {
    "numpy": lambda x: np.asarray(ah.asarray(x)),
    "via sycl": lambda x: np.asarray(ah.asarray(x, via="sycl")),
    "via dlpack": lambda x: np.asarray(ah.asarray(x, via="dlpack")),
    "memoryview": lambda x: np.asarray(memoryview(ah.asarray(x))),
    "torch": lambda x: ah.as_torch(x).numpy(),
    "dict": lambda x: np.asarray(ah.asarray(type("P", (), {NAME: getattr(ah.asarray(x), NAME), "keep": x})())),
    "dlpack to dpnp": lambda x: dpnp.asnumpy(dpnp.from_dlpack(ah.asarray(x))),
    **({"DLPack to the host": lambda x: np.from_dlpack(ah.asarray(x), device="cpu")} if HAS_DLPACK_1 else {}),
    "__usm_ndarray__": lambda x: dpnp.asnumpy(dpnp.asarray(ah.asarray(x)) + 0),
    "as_dpnp": lambda x: dpnp.asnumpy(ah.as_dpnp(ah.asarray(x)) * 1),
    "to_host": lambda x: np.asarray(ah.to_host(x, copy=True)),
    "copy": lambda x: np.asarray(ah.asarray(x).copy()),
    "another queue": lambda x: on_another_queue(x, dpctl.SyclQueue()),
    "another in-order queue": lambda x: on_another_queue(x, dpctl.SyclQueue(property="in_order")),
    "the same queue": lambda x: on_another_queue(x, x.sycl_queue),
}


def on_another_queue(x, queue):
    """Copy `x` like a DLPack consumer that passes a queue and immediately submits work to this queue."""
    a = ah.asarray(x)
    shown = ah.asarray(a.__dlpack__(stream=queue, max_version=(1, 0)))
    out = dpm.MemoryUSMHost(a.nbytes, queue=queue)
    queue.memcpy_async(out, shown.base, a.nbytes)
    queue.wait()  # the event's `wait` may return early, see "Known defects of libraries" in docs/protocols.md
    return np.frombuffer(out, a.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("reader", READERS)
def test_readers_wait_for_pending_work(reader, queue):
    queue = QUEUES[queue]()
    for _ in range(4):
        x = dpnp.ones(1_500_000, dtype="f4", usm_type="shared", sycl_queue=queue)
        for _ in range(5):
            x = x * 2 + 1
        values = READERS[reader](x)
        assert values[-1] == values[0] == 63
        assert (values == 63).all()


@pytest.mark.parametrize("export", [ah.as_dpnp, dpnp.asarray])
def test_kernels_of_dpnp_run_after_work_that_dpnp_did_not_submit(export):
    """dpnp orders its kernels only after the work that dpctl's order manager records, such as its own."""
    for _ in range(10):
        x, source = (dpnp.full(1 << 20, value, dtype="f4", usm_type="shared") for value in (0, 1))
        dpnp.matmul(*[dpnp.ones((700, 700))] * 2)
        queue = x.sycl_queue
        queue.memcpy_async(x.get_array().usm_data, source.get_array().usm_data, x.nbytes, [queue.submit_barrier()])
        total = export(ah.asarray(x)).sum()
        queue.wait()
        assert total == x.size


def test_values_are_not_ready_without_a_wait():
    """A view without a wait shows values that are not computed yet, so the test above could fail."""
    early = 0
    for _ in range(10):
        x = dpnp.ones(1_500_000, dtype="f4", usm_type="shared")
        dpnp.synchronize_array_data(x)
        view = np.asarray(ah.asarray(x))  # shares the memory, and does not wait again
        for _ in range(5):
            x *= 2
            x += 1
        early += view[-1] != 63
        dpnp.synchronize_array_data(x)
        assert view[-1] == 63
    assert early > 0


def test_streams_that_are_not_queues_are_rejected():
    a = ah.asarray(whole("device", "f4"))
    for stream in (1, "queue", object()):
        with pytest.raises(BufferError, match="accepted: None or a dpctl.SyclQueue"):
            a.__dlpack__(stream=stream, max_version=(1, 0))


# ------------------------------------------------------------------------------------------------------ dpnp, both ways


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protect", [False, True])
def test_dpnp_round_trip_shares_memory(layout, kind, protect):
    u = LAYOUTS[layout](whole(kind, "i8"))
    u = read_only(u) if protect else u
    a = ah.asarray(u)
    for out in (ah.as_dpnp(a), dpnp.asarray(a), dpt.asarray(a), a.__usm_ndarray__, ah.convert(u, "dpnp")):
        out = out if isinstance(out, dpt.usm_ndarray) else out.get_array()
        assert (out._pointer, out.shape, out.usm_type) == (u._pointer, u.shape, kind)
        assert out.flags.writable is not protect
        assert out.usm_data is u.usm_data
        assert np.array_equal(dpt.asnumpy(out), dpt.asnumpy(u))


def test_dlpack_import_keeps_the_read_only_flag():
    u = read_only(whole("shared", "f4"))
    assert not dpnp.from_dlpack(ah.asarray(u)).flags.writable
    assert ah.asarray(u, via="dlpack").access == "readonly"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 0), (0,), (2, 0, 4)])
def test_empty_arrays_round_trip_through_dpnp(kind, shape):
    """Export the address of an empty array, because dpnp 0.20 fails for the null pointer that dlpack.h requires."""
    e = dpt.empty(shape, dtype="i4", usm_type=kind)
    back = dpt.from_dlpack(ah.asarray(e))
    assert (back.shape, back.dtype, back.sycl_queue) == (e.shape, e.dtype, e.sycl_queue)
    assert dpnp.from_dlpack(ah.asarray(e)).shape == shape
    made = ah.USMArray(shape, "i4", buffer=kind)
    assert dpt.from_dlpack(made).shape == shape


@pytest.mark.parametrize("kind", ["shared", "host"])
def test_legacy_consumer_receives_host_readable_usm_as_host_memory(kind):
    """onnxruntime requests legacy capsules, and accepts only the host's device ("Unsupported device type")."""
    x = ah.USMArray((4,), "f4", buffer=kind)
    x[...] = range(4)
    back = ah.from_dlpack(x.__dlpack__())
    assert (back.device, back.ptr) == ("cpu", x.ptr)
    device = ah.USMArray((4,), "f4", buffer="device")
    assert ah.from_dlpack(device.__dlpack__()).device == device.device
    assert ah.from_dlpack(x.__dlpack__(max_version=(1, 0))).device.type == "oneapi"
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    value = onnxruntime.OrtValue.from_dlpack(x)
    assert value.numpy().tolist() == [0, 1, 2, 3]


def other_queues():
    device = dpctl.SyclDevice()
    queues = {"another context": dpctl.SyclQueue(dpctl.SyclContext([device]), device)}
    if device.partition_max_sub_devices > 1:
        queues["a sub-device"] = dpctl.SyclQueue(device.create_sub_devices(partition=1)[0])
    return queues


@pytest.mark.parametrize("kind", ["shared", "host"])
def test_pyarrow_reads_host_readable_usm(kind):
    """USM is exported as host memory, because pyarrow tries the device interface first, but does not support SYCL."""
    pa = pytest.importorskip("pyarrow")
    x = ah.USMArray((3,), "f8", buffer=kind)
    x[...] = [1, 2, 3]
    nested = ah.asnested(pa.array([[1.0, 2.0], [3.0]])).to_device("oneapi:0").to_host()
    for made in (pa.array(x), pa.record_batch([x], names=["a"]).column(0), pa.table({"a": x}).column(0).chunk(0)):
        assert made.to_pylist() == [1, 2, 3] and made.buffers()[1].address == x.ptr
    assert pa.chunked_array(x).chunk(0).buffers()[1].address == x.ptr
    assert pa.array(x[1:]).to_pylist() == [2, 3]
    assert pa.array(nested).to_pylist() == [[1, 2], [3]]


@pytest.mark.parametrize("queue", other_queues().values(), ids=other_queues())
def test_pyarrow_reads_memory_of_any_context(queue):
    pa = pytest.importorskip("pyarrow")
    x = dpnp.arange(4, dtype="f4", usm_type="shared", sycl_queue=queue)
    assert pa.array(ah.asarray(x)).to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("queue", other_queues().values(), ids=other_queues())
@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_another_context_is_not_exported_through_dlpack(queue, kind):
    x = dpnp.arange(6, dtype="f4", usm_type=kind, sycl_queue=queue)
    a = ah.asarray(x)
    assert a.__dlpack_device__() == (14, dpctl.SyclDevice().get_device_id())
    for view in (a, a[1:], ah.USMArray((6,), "f4", buffer=a)):
        with pytest.raises(BufferError, match="other than the default context.*__sycl_usm_array_interface__"):
            view.__dlpack__(max_version=(1, 0))
    assert getattr(a, NAME)["syclobj"] == queue
    again = ah.asarray(x, via="sycl")
    assert again.ptr == x.get_array()._pointer
    assert ah.as_dpnp(again).sycl_queue == queue
    assert np.asarray(a.to_host()).tolist() == [0, 1, 2, 3, 4, 5]
    assert a.copy().base.sycl_context == queue.sycl_context
    if kind == "device":
        return
    assert ah.as_torch(a).data_ptr() == ah.as_numpy(x).ctypes.data == a.ptr
    assert np.from_dlpack(a.to_host()).tolist() == [0, 1, 2, 3, 4, 5]


def test_sycl_devices_and_queues_are_accepted_as_device():
    device = dpctl.SyclDevice()
    expected = ah.Device(f"oneapi:{device.get_device_id()}")
    for spec in (device, dpctl.SyclQueue(), device.filter_string, (14, device.get_device_id())):
        assert ah.Device(spec) == expected
    assert ah.asarray(np.arange(3), device=dpctl.SyclQueue()).device == expected
    with pytest.raises(ValueError, match="no such filter"):
        ah.Device("no such filter")


# ------------------------------------------------------------------------------------------------ types that dpnp lacks


def test_as_dpnp_rejects_types_and_host_memory_that_dpnp_lacks():
    import ml_dtypes

    a = ah.USMArray((3,), ml_dtypes.bfloat16, "shared")
    with pytest.raises(BufferError, match="usm_ndarray does not support .*bfloat16"):
        ah.as_dpnp(a)
    with pytest.raises(AttributeError, match="^__usm_ndarray__: usm_ndarray does not support .*bfloat16"):
        a.__usm_ndarray__  # noqa: B018
    host = ah.asarray(np.arange(3))
    assert not hasattr(host, "__usm_ndarray__")
    with pytest.raises(ah.Refusal, match=r"not SYCL USM. Call arrayhub\.as_dpnp\(x, device='oneapi:0'\)"):
        ah.as_dpnp(host)
    assert dpnp.asnumpy(ah.as_dpnp(host, copy=True)).tolist() == [0, 1, 2]


# --------------------------------------------------------------------------------------------------- one dpnp kernel


def on_device(shape, dtype="f4", **options):
    return ah.asarray(dpt.zeros(shape, dtype=dtype, **options))


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("value", ["host", "device", "F"])
def test_a_small_copy_is_made_by_one_kernel(dtype, value):
    given = np.arange(12).astype(dtype).reshape(3, 4, order="F" if value == "F" else "C")
    out = on_device((3, 8), dtype)[:, ::2]
    array = ah.asarray(given) if value == "host" else ah.asarray(dpt.asarray(given))
    assert assign_by_kernel(array, out, array.nbytes)
    assert (ah.to_host(out).to_numpy() == given).all()


OTHER_STEPS = {
    "another shape": lambda out: ah.asarray(np.ones(4, "f4")),
    "a host array above the limit": lambda out: ah.asarray(np.ones((3, 4), "f4")),
    "host memory that is USM": lambda out: ah.ones((3, 4), "f4", memory="usm_shared"),
    "another queue": lambda out: on_device((3, 4), sycl_queue=dpctl.SyclQueue(property="in_order")),
}


@pytest.mark.parametrize("case", OTHER_STEPS)
def test_other_copies_do_not_use_the_kernel(case):
    out = on_device((3, 8))[:, ::2]
    array = OTHER_STEPS[case](out)
    most = array.nbytes - 1 if "limit" in case else 1 << 20
    assert not assign_by_kernel(array, out, most)
    assert not ah.to_host(out).to_numpy().any()
    out[...] = array
    assert (ah.to_host(out).to_numpy() == ah.to_host(array).to_numpy()).all()


def test_kernel_is_not_used_for_arrays_of_equal_layout():
    assert not assign_by_kernel(on_device((3, 4)), on_device((3, 4)), 1 << 20)
    assert not assign_by_kernel(ah.asarray(np.ones((3, 4), "f4")), on_device((3, 4)), 1 << 20)
