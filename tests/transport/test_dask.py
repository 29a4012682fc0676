"""dask hashes arrays and sends them between processes. Most tests share one cluster, the fixture `client`."""

import asyncio
import contextlib
import itertools
import os
import pickle
import sys

import engine_tasks as tasks
import ml_dtypes
import numpy as np
import pytest
from children import python
from pickled_arrays import SOURCES

import arrayhub
from arrayhub import asarray

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
tokenize = pytest.importorskip("dask.base").tokenize
sizeof = pytest.importorskip("dask.sizeof").sizeof
deserialize = pytest.importorskip("distributed.protocol").deserialize

WAIT = 60  # timeout in seconds for results of tasks
SMALL_CLUSTER = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "silence_logs": 50,
    "dashboard_address": "127.0.0.1:0",
    "worker_dashboard_address": None,
}


# ------------------------------------------------------------------------------------------------------ without workers


@pytest.mark.parametrize("name", SOURCES)
def test_tokens_are_equal_for_equal_arrays(name):
    assert tokenize(asarray(SOURCES[name]())) == tokenize(asarray(SOURCES[name]()))


def test_tokens_differ_between_types_of_ml_dtypes():
    import ml_dtypes

    types = [getattr(ml_dtypes, name) for name in dir(ml_dtypes) if name.startswith(("bfloat16", "float8"))]
    assert len(types) > 5
    tokens = [tokenize(asarray(np.ones(20, t))) for t in types]
    assert tokens == [tokenize(asarray(np.ones(20, t))) for t in types]
    assert len(set(tokens)) == len(types)


def test_broadcast_elements_are_hashed_once():
    """Hash a broadcast array of 6 TiB without visiting its elements one by one."""
    import joblib

    a = np.arange(3.0)
    hashes = [joblib.hash(asarray(np.broadcast_to(a, (1 << 38, 3)))) for a in (a, a.copy(), a[::-1])]
    assert hashes[0] == hashes[1] != hashes[2]


def test_tokens_are_the_same_in_every_process():
    token = tokenize(asarray(np.arange(6.0).reshape(2, 3)))
    program = "import numpy, arrayhub, dask.base as b; x = arrayhub.asarray(numpy.arange(6.0).reshape(2, 3)); "
    assert python(program + "print(b.tokenize(x))", PYTHONHASHSEED="7") == f"{token}\n"


def test_tokens_of_different_arrays_differ():
    base = np.arange(12.0).reshape(3, 4)
    large = np.zeros((3000, 300))
    other = large.copy()
    other[2999, 0] = 1
    square = np.arange(9.0).reshape(3, 3)
    different = [
        base, base.T, base.reshape(4, 3), base[::-1], base + 1, base.astype("f4"), base.view("i8"), base.view("M8[s]"),
        base.astype(">f8"), large, other, large[:, ::2], other[:, ::2], square, square.T,
        np.broadcast_to(base[0], (3, 4)),
        np.zeros(4, "f2"), np.zeros(4, ml_dtypes.bfloat16), np.zeros(4, ml_dtypes.float8_e4m3), b"", b"a",
    ]  # fmt: skip
    labelled = [
        asarray(base).with_dims("xy"),
        asarray(base).with_dims("yx"),
        asarray(base).with_dims("xy", origin=(1, 0)),
    ]
    tokens = [tokenize(asarray(x)) for x in (*different, *labelled)]
    assert len(set(tokens)) == len(tokens)


def test_tokenize_does_not_copy_contiguous_elements():
    import tracemalloc

    x = asarray(np.zeros((2000, 1000)))
    tokenize(x)
    tracemalloc.start()
    tokenize(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20, "sixteen million bytes of elements"


def test_device_memory_has_a_new_token_on_each_call():
    x = tasks.make_on_device(4)
    assert tokenize(x) != tokenize(x)
    with (
        dask.config.set({"tokenize.ensure-deterministic": True}),
        pytest.raises(dask.tokenize.TokenizationError, match="deterministically"),
    ):
        tokenize(x)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"x": (x,)}], ids=["array", "list", "dict"])
def test_deterministic_token_of_device_memory_raises(wrap):
    """The argument of `tokenize` takes precedence over dask's configuration."""
    x = tasks.make_on_device(4)
    with pytest.raises(dask.tokenize.TokenizationError, match="deterministically"):
        tokenize(wrap(x), ensure_deterministic=True)
    host = x.to_host()
    assert tokenize(wrap(host), ensure_deterministic=True) == tokenize(wrap(host.copy()), ensure_deterministic=True)
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        assert tokenize(wrap(x), ensure_deterministic=False) != tokenize(wrap(x), ensure_deterministic=False)


