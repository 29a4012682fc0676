"""ray, joblib, multiprocessing, process pools and torch send arrays between processes of one machine."""

import concurrent.futures
import mmap
import multiprocessing
import os
import pickle
import sys
import textwrap
from multiprocessing import shared_memory
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import engine_tasks as tasks
import numpy as np
import pytest
from children import ROOT, SUPPORT, group_of_processes, python
from pages import python_blocks

import arrayhub
from arrayhub import asarray

pytestmark = pytest.mark.slow

WAIT = 60  # timeout in seconds for results of other processes

# --------------------------------------------------------------------------------------------- multiprocessing, by name


def child_of(method, function, *arguments):
    """Run a function in a process that is always terminated, and return its result."""
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result(timeout=WAIT)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_shared_memory_is_shared_with_a_child(method):
    shared = shared_memory.SharedMemory(create=True, size=4096)
    try:
        x = asarray(np.ndarray((4, 5), "f8", buffer=shared.buf, offset=16))
        child_of(method, tasks.fill, x[::2, ::-1], 7.0)
        assert np.asarray(x)[:, 0].tolist() == [7, 0, 7, 0]
        del x
    finally:
        shared.close()
        shared.unlink()


@pytest.mark.parametrize("mode", ["r+", "r", "c", "w+"])
def test_memmap_is_sent_by_name_unless_private(tmp_path, mode):
    path = tmp_path / "elements of a name with blanks"
    np.arange(5000.0).tofile(path)
    mapped = np.memmap(path, "f8", mode=mode, offset=4096, shape=(1000,))
    mapped_there, access = child_of("fork", tasks.where_mapped_by_mmap, asarray(mapped)[::3])
    assert mapped_there == (mode != "c")
    assert access == {"r": "readonly"}.get(mode, "readwrite")


@pytest.mark.parametrize("offset", [1, 3, 4097])
def test_unaligned_offsets_are_shared(tmp_path, offset):
    path = tmp_path / "elements"
    path.write_bytes(bytes(9000))
    mapped = np.memmap(path, "f8", mode="r+", offset=offset, shape=(100,))
    there = pickle.loads(bytes(ForkingPickler.dumps(asarray(mapped))))
    assert (there.is_copy, there.access) == (False, "readwrite")
    np.asarray(there)[::2] = 7
    assert mapped.sum() == 350


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", "\u00e4\u20ac".encode(), b"two\nlines", b"back\\slash", b" blank "], ids=repr
)
def test_mapped_files_may_have_any_name(tmp_path, name):
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "w+b") as file:
        file.write(bytes(8000))
        file.flush()
        memory = mmap.mmap(file.fileno(), 8000)
    x = asarray(np.frombuffer(memory, "f8"))
    stream = bytes(ForkingPickler.dumps(x))
    assert len(stream) < 1000
    np.asarray(pickle.loads(stream))[3] = 7
    assert np.asarray(x)[3] == 7


def by_name(tmp_path, dumps=ForkingPickler.dumps):
    """Return a path, and the pickle of an array in the mapped file.

    The pickle of multiprocessing contains the path, and the pickle of `pickle.dumps` contains the elements.
    """
    path = tmp_path / "elements"
    np.arange(500.0).tofile(path)
    return path, bytes(dumps(asarray(np.memmap(path, "f8", mode="r+"))))


def test_pickle_dumps_contains_the_elements(tmp_path):
    path, stream = by_name(tmp_path, pickle.dumps)
    path.unlink()
    assert tasks.total(pickle.loads(stream)) == sum(range(500))


