"""Test two CUDA devices: imports, copies, streams, pools, IPC handles, pickles, placement, and consumers.

The current device is 0 at the start of each test, and most arrays are on device 1. A call that uses the current device
in place of the array's device therefore fails.
"""

import contextlib
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from children import ROOT, SUPPORT, python, run
from dlpack_by_hand import tensor_of
from sparse_arrays import matrix

import arrayhub as ah

FIRST, SECOND = ah.Device("cuda:0"), ah.Device("cuda:1")
LIBRARIES = ("cupy", "torch", "jax", "numba")
FIXTURES = {"cupy": "cp", "torch": "torch", "jax": "jax", "numba": "cuda"}
VALUES = np.arange(24, dtype="f4").reshape(4, 6)
KILLS = int(os.environ.get("ARRAYHUB_TEST_KILLS", "20"))
ROUNDS = 8


@pytest.fixture(autouse=True)
def two_devices(cp):
    """Skip the test on one device. Start with device 0 as the current device, and wait for both devices at the end."""
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one CUDA device; the tests need two")
    for ordinal in (1, 0):  # creates both contexts
        cp.cuda.Device(ordinal).use()
        cp.zeros(1).sum()
        cp.cuda.Device(ordinal).synchronize()
    yield
    for ordinal in (1, 0):
        cp.cuda.Device(ordinal).use()
        cp.cuda.Device(ordinal).synchronize()


def made(request, name, ordinal, values=VALUES):
    """Return an array of the library `name` on a device. All work on the array is complete."""
    library = request.getfixturevalue(FIXTURES[name])
    if name == "cupy":
        return on(library, ordinal, values)
    if name == "torch":
        array = library.as_tensor(values, device=f"cuda:{ordinal}")
        library.cuda.synchronize(ordinal)
        return array
    if name == "jax":
        return library.device_put(values, library.devices()[ordinal]).block_until_ready()
    with library.gpus[ordinal]:
        return library.to_device(values)


def on(cp, ordinal, values=VALUES):
    """Return a cupy array on a device. All work on the array is complete."""
    with cp.cuda.Device(ordinal) as device:
        array = cp.asarray(values)
        device.synchronize()
        return array


def values_of(x):
    return np.asarray(ah.to_host(ah.asarray(x)))


def current(cp):
    """Return the current device of CUDA's runtime, and the context that is current for the driver."""
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return cp.cuda.runtime.getDevice(), context.value


# ------------------------------------------------------------------------------------------------------------- imports


@pytest.mark.parametrize(
    ("name", "via"),
    [
        *((name, None) for name in LIBRARIES),
        ("cupy", "cuda"), ("cupy", "dlpack"), ("torch", "cuda"), ("torch", "dlpack"), ("jax", "dlpack"),
        ("numba", "cuda"),
    ],
)  # fmt: skip
def test_import_keeps_the_device(request, cp, name, via):
    for ordinal in (1, 0, 1):
        x = made(request, name, ordinal)
        cp.cuda.Device(0).use()
        a = ah.asarray(x, via=via)
        assert a.device == ah.Device(f"cuda:{ordinal}") and a.shape == VALUES.shape
        assert cp.cuda.runtime.getDevice() == 0
        assert (values_of(a) == VALUES).all()


@pytest.mark.parametrize("name", LIBRARIES)
def test_import_on_a_stream_of_the_second_device(request, cp, name):
    """torch exports a tensor only if the current device is the tensor's device."""
    with cp.cuda.Device(1):
        stream = cp.cuda.Stream(non_blocking=True)
    x = made(request, name, 1)
    cp.cuda.Device(0).use()
    a = ah.asarray(x, stream=stream)
    assert a.device == SECOND and a.__cuda_array_interface__["stream"] == stream.ptr
    assert cp.cuda.runtime.getDevice() == 0


def test_views_and_empty_arrays_keep_the_device(cp):
    a = ah.asarray(on(cp, 1))
    for view in (a[1:], a.T, a[::-1, ::2], a[0, 0], a[:0]):
        assert view.device == SECOND
    assert ah.asarray(on(cp, 1, np.zeros((0, 3)))).device == SECOND


def test_pinned_and_managed_memory_do_not_depend_on_the_current_device(cp):
    for ordinal in (0, 1):
        with cp.cuda.Device(ordinal):
            for memory in ("cuda_host", "cuda_managed"):
                x = ah.full((3, 4), 5.0, memory=memory)
                assert x.device.type == memory and (np.asarray(x.to_host()) == 5).all()


# ----------------------------------------------------------------------------------------------- copies between devices

