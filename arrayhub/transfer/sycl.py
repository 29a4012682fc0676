"""Copies from, to and on SYCL devices, by the queue's own memcpy, of the bytes that a view reaches.

Bytes that lie the same way on both sides move directly. Anything else moves through two staging buffers of host memory
in turns: the device fills one while the host spreads the elements of the other. They last as long as the copy.

Nothing waits for a device: copies depend on an event that stands for what the producer's queue had been given so far.
"""

import contextlib
import math
from typing import Any, NamedTuple

import numpy

from arrayhub._core.fresh import empty_like
from arrayhub.libraries.dpctl import can_pack, on_memory, pack
from arrayhub.libraries.numpy import raw
from arrayhub.runtimes import sycl
from arrayhub.runtimes.host import is_host_readable, is_packed
from arrayhub.transfer import host, settings

_DIRECT = 64 << 20  # bytes of one direct copy: between two of them signals are seen and progress is reported
_CACHED = 4 << 20  # bytes of a staging buffer for a device that is the host's own processor: both share its cache
_GAP = 128 << 10  # bytes between elements that cost as much as one more copy
_SPARSE = 8  # where fewer than one byte in so many is wanted, dpnp packs them first, if it is loaded
_SMALL = 1 << 20  # bytes; below it moving all is faster than packing
_FEW = 256 << 10  # bytes that take about as long as a second copy
_GRAIN = 4096  # bytes, of which a processor copies any multiple quickly, see `_submit`


class Course(NamedTuple):
    """How one copy travels."""

    queue: object  # a dpctl.SyclQueue
    after: list[Any]  # the events that come first
    progress: object  # or None


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy USM into `out`, or into fresh host memory that is compact in `order`, and return once it is there.

    Parameters
    ----------
    stream : dpctl.SyclQueue, optional
        The queue to copy on; that of the memory by default. The copy comes after what either was given so far.
    """
    target = empty_like(array, order) if out is None else out
    if array.nbytes:
        with _course(array, stream, progress) as course:
            _fetch(array, raw(target, writable=True), course)
    return target


def from_host(array, ordinal, *, stream=None, progress=None):
    """Return a copy of host-readable memory in device USM of the root device with that ordinal.

    It is in Fortran order where only that makes the array contiguous, else in C order.
    """
    queue = _target_queue(ordinal, stream)
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    fresh = on_memory(array, sycl.memory_of("device", array.nbytes, queue), order)
    if array.nbytes:
        with _settled(queue):
            _send(raw(array), fresh, Course(queue, [], progress))
    return fresh


def to_other(array, ordinal, *, stream=None, progress=None):
    """Return a copy of USM in device USM of another root device."""
    if is_host_readable(array) or is_packed(array):
        array = array if is_host_readable(array) else to_host(array)
        return from_host(array, ordinal, stream=stream, progress=progress)
    queue = _target_queue(ordinal, stream)
    fresh = on_memory(array, sycl.memory_of("device", array.nbytes, queue), "C")
    return _relay(array, fresh, queue, progress)


def copy(array, order, *, stream=None):
    """Return a copy of USM of the same kind, on the same queue, compact in `order`."""
    queue = sycl.queue_of_array(array)
    fresh = on_memory(array, sycl.memory_of(array.usm_type, array.nbytes, queue), order)
    if is_host_readable(array):
        return host.to_host(array, out=fresh)
    return _relay(array, fresh, queue, None)


def beside(model, array):
    """Return a compact copy of host-readable `array` in the same kind of USM as `model`, on the same queue."""
    queue = sycl.queue_of_array(model)
    fresh = on_memory(array, sycl.memory_of(model.usm_type, array.nbytes, queue), "C")
    if is_host_readable(fresh):
        return host.to_host(array, out=fresh)
    write(fresh, array)
    return fresh


def write(fresh, source):
    """Put the elements of USM, or of host-readable memory, into fresh device USM, over whatever lies between them."""
    queue = sycl.queue_of_array(fresh)
    if not is_host_readable(source):
        _relay(source, fresh, queue, None)
        return
    with _settled(queue):
        _send(numpy.broadcast_to(raw(source), fresh.shape), fresh, Course(queue, [], None))


def _relay(array, fresh, queue, progress):
    """Copy USM into fresh device USM on `queue`: there directly if it can be, else by way of the host."""
    if array.nbytes == 0:
        return fresh
    with _course(array, None, progress) as course, _settled(queue):
        source, nbytes = sycl.reach(array)
        near = queue.sycl_context == course.queue.sycl_context
        if near and (is_packed(array) or _lies_like(array, fresh.byte_strides)):
            _direct(fresh.ptr, source, nbytes, course)
            return fresh
        if queue == course.queue and can_pack(array):
            _pack(array, fresh, course).wait()
            return fresh
        stage = _stage(queue, fresh)
        for key in _pieces(fresh.shape, fresh.byte_strides, fresh.itemsize, stage.nbytes):
            piece = fresh[key]
            _fetch(array[key], _laid_out(stage, piece), course._replace(progress=None))
            _direct(piece.ptr, stage.ctypes.data, sycl.reach(piece)[1], Course(queue, [], progress))
    return fresh


# ---------------------------------------------------------------------------------------------------- the order of work


@contextlib.contextmanager
def _course(array, stream, progress):
    """The queue to copy on, and the events that stand for what it and the producer's were given so far."""
    own = sycl.queue_of_array(array)
    queue = own if stream is None else sycl.checked_queue(stream)
    if queue.sycl_context != own.sycl_context:
        raise BufferError(f"stream is {stream!r}, of another context than the memory; accepted: a queue of its context")
    after = [sycl.submit_barrier(own)]
    if queue != own:
        after.append(sycl.submit_barrier(queue))
    with _settled(own), _settled(queue):
        yield Course(queue, after, progress)


