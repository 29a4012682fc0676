"""Test copies between all layouts and kinds of memory, with their settings, progress functions and errors."""

import ctypes
import os
import sys

import arrayhub  # imported before dpctl, so that dpctl finds the CPU runtime

# isort: split
import native_build
import numpy as np
import pytest
from children import python
from dlpack_by_hand import PADDED, Handmade
from hypothesis import given
from hypothesis import strategies as st
from numpy_release import HAS_DLPACK_1
from producers import producer

from arrayhub import transfer
from arrayhub.transfer import host, host_copies, pinned
from arrayhub.transfer import progress as progress_module
from arrayhub.transfer import settings as settings_module


@pytest.fixture(autouse=True)
def default_settings():
    yield
    transfer.configure(threads=0, chunk=0, buffers=0)


@pytest.fixture
def sycl():
    pytest.importorskip("dpctl")
    return pytest.importorskip("arrayhub.transfer.sycl")


# -------------------------------------------------------------------------------------------------------------- layouts

DTYPES = ["u1", "f2", "f4", "f8", "c16", ">i4", "S3", "V7", "M8[ns]", np.dtype([("a", "i2"), ("b", "f8")]), "g"]


@st.composite
def views(draw, dtypes=DTYPES):
    """Draw an ndarray of random bytes, with permuted, sliced and broadcast dimensions."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    a = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, "u1").view(dtype).reshape(shape)
    a = a.transpose(draw(st.permutations(range(a.ndim))))
    steps = draw(st.lists(st.sampled_from([1, -1, 2, -3]), min_size=a.ndim, max_size=a.ndim))
    a = a[(*(slice(None, None, step) for step in steps), ...)]
    if draw(st.booleans()):
        a = np.broadcast_to(a, (draw(st.integers(1, 3)), *a.shape))
    return a


@st.composite
def places(draw, like):
    """Draw a block of memory, and a writable view of it with the shape and type of `like` and any layout."""
    order = draw(st.permutations(range(like.ndim)))
    steps = draw(st.lists(st.sampled_from([1, -1, 2, -2]), min_size=like.ndim, max_size=like.ndim))
    lengths = [like.shape[k] * abs(step) for k, step in zip(order, steps, strict=True)]
    whole = np.full(int(np.prod(lengths)) * like.dtype.itemsize, 0xA5, "u1")
    view = whole.view(like.dtype).reshape(lengths) if whole.size else np.empty(lengths, like.dtype)
    view = view[(*(slice(None, None, step) for step in steps), ...)]
    return whole, view.transpose(np.argsort(order))


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@given(st.data())
def test_host_copies_between_any_two_layouts_keep_the_values(data):
    a = data.draw(views())
    whole, out = data.draw(places(a))
    untouched = np.ones(whole.size, bool)
    if whole.size:
        start = out.ctypes.data - whole.ctypes.data
        for index in np.ndindex(out.shape):
            at = start + sum(i * step for i, step in zip(index, out.strides, strict=True))
            untouched[at : at + out.itemsize] = False
    assert arrayhub.to_host(a, out=out) is out
    assert same(out, a)
    assert (whole[untouched] == 0xA5).all()
    for order in "CFK":
        assert same(arrayhub.asarray(a).copy(order=order), a)


@pytest.mark.slow
@given(st.data())
def test_copies_of_any_layout_to_and_from_sycl_keep_the_values(data):
    """Views of device memory are copied in any layout, in pieces of a few elements, and with and without packing."""
    pytest.importorskip("dpctl")
    from arrayhub.transfer import sycl

    limits = {
        "_CACHED": [1, 32, 1 << 20], "_GAP": [0, 16, 1 << 17], "_DIRECT": [5, 1 << 20], "_SMALL": [0, sycl._SMALL],
        "_SPARSE": [1, sycl._SPARSE],
    }  # fmt: skip
    a = data.draw(views())
    there = arrayhub.to_device(a, "oneapi:0")
    assert same(there.to_host(), a)
    steps = data.draw(st.lists(st.sampled_from([1, -1, 2, -3]), min_size=a.ndim, max_size=a.ndim))
    key = (*(slice(None, None, step) for step in steps), ...)
    order = data.draw(st.permutations(range(a.ndim)))
    view, expected = there[key].transpose(order), a[key].transpose(order)
    _, out = data.draw(places(expected))
    with pytest.MonkeyPatch.context() as patch:
        for name, values in limits.items():
            patch.setattr(sycl, name, data.draw(st.sampled_from(values)))
        if data.draw(st.booleans()):
            patch.setattr(sycl, "can_pack", lambda *arrays: False)
        assert same(arrayhub.to_host(view, out=out), expected)
        assert same(arrayhub.to_device(expected, "oneapi:0").to_host(), expected)
        for layout in "CFK":
            copied = view.copy(order=layout)
            assert copied.usm_type == "device" and same(copied.to_host(), expected)
            assert layout == "K" or getattr(copied.flags, f"{layout.lower()}_contiguous")


@pytest.mark.slow
def test_dimensions_of_length_1_do_not_reach_the_copy_kernel_of_dpnp():
    """For this view, dpnp 0.20 raises a RuntimeError because of the strides of the dimension of length 1."""
    pytest.importorskip("dpnp.tensor")
    a = np.arange(8, dtype="u1").reshape(1, 2, 2, 2)
    view = arrayhub.to_device(a, "oneapi:0").transpose(1, 3, 0, 2)
    assert same(view.copy(order="F").to_host(), a.transpose(1, 3, 0, 2))


def copy_elements(target, source):
    host_copies.copy(arrayhub.asarray(target), arrayhub.asarray(source))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "turn",
    [
        lambda a: a.T,
        lambda a: a.T[::-1],
        lambda a: a.T[:, ::-1],
        lambda a: a[::2, ::2].T,
        lambda a: a[3:-2, 5:].T,
        lambda a: a[..., None, None].transpose(3, 1, 2, 0),
        lambda a: a.reshape(4, -1, a.shape[1]).transpose(2, 0, 1),
    ],
)
def test_transposed_arrays_are_copied_by_tiles(size, turn):
    """Test strides of a large power of two, and incomplete tiles at the edges."""
    rows, columns = 4096, (4096 + 40) // size
    memory = np.random.default_rng(0).integers(0, 256, (rows, 4096 + 40), "u1")
    a = turn(np.ndarray((rows, columns), f"V{size}", memory, 0, (4096, size)))
    target = np.zeros(a.shape, a.dtype)
    copy_elements(target, a)
    assert target.tobytes() == a.tobytes()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 31, 32, 40])
def test_elements_of_any_size_are_copied_in_any_layout(size):
    """Test layouts of rows, runs, broadcast elements and tiles at any address. Copies write only the elements."""
    rng = np.random.default_rng(size)

    def laid_out(shape):
        order, steps, start = rng.permutation(len(shape)), rng.choice([1, -1, 2, -3], len(shape)), rng.integers(70)
        lengths = [shape[k] * abs(step) for k, step in zip(order, steps, strict=True)]
        memory = rng.integers(0, 256, int(np.prod(lengths)) * size + start, "u1")
        view = np.ndarray(lengths, f"V{size}", memory, start)[(*(slice(None, None, step) for step in steps), ...)]
        return memory, view.transpose(np.argsort(order))

    for turn in range(60):
        shape = [int(rng.choice([1, 2, 3, 8, 17, 33, 70])) for _ in range(turn % 5)]
        while np.prod(shape) > 5000:
            shape[np.argmax(shape)] = 3
        shape = [1024, 70] if turn == 59 else shape  # strides of a large power of two
        (_, source), (memory, target) = laid_out(shape), laid_out(shape)
        if shape and turn % 3 == 0:
            source = np.broadcast_to(source[:1], shape)
        expected = memory.copy()
        start = target.ctypes.data - memory.ctypes.data
        np.ndarray(target.shape, target.dtype, expected, start, target.strides)[...] = source
        copy_elements(target, source)
        assert np.array_equal(memory, expected), (shape, target.strides, source.strides)


@pytest.mark.parametrize("size", [1, 3, 4, 8, 12, 16, 32, 40])
@pytest.mark.parametrize("far", ["source", "target", "both"])
def test_columns_across_many_pages_are_copied(size, far):
    """Test columns whose elements are in more pages than the TLB has entries."""
    rows, row = 2300, 5000
    rng = np.random.default_rng(size)

    def columns(far):
        step = row if far else 3 * size
        memory = rng.integers(0, 256, rows * step, "u1")
        return memory, np.ndarray((2, rows), f"V{size}", memory, size, (size, step))

    (_, source), (memory, target) = columns(far != "target"), columns(far != "source")
    for turned in (source, source[:, ::-1], source[:1]):
        into = target[: len(turned)]
        expected = memory.copy()
        np.ndarray(into.shape, into.dtype, expected, size, into.strides)[...] = turned
        copy_elements(into, turned)
        assert np.array_equal(memory, expected)


@pytest.mark.slow
def test_copies_do_not_access_adjacent_pages():
    """Copies do not access the pages directly before or after their source and target."""
    python(
        """
