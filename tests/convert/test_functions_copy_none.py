"""Test copy=None, which returns a view if possible, and otherwise a copy."""

import numpy as np
import pytest

import arrayhub as ah


def test_shared_memory_of_a_device_is_viewed_by_numpy():
    dpnp = pytest.importorskip("dpnp")
    device, shared = (ah.asarray(dpnp.arange(3, dtype="f4", usm_type=kind)) for kind in ("device", "shared"))
    for copy in (False, None):
        for view in (
            ah.as_numpy(shared, copy=copy),
            ah.convert(shared, "numpy", copy=copy),
            shared.to_numpy(copy=copy),
        ):
            assert view.ctypes.data == shared.ptr
        with pytest.raises(BufferError):
            device.to_numpy(copy=copy)
        with pytest.raises(BufferError):
            ah.convert(device, "xarray", copy=copy)
    assert device.to_numpy(copy=True).tolist() == [0, 1, 2]


def test_functions_and_methods_with_a_copy_argument_accept_none():
    x = np.ones(3)
    assert ah.to_host(x, copy=None).ptr == x.ctypes.data
    assert ah.to_device(x, "cpu", copy=None).ptr == x.ctypes.data
    assert ah.asarray(x, copy=None).ptr == x.ctypes.data
    assert ah.asarray(x, dtype="f4", copy=None).dtype == "f4"
    assert ah.from_dlpack(x, copy=None).ptr == x.ctypes.data
    a = ah.asarray(x)
    assert a.to_host(copy=None) is a
    assert a.aligned(copy=None) is a
    assert a.native(copy=None) is a
    assert a.astype("f8", copy=None).ptr == a.ptr
    assert ah.asarray(x.astype(">f8")).native(copy=None).dtype == "f8"


@pytest.mark.parametrize("values", [[1, 2, 3], [True, False, True]])
def test_columns_that_require_a_copy_are_copied(values):
    pa = pytest.importorskip("pyarrow")
    column = pa.chunked_array([values[:1], values[1:]])
    for copy in (None, True):
        assert ah.as_numpy(column, copy=copy).tolist() == values
        assert ah.asarray(column, copy=copy).is_copy
    with pytest.raises(BufferError, match="chunks"):
        ah.asarray(column)


def test_nested_arrays_are_copied_only_if_needed():
    pa = pytest.importorskip("pyarrow")
    chunks = pa.chunked_array([[[1]], [[2, 3]]])
    assert ah.asnested(chunks, copy=None).kind == "chunked"
    assert ah.asnested(chunks, copy=None).to_list() == [[1], [2, 3]]
    assert ah.as_arrow(chunks, copy=None).to_pylist() == [[1], [2, 3]]
    bits = ah.asnested(pa.array([True, False]))
    assert bits.to_dense(copy=None).to_numpy().tolist() == [True, False]
    rows = ah.asnested(pa.array([[1, 2], [3, 4]]))
    assert rows.to_dense(copy=None).ptr == rows.content.ptr
    assert ah.as_numpy(ah.asnested(["a"]), copy=None).tolist() == ["a"]


def test_stream_is_read_once():
    pa = pytest.importorskip("pyarrow")

    class Once:
        reads = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.reads += 1
            return pa.chunked_array([[1], [2]]).__arrow_c_stream__(requested_schema)

    source = Once()
    assert ah.as_arrow(source, copy=None).to_pylist() == [1, 2]
    assert source.reads == 1


def test_assignment_and_from_array_copy_what_cannot_be_viewed():
    pa = pytest.importorskip("pyarrow")
    for source, expected in (
        (pa.array([True, False]), [True, False]),
        (pa.chunked_array([[1], [2]]), [1, 2]),
        (np.array([1, 2.5], dtype=object), [1, 2.5]),
    ):
        made = ah.from_array(source)
        assert made.tolist() == expected
        x = ah.zeros(2, dtype=made.dtype)
        x[...] = source
        assert x.tolist() == expected