LAYOUTS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "rows": lambda x: x[1:3],
    "strided": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1, ::-2],
    "0-d": lambda x: x[1, 2, ...],
    "empty": lambda x: x[:, :0],
}
SHAPES = {"small": (4, 6), "large": (2200, 2000)}  # with float64, the large one exceeds a staging buffer of 32 MiB
PAIRS = [(of, to, "small") for of in ("C", "F", "strided", "reversed") for to in ("C", "F", "strided", "reversed")]
PAIRS += [("C", "C", "large"), ("F", "C", "large"), ("C", "strided", "large"), ("strided", "reversed", "large")]


@pytest.fixture(params=["peer access", "without peer access"])
def peers(request, cp, monkeypatch):
    """Run a test with peer access between the devices, and without it."""
    runtime = cp.cuda.runtime
    if request.param == "peer access":
        if not (runtime.deviceCanAccessPeer(0, 1) and runtime.deviceCanAccessPeer(1, 0)):
            pytest.skip("the devices cannot access each other's memory")
        yield
        return
    from arrayhub.transfer import cuda as engine

    monkeypatch.setattr(engine, "allow_peer", lambda device, peer: None)  # would enable peer access again
    disabled = [disable_peer_access(cp, device, peer) for device, peer in ((0, 1), (1, 0))]
    yield
    for device, peer, was_enabled in disabled:
        if was_enabled:
            with cp.cuda.Device(device):
                runtime.deviceEnablePeerAccess(peer)


def disable_peer_access(cp, device, peer):
    """Call cudaDeviceDisablePeerAccess through the driver. Return the arguments, and whether access was enabled."""
    driver = ctypes.CDLL("libcuda.so.1")
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    assert driver.cuDeviceGet(ctypes.byref(handle), peer) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle) == 0
    with cp.cuda.Device(device) as entered:
        entered.synchronize()
        code = driver.cuCtxDisablePeerAccess(context)
    assert driver.cuDevicePrimaryCtxRelease_v2(handle) == 0
    assert code in (0, 705), code  # 705: CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
    return device, peer, code == 0


