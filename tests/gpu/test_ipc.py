"""Test IPC handles of CUDA device memory: shared memory, order of work, and the number of borrowers."""

import gc
import multiprocessing
import os
import pickle

import numpy as np
import pytest
from children import python

import arrayhub

cupy = pytest.importorskip("cupy", reason="cupy is not installed")
pytestmark = pytest.mark.gpu
WAIT = 60


# --------------------------------------------------------------- functions that the other process runs


def total(y):
    return float(arrayhub.as_cupy(y).sum())


def add_one(handle, connection):
    """Send the sum and the layout of the array, add 1 to its elements, and wait for a message before exiting."""

    def use():
        with handle.open() as y:
            before = float(arrayhub.to_host(y).to_numpy().sum())  # as_cupy would reject read-only memory
            connection.send((before, y.shape, y.byte_strides, y.access, str(y.device)))
            if y.access == "readwrite":
                there = arrayhub.as_cupy(y)
                there += 1

    try:
        use()
        gc.collect()
        connection.send("ended")
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
    connection.recv()


def open_twice(handle, connection):
    def use():
        with handle.open() as y, handle.open() as z:
            connection.send((y.ptr == z.ptr, total(y), total(z)))
            connection.recv()
            del y
            gc.collect()
            connection.send(total(z))
            connection.recv()

    use()
    gc.collect()
    connection.send("ended")
    connection.recv()


def hold(handle, connection):
    with handle.open() as y:
        connection.send(total(y))
        connection.recv()


def own(connection):
    x = cupy.full((4, 5), 3.0)
    handle = arrayhub.ipc_handle(x)
    connection.send(handle)
    connection.recv()


class Child:
    """A spawned process with a pipe. `end` kills the process."""

    def __init__(self, target, *arguments):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(*arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def receive(self):
        assert self.connection.poll(WAIT), f"no message from the other process within {WAIT} s"
        return self.connection.recv()

    def send(self, message="go on"):
        self.connection.send(message)

    def end(self):
        self.process.kill()
        self.process.join(WAIT)


@pytest.fixture
def child():
    children = []

    def start(target, *arguments):
        children.append(Child(target, *arguments))
        return children[-1]

    yield start
    for one in children:
        one.end()


# ------------------------------------------------------------------------------------------- shared memory

VIEWS = {
    "C": lambda a: a,
    "F": lambda a: a.T,
    "strided": lambda a: a[::2, ::-1],
    "offset": lambda a: a[1:, 2:],
}


@pytest.mark.parametrize("view", VIEWS)
def test_borrower_writes_to_the_owners_memory(child, view):
    source = cupy.arange(24.0).reshape(4, 6)
    x = arrayhub.asarray(VIEWS[view](source))
    before = float(VIEWS[view](source).sum())
    handle = arrayhub.ipc_handle(x)
    assert len(pickle.dumps(handle)) < 600 and handle.device == "cuda:0"
    other = child(add_one, handle)
    seen = other.receive()
    assert seen == (before, x.shape, x.byte_strides, "readwrite", "cuda:0"), seen
    assert other.receive() == "ended"
    handle.close(timeout=WAIT)
    assert float(VIEWS[view](source).sum()) == before + x.size
    assert float(source.sum()) == 276 + x.size  # elements outside of the view are unchanged


def test_readonly_memory_stays_readonly(child):
    x = arrayhub.asarray(cupy.ones((3, 4)))
    x.flags.writeable = False
    other = child(add_one, arrayhub.ipc_handle(x))
    assert other.receive()[3] == "readonly"
    assert other.receive() == "ended"


def test_borrower_waits_for_pending_work_of_the_owner(child, spin):
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        a = cupy.zeros(1_000_000)
        handle = arrayhub.ipc_handle(a)
    other = child(hold_after, handle)
    other.receive()  # wait until the borrower has imported its modules
    with stream:
        spin(500_000_000)
        a += 1
    other.send()
    assert other.receive() == 1_000_000


def hold_after(handle, connection):
    cupy.zeros(1).sum()
    connection.send("ready")
    connection.recv()
    hold(handle, connection)


def test_borrower_can_open_the_handle_on_its_own_stream(child):
    x = arrayhub.asarray(cupy.full(1000, 2.0))  # keeps the memory alive after the handle is deleted
    other = child(on_own_stream, arrayhub.ipc_handle(x))
    assert other.receive() == 2000


def on_own_stream(handle, connection):
    stream = cupy.cuda.Stream(non_blocking=True)
    with handle.open(stream=stream) as y, stream:
        connection.send(total(y))
        connection.recv()


@pytest.mark.parametrize("library", ["torch", "cupy pool", "arrayhub"])
def test_memory_of_torch_cupy_and_arrayhub_is_shared(child, library, request):
    if library == "torch":
        torch = request.getfixturevalue("torch")
        keep = torch.full((1000,), 7.0, device="cuda")
        source = torch.full((100, 3), 2.0, dtype=torch.float64, device="cuda")
    elif library == "arrayhub":
        source = arrayhub.full((100, 3), 2.0, memory="cuda")
    else:
        keep = cupy.full(1000, 7.0)
        source = cupy.full((100, 3), 2.0)
    handle = arrayhub.ipc_handle(source)
    other = child(add_one, handle)
    assert other.receive()[0] == 600
    assert other.receive() == "ended"
    handle.close(timeout=WAIT)
    assert total(arrayhub.asarray(source)) == 900
    if library != "arrayhub":
        assert float(keep.sum()) == 7000


@pytest.mark.parametrize("module", ["multiprocessing", "torch.multiprocessing"])
def test_handle_is_accepted_as_an_argument_of_a_process(module):
    x = cupy.full((4, 5), 3.0)
    handle = arrayhub.ipc_handle(x)
    context = pytest.importorskip(module).get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=put_total, args=(results, handle))
    process.start()
    assert results.get() == 60
    process.join(WAIT)
    assert process.exitcode == 0


