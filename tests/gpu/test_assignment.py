"""Test ``x[key] = value`` and ``to_device(out=)`` from and to CUDA memory: layouts, streams, overlap, races."""

import numpy as np
import pytest
from gpu_arrays import pinned_like, same, sample

import arrayhub
from arrayhub import asarray

ROUNDS = 100
DTYPES = ["?", "u1", "f4", "c16", ">i4", "M8[ns]", "S5", "V7", np.dtype([("a", "i2"), ("b", "f8")]), "g"]
LAYOUTS = {
    "C": lambda x: x, "F": lambda x: x.T, "rows": lambda x: x[1:3], "columns": lambda x: x[:, 1:4],
    "steps": lambda x: x[::2, 1::3], "negative": lambda x: x[::-1, ::-2], "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:, :0],
}  # fmt: skip


def pinned_copy(cp, array):
    pinned = pinned_like(cp, array)
    pinned[...] = array
    return pinned


@pytest.fixture
def linger(spin):
    """Return a function that queues a kernel of about 4 ms."""
    return lambda: spin(8_000_000)


@pytest.fixture
def loaded(cp):
    """Load the kernel of `fill` before a race, because loading a kernel may synchronize the device."""
    cp.zeros(1 << 20).fill(1)
    cp.cuda.Device().synchronize()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_to_device_copies_each_layout_to_out(cp, dtype, layout):
    """The copy changes the elements of `out`, and keeps the elements of its base array between them."""
    given, expected = sample(dtype), sample(dtype)[::-1].copy()
    whole = arrayhub.to_device(expected, "cuda:0")
    LAYOUTS[layout](expected)[...] = LAYOUTS[layout](given)
    start = arrayhub.to_device(sample(dtype)[::-1].copy(), "cuda:0")
    for source in (LAYOUTS[layout](given), LAYOUTS[layout](arrayhub.to_device(given, "cuda:0"))):
        out = LAYOUTS[layout](whole)
        assert arrayhub.to_device(source, "cuda:0", out=out) is out
        assert same(whole.to_host(), expected)
        whole[...] = start
        assert same(whole.to_host(), sample(dtype)[::-1])


@pytest.mark.parametrize("source", ["C", "F", "steps", "negative"])
@pytest.mark.parametrize("target", ["C", "F", "steps", "negative"])
def test_to_device_copies_large_arrays_between_layouts(cp, source, target):
    """The arrays exceed a pinned staging buffer and the size up to which the host reorders elements."""
    shapes = {"steps": (3000, 1500), "negative": (1500, 1000)}
    make = {
        "C": lambda x: x,
        "F": lambda x: x.T,
        "steps": lambda x: x[::2, ::3][:, :500],
        "negative": lambda x: x[::-1, ::-2],
    }
    shape = (1500, 500)
    sizes = {"C": shape, "F": shape[::-1], **shapes}
    values = np.arange(np.prod(sizes[source]), dtype="f8").reshape(sizes[source])
    whole = np.full(sizes[target], -1.0)
    there = asarray(cp.asarray(whole))
    make[target](whole)[...] = make[source](values)
    for given in (values, pinned_copy(cp, values), asarray(cp.asarray(values))):
        there[...] = -1.0
        out = make[target](there)
        arrayhub.to_device(make[source](given), "cuda:0", out=out)
        assert (there.to_host().to_numpy() == whole).all()


def test_to_device_copies_to_each_kind_of_cuda_memory(cp):
    x = np.arange(12.0).reshape(3, 4)
    for memory in ("cuda", "cuda_managed", "cuda_host"):
        out = arrayhub.zeros((3, 4), memory=memory)
        for source in (x, cp.asarray(x), arrayhub.from_array(x, memory="cuda_managed")):
            out[...] = 0
            assert arrayhub.to_device(source, out.device, out=out) is out
            assert same(arrayhub.to_host(out), x)


def test_out_can_be_a_torch_tensor(torch):
    t = torch.zeros((3, 4), device="cuda")
    x = np.arange(12, dtype="f4").reshape(3, 4)
    assert arrayhub.to_device(x, "cuda:0", out=t) is t
    assert (t.cpu().numpy() == x).all()
    asarray(t)[1:] = t[:-1]
    assert (t.cpu().numpy() == x[[0, 0, 1]]).all()
    asarray(t)[:, 1] = torch.full((3,), 9.0)
    assert (t[:, 1] == 9).all()


@pytest.mark.parametrize(
    "key", [2, slice(1, 3), (slice(None), 1), (1, 2), ..., (slice(None, None, -2), slice(1, None, 2))]
)
@pytest.mark.parametrize("value", [7, "row", "all", "integers"])
def test_assignment_equals_numpy(cp, key, value):
    expected = np.arange(24.0).reshape(4, 6)
    x = asarray(cp.asarray(expected))
    shape = expected[key].shape
    if value == "row":
        value = np.arange(shape[-1], dtype="f8")[None] if shape else 3.0
    elif value in ("all", "integers"):
        value = -np.arange(int(np.prod(shape))).reshape(shape).astype("f8" if value == "all" else "i2")
    expected[key] = value
    x[key] = value
    assert same(x.to_host(), expected)
    if isinstance(value, np.ndarray) and value.ndim:
        x[key] = 0
        x[key] = cp.asarray(value)
        assert same(x.to_host(), expected)
        host = asarray(np.zeros((4, 6)))
        host[key] = cp.asarray(value)
        assert (host.to_numpy()[key] == value).all()