@pytest.mark.parametrize("size", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direction", [(0, 1), (1, 0)], ids=["0 to 1", "1 to 0"])
def test_to_device_copies_between_devices(cp, peers, direction, layout, size):
    source, target = direction
    values = np.arange(np.prod(SHAPES[size]), dtype="f8").reshape(SHAPES[size])
    given = LAYOUTS[layout](ah.asarray(on(cp, source, values)))
    made = ah.to_device(given, f"cuda:{target}")
    assert made.device == ah.Device(f"cuda:{target}") and made.access == "readwrite"
    assert (np.asarray(made.to_host()) == LAYOUTS[layout](values)).all()
    assert (given.to_device(f"cuda:{target}").to_host().to_numpy() == LAYOUTS[layout](values)).all()


@pytest.mark.parametrize(("of", "to", "size"), PAIRS)
def test_assignment_copies_between_devices(cp, peers, of, to, size):
    """The elements between those of the target keep their values. `out=` of `to_device` makes the same copy."""
    base = {"C": SHAPES[size], "F": SHAPES[size][::-1]}
    shapes = {**base, "strided": (2 * SHAPES[size][0], 3 * SHAPES[size][1] + 1)}
    shapes["reversed"] = (SHAPES[size][0], 2 * SHAPES[size][1])
    values = np.arange(np.prod(shapes[of]), dtype="f8").reshape(shapes[of])
    expected = np.full(shapes[to], -1.0)
    LAYOUTS[to](expected)[...] = LAYOUTS[of](values)
    given = LAYOUTS[of](ah.asarray(on(cp, 0, values)))
    for call in ("assignment", "out"):
        whole = ah.asarray(on(cp, 1, np.full(shapes[to], -1.0)))
        out = LAYOUTS[to](whole)
        if call == "assignment":
            out[...] = given
        else:
            assert ah.to_device(given, "cuda:1", out=out) is out
        assert (np.asarray(whole.to_host()) == expected).all(), call


def test_assignment_broadcasts_and_casts_between_devices(cp, peers):
    out = ah.asarray(on(cp, 1, np.zeros((4, 6))))
    out[...] = ah.asarray(on(cp, 0, np.arange(6, dtype="i4")))
    assert (np.asarray(out.to_host()) == np.arange(6)).all()
    out[1:3, ::2] = 7
    assert (np.asarray(out.to_host())[1:3, ::2] == 7).all()


@pytest.mark.parametrize("name", LIBRARIES)
def test_arrays_of_each_library_are_moved_to_the_other_device(request, cp, name):
    a = ah.to_device(made(request, name, 1), "cuda:0")
    assert a.device == FIRST and (values_of(a) == VALUES).all()
    assert ah.asarray(made(request, name, 0), device="cuda:1").device == SECOND
    assert ah.to_device(a, "cuda:0").ptr == a.ptr


def test_copy_none_does_not_move_arrays_between_devices(cp, torch):
    x, model = on(cp, 0), torch.zeros(3, device="cuda:1")
    assert ah.asarray(x, copy=None).device == FIRST
    with pytest.raises(BufferError, match="cuda:0.*cuda:1"):
        ah.like(x, model, copy=False)
    assert ah.like(x, model).device.index == 1  # the model requests its device
    assert ah.convert(x, "torch", copy=None).device.index == 0
    for call in (ah.as_numpy, ah.as_pandas):
        with pytest.raises(BufferError, match="cuda:0"):
            call(x[0], copy=None)


def test_device_moves_arrays_whatever_copy_says(cp, torch, jax):
    x, t, j = on(cp, 0), torch.ones(3, device="cuda:0"), jax.device_put(VALUES, jax.devices()[0])
    cp.cuda.Device(0).use()
    for copy in (False, None, True):
        for made in (
            *(call(x, device="cuda:1", copy=copy) for call in (ah.asarray, ah.as_cupy, ah.as_torch, ah.as_numba)),
            *(ah.as_torch(given, device="cuda:1", copy=copy) for given in (t, j)),
            ah.as_cupy(t, device="cuda:1", copy=copy),
        ):
            assert ah.asarray(made).device == SECOND
        assert cp.cuda.runtime.getDevice() == 0


def test_copies_use_the_arrays_device(cp, torch):
    x = ah.asarray(on(cp, 1))
    for copied in (x.copy(), x[::2].copy("F"), ah.asarray(x, copy=True), ah.asarray(ah.as_torch(x, copy=True))):
        assert copied.device == SECOND and copied.ptr != x.ptr
    assert (x[::2].copy("F").to_host().to_numpy() == VALUES[::2]).all()
    assert ah.asarray(x, dtype="f8").device == SECOND
    assert x[:, :0].copy().device == SECOND


def test_copies_by_the_arrays_library_use_the_arrays_device(request, cp):
    for name, call in (("cupy", ah.as_cupy), ("torch", ah.as_torch), ("jax", ah.as_jax)):
        x = made(request, name, 1)
        cp.cuda.Device(0).use()
        for copied in (call(x, copy=True), call(x, dtype="f2")):
            assert cp.cuda.runtime.getDevice() == 0
            a = ah.asarray(copied)
            assert a.device == SECOND and a.ptr != ah.asarray(x).ptr and (values_of(a) == VALUES).all()


# ------------------------------------------------------------------------------------------------------------- streams

SIZE = 1 << 20  # elements


class Race:
    """A stream on each device, neither of which synchronizes with default streams, and slow writers."""

    def __init__(self, cp, spin):
        self.cp, self.spin = cp, spin
        self.streams, self.arrays = [], []
        for ordinal in (0, 1):
            with cp.cuda.Device(ordinal) as device:
                self.streams.append(cp.cuda.Stream(non_blocking=True))
                self.arrays.append(cp.zeros(SIZE, "f4"))
                with self.streams[ordinal]:  # compile and load all kernels: loading may synchronize the device
                    spin(1)
                    self.arrays[ordinal].fill(1)
                    cp.copyto(cp.zeros_like(self.arrays[ordinal]), self.arrays[ordinal])
                device.synchronize()

    @contextlib.contextmanager
    def on(self, ordinal):
        with self.cp.cuda.Device(ordinal), self.streams[ordinal]:
            yield self.arrays[ordinal]

    def write(self, ordinal, value, slowly=True):
        """Queue a slow kernel and a write of `value`, and return the array that is being written."""
        with self.on(ordinal) as x:
            if slowly:
                self.spin()
            x.fill(value)
            return ah.asarray(x)

    def read(self, ordinal, x):
        """Return the elements of a cupy array on the device, read in the order of the device's stream."""
        with self.cp.cuda.Device(ordinal), self.streams[ordinal]:
            return x.get(stream=self.streams[ordinal])

    def wait(self):
        for ordinal in (0, 1):
            self.cp.cuda.Device(ordinal).synchronize()


@pytest.fixture
def race(cp, spin):
    """Return a Race in which a copy between the devices without synchronization was seen to read the old value."""
    runtime = cp.cuda.runtime
    for _ in range(8):
        race = Race(cp, spin)
        with race.on(1) as target:  # the first copy between the devices may synchronize them
            runtime.memcpyPeerAsync(target.data.ptr, 1, race.arrays[0].data.ptr, 0, 4 * SIZE, race.streams[1].ptr)
        race.wait()
        race.write(0, 0)
        race.wait()
        race.write(0, 5)
        with race.on(1) as target:
            runtime.memcpyPeerAsync(target.data.ptr, 1, race.arrays[0].data.ptr, 0, 4 * SIZE, race.streams[1].ptr)
            lost = (race.read(1, target) == 0).all()
        race.wait()
        if lost:
            return race
    pytest.fail("no copy without synchronization reads an old value, so a missing wait could not be detected")


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_copy_to_another_device_waits_for_the_producer(race, layout):
    for value in range(1, ROUNDS):
        a = race.write(0, value)
        made = ah.to_device(a if layout == "contiguous" else a[::2], "cuda:1")
        assert (race.read(1, ah.as_cupy(made)) == value).all(), value


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_assignment_is_ordered_between_work_on_both_devices(race, layout):
    """The copy runs after pending writes on both devices' streams, and before later work on them."""
    key = slice(None) if layout == "contiguous" else slice(None, None, 2)
    for value in range(1, ROUNDS):
        given = race.write(0, value)
        target = race.write(1, -1)
        target[key] = given[key]
        race.write(0, -3, slowly=False)
        with race.on(1) as out:
            seen = out.copy()
        assert (race.read(1, seen)[key] == value).all(), value
        race.wait()


def test_consumer_on_the_other_device_waits_for_the_producer(race, cp):
    """The array stays on device 0, where cupy's current stream of that device waits, although device 1 is current."""
    for value in range(1, ROUNDS):
        a = race.write(0, value)
        with cp.cuda.Device(1):
            y = ah.as_cupy(a)
            assert y.device.id == 0
        assert (y.get() == value).all(), value


def test_torch_on_the_second_device_waits_for_cupy(race, cp, torch):
    theirs = torch.cuda.Stream(device="cuda:1")
    for value in range(1, ROUNDS):
        a = race.write(1, value)
        with torch.cuda.stream(theirs):
            y = ah.as_torch(a).clone()
        theirs.synchronize()
        assert y.device.index == 1 and (y.cpu() == value).all(), value
        assert torch.cuda.current_device() == 0


def test_host_copy_waits_for_the_second_device(race):
    for value in range(1, ROUNDS):
        assert (np.asarray(ah.to_host(race.write(1, value))) == value).all()


# --------------------------------------------------------------------------------------------------------------- pools

NEW = {
    "empty": lambda **named: ah.empty((1 << 20,), "u1", **named),
    "zeros": lambda **named: ah.zeros((1 << 20,), "u1", **named),
    "ones": lambda **named: ah.ones((1 << 20,), "u1", **named),
    "full": lambda **named: ah.full((1 << 20,), 3, "u1", **named),
}


@pytest.mark.parametrize("call", NEW)
def test_memory_like_a_tensor_is_from_torchs_pool_of_its_device(cp, torch, call):
    model = torch.zeros(3, device="cuda:1")
    NEW[call](like=model)
    gc.collect()
    before = [torch.cuda.memory_allocated(ordinal) for ordinal in (0, 1)]
    x = NEW[call](like=model)
    after = [torch.cuda.memory_allocated(ordinal) for ordinal in (0, 1)]
    assert after[0] == before[0] and after[1] - before[1] >= 1 << 20
    assert x.device == SECOND and torch.cuda.current_device() == 0
    del x
    gc.collect()
    assert torch.cuda.memory_allocated(1) == before[1]


@pytest.mark.parametrize("call", NEW)
def test_memory_like_a_cupy_array_is_from_cupys_pool_of_its_device(cp, call):
    pool, used = cp.cuda.MemoryPool(), []
    with cp.cuda.using_allocator(pool.malloc):
        x = NEW[call](like=on(cp, 1))
    for ordinal in (0, 1):
        with cp.cuda.Device(ordinal):
            used.append(pool.used_bytes())
    assert used[0] == 0 and used[1] >= 1 << 20
    assert x.device == SECOND and cp.cuda.runtime.getDevice() == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_new_memory_is_on_the_models_device(request, cp, name):
    for call, value in (("zeros", 0), ("ones", 1), ("full", 3)):
        x = NEW[call](like=made(request, name, 1))
        assert x.device == SECOND and (np.asarray(x.to_host()) == value).all()
        x = NEW[call](memory="cuda", device="cuda:1")
        assert x.device == SECOND and (np.asarray(x.to_host()) == value).all()


# ----------------------------------------------------------------------------------------------------- current device


def refused(error, call, *arguments, **named):
    with pytest.raises(error):
        call(*arguments, **named)


def stop(done, total):
    raise KeyError("on purpose")


def calls(cp, torch, cuda, jax):
    """Yield calls with arrays on both devices, those of the second part with an error."""
    x0, x1 = ah.asarray(on(cp, 0)), ah.asarray(on(cp, 1))
    t1, n1 = torch.ones(3, device="cuda:1"), made_by_numba(cuda, 1)
    j0, j1 = (jax.device_put(VALUES, device).block_until_ready() for device in jax.devices()[:2])
    host, large = VALUES.copy(), on(cp, 1, np.zeros(1 << 22))
    frozen = ah.asarray(on(cp, 1))
    frozen.flags.writeable = False
    yield "asarray", lambda: [ah.asarray(obj) for obj in (on(cp, 1), t1, n1)]
    yield "asarray(stream=)", lambda: ah.asarray(t1, stream=1)
    yield "asarray(jax)", lambda: [ah.asarray(j0), ah.asarray(j1), ah.asarray(j1, via="dlpack"), ah.to_host(j1)]
    yield "as_jax", lambda: [ah.as_jax(obj) for obj in (x0, x1, t1, j0, j1)]
    yield "copies by jax", lambda: [ah.as_jax(j1, copy=True), ah.as_jax(j1, dtype="f2"), ah.as_jax(x1, copy=True)]
    yield "as_cupy", lambda: [ah.as_cupy(obj) for obj in (x0, x1, t1)]
    yield "as_torch", lambda: [ah.as_torch(obj) for obj in (x0, x1, n1)]
    yield "as_numba", lambda: [ah.as_numba(obj) for obj in (x0, x1, t1)]
    yield "to_host", lambda: [ah.to_host(obj) for obj in (x0, x1[::2], x1.T, large, t1)]
    yield "to_device", lambda: [x0.to_device("cuda:1"), x1.to_device("cuda:0"), ah.to_device(host, "cuda:1")]
    yield "assignment", lambda: [x1.__setitem__(..., x0), x0.__setitem__(..., x1.T.copy().T), x1.__setitem__(..., host)]
    yield "copy", lambda: [x1.copy(), x1.T.copy("C"), ah.as_torch(x1, copy=True), ah.as_cupy(host, copy=True)]
    yield "new", lambda: [ah.empty(3, like=x1), ah.zeros(3, like=t1), ah.ones(3, memory="cuda", device="cuda:1")]
    yield "like", lambda: [ah.like(x1, t1), ah.like(host, t1, copy=True), ah.placement(host, t1).library]
    yield "dlpack", lambda: [x1.__dlpack__(max_version=(1, 0)), x1.__dlpack__(stream=-1), x1.__cuda_array_interface__]
    yield "text", lambda: [repr(x1), ah.debug_repr(x1), ah.check(x1)]
    yield "ipc_handle", lambda: ah.ipc_handle(ah.to_device(x1, "cuda:1", copy=True)).close()
    yield "release", lambda: [ah.empty(3, like=t1).size, gc.collect()]
    yield "missing device", lambda: refused(BufferError, ah.to_device, x1, "cuda:99")
    yield "wrong shape", lambda: refused(ValueError, x1.__setitem__, ..., np.zeros(5, "f4"))
    yield "wrong values", lambda: refused((TypeError, ValueError), x1.__setitem__, ..., 1j)
    yield "read-only", lambda: refused(BufferError, ah.as_cupy, frozen)
    yield "too large", lambda: refused(MemoryError, ah.empty, 1 << 45, "u1", like=t1)
    yield "too large for cupy", lambda: refused(MemoryError, ah.empty, 1 << 45, "u1", memory="cuda", device="cuda:1")
    yield "host library", lambda: refused(BufferError, ah.as_numpy, x1)
    yield "other device", lambda: refused(BufferError, ah.like, x0, t1, copy=False)
    yield "progress", lambda: refused(KeyError, ah.to_host, large, copy=True, progress=stop)
    yield "progress to a device", lambda: refused(KeyError, ah.to_device, large, "cuda:0", progress=stop)


def made_by_numba(cuda, ordinal):
    with cuda.gpus[ordinal]:
        return cuda.to_device(VALUES)


@pytest.mark.parametrize("before", [0, 1])
def test_current_device_is_unchanged_after_each_call(cp, torch, cuda, jax, before):
    found = list(calls(cp, torch, cuda, jax))
    for turn in ("first", "second"):
        for name, call in found:
            cp.cuda.Device(before).use()
            wanted = current(cp)
            made = call()
            assert current(cp) == wanted, f"{name}, {turn} call: {current(cp)}, before: {wanted}"
            assert torch.cuda.current_device() == before, name
            del made  # not earlier: jax may make a device current to release memory


# --------------------------------------------------------------------------------------------------------- IPC handles

BORROWER = """
    import pickle, sys
    import cupy, arrayhub

    cupy.zeros(1).sum()
    handle = pickle.loads(bytes.fromhex(sys.argv[1]))
    with handle.open() as y:
        assert cupy.cuda.runtime.getDevice() == 0
        ordinal = y.device.id
        with cupy.cuda.Device(ordinal):
            there = arrayhub.as_cupy(y)
            print(y.device, float(there.sum()))
            there += 1
            cupy.cuda.Device(ordinal).synchronize()
            del there
    assert cupy.cuda.runtime.getDevice() == 0
"""


@pytest.mark.parametrize(("visible", "device"), [("0,1", "cuda:1"), ("1", "cuda:0"), ("1,0", "cuda:0")])
def test_borrower_finds_the_device_by_its_identity(cp, visible, device):
    """The handle names the device by its UUID. The device number depends on the borrower's visible devices."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0,1") != "0,1":
        pytest.skip("CUDA_VISIBLE_DEVICES is set for the tests")
    x = on(cp, 1)
    handle = ah.ipc_handle(x)
    assert handle.device == "cuda:1"
    printed = python(BORROWER, pickle.dumps(handle).hex(), CUDA_VISIBLE_DEVICES=visible, PYTHONPATH=str(ROOT))
    assert printed.split() == [device, str(float(VALUES.sum()))]
    handle.close(timeout=60)
    assert (values_of(x) == VALUES + 1).all()


def test_borrower_without_the_device_is_told_so(cp):
    handle = ah.ipc_handle(on(cp, 1))
    program = """
        import pickle, sys
        handle = pickle.loads(bytes.fromhex(sys.argv[1]))
        try:
            with handle.open() as y:
                raise AssertionError(y)
        except BufferError as error:
            print(error)
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")[0]
    printed = python(program, pickle.dumps(handle).hex(), CUDA_VISIBLE_DEVICES=visible, PYTHONPATH=str(ROOT))
    assert "CUDA" in printed and "device" in printed, printed


OWNER = """
    import pickle, sys
    import cupy, arrayhub

    with cupy.cuda.Device(1):
        x = cupy.full((4, 5), 3.0)
    handle = arrayhub.ipc_handle(x)
    print(pickle.dumps(handle).hex(), flush=True)
    sys.stdin.read()
"""


def test_memory_of_a_killed_owner_stays_readable_on_the_second_device(cp):
    paths = os.pathsep.join([str(ROOT), str(SUPPORT)])
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER)], env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        handle = pickle.loads(bytes.fromhex(owner.stdout.readline()))

        def read(y):
            with cp.cuda.Device(1):
                return float(ah.as_cupy(y).sum())

        with handle.open() as y:
            assert y.device == SECOND and read(y) == 60
            owner.kill()
            owner.wait()
            assert read(y) == 60
            del y
        gc.collect()
        with pytest.raises(ConnectionRefusedError, match="it has ended"), handle.open():
            pass
        assert cp.cuda.runtime.getDevice() == 0
    finally:
        owner.kill()
        owner.communicate()


