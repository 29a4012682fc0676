"""The copies that a caller asks for: host and SYCL here, CUDA in tests/gpu."""

import numpy as np
import pytest

import arrayhub


def layouts():
    base = np.arange(60, dtype="f4").reshape(3, 4, 5)
    return {
        "C": base,
        "F": np.asfortranarray(base),
        "negative": base[::-1, ::2, ::-1],
        "broadcast": np.broadcast_to(base[:1], (3, 4, 5)),
        "transposed": base.transpose(2, 0, 1),
        "0-d": np.array(3.5, "f4"),
        "empty": base[:0],
    }


@pytest.fixture(params=["device", "shared", "host"])
def usm_type(request):
    pytest.importorskip("dpctl")
    return request.param


@pytest.mark.parametrize("name", layouts())
def test_host_copies_have_equal_elements_and_their_own_writable_memory(name):
    a = layouts()[name]
    for order in "CFK":
        b = arrayhub.asarray(a).copy(order=order)
        np.testing.assert_array_equal(np.asarray(b), a)
        assert b.access == "readwrite" and not np.shares_memory(np.asarray(b), a)
        assert order == "K" or getattr(b.flags, f"{order.lower()}_contiguous")
        assert b.ptr % 64 == 0


def test_order_k_keeps_the_order_of_the_dimensions():
    a = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)
    assert np.asarray(arrayhub.asarray(a).copy(order="K")).strides == a.copy(order="K").strides


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="'A'"):
        arrayhub.asarray(np.arange(3)).copy(order="A")


@pytest.mark.parametrize("name", layouts())
def test_to_device_and_back(usm_type, name):
    a = layouts()[name]
    u = arrayhub.to_device(a, "oneapi:0")
    assert u.usm_type == "device" and str(u.device) == "oneapi:0" and u.shape == a.shape
    np.testing.assert_array_equal(arrayhub.as_numpy(u, copy=True), a)
    placed = arrayhub.USMArray(a.shape, a.dtype.str, buffer=usm_type)
    if usm_type != "device":
        np.asarray(placed)[...] = a
        np.testing.assert_array_equal(np.asarray(placed.copy()), a)
        assert placed.copy().usm_type == usm_type


@pytest.mark.parametrize("key", [np.s_[::-1, ::2], np.s_[1:, 1:3], np.s_[..., None, 1]])
def test_a_view_of_device_memory_is_copied_as_it_stands(key):
    pytest.importorskip("dpctl")
    a = np.arange(24, dtype="i8").reshape(4, 6)
    u = arrayhub.to_device(a, "oneapi:0")
    host = u[key].to_host()
    np.testing.assert_array_equal(np.asarray(host), a[key])
    assert str(host.device) == "cpu" and host.flags.c_contiguous
    again = u[key].copy()
    assert again.usm_type == "device"
    np.testing.assert_array_equal(np.asarray(again.to_host()), a[key])


def test_only_what_a_view_reaches_is_moved():
    pytest.importorskip("dpctl")
    from arrayhub.runtimes import sycl

    u = arrayhub.to_device(np.arange(1000.0).reshape(10, 100), "oneapi:0")
    assert sycl.reach(u[3]) == (u.ptr + 2400, 800)


def test_to_host_of_what_the_host_reads_is_a_view():
    pytest.importorskip("dpctl")
    u = arrayhub.USMArray((4,), "i4", buffer="shared")
    host = arrayhub.to_host(u)
    assert host.ptr == u.ptr and str(host.device) == "cpu" and host.usm_type is None
    assert arrayhub.to_host(u, copy=True).ptr != u.ptr
    assert arrayhub.to_host(u, copy=False).ptr == u.ptr


def test_copy_false_forbids_the_copy():
    pytest.importorskip("dpctl")
    u = arrayhub.to_device(np.arange(3), "oneapi:0")
    with pytest.raises(BufferError, match="copy=False"):
        arrayhub.to_host(u, copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        arrayhub.to_device(np.arange(3), "oneapi:0", copy=False)


def test_out_is_filled_and_returned():
    out = np.zeros((3, 4, 5), "f4")
    a = layouts()["C"]
    assert arrayhub.to_host(a, out=out) is out
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize(
    "out",
    [np.zeros(4, "i4"), np.zeros(3, "i8"), np.zeros(3, ">i4"), np.zeros(3, [("a", "i4")]), np.zeros(3, "f4")],
    ids=["shape", "size", "byte order", "record", "kind"],
)
def test_an_out_of_another_shape_or_type_is_refused(out):
    with pytest.raises(ValueError, match="out is"):
        arrayhub.to_host(np.zeros(3, "i4"), out=out)


def test_a_read_only_out_is_refused():
    out = np.zeros(3, "i4")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        arrayhub.to_host(np.ones(3, "i4"), out=out)


def test_an_overlapping_out_gets_the_old_values():
    a = np.arange(6)
    arrayhub.to_host(a[:-1], out=a[1:])
    assert a.tolist() == [0, 0, 1, 2, 3, 4]


def test_dlpack_asked_for_a_copy_says_so():
    u = arrayhub.asarray(np.arange(3.0))
    v = arrayhub.from_dlpack(u.__dlpack__(max_version=(1, 3), copy=True))
    assert v.ptr != u.ptr and v.access == "readwrite"
    np.testing.assert_array_equal(np.asarray(v), np.arange(3.0))


def test_dlpack_brings_device_memory_to_the_host_where_asked():
    pytest.importorskip("dpctl")
    u = arrayhub.to_device(np.arange(3.0), "oneapi:0")

    class Producer:
        def __dlpack__(self, **options):
            return u.__dlpack__(dl_device=(1, 0), **options)

        def __dlpack_device__(self):
            return (1, 0)

    np.testing.assert_array_equal(np.from_dlpack(Producer()), np.arange(3.0))
    with pytest.raises(BufferError, match="copy=False"):
        u.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)


def test_a_device_that_no_engine_reaches():
    with pytest.raises(BufferError, match="metal"):
        arrayhub.to_device(np.arange(3), "metal:0")


def test_a_device_that_is_no_device():
    with pytest.raises(ValueError, match="nonsense"):
        arrayhub.to_device(np.arange(3), "nonsense:0")
    with pytest.raises(TypeError, match="float"):
        arrayhub.to_device(np.arange(3), 1.5)