def _target_queue(ordinal, stream):
    """The queue that a device's new memory is to belong to."""
    queue = sycl.queue_for_ordinal(ordinal) if stream is None else sycl.checked_queue(stream)
    if queue.sycl_device.get_device_id() != ordinal:
        raise BufferError(f"stream is {stream!r}, a queue of another device; accepted: a queue of oneapi:{ordinal}")
    return queue


@contextlib.contextmanager
def _settled(queue):
    """Let no error and no interrupt out while the queue may still use memory that is about to be given back."""
    try:
        yield
    except BaseException:
        queue.wait()
        raise


# -------------------------------------------------------------------------------------------------------- from a device


def _fetch(array, target, course):
    """Copy USM into an ndarray of opaque items."""
    source, nbytes = sycl.reach(array)
    if _lies_like(array, target.strides):
        _direct(_lowest(target), source, nbytes, course)
    elif nbytes > _SMALL and nbytes > _SPARSE * array.nbytes and can_pack(array):
        _fetch_sparse(array, target, course)
    else:
        _fetch_staged(array, target, course)


def _direct(target, source, nbytes, course):
    """Copy bytes from one address to another."""
    for start in range(0, nbytes, _DIRECT):
        size = min(_DIRECT, nbytes - start)
        _wait(_submit(course, target + start, source + start, size))
        if course.progress is not None:
            course.progress.update(size)


def _submit(course, target, source, nbytes):
    """Give the queue a copy between two addresses, and return the events that stand for it.

    A processor as the device splits a copy into equal groups, of as many bytes as divide it: a million bytes take
    0.1 ms, a million and three, which is prime, 150 ms. So it is given whole grains, and what is left by itself; but
    all at once where few bytes divide well, since one more copy takes as long as they do. Neither depends on the other:
    an event that another waits for costs more than such a copy.
    """
    at_once = not course.queue.sycl_device.is_cpu or (nbytes < _FEW and _divides_well(nbytes))
    whole = nbytes if at_once else nbytes // _GRAIN * _GRAIN
    parts = [(start, size) for start, size in ((0, whole), (whole, nbytes - whole)) if size]
    return [sycl.submit_copy(course.queue, target + start, source + start, size, course.after) for start, size in parts]


