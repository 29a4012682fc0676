"""Copies to, from, on and between CUDA devices.

Of any element type: the copies move words, not numbers, and only those that the array reaches. Each is ordered behind
the producer's work, on whichever stream that is, and no device is ever waited for as a whole.

========================================  ==============================================================================
small, or no pinned memory to be had      the driver's own copy
host memory that the device reaches       straight there, in pieces of one stream
any other                                 through the pool of pinned memory, by several threads (transfer/cuda_lanes)
========================================  ==============================================================================

Where the device's elements do not lie in the order of the host's addresses, a kernel sorts them on the device, a piece
at a time, so that the extra memory there is bounded too. Should a cupy give no handle of the kernel, its own assignment
puts all of them in order first.
"""

import contextlib
import warnings

import numpy

from arrayhub._core.errors import needed
from arrayhub._core.fresh import empty_like, slowest_first
from arrayhub._core.memory import HUGE_PAGE, PAGE
from arrayhub.libraries.cupy import as_words, on_memory
from arrayhub.libraries.numpy import raw
from arrayhub.runtimes.cuda import stream_number
from arrayhub.runtimes.host import host_view
from arrayhub.transfer import cuda_kernel, host, pinned, settings
from arrayhub.transfer.cuda_lanes import MOST_SLOTS, Lane, copy_by, copy_by_lanes
from arrayhub.transfer.cuda_route import Route
from arrayhub.transfer.cuda_stream import (
    SMALL_COPY,
    allow_peer,
    at_once,
    hold_producer,
    is_device_reachable,
    need_device,
    order_behind,
    own_stream,
    queue_piece,
    reading_stream,
    refuse_capture,
    wait,
    wait_for_piece,
)

