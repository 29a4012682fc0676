"""IPC handles open the host memory of another process, count its borrowers, and reject forged requests."""

import concurrent.futures
import contextlib
import mmap
import multiprocessing
import os
import pickle
import socket
import threading
import weakref

import engine_tasks as tasks
import numpy as np
import pytest
from children import python
from pickled_arrays import facts, packed_int4

import arrayhub
from arrayhub.transport import ipc

pytestmark = pytest.mark.slow

WAIT = 60  # timeout in seconds for other processes
VIEWS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "strided": lambda x: x[::2, ::-1],
    "column": lambda x: x[:, 2],
    "reversed": lambda x: x[::-1],
    "0-d": lambda x: x[1, 2],
    "empty": lambda x: x[:0],
    "unaligned": lambda x: arrayhub.asarray(np.asarray(x).view("u1").reshape(-1)[3:19].view("f8")),
    "readonly": lambda x: readonly(x),
}


def readonly(x):
    y = x[:]
    y.flags.writeable = False
    return y


def shared(value=0.0, shape=(4, 6), **options):
    return arrayhub.full(shape, value, memory="shared_memory", **options)


def sent(handle):
    """Return a pickled and unpickled copy of a handle, as another process receives it."""
    return pickle.loads(pickle.dumps(handle))


