"""Several threads import and export the same objects at the same time, with and without the GIL.

docs/threads.md contains the command that runs this file with ThreadSanitizer.
"""

import gc
import os
import queue
import sys
import sysconfig
import threading
import time
import weakref

import numpy as np
import pytest
from children import SUPPORT, python, run
from producers import lending, lives, producer

import arrayhub

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("ARRAYHUB_THREADS_SECONDS", "0.25"))  # of each job
THREADS = 4
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def together(job, threads=THREADS):
    """Call ``job(thread, turn)`` repeatedly in all threads for SECONDS. Raise the first exception of a thread."""
    barrier = threading.Barrier(threads)
    failures = []
    end = time.monotonic() + SECONDS

    def work(thread):
        turn = 0
        barrier.wait()
        try:
            while time.monotonic() < end and not failures:
                job(thread, turn)
                turn += 1
        except BaseException as error:
            failures.append(error)

    finish([threading.Thread(target=work, args=(thread,)) for thread in range(threads)])
    if failures:
        raise failures[0]


def in_step(make, job, threads=THREADS):
    """Call ``job(object, thread)`` in all threads at the same time, repeatedly, each time with a new object."""
    barrier = threading.Barrier(threads)
    failures, box = [], []
    end = time.monotonic() + SECONDS

    def work(thread):
        try:
            while not failures:
                if thread == 0:
                    box[:] = [make()] if time.monotonic() < end else []
                barrier.wait()
                if not box:
                    return
                job(box[0], thread)
                barrier.wait()
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    finish([threading.Thread(target=work, args=(thread,)) for thread in range(threads)])
    if failures:
        raise failures[0]


def finish(workers):
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def interface_of(a, **changes):
    return {**a.__array_interface__, **changes}


class Holder:
    """An object with the given array interface dict."""

    def __init__(self, interface, owner):
        self.__array_interface__ = interface
        self.owner = owner


@pytest.mark.skipif(not FREE_THREADED, reason="this Python is built with the GIL")
def test_importing_arrayhub_does_not_enable_the_gil():
    modules = ", ".join(
        ".".join(file.relative_to(root).with_suffix("").parts)
        for root in [__import__("pathlib").Path(arrayhub.__file__).parents[1]]
        for file in sorted(root.glob("arrayhub/**/*.pyx"))
    )
    script = f"import sys, {modules or 'arrayhub'}\nassert not sys._is_gil_enabled()"
    python(script, options=["-W", "error"])


# --------------------------------------------------------------------------------------------------------- first uses


def test_threads_use_arrayhub_for_the_first_time():
    """First imports of libraries' arrays, first plug-in objects and registrations in eight threads at once."""
    assert run(sys.executable, "-X", "faulthandler", SUPPORT / "first_uses.py", SECONDS).endswith(" 0 errors\n")


@pytest.mark.parametrize("turn", range(2))
def test_threads_load_their_first_plugins(turn):
    """The program without libraries starts faster, so it runs several times: each process has one first use."""
    program = (sys.executable, "-X", "faulthandler", SUPPORT / "first_uses.py", "0.05", "numpy")
    assert run(*program).endswith(" 0 errors\n")


def test_listeners_come_and_go_while_threads_import():
    a = numpy_array()

    def job(thread, turn):
        with arrayhub.trace():
            assert arrayhub.as_numpy(arrayhub.asarray(a)).shape == (3, 4)

    together(job)


# ----------------------------------------------------------------------------------------------------------- imports


def numpy_array():
    return np.arange(12.0).reshape(3, 4)


def bytes_object():
    return bytes(np.arange(12.0).data)


def dict_producer():
    a = numpy_array()
    return Holder(interface_of(a), a)


def dlpack_producer():
    return producer(__dlpack__=lending(numpy_array()))


def torch_tensor():
    torch = pytest.importorskip("torch")
    return torch.arange(12, dtype=torch.float64).reshape(3, 4)


def jax_array():
    return pytest.importorskip("jax").numpy.arange(12, dtype="float32").reshape(3, 4)


KINDS = [numpy_array, bytes_object, bytearray, dict_producer, dlpack_producer, torch_tensor, jax_array]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("shared", [False, True], ids=["of each thread", "shared"])
def test_threads_import_arrays_at_the_same_time(make, shared):
    objects = [make()] * THREADS if shared else [make() for _ in range(THREADS)]
    wanted = [np.asarray(arrayhub.asarray(obj)).tobytes() for obj in objects]

    def job(thread, turn):
        x = arrayhub.asarray(objects[thread])
        assert bytes(np.asarray(x).data) == wanted[thread] if x.flags.c_contiguous else True
        assert arrayhub.as_numpy(objects[thread]).size == x.size

    together(job)


def test_threads_import_the_first_tensors_of_a_process():
    """Threads import the first tensors of a process at the same time."""
    pytest.importorskip("torch")
    python("""
        import threading

        import arrayhub
        import numpy as np
        import torch

        barrier, failures = threading.Barrier(4), []

        def work(k):
            try:
                tensor = torch.arange(100.0) + k
                barrier.wait()
                for _ in range(50):
                    x = arrayhub.asarray(tensor)
                    view = x[k:]
                    assert np.asarray(view)[0] == 2 * k and arrayhub.as_torch(x).data_ptr() == tensor.data_ptr()
                    tensor.data = tensor.clone()
                    assert np.asarray(view)[-1] == 99 + k
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
    """)