def test_view_is_pickled_after_its_shared_memory_failed_to_close():
    memory = shared_memory.SharedMemory(create=True, size=8)
    x = asarray(memory)
    with pytest.raises(BufferError):
        memory.close()
    for dumps in (pickle.dumps, ForkingPickler.dumps):
        assert pickle.loads(dumps(x)).tolist() == [0] * 8
    del x
    memory.unlink()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_forged_name_of_a_device_or_pipe_is_rejected(tmp_path, kind):
    """A pipe is rejected without waiting for its other end, and a device is not mapped."""
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(path)
    about = path.stat()
    state = asarray(np.zeros(16, "u1")).__reduce_ex__(5)[1][0]
    for writable in (False, True):
        with pytest.raises(pickle.UnpicklingError, match="not a file"):
            arrayhub._unpickle(state, (str(path), about.st_dev, about.st_ino, 0, 16, writable))


def test_name_of_a_removed_file_is_rejected(tmp_path):
    path, stream = by_name(tmp_path)
    assert len(stream) < 500
    assert tasks.total(pickle.loads(stream)) == sum(range(500))
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(pickle.UnpicklingError, match="cannot be mapped here"):
        pickle.loads(stream)
    path.write_bytes(bytes(4000))
    with pytest.raises(pickle.UnpicklingError, match="a different file has this name"):
        pickle.loads(stream)


def test_truncated_file_is_rejected(tmp_path):
    path, stream = by_name(tmp_path)
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(pickle.UnpicklingError, match="cannot be mapped here"):
        pickle.loads(stream)


FORGED_NAMES = [
    ("/nowhere", 1, 2, 0, 8, True),
    ("\0", 1, 2, 0, 8, True),
    ("/dev/zero", 1, 2, 0, 8, True),
    ("/etc/hostname", 1, 2, -8, 8, False),
    ("/etc/hostname", 1, 2, 0, -8, False),
    ("/etc/hostname", 1, 2, 1 << 70, 8, False),
    ("/etc/hostname", 1, 2, 0, 8, 1),
    (b"/etc/hostname", 1, 2, 0, 8, True),
    ("/etc/hostname", 1, 2, 0, 8),
]


@pytest.mark.parametrize("name", FORGED_NAMES, ids=range(len(FORGED_NAMES)))
def test_forged_name_of_a_file_is_rejected(name):
    _, (state, _) = asarray(np.zeros(1)).__reduce_ex__(5)
    with pytest.raises(pickle.UnpicklingError):
        arrayhub._unpickle(state, name)


def test_queue_copies_device_memory_by_policy():
    """The policy at the call of `put` applies, although a thread of the queue pickles the array later."""
    queue = multiprocessing.get_context("spawn").Queue()
    with arrayhub.transport.pickling(device="host"):
        queue.put(tasks.make_on_device(5))
        got = queue.get(timeout=WAIT)
    queue.close()
    queue.join_thread()
    assert (got.device.type, tasks.total(got)) == ("cpu", 10)


METHODS = ["spawn", "fork", "forkserver"]


def test_queue_get_raises_the_error():
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert pool.submit(tasks.read_in_a_task).result(WAIT) == "UnpicklingError"


def test_sycl_in_a_forked_child_raises():
    x = tasks.make_on_device(5)  # initializes SYCL in this process
    with (
        arrayhub.transport.pickling(device="keep"),
        pytest.raises(pickle.UnpicklingError, match=r"(?s)forked.*arrive='host'"),
    ):
        child_of("fork", arrayhub._unpickle, *x.__reduce_ex__(4)[1])


# ----------------------------------------------------------------------------------------------- memory="shared_memory"


def shared(n=4):
    x = arrayhub.zeros(n, memory="shared_memory")
    x[...] = np.arange(n)
    return x


def test_interpreter_without_memfd_create_calls_the_c_library():
    """An interpreter that was compiled with glibc before 2.27 lacks these names."""
    python("""
        import fcntl, os
        del os.memfd_create, os.MFD_CLOEXEC, os.MFD_ALLOW_SEALING
        for name in ("ADD_SEALS", "GET_SEALS", "SEAL_SEAL", "SEAL_SHRINK", "SEAL_GROW"):
            vars(fcntl).pop(f"F_{name}", None)
        import arrayhub
        x = arrayhub.zeros(3, memory="shared_memory")
        handle = arrayhub.ipc_handle(x)
        with handle.open() as y:
            y[...] = 2
        assert x.tolist() == [2, 2, 2]
    """)


