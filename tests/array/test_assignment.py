"""Test ``x[key] = value`` and ``to_device(out=)`` from and to memory of SYCL devices."""

import sys

import arrayhub as ah

# isort: split
import numpy as np
import pytest

dpctl = pytest.importorskip("dpctl")
dpm = pytest.importorskip("dpctl.memory")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sycl")]

LAYOUTS = {
    "C": lambda x: x,
    "F": lambda x: x.transpose(1, 0),
    "rows": lambda x: x[2:7],
    "columns": lambda x: x[:, 3:9],
    "steps": lambda x: x[1::2, ::3],
    "negative": lambda x: x[::-1, ::-2],
    "one column": lambda x: x[:, 3],
    "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:, :0],
    "new axis": lambda x: x[:, None, ::2],
}
DTYPES = ["?", "u1", "f2", "f4", "f8", "c16", ">i4", "M8[ns]", "S5", "V7", np.dtype([("a", "i2"), ("b", "f8")]), "g"]
MEMORIES = ["usm_device", "usm_shared", "usm_host", "cpu"]
SHAPE = (8, 12)


def sample(dtype="f8", seed=0, shape=SHAPE):
    """Return an array of random values. Any dtype is supported."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 100, int(np.prod(shape)) * dtype.itemsize, "u1").view(dtype).reshape(shape)


def there(values, memory="usm_device"):
    return ah.from_array(values, memory=memory)


def values_of(x):
    return np.asarray(ah.to_host(x))


def same(x, y):
    x = values_of(x)
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.fixture(params=["dpnp", "dpctl alone"])
def packing(request, monkeypatch):
    """Run a test twice: with dpnp's copy kernel, and without dpnp."""
    if request.param == "dpnp":
        pytest.importorskip("dpnp.tensor")
    else:
        monkeypatch.delitem(sys.modules, "dpnp.tensor", raising=False)


# ------------------------------------------------------------------------------------------------------ to_device(out=)


# Functions that return an array or a view with the given shape. `whole(shape)` allocates the array.
SOURCES = {
    "C": lambda whole, shape: whole(shape),
    "F": lambda whole, shape: whole(shape[::-1]).transpose(*reversed(range(len(shape)))),
    "steps": lambda whole, shape: whole(tuple(2 * n for n in shape))[(slice(None, None, 2),) * len(shape)],
    "columns": lambda whole, shape: whole((*shape[:-1], shape[-1] + 3))[..., 3:] if shape else whole(()),
    "negative": lambda whole, shape: whole(shape)[(slice(None, None, -1),) * len(shape)],
}


@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("memory", ["usm_device", "usm_shared", "cpu"])
def test_to_device_copies_each_layout_to_each_layout(source, target, memory, packing):
    """The copy changes the elements of `out`, and keeps the elements of its base array between them."""
    expected = sample(seed=2)
    whole = there(expected)
    out = LAYOUTS[target](whole)
    x = SOURCES[source](lambda shape: there(sample(seed=1, shape=shape), memory), out.shape)
    LAYOUTS[target](expected)[...] = values_of(x)
    assert ah.to_device(x, "oneapi:0", out=out) is out
    assert same(whole, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["C", "columns", "negative"])
def test_to_device_copies_each_element_type(dtype, layout, packing):
    given, expected = sample(dtype, 1), sample(dtype, 2)
    whole = ah.to_device(expected, "oneapi:0")
    LAYOUTS[layout](expected)[...] = LAYOUTS[layout](given)
    for source in (LAYOUTS[layout](given), LAYOUTS[layout](ah.to_device(given, "oneapi:0"))):
        ah.to_device(source, "oneapi:0", out=LAYOUTS[layout](whole))
        assert same(whole, expected)


@pytest.mark.parametrize("target", MEMORIES)
@pytest.mark.parametrize("source", MEMORIES)
def test_to_device_copies_each_memory_kind_to_each_memory_kind(source, target):
    out = there(np.zeros(SHAPE), target)
    assert ah.to_device(there(sample(), source), out.device, out=out) is out
    assert same(out, sample())
    assert there(sample(), source).to_device(out.device, out=out) is out


