"""Explicit copies, one engine per kind of memory: host, SYCL, CUDA. Nothing here runs unless the caller asked for it.

Every engine has the same five functions. `progress` is None or what transfer/progress.py makes of the caller's.

    to_host(array, order="C", *, out=None, stream=None, progress=None)
        into `out`, which has been checked, or into fresh host memory that is compact in `order`
    from_host(array, ordinal, *, stream=None, progress=None)
        a fresh array on a device of memory that the host can read, of any layout
    to_other(array, ordinal, *, stream=None, progress=None)
        a fresh array on another device of the engine
    copy(array, order, *, stream=None)
        a fresh array on the same device, in the same kind of memory, compact in `order`
    write(fresh, source)
        the elements of an array of the engine or the host, or a single one, into one that nobody has seen yet, of any
        layout; whatever lies between its elements is overwritten
"""

import sys
from typing import Any

from arrayhub._core.copying import wanted
from arrayhub._core.device import CPU, Device
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, is_native, shares_bytes
from arrayhub._core.errors import show
from arrayhub.runtimes.host import host_view, is_host_readable
from arrayhub.runtimes.streams import ordered
from arrayhub.runtimes.sycl import named_queue, queue_of_array, shares_context
from arrayhub.transfer import host
from arrayhub.transfer import out as outs
from arrayhub.transfer.progress import reporting
from arrayhub.transfer.settings import configure
from arrayhub.transfer.told import Told

__all__ = ["configure", "held", "release"]


def __dir__():
    return __all__


# One row per device type: the engine that copies from and to its memory.
_ENGINES = {"cpu": "host", "oneapi": "sycl", "cuda": "cuda", "cuda_host": "cuda", "cuda_managed": "cuda"}

# The modules of the engines that somebody has asked for. Those of devices are imported once there is an array there.
_loaded: dict[str, Any] = {"host": host}

# One row per pair of engines: what brings an array from one's memory to a device of the other. All but the last happen
# in the engine that it comes from, the last in the one that it goes to.
_ROUTES = {
    ("host", "sycl"): ("from_host",),
    ("host", "cuda"): ("from_host",),
    ("sycl", "sycl"): ("to_other",),
    ("cuda", "cuda"): ("to_other",),
    ("sycl", "cuda"): ("to_host", "from_host"),
    ("cuda", "sycl"): ("to_host", "from_host"),
}

# Kinds of memory that only their own library allocates.
_NO_TARGETS = ("cuda_host", "cuda_managed")

# One row per kind of memory that is kept between copies: the module that keeps it.
_POOLS = {"pinned": "arrayhub.transfer.pinned"}


def held():
    """Return how many bytes are kept for the next copies, by kind of memory.

    Returns
    -------
    dict
        ``"pinned"``: pinned host memory for CUDA, at most ``buffers * chunk`` bytes of the settings (`configure`); 0
        until the first copy that needs it. Host and SYCL copies keep nothing.
    """
    return {kind: sys.modules[module].held() if module in sys.modules else 0 for kind, module in _POOLS.items()}


def release():
    """Give back what `held` counts. Copies under way keep what they use until they are done."""
    for module in _POOLS.values():
        if module in sys.modules:
            sys.modules[module].release()


def _engine_name(device):
    try:
        return _ENGINES[device.type]
    except KeyError:
        raise BufferError(
            f"device {device}: no engine copies from or to it; accepted: cpu, cuda and oneapi devices"
        ) from None


def _engine(name):
    """The module of an engine, or what tells of its copies."""
    engine = _loaded.get(name)
    if engine is None:
        engine = _imported(name)
        engine = _loaded.setdefault(name, Told(engine) if isinstance(_loaded["host"], Told) else engine)
    return engine


def _imported(name):
    if name == "sycl":
        from arrayhub.transfer import sycl

        return sycl
    from arrayhub.transfer import cuda

    return cuda


def tell(wanted):
    """Say whether copies are told of from now on; those under way go on as they began."""
    for name, engine in _loaded.items():
        bare = engine.engine if isinstance(engine, Told) else engine
        _loaded[name] = Told(bare) if wanted else bare


def copy(array, *, order="C", stream=None):
    """Return a writable copy of `array` on its own device, in the order of `stream`. See ``USMArray.copy``."""
    if order not in ("C", "F", "K"):
        raise ValueError(f"copy: order is {show(order)}; accepted: 'C', 'F' or 'K'")
    return _engine(_engine_name(array.device)).copy(ordered(array, stream), order, stream=stream)


_copy = copy


def to_host(array, *, out=None, copy=None, stream=None, progress=None):
    """Return `array` in host memory. See ``arrayhub.to_host``."""
    copy = wanted(copy, "to_host")
    readable = is_host_readable(array)
    if readable:  # of other memory the engine orders the copy
        array = ordered(array, stream)
    if copy is False and out is not None:
        raise BufferError("to_host: out= asks for a copy, and copy=False forbids one")
    if out is not None:
        outs.check(array, out)
    elif readable and not copy:
        return host_view(array)
    elif copy is False:
        raise BufferError(f"to_host: the memory is on {array.device}, so a copy is needed, and copy=False forbids one")
    engine = _loaded["host"] if readable else _engine(_engine_name(array.device))
    if progress is None:  # which a small copy should not pay for
        return engine.to_host(array, out=out, stream=stream)
    with reporting(progress, array.nbytes) as report:
        return engine.to_host(array, out=out, stream=stream, progress=report)