def test_killed_owners_and_borrowers_on_the_second_device_do_not_leak_resources():
    script = Path(__file__).with_name("ipc_kills.py")
    printed = run(sys.executable, "-X", "faulthandler", script, KILLS, 0, 1, PYTHONPATH=str(ROOT))
    assert f"{KILLS} rounds" in printed and "no leaks" in printed


# ------------------------------------------------------------------------------------------------------------- pickles

# In subprocesses, because the environment variables of the policy are read once.
UNPICKLE = """
    import pickle, sys
    import numpy, arrayhub

    try:
        x = pickle.loads(bytes.fromhex(sys.argv[1]))
    except pickle.UnpicklingError as error:
        print(error)
    else:
        assert float(numpy.asarray(x.to_host()).sum()) == 276
        print(x.device)
"""
PICKLE = """
    import pickle
    import cupy, numpy, arrayhub

    with cupy.cuda.Device(1):
        x = arrayhub.asarray(cupy.arange(24.0).reshape(4, 6).T)
    print(pickle.dumps(x, protocol=4).hex())
"""


def test_pickles_are_restored_to_the_recorded_device(cp):
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0,1") != "0,1":
        pytest.skip("CUDA_VISIBLE_DEVICES is set for the tests")
    pickled = python(PICKLE, ARRAYHUB_PICKLING="keep", PYTHONPATH=str(ROOT)).strip()
    assert python(UNPICKLE, pickled, PYTHONPATH=str(ROOT)) == "cuda:1\n"
    missing = python(UNPICKLE, pickled, CUDA_VISIBLE_DEVICES="0", PYTHONPATH=str(ROOT))
    assert "cuda:1" in missing and "not available here" in missing, missing
    on_host = {"CUDA_VISIBLE_DEVICES": "0", "ARRAYHUB_UNPICKLING": "host", "PYTHONPATH": str(ROOT)}
    assert python(UNPICKLE, pickled, **on_host) == "cpu\n"
    near = python(PICKLE, ARRAYHUB_PICKLING="host", PYTHONPATH=str(ROOT)).strip()
    assert python(UNPICKLE, near, PYTHONPATH=str(ROOT)) == "cpu\n"