@pytest.mark.parametrize("rows", [8, 80])
@pytest.mark.parametrize("memory", [dpm.MemoryUSMHost, dpm.MemoryUSMShared])
def test_numpy_view_of_usm_is_assigned_to_a_strided_array(memory, rows, packing):
    """Assign a NumPy array over USM, directly and as a USMArray."""
    shape = (rows, 12)
    values = np.ndarray(shape, buffer=memory(sample(shape=shape).nbytes))
    values[...] = sample(shape=shape)
    out = there(np.zeros((rows, 24)))
    out[:, ::2] = ah.asarray(values)
    assert same(out[:, ::2], sample(shape=shape))
    out[:, 1::2] = values[::-1]
    assert same(out[:, 1::2], sample(shape=shape)[::-1])


@pytest.mark.parametrize("nbytes", [8, 4096, 4104, 1 << 20, (1 << 20) + 8, (1 << 21) + 8])
def test_assignment_changes_only_the_selected_elements(nbytes):
    """Test sizes for which dpnp's kernel reads host memory, and sizes that use a staging buffer."""
    pytest.importorskip("dpnp.tensor")
    expected = sample(shape=(nbytes // 4,))
    whole = there(expected)
    given = sample(seed=1, shape=(nbytes // 8,))[::-1]
    expected[::-2] = given
    whole[::-2] = given
    given[...] = 0
    assert same(whole, expected)


@pytest.mark.parametrize("layout", ["steps", "negative", "new axis"])
def test_large_arrays_are_assigned_to_strided_views_in_chunks(layout, packing):
    expected = sample("f4", shape=(300, 700))
    whole = there(expected)
    target = LAYOUTS[layout](expected)
    target[...] = sample("f4", seed=3, shape=target.shape)
    seen = []
    ah.transfer.configure(chunk=1 << 16)
    try:
        given = np.asfortranarray(target)
        ah.to_device(given, "oneapi:0", out=LAYOUTS[layout](whole), progress=lambda done, total: seen.append(done))
    finally:
        ah.transfer.configure(chunk=0)
    assert same(whole, expected)
    assert seen[-1] == target.nbytes and len(seen) > 2


def test_out_can_be_a_dpnp_array():
    dpnp = pytest.importorskip("dpnp")
    out = dpnp.zeros(SHAPE)
    assert ah.to_device(sample(), "oneapi:0", out=out) is out
    assert (dpnp.asnumpy(out) == sample()).all()


def test_elements_are_cast_on_the_host():
    out = there(np.zeros(SHAPE, "f4"))
    ah.to_device(np.arange(96).reshape(SHAPE), "oneapi:0", out=out)
    assert same(out, np.arange(96, dtype="f4").reshape(SHAPE))
    ah.to_device(there(np.arange(96, dtype="i2").reshape(SHAPE)), "oneapi:0", out=out[:, ::-1])
    assert same(out[:, ::-1], np.arange(96, dtype="f4").reshape(SHAPE))
    with pytest.raises(TypeError, match="to_device: out: values of .* cannot be cast .* same_kind"):
        ah.to_device(np.zeros(SHAPE), "oneapi:0", out=there(np.zeros(SHAPE, "i4")))
    with pytest.raises(OverflowError, match="300 is out of the range"):
        ah.to_device(np.full(SHAPE, 300), "oneapi:0", out=there(np.zeros(SHAPE, "u1")))


REFUSED = {
    "another shape": (lambda: there(np.zeros(3)), None, ValueError, "the shape and the element type"),
    "host memory": (lambda: np.zeros(SHAPE), None, ValueError, "out is on cpu, and device is .*oneapi:0"),
    "read-only": (lambda: read_only(there(np.zeros(SHAPE))), None, ValueError, "out is read-only"),
    "copy=False": (lambda: there(sample()), False, BufferError, "copy=False forbids"),
}


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("case", REFUSED)
def test_unsuitable_out_raises(case):
    make, copy, error, match = REFUSED[case]
    with pytest.raises(error, match=match):
        ah.to_device(sample(), "oneapi:0", out=make(), copy=copy)


def test_out_with_overlapping_elements_is_rejected():
    memory = dpm.MemoryUSMDevice(64)
    out = ah.USMArray((3, 4), "f8", buffer=memory, strides=(1, 1))
    with pytest.raises(ValueError, match="its elements overlap"):
        ah.to_device(np.zeros((3, 4)), "oneapi:0", out=out)
    with pytest.raises(ValueError, match="its elements overlap"):
        out[...] = np.zeros((3, 4))


# ------------------------------------------------------------------------------------------------------------ stream


ORDERS = pytest.mark.parametrize("properties", [[], ["in_order"]], ids=["out of order", "in order"])


@ORDERS
def test_copy_on_a_queue_runs_after_earlier_work_on_both_arrays(properties):
    dpnp = pytest.importorskip("dpnp")
    first, second = dpctl.SyclQueue(property=properties), dpctl.SyclQueue()
    out = ah.asarray(dpnp.zeros((1 << 20,), sycl_queue=second))
    for value in range(1, 20):
        source = dpnp.zeros((1 << 20,), sycl_queue=first)
        for _ in range(3):
            source += value  # the kernel may still run when the copy is queued
        ah.to_device(source, first, out=out)
        assert (values_of(out) == 3 * value).all()


@pytest.fixture
def busy():
    """Return a function that queues a long matrix product and then the fill of an array, and returns this array."""
    dpnp = pytest.importorskip("dpnp")

    def start(queue, value, size=1 << 20):
        factor = dpnp.ones((1500, 1500), sycl_queue=queue)
        dpnp.matmul(factor, factor)
        return dpnp.full((size,), value, dtype="f8", sycl_queue=queue)

    start(dpctl.SyclQueue(), 1.0)  # loads the kernels
    return start


@ORDERS
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::2]], ids=["contiguous", "gaps"])
def test_assignment_waits_for_work_on_both_queues(key, properties, busy):
    queue, other = (dpctl.SyclQueue(property=properties) for _ in range(2))
    for given in (np.full(1 << 20, 1.0), np.float64(1.0), busy(queue, 1.0)):
        out = ah.asarray(busy(queue, 2.0))  # not filled yet
        out[key] = given[key] if np.ndim(given) else given
        assert (values_of(out[key]) == 1).all()
    source = ah.asarray(busy(other, 3.0))
    out[key] = source[key]
    assert (values_of(out[key]) == 3).all()


def is_done(queue):
    return queue.submit_barrier().execution_status == dpctl.event_status_type.complete


@ORDERS
@pytest.mark.parametrize("memory", ["usm_host", "usm_shared", "usm_device"])
def test_copy_between_usm_arrays_on_a_queue_does_not_wait(memory, properties, busy):
    """The call returns before earlier kernels and the copy have run. Later reads of `out` return the new values."""
    dpnp = pytest.importorskip("dpnp")
    queue = dpctl.SyclQueue(property=properties)
    out = ah.empty((1 << 23,), memory=memory, device=dpctl.SyclQueue())  # 64 MiB
    ahead = 0
    for value in range(1, 5):
        source = busy(queue, float(value), 1 << 23)
        x = ah.asarray(source)
        if memory == "usm_device":
            ah.to_device(x, queue, out=out)
        else:
            assert ah.to_host(x, out=out, stream=queue) is out
        ahead += not is_done(out.base.sycl_queue)
        if value % 2:
            assert (values_of(out) == value).all()
        else:
            assert (dpnp.asnumpy(ah.as_dpnp(out) + 0) == value).all()  # a kernel on the queue of `out`
        source[...] = -1.0  # runs after the copy
    assert ahead >= 1  # at least one call did not wait


@pytest.mark.parametrize("layout", ["columns", "negative", "F"])
@pytest.mark.parametrize("memory", ["usm_host", "usm_device"])
def test_a_copy_between_layouts_on_a_queue_does_not_wait(memory, layout, busy):
    """Delete the views before dpnp's kernel has reordered the elements."""
    dpnp = pytest.importorskip("dpnp")
    queue = dpctl.SyclQueue()
    whole = ah.zeros((1024, 1024), memory=memory, device=dpctl.SyclQueue())
    expected = np.zeros((1024, 1024))
    ahead = 0
    for value in range(1, 5):
        source = busy(queue, float(value)).reshape(1024, 1024)
        out = LAYOUTS[layout](whole)
        x = ah.asarray(source)[: out.shape[0], : out.shape[1]]
        if memory == "usm_device":
            ah.to_device(x, queue, out=out)
        else:
            ah.to_host(x, out=out, stream=queue)
        ahead += not is_done(whole.base.sycl_queue)
        del x, out
        LAYOUTS[layout](expected)[...] = value
        if value % 2:
            assert (values_of(whole) == expected).all()
        else:
            assert (dpnp.asnumpy(ah.as_dpnp(whole) + 0) == expected).all()  # a kernel on the queue of `whole`
        source[...] = -1.0  # runs after the copy
    assert ahead >= 1  # at least one call did not wait


def test_copy_to_numpy_memory_is_complete_on_return(busy):
    queue = dpctl.SyclQueue()
    out = np.zeros(1 << 20)
    assert (ah.to_host(busy(queue, 5.0), out=out, stream=queue) == 5).all()


def test_invalid_streams_are_rejected():
    out = there(np.zeros(SHAPE))
    with pytest.raises(BufferError, match="stream is 1"):
        ah.to_device(sample(), "oneapi:0", out=out, stream=1)
    with pytest.raises(BufferError, match="device is a different queue"):
        ah.to_device(sample(), dpctl.SyclQueue(), out=out, stream=dpctl.SyclQueue(property="in_order"))


# ----------------------------------------------------------------------------------------------------- x[key] = value


KEYS = {
    "row": 2,
    "slice": slice(1, 5),
    "column": (slice(None), 3),
    "element": (1, 2),
    "ellipsis": ...,
    "steps": (slice(None, None, -2), slice(1, None, 3)),
}
VALUES = {
    "number": 7,
    "row of numbers": lambda shape: list(range(shape[-1])) if shape else 5,
    "an array": lambda shape: np.arange(int(np.prod(shape)), dtype="f8").reshape(shape),
    "another type": lambda shape: np.arange(int(np.prod(shape)), dtype="i2").reshape(shape),
    "a row": lambda shape: np.arange(shape[-1], dtype="f8")[None] if shape else np.float64(2),
    "repeated": lambda shape: np.float64(4.5),
}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
def test_assignment_equals_numpy(key, value, memory, packing):
    expected = sample()
    x = there(expected, memory)
    given = VALUES[value]
    given = given(expected[KEYS[key]].shape) if callable(given) else given
    expected[KEYS[key]] = given
    x[KEYS[key]] = given
    assert same(x, expected)
    if isinstance(given, np.ndarray) and given.ndim:
        x[KEYS[key]] = 0
        x[KEYS[key]] = there(given)
        assert same(x, expected)


@pytest.mark.parametrize("rows", [1 << 8, (1 << 17) + 1])
def test_assigned_values_are_broadcast_on_the_device(rows, packing):
    whole = np.zeros((rows, 4), "f4")
    x = there(whole)
    x[:, 1:3] = np.array([1, 2], "f4")
    x[..., 3] = 9
    whole[:, 1:3], whole[..., 3] = [1, 2], 9
    assert same(x, whole)


OVERLAPS = {
    "up": (slice(1, None), slice(None, -1)),
    "down": (slice(None, -1), slice(1, None)),
    "reversed": (..., slice(None, None, -1)),
    "columns": ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
    "itself": (..., ...),
    "another row": (0, 1),
    "another column": ((slice(None), 2), (slice(None), 1)),
}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("case", OVERLAPS)
def test_assignment_between_overlapping_views_equals_numpy(case, memory, packing):
    to, of = OVERLAPS[case]
    expected = sample()
    x = there(expected, memory)
    expected[to] = expected[of].copy()
    x[to] = x[of]
    assert same(x, expected)


ERRORS = {
    "a float for integers": (1.5, TypeError, "x\\[\\.\\.\\.\\] = value"),
    "out of range": (300, OverflowError, "300"),
    "another shape": (np.zeros(5, "u1"), ValueError, r"value: could not broadcast .*\(5,\) into shape \(8, 12\)"),
    "floats": (np.zeros(SHAPE), TypeError, "same_kind"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_values_that_the_dtype_or_shape_does_not_allow_raise(case):
    value, error, match = ERRORS[case]
    x = there(np.ones(SHAPE, "u1"))
    with pytest.raises(error, match=match):
        x[...] = value
    with pytest.raises(ValueError, match="read-only"):
        read_only(x)[...] = 1
    assert (values_of(x) == 1).all()


def test_assignment_between_host_and_device_traces_one_copy():
    x, host = there(sample()), np.zeros((16, 12))
    with ah.trace() as traced:
        ah.asarray(host)[::2] = x
        there_again = there(host)
        there_again[::2] = x
        there_again[1::2] = sample()
    assert [event.by for event in traced.events if event.kind == "copy"] == ["to_host", "assign", "assign", "assign"]
    assert (host[::2] == sample()).all()
