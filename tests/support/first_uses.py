"""Eight threads use arrayhub, the installed libraries and plug-ins for the first time at once.

    python tests/support/first_uses.py [SECONDS] [LIBRARY ...]

First, all threads make the same call at the same moment, one call after the other. Then each thread makes the calls in
a different order for a time. The exit status is 0 if no call raised an error. CPython without the GIL may deadlock if
several threads import torch, jax and pandas for the first time, so the program imports the libraries before it starts
threads.
"""

import importlib
import importlib.util
import pickle
import random
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import numpy as np

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
    x[thread] = x[thread]  # imports the module of assignment
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


def run(seconds, plugins):
    """Run the threads, and return the text of each error."""
    a = np.arange(16.0)
    jobs = [lambda thread: use_plugins(plugins, a, thread), lambda thread: register(a, thread)]
    known = {"numpy": use_numpy, "upper_layers": use_upper_layers}
    known |= {name: globals()["use_" + name.replace(".", "_")] for name in LIBRARIES if name in sys.modules}
    jobs += [lambda thread, use=use: use(a, thread) for use in known.values()]
    barrier, failures = threading.Barrier(THREADS), []

    def work(thread):
        order = random.Random(thread)
        for job in jobs:
            barrier.wait()
            attempt(job, thread)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not failures:
            attempt(order.choice(jobs), thread)

    def attempt(job, thread):
        try:
            job(thread)
        except Exception:
            failures.append(traceback.format_exc())

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return failures


def main(seconds=0.5, *libraries):
    for name in libraries or LIBRARIES:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    sys.setswitchinterval(1e-5)  # seconds; with the GIL, threads alternate more often
    with tempfile.TemporaryDirectory() as folder:
        failures = run(float(seconds), install_plugins(Path(folder)))
    print("\n".join(failures[:3]))
    print(f"{len(failures)} errors")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