# ------------------------------------------------------------------------------------------- like, placement and adapt


@pytest.mark.parametrize("name", LIBRARIES)
def test_placement_of_arrays_on_two_devices_names_both(request, cp, name):
    x, y = on(cp, 0), made(request, name, 1)
    with pytest.raises(ValueError, match=r"cuda:0.*cuda:1"):
        ah.placement(VALUES, x, y)
    with pytest.raises(ValueError, match=r"cuda:1.*cuda:0"):
        ah.placement(y, x)
    place = ah.placement(VALUES, y)
    assert (place.library, place.device) == (name, SECOND)
    moved = ah.placement(x, y, prefer="cuda:1").asarray(VALUES, copy=True)
    assert moved.device == SECOND and (values_of(moved) == VALUES).all()


@pytest.mark.parametrize("name", LIBRARIES)
def test_like_keeps_the_models_device(request, cp, name):
    model = made(request, name, 1, np.zeros(2, "f4"))
    there = ah.like(VALUES, model, copy=True)
    assert type(there) is type(model) and ah.asarray(there).device == SECOND
    assert (values_of(there) == VALUES).all()
    near = on(cp, 1)
    result = ah.like(near, model)
    assert type(result) is type(model) and ah.asarray(result).device == SECOND
    with pytest.raises(BufferError, match="cuda:0.*cuda:1"):
        ah.like(on(cp, 0), model, copy=False)
    for copy in (None, True):
        moved = ah.like(on(cp, 0), model, copy=copy)
        assert ah.asarray(moved).device == SECOND and (values_of(moved) == VALUES).all()


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_adapted_functions_run_on_the_arguments_device(request, cp, name):
    request.getfixturevalue("torch")
    seen = []

    @ah.adapt("torch")
    def double(x, y=0):
        seen.append(x.device.index)
        return x * 2 + y

    x = made(request, name, 1)
    result = double(x)
    assert type(result) is type(x) and ah.asarray(result).device == SECOND and seen == [1]
    assert (values_of(result) == 2 * VALUES).all()
    with pytest.raises(ValueError, match=r"double: .*x.*cuda:1.*y.*cuda:0"):
        double(x, on(cp, 0))
    assert seen == [1] and cp.cuda.runtime.getDevice() == 0


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_adapt_moves_arguments_to_its_device_and_results_back(request, cp, name):
    request.getfixturevalue("torch")
    seen = []

    @ah.adapt("torch", device="cuda:1")
    def double(x, y):
        seen.append((x.device.index, y.device.index))
        return x * 2 + y

    x = made(request, name, 0)
    result = double(x, VALUES)
    assert seen == [(1, 1)]
    assert type(result) is type(x) and ah.asarray(result).device == FIRST
    assert (values_of(result) == 3 * VALUES).all()
    result = double(VALUES, x)
    assert ah.asarray(result).device == FIRST and cp.cuda.runtime.getDevice() == 0