_LEGACY, _PER_THREAD, _NO_STREAM = 1, 2, -1
_LEAST_PIECE = 64 << 10  # bytes
_A_LANE = 1 << 20  # bytes that are worth a lane
_ONE_PIECE = 512 << 10  # bytes that the host puts in order as a whole before they cross, if as many may be pinned
_FEW = 24 << 10  # elements
_PAGEABLE = 64 << 10  # bytes that the driver takes out of any memory at once
_THREADED = 3 << 20  # bytes of a copy whose elements the device sorts, or the host: fewer take as long on one thread
_UNINTERRUPTED = 256 << 20  # bytes on one stream between two looks at the outer world: some 5 ms


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Return CUDA memory in host memory: in `out`, or in fresh memory that is compact in `order`.

    The copy is complete on return; except with `stream` into pinned `out`: then it is only queued on that stream, and
    both arrays must be kept, and not written, until the stream is done with it.

    Raises
    ------
    BufferError
        There is no such device, or the producer's work is being captured into a graph.
    MemoryError
        The host's memory or the device's does not suffice.
    """
    near = empty_like(array, order) if out is None else out
    queued_only = out is not None and stream is not None and stream_number(stream) != _NO_STREAM
    if array.nbytes == 0 or (not queued_only and at_once(near, array, stream, True)):
        return near
    ordinal = array.device.id
    need_device(ordinal)
    route = Route(near, array)
    if _is_unsortable(route):
        host.move(raw(near, writable=True), raw(to_host(_in_order(array, stream), stream=stream)), progress)
        return near
    reading = reading_stream(array, stream)
    if out is not None and is_device_reachable(out):
        _on_stream(route, True, ordinal, reading, queued_only, progress)
    else:
        _through_pinned(route, True, ordinal, reading, progress)
    return near


def from_host(array, ordinal, *, stream=None, progress=None):
    """Return a copy on a device of an array that the host can read. That array may be written again at once.

    The copy is in Fortran order where only that makes the array contiguous, else in C order.

    Raises
    ------
    BufferError
        There is no such device.
    cupy.cuda.memory.OutOfMemoryError
        Its memory does not suffice (a MemoryError).
    """
    cupy = needed("cupy", "to copy to a CUDA device")
    need_device(ordinal)
    array = host_view(array)
    with _on(cupy, ordinal, stream) as current:
        fresh = _like(cupy, array)
        if array.nbytes == 0 or at_once(array, fresh, current, False):
            return fresh
        route = Route(array, fresh)
        if _is_quicker_sorted_here(array, route):
            _in_one_piece(array, fresh, ordinal, current)
            return fresh
        if _is_unsortable(route):
            array = host.copy(array, "C")  # as `fresh` lies
            route = Route(array, fresh)
        if is_device_reachable(array):
            _on_stream(route, False, ordinal, _number(current), False, progress)
        else:
            _through_pinned(route, False, ordinal, _number(current), progress)
    return fresh


def to_other(array, ordinal, *, stream=None, progress=None):
    """Return a copy on another device, complete on return. It goes from device to device where the machine can do that.

    The layout is that of `from_host`.
    """
    if array.device.type == "cuda_host":
        return from_host(array, ordinal, stream=stream, progress=progress)
    cupy = needed("cupy", "to copy to a CUDA device")
    source = array.device.id
    need_device(ordinal)
    need_device(source)
    with _on(cupy, ordinal, stream) as current:
        fresh = _like(cupy, array)
        if array.nbytes:
            allow_peer(source, ordinal)
            copying = own_stream(source)
            route = Route(fresh, array)
            if _is_unsortable(route):
                array = _in_order(array, None)
                route = Route(fresh, array)
            order_behind(reading_stream(array, None), copying, source)
            order_behind(_number(current), copying, ordinal)
            _on_stream(route, True, source, copying, False, progress)
    return fresh


def copy(array, order, *, stream=None):
    """Return a copy on the same device, in the same kind of memory, compact in `order`.

    The host waits for it only where the memory is the host's own (pinned), or the producer's stream is not known: it
    could free or write the memory meanwhile.
    """
    cupy = needed("cupy", "to copy CUDA memory")
    ordinal = _ordinal(cupy, array)
    need_device(ordinal)
    with _on(cupy, ordinal, stream) as current:
        memory = _memory(cupy, array.device.type, array.nbytes)
        fresh = on_memory(array, memory, order)
        if array.device.type == "cuda_host":
            host.move(raw(fresh, writable=True), raw(array))
        elif array.nbytes:
            route = Route(fresh, array)
            if _is_unsortable(route):
                write(fresh, array, stream)
                return fresh
            kernel = 0 if route.straight else cuda_kernel.handle(route.word)
            reading = reading_stream(array, _number(current))
            queue_piece(route, True, 0, route.words, reading, ordinal, kernel, 0)
            hold_producer(array, reading)
        return fresh


def write(fresh, source, stream=None):
    """Put the elements of `source`, on a CUDA device or the host, into a fresh array. The host waits as in `copy`."""
    cupy = needed("cupy", "to copy to a CUDA device")
    axes = slowest_first(fresh)
    with _on(cupy, _ordinal(cupy, fresh), stream) as current:
        words = as_words(fresh, axes)
        if source.device.type == "cuda":
            given = as_words(source, axes, words.itemsize)
            words = as_words(fresh, axes, given.itemsize)
        else:
            items = raw(host.copy(source, "C"))
            given = cupy.asarray(items.reshape(*items.shape, 1).view(words.dtype))
            given = given.transpose(*axes, len(axes)) if source.ndim else given
        words[...] = given
        if source.device == fresh.device:
            hold_producer(source, _number(current))


def _is_unsortable(route):
    """Whether a kernel would have to sort, and there is none."""
    return not (route.straight or cuda_kernel.is_there())


def _in_order(array, stream):
    """A C-contiguous copy on the same device, by cupy's own assignment."""
    cupy = needed("cupy", "to copy CUDA memory")
    with _on(cupy, array.device.id, stream):
        fresh = on_memory(array, _memory(cupy, "cuda", array.nbytes), "C")
    write(fresh, array, stream)
    return fresh