import ctypes, itertools, mmap
import numpy as np
from arrayhub import asarray
from arrayhub.transfer import host_copies

PAGE, NONE = mmap.PAGESIZE, 0
libc = ctypes.CDLL(None, use_errno=True)

def guarded(nbytes, at_end):
    \"\"\"Return bytes that end, or start, at a page without access rights.\"\"\"
    pages = -(-nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + (pages + 1) * PAGE):
        assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), NONE) == 0
    return np.frombuffer(memory, "u1", nbytes, PAGE + (pages * PAGE - nbytes if at_end else 0))

def steps(length, step):
    return (length - 1) * step + 1

rng = np.random.default_rng(0)
number = 0
for size, across, along, step, at_end in itertools.product(
    (1, 2, 3, 4, 7, 8, 12, 16, 24), (3, 16, 70, 130), (2, 9, 64, 71), (1, 2, 3), (False, True)
):
    row = steps(along, step) if number % 2 else -(-steps(along, step) * size // 1024) * 1024 // size
    count = steps(across, row) - 1 + steps(along, step)
    source = guarded(count * size, at_end)
    source[:] = rng.integers(0, 256, len(source), "u1")
    view = np.ndarray((across, along), f"V{size}", source.data, 0, (row * size, step * size)).T
    far = step if number % 3 == 0 else 1
    target = guarded(steps(across * along, far) * size, at_end)
    out = np.ndarray((along, across), f"V{size}", target.data, 0, (across * far * size, far * size))
    host_copies.copy(asarray(out), asarray(view))
    assert out.tobytes() == view.tobytes(), (size, across, along, step)
    number += 1
"""
    )


def test_empty_arrays_are_copied():
    for shape, dtype in (((0, 5), "f8"), ((3, 0), "V3"), ((3,), "V0"), ((), "V0")):
        copy_elements(np.empty(shape, dtype), np.empty(shape, dtype))


def test_copy_returns_writable_memory_in_the_requested_order():
    base = np.arange(60, dtype="f4").reshape(3, 4, 5)
    for a in (
        base,
        base[::-1, ::2, ::-1],
        np.broadcast_to(base[:1], (3, 4, 5)),
        base.transpose(1, 2, 0),
        base[:0],
        base[1, 1, 1],
    ):
        for order in "CFK":
            b = arrayhub.asarray(a).copy(order=order)
            assert same(b, a) and b.access == "readwrite" and not np.shares_memory(np.asarray(b), a)
            assert b.ptr % 64 == 0
            if a.size > 1 and 0 not in a.strides:
                assert np.asarray(b).strides == a.copy(order=order).strides
    with pytest.raises(ValueError, match="'A'"):
        arrayhub.asarray(base).copy(order="A")


def test_large_host_copies_are_split_into_pieces(monkeypatch):
    monkeypatch.setattr(host, "_PIECE", 1000)
    a = np.arange(7 * 50 * 3.0).reshape(7, 50, 3)
    for view in (a, a.T, a[:, ::-2], np.broadcast_to(a[0], (40, 50, 3)), np.arange(1000.0)[::-1]):
        calls = []
        assert same(arrayhub.to_host(view, copy=True, progress=lambda *done, calls=calls: calls.append(done)), view)
        assert len(calls) > 5 and calls[-1] == (view.nbytes, view.nbytes)


@pytest.mark.parametrize("order", "CF")
def test_contiguous_copies_use_larger_pieces(monkeypatch, order):
    """Contiguous copies use larger pieces, for which memcpy is faster. With `progress`, pieces stay small."""
    pieces = []

    class Recorded:
        @staticmethod
        def copy(target, source):
            pieces.append(target.nbytes)
            host_copies.copy(target, source)

    monkeypatch.setattr(host, "_PIECE", 1000)
    monkeypatch.setattr(host, "_RUN", 4000)
    monkeypatch.setattr(host, "host_copies", Recorded)
    a = np.arange(20.0 * 100).reshape((20, 100), order=order)
    out, turned = np.empty_like(a), np.empty(a.shape, order="FC"[order == "F"])
    for view, into, most in ((a, out, 4000), (a[::2], out[::2], 1000), (a, turned, 1000)):
        pieces.clear()
        assert same(arrayhub.to_host(view, out=into), view)
        assert most // 2 < max(pieces) <= most and sum(pieces) == view.nbytes
    pieces.clear()
    arrayhub.to_host(a, out=out, progress=lambda done, total: None)
    assert 500 < max(pieces) <= 1000


def test_single_element_is_not_split(monkeypatch):
    monkeypatch.setattr(host, "_PIECE", 1000)
    for shape in ((3,), (1, 1), ()):
        a = np.full(shape, b"x" * 5000, "V5000")
        assert same(arrayhub.to_host(a, copy=True), a)


# ------------------------------------------------------------------------------------------------------ kinds of memory

KINDS = ("cpu", "host", "shared", "device")


def placed(a, kind):
    """Return a USMArray in the given kind of memory with the elements of an ndarray."""
    if kind == "device":
        return arrayhub.to_device(a, "oneapi:0")
    made = arrayhub.USMArray(a.shape, a.dtype.str, buffer=kind)
    arrayhub.to_host(a, out=made)
    return made


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("key", [np.s_[::2, ::-1], np.s_[1:, 1:3], np.s_[..., None, 1]], ids=str)
def test_copies_between_all_kinds_of_memory_keep_the_values(source, target, key):
    pytest.importorskip("dpctl")
    a = np.arange(24, dtype="i4").reshape(4, 6)
    x, expected = placed(a, source)[key], a[key]
    assert str(x.device) == ("cpu" if source == "cpu" else "oneapi:0") and same(
        arrayhub.as_numpy(x, copy=True), expected
    )
    if target == "device":
        y = x.copy() if source == "device" else arrayhub.to_device(arrayhub.to_host(x), "oneapi:0")
    else:
        y = arrayhub.USMArray(expected.shape, "i4", buffer=target)
        assert arrayhub.to_host(x, out=y) is y
    assert (y.usm_type or "cpu") == target
    host = arrayhub.to_host(y)
    assert same(host, expected) and (str(host.device), host.usm_type) == ("cpu", None)
    again = x.copy()
    assert (again.usm_type or "cpu") == source and again.ptr != x.ptr and same(arrayhub.to_host(again), expected)
    assert arrayhub.to_host(x, copy=True).ptr != x.ptr
    if source == "device":
        with pytest.raises(BufferError, match="copy=False"):
            arrayhub.to_host(x, copy=False)
    else:
        assert arrayhub.to_host(x).ptr == arrayhub.to_host(x, copy=False).ptr == x.ptr


@pytest.mark.parametrize(
    ("dtype", "shape"), [((0, 4, 1), (4,)), ((1, 2, 1), (3,)), ((17, 4, 1), (3, 3)), ((0, 1, 1), ())]
)
def test_sub_byte_elements_are_copied_as_bytes(dtype, shape):
    memory = np.random.default_rng(0).integers(0, 256, 16, "u1")
    packed = arrayhub.from_dlpack(Handmade(memory=memory, shape=shape, dtype=dtype))
    copies = [packed.copy(), packed.to_host(copy=True)]
    if "dpctl" in sys.modules:
        copies.append(packed.to_device("oneapi:0").copy().to_host())
    for copied in copies:
        assert (copied.shape, copied.nbytes) == (packed.shape, packed.nbytes)
        assert np.array_equal(bytes_at(copied), memory[: packed.nbytes])


def test_packed_and_padded_elements_are_different_types():
    packed, padded = (
        arrayhub.from_dlpack(Handmade(memory=np.zeros(16, "u1"), shape=(2,), dtype=(0, 4, 1), flags=f))
        for f in (0, PADDED)
    )
    for a, out in ((packed, padded), (padded, packed)):
        with pytest.raises(ValueError, match="the element type"):
            arrayhub.to_host(a, out=out)


def bytes_at(a):
    return np.frombuffer(ctypes.string_at(a.ptr, a.nbytes), "u1")


# --------------------------------------------------------------------------------------------------------- copied bytes


class Copies:
    """A recorder of the memory ranges of queued copies."""

    def __init__(self, monkeypatch, module):
        self.spans = []
        submit = module.submit_copy

        def watched(queue, target, source, nbytes, after):
            self.spans.append((source, nbytes))
            return submit(queue, target, source, nbytes, after)

        monkeypatch.setattr(module, "submit_copy", watched)


def test_only_the_extent_of_a_view_is_copied(sycl, monkeypatch):
    x = arrayhub.to_device(np.arange(1 << 20, dtype="f8").reshape(8, -1), "oneapi:0")
    copies = Copies(monkeypatch, sycl.sycl)
    assert sycl.sycl.reach(x[3]) == (x[3].ptr, x[3].nbytes)
    for view in (x[3], x[3, 5:9], x[2:5], x[7, ::-1]):
        copies.spans.clear()
        arrayhub.to_host(view)
        low = view.ptr if view.byte_strides[-1] > 0 else view[..., -1:].ptr
        assert min(start for start, _ in copies.spans) == low
        assert sum(nbytes for _, nbytes in copies.spans) == view.nbytes
    copies.spans.clear()
    monkeypatch.setattr(sycl, "can_pack", lambda *arrays: False)
    arrayhub.to_host(x[::4, :2])  # the gap between two distant rows is not copied
    assert [nbytes for _, nbytes in copies.spans] == [16, 16]


@pytest.mark.parametrize("nbytes", [4095, 4097, 65521, 1_000_003, (1 << 20) - 8])
def test_copies_to_the_cpu_device_are_split_at_multiples_of_4096(sycl, monkeypatch, nbytes):
    """The CPU device copies a prime number of bytes one byte at a time, so the remainder is copied separately."""
    a = np.random.default_rng(0).integers(0, 256, nbytes, "u1")
    copies = Copies(monkeypatch, sycl.sycl)
    x = arrayhub.to_device(a, "oneapi:0")
    if not x.base.sycl_device.is_cpu:
        pytest.skip("the default SYCL device is not a CPU")
    out = np.zeros(nbytes + 2, "u1")
    for order in (slice(None), slice(None, None, -1)):  # direct copies, then copies through staging buffers
        assert same(arrayhub.to_host(arrayhub.to_device(a[order], "oneapi:0")), a[order])
        assert same(arrayhub.to_host(x[order], out=out[1:-1]), a[order])
    assert out[0] == out[-1] == 0
    assert all(size % 4096 == 0 or size < 4096 for _, size in copies.spans)


def test_memory_for_staging_is_bounded(sycl, monkeypatch):
    transfer.configure(chunk=1 << 16)
    sizes = []
    stage = sycl._stage
    monkeypatch.setattr(sycl, "_stage", lambda *given: sizes.append(stage(*given)) or sizes[-1])
    a = np.arange(1 << 19, dtype="f4").reshape(512, -1)
    x = arrayhub.to_device(a.T, "oneapi:0")
    assert same(x[::-1, ::3].to_host(), a.T[::-1, ::3])
    assert {part.nbytes for part in sizes} == {1 << 16}


# ------------------------------------------------------------------------------------------------------ synchronization


def under_way(queue, size=400_000):
    """Return a dpnp array in device memory whose elements are 31 after the queued kernels."""
    import dpnp

    x = dpnp.ones(size, dtype="f4", usm_type="device", sycl_queue=queue)
    dpnp.synchronize_array_data(x)
    for _ in range(4):
        x *= 2
        x += 1
    return x


def new_queue(in_order):
    import dpctl

    return dpctl.SyclQueue(property="in_order") if in_order else dpctl.SyclQueue()


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [False, True])
def test_copies_wait_for_the_work_of_the_producer(sycl, in_order):
    """Each copy contains the results of kernels that were queued immediately before the copy."""
    pytest.importorskip("dpnp")
    queue, other = new_queue(in_order), new_queue(False)
    out = np.empty(400_000, "f4")
    ways = (
        lambda a: a.to_host(),
        lambda a: arrayhub.to_host(a, out=out),
        lambda a: a.to_host(stream=other),
        lambda a: a[::-3].to_host(),
        lambda a: a[::400].to_host(),
        lambda a: a.copy().to_host(),
        lambda a: a[::-2].copy().to_host(),
        lambda a: np.from_dlpack(a, device="cpu") if HAS_DLPACK_1 else a.to_host(),
    )
    for turn in range(104):
        values = np.asarray(ways[turn % len(ways)](arrayhub.asarray(under_way(queue))))
        assert (values == 31).all(), turn % len(ways)


PRELUDE = "import arrayhub\nimport numpy as np\n"

LATE_WAIT = """
import ctypes, sys, time
import dpctl
import dpctl.memory
from arrayhub.runtimes import sycl

NBYTES = 8_000_009  # a prime number of bytes: the CPU device takes about a second
late_lock = ctypes.CDLL(sys.argv[1])

class HostTask:
    \"\"\"Object whose release ends once the main thread waits, or after ten seconds.\"\"\"

    def __del__(self):
        end = time.monotonic() + 10
        while not late_lock.is_delayed() and time.monotonic() < end:
            time.sleep(0.001)

queue = dpctl.SyclQueue(property="in_order") if sys.argv[2] == "True" else dpctl.SyclQueue()
memory = dpctl.memory.MemoryUSMDevice(NBYTES, queue=queue)
memory.copy_from_host(np.full(NBYTES, 31, "u1"))
out = np.zeros(NBYTES, "u1")
queue._submit_keep_args_alive([HostTask()], [])  # as dpnp does after its kernels
source = memory.__sycl_usm_array_interface__["data"][0]
event = sycl.submit_copy(queue, out.ctypes.data, source, NBYTES, [sycl.submit_barrier(queue)])
late_lock.arm()
event.wait()
copied = np.count_nonzero(out)
queue.wait()
assert copied == NBYTES, f"{copied} of {NBYTES} bytes"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="replaces a function with LD_PRELOAD")
@pytest.mark.parametrize("in_order", [False, True])
def test_wait_returns_after_the_copy_if_another_thread_submits_it(sycl, tmp_path, in_order):
    """Delay the waiting thread until a thread of the SYCL runtime has submitted the copy to the device.

    In this case, `sycl::event::wait` of DPC++ 2026.2 returns before the copy is complete. On a loaded machine, this
    occurred without the delay in 2 of 32,000 copies after kernels of dpnp. One of the copies wrote to released memory,
    which ended the process.
    """
    library = tmp_path / "late_lock.so"
    native_build.run(*native_build.CC, "-shared", "-fPIC", native_build.SOURCES / "late_lock.c", "-o", library, "-ldl")
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
    python(PRELUDE + LATE_WAIT, library, str(in_order), LD_PRELOAD=preload)