@pytest.mark.parametrize("method", METHODS)
def test_process_writes_to_the_shared_memory_of_its_argument(method):
    x = shared()
    context = multiprocessing.get_context(method)
    child = context.Process(target=tasks.fill, args=(x, 7.0))
    child.start()
    child.join(WAIT)
    assert child.exitcode == 0
    assert x.tolist() == [7.0] * 4


@pytest.mark.parametrize("method", METHODS)
def test_pool_and_executor_write_to_shared_memory(method):
    x = arrayhub.zeros((4, 6), memory="shared_memory")
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        pool.apply_async(tasks.fill, (x[1:3, ::-2], 7.0)).get(WAIT)
    expected = np.zeros((4, 6))
    expected[1:3, ::-2] = 7
    assert np.array_equal(np.asarray(x), expected)
    child_of(method, tasks.fill, x.T, 8.0)
    assert (np.asarray(x) == 8).all()


def test_views_of_one_segment_are_mapped_in_one_message():
    """A spawned process receives several views of a segment, and its structure, as one argument."""
    x = shared(8)
    record = arrayhub.zeros(3, "i4, f8", memory="shared_memory")
    arguments = [x[:2], x[5:], asarray(np.asarray(record)["f1"])]  # the last is not aligned
    child = multiprocessing.get_context("spawn").Process(target=tasks.fill_each, args=(arguments, 9.0))
    child.start()
    child.join(WAIT)
    assert child.exitcode == 0
    assert x.tolist() == [9, 9, 2, 3, 4, 9, 9, 9]
    assert np.asarray(record)["f1"].tolist() == [9.0] * 3 and np.asarray(record)["f0"].tolist() == [0] * 3


def test_tensor_of_shared_memory_is_mapped():
    """The location is found by address, because the chain of owners of a tensor is not visible."""
    torch = pytest.importorskip("torch")
    x = shared()
    t = arrayhub.as_torch(x)
    child_of("spawn", tasks.fill, asarray(t), 5.0)
    assert x.tolist() == [5.0] * 4 and isinstance(t, torch.Tensor)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_read_only_shared_memory_is_mapped_read_only(method):
    x = shared()
    view = x[:]
    view.flags.writeable = False
    assert child_of(method, tasks.writes, view) == (False, "readonly", False)
    assert child_of(method, tasks.writes, x)[0]


