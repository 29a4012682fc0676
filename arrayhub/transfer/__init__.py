"""Explicit copies, with one engine per kind of memory: host, SYCL, CUDA. Copies are made only on request.

The engines define the functions below, except that the host engine does not define `new_like`. `progress` is None or a
function of `transfer.progress`.

    to_host(array, order="C", *, out=None, stream=None, progress=None)
        Copy to `out`, which is validated, or to new host memory that is contiguous in `order`.
    copy(array, order, *, stream=None)
        Copy to a new array on the same device, in the same kind of memory, contiguous in `order`.
    new_like(array, ordinal, *, stream=None)
        Allocate an array of the type and shape of `array` on a device. The array is in Fortran order if `array` is
        F-contiguous and not C-contiguous, else in C order.
    assign(array, out, *, stream=None, progress=None, fresh=False)
        Copy an array of this engine or the host to `out`, an existing array of any layout. `array` is broadcast to the
        shape of `out`. The arrays must not share bytes. `fresh` states that `out` is new memory, in which the bytes
        between the elements may be overwritten.
"""

from functools import cache
from importlib import import_module
from time import perf_counter

from arrayhub._core import tracing
from arrayhub._core.copying import check_copy
from arrayhub._core.descriptor import CPU, Device, is_host_readable
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, find_borders, is_native
from arrayhub._core.errors import Refusal, show, unreadable
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.sycl import named_queue, queue_of, shares_context
from arrayhub.transfer.host_copies import (
    broadcast,
    check_out,
    check_writable,
    host_view,
    is_packed,
    order_on_stream,
    share_bytes,
)
from arrayhub.transfer.settings import configure

__all__ = ["configure", "held", "release"]


def __dir__():
    return __all__


_ENGINES = {"cpu": "host", "oneapi": "sycl", "cuda": "cuda", "cuda_host": "cuda", "cuda_managed": "cuda"}
_NO_TARGETS = ("cuda_host", "cuda_managed")  # kinds of memory that `to_device` does not allocate
_VOID = 20  # typenum of records and of raw data


def held():
    """Return the number of bytes that are kept for later copies, by kind of memory.

    Returns
    -------
    dict
        ``"pinned"`` is the pinned host memory for CUDA: at most ``buffers * chunk`` bytes (see `configure`), and 0
        before the first copy that needs pinned memory. Host and SYCL copies do not keep memory.

    Examples
    --------
    >>> arrayhub.transfer.held()
    {'pinned': 0}
    """
    from arrayhub.transfer import pinned

    return {"pinned": pinned.pool.held()}


def release():
    """Release the memory that `held` counts. Memory that a running copy uses is released when the copy ends.

    Examples
    --------
    >>> arrayhub.transfer.release()
    """
    from arrayhub.transfer import pinned

    pinned.pool.release()


def _engine_name(device):
    try:
        return _ENGINES[device.type]
    except KeyError:
        raise BufferError(
            f"device: {device} is not supported by any copy engine; accepted: cpu, cuda and oneapi devices"
        ) from None


def check_source(array):
    """Raise BufferError if no engine can copy the memory of a dense or nested array to the host, without copying it."""
    if _engine_name(array.device) == "cuda" and not has_device():
        raise Refusal("to_host", f"the memory is on {array.device}, and no CUDA driver or device was found")


@cache
def _load_engine(name):
    """Return the module of an engine, which is imported with the first copy that needs it."""
    return import_module(f"arrayhub.transfer.{name}")


def _engine(name):
    """Return the module of an engine, wrapped by `_TracedEngine` while copies are traced."""
    engine = _load_engine(name)
    return _TracedEngine(engine) if tracing.open_traces else engine