@pytest.mark.parametrize(
    ("to", "of"),
    [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (..., slice(None, None, -1)),
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
        (..., ...),
    ],
)
@pytest.mark.parametrize("rows", [4, 1 << 18])
def test_assignment_between_overlapping_views_equals_numpy(cp, to, of, rows):
    expected = np.arange(6.0 * rows).reshape(rows, 6)
    x = asarray(cp.asarray(expected))
    expected[to] = expected[of].copy()
    x[to] = x[of]
    assert same(x.to_host(), expected)


def test_row_and_column_of_an_array_are_assigned_to_others(cp):
    expected = np.arange(12.0).reshape(3, 4)
    x = asarray(cp.asarray(expected))
    x[0] = x[1]
    x[:, 2] = x[:, 1]
    expected[0] = expected[1]
    expected[:, 2] = expected[:, 1]
    assert same(x.to_host(), expected)


def test_rejected_assignments_do_not_change_the_memory(cp):
    x = asarray(cp.ones((3, 4), "u1"))
    for value, error in ((1.5, TypeError), (300, OverflowError), (np.zeros(5, "u1"), ValueError)):
        with pytest.raises(error):
            x[...] = value
    with pytest.raises(ValueError, match="out is on cuda:0, and device is 'cpu'"):
        arrayhub.to_device(np.ones((3, 4), "u1"), "cpu", out=x)
    assert (x.to_host().to_numpy() == 1).all()


# --------------------------------------------------------------------------------------------------------------- races


@pytest.mark.parametrize("layout", ["contiguous", "reordered"])
@pytest.mark.parametrize("source", ["device", "host"])
def test_copy_is_ordered_between_work_on_both_streams(cp, linger, loaded, layout, source):
    """The copy runs after pending writes on the streams of source and target, and before later work on them."""
    shape = (1 << 10, 1 << 9)
    out, seen, x = cp.zeros(shape), cp.zeros(shape), cp.zeros(shape)
    host = np.zeros(shape)
    cp.cuda.Device().synchronize()
    ours, theirs = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    turned = (lambda a: a.T) if layout == "reordered" else (lambda a: a)
    for value in range(1, ROUNDS):
        with ours:
            if source == "device":
                linger()
            x.fill(value)
            given = asarray(x)
        host[...] = value
        with theirs:
            linger()
            out.fill(-1)  # before the copy
            target = asarray(out)
        turned(target)[...] = turned(given) if source == "device" else turned(host)
        host[...] = -2
        with ours:
            x.fill(-3)  # after the copy
        with theirs:
            cp.copyto(seen, out)
        assert (seen.get(stream=theirs) == value).all()


@pytest.mark.parametrize("layout", ["contiguous", "reordered"])
def test_copy_on_a_stream_does_not_wait(cp, linger, loaded, layout):
    shape = (1 << 10, 1 << 9)
    x, out = cp.zeros(shape), cp.zeros(shape)
    ours, theirs, third = (cp.cuda.Stream(non_blocking=True) for _ in range(3))
    source = x.T if layout == "reordered" else x
    target = out.T if layout == "reordered" else out
    arrayhub.to_device(source, "cuda:0", out=target, stream=third)  # compiles the kernel
    cp.cuda.Device().synchronize()
    ahead = 0
    for value in range(1, ROUNDS):
        with ours:
            linger()
            x.fill(value)
            a = asarray(source)
        with theirs:
            b = asarray(target)
        arrayhub.to_device(a, "cuda:0", out=b, stream=third)
        ahead += not third.done
        with theirs:
            assert (out.get(stream=theirs) == value).all()
    assert ahead > ROUNDS * 0.8


@pytest.mark.parametrize("layout", ["contiguous", "reordered"])
def test_host_copy_on_a_stream_runs_after_earlier_work_on_it(cp, linger, loaded, layout):
    out, values = cp.zeros((1 << 10, 1 << 9)), np.zeros((1 << 10, 1 << 9))
    stream = cp.cuda.Stream(non_blocking=True)
    target, source = (out.T, values.T) if layout == "reordered" else (out, values)
    cp.cuda.Device().synchronize()
    for value in range(1, ROUNDS):
        values[...] = value
        with stream:
            linger()
            out.fill(-1)
        arrayhub.to_device(source, "cuda:0", out=asarray(target), stream=stream)
        values[...] = -2
        assert (out.get(stream=stream) == value).all()


@pytest.mark.parametrize("place", ["host", "device"])
def test_to_device_casts_elements_to_the_type_of_out(cp, place):
    values = np.arange(12, dtype="i2").reshape(3, 4)
    out = cp.zeros((4, 3)).T
    source = values if place == "host" else cp.asarray(values)
    arrayhub.to_device(source, "cuda:0", out=asarray(out))
    assert (out.get() == values).all()
