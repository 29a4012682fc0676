"""Copy engine for CUDA memory: copies from, to and between devices.

The engine copies elements of any type as words of 1 to 16 bytes. Bytes between the elements of the target are not
written. Each copy waits for the work on the producer's stream. No copy synchronizes a complete device.

========================================  ==============================================================================
small arrays, or no pinned memory         copy by the driver; if the elements are few, the host reorders them
up to 1 MiB to the host, reordered        a kernel stores the elements in pinned memory, and the host copies them
host memory that the device can access    direct copy, in pieces on one stream
other host memory                         through the pool of pinned memory, by several threads (cuda_copies.pyx)
========================================  ==============================================================================

In all other copies between different layouts, a kernel that cupy compiles reorders the elements on the device. The
kernel processes one piece at a time to limit the additional device memory. Without cupy, only the host can reorder
elements, before a copy to contiguous device memory.
"""

import contextlib
import warnings

import numpy

from arrayhub._core.descriptor import HUGE_PAGE, PAGE, empty_like, slowest_first
from arrayhub._core.errors import needed
from arrayhub.libraries.cupy import on_memory
from arrayhub.runtimes.cuda import (
    ALLOCATORS,
    LEGACY_STREAM,
    NO_STREAM,
    PER_THREAD_STREAM,
    allow_peer,
    copying_stream,
    order_streams,
    refuse_capture,
    stream_handle,
    wait_for_stream,
    wait_interruptibly,
    waiting_stream,
)
from arrayhub.transfer import cuda_kernel, host, pinned, settings
from arrayhub.transfer.cuda_copies import (
    GATHERED,
    MAX_SLOTS,
    ONE_PIECE,
    PAGEABLE,
    SMALL_COPY,
    UNINTERRUPTED_COPY,
    Lane,
    Route,
    at_once,
    copy_by,
    copy_by_lanes,
    copy_straight,
    fetch_by,
    hold_producers,
    is_device_reachable,
    need_device,
    queue_piece,
)
from arrayhub.transfer.host_copies import broadcast, host_view