SUBMISSION = """
import faulthandler, threading, time
import dpctl
from arrayhub.runtimes import sycl

class HostTask:
    def __del__(self):
        time.sleep(1)      # releases the GIL, and needs it again

faulthandler.dump_traceback_later(60, exit=True)
x, y, out = (arrayhub.empty(8, memory="usm_host", device=dpctl.SyclQueue()) for _ in range(3))
queue = x.base.sycl_queue
queue._submit_keep_args_alive([HostTask()], [])  # as dpnp does after its kernels
event = sycl.submit_copy(queue, x.ptr, y.ptr, x.nbytes, [sycl.submit_barrier(queue)])
waiting = threading.Thread(target=event.wait)
waiting.start()
time.sleep(0.3)
stream = dpctl.SyclQueue(property="in_order")
{}
waiting.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ["arrayhub.asarray(y, stream=stream)", "arrayhub.to_host(y, out=out, stream=stream)"])
def test_streams_are_ordered_while_another_thread_waits_for_a_host_task(sycl, call):
    """The waiting thread locks SYCL's graph until the host task of dpnp has run, which needs the GIL."""
    python(PRELUDE + SUBMISSION.format(call))


def test_to_device_is_complete_on_return(sycl):
    """Writes to the source after to_device do not change the copy."""
    for _ in range(20):
        a = np.full(500_000, 7.0)
        x = arrayhub.to_device(a[::-1], "oneapi:0")
        a[:] = 0
        assert (np.asarray(x.to_host()) == 7).all()