# -------------------------------------------------------------------------------------------------------- the ways


def _is_quicker_sorted_here(array, route):
    """Whether the host puts the elements of a small array in order before they cross, and not the device afterwards.

    They lie in the order of the target then, and have gaps or are few. Reversed ones without gaps cross as they lie.
    """
    if array.nbytes > min(_ONE_PIECE, pinned.bound()) or (route.host_runs and array.size > _FEW):
        return False
    return slowest_first(array) == [*range(array.ndim)]


def _in_one_piece(array, fresh, ordinal, stream):
    """Copy a small array of the host's to a device, from other memory where its elements lie as in `fresh`."""
    if array.nbytes > _PAGEABLE and not pinned.pool.is_mine():
        wait(_number(stream), ordinal)  # before anybody else waits for the pool; Ctrl-C ends it
        with pinned.pool.in_use():
            block = pinned.pool.memory(array.nbytes, ordinal)
            if block is not None:
                copy_by(block, array, fresh, stream)
                return
    at_once(host.copy(array, "C"), fresh, stream, False)


def _on_stream(route, to_host, ordinal, stream, queued_only, progress):
    """Copy to or from memory that the device reaches itself, in pieces on one stream; sorted by a bounded detour."""
    sorting = not route.straight
    detour = sorting and route.host_runs
    # A graph cannot be waited for, and would keep the address of memory that is given back.
    if detour or not queued_only:
        refuse_capture(stream, ordinal)
    if not queued_only and route.words * route.word >= SMALL_COPY:
        wait(stream, ordinal)  # Ctrl-C ends this, however long the producer works
    piece = min(settings.chunk() if detour else _UNINTERRUPTED, route.words * route.word) // route.word
    kernel, staging = _sorting(route, ordinal, stream, piece if detour else 0) if sorting else (0, _Nowhere)
    since = 0
    for first in range(0, route.words, piece):
        words = min(piece, route.words - first)
        queue_piece(route, to_host, first, words, stream, ordinal, kernel, staging.ptr)
        since += words * route.word
        if not queued_only and (since >= _UNINTERRUPTED or first + words == route.words):
            wait_for_piece(stream, ordinal)
            if progress is not None:
                progress.update(since)
            since = 0


def _through_pinned(route, to_host, ordinal, stream, progress):
    """Copy to or from any host memory; the driver's own copy where pinned memory would not help or cannot be had."""
    nbytes = route.words * route.word
    straight = route.straight
    if route.host_runs and nbytes < _THREADED:  # sorted on the device, and across by the driver's own copy
        _on_stream(route, to_host, ordinal, stream, False, progress)
        return
    pool = pinned.pool
    mine = pool.is_mine()
    if not straight or (nbytes >= SMALL_COPY and not mine):
        wait(stream, ordinal)  # before anybody else waits for the pool; Ctrl-C ends it
    if not mine and (nbytes >= SMALL_COPY or not straight):
        with pool.in_use():
            lanes, slots, piece = _cut(nbytes, settings.threads())
            block = pool.memory(lanes * slots * piece, ordinal)
            if block is not None:
                lanes = pool.lanes_on(ordinal, lanes)
                _by_lanes(route, to_host, ordinal, stream, progress, block.address, lanes, slots, piece)
                return
    if straight:
        _on_stream(route, to_host, ordinal, stream, False, progress)
    else:
        memory = numpy.empty(2 * SMALL_COPY, numpy.uint8)
        _by_lanes(route, to_host, ordinal, stream, progress, memory.ctypes.data, [Lane(ordinal)], 2, SMALL_COPY)