# ------------------------------------------------------------------------------------- arrays that are on both devices


@pytest.mark.parametrize("spec", ["replicated", "sharded"])
def test_jax_arrays_on_both_devices_are_refused_with_their_parts_named(jax, spec):
    ah.asarray(jax.numpy.zeros(3))  # from now on, jax arrays are first imported by a function of jaxlib
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), "d")
    partition = jax.sharding.PartitionSpec("d") if spec == "sharded" else jax.sharding.PartitionSpec()
    x = jax.device_put(VALUES, jax.sharding.NamedSharding(mesh, partition))
    for call in (ah.asarray, ah.as_cupy, lambda x: ah.asarray(x, stream=1)):
        with pytest.raises(BufferError, match=r"2 devices.*x\.addressable_shards\[i\]\.data"):
            call(x)
    parts = [ah.asarray(shard.data) for shard in x.addressable_shards]
    assert {part.device for part in parts} == {FIRST, SECOND}
    for part, shard in zip(parts, x.addressable_shards, strict=True):
        assert (values_of(part) == VALUES[shard.index]).all()
    assert (values_of(jax.device_put(x, jax.devices()[1])) == VALUES).all()


class Altered:
    """A producer whose DLPack capsule and device state a wrong device number."""

    def __init__(self, array, number):
        self.array, self.number = array, number

    def __dlpack__(self, *, max_version=None, **named):
        capsule = self.array.__dlpack__(max_version=max_version)
        tensor_of(capsule).dl_tensor.device.device_id = self.number
        return capsule

    def __dlpack_device__(self):
        return (2, self.number)