def test_streams_that_are_not_queues_of_the_context_are_rejected(sycl):
    import dpctl

    x = arrayhub.to_device(np.arange(3), "oneapi:0")
    with pytest.raises(BufferError, match="accepted: None or a dpctl.SyclQueue"):
        x.to_host(stream=7)
    device = x.base.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    with pytest.raises(BufferError, match="context differs"):
        x.to_host(stream=elsewhere)
    queue = dpctl.SyclQueue()
    assert arrayhub.to_device(np.arange(3), "oneapi:0", stream=queue).base.sycl_queue == queue


QUEUES = ["another queue", "in order", "another context", "a sub-device"]


def queue_of_kind(kind):
    import dpctl

    device = dpctl.SyclQueue().sycl_device
    if kind == "a sub-device":
        if device.partition_max_sub_devices < 2:
            pytest.skip("the device cannot be partitioned")
        return dpctl.SyclQueue(device.create_sub_devices(partition=1)[0])
    if kind == "another context":
        return dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    return new_queue(kind == "in order")


TO_QUEUE = {
    "to_device": lambda x, queue: arrayhub.to_device(x, queue),
    "method": lambda x, queue: arrayhub.asarray(x).to_device(queue),
    "asarray": lambda x, queue: arrayhub.asarray(x, device=queue),
    "asarray with dtype": lambda x, queue: arrayhub.asarray(x, dtype="f8", device=queue),
    "same stream": lambda x, queue: arrayhub.to_device(x, queue, stream=queue),
    "copy=True": lambda x, queue: arrayhub.to_device(x, queue, copy=True),
}


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("way", TO_QUEUE)
def test_memory_is_allocated_on_the_given_queue(sycl, kind, way):
    queue = queue_of_kind(kind)
    y = TO_QUEUE[way](np.arange(3.0), queue)
    assert y.base.sycl_queue == y.__sycl_usm_array_interface__["syclobj"] == queue
    assert np.asarray(y.to_host()).tolist() == [0, 1, 2]
    assert arrayhub.to_device(y, queue) is y and arrayhub.to_device(y, queue, copy=False) is y


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("before", ["cpu", "oneapi:0"])
def test_nested_arrays_are_copied_to_a_queue(sycl, kind, before):
    queue = queue_of_kind(kind)
    y = arrayhub.asnested([[0.0, 1.0], [2.0], []]).to_device(before).to_device(queue)
    for part, values in ((y.offsets, [0, 2, 3, 3]), (y.content, [0, 1, 2])):
        assert part.__sycl_usm_array_interface__["syclobj"] == queue
        assert np.asarray(part.to_host()).tolist() == values


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("way", TO_QUEUE)
@pytest.mark.parametrize("memory", ["usm_device", "usm_shared"])
def test_only_memory_of_another_context_is_copied_to_a_queue(sycl, kind, way, memory):
    queue = queue_of_kind(kind)
    x = arrayhub.from_array(np.arange(6.0), memory=memory)[::2]
    near = queue.sycl_context == x.base.sycl_context
    y = TO_QUEUE[way](x, queue)
    assert (y.ptr == x.ptr) is (near and way != "copy=True")
    assert y.__sycl_usm_array_interface__["syclobj"] == queue
    assert np.asarray(y.to_host()).tolist() == [0, 2, 4]
    if near:
        assert arrayhub.to_device(x, queue, copy=False).ptr == x.ptr
    else:
        with pytest.raises(BufferError, match="from oneapi:0 to oneapi:0 in the context of its queue requires a copy"):
            arrayhub.to_device(x, queue, copy=False)
        back = arrayhub.to_device(y, x.base.sycl_queue)
        assert back.base.sycl_context == x.base.sycl_context and np.asarray(back.to_host()).tolist() == [0, 2, 4]