def test_temporary_shared_memory_reaches_the_task():
    """The sender keeps the memory until the receiver has mapped it, although the array was freed."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results = [pool.apply_async(tasks.total, (shared(k),)) for k in range(1, 6)]
        assert [result.get(WAIT) for result in results] == [0.0, 1.0, 3.0, 6.0, 10.0]


@pytest.mark.parametrize("method", METHODS)
def test_shared_memory_of_a_child_is_returned_as_a_copy(method):
    """The memory of a child may end with the child, so its results contain the elements."""
    found = child_of(method, tasks.make_shared_memory, 5)
    assert found.tolist() == [0, 1, 2, 3, 4]
    x = shared()
    back = child_of(method, tasks.same, x)
    assert back.tolist() == x.tolist()
    back[0] = 9
    assert x[0].item() == 0


def test_queue_of_a_process_that_ended_has_the_array():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=tasks.put_shared_memory, args=(queue, 5))
    child.start()
    child.join(WAIT)
    assert queue.get(timeout=WAIT).tolist() == [0, 1, 2, 3, 4]


def test_other_pickles_of_shared_memory_contain_the_elements(tmp_path):
    import copy

    import cloudpickle

    x = shared()
    multiprocessing.reduction.ForkingPickler.dumps(x)  # the registered function must not apply to other picklers
    for dumps in (pickle.dumps, cloudpickle.dumps, lambda x: pickle.dumps(x, 2)):
        y = pickle.loads(dumps(x))
        y[0] = 5
        assert (y.tolist(), x[0].item()) == ([5, 1, 2, 3], 0)
    y = copy.deepcopy(x)
    y[0] = 5
    assert x[0].item() == 0


def test_message_for_shared_memory_is_read_once():
    x = shared()
    stream = bytes(ForkingPickler.dumps(x))
    assert len(stream) < 1000
    y = pickle.loads(stream)
    np.asarray(y)[1] = 7
    assert (x[1].item(), y.is_copy, y.tolist()) == (7, False, [0, 7, 2, 3])
    with pytest.raises(pickle.UnpicklingError, match=r"cannot be mapped here.*x\.copy\(\)"):
        pickle.loads(stream)


def test_shared_memory_is_released_after_its_transfers():
    def segments():
        return sum("memfd:arrayhub" in os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
                   if os.path.exists(f"/proc/self/fd/{name}"))  # fmt: skip

    before = segments()
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        x = shared()
        for value in (1.0, 2.0, 3.0):
            pool.apply_async(tasks.fill, (x, value)).get(WAIT)
        assert x.tolist() == [3.0] * 4
        child = context.Process(target=tasks.fill, args=(x, 4.0))
        child.start()
        child.join(WAIT)
        child.close()
        del x, child
    assert segments() == before


def test_memory_of_a_killed_process_is_freed():
    """The owner keeps the memory and the writes of a killed process. A segment has a descriptor, not a name."""
    x = shared(1000)
    before = set(os.listdir("/dev/shm"))
    child = multiprocessing.get_context("spawn").Process(target=tasks.fill_and_die, args=(x, 7.0))
    child.start()
    child.join(WAIT)
    assert child.exitcode == -9 and tasks.total(x) == 7000
    assert not {name for name in set(os.listdir("/dev/shm")) - before if not name.startswith("sem.")}


@pytest.mark.parametrize("library", ["", "torch", "pandas", "jax"])
def test_nothing_is_printed_at_exit(library):
    if library:
        pytest.importorskip(library)
    made = "['cpu', 'shared_memory']"
    python(
        f"""
        import arrayhub, numpy {"," + library if library else ""}
        kept = [arrayhub.zeros(4, memory=memory) for memory in {made}]
        x = arrayhub.zeros(4, memory="shared_memory")
        views = [numpy.asarray(x), memoryview(x), x[1:], arrayhub.ipc_handle(x)]
        setting = arrayhub.transport.pickling(device="host")
        """,
        silent=True,
    )


# --------------------------------------------------------------------------------------------------------------- joblib


def test_joblib_hash_depends_on_the_content_only():
    import joblib

    x = np.arange(40_000.0).reshape(200, 200)
    different = [x, x.T, x + 1, x[:3], x[:4], x.astype("f4"), x[:3].astype(">f8")]
    hashes = [joblib.hash(asarray(a)) for a in different]
    assert len(set(hashes)) == len(different)
    assert hashes == [joblib.hash(asarray(a.copy(order="K"))) for a in different]
    assert joblib.hash([asarray(x)]) == joblib.hash([asarray(x.copy())])


def test_first_hash_of_a_process_equals_later_ones():
    program = (
        "import arrayhub, joblib, numpy; x = arrayhub.asarray(numpy.zeros(3)); print(joblib.hash(x) == joblib.hash(x))"
    )
    assert python(program) == "True\n"


@pytest.mark.parametrize("mode", [None, "r", "c"])
def test_joblib_stores_and_maps_arrays(tmp_path, mode):
    import joblib

    x = asarray(np.asfortranarray(np.arange(6000.0).reshape(60, 100)))
    joblib.dump(x, tmp_path / "x")
    y = joblib.load(tmp_path / "x", mmap_mode=mode)
    assert tasks.where_mapped(y)[0] == (mode and "x")
    assert (y.byte_strides, tasks.total(y)) == (x.byte_strides, tasks.total(x))
    assert y.access == ("readonly" if mode == "r" else "readwrite")


def test_joblib_maps_large_arrays_for_its_workers_once():
    import joblib

    x = asarray(np.zeros((600, 300)))
    with joblib.parallel_config(backend="loky", n_jobs=2), joblib.Parallel(max_nbytes=100_000) as run:
        found = run(joblib.delayed(tasks.where_mapped)(x) for _ in range(4))
        result = run(joblib.delayed(tasks.same)(x.T) for _ in range(1))[0]
    files, access = zip(*found, strict=True)
    assert None not in files and len(set(files)) == 1
    assert set(access) == {"readonly"}
    assert result.shape == (300, 600)
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)


@pytest.mark.timeout(3 * WAIT)
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_tasks_write_to_shared_memory(backend):
    """joblib maps shared memory as it maps memmaps. Results of workers are copies."""
    import joblib

    small, large = shared(10), shared(300_000)
    try:
        with joblib.parallel_config(backend=backend, n_jobs=2):
            joblib.Parallel()(joblib.delayed(tasks.fill)(x[k : k + 5], 7.0 + k) for x in (small, large) for k in (0, 5))
            back = joblib.Parallel()(joblib.delayed(tasks.same)(x) for x in (small, large))
            made = joblib.Parallel()(joblib.delayed(tasks.make_shared_memory)(n) for n in (3, 300_000))
    finally:
        if backend == "loky":
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True, kill_workers=True)
    for x in (small, large, *back):
        assert x[:10].tolist() == [7.0] * 5 + [12.0] * 5
    assert [tasks.total(x) for x in made] == [3.0, 300_000 * 299_999 / 2]


def test_joblib_refuses_another_file_in_place_of_freed_memory():
    """The path of a descriptor names another file after the descriptor was closed."""
    from joblib._memmapping_reducer import get_memmapping_reducers
    from joblib.externals.loky.backend.reduction import dumps

    reducers, _ = get_memmapping_reducers(unlink_on_gc_collect=False)
    x = shared(500)
    stream = bytes(dumps(x, reducers=reducers))
    assert len(stream) < 1000
    y = pickle.loads(stream)
    y[0] = 5
    assert x[0].item() == 5
    del x
    other = shared(500)  # usually receives the same descriptor
    with pytest.raises((pickle.UnpicklingError, OSError), match="has been freed|No such file"):
        pickle.loads(stream)
    assert other.tolist() == list(range(500))


# ------------------------------------------------------------------------------------------------------------------ ray

RAY = """
    import os, pickle
    import numpy as np, arrayhub, ray
    import engine_tasks as tasks
    from arrayhub import asarray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    wait = 60

    # put and get share the memory of ray's object store, read-only, for any layout
    x = asarray(np.asfortranarray(np.arange(200_000.0).reshape(400, 500)))
    ref = ray.put(x)
    a, b = ray.get(ref, timeout=wait), ray.get(ref, timeout=wait)
    assert a.ptr == b.ptr != x.ptr, "two copies"
    assert (a.byte_strides, a.access, tasks.total(a)) == (x.byte_strides, "readonly", tasks.total(x))
    small = ray.get(ray.put(asarray(np.arange(3)).with_dims("I")), timeout=wait)
    assert (small.dims, np.asarray(small).tolist()) == (("I",), [0, 1, 2])

    # arguments and results
    look = ray.remote(tasks.look)
    assert ray.get(look.remote(ref), timeout=wait)[0] == tasks.total(x)
    assert ray.get(look.remote(x[::2]), timeout=wait)[1] == (200, 500)
    assert tasks.total(ray.get(ray.remote(tasks.make).remote(1000), timeout=wait)) == 499500

    # nested arrays share all buffers with the object store, read-only
    import pyarrow
    for column in (pyarrow.array([[1.5] * 50_000, None, [2.5]]), pyarrow.array(["word"] * 50_000 + [None]),
                   pyarrow.chunked_array([[{"a": [1], "b": "x"}] * 20_000, [{"a": None, "b": None}]])):
        x = arrayhub.asnested(column)
        ref = ray.put(x)
        a, b = ray.get(ref, timeout=wait), ray.get(ref, timeout=wait)
        assert a.kind == x.kind and a.type == x.type and len(a.chunks) == len(x.chunks)
        assert tasks.addresses(a) == tasks.addresses(b), "two copies"
        assert a.access != "readwrite" and arrayhub.as_arrow(a).equals(column)
        assert ray.get(ray.remote(tasks.length).remote(ref), timeout=wait) == len(x)
        assert ray.get(ray.remote(tasks.length).remote(x[1:]), timeout=wait) == len(x) - 1
    made = ray.get(ray.remote(tasks.make_nested).remote(), timeout=wait)
    assert made.to_list() == [[1.0], [2.0, 3.0]]

    # sparse arrays share all parts with the object store, read-only
    import scipy.sparse
    matrix = scipy.sparse.random_array((3000, 3000), density=0.01, format="csr", rng=7)
    x = arrayhub.assparse(matrix)
    ref = ray.put(x)
    a, b = ray.get(ref, timeout=wait), ray.get(ref, timeout=wait)
    assert a.data.ptr == b.data.ptr and a.indices.ptr == b.indices.ptr and a.indptr.ptr == b.indptr.ptr, "two copies"
    assert a.access != "readwrite" and (arrayhub.as_scipy(a) != matrix).nnz == 0
    assert ray.get(ray.remote(tasks.stored).remote(ref), timeout=wait) == matrix.nnz

    # for device memory, ray raises an error that suggests a call, in this process and in workers
    for attempt in (lambda: ray.put(tasks.make_on_device(4)),
                    lambda: ray.get(ray.remote(tasks.make_on_device).remote(4), timeout=wait),
                    lambda: ray.put(tasks.make_nested().to_device("oneapi:0"))):
        try:
            attempt()
        except Exception as error:
            assert "to_host" in str(error), error
        else:
            raise SystemExit("device memory was sent")

    # an actor keeps an array on a device, and sends the array in host memory
    counter = ray.remote(tasks.Counter).remote(10)
    ray.get(counter.add.remote(tasks.make(10)), timeout=wait)
    assert tasks.total(ray.get(counter.fetch.remote(), timeout=wait)) == 45

    # calls of an actor that has died raise an error and do not hang
    ray.kill(counter)
    try:
        for _ in range(1000):  # the first calls may succeed before the actor ends
            ray.get(counter.fetch.remote(), timeout=wait)
    except ray.exceptions.RayActorError:
        print("all right")
"""


def how_to_actors():
    blocks = python_blocks(ROOT / "docs" / "howto" / "cluster_user.md")
    (program,) = [block for block in blocks if block.startswith("# actors.py")]
    return program + "\nmain()\nprint('all right')\n"


@pytest.mark.timeout(200)
@pytest.mark.parametrize("program", [textwrap.dedent(RAY), how_to_actors()], ids=["ray", "how-to"])
def test_ray_sends_arrays(program, tmp_path):
    pytest.importorskip("ray", reason="ray does not support this version of Python yet")
    paths = os.pathsep.join([str(Path(arrayhub.__file__).parents[1]), str(SUPPORT)])
    # A short path, because the paths of ray's sockets must fit into 107 bytes.
    settings = {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": "/tmp"}
    out = group_of_processes(sys.executable, "-c", program, seconds=150, cwd=tmp_path, **settings)
    assert out.splitlines()[-1:] == ["all right"]