class _TracedEngine:
    """Copy engine whose functions report each copy."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        function = getattr(self.engine, name)
        if name == "new_like":  # only allocates
            return function

        def copy_traced(array, *arguments, **options):
            since = perf_counter()
            result = function(array, *arguments, **options)
            target = arguments[0] if name == "assign" else result
            tracing.report("copy", name, str(array.device), str(target.device), target.nbytes, perf_counter() - since)
            return result

        return copy_traced


def copy(array, *, order="C", stream=None):
    """Return a writable copy of `array` on the same device, ordered on `stream`. See ``USMArray.copy``."""
    if order not in ("C", "F", "K"):
        raise ValueError(f"copy: order is {show(order)}; accepted: 'C', 'F' or 'K'")
    return _engine(_engine_name(array.device)).copy(order_on_stream(array, stream), order, stream=stream)


_copy = copy


def to_host(array, *, out=None, copy=None, stream=None, progress=None):
    """Return `array` in host memory. See ``arrayhub.to_host``."""
    copy = check_copy(copy, "to_host")
    if copy is False and out is not None:
        raise BufferError("to_host: out= requests a copy, and copy=False forbids one")
    if out is not None:
        if not is_host_readable(out):
            raise ValueError(
                f"to_host: out is on {out.device}; accepted: memory that the host can write."
                f" Call to_device(x, {str(out.device)!r}, out=out)"
            )
        check_out(array, out, "to_host")
        _into(array, array, out, stream, progress)
        return out
    if is_host_readable(array) and not copy:
        return host_view(order_on_stream(array, stream))
    elif copy is False:
        raise BufferError(f"to_host: the memory is on {array.device}, and copy=False forbids the copy to the host")
    return _copy_to_host(array, out, stream, progress)


def _copy_to_host(array, out, stream, progress):
    """Copy `array` to `out`, which was validated, or to new host memory if `out` is None."""
    readable = is_host_readable(array)
    if readable:  # for device memory, the engine makes the copy wait for the producer's work
        array = order_on_stream(array, stream)
    engine = _engine("host" if readable else _engine_name(array.device))
    return _call_with_progress(engine.to_host, progress, array.nbytes, array, out=out, stream=stream)


def _call_with_progress(function, progress, total, *arguments, **options):
    """Call a function that copies `total` bytes. Its `progress` is None or a function that reports to `progress`."""
    if progress is None:  # the context manager would take longer than a small copy
        return function(*arguments, **options)
    from arrayhub.transfer.progress import reporting

    with reporting(progress, total) as report:
        return function(*arguments, **options, progress=report)


def to_device(array, device, *, copy=None, stream=None, progress=None):
    """Return `array` on `device`. See ``arrayhub.to_device``."""
    copy = check_copy(copy, "to_device")
    queue = named_queue(device)
    device = device if isinstance(device, Device) else Device(device)
    there = device == array.device and (queue is None or shares_context(array, queue))
    if queue is not None and not (there and stream is None and queue == queue_of(array)):
        stream = _only(queue, stream)
    if there:
        return _copy(array, stream=stream) if copy else order_on_stream(array, stream)
    target = _engine_name(device)
    if target == "host":
        return to_host(array, copy=copy, stream=stream, progress=progress)
    if device.type in _NO_TARGETS:
        raise BufferError(
            f"to_device: device is {device}; accepted: cpu, cuda and oneapi devices. For pinned or managed memory call"
            f" empty(x.shape, x.dtype, memory={device.type!r}), and pass the result to to_host(x, out=...)"
        )
    if copy is False:
        there = device if queue is None else f"{device} in the context of its queue"
        raise BufferError(
            f"to_device: the transfer from {array.device} to {there} requires a copy, and copy=False forbids one"
        )
    fresh = _engine(target).new_like(array, device.id, stream=stream)
    through_host = not (_is_near(array, target) or is_host_readable(array))
    _call_with_progress(write, progress, array.nbytes * (2 if through_host else 1), fresh, array)
    return fresh


def into(array, out, device, *, copy=None, stream=None, progress=None):
    """Copy `array` to `out`, an array of the same element type on `device`. See ``arrayhub.to_device``."""
    if check_copy(copy, "to_device") is False:
        raise BufferError("to_device: out= requests a copy, and copy=False forbids one")
    given, queue = device, named_queue(device)
    device = device if isinstance(device, Device) else Device(device)
    if out.device != device or (queue is not None and not shares_context(out, queue)):
        raise ValueError(
            f"to_device: out is on {out.device}, and device is {show(given)}; accepted: an array on this device as out"
        )
    if queue is not None:
        stream = _only(queue, stream)
    check_out(array, out, "to_device")
    _into(array, array, out, stream, progress)


def assign(array, out):
    """Copy `array` to the writable array `out` of the same element type, on any two devices.

    `array` is broadcast to the shape of `out`. If the arrays share bytes, the result is the same as with a temporary
    copy.
    """
    check_writable(out, "the array")
    _into(array, broadcast(array, out), out, None, None)


def _into(array, view, out, stream, progress):
    """Copy `array` to `out`, which was validated. `view` is `array`, broadcast to the shape of `out`."""
    if out.nbytes == 0:
        return
    # The bytes between the fields of `out` may be other fields of the producer's records.
    if out.typenum == _VOID and any(end < start for end, start in find_borders(out.dtype)):
        from arrayhub.transfer.progress import reporting

        view = _copy(view, stream=stream) if share_bytes(array, out) else view
        with reporting(progress, out.nbytes):
            for name in out.dtype.names:
                _into(view[name], view[name], out[name], stream, None)
        return
    if is_host_readable(out):
        _copy_to_host(view, out, stream, progress)
        return
    if share_bytes(array, out):
        if view.ptr == out.ptr and (is_packed(out) or view.byte_strides == out.byte_strides):
            return
        array = _copy(array, order="K", stream=stream)
    target = _engine_name(out.device)
    array = _near(array, target)
    _call_with_progress(_engine(target).assign, progress, out.nbytes, array, out, stream=stream)


def write(fresh, source, progress=None):
    """Copy the elements of `source`, on any device, to `fresh`, a new array of the same element type.

    `source` is broadcast to the shape of `fresh`.
    """
    if fresh.nbytes:
        target = "host" if is_host_readable(fresh) else _engine_name(fresh.device)
        _engine(target).assign(_near(source, target, progress), fresh, progress=progress, fresh=True)


def _is_near(array, target):
    """Return whether `array` is in host memory or in memory of the engine `target`."""
    return _ENGINES.get(array.device.type) in ("host", target)


def _near(array, target, progress=None):
    """Return `array` if it is near the engine `target`, else a host view or a host copy."""
    if _is_near(array, target):
        return array
    if is_host_readable(array):
        return host_view(array)
    return _engine(_engine_name(array.device)).to_host(array, progress=progress)


def _only(queue, stream):
    """Return the queue that was passed as the device. Raise BufferError if `stream` is a different queue."""
    if stream is not None and named_queue(stream) != queue:
        raise BufferError(
            f"to_device: stream is {show(stream)}, and device is a different queue; accepted: None or the same queue"
        )
    return queue


def to_memory_of(model, array):
    """Copy host-readable `array` to new memory on the device of `model`.

    The new memory is USM of the same type and on the same queue as `model`, or CUDA device memory.
    """
    if model.usm_type is None:
        return to_device(array, f"cuda:{model.device.id}")
    return _engine("sycl").beside(model, array)


def for_dlpack(array, dl_device, copy, stream):
    """Return the array that ``__dlpack__(dl_device=, copy=)`` exports: `array`, or a copy on the requested device."""
    if dl_device is None:
        return native(array, copy=True) if check_copy(copy, "__dlpack__") else array
    device = _requested_device(dl_device)
    if device == CPU and stream is not None and array.device != CPU:
        raise BufferError(
            f"DLPack: stream is {show(stream)} with dl_device {dl_device}; accepted: None for host memory"
        )
    return to_device(array, device, copy=copy, stream=stream)


def _requested_device(dl_device):
    """Convert a DLPack pair (device_type, device_id) to a `Device`."""
    try:
        if not isinstance(dl_device, (tuple, list)):
            raise TypeError(f"{type(dl_device).__name__} is not a pair")
        return Device(tuple(dl_device))
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"__dlpack__: dl_device is {show(dl_device)}; accepted: a pair of integers (device_type, device_id), such"
            f" as x.__dlpack_device__() ({error})"
        ) from None


def astype(array, dtype):
    """Return a copy of `array` on its device, cast on the host to `dtype` as by ``numpy.ndarray.astype``."""
    made = _engine("host").astype(array if is_host_readable(array) else to_host(array), dtype)
    return made if array.device.type in ("cpu", "cuda_host") else to_memory_of(array, made)


def aligned(array, *, copy=None):
    """Return `array` if its elements are aligned for their type, else an aligned copy. See ``USMArray.aligned``."""
    copy = check_copy(copy, "aligned")
    if copy is not True and array.flags.aligned:
        return array
    if copy is False:
        raise BufferError("aligned: the elements are not aligned, and copy=False forbids an aligned copy")
    return _copy(array)


def native(array, *, copy=None):
    """Return `array`, or a copy in native byte order if its elements are byte-swapped. See ``USMArray.native``."""
    copy = check_copy(copy, "native")
    if array.typenum >= FIRST_OWN_TYPENUM or is_native(array.dtype):  # arrayhub's own types are always in native order
        return _copy(array) if copy else array
    if copy is False:
        raise BufferError(f"native: {array.dtype!r} is byte-swapped, and copy=False forbids a copy in native order")
    if any(end > start for end, start in find_borders(array.dtype)):
        raise TypeError(f"native: fields of {array.dtype!r} overlap; accepted: fields that do not share bytes")
    if not is_host_readable(array):
        raise BufferError(unreadable("native", array.device))
    return _engine("host").astype(host_view(array), array.dtype.newbyteorder("="))


def native_anywhere(array):
    """Return `array`, or a copy in native byte order. The copy of an array on a device is in host memory."""
    swapped = array.typenum < FIRST_OWN_TYPENUM and not is_native(array.dtype)
    return native(to_host(array) if swapped else array)


def copy_for(array, device_type, reads_host):
    """Return a copy for a library that supports devices of type `device_type`, and host memory if `reads_host` is true.

    The copy is on the device of `array` if the library supports it, else in host memory or on the first device.
    """
    if array.device.type == device_type:
        return _copy(array)
    return to_host(array, copy=True) if reads_host else to_device(array, f"{device_type}:0")
