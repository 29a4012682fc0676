"""Copies to, from and on CUDA devices, through cupy.

Of any element type: the copies move words, not numbers, and only those bytes that the array reaches. Every copy runs
on one stream, which waits for the producer first.
"""

import contextlib
import warnings

import numpy

from arrayhub.libraries.cupy import as_words, on_memory, slowest_first
from arrayhub.libraries.host import empty_like, raw
from arrayhub.runtimes.cuda import import_cupy, stream_number
from arrayhub.transfer import host

_LEGACY, _PER_THREAD, _NO_STREAM = 1, 2, -1


def to_host(array, order="C", stream=None):
    """Return a fresh host copy of CUDA memory, compact in `order`, once it is complete.

    `stream` is the CUDA stream to copy on; cupy's current one by default.
    """
    fresh = empty_like(array, order)
    if array.nbytes == 0:
        return fresh
    cupy = import_cupy("to copy CUDA memory to the host")
    with _on(cupy, _ordinal(cupy, array), stream):
        words = cupy.ascontiguousarray(as_words(array, slowest_first(fresh)))
        words.reshape(-1).view(cupy.uint8).get(out=_flat(fresh))  # waits for the stream
    return fresh


def from_host(array, ordinal, stream=None):
    """Return a copy of a host array on a CUDA device. The host array may be written again at once.

    The copy is in Fortran order where only that makes the array contiguous, else in C order.
    """
    cupy = import_cupy("to copy to a CUDA device")
    if not array.flags.c_contiguous and not array.flags.f_contiguous:
        array = host.copy(array, "C")
    with _on(cupy, ordinal, stream) as current:
        memory = cupy.cuda.alloc(max(array.nbytes, 1))
        if array.nbytes:
            cupy.ndarray((array.nbytes,), cupy.uint8, memory).set(_flat(array))
            current.synchronize()
        return on_memory(array, memory, "F" if not array.flags.c_contiguous else "C")


def copy(array, order, stream=None):
    """Return a copy of CUDA memory on its own device, compact in `order`. The host does not wait for it.

    Managed memory stays managed; a copy of pinned memory lies on the device.
    """
    cupy = import_cupy("to copy CUDA memory")
    managed = array.device.type == "cuda_managed"
    with _on(cupy, _ordinal(cupy, array), stream):
        memory = (cupy.cuda.malloc_managed if managed else cupy.cuda.alloc)(max(array.nbytes, 1))
        fresh = on_memory(array, memory, order)
        if array.nbytes:
            axes = slowest_first(fresh)
            words = as_words(array, axes)
            cupy.ndarray(words.shape, words.dtype, memory)[...] = words
        return fresh


def write(fresh, source, stream=None):
    """Put the elements of `source`, on a CUDA device or the host, into a fresh array. The host does not wait for it."""
    cupy = import_cupy("to copy to a CUDA device")
    axes = slowest_first(fresh)
    with _on(cupy, _ordinal(cupy, fresh), stream):
        words = as_words(fresh, axes)
        if source.device.type == "cuda":
            given = as_words(source, axes, words.itemsize)
            words = as_words(fresh, axes, given.itemsize)
        else:
            items = raw(host.copy(source, "C"))
            given = cupy.asarray(items.reshape(*items.shape, 1).view(words.dtype))
            given = given.transpose(*axes, len(axes)) if source.ndim else given
        words[...] = given


def _flat(array):
    """The bytes of a contiguous host array as they lie in memory."""
    view = raw(array)
    axes = slowest_first(array)
    return (view if axes is None else view.transpose(axes)).reshape(-1).view(numpy.uint8)


def _ordinal(cupy, array):
    """The device to copy with; pinned host memory has none of its own."""
    return cupy.cuda.runtime.getDevice() if array.device.type == "cuda_host" else array.device.id


def _external(cupy, number, ordinal):
    """A cupy stream on a handle of somebody else's.

    cupy 14 deprecates this class in favour of ``Stream.from_external``, whose result destroys the stream when it dies.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return cupy.cuda.ExternalStream(number, ordinal)


@contextlib.contextmanager
def _on(cupy, ordinal, stream):
    """Make a device and a stream current, and give the stream."""
    with cupy.cuda.Device(ordinal):
        number = _NO_STREAM if stream is None else stream_number(stream)
        if number == _NO_STREAM:
            yield cupy.cuda.get_current_stream()
            return
        chosen = {_LEGACY: cupy.cuda.Stream.null, _PER_THREAD: cupy.cuda.Stream.ptds}.get(number)
        if chosen is None:
            chosen = _external(cupy, number, ordinal)
            chosen.owner = stream  # arrays made on it keep `chosen`, and with it the object that owns the handle
        with chosen:
            yield chosen
