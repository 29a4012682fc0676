"""Eight threads use arrayhub, the installed libraries and plug-ins for the first time at once, and then at random.

    python tests/support/first_uses.py [SECONDS] [LIBRARY ...]

First, all threads make the same call at the same moment, one call after the other. Then each thread makes the calls in
a different order for a time. The calls are those of `JOBS`, and the statements of `routes.py`, which import, export,
view and copy arrays. Threads share arrays that nobody writes, and write only arrays of their own, because the elements
of an array are not synchronized. The exit status is 0 if no call raised an error.

CPython without the GIL may deadlock if several threads import torch, jax and pandas for the first time, so the program
imports the libraries before it starts threads. `tools/races.py` runs the program with ThreadSanitizer.
"""

import importlib
import importlib.util
import mmap
import pickle
import queue
import random
import sys
import tempfile
import threading
import time
import traceback
from functools import partial
from pathlib import Path

import numpy as np
import routes
from producers import lending

import arrayhub

THREADS = 8
PLUGINS = 4
LIBRARIES = ("torch", "jax", "pandas", "pyarrow", "polars", "awkward", "xarray", "scipy.sparse", "ml_dtypes")

PLUGIN = """
import arrayhub

class Holder:
    def __init__(self, values):
        self.values = values

def register():
    arrayhub.register_library({name!r}, types={{"Holder": "values"}}, emit=lambda x: Holder(arrayhub.as_numpy(x)))
"""


def install_plugins(folder):
    """Create distributions in `folder`, each with an entry point. Return their modules."""
    names = [f"plugin_{k}" for k in range(PLUGINS)]
    for name in names:
        (folder / f"{name}.py").write_text(PLUGIN.format(name=name))
        facts = folder / f"{name}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[arrayhub.libraries]\n{name} = {name}:register\n")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    return [importlib.import_module(name) for name in names]


def equal(found, wanted):
    assert np.array_equal(np.asarray(found), wanted), (found, wanted)


def use_numpy(a, thread):
    x = arrayhub.asarray(a)
    equal(arrayhub.as_numpy(x), a)
    equal(pickle.loads(pickle.dumps(x)), a)
    assert x.__array_struct__ is not None and memoryview(x).nbytes == a.nbytes


def use_torch(a, thread):
    torch = sys.modules["torch"]
    equal(arrayhub.asarray(torch.from_numpy(a)), a)
    assert arrayhub.as_torch(a).data_ptr() == a.ctypes.data
    assert arrayhub.convert(a, "torch").tolist() == a.tolist()


def use_jax(a, thread):
    jax = sys.modules["jax"]
    equal(arrayhub.asarray(jax.numpy.asarray(a.astype("f4"))), a)
    equal(arrayhub.as_jax(a.astype("f4"), copy=True), a)


def use_pandas(a, thread):
    pandas = sys.modules["pandas"]
    equal(arrayhub.asarray(pandas.Series(a)), a)
    assert len(arrayhub.asnested(pandas.DataFrame({"a": a, "b": a}))) == len(a)
    assert arrayhub.adapt("numpy")(np.sort)(pandas.Series(a)) is not None


def use_pyarrow(a, thread):
    pyarrow = sys.modules["pyarrow"]
    equal(arrayhub.asarray(pyarrow.array(a)), a)
    assert arrayhub.as_arrow(a).to_pylist() == a.tolist()
    assert arrayhub.asnested(pyarrow.array([["a"], None])).to_list() == [["a"], None]


def use_polars(a, thread):
    equal(arrayhub.asarray(sys.modules["polars"].Series(a)), a)
    assert arrayhub.as_polars(a).to_list() == a.tolist()


def use_awkward(a, thread):
    assert arrayhub.asnested(sys.modules["awkward"].Array([[1.0], []])).to_list() == [[1.0], []]
    assert arrayhub.as_awkward(a).to_list() == a.tolist()


def use_xarray(a, thread):
    equal(arrayhub.asarray(arrayhub.convert(a, "xarray")), a)
    equal(arrayhub.asarray(sys.modules["xarray"].DataArray(a)), a)


def use_scipy_sparse(a, thread):
    sparse = sys.modules["scipy.sparse"]
    matrix = sparse.csr_array(np.eye(3))
    assert arrayhub.assparse(matrix).shape == (3, 3)
    assert arrayhub.convert(matrix, "scipy").nnz == 3


def use_ml_dtypes(a, thread):
    assert arrayhub.asarray(a.astype(sys.modules["ml_dtypes"].bfloat16)).dtype.name == "bfloat16"