@pytest.mark.parametrize("number", [0, 7])
def test_capsules_with_a_wrong_device_number_are_refused(cp, number):
    x = ah.asarray(on(cp, 1))
    for call in (ah.asarray, ah.from_dlpack, ah.as_cupy):
        with pytest.raises(ah.InterfaceError, match=rf"device_id.*{number}.*1"):
            call(Altered(x, number))
    assert ah.asarray(Altered(x, 1)).device == SECOND
    assert cp.cuda.runtime.getDevice() == 0


# ----------------------------------------------------------------------------------------------------------- consumers


def test_cupy_uses_arrays_on_the_second_device(request, cp):
    for name in LIBRARIES:
        y = ah.as_cupy(made(request, name, 1), allow_readonly=True)
        assert y.device.id == 1
        with cp.cuda.Device(1):
            assert float((y + 1).sum()) == float((VALUES + 1).sum())
    with cp.cuda.Device(1):
        assert cp.from_dlpack(ah.asarray(on(cp, 1))).device.id == 1
        assert cp.asarray(ah.asarray(on(cp, 1))).device.id == 1


def test_torch_uses_arrays_on_the_second_device(request, cp, torch):
    for name in LIBRARIES:
        x = made(request, name, 1)
        cp.cuda.Device(0).use()  # jax leaves its array's device current
        y = ah.as_torch(x, allow_readonly=True)
        assert torch.cuda.current_device() == 0
        assert y.device == torch.device("cuda:1") and float((y + 1).sum()) == float((VALUES + 1).sum())
    assert torch.from_dlpack(ah.asarray(on(cp, 1))).device.index == 1