def test_handle_is_accepted_as_an_argument_of_a_dask_task():
    distributed = pytest.importorskip("distributed")
    x = cupy.full((4, 5), 3.0)
    handle = arrayhub.ipc_handle(x)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with cluster, distributed.Client(cluster) as client:
        before, process = client.submit(add_one_in_task, handle, pure=False).result(timeout=WAIT)
        assert before == 60 and process != os.getpid()
    handle.close(timeout=WAIT)
    assert float(x.sum()) == 80


def add_one_in_task(handle):
    """Add 1 to the elements. Return the former sum, and the id of this process."""

    def use():
        with handle.open() as y:
            there = arrayhub.as_cupy(y)
            before = float(there.sum())
            there += 1
            return before

    return use(), os.getpid()


def put_total(results, handle):
    with handle.open() as y:
        results.put(total(y))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"type": "9 * float64"}, "was altered"),
        ({"identifier": bytes(16)}, "closed"),
        ({"server": f"arrayhub-{'0' * 32}"}, "it has ended, or runs on another machine"),
    ],
)
def test_altered_handle_is_rejected(changes, match):
    x = cupy.zeros(8)
    handle = arrayhub.ipc_handle(x)
    altered = arrayhub._ipc_handle(tuple(handle._description._replace(**changes)))
    with pytest.raises(ConnectionRefusedError, match=match), altered.open():
        pytest.fail("the handle was opened")
    with handle.open() as y:
        assert y.shape == (8,)


def test_borrower_can_use_torch(child, torch):
    handle = arrayhub.ipc_handle(torch.ones(50, device="cuda"))
    other = child(double_in_torch, handle)
    assert other.receive() == 100


def double_in_torch(handle, connection):
    with handle.open() as y:
        t = arrayhub.as_torch(y)
        t.mul_(2)
        connection.send(float(t.sum()))
        connection.recv()


# --------------------------------------------------------------- counts of borrowers, closed handles, killed processes


def test_borrowers_are_counted_and_listed_in_the_timeout_error(child):
    x = arrayhub.asarray(cupy.ones(10))
    handle = arrayhub.ipc_handle(x)
    other = child(hold, handle)
    assert other.receive() == 10 and handle.borrowers == 1
    with pytest.raises(TimeoutError, match=str(other.process.pid)):
        handle.close(timeout=0)
    with pytest.raises(ConnectionRefusedError, match="closed"), handle.open():
        pass
    other.end()
    handle.close(timeout=WAIT)
    assert handle.borrowers == 0


def test_handle_can_be_opened_twice_in_one_process(child):
    handle = arrayhub.ipc_handle(arrayhub.asarray(cupy.ones(10)))
    other = child(open_twice, handle)
    assert other.receive() == (True, 10, 10) and handle.borrowers == 2
    other.send()
    assert other.receive() == 10
    other.send()
    assert other.receive() == "ended" and handle.borrowers == 0