def _divides_well(nbytes):
    """Whether equal groups of a quarter of a grain to a whole one make up so many bytes."""
    groups = -(-nbytes // _GRAIN)
    return any(nbytes % k == 0 for k in range(groups, 4 * groups + 1))


def _wait(events):
    for event in events:
        event.wait()


def _fetch_sparse(array, target, course):
    """Copy elements that lie far apart: pieces are packed in device memory first."""
    packed_steps = [array.itemsize * math.prod(array.shape[k + 1 :]) for k in range(array.ndim)]
    queue = sycl.queue_of_array(array)
    for key in _pieces(array.shape, packed_steps, array.itemsize, settings.chunk()):
        piece = array[key]
        packed = on_memory(piece, sycl.memory_of("device", piece.nbytes, queue), "C")
        _fetch(packed, target[key], course._replace(after=[_pack(piece, packed, course)]))


def _pack(array, fresh, course):
    """Have dpnp's kernel copy USM into compact USM of the same queue, and return the event of that."""
    for event in course.after:
        event.wait()  # dpnp knows nothing of it
    pack(array, fresh)
    return sycl.submit_barrier(sycl.queue_of_array(fresh))


def _fetch_staged(array: Any, target: Any, course: Course) -> None:
    """Copy whatever a piece reaches, and spread its elements from there; the next piece is under way meanwhile."""
    stages = [_stage(course.queue, array) for _ in range(2)]
    waiting: Any = ()
    for turn, key in enumerate(_pieces(array.shape, array.byte_strides, array.itemsize, stages[0].nbytes)):
        piece, stage = array[key], stages[turn % 2]
        source, nbytes = sycl.reach(piece)
        events = _submit(course, stage.ctypes.data, source, nbytes)
        if waiting:
            _spread(waiting, course.progress)
        waiting = (events, target[key], _laid_out(stage, piece, piece.ptr - source))
    _spread(waiting, course.progress)


def _spread(piece, progress):
    events, target, view = piece
    _wait(events)
    host.move(target, view, progress)


# ---------------------------------------------------------------------------------------------------------- to a device


def _send(source: Any, fresh: Any, course: Course) -> None:
    """Copy an ndarray of opaque items into fresh USM, over whatever lies between its elements."""
    if _lies_like(fresh, source.strides):
        _direct(fresh.ptr, _lowest(source), fresh.nbytes, course)
        return
    stages = [_stage(course.queue, fresh) for _ in range(2)]
    events: list[Any] = [[], []]
    for turn, key in enumerate(_pieces(fresh.shape, fresh.byte_strides, fresh.itemsize, len(stages[0]))):
        piece, stage = fresh[key], stages[turn % 2]
        _wait(events[turn % 2])
        host.move(_laid_out(stage, piece), source[key], course.progress)
        nbytes = sycl.reach(piece)[1]
        events[turn % 2] = _submit(course, piece.ptr, stage.ctypes.data, nbytes)
    _wait(events[0] + events[1])


# ----------------------------------------------------------------------------------------------------------- the layout


def _stage(queue, array):
    """A staging buffer: as large as the array reaches, but not larger than a chunk, unless a single element is."""
    chunk = min(settings.chunk(), _CACHED) if queue.sycl_device.is_cpu else settings.chunk()
    return numpy.empty(max(min(chunk, sycl.reach(array)[1]), array.itemsize), numpy.uint8)


def _pieces(shape, strides, itemsize, limit):
    """Yield keys that cut an array into pieces which reach at most `limit` bytes each, or are single elements.

    It is cut along the largest steps first, so that pieces of compact memory are compact. Where more than `_GAP` bytes
    lie between two of them they are not cut together: what lies between is not moved.
    """

    def cut(starts, lengths):
        steps = [abs(step) if length > 1 else 0 for step, length in zip(strides, lengths, strict=True)]
        reach = itemsize + sum(step * (length - 1) for step, length in zip(steps, lengths, strict=True))
        largest = max(steps, default=0)
        axis = steps.index(largest) if largest else 0
        inner = reach - largest * (lengths[axis] - 1) if largest else reach
        if largest == 0 or (reach <= limit and largest - inner <= _GAP):
            yield tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))
            return
        rows = 1 if inner >= limit or largest - inner > _GAP else 1 + (limit - inner) // largest
        for start in range(0, lengths[axis], rows):
            some = min(rows, lengths[axis] - start)
            yield from cut((*starts[:axis], start, *starts[axis + 1 :]), (*lengths[:axis], some, *lengths[axis + 1 :]))

    yield from cut((0,) * len(shape), tuple(shape))


def _laid_out(stage, piece, start=0):
    """The bytes of a staging buffer as opaque items, laid out as those of `piece` are."""
    return numpy.ndarray(piece.shape, f"V{piece.itemsize}", stage, start, piece.byte_strides)


def _lowest(view):
    """The lowest address that an ndarray reaches."""
    return view.ctypes.data + sum(
        min(step, 0) * (length - 1) for step, length in zip(view.strides, view.shape, strict=True)
    )


def _lies_like(array, strides):
    """Whether an array lies in one run of bytes without gaps, and one of the same shape with `strides` does alike."""
    if is_packed(array):
        return True
    steps = zip(array.shape, array.byte_strides, strides, strict=True)
    return sycl.reach(array)[1] == array.nbytes and all(a == b for length, a, b in steps if length > 1)