@contextlib.contextmanager
def child_with(target, *arguments):
    """Run `target` in a process, which is always terminated. Yield the process and a connection to the process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=target, args=(*arguments, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        yield child, ours
    finally:
        child.kill()
        child.join(WAIT)


def eventually(condition):
    """Return whether a condition becomes true within WAIT seconds."""
    for _ in range(WAIT * 100):
        if condition():
            return True
        threading.Event().wait(0.01)
    return False


def received(connection):
    assert connection.poll(WAIT), "the other process does not answer"
    return connection.recv()


# ------------------------------------------------------------------------------------------------------ the same memory


@pytest.mark.parametrize("view", VIEWS)
def test_handle_opens_the_same_elements(view):
    x = shared()
    np.asarray(x)[...] = np.arange(24.0).reshape(4, 6)
    v = VIEWS[view](x)
    handle = arrayhub.ipc_handle(v)
    with sent(handle).open() as y:
        assert y.ptr != v.ptr
        assert facts(y) == facts(v) and y.device == "cpu"
        if y.access == "readwrite" and y.size:
            np.asarray(y)[...] = -1
            assert (np.asarray(v) == -1).all()
    handle.close()


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_another_process_writes_to_the_memory(method):
    x = shared(2.0)
    handle = arrayhub.ipc_handle(x)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        before, access, process = pool.submit(tasks.add_one, handle).result(timeout=WAIT)
        assert (before, access, process != os.getpid()) == (48.0, "readwrite", True)
        assert x.tolist() == [[3.0] * 6] * 4
        handle.close(WAIT)


@pytest.mark.parametrize("module", ["multiprocessing", "torch.multiprocessing"])
def test_handle_is_accepted_as_an_argument_of_a_process(module):
    """`Process.start` deletes its arguments, including the handle, so only the array `x` keeps the memory alive."""
    x = shared(2.0)
    context = pytest.importorskip(module).get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=tasks.put_result, args=(results, tasks.add_one, arrayhub.ipc_handle(x)))
    process.start()
    assert results.get()[:2] == (48.0, "readwrite")
    process.join(WAIT)
    assert process.exitcode == 0 and x.tolist() == [[3.0] * 6] * 4


def test_handle_keeps_labels_and_dtype():
    x = shared(3, (4, 5, 6), dtype="<i2", dims="IJK", halo=((1, 1), (0, 0), (2, 2)), layout="F")
    record = arrayhub.zeros(3, np.dtype([("a", "i2"), ("b", ">f8")], align=True), memory="shared_memory")
    times = arrayhub.from_array(pytest.importorskip("pyarrow").array([0], "duration[s]"), memory="shared_memory")
    for sender in (x, record, times):
        handle = sent(arrayhub.ipc_handle(sender))
        with handle.open() as y:
            assert (y.dtype, handle.access) == (sender.dtype, "readwrite")
            assert y.__reduce_ex__(5)[1][0][1:] == sender.__reduce_ex__(5)[1][0][1:]  # labels, and times as in Arrow


def test_another_librarys_array_on_shared_memory_has_a_handle():
    pytest.importorskip("torch")
    x = shared()
    for other in (np.asarray(x)[1:, ::2], arrayhub.as_torch(x)[1:, ::2]):
        handle = arrayhub.ipc_handle(other)
        assert (handle.offset, handle.shape, handle.byte_strides) == (48, (3, 3), (48, 16))
        with sent(handle).open() as y:
            np.asarray(y)[0, 0] += 5
    assert x[1, 0].item() == 10


def test_handle_is_small_and_describes_the_memory():
    x = arrayhub.zeros((1000, 1000), "f4", memory="shared_memory")
    handle, inner = arrayhub.ipc_handle(x), arrayhub.ipc_handle(x[1:, 2:])
    assert len(pickle.dumps(handle)) < 500
    assert handle.allocation == inner.allocation and inner.offset == 4008
    there = sent(inner)
    assert (there.process, there.device, there.type) == (os.getpid(), "cpu", "999 * 998 * float32")
    assert (there.shape, there.byte_strides, there.access) == ((999, 998), (4000, 4), "readwrite")
    assert "999 * 998 * float32" in repr(there)


def test_borrower_creates_a_handle_of_its_view():
    x = shared()
    handle = arrayhub.ipc_handle(x)
    with sent(handle).open() as y:
        second = arrayhub.ipc_handle(y[1:])
    with sent(second).open() as z:
        np.asarray(z)[...] = 4
    assert x[1, 0].item() == 4 and x[0, 0].item() == 0


# --------------------------------------------------------------------------------------------------------------- access


def test_readonly_memory_is_mapped_readonly():
    x = readonly(shared())
    handle = arrayhub.ipc_handle(x)
    with sent(handle).open() as y:
        assert y.access == "readonly" and not np.asarray(y).flags.writeable
        start = y.memory.owner.address
        with open("/proc/self/maps", encoding="utf-8") as maps:
            (line,) = [line for line in maps if line.startswith(f"{start:x}-")]
        assert line.split()[1].startswith("r--s")
        with pytest.raises(PermissionError):  # the file descriptor does not allow a writable mapping
            mmap.mmap(y.memory.owner.descriptor, x.nbytes)


def test_shared_memory_cannot_be_resized():
    """Resizing is prevented, because an access beyond the end of the file would crash the other process."""
    x = shared()
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(x.memory.owner.descriptor, size)


# ----------------------------------------------------------------------------------------------- the count of borrowers


def test_close_names_the_processes_of_open_borrows():
    x = shared(1.0)
    handle = arrayhub.ipc_handle(x)
    with child_with(tasks.borrow_until, handle) as (child, connection):
        assert received(connection) == (child.pid, 24.0)
        assert handle.borrowers == 1
        with pytest.raises(TimeoutError, match=f"process {child.pid}"):
            handle.close(timeout=0)
        with pytest.raises(ConnectionRefusedError, match="closed"), handle.open():
            pass
        connection.send("end")
        assert received(connection) == "ended"
        assert handle.borrowers == 0
        handle.close(timeout=0)


def test_close_waits_for_the_end_of_a_borrow():
    handle = arrayhub.ipc_handle(shared())
    with child_with(tasks.borrow_until, handle) as (_, connection):
        received(connection)
        threading.Timer(0.2, connection.send, ["end"]).start()
        handle.close(timeout=WAIT)
        assert handle.borrowers == 0


def test_two_borrows_of_one_process_are_counted():
    handle = arrayhub.ipc_handle(shared())
    with sent(handle).open() as y:
        with sent(handle).open() as z:
            assert handle.borrowers == 2
            z[0, 0] = 5
        assert handle.borrowers == 1 and y[0, 0].item() == 5
    assert handle.borrowers == 0


def test_killed_borrower_is_not_counted():
    handle = arrayhub.ipc_handle(shared())
    with child_with(tasks.borrow_until, handle) as (child, connection):
        received(connection)
        child.kill()
        handle.close(timeout=WAIT)
        assert handle.borrowers == 0


def test_memory_outlives_a_killed_owner():
    with child_with(tasks.own_until) as (child, connection):
        handle = received(connection)
        with handle.open() as y:
            child.kill()
            child.join(WAIT)
            assert np.asarray(y).tolist() == [[3.0] * 5] * 4
            np.asarray(y)[...] = 4
        with pytest.raises(ConnectionRefusedError, match=f"process {child.pid}: it has ended"), handle.open():
            pass


def test_memory_stays_mapped_while_an_array_views_it():
    handle = arrayhub.ipc_handle(shared(2.0))
    with sent(handle).open() as y:
        kept = np.asarray(y)[1:]
    handle.close(timeout=0)
    del y, handle
    assert kept.tolist() == [[2.0] * 6] * 3


def test_memory_is_released_after_the_last_borrow():
    """The handle and the server do not keep the memory of a deleted array alive after the last borrow."""
    arrayhub.ipc_handle(shared())  # starts the server
    before = len(os.listdir("/proc/self/fd"))
    for close in (True, False):
        x = shared()
        segment = weakref.ref(x.memory.owner)
        handle = arrayhub.ipc_handle(x)
        with sent(handle).open():
            pass
        if close:
            handle.close()
            assert handle._entry.memory is None
        del x, handle
        assert eventually(lambda segment=segment: segment() is None), "the memory is still mapped"
    assert eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_dropped_handles_do_not_accumulate():
    x = shared()
    before = len(ipc.server().entries)
    copies = [sent(arrayhub.ipc_handle(view)) for _ in range(100) for view in (x, x[1:])]
    assert len(ipc.server().entries) == before + 2
    for copy in (copies[0], copies[-1]):
        with copy.open():
            pass
    arrayhub.ipc_handle(x).close()
    refused(copies[0], "closed")
    with copies[-1].open():
        pass


def test_fork_of_a_borrower_does_not_prolong_the_borrow():
    handle = arrayhub.ipc_handle(shared())
    reader, writer = os.pipe()
    with sent(handle).open():
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        assert handle.borrowers == 0
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


# ----------------------------------------------------------------------------------------------------- rejected handles


def altered(handle, **changes):
    return arrayhub._ipc_handle(tuple(handle._description._replace(**changes)))


def refused(handle, match):
    with pytest.raises(ConnectionRefusedError, match=match), handle.open():
        pytest.fail("it was opened")


def test_altered_handle_is_rejected():
    x = readonly(shared())
    handle = arrayhub.ipc_handle(x)
    state = handle._description.state
    writable = (*state[:5], 2, *state[6:])
    longer = (state[0], (10**6,), *state[2:])
    shifted = (*state[:3], 8, *state[4:])
    for change in ({"state": writable}, {"state": longer}, {"state": shifted}, {"device": "cuda:0"}):
        refused(altered(handle, **change), "was altered")
    refused(altered(handle, identifier=bytes(16)), "closed")
    other = arrayhub.ipc_handle(x[1:])
    refused(altered(handle, identifier=other._description.identifier), "was altered")
    with handle.open():
        pass


def test_closed_handle_is_rejected():
    handle = arrayhub.ipc_handle(shared())
    copy = sent(handle)
    handle.close()
    refused(copy, "closed")
    refused(handle, "closed")


def test_handle_opens_as_long_as_its_memory_exists():
    x = shared(2.0)
    copy = sent(arrayhub.ipc_handle(x[1:]))
    with copy.open() as y:
        assert y.tolist() == [[2.0] * 6] * 3
        del x
        with copy.open():  # the open borrow keeps the memory alive
            pass
    assert eventually(lambda: not ipc.server().entries.get(ipc.digest_of(copy._description)))
    refused(copy, "has freed the memory")


def test_handle_of_an_ended_process_or_of_another_machine_is_rejected():
    """The name of the server is a random number, which is unknown on other machines and after a restart."""
    handle = arrayhub.ipc_handle(shared())
    refused(altered(handle, server=f"arrayhub-{'0' * 32}"), "it has ended, or runs on another machine")


def test_invalid_reply_of_a_server_is_rejected():
    """If the socket belongs to another process, its invalid replies raise an error."""
    handle = arrayhub.ipc_handle(shared())
    for reply, match in ((b"-no", "no"), (b"", "it has ended"), (b"+", "it did not send shared memory")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as fake:
            fake.bind("\0arrayhub-test-fake")
            fake.listen()

            def answer(fake=fake, reply=reply):
                connection = fake.accept()[0]
                connection.recv(1000)
                if reply:
                    connection.send(reply)
                connection.close()

            thread = threading.Thread(target=answer)
            thread.start()
            refused(altered(handle, server="arrayhub-test-fake"), match)
            thread.join(WAIT)


def test_invalid_requests_do_not_stop_the_server():
    handle = arrayhub.ipc_handle(shared())
    name = "\0" + handle._description.server
    identifier = handle._description.identifier
    for message in (b"", b"x", bytes(48), os.urandom(48), identifier, identifier + bytes(32), bytes(10_000)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.connect(name)
            if message:
                other.settimeout(WAIT)
                other.send(message)
                assert other.recv(1000).startswith(b"-the ")
    with sent(handle).open():
        assert handle.borrowers == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d[:-1],
        lambda d: list(d),
        lambda d: (*d[:3], d[3][1:], *d[4:]),
        lambda d: (2, *d[1:]),
        lambda d: (*d[:-1], ()),
        lambda d: (*d[:-1], (*d[-1][:5], 7, *d[-1][6:])),
        lambda d: None,
    ],
)
def test_forged_pickles_are_rejected(change):
    _, (description,) = arrayhub.ipc_handle(shared()).__reduce__()
    with pytest.raises(pickle.UnpicklingError, match="handle"):
        arrayhub._ipc_handle(change(description))


# ------------------------------------------------------------------------------------------------------ rejected memory


@pytest.mark.parametrize("source", [lambda: np.zeros(3), lambda: b"abc", packed_int4], ids=["numpy", "bytes", "packed"])
def test_error_for_private_host_memory_suggests_a_call(source):
    with pytest.raises(BufferError, match=r"from_array\(x, memory='shared_memory'\)"):
        arrayhub.ipc_handle(source())


@pytest.mark.parametrize("kind", ["usm_host", "usm_shared", "usm_device"])
def test_error_for_sycl_memory_suggests_a_call(sycl, kind):
    x = arrayhub.full(3, 2.0, memory=kind)
    with pytest.raises(BufferError, match=r"oneapi:\d+.*from_array\(x, memory='shared_memory'\)"):
        arrayhub.ipc_handle(x)
    handle = arrayhub.ipc_handle(arrayhub.from_array(x, memory="shared_memory"))
    with sent(handle).open() as y:
        assert y.tolist() == [2, 2, 2]


def test_only_the_owner_may_count_and_close():
    there = sent(arrayhub.ipc_handle(shared()))
    with pytest.raises(ValueError, match=f"process {os.getpid()}"):
        there.close()
    with pytest.raises(ValueError, match="only the owner"):
        _ = there.borrowers


def test_forked_child_of_the_owner_is_a_borrower():
    handle = arrayhub.ipc_handle(shared(2.0))
    context = multiprocessing.get_context("fork")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(ValueError, match="only the owner"),
    ):
        pool.submit(handle.close).result(timeout=WAIT)


# ------------------------------------------------------------------------------------------ allocation of shared memory


def test_new_shared_memory_has_the_layout_of_the_plan():
    x = arrayhub.zeros((5, 6), "f4", memory="shared_memory", alignment=64, aligned_index=(1, 2), layout="F")
    plan = arrayhub.storage.plan((5, 6), "f4", alignment=64, aligned_index=(1, 2), layout="F")
    assert x.strides == plan.strides and (x.ptr + x.byte_strides[0]) % 64 == 0
    assert x.tolist() == [[0] * 6] * 5 and x.memory.kind == "external"
    with pytest.raises(ValueError, match="memory 'shared_memory'; accepted: 'cpu'"):
        arrayhub.empty(3, memory="shared_memory", device="cuda:0")
    with pytest.raises(MemoryError, match="shared memory"):
        arrayhub.empty(2**62, "u1", memory="shared_memory")


def test_shared_memory_is_freed_with_its_array():
    before = os.listdir("/proc/self/fd")
    arrays = [shared() for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) >= len(before) + 5
    del arrays
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_import_does_not_start_a_thread():
    printed = python("import arrayhub, threading; arrayhub.ipc_handle; print(threading.active_count())")
    assert printed.split() == ["1"]