def test_different_queues_as_device_and_stream_are_rejected(sycl):
    one, other = queue_of_kind("in order"), queue_of_kind("in order")
    for x in (np.arange(3), arrayhub.to_device(np.arange(3), "oneapi:0"), arrayhub.to_device(np.arange(3), one)):
        for stream in (other, 7, np.zeros(2)):
            with pytest.raises(BufferError, match="device is a different queue; accepted: None or the same queue"):
                arrayhub.to_device(x, one, stream=stream)


# ----------------------------------------------------------------------------------------------------------------- out=


def test_invalid_out_raises():
    a = np.arange(6.0).reshape(2, 3)
    frozen = np.zeros((2, 3))
    frozen.flags.writeable = False
    crossed = np.lib.stride_tricks.as_strided(np.zeros(20), (2, 3), (8, 8))
    for out, why in (
        (np.zeros((3, 2)), "the shape"),
        (np.zeros((2, 3), "f4"), "the element type"),
        (np.zeros((2, 3), "i8"), "the element type"),
        (np.zeros((2, 3), [("a", "f8")]), "the element type"),
        (np.zeros((2, 3), ">f8"), "the element type"),
        (frozen, "read-only"),
        (bytes(48), "the shape"),
        (np.broadcast_to(np.zeros(3), (2, 3)), "read-only"),
        (crossed, "elements overlap"),
    ):
        for call in (arrayhub.to_host, arrayhub.USMArray.to_host):
            with pytest.raises(ValueError, match=why):
                call(arrayhub.asarray(a), out=out)
    with pytest.raises(BufferError, match="copy=False"):
        arrayhub.to_host(a, out=np.zeros((2, 3)), copy=False)