def test_sizeof_counts_the_elements():
    base = np.zeros((1000, 100))
    empty = sizeof(asarray(base[:0]))
    for view, nbytes in [(base, 800_000), (base[::2], 400_000), (np.broadcast_to(base[0], (5, 100)), 800)]:
        assert sizeof(asarray(view)) - empty == nbytes
        assert sys.getsizeof(asarray(view)) >= nbytes
    assert sizeof(tasks.make_on_device(1000)) - empty == 8000


def test_dask_does_not_import_arrayhub():
    assert python("import sys, dask.array, dask.sizeof; print('arrayhub' in sys.modules)") == "False\n"


# --------------------------------------------------------------------------------------------------------- two workers


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    from distributed import Client, LocalCluster

    folder = tmp_path_factory.mktemp("dask")
    # Let only ``sizeof`` determine when dask spills, not the memory of the process.
    memory = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    # A rejected transfer between workers leaves a placeholder, which the memory manager counts as a replica.
    manager = {"distributed.scheduler.active-memory-manager.start": False}
    limits = {"distributed.worker.memory.target": 0.01, "distributed.comm.timeouts.connect": "20s"}
    settings = {**memory, **manager, **limits}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=4_000_000_000,
                local_directory=str(folder), worker_dashboard_address=None, silence_logs=50,
            )
        )  # fmt: skip
        client = stack.enter_context(Client(cluster))
        client.wait_for_workers(2, timeout=WAIT)
        yield client