def to_device(array, device, *, copy=None, stream=None, progress=None):
    """Return `array` on `device`. See ``arrayhub.to_device``."""
    copy = wanted(copy, "to_device")
    queue = named_queue(device)
    device = device if isinstance(device, Device) else Device(device)
    there = device == array.device and (queue is None or shares_context(array, queue))
    if queue is not None and not (there and stream is None and queue == queue_of_array(array)):
        stream = _only(queue, stream)
    if there:
        return _copy(array, stream=stream) if copy else ordered(array, stream)
    target = _engine_name(device)
    if target == "host":
        return to_host(array, copy=copy, stream=stream, progress=progress)
    if device.type in _NO_TARGETS:
        raise BufferError(
            f"to_device: {device} is memory that only its own library allocates; allocate it there and give it as"
            " to_host(x, out=...), or name a cuda device"
        )
    if copy is False:
        there = device if queue is None else f"{device} in the context of its queue"
        raise BufferError(f"to_device: from {array.device} to {there} takes a copy, and copy=False forbids one")
    elsewhere = _ENGINES.get(array.device.type) != target
    source = "host" if elsewhere and is_host_readable(array) else _engine_name(array.device)
    *to_there, last = _ROUTES[source, target]
    with reporting(progress, array.nbytes * (len(to_there) + 1)) as report:
        for function in to_there:
            array = getattr(_engine(source), function)(array, progress=report)
        return getattr(_engine(target), last)(array, device.id, stream=stream, progress=report)


def _only(queue, stream):
    """The queue that says where to, which is the stream as well, unless another one is given as that."""
    if stream is not None and named_queue(stream) != queue:
        raise BufferError(
            f"to_device: stream is {show(stream)}, another than the queue that says where to; accepted: one of the two"
        )
    return queue


def to_memory_of(model, array):
    """Return a copy of host-readable `array` in the kind of memory that `model` is in, on its queue or device."""
    if model.usm_type is None:
        return to_device(array, f"cuda:{model.device.id}")
    return _engine("sycl").beside(model, array)


def write(fresh, source):
    """Put the elements of `source` into `fresh`, an array of the same element type that nobody else has seen yet.

    `source` may lie anywhere, and may be a single element.
    """
    if fresh.size == 0:
        return
    target = "host" if is_host_readable(fresh) else _engine_name(fresh.device)
    near = _ENGINES.get(source.device.type) == target != "host"
    _engine(target).write(fresh, source if near else to_host(source))


def for_dlpack(array, dl_device, copy, stream):
    """Return what ``__dlpack__(dl_device=, copy=)`` exports: `array`, or a copy where asked for or needed."""
    if dl_device is None:
        return _copy(array) if wanted(copy, "__dlpack__") else array
    device = _asked_device(dl_device)
    if device == CPU and stream is not None and array.device != CPU:
        raise BufferError(
            f"DLPack: stream is {show(stream)} with dl_device {dl_device}; accepted: None for host memory"
        )
    return to_device(array, device, copy=copy, stream=stream)


def _asked_device(dl_device):
    """The device that a consumer names by DLPack's pair, and by nothing else."""
    if not isinstance(dl_device, (tuple, list)):
        raise TypeError(_no_pair(dl_device))
    try:
        return Device(tuple(dl_device))
    except TypeError as error:
        raise TypeError(f"{_no_pair(dl_device)} ({error})") from None
    except ValueError as error:
        raise ValueError(f"{_no_pair(dl_device)} ({error})") from None


def _no_pair(dl_device):
    return (
        f"__dlpack__: dl_device is {show(dl_device)}; accepted: a pair of integers, (device_type, device_id), as"
        " x.__dlpack_device__() gives"
    )


def astype(array, dtype):
    """Return a fresh host copy with another element type; the elements are converted as NumPy's astype does."""
    if not is_host_readable(array):
        raise BufferError(
            f"asarray: converting {array.dtype!r} to {dtype!r} on {array.device} is arithmetic of its own library;"
            " convert there, or call to_host(x) first"
        )
    return _loaded["host"].astype(array, dtype)


def aligned(array, *, copy=None):
    """Return `array` with each element on a boundary of its type's alignment. See ``USMArray.aligned``."""
    copy = wanted(copy, "aligned")
    if copy is not True and array.flags.aligned:
        return array
    if copy is False:
        raise BufferError("aligned: the elements lie unaligned, so a copy is needed, and copy=False forbids one")
    return _copy(array)


def native(array, *, copy=None):
    """Return `array` with its elements in the machine's byte order. See ``USMArray.native``."""
    copy = wanted(copy, "native")
    if array.typenum >= FIRST_OWN_TYPENUM or is_native(array.dtype):  # our own types come in the machine's order only
        return _copy(array) if copy else array
    if copy is False:
        raise BufferError(f"native: from {array.dtype!r} takes a copy, and copy=False forbids one")
    if shares_bytes(array.dtype):
        raise TypeError(
            f"native: fields of {array.dtype!r} share bytes; accepted: fields that can be swapped one by one"
        )
    if not is_host_readable(array):
        raise BufferError(f"native: the memory is on {array.device}; call to_host() first, for the host to swap them")
    return _loaded["host"].astype(host_view(array), array.dtype.newbyteorder("="))


def copy_for(array, device_type):
    """Return a copy that a library can read which knows the host and one device type: there if it is there already."""
    return _copy(array) if array.device.type == device_type else to_host(array, copy=True)


def copy_to(array, device_type):
    """Return a copy for a library that knows one device type only."""
    return _copy(array) if array.device.type == device_type else to_device(array, f"{device_type}:0")