def test_out_on_a_device_is_rejected(sycl):
    a = np.arange(6.0)
    out = arrayhub.USMArray((6,), "f8", buffer="device")
    accepted = r"accepted: memory that the host can write\. Call to_device\(x, 'oneapi:0', out=out\)"
    with pytest.raises(ValueError, match=f"out is on oneapi:0; {accepted}"):
        arrayhub.to_host(a, out=out)
    assert same(arrayhub.to_device(a, "oneapi:0", out=out).to_host(), a)


@given(st.data())
def test_out_may_overlap_the_source(data):
    memory = np.arange(60)
    a = memory[data.draw(st.integers(0, 20)) :][: 40 : data.draw(st.sampled_from([1, 2, -1]))]
    out = memory[data.draw(st.integers(0, 20)) :][: 40 : data.draw(st.sampled_from([1, 2, -1]))]
    n = min(len(a), len(out))
    expected = a[:n].copy()
    arrayhub.to_host(a[:n], out=out[:n])
    assert (out[:n] == expected).all()


# ------------------------------------------------------------------------------------------------------------- progress


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-2, ::3], np.s_[:, 5]])
def test_progress_of_sycl_copies_is_reported(sycl, monkeypatch, view):
    monkeypatch.setattr(sycl, "_CACHED", 1000)
    monkeypatch.setattr(sycl, "_DIRECT", 1000)
    a = np.arange(5000.0).reshape(50, 100)
    calls = []
    x = arrayhub.to_device(a, "oneapi:0", progress=lambda *call: calls.append(call))
    assert calls[-1] == (a.nbytes, a.nbytes) and len(calls) > 10
    calls.clear()
    host_array = arrayhub.to_host(x[view], progress=lambda *call: calls.append(call))
    assert same(host_array, a[view])
    assert calls[-1] == (host_array.nbytes, host_array.nbytes)
    assert len([1 for done, _ in calls if done == host_array.nbytes]) == 1