def test_numba_uses_arrays_on_the_second_device(request, cp, cuda):
    for name in ("cupy", "torch", "numba"):
        y = ah.as_numba(made(request, name, 1))
        with cuda.gpus[1]:
            assert (y.copy_to_host() == VALUES).all()
        assert y.__cuda_array_interface__["data"][0] == ah.asarray(y).ptr and ah.asarray(y).device == SECOND


def test_numba_kernel_runs_on_the_second_device(cp, cuda, kernels):
    @cuda.jit
    def double(out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] *= 2

    x = on(cp, 1, np.arange(100, dtype="f4"))
    with cuda.gpus[1]:
        double[4, 32](ah.asarray(x))
        cuda.synchronize()
    assert (values_of(x) == 2 * np.arange(100)).all()


def test_jax_uses_arrays_on_the_second_device(cp, jax):
    a = ah.asarray(on(cp, 1))
    y = ah.as_jax(a)
    assert cp.cuda.runtime.getDevice() == 0
    # jax leaves the device of its arrays current.
    assert y.devices() == {jax.devices()[1]} and (np.asarray(y + 1) == VALUES + 1).all()


# --------------------------------------------------------------------------------------------- sparse and nested data


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_sparse_arrays_on_the_second_device(cp, torch, format):
    given = matrix(format)
    x = ah.assparse(given).to_device("cuda:1")
    assert x.device == SECOND and {part.device for part in (x.data, *(x.coords or (x.indices, x.indptr)))} == {SECOND}
    assert ah.convert(x.to_host(), "scipy").toarray().tolist() == given.toarray().tolist()
    with cp.cuda.Device(1):
        shared = ah.as_cupy(x)
        assert shared.data.data.ptr == x.data.ptr and shared.get().toarray().tolist() == given.toarray().tolist()
    back = x.to_device("cuda:0")
    assert back.device == FIRST and ah.convert(back.to_host(), "scipy").toarray().tolist() == given.toarray().tolist()
    assert x.to_dense().device == SECOND and values_of(x.to_dense()).tolist() == given.toarray().tolist()
    assert cp.cuda.runtime.getDevice() == 0


def test_sparse_arrays_follow_a_model_on_the_second_device(torch):
    given, model = matrix("csr"), torch.eye(3, device="cuda:1").to_sparse_csr()
    there = ah.like(given, model, copy=True)
    assert there.layout is torch.sparse_csr and there.device.index == 1
    assert there.to_dense().tolist() == given.toarray().tolist()
    assert str(ah.placement(given, model).device) == "cuda:1" and torch.cuda.current_device() == 0


NESTED = {
    "lists": [[1.0], [2.0, 3.0, 4.0], [], [5.0, 6.0]],
    "missing": [[1, None], None, [3]],
    "strings": ["This", None, "a string of more than twelve bytes"],
    "records": [{"x": 1, "y": ["a"]}, {"x": 2, "y": []}],
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_arrays_on_the_second_device(cp, name):
    x = ah.asnested(NESTED[name]).to_device("cuda:1")
    assert x.device == SECOND and x.to_host().to_list() == NESTED[name]
    assert x[1:].device == SECOND and x[1:].to_host().to_list() == NESTED[name][1:]
    back = x.to_device("cuda:0")
    assert back.device == FIRST and back.to_host().to_list() == NESTED[name]
    assert x.__arrow_c_device_array__() is not None
    with pytest.raises(BufferError, match=r"to_host\(\)"):
        x.to_list()
    assert cp.cuda.runtime.getDevice() == 0


def test_jagged_tensors_on_the_second_device(torch):
    rows = [torch.arange(float(n), device="cuda:1") for n in (1, 3, 2)]
    x = ah.asnested(torch.nested.nested_tensor(rows, layout=torch.jagged))
    assert x.device == SECOND and x.to_host().to_list() == [row.tolist() for row in rows]
    again = ah.as_torch(x)
    assert again.device.index == 1 and again.values().data_ptr() == x.content.ptr