_LEAST_PIECE = 64 << 10  # bytes
_A_LANE = 1 << 20  # minimum bytes per lane; smaller copies use fewer lanes
_THREADED = 3 << 20  # bytes; below this size, copies that reorder elements are as fast on one thread as on several


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy CUDA memory to `out`, or to new host memory that is contiguous in `order`.

    The copy is complete on return, with one exception: with `stream` and an `out` that the device can access (pinned or
    managed memory), the copy is only queued on the stream. The caller must then keep both arrays alive and unchanged
    until the copy is complete.

    Raises
    ------
    BufferError
        The device does not exist, or the producer's stream is being captured into a graph.
    MemoryError
        The allocation on the host or the device failed.
    """
    near = empty_like(array, order) if out is None else out
    queued_only = out is not None and stream is not None and stream_handle(stream) != NO_STREAM
    if array.nbytes == 0 or (not queued_only and at_once(near, array, stream)):
        return near
    ordinal = array.device.id
    need_device(ordinal)
    route = Route(near, array)
    reading = copying_stream(array, stream)
    if out is not None and is_device_reachable(out):
        _on_stream(route, True, ordinal, reading, progress, queued_only)
    elif route.straight or not _fetch_small(route, ordinal, reading):
        _through_pinned(route, True, ordinal, reading, progress)
    return near


def new_like(array, ordinal, *, stream=None):
    """Allocate device memory, in stream order on `stream` or on cupy's current stream.

    Raises
    ------
    BufferError
        The device does not exist.
    cupy.cuda.memory.OutOfMemoryError
        The allocation on the device failed. This is a subclass of MemoryError.
    """
    need_device(ordinal)  # before the import, because without a device, the error should not be about cupy
    cupy = needed("cupy", "to copy to a CUDA device")
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    with _on(cupy, ordinal, stream):
        return on_memory(array, _memory(cupy, "cuda", array.nbytes), order)


def copy(array, order, *, stream=None):
    """Return a copy on the same device, in the same kind of memory, contiguous in `order`.

    The host waits for the copy in two cases: the memory is pinned host memory, or the producer's stream is unknown.
    Without the wait, a producer on an unknown stream could free or overwrite the memory during the copy.
    """
    cupy = needed("cupy", "to copy CUDA memory")
    is_pinned = array.device.type == "cuda_host"
    ordinal = cupy.cuda.runtime.getDevice() if is_pinned else array.device.id
    need_device(ordinal)
    with _on(cupy, ordinal, stream):
        fresh = on_memory(array, _memory(cupy, array.device.type, array.nbytes), order)
    if is_pinned:
        host.assign(array, fresh)
    elif array.nbytes:
        assign(array, fresh, fresh=True)
    return fresh


def assign(array, out, *, stream=None, progress=None, fresh=False):
    """Copy an array on the host or a CUDA device, broadcast to the shape of `out`, to the device memory `out`.

    The copy is ordered after the work of both producers, and later work of both producers is ordered after the copy.
    A copy between two devices is complete on return, and so is a copy from host memory. Bytes between the elements of
    `out` are not written. If `fresh` is true, the copy is made on the stream in which `out` was allocated.
    """
    stream = None if fresh else stream
    if copy_straight(array, out, stream):
        return
    ordinal = out.device.id
    need_device(ordinal)
    writing = copying_stream(out, stream)
    if array.device != out.device:
        # Without cupy, the host repeats the elements.
        is_whole = array.size == out.size or not cuda_kernel.is_available()
        if is_whole and _transfer(broadcast(array, out), out, writing, progress):
            return
        # The elements cross the bus once, in one run, and are repeated or reordered on the device of `out`.
        source, array = array, new_like(array, ordinal, stream=writing)
        _transfer(source, array, writing, None)
    array = broadcast(array, out)
    route = Route(out, array)
    kernel = 0 if route.straight else cuda_kernel.handle(route.word, ordinal)
    copying_stream(array, writing)
    queue_piece(route, True, 0, route.words, writing, ordinal, kernel, 0)
    hold_producers(writing, array, out)


# ------------------------------------------------------------------------------------------------------- strategies


def _transfer(array, out, writing, progress):
    """Copy an array in host memory or on another device to `out`, which has the same shape.

    `writing` is the handle of a stream of the device of `out` that is ordered after the pending work on `out`. The copy
    is complete on return. Between two devices, the elements cross the bus in one run, and the device of the array that
    is not contiguous reorders them. If neither array is contiguous, return False without a copy, else True.
    """
    if array.device.type != "cuda":
        _upload(host_view(array), out, writing, progress)
        return True
    source, target = array.device.id, out.device.id
    allow_peer(source, target)
    allow_peer(target, source)
    route = Route(out, array)
    gathers = route.host_runs
    if not gathers:
        route = Route(array, out)
        if not route.host_runs:
            return False
    reading = copying_stream(array, None)
    if gathers:
        order_streams(writing, reading, target, source)
        _on_stream(route, True, source, reading, progress)
    else:
        order_streams(reading, writing, source, target)
        _on_stream(route, False, target, writing, progress)
    return True


def _upload(array, out, stream, progress):
    """Copy host memory to a device. The copy is complete on return."""
    if copy_straight(array, out, stream):
        return
    route = Route(array, out)
    if out.flags.c_contiguous and _is_faster_gathered_on_host(array, route):
        _in_one_piece(array, out, out.device.id, stream)
        return
    if not route.straight and out.flags.c_contiguous and not cuda_kernel.is_available():
        array = host.copy(array, "C")
        route = Route(array, out)
    copy_between = _on_stream if is_device_reachable(array) else _through_pinned
    copy_between(route, False, out.device.id, stream, progress)


def _fetch_small(route, ordinal, stream):
    """Copy a small device array to a host array of a different layout through pinned memory.

    Return False, without a copy, if the array is too large, or if the pool is in use or cannot allocate memory.
    """
    nbytes = route.words * route.word
    if nbytes > ONE_PIECE:
        return False
    kernel = 0 if route.device_runs else cuda_kernel.handle(route.word, ordinal)
    pool = pinned.pool
    wait_interruptibly(stream, ordinal)  # before acquiring the pool, which other copies need
    if pool.lock.locked():  # possibly by a long copy, or by this thread
        return False
    with pool.in_use():
        block = pool.memory(nbytes, ordinal)
        if block is not None:
            fetch_by(block, route, stream, ordinal, kernel)
        return block is not None


def _is_faster_gathered_on_host(array, route):
    """Return whether the host should gather a small array with gaps in the order of the target.

    Otherwise the host gathers the elements in the order of the source, and the device reorders them. If the dimensions
    are not in C order, gathering is slower, because lines of the source may share sets of the host's caches.
    """
    if route.host_runs or array.nbytes > min(ONE_PIECE, pinned.bound()):
        return False
    in_order = slowest_first(array) == [*range(array.ndim)]
    return array.size <= (GATHERED if in_order else GATHERED // 4)


def _in_one_piece(array, out, ordinal, stream):
    """Copy a small host array to a C-contiguous array on a device through a temporary host array."""
    if array.nbytes > PAGEABLE and not pinned.pool.is_mine():
        wait_interruptibly(stream, ordinal)  # before acquiring the pool, which other copies need
        with pinned.pool.in_use():
            copy_by(pinned.pool.memory(array.nbytes, ordinal), array, out, stream)
    else:
        copy_by(None, array, out, stream)


def _on_stream(route, to_host, ordinal, stream, progress, queued_only=False):
    """Copy between a device and memory that the device can access, in pieces on `stream`.

    Words that the kernel reorders pass through a bounded staging buffer on the device. If there are several pieces, two
    streams alternate, each with half of the buffer: the kernel reorders one piece while another one crosses the bus.
    """
    detour = route.host_runs and not route.straight
    # A stream cannot be synchronized during capture, and the graph would keep the address of released memory.
    if detour or not queued_only:
        refuse_capture(stream, ordinal)
    nbytes = route.words * route.word
    if not queued_only and nbytes >= SMALL_COPY:
        wait_interruptibly(stream, ordinal)  # for the producer's work
    most = settings.chunk() if detour else UNINTERRUPTED_COPY
    streams = [stream]
    if detour and nbytes > most and not queued_only:
        streams.append(waiting_stream(ordinal, stream))
    piece = min(most // len(streams), nbytes) // route.word
    kernel = 0 if route.straight else cuda_kernel.handle(route.word, ordinal)
    start = 0
    if detour:
        staging = _staging(piece * len(streams) * route.word, ordinal, stream)
        start = staging.ptr
    order_streams(stream, streams[-1], ordinal)
    since = turn = 0
    try:
        for first in range(0, route.words, piece):
            words = min(piece, route.words - first)
            place = start + turn * piece * route.word
            queue_piece(route, to_host, first, words, streams[turn], ordinal, kernel, place)
            turn = (turn + 1) % len(streams)
            since += words * route.word
            if not queued_only and (since >= UNINTERRUPTED_COPY or first + words == route.words):
                for each in streams:
                    wait_for_stream(each, ordinal)
                if progress is not None:
                    progress(since)
                since = 0
    finally:
        order_streams(streams[-1], stream, ordinal)  # before the buffer is freed, in stream order on `stream`


def _through_pinned(route, to_host, ordinal, stream, progress):
    """Copy between a device and any host memory. Use pinned memory if this is possible and faster."""
    nbytes = route.words * route.word
    straight = route.straight
    if route.host_runs and nbytes < _THREADED:  # reordered on the device, and transferred by the driver
        _on_stream(route, to_host, ordinal, stream, progress)
        return
    pool = pinned.pool
    mine = pool.is_mine()
    if not straight or (nbytes >= SMALL_COPY and not mine):
        wait_interruptibly(stream, ordinal)  # before acquiring the pool, which other copies need
    if not mine and (nbytes >= SMALL_COPY or not straight):
        with pool.in_use():
            lanes, slots, piece = _cut(nbytes, settings.threads())
            block = pool.memory(lanes * slots * piece, ordinal)
            if block is not None:
                lanes = pool.lanes_on(ordinal, lanes)
                _by_lanes(route, to_host, ordinal, stream, progress, block.address, lanes, slots, piece)
                return
    if straight:
        _on_stream(route, to_host, ordinal, stream, progress)
    else:
        memory = numpy.empty(2 * SMALL_COPY, numpy.uint8)
        _by_lanes(route, to_host, ordinal, stream, progress, memory.ctypes.data, [Lane(ordinal)], 2, SMALL_COPY)


def _by_lanes(route, to_host, ordinal, stream, progress, memory, lanes, slots, piece):
    """Copy with `copy_by_lanes`. `memory` is the address of the slots of all lanes. Each slot has `piece` bytes."""
    words = piece // route.word
    threaded = route.words * route.word >= _THREADED
    kernel = place = 0
    if not route.device_runs:
        kernel = cuda_kernel.handle(route.word, ordinal)
        staging = _staging(len(lanes) * words * route.word, ordinal, stream)
        place = staging.ptr
        wait_interruptibly(stream, ordinal)  # cupy's pool allocates in stream order, and lanes use other streams
    copy_by_lanes(route, to_host, words, slots, kernel, lanes, memory, place, progress, threaded)


def _cut(nbytes, threads):
    """Return the number of lanes, the slots per lane and the bytes per slot of a copy, within the limit of the pool."""
    chunk = settings.chunk()
    slots = min(settings.buffers(), MAX_SLOTS)
    lanes = max(1, min(threads, nbytes // _A_LANE, chunk // _LEAST_PIECE))
    piece = max(_LEAST_PIECE, min(chunk // lanes, -(-nbytes // (lanes * 2))))
    page = HUGE_PAGE if piece >= HUGE_PAGE else PAGE
    return lanes, slots, piece // page * page


def _staging(nbytes, ordinal, stream):
    """Return a device buffer for words that the kernel reorders, allocated in stream order on `stream`."""
    cupy = needed("cupy", "to rearrange the elements of CUDA memory on the device")
    with _on(cupy, ordinal, stream):
        return cupy.cuda.alloc(nbytes)


# ------------------------------------------------------------------------------------------ devices, streams, memory


def _memory(cupy, kind, nbytes):
    """Allocate memory of the device type `kind` on the current device, in stream order on cupy's current stream."""
    return getattr(cupy.cuda, ALLOCATORS[kind])(max(nbytes, 1))


def _on(cupy, ordinal, stream):
    """Return a context manager that makes a device and a stream current. None and -1 keep the current stream."""
    number = NO_STREAM if stream is None else stream_handle(stream)
    is_current = cupy.cuda.runtime.getDevice() == ordinal
    if number == NO_STREAM or (is_current and number == (cupy.cuda.get_current_stream().ptr or LEGACY_STREAM)):
        return contextlib.nullcontext() if is_current else cupy.cuda.Device(ordinal)
    return _enter_stream(cupy, ordinal, number, stream)


@contextlib.contextmanager
def _enter_stream(cupy, ordinal, number, stream):
    """Make a device and a stream current.

    cupy 14 deprecates ``ExternalStream`` in favor of ``Stream.from_external``, whose result destroys the stream when it
    is deallocated.
    """
    with cupy.cuda.Device(ordinal):
        chosen = {LEGACY_STREAM: cupy.cuda.Stream.null, PER_THREAD_STREAM: cupy.cuda.Stream.ptds}.get(number)
        if chosen is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                chosen = cupy.cuda.ExternalStream(number, ordinal)
            chosen.owner = stream  # arrays on this stream keep `chosen` alive, and thereby the owner of the handle
        with chosen:
            yield