def test_exception_in_the_progress_function_ends_the_copy(sycl, monkeypatch):
    monkeypatch.setattr(sycl, "_CACHED", 1000)
    x = arrayhub.to_device(np.arange(5000.0).reshape(50, 100), "oneapi:0")

    def stop(done, total):
        if done > total / 2:
            raise InterruptedError("enough")

    for way in (
        lambda: x.T.to_host(progress=stop),
        lambda: arrayhub.to_device(np.zeros((300, 300)).T[::2], "oneapi:0", progress=stop),
    ):
        with pytest.raises(InterruptedError, match="enough"):
            way()
    assert same(x.to_host(), np.arange(5000.0).reshape(50, 100))


def test_progress_true_draws_a_tqdm_bar_or_a_line(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress_module, "_SHOWN_AFTER", 0)
    monkeypatch.setattr(host, "_PIECE", 1000)
    a = np.arange(2000.0)
    assert same(arrayhub.to_host(a, copy=True, progress=True), a)
    assert "/15.6k [" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # makes the import fail
    assert same(arrayhub.to_host(a, copy=True, progress=True), a)
    assert "100% of 0.00 GiB copied" in capsys.readouterr().err


def test_short_copies_do_not_draw_a_bar(capsys):
    arrayhub.to_host(np.arange(10), copy=True, progress=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("progress", ["yes", 1, 0, np.True_])
def test_invalid_progress_raises(progress):
    with pytest.raises(TypeError, match=f"progress is {progress!r}; accepted: True, or a function"):
        arrayhub.to_host(np.arange(3), copy=True, progress=progress)


def test_progress_callables_that_are_false_are_called():
    class Calls(list):
        def __call__(self, done, total):
            self.append(done)

    calls = Calls()
    arrayhub.to_host(np.arange(3), copy=True, progress=calls)
    assert calls == [24]


# ------------------------------------------------------------------------------------------------------------- settings


def test_configure_sets_and_restores_defaults():
    chosen = settings_module.threads(), settings_module.chunk(), settings_module.buffers()
    assert min(chosen) >= 1
    transfer.configure(threads=3, chunk=1 << 16)
    assert (settings_module.threads(), settings_module.chunk(), settings_module.buffers()) == (3, 1 << 16, chosen[2])
    with pytest.raises(ValueError, match="buffers is 1; accepted: 2 or more"):
        transfer.configure(threads=5, buffers=1)
    with pytest.raises(TypeError):
        transfer.configure(chunk="a lot")
    assert settings_module.threads() == 3
    transfer.configure(threads=0, chunk=0)
    assert (settings_module.threads(), settings_module.chunk(), settings_module.buffers()) == chosen


def test_release_during_a_copy_leaves_the_lanes_to_the_copy():
    pool = pinned.Pool()
    with pool.in_use():
        pool.lanes[0] = [object()]
        used = pool.lanes_on(0, 1)
        pool.release()
        assert pool.lanes == {} and len(used) == 1 and pool.is_mine()
    assert not pool.lock.locked() and not pool.is_mine()


def test_host_and_sycl_copies_do_not_hold_memory(sycl):
    x = arrayhub.to_device(np.arange(10000.0).reshape(100, 100), "oneapi:0")
    x.T.to_host()
    assert set(transfer.held().values()) == {0}
    transfer.release()
    assert same(x.to_host(), np.arange(10000.0).reshape(100, 100))


# --------------------------------------------------------------------------------------------------- devices and dtypes


def test_invalid_devices_raise(sycl):
    with pytest.raises(BufferError, match="oneapi:99 is not a SYCL device here"):
        arrayhub.to_device(np.arange(3), "oneapi:99")
    x = arrayhub.to_device(np.arange(3), "oneapi:0")
    with pytest.raises(BufferError, match="oneapi:99 is not a SYCL device here"):
        x.to_device("oneapi:99")
    for device, error, why in (
        ("cuda_managed:0", BufferError, r"memory='cuda_managed'\), and pass the result to to_host\(x, out="),
        ("metal:0", BufferError, "metal"),
        ("nonsense:0", ValueError, "nonsense"),
        (1.5, TypeError, "float"),
    ):
        with pytest.raises(error, match=why):
            arrayhub.to_device(np.arange(3), device)
    with pytest.raises(BufferError, match="copy=False"):
        arrayhub.to_device(np.arange(3), "oneapi:0", copy=False)


def test_dlpack_exports_honor_copy_and_dl_device(sycl):
    u = arrayhub.asarray(np.arange(3.0))
    v = arrayhub.from_dlpack(u.__dlpack__(max_version=(1, 3), copy=True))
    assert v.ptr != u.ptr and v.access == "readwrite" and same(v, u)
    x = arrayhub.to_device(u, "oneapi:0")
    on_the_host = producer(__dlpack__=lambda self, **options: x.__dlpack__(dl_device=(1, 0), **options))
    assert same(np.from_dlpack(on_the_host), u)
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)