@pytest.fixture
def workers(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def test_result_is_returned_to_the_client(client):
    x = client.submit(tasks.make, 1000, pure=False).result(timeout=WAIT)
    assert tasks.look(x) == (499500.0, (1000,), (8,), "readwrite", None)


def test_ipc_handle_opens_memory_of_the_client(client):
    x = arrayhub.full((4, 5), 2.0, memory="shared_memory")
    handle = arrayhub.ipc_handle(x)
    before, access, process = client.submit(tasks.add_one, handle, pure=False).result(timeout=WAIT)
    assert (before, access, process != os.getpid()) == (40.0, "readwrite", True)
    assert x.tolist() == [[3.0] * 5] * 4
    handle.close(timeout=WAIT)


TRAVELLERS = ("C", "F", "reversed", "broadcast", "steps", "bfloat16", "record", "large immutable", "labels")


def has_arrived(source, back):
    assert bytes(arrayhub.libraries.numpy.raw(back.copy())) == bytes(arrayhub.libraries.numpy.raw(source.copy()))
    assert (back.shape, back.dtype, back.dims, back.halo) == (source.shape, source.dtype, source.dims, source.halo)
    assert back.flags.aligned
    assert (back.access == "immutable") == (source.access == "immutable")


@pytest.mark.parametrize("name", TRAVELLERS)
def test_scattered_arrays_are_gathered_unchanged(client, name):
    source = asarray(SOURCES[name]())
    future = client.scatter(source, hash=False)
    back = future.result(timeout=WAIT)
    has_arrived(source, back)


def test_spilled_arrays_are_read_from_disk(client, workers):
    """Four arrays of 20 MB exceed the target of 40 MB, so dask writes some to disk and reads them back."""
    futures = [client.submit(tasks.make, 2_500_000 + k, workers=workers[0], pure=False) for k in range(4)]
    totals = [client.submit(tasks.total, future, workers=workers[0]).result(timeout=WAIT) for future in futures]
    spilled = client.run(lambda dask_worker: len(dask_worker.data.slow), workers=[workers[0]])[workers[0]]
    assert totals == [float(np.arange(2_500_000.0 + k).sum()) for k in range(4)]
    assert spilled > 0


def test_shared_usm_is_received_as_host_memory(client):
    x = client.submit(tasks.make_shared, 1000, pure=False).result(timeout=WAIT)
    assert tasks.look(x) == (1000.0, (1000,), (8,), "readwrite", None)


def test_device_memory_is_restored_by_policy(client, workers):
    def choose(device):
        arrayhub.transport.pickling(device=device)

    try:
        client.run(choose, "host")
        x = client.submit(tasks.make_on_device, 10, pure=False).result(timeout=WAIT)
        assert (x.device.type, tasks.total(x)) == ("cpu", 45)
        client.run(choose, "keep")
        there = client.submit(tasks.make_on_device, 10, workers=workers[0], pure=False)
        assert client.submit(tasks.look, there, workers=workers[1]).result(timeout=WAIT)[-1] == "device"
    finally:
        client.run(choose, "refuse")


def test_actor_holds_an_array_on_its_device(client):
    counter = client.submit(tasks.Counter, 10, actor=True).result(timeout=WAIT)
    counter.add(tasks.make(10)).result(timeout=WAIT)
    counter.add(tasks.make(10)).result(timeout=WAIT)
    assert tasks.total(counter.fetch().result(timeout=WAIT)) == 90


def test_nested_arrays_are_sent(client, workers):
    there = client.submit(tasks.make_nested, workers=workers[0], pure=False)
    assert there.result(timeout=WAIT).to_list() == [[1.0], [2.0, 3.0]]
    assert client.submit(len, there, workers=workers[1], pure=False).result(timeout=WAIT) == 2


# ---------------------------------------------------------------------------------- frames, as for NumPy's arrays


@pytest.fixture
def told(client):
    arrayhub.transport.register_dask(client)
    return client


@pytest.mark.parametrize("name", TRAVELLERS)
def test_arrays_are_sent_as_frames(told, name):
    """Arrays are sent as frames even through the scheduler, where dask pickles other objects in band."""
    source = asarray(SOURCES[name]())
    back = told.gather(told.scatter(source, hash=False))
    has_arrived(source, back)


def test_received_array_views_the_buffer_of_dask(told, workers):
    there = told.submit(tasks.make, 100_000, workers=workers[0], pure=False)
    assert told.submit(tasks.total, there, workers=workers[1]).result(timeout=WAIT) == sum(range(100_000))
    back = told.gather(there)
    assert (back.ptr % 64, back.is_copy, back.access) == (0, False, "readwrite")
    assert back.memory.owner is not None, "memory was not allocated"


@pytest.mark.parametrize("n", [0, 1, 10, 100_000])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_arrays_are_restored_from_serialized_bytes(n, kind):
    from distributed.protocol import deserialize_bytes, serialize_bytelist

    arrayhub.transport.register_dask()
    source = tasks.make(n)
    back = deserialize_bytes(kind(b"".join(bytes(memoryview(frame)) for frame in serialize_bytelist(source))))
    assert back.tolist() == source.tolist()
    assert (back.access, back.flags.aligned) == ("readwrite", True)


def test_register_dask_returns_an_awaitable_for_asynchronous_clients(told):
    async def main():
        async with distributed.Client(told.scheduler.address, asynchronous=True) as client:
            await arrayhub.transport.register_dask(client)
            return await client.gather(await client.scatter(tasks.make(10), hash=False))

    assert tasks.total(asyncio.run(main())) == 45


SECOND = """
    import sys
    {imports}
    with distributed.Client(sys.argv[1], timeout=60) as second:
        there = second.get_dataset("made")
        try:
            print(second.gather(there).tolist())
        except Exception as error:
            print(error)
        arrayhub.transport.register_dask()
        print(second.gather(there).tolist())
        print(second.submit(sum, second.scatter(arrayhub.asarray([1.0, 2.0]), hash=False)).result(timeout=60))
"""


@pytest.mark.parametrize("imports", ["import distributed, arrayhub", "import arrayhub, distributed"])
def test_second_client_reads_arrays_after_registration(told, imports):
    """Importing arrayhub does not change dask, so a second client calls `register_dask`."""
    there = told.submit(tasks.make, 4, pure=False)
    told.publish_dataset(made=there)
    try:
        said = python(SECOND.format(imports=imports), told.scheduler.address).splitlines()
    finally:
        told.unpublish_dataset("made")
    assert said == [
        "No dispatch for <class 'arrayhub.array.usm_array.USMArray'>", "[0.0, 1.0, 2.0, 3.0]", "3.0",
    ]  # fmt: skip


def test_restarted_workers_are_registered(told):
    told.restart(timeout=WAIT)
    told.wait_for_workers(2, timeout=WAIT)
    back = told.gather(told.submit(tasks.make, 100_000, pure=False))
    assert (back.memory.owner is not None, back.is_copy, tasks.total(back)) == (True, False, sum(range(100_000)))


def goes_around(client):
    """Scatter a compressible array, send it between workers, and gather it."""
    source = asarray(np.asfortranarray(np.ones((300, 400)))).with_dims("IJ")
    there = client.scatter(source, hash=False)
    for worker in client.scheduler_info(n_workers=-1)["workers"]:
        assert client.submit(tasks.look, there, workers=[worker], pure=False).result(timeout=WAIT)[0] == 120_000
    has_arrived(source, client.gather(client.submit(tasks.same, there, pure=False)))


def test_compressed_frames_are_read(tmp_path):
    with (
        dask.config.set({"distributed.comm.compression": "zlib"}),
        distributed.LocalCluster(**SMALL_CLUSTER, local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
    ):
        arrayhub.transport.register_dask(client)
        goes_around(client)


def test_inproc_clusters_do_not_copy_data(tmp_path):
    """With inproc://, dask pickles only graphs, so data remain in device memory."""
    cluster = {**SMALL_CLUSTER, "processes": False}
    with (
        distributed.LocalCluster(**cluster, local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert client.scheduler.address.startswith("inproc://")
        arrayhub.transport.register_dask(client)
        source = tasks.make(1000)
        there = client.scatter(source, hash=False)
        assert client.gather(there) is source
        assert client.submit(tasks.total, there).result(timeout=WAIT) == sum(range(1000))
        x = client.submit(tasks.make_on_device, 10, pure=False).result(timeout=WAIT)
        there = client.scatter(x, hash=False)
        assert client.submit(tasks.look, there, pure=False).result(timeout=WAIT)[-1] == "device"


def test_errors_are_raised_and_do_not_become_objects():
    """A pickle or a frame that cannot be made or restored raises, also in functions of dask."""
    from distributed.protocol.pickle import dumps, loads

    with pytest.raises(pickle.PicklingError, match="ARRAYHUB_PICKLING"):
        dumps(tasks.make_on_device(3))
    frames = pickle.dumps(tasks.FromLater())
    with pytest.raises(pickle.UnpicklingError, match="the pickle has version 99"):
        loads(frames)


@pytest.fixture
def frames():
    """Return the header and the frames of an array of 1000 elements."""
    arrayhub.transport.register_dask()
    header, frames = distributed.protocol.serialize(tasks.make(1000))
    assert header["serializer"] == "dask" and header["sub-header"]["form"] == 1
    return header, frames


@pytest.mark.parametrize("form", [None, 0, 2, 99, "1", True])
def test_frames_of_an_unknown_form_are_rejected(frames, form):
    header, frames = frames
    header["sub-header"]["form"] = form
    with pytest.raises(pickle.UnpicklingError, match=f"header has version {form!r}; this release reads version 1"):
        deserialize(header, frames)


def test_frames_that_do_not_match_their_header_are_rejected(frames):
    header, frames = frames
    for wrong in (frames[:1], frames[:2], [*frames, b""], []):
        with pytest.raises(pickle.UnpicklingError, match="message of dask|buffers"):
            deserialize(header, wrong)
    whole = memoryview(bytes([*frames[0], 200, *range(63), *frames[2]]))
    ends = [0, len(frames[0]), len(frames[0]) + 64, len(whole)]
    with pytest.raises(pickle.UnpicklingError, match="moved by 200 bytes"):
        deserialize(header, [whole[i:j] for i, j in itertools.pairwise(ends)])
    with pytest.raises(pickle.UnpicklingError, match="message of dask"):
        deserialize(header, [frames[0], "space", "elements"])


def test_second_deserialization_returns_the_same_elements(frames):
    """The first deserialization moves the elements to an aligned address in the buffer, the second does not."""
    header, frames = frames
    source = tasks.make(1000)
    for behind in range(70):
        buffer = bytearray(behind) + b"".join(bytes(memoryview(frame)) for frame in frames)
        ends = np.cumsum([behind] + [memoryview(frame).nbytes for frame in frames])
        arrived = [memoryview(buffer)[i:j] for i, j in itertools.pairwise(ends)]
        first, again = deserialize(header, arrived), deserialize(header, arrived)
        assert first.tolist() == again.tolist() == source.tolist(), behind
        assert (first.ptr % 64, first.ptr, first.is_copy) == (0, again.ptr, False)
        frozen = [frame.toreadonly() for frame in arrived]
        own = deserialize(header, frozen)
        np.asarray(own)[...] = -1
        assert deserialize(header, arrived).tolist() == source.tolist(), "a read-only buffer was modified"
        del first, again, own