def use_upper_layers(a, thread):
    assert type(arrayhub.like(a, a)) is np.ndarray and arrayhub.placement(a).library == "numpy"
    assert "numpy" in str(arrayhub.explain(a)) and arrayhub.check(a) is not None
    assert arrayhub.empty(3, like=a).shape == (3,) and arrayhub.asnested([[1], []]).to_list() == [[1], []]
    with arrayhub.trace():
        equal(arrayhub.as_numpy(arrayhub.asarray(a)), a)


def use_plugins(plugins, a, thread):
    for module in plugins[thread % PLUGINS :] + plugins[: thread % PLUGINS]:
        assert arrayhub.asarray(module.Holder(a)).ptr == a.ctypes.data
        assert type(arrayhub.convert(a, module.__name__)) is module.Holder


_numbers = iter(range(10**9))


def register(a, thread):
    """Register a library whose type was refused before, and then replace the registration."""
    name = f"registered_{thread}_{next(_numbers)}"
    cls = type("Box", (), {"__module__": name})
    box = cls()
    box.values = a
    try:
        arrayhub.asarray(box)
    except TypeError:
        pass
    else:
        raise AssertionError("accepted before the registration")
    for path in ("values", "values.T"):
        arrayhub.register_library(name, types={"Box": path}, emit=lambda x: box)
        assert arrayhub.asarray(box).ptr == a.ctypes.data
        assert arrayhub.convert(a, name) is box
    from arrayhub.storage import layout_for, layouts

    layouts.register(name, (2, 1, 0))
    assert layout_for("IJK", name) == (2, 1, 0)


class Holder:
    """A producer with an array interface dict."""

    def __init__(self, a):
        self.__array_interface__ = a.__array_interface__
        self.owner = a


# Read by all threads. The elements are never written.
SHARED = np.arange(16.0)
SHARED_ARRAY = arrayhub.asarray(SHARED)
CHANGING = type("Changing", (Holder,), {})
CHANGING_HOLDER = CHANGING(SHARED[:4])
ARROW_METHODS = ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_c_device_array__", "__arrow_c_device_stream__")


def export(a, thread):
    """Make views and exports of one array, and drop them."""
    view = SHARED_ARRAY[thread % 3 :: 2][::-1]
    assert view.memory is SHARED_ARRAY.memory and view.base is SHARED
    equal(view, SHARED[thread % 3 :: 2][::-1])
    equal(np.from_dlpack(SHARED_ARRAY), SHARED)
    assert memoryview(SHARED_ARRAY).nbytes == SHARED_ARRAY.reshape(4, 4).T.nbytes == SHARED.nbytes
    assert SHARED_ARRAY.__array_interface__["shape"] == SHARED_ARRAY.shape and SHARED_ARRAY.dtype is SHARED.dtype
    for capsule in (SHARED_ARRAY.__dlpack__(), SHARED_ARRAY.__dlpack__(max_version=(1, 0))):
        assert arrayhub.asarray(capsule).ptr == SHARED_ARRAY.ptr
    for method in ARROW_METHODS:
        cls = type("ArrowOnly", (), {method: lambda self, *_, method=method, **__: getattr(SHARED_ARRAY, method)()})
        assert arrayhub.asarray(cls()).ptr == SHARED_ARRAY.ptr


_latest = [None]


def read_new_attributes(a, thread):
    """Read attributes that are created on first use, of an array that several threads see for the first time."""
    if thread == 0 or _latest[0] is None:
        _latest[0] = arrayhub.asarray(memoryview(SHARED))
    x = _latest[0]
    block, dtype = x.memory, x.dtype
    assert x.memory is block is x[1:].memory and x.dtype is dtype is SHARED.dtype
    assert block.nbytes == SHARED.nbytes and x.device == "cpu" and x.flags.c_contiguous and "float64" in repr(x)


def assign(a, thread):
    x = arrayhub.empty(a.shape)
    x[...] = a
    x[1:] = x[:-1]
    x[::2] = [thread] * 8
    x[3] = np.float32(thread)
    assert x[3].item() == x[0].item() == thread
    arrayhub.to_host(arrayhub.asarray(a), out=x)
    equal(x, a)
    x.flags.writeable = False
    assert x.access == "readonly"


def send(a, thread):
    shared = arrayhub.empty(a.shape, memory="shared_memory")
    for x in (arrayhub.asarray(a), shared, arrayhub.asnested([[1, 2], []])):
        buffers = []
        assert len(pickle.loads(pickle.dumps(x))) == len(x)
        data = pickle.dumps(x, 5, buffer_callback=buffers.append)
        assert len(pickle.loads(data, buffers=buffers)) == len(x)
    pages = mmap.mmap(-1, 4096)
    assert arrayhub.asarray(pages).nbytes == 4096


