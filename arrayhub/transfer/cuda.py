"""Copies to, from and on CUDA devices, through cupy.

Any element type: the copies move words, not numbers, and only those bytes that the array reaches. Every copy runs on
one stream, which waits for the producer first.
"""

import contextlib

import numpy

from arrayhub.libraries.cupy import as_words, from_memory
from arrayhub.runtimes.cuda import import_cupy, stream_number

_LEGACY, _PER_THREAD, _NO_STREAM = 1, 2, -1
_MANAGED = 13


def to_host(array, out=None, stream=None):
    """Copy CUDA memory to the host and return when it is there.

    Parameters
    ----------
    array : USMArray
        Device, managed or pinned memory.
    out : numpy.ndarray, optional
        Where to copy, of the same shape and dtype and any strides; fresh memory by default, in Fortran order where
        only that makes the array contiguous, else in C order.
    stream : int or object, optional
        The CUDA stream to copy on; cupy's current one by default.

    Returns
    -------
    numpy.ndarray
        `out`, or a fresh array.
    """
    if out is None:
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            return to_host(array.T, None, stream).T
        out = numpy.empty(array.shape, array.dtype)
    if array.size == 0 or array.itemsize == 0:
        return out
    target = out if out.flags.c_contiguous and out.flags.writeable else numpy.empty(array.shape, array.dtype)
    cupy = import_cupy("to copy CUDA memory to the host")
    with _on(cupy, _device_id(cupy, array), stream):
        words = cupy.ascontiguousarray(as_words(array))
        words.get(out=_bytes(target).view(words.dtype).reshape(words.shape))     # waits for the stream
    if target is not out:
        out[...] = target
    return out


def from_host(array, device, stream=None):
    """Copy host memory to a CUDA device and return when the host memory may be written again.

    Parameters
    ----------
    array : numpy.ndarray
        Any dtype but objects, any strides.
    device : Device
        A CUDA device.
    stream : int or object, optional
        The CUDA stream to copy on; cupy's current one of that device by default.

    Returns
    -------
    USMArray
        Fresh memory, in Fortran order where only that makes the array contiguous, else in C order.
    """
    cupy = import_cupy("to copy to a CUDA device")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    source = numpy.ascontiguousarray(array.T if fortran else array).reshape(array.T.shape if fortran else array.shape)
    with _on(cupy, device.id, stream) as current:
        memory = cupy.cuda.alloc(source.nbytes)
        if source.nbytes:
            _over(cupy, memory, source.nbytes).set(_bytes(source))
            current.synchronize()
        moved = from_memory(memory, source.shape, source.dtype, source.strides)
    return moved.T if fortran else moved


def copy(array, order="C", device=None, stream=None):
    """Copy CUDA memory to fresh memory of the same or another device. The host does not wait for copies on one device.

    Parameters
    ----------
    array : USMArray
        Device, managed or pinned memory.
    order : {"C", "F", "K"}, optional
        Layout of the copy; "K" keeps the order of the dimensions in memory.
    device : Device, optional
        Another CUDA device; that of the array by default.
    stream : int or object, optional
        The CUDA stream to copy on; cupy's current one of the array's device by default.

    Returns
    -------
    USMArray
        Managed memory for managed memory on the same device, else device memory.
    """
    cupy = import_cupy("to copy CUDA memory")
    axes = _axes(array, order)
    here = _device_id(cupy, array)
    there = here if device is None else device.id
    with _on(cupy, here, stream) as current:
        words = as_words(array.transpose(axes)) if array.ndim else as_words(array)
        if there != here:
            return _across(cupy, words, array, axes, there, current)
        managed = array.device.dlpack[0] == _MANAGED
        memory = (cupy.cuda.malloc_managed if managed else cupy.cuda.alloc)(max(array.nbytes, 1))
        if array.nbytes:
            cupy.ndarray(words.shape, words.dtype, memory)[...] = words
        return _finish(memory, array, axes)


def _across(cupy, words, array, axes, device, current):
    """Copy to another device: compact on the first, then one piece over to the second."""
    compact = cupy.ascontiguousarray(words)
    current.synchronize()
    with _on(cupy, device, None) as other:
        memory = cupy.cuda.alloc(max(array.nbytes, 1))
        if array.nbytes:
            memory.copy_from_device(compact.data, array.nbytes)
            other.synchronize()
        return _finish(memory, array, axes)


def _finish(memory, array, axes):
    """An array over a copy that was laid out in the order of `axes`."""
    shape = tuple(array.shape[axis] for axis in axes)
    strides, step = [], array.itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    inverse = sorted(range(len(axes)), key=axes.__getitem__)
    moved = from_memory(memory, shape, array.dtype, tuple(reversed(strides)))
    return moved.transpose(inverse) if axes else moved


def _axes(array, order):
    """The dimensions from the slowest in memory to the fastest."""
    if order not in ("C", "F", "K"):
        raise ValueError(f"copy: order is {order!r}; accepted: 'C', 'F' or 'K'")
    axes = range(array.ndim)
    if order == "K":
        return sorted(axes, key=lambda axis: -abs(array.byte_strides[axis]))
    return list(axes if order == "C" else reversed(axes))


def _device_id(cupy, array):
    """The ordinal to copy with; pinned host memory has none of its own."""
    device_type, device_id = array.device.dlpack
    return cupy.cuda.runtime.getDevice() if device_type == 3 else device_id


@contextlib.contextmanager
def _on(cupy, device, stream):
    """Make a device and a stream current, and give the stream."""
    with cupy.cuda.Device(device):
        number = _NO_STREAM if stream is None else stream_number(stream)
        if number == _NO_STREAM:
            yield cupy.cuda.get_current_stream()
            return
        special = {_LEGACY: cupy.cuda.Stream.null, _PER_THREAD: cupy.cuda.Stream.ptds}
        chosen = special.get(number)
        if chosen is None:
            chosen = cupy.cuda.ExternalStream(number, device)
            chosen.owner = stream       # arrays made on it keep `chosen`, and with it the object that owns the handle
        with chosen:
            yield chosen


def _bytes(array):
    """The memory of a C-contiguous NumPy array as flat bytes, whatever its dtype."""
    return array.reshape(-1).view(numpy.uint8)


def _over(cupy, memory, nbytes):
    """Flat bytes over cupy memory."""
    return cupy.ndarray((nbytes,), cupy.uint8, memory)