def test_threads_export_one_array_at_the_same_time():
    """Threads create and drop views and exports of one array at the same time. No reference remains."""
    owner = numpy_array()
    x = arrayhub.asarray(owner)

    def job(thread, turn):
        view = x[thread % 3 :, ::2].T
        assert view.memory is x.memory
        assert np.asarray(view).shape == (2, 3 - thread % 3)
        assert np.from_dlpack(x).sum() == 66
        assert memoryview(x).nbytes == 96
        assert x.__array_interface__["shape"] == (3, 4)
        assert x.dtype is owner.dtype and x.base is owner and x.flags.c_contiguous
        assert x.reshape(12)[5:].size == 7

    together(job)
    gone = weakref.ref(owner)
    owner = x = None
    assert not lives(gone)


def test_lazy_attributes_are_created_once():
    """All threads read the memory and the dtype of a new array at the same time. Both are released exactly once."""
    lent = bytearray(96)
    answers = [None] * THREADS

    def job(x, thread):
        answers[thread] = (x.memory, x.dtype, x[1:].memory)

    def make():
        blocks = {id(block) for answer in answers if answer for block in answer[::2]}
        assert len(blocks) <= 1, "several blocks for one array"
        answers[:] = [None] * THREADS
        return arrayhub.asarray(lent)

    in_step(make, job)
    answers.clear()
    gc.collect()
    lent.append(0)  # raises BufferError if an array still holds the buffer


# -------------------------------------------------------------------------------------------- types, dicts and tables


def test_threads_create_and_change_types_during_imports():
    """The threads import objects of more types than the type cache can contain, and change the types."""
    a = numpy_array()

    def job(thread, turn):
        cls = type(f"Producer{thread}", (Holder,), {})
        obj = cls(interface_of(a), a)
        assert arrayhub.asarray(obj).shape == (3, 4)
        cls.__dlpack__, cls.__dlpack_device__ = lending(a[:2]), lambda self: (1, 0)
        assert arrayhub.asarray(obj).shape == (2, 4)
        del cls.__dlpack__
        assert arrayhub.asarray(obj).shape == (3, 4)

    together(job)


def test_type_that_one_thread_changes_is_imported_by_others():
    a = numpy_array()
    cls = type("Changing", (Holder,), {})
    obj = cls(interface_of(a), a)

    def job(thread, turn):
        if thread == 0:
            cls.number = turn
        assert arrayhub.asarray(obj).shape == (3, 4)

    together(job)


def test_interface_dict_that_one_thread_changes_is_read_by_others():
    a, b = numpy_array(), np.arange(24.0).reshape(3, 8)[:, ::2]
    shared = interface_of(a)
    obj = Holder(shared, (a, b))

    def job(thread, turn):
        if thread == 0:
            shared["strides"] = (b if turn % 2 else a).strides  # replaces and frees the previous tuple
            shared[f"other{turn % 50}"] = turn
            shared.pop(f"other{(turn + 25) % 50}", None)
        else:
            assert arrayhub.asarray(obj).shape == (3, 4)

    together(job)


def test_caches_are_cleared_while_threads_use_them():
    """The threads import more record types and formats than fit into the caches, so caches are cleared while in use."""
    memory = np.zeros(4096, "u1")

    def job(thread, turn):
        size = 3 + (turn + 97 * thread) % 600
        dtype = np.dtype([("a", "u1"), (f"b{thread}", "u1", (size - 1,))])
        a = memory[: 2 * size].view(dtype)
        assert np.asarray(memoryview(arrayhub.asarray(a))).dtype.itemsize == size
        assert arrayhub.asarray(memoryview(a)).dtype == dtype
        assert arrayhub.asarray(Holder(interface_of(a), a)).dtype == dtype
        void = Holder(interface_of(np.zeros(2, f"S{size}")), None)
        void.__array_interface__ |= {"data": (memory.ctypes.data, False)}
        assert arrayhub.asarray(void).dtype == f"S{size}"

    together(job)


def test_threads_read_the_dtype_of_bfloat16_arrays():
    pytest.importorskip("ml_dtypes")

    def job(x, thread):
        assert x.dtype.name == "bfloat16"
        assert np.asarray(x).shape == (4,)

    import ml_dtypes

    in_step(lambda: arrayhub.asarray(np.zeros(4, ml_dtypes.bfloat16)), job)


def test_threads_allocate_at_the_same_time():
    pytest.importorskip("arrayhub.storage")

    def job(thread, turn):
        x = arrayhub.storage.zeros((3, 4 + turn % 600), dtype="f8", memory="cpu")
        assert np.asarray(x).sum() == 0

    together(job)


# ---------------------------------------------------------------------------------- exports that other threads drop


def test_other_threads_consume_and_drop_exports():
    """Capsules, buffers and ndarrays that one thread creates are consumed or dropped by others."""
    pipe = queue.SimpleQueue()
    lent = bytearray(range(96))

    def job(thread, turn):
        x = arrayhub.asarray(lent)
        pipe.put(x.__dlpack__(max_version=(1, 0)))
        pipe.put(x[1:].__dlpack__())
        pipe.put(memoryview(x))
        pipe.put(arrayhub.as_numpy(x))
        for _ in range(4):
            got = pipe.get()
            if turn % 2 and type(got).__name__ == "PyCapsule":
                assert arrayhub.asarray(got).size in (95, 96)

    together(job)
    while not pipe.empty():
        pipe.get()
    gc.collect()
    lent.append(0)


def test_threads_import_dlpack_producers_of_many_types():
    """The threads import producers of 64 types, and write to the type cache at the same time."""
    producers = [dlpack_producer() for _ in range(64)]

    def job(thread, turn):
        assert arrayhub.asarray(producers[(turn * (thread + 1)) % 64]).shape == (3, 4)

    together(job)