def evict(a, thread):
    """Use more types, records and shapes than the caches can contain, and change the types."""
    for _ in range(20):
        cls = type(f"Producer{thread}", (Holder,), {})
        producer = cls(a)
        assert arrayhub.asarray(producer).ptr == a.ctypes.data
        cls.__dlpack__, cls.__dlpack_device__ = lending(a[1:]), lambda self: (1, 0)
        assert arrayhub.asarray(producer).ptr == a[1:].ctypes.data
        assert arrayhub.placement(cls(a)).library == "numpy"
    size = 1 + next(_numbers) % 2000
    dtype = np.dtype([("a", "u1"), (f"b{thread}", "u1", (size,))])
    records = np.zeros(2, dtype)
    assert np.asarray(memoryview(arrayhub.asarray(records))).dtype.itemsize == size + 1
    assert arrayhub.asarray(memoryview(records)).dtype == arrayhub.asarray(Holder(records)).dtype == dtype
    assert arrayhub.zeros((3, size), halo=((0, 0), (1, 1))).shape == (3, size)


def change(a, thread):
    """Import an object whose type and interface dict other threads change."""
    interface = CHANGING_HOLDER.__array_interface__
    CHANGING.number = thread
    interface["strides"] = (16,) if thread % 2 else None
    interface[f"other{thread}"] = thread
    interface.pop(f"other{(thread + 3) % THREADS}", None)
    assert arrayhub.asarray(CHANGING_HOLDER).shape == (4,)


_pipe = queue.SimpleQueue()


def hand_over(a, thread):
    """Make arrays and exports that other threads consume or drop, so that structs move between threads."""
    x = arrayhub.asarray(a)
    made = (x[1:], x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), memoryview(x), x.__arrow_c_array__(), x.copy())
    for one in made:
        _pipe.put(one)
    for _ in made:
        taken = _pipe.get()
        if type(taken).__name__ == "PyCapsule":
            assert arrayhub.asarray(taken).nbytes == a.nbytes


HUGE = 1 << 57  # elements of eight bytes, more than a machine can address


def run_out_of_memory(a, thread):
    """Make calls whose allocation fails after they have allocated other structs."""
    wide = arrayhub.asarray(np.broadcast_to(a[:1], (HUGE,)))
    new = (lambda: arrayhub.empty(HUGE), lambda: arrayhub.zeros((2, HUGE)))
    for call in (*new, wide.copy, lambda: arrayhub.as_numpy(wide, copy=True)):
        try:
            call()
        except MemoryError:
            continue
        raise AssertionError("more memory than any machine has")


def configure(a, thread):
    arrayhub.transfer.configure(threads=1 + thread)
    with arrayhub.transport.pickling(device="host"):
        assert len(pickle.loads(pickle.dumps(arrayhub.asarray(a)))) == len(a)


def statements():
    """Return a job that runs random statements of `routes.py`, in a namespace of the thread's own."""
    tables = [name for name, library in routes.LIBRARIES.items() if library.module in (None, *sys.modules)]
    if "torch" not in tables:
        tables = [name for name in tables if name != "scipy"]  # some of its statements need torch
    own = threading.local()

    def use_routes(a, thread):
        if not hasattr(own, "names"):
            own.names = {name: routes.namespace(name) for name in tables}
            own.order = random.Random(thread)
        for _ in range(10):
            name = own.order.choice(tables)
            route = own.order.choice(routes.LIBRARIES[name].routes)
            routes.runner(route, own.names[name])(range(3))

    return use_routes


def run(seconds, plugins):
    """Run the threads. Return the number of calls, and the text of each error."""
    a = np.arange(16.0)
    jobs = [partial(use_plugins, plugins), register, use_numpy, use_upper_layers]
    jobs += [globals()["use_" + name.replace(".", "_")] for name in LIBRARIES if name in sys.modules]
    jobs += [export, read_new_attributes, assign, send, evict, change, hand_over, run_out_of_memory, configure]
    jobs += [statements()]
    barrier, calls, failures = threading.Barrier(THREADS), [0] * THREADS, []

    def work(thread):
        order = random.Random(thread)
        for job in jobs:
            barrier.wait()
            attempt(job, thread)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not failures:
            attempt(order.choice(jobs), thread)

    def attempt(job, thread):
        calls[thread] += 1
        try:
            job(a, thread)
        except Exception:
            failures.append(traceback.format_exc())

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(calls), failures


def main(seconds=0.5, *libraries):
    for name in libraries or LIBRARIES:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    sys.setswitchinterval(1e-5)  # seconds; with the GIL, threads alternate more often
    with tempfile.TemporaryDirectory() as folder:
        calls, failures = run(float(seconds), install_plugins(Path(folder)))
    print("\n".join(failures[:3]))
    print(f"{calls} calls, {len(failures)} errors")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