def test_handle_can_be_opened_by_its_owner():
    x = arrayhub.asarray(cupy.ones(10))
    handle = arrayhub.ipc_handle(x)
    with pickle.loads(pickle.dumps(handle)).open() as y:
        assert y.ptr == x.ptr and handle.borrowers == 1
    assert handle.borrowers == 0


def test_borrowed_memory_survives_the_owner_but_cannot_be_opened_again(child):
    owner = child(own)
    handle = owner.receive()
    with handle.open() as y:
        assert total(y) == 60
        owner.end()
        try:
            assert total(y) == 60
        finally:
            del y
            gc.collect()
    with pytest.raises(ConnectionRefusedError, match="it has ended"), handle.open():
        pass


def test_closed_handles_do_not_leak_file_descriptors(child):
    x = arrayhub.asarray(cupy.ones(10))
    arrayhub.ipc_handle(x).close()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        handle = arrayhub.ipc_handle(x)
        handle.close()
    assert len(os.listdir("/proc/self/fd")) <= before


# ------------------------------------------------------------------------------------------------------ other memory


def copied(x):
    """Make the call that the error suggests, while cupy's current pool is not stream-ordered."""
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
        return arrayhub.to_device(x, x.device, copy=True)


def test_error_for_a_stream_ordered_pool_suggests_a_working_call(child):
    with cupy.cuda.using_allocator(cupy.cuda.malloc_async):
        x = arrayhub.asarray(cupy.full(10, 4.0))
    with pytest.raises(BufferError, match=r"stream-ordered pool.*arrayhub\.to_device"):
        arrayhub.ipc_handle(x)
    handle = arrayhub.ipc_handle(copied(x))
    assert child(add_one, handle).receive()[0] == 40


EXPANDABLE = """
    import arrayhub, cupy, torch

    t = torch.full((10,), 4.0, device="cuda")
    try:
        arrayhub.ipc_handle(t)
    except BufferError as error:
        assert "expandable segments" in str(error) and "arrayhub.to_device" in str(error), error
        x = arrayhub.asarray(t)
        with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
            y = arrayhub.to_device(x, x.device, copy=True)
        arrayhub.ipc_handle(y).close()
        print("refused")
"""


def test_error_for_expandable_segments_of_torch_suggests_a_working_call(torch):
    assert python(EXPANDABLE, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True") == "refused\n"


def test_memory_of_a_pool_with_shareable_handles_is_shared(child):
    """The pool was created by cudaMemPoolCreate with POSIX file descriptors as its handle type."""
    core = pytest.importorskip("cuda.core", reason="cuda.core is not installed")
    resource = getattr(core, "DeviceMemoryResource", None) or getattr(core.experimental, "DeviceMemoryResource", None)
    options = getattr(core, "DeviceMemoryResourceOptions", None)
    if resource is None or options is None:
        pytest.skip("this cuda.core cannot create memory pools")
    device = core.Device(0)
    device.set_current()
    pool = resource(device, options(ipc_enabled=True, max_size=1 << 21))
    buffer = pool.allocate(800, stream=device.default_stream)
    a = cupy.ndarray((100,), "f8", cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(int(buffer.handle), 800, buffer), 0))
    a[...] = 5
    handle = arrayhub.ipc_handle(a)
    other = child(add_one, handle)
    assert other.receive()[0] == 500
    assert other.receive() == "ended"
    assert float(a.sum()) == 600


@pytest.mark.parametrize("kind", ["cuda_host", "cuda_managed"])
def test_error_for_pinned_and_managed_memory_suggests_a_working_call(kind):
    x = arrayhub.full(5, 2.0, memory=kind)
    with pytest.raises(BufferError, match=r"private memory on cuda_.*from_array\(x, memory='shared_memory'\)"):
        arrayhub.ipc_handle(x)
    y = arrayhub.from_array(x, memory="shared_memory")
    with arrayhub.ipc_handle(y).open() as z:
        assert np.asarray(z).tolist() == [2] * 5


def test_opening_a_handle_without_a_visible_device_raises(child):
    handle = arrayhub.ipc_handle(cupy.ones(3))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=without_device, args=(handle, theirs), daemon=True)
    process.start()
    try:
        assert ours.poll(WAIT) and "does not see a driver with a device" in ours.recv()
    finally:
        process.kill()
        process.join(WAIT)


def without_device(handle, connection):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        with handle.open() as y:
            connection.send(str(y))
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