def test_asarray_converts_device_and_dtype(sycl):
    a = np.arange(6, dtype="i4").reshape(2, 3)
    x = arrayhub.asarray(a, dtype="f8", device="oneapi:0")
    assert x.usm_type == "device" and same(x.to_host(), a.astype("f8"))
    assert same(arrayhub.asarray(x, dtype="i2", device="cpu"), a.astype("i2"))
    for memory in ("device", "shared"):
        u = arrayhub.empty(a.shape, "i4", memory=f"usm_{memory}")
        u[...] = a
        narrow = arrayhub.asarray(u, dtype="i2")
        assert (narrow.usm_type, narrow.dtype) == (memory, "i2") and same(narrow.to_host(), a.astype("i2"))
    assert same(arrayhub.asarray(x, device="cpu", copy=False), a.astype("f8"))  # a request for another place
    again = arrayhub.asarray(a, device="cpu", copy=True)
    assert again.ptr != arrayhub.asarray(a).ptr and same(again, a)


# ------------------------------------------------------------------------------------------------------------- failures


INTERRUPTED = """
import signal, threading, time, os, sys
from arrayhub import transfer
from arrayhub.transfer import host
if {sycl}:
    from arrayhub.transfer import sycl
    sycl._CACHED = sycl._DIRECT = 1 << 16
host._PIECE = 1 << 16
a = np.arange(1 << 21, dtype="f8").reshape(1024, -1)
x = arrayhub.to_device(a, "oneapi:0") if {sycl} else arrayhub.asarray(a)
caught = 0
for turn in range(12):
    way = turn % 3
    def interrupt(done, total):     # sends the signal of Ctrl-C in the middle of the copy
        if done > total / 3 and not interrupt.sent:
            interrupt.sent = True
            os.kill(os.getpid(), signal.SIGINT)
    interrupt.sent = False
    try:
        if way == 0: arrayhub.to_host(x, copy=True, progress=interrupt)
        elif way == 1: arrayhub.to_host(x[::-1, ::2], copy=True, progress=interrupt)
        elif {sycl}: arrayhub.to_device(a.T, "oneapi:0", progress=interrupt)
        else: x.T.to_host(copy=True, progress=interrupt)
        time.sleep(0.1)
    except KeyboardInterrupt:
        caught += 1
assert caught == 12, caught
assert set(transfer.held().values()) == {{0}}
assert np.array_equal(np.asarray(arrayhub.to_host(x, copy=True)), a)
assert np.array_equal(np.asarray(arrayhub.to_host(x[::-1, ::2], copy=True)), a[::-1, ::2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_sycl", [False, True])
def test_interrupt_ends_only_the_current_copy(with_sycl):
    if with_sycl:
        pytest.importorskip("dpctl")
    python(PRELUDE + INTERRUPTED.format(sycl=with_sycl))


TIMED_INTERRUPT = """
import signal, threading, os
from arrayhub.transfer import sycl
sycl._CACHED = 1 << 16
a = np.arange(1 << 21, dtype="f8").reshape(1024, -1)
x = arrayhub.to_device(a, "oneapi:0")
out = np.empty(a.T.shape)
caught = 0
for turn in range(40):
    timer = threading.Timer(0.0005 * turn, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        for _ in range(1000):
            x.T.to_host(out=out)
        timer.join()
    except KeyboardInterrupt:
        caught += 1
assert caught == 40, caught
assert np.array_equal(np.asarray(x.T.to_host()), a.T)
"""


@pytest.mark.slow
def test_interrupt_at_any_moment_raises_keyboard_interrupt(sycl):
    python(PRELUDE + TIMED_INTERRUPT)


FORKED = """
import os, sys, signal
import dpctl, dpnp
x = dpnp.arange(10.0, usm_type="shared")
d = arrayhub.to_device(np.arange(10.0), "oneapi:0")
a = arrayhub.asarray(x)
assert np.asarray(a.to_host(copy=True))[3] == 3
child = os.fork()
if child == 0:
    signal.alarm(60)
    h = np.arange(12.0).reshape(3, 4)
    assert np.array_equal(np.asarray(arrayhub.to_host(h.T, copy=True)), h.T)
    refused = 0
    for way in (
        lambda: d.to_host(), lambda: np.asarray(a), lambda: arrayhub.to_device(h, "oneapi:0"), lambda: d.copy(),
        lambda: arrayhub.USMArray((3,), "f4"), lambda: a.to_host(copy=True),
    ):
        try:
            way()
        except (RuntimeError, BufferError) as error:
            refused += "forked after its parent had used SYCL" in str(error)
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
assert np.asarray(d.to_host()).tolist() == list(range(10))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork does not exist")
def test_sycl_in_a_forked_child_raises_instead_of_hanging(sycl):
    pytest.importorskip("dpnp")
    python(PRELUDE + FORKED)


SHORT_OF_MEMORY = """
import resource
a = np.arange(1 << 20, dtype="f8")
x = arrayhub.to_device(a, "oneapi:0") if {sycl} else arrayhub.asarray(a)
x.to_host(copy=True)
wide = np.broadcast_to(a, (4096, 1 << 20))
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 28), hard))
try:
    arrayhub.to_host(wide, copy=True)
except MemoryError as error:
    print(type(error).__name__, error)
if {sycl}:
    try:
        arrayhub.to_device(wide, "oneapi:0")
    except MemoryError as error:
        print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
assert np.array_equal(np.asarray(x.to_host(copy=True)), a)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space with RLIMIT_AS")
@pytest.mark.parametrize("with_sycl", [False, True])
def test_allocation_failure_raises_memory_error(with_sycl):
    if with_sycl:
        pytest.importorskip("dpctl")
    output = python(PRELUDE + SHORT_OF_MEMORY.format(sycl=with_sycl))
    assert output.count("cannot allocate 34359738368 bytes") == 1 + with_sycl
