"""Functions that child processes and the workers of dask, ray and joblib import and run."""

import multiprocessing
import os
import pickle
import signal

import numpy as np

import arrayhub
from arrayhub.nested.to_device import map_arrays


def make(n):
    return arrayhub.asarray(np.arange(float(n)))


def make_on_device(n):
    return arrayhub.to_device(np.arange(float(n)), "oneapi:0")


def length(x):
    return len(x.to_list())


def stored(x):
    return x.to_format("coo").nnz


def addresses(x):
    """Return the addresses of all buffers of a NestedArray in order."""
    found = []
    map_arrays(x, lambda array: found.append(array.ptr) or array)
    return found


def make_shared(n):
    x = arrayhub.empty(n, memory="usm_shared")
    np.asarray(x)[...] = 1
    return x


def look(x):
    """Return the sum, shape, strides, access and USM type of a received array."""
    if x.usm_type == "device":
        x_host = arrayhub.to_host(x)
    else:
        x_host = x
    return float(np.asarray(x_host).sum()), x.shape, x.byte_strides, x.access, x.usm_type


def total(x):
    return float(np.asarray(x).sum())


def address(x):
    return x.ptr


def fill(x, value):
    np.asarray(x)[...] = value
    return os.getpid()


def fill_each(arrays, value):
    for x in arrays:
        np.asarray(x)[...] = value


def writes(x):
    """Return whether `x` and its base can be written, and its access."""
    return x.flags.writeable, x.access, np.asarray(x).flags.writeable


def make_shared_memory(n):
    x = arrayhub.zeros(n, memory="shared_memory")
    x[...] = np.arange(n)
    return x


def put_shared_memory(queue, n):
    queue.put(make_shared_memory(n))


def where_mapped(x):
    """Return the access of `x`, and the name of the file from which joblib has mapped the elements, or None."""
    owner = x
    for _ in range(10):
        if isinstance(owner, np.memmap):
            return os.path.basename(owner.filename), x.access
        owner = getattr(owner, "base", None)
    return None, x.access


class FromLater:
    """An array that is pickled in the format of a later release."""

    def __reduce__(self):
        return arrayhub._unpickle, ((99, "whatever comes"), b"")


def read_in_a_task():
    """Return the name of the error that a queue raises for a pickle of `FromLater`, or "nothing"."""
    queue = multiprocessing.SimpleQueue()
    queue.put(FromLater())
    try:
        queue.get()
    except pickle.UnpicklingError as error:
        return type(error).__name__
    return "nothing"


def make_nested():
    return arrayhub.asnested([[1.0], [2.0, 3.0]])


class Counter:
    """A dask actor that holds an array on a SYCL device."""

    def __init__(self, n):
        self.array = arrayhub.to_device(np.zeros(n), "oneapi:0")

    def add(self, x):
        host = np.array(arrayhub.to_host(self.array))
        host += np.asarray(x)
        self.array = arrayhub.to_device(host, "oneapi:0")

    def fetch(self):
        return arrayhub.to_host(self.array)


def same(x):
    return x


def fill_and_die(x, value):
    np.asarray(x)[...] = value
    os.kill(os.getpid(), signal.SIGKILL)


def where_mapped_by_mmap(x):
    """Return the access of `x`, and whether the elements are in a file that this process has mapped."""
    import mmap

    owner = x.base
    for _ in range(10):
        if owner is None or isinstance(owner, mmap.mmap):
            break
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return isinstance(owner, mmap.mmap), x.access


def add_one(handle):
    """Open a handle, and add one to writable elements. Return the previous sum, the access and the process id."""
    with handle.open() as y:
        before = float(np.asarray(y).sum())
        if y.access == "readwrite":
            np.asarray(y)[...] += 1
        return before, y.access, os.getpid()


def put_result(queue, function, *arguments):
    queue.put(function(*arguments))


def borrow_until(handle, connection):
    """Open a handle, send the process id and the sum, and keep the array open until a message arrives."""
    with handle.open() as y:
        connection.send((os.getpid(), float(np.asarray(y).sum())))
        connection.recv()
    connection.send("ended")
    connection.recv()


def own_until(connection):
    """Allocate shared memory, send its handle, and close the handle when a message arrives."""
    x = arrayhub.full((4, 5), 3.0, memory="shared_memory")
    handle = arrayhub.ipc_handle(x)
    connection.send(handle)
    connection.recv()
    handle.close()