def _by_lanes(route, to_host, ordinal, stream, progress, memory, lanes, slots, piece):
    """Copy by lanes whose slots, of `piece` bytes each, lie one after the other in host memory."""
    words = piece // route.word
    report = None if progress is None else progress.update
    threaded = route.words * route.word >= _THREADED
    kernel, staging = 0, _Nowhere
    if not route.device_runs:
        kernel, staging = _sorting(route, ordinal, stream, len(lanes) * words)
        wait(stream, ordinal)  # the memory is free in the order of the stream only, where others may have work on it
    copy_by_lanes(route, to_host, words, slots, kernel, lanes, memory, staging.ptr, report, threaded)


def _cut(nbytes, threads):
    """Return how many lanes share a copy, the slots of each and the bytes of a slot, all within the pool's bound."""
    chunk = settings.chunk()
    slots = min(settings.buffers(), MOST_SLOTS)
    lanes = max(1, min(threads, nbytes // _A_LANE, chunk // _LEAST_PIECE))
    piece = max(_LEAST_PIECE, min(chunk // lanes, -(-nbytes // (lanes * 2))))
    page = HUGE_PAGE if piece >= HUGE_PAGE else PAGE
    return lanes, slots, piece // page * page


class _Nowhere:
    """In the place of memory, where none is needed."""

    ptr = 0


def _sorting(route, ordinal, stream, words):
    """Return the kernel that sorts the route's words, and memory for `words` of them on the device.

    It is free in the order of the stream.
    """
    cupy = needed("cupy", "to sort the elements of CUDA memory on the device")
    with _on(cupy, ordinal, stream):
        return cuda_kernel.handle(route.word), cupy.cuda.alloc(words * route.word) if words else _Nowhere


# ------------------------------------------------------------------------------------------ devices, streams, memory


_ALLOCATORS = {"cuda": "alloc", "cuda_managed": "malloc_managed", "cuda_host": "alloc_pinned_memory"}  # in cupy.cuda


def _memory(cupy, kind, nbytes):
    """Fresh memory of one kind on the current device, free in the order of cupy's current stream."""
    return getattr(cupy.cuda, _ALLOCATORS[kind])(max(nbytes, 1))


def _like(cupy, array):
    """An array on the current device that has not been written; in Fortran order where `array` is only that."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return on_memory(array, _memory(cupy, "cuda", array.nbytes), order)


def _ordinal(cupy, array):
    """The device to copy with; pinned host memory has none of its own."""
    return cupy.cuda.runtime.getDevice() if array.device.type == "cuda_host" else array.device.id


def _number(stream):
    """A cupy stream in the driver's convention, where 0 would be the default stream of whichever kind."""
    return stream.ptr or _LEGACY


def _external(cupy, number, ordinal):
    """A cupy stream on a handle of somebody else's.

    cupy 14 deprecates this class in favour of ``Stream.from_external``, whose result destroys the stream when it dies.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return cupy.cuda.ExternalStream(number, ordinal)


def _on(cupy, ordinal, stream):
    """Return a context in which a device and a stream are current, and which gives the stream."""
    number = _NO_STREAM if stream is None else stream_number(stream)
    if cupy.cuda.runtime.getDevice() == ordinal:
        current = cupy.cuda.get_current_stream()
        if number in (_NO_STREAM, _number(current)):  # to enter them again would take longer than a small copy's rest
            return contextlib.nullcontext(current)
    return _entered(cupy, ordinal, number, stream)


@contextlib.contextmanager
def _entered(cupy, ordinal, number, stream):
    """Make a device and a stream current, and give the stream."""
    with cupy.cuda.Device(ordinal):
        if number == _NO_STREAM:
            yield cupy.cuda.get_current_stream()
            return
        chosen = {_LEGACY: cupy.cuda.Stream.null, _PER_THREAD: cupy.cuda.Stream.ptds}.get(number)
        if chosen is None:
            chosen = _external(cupy, number, ordinal)
            chosen.owner = stream  # arrays made on it keep `chosen`, and with it the object that owns the handle
        with chosen:
            yield chosen
