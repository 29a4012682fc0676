"""Copy engine for SYCL memory. The engine copies only the bytes that a view uses, with the memcpy of the queue.

If the layout is the same on both sides, the bytes are copied directly. Other layouts are copied through two staging
buffers in host memory: while the device fills one buffer, the host copies elements out of the other. The staging
buffers are released at the end of the copy.

A copy that is complete on return first waits on the host for the queues of both arrays, and at the end for the queue
that copies. Such a copy does not depend on events, because a dependency delays the start of the copy even if the event
is already complete. A copy that is only queued (`_queue_copy`) depends on barrier events instead.
"""

import math
from typing import Any, NamedTuple

from arrayhub._core.descriptor import empty_like, is_host_readable
from arrayhub.libraries.dpctl import assign_by_kernel, can_pack, on_memory, pack
from arrayhub.runtimes import sycl
from arrayhub.transfer import host, settings
from arrayhub.transfer.host_copies import broadcast, host_view, new_stage, view_stage

_DIRECT = 64 << 20  # maximum bytes of a direct copy; signals and progress are handled between direct copies
_CACHED = 4 << 20  # bytes of a staging buffer for the CPU device, which shares the cache of the host
_GAP = 128 << 10  # bytes between elements; copying a larger gap takes longer than starting a second copy
_SPARSE = 8  # if elements are less than 1/8 of a view's extent, dpnp packs the elements first, if dpnp is loaded
_SMALL = 1 << 20  # bytes; below this size, copying the whole extent is faster than packing the elements first
_FEW = 256 << 10  # bytes whose copy takes about as long as the overhead of a second copy
_GRAIN = 4096  # bytes; the CPU device copies multiples of this size quickly, see `_submit`


class Course(NamedTuple):
    """Queue and progress reporter of a copy.

    The context manager waits for the queues before an exception propagates, because the exception releases memory that
    the queues use.
    """

    queue: Any  # a dpctl.SyclQueue
    progress: Any = None  # reporter or None
    own: Any = None  # queue of the producer, if it differs

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error is not None:
            self.queue.wait()
            if self.own is not None:
                self.own.wait()


def to_host(array, order="C", *, out=None, stream=None, progress=None):
    """Copy USM to `out`, or to new host memory that is contiguous in `order`.

    The copy is complete on return, with one exception: with `stream`, and an `out` in USM of the same context, the copy
    is only queued if `_queue_copy` supports the layouts. The caller must then keep both arrays alive until the queue
    has completed the copy.

    Parameters
    ----------
    stream : dpctl.SyclQueue, optional
        Queue for the copy. The default is the queue of the memory. The copy is ordered after the work on both queues.
    """
    target = empty_like(array, order) if out is None else out
    if array.nbytes and not (stream is not None and _queue_copy(array, target, stream)):
        with _idle(array, stream, progress) as course:
            _fetch(array, host_view(target), course)
    return target


def new_like(array, ordinal, *, stream=None):
    """Allocate device USM on the root device `ordinal`, on the queue `stream` or on the default queue of the device."""
    queue = sycl.queue_of_ordinal(ordinal) if stream is None else sycl.checked_queue(stream)
    if queue.sycl_device.get_device_id() != ordinal:
        raise BufferError(f"stream is {stream!r}, a queue of a different device; accepted: a queue of oneapi:{ordinal}")
    return _new(array, queue, "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C")


def copy(array, order, *, stream=None):
    """Copy USM to USM of the same type on the same queue, contiguous in `order`."""
    return beside(array, array, order)


def beside(model, array, order="C"):
    """Copy USM or host-readable memory to new USM with the USM type and the queue of `model`, contiguous in `order`."""
    fresh = _new(array, sycl.queue_of(model), order, model.usm_type)
    if is_host_readable(fresh):
        host.assign(array, fresh)
    else:
        assign(array, fresh, fresh=True)
    return fresh


def assign(array, out, *, stream=None, progress=None, fresh=False):
    """Copy USM or host-readable memory, broadcast to the shape of `out`, to the device USM `out`.

    The copy is ordered after the work on the queues of both arrays. It is complete on return, with the same exception
    as in `to_host`. If `fresh` is true, `out` does not have pending work, and the bytes between its elements may be
    overwritten.
    """
    if fresh:
        _copy_to_usm(array, out, Course(sycl.queue_of(out), progress), fresh)
        return
    if stream is None:
        if progress is None and assign_by_kernel(array, out, _SMALL):
            return
    elif not is_host_readable(array) and array.size == out.size and _queue_copy(broadcast(array, out), out, stream):
        return
    _copy_to_usm(array, out, _idle(out, stream, progress), fresh)


def _queue_copy(array, out, stream):
    """Queue a copy between USM arrays of one context. Return False if the copy cannot be queued.

    Equal layouts are copied by the queue, other layouts by a dpnp kernel. Later work on the queues of both arrays,
    and readers on the host, wait for the copy.
    """
    if not out.usm_type or not sycl.shares_context(out, sycl.queue_of(array)):
        return False
    is_direct = sycl.is_laid_out_as(array, out)
    if not is_direct and not can_pack(array, out):
        return False
    queue, own = _queues(array, stream)
    queues = dict.fromkeys((queue, sycl.queue_of(array), sycl.queue_of(out)))
    with Course(queue, own=own):
        after = [sycl.submit_barrier(each) for each in queues]
        if is_direct:
            source, nbytes = sycl.reach(array)
            events = _submit(queue, sycl.reach(out)[0], source, nbytes, after)
        else:
            _pack(array, out, queue, after)
            events = [sycl.submit_barrier(queue)]
        for each in queues:
            sycl.hand_over(each, events)
    return True


def _new(array, queue, order, usm_type="device"):
    sycl.check_element(array, queue, "to_device")
    return on_memory(array, sycl.new_memory(usm_type, array.nbytes, {"queue": queue}), order)


def _copy_to_usm(array, out, course, fresh):
    """Copy USM or host-readable memory to device USM on the queue of `course`."""
    if not out.nbytes:
        return
    with course:
        if not is_host_readable(array):
            if _copy_on_device(array, out, course, fresh):
                return
            array = to_host(array)
        elif array.size < out.size and out.nbytes > _SMALL and can_pack(out):
            # It is faster to broadcast a host array on the device than on the host.
            sent = _new(array, course.queue, "C")
            _send(host_view(array), sent, course._replace(progress=None), True)
            _copy_on_device(sent, out, course, fresh)
            return
        _send(host_view(broadcast(array, out)), out, course, fresh)


def _copy_on_device(array, out, course, fresh):
    """Copy USM, broadcast to the shape of `out`, to device USM. Return False if the device cannot make the copy."""
    array = broadcast(array, out)
    queue = sycl.queue_of(array)
    if queue is not course.queue or fresh:
        sycl.wait(queue)
    if queue is not course.queue and queue.sycl_context != course.queue.sycl_context:
        return False
    if sycl.is_laid_out_as(array, out):
        source, nbytes = sycl.reach(array)
        _direct(sycl.reach(out)[0], source, nbytes, course)
        return True
    if can_pack(array, out):
        _pack(array, out, course.queue)
        sycl.wait(course.queue)
        return True
    return False


# ---------------------------------------------------------------------------------------------------- the order of work


def _idle(array, stream, progress):
    """Wait for the queue of the copy and for the producer's queue, then return a `Course` for the copy."""
    queue, own = _queues(array, stream)
    sycl.wait(queue)
    if own is not None:
        sycl.wait(own)
    return Course(queue, progress, own)


def _queues(array, stream):
    """Return the queue of a copy, and the queue of the memory if it differs, else None."""
    own = sycl.queue_of(array)
    if stream is None or stream is own or sycl.checked_queue(stream) == own:
        return own, None
    sycl.check_context(stream, array)
    return stream, own


# -------------------------------------------------------------------------------------------------------- from a device


def _fetch(array, target, course):
    """Copy USM to a host array."""
    source, nbytes = sycl.reach(array)
    if sycl.is_laid_out_as(array, target):
        _direct(sycl.reach(target)[0], source, nbytes, course)
    elif nbytes > _SMALL and nbytes > _SPARSE * array.nbytes and can_pack(array):
        _fetch_sparse(array, target, course)
    else:
        _fetch_staged(array, target, course)


def _direct(target, source, nbytes, course):
    """Copy `nbytes` bytes between two addresses, and wait for the copy.

    On the CPU device, a wait for the queue is shorter than a wait for the event of the copy: 64 KiB take 18 us instead
    of 46 us (dpctl 0.22, OpenCL's CPU runtime 2026), because the waiting thread also copies.
    """
    for start in range(0, nbytes, _DIRECT):
        size = min(_DIRECT, nbytes - start)
        _submit(course.queue, target + start, source + start, size)
        sycl.wait(course.queue)
        if course.progress is not None:
            course.progress(size)


def _submit(queue, target, source, nbytes, after=None):
    """Queue a copy between two addresses, and return its events.

    The CPU device divides a copy into groups of equal size, so it is slow for sizes with few divisors: 1,000,000 bytes
    take 0.1 ms, and 1,000,003 bytes, a prime number, take 150 ms. Therefore a multiple of `_GRAIN` and the remainder
    are queued as two copies. Neither copy depends on the other, because a dependency would cost more than the second
    copy. A small copy whose size has a suitable divisor is queued as a single copy, because a second copy would take as
    long as the first.
    """
    whole = nbytes // _GRAIN * _GRAIN
    at_once = whole in (0, nbytes) or not queue.sycl_device.is_cpu or (nbytes < _FEW and _divides_well(nbytes))
    if at_once:
        return [sycl.submit_copy(queue, target, source, nbytes, after)]
    return [
        sycl.submit_copy(queue, target, source, whole, after),
        sycl.submit_copy(queue, target + whole, source + whole, nbytes - whole, after),
    ]


def _divides_well(nbytes):
    """Return whether `nbytes` is a multiple of a number from `_GRAIN` / 4 to `_GRAIN`."""
    groups = -(-nbytes // _GRAIN)
    return any(nbytes % k == 0 for k in range(groups, 4 * groups + 1))


def _fetch_sparse(array, target, course):
    """Copy USM with large gaps to a host array, in pieces that are first packed in device memory."""
    for key in _pieces(array.shape, _packed_steps(array), array.itemsize, settings.chunk()):
        piece = array[key]
        packed = _new(piece, course.queue, "C")
        _pack(piece, packed, course.queue)
        sycl.wait(course.queue)
        _fetch(packed, target[key], course)


def _pack(array, out, queue, after=None):
    """Queue a copy of USM of any layout on `queue`, with dpnp's kernel, after the events `after`."""
    pack(sycl.on_queue(array, queue), sycl.on_queue(out, queue), after)


def _fetch_staged(array: Any, target: Any, course: Course) -> None:
    """Copy the extent of each piece to a staging buffer, and the piece's elements to `target` during the next copy."""
    stages = [_stage(course.queue, array) for _ in range(2)]
    waiting: Any = ()
    for turn, key in enumerate(_pieces(array.shape, array.byte_strides, array.itemsize, stages[0].nbytes)):
        piece, stage = array[key], stages[turn % 2]
        source, nbytes = sycl.reach(piece)
        events = _submit(course.queue, stage.address, source, nbytes)
        if waiting:
            before, part, view = waiting
            for event in before:
                event.wait()
            host.move(part, view, course.progress)
        waiting = (events, target[key], view_stage(piece, stage))
    sycl.wait(course.queue)
    _, part, view = waiting
    host.move(part, view, course.progress)


# ---------------------------------------------------------------------------------------------------------- to a device


def _send(source: Any, out: Any, course: Course, fresh: bool) -> None:
    """Copy host memory of the shape of `out` to device USM."""
    target, nbytes = sycl.reach(out)
    if sycl.is_laid_out_as(out, source):
        _direct(target, sycl.reach(source)[0], nbytes, course)
    elif not fresh and nbytes != out.nbytes and can_pack(out):
        _send_packed(source, out, course)
    else:
        _send_staged(source, out, course, fresh)


def _send_packed(source: Any, out: Any, course: Course) -> None:
    """Copy host memory to a non-contiguous array in device USM with dpnp's kernel, which reads a buffer in USM-host.

    The CPU device can read other host memory, but SYCL copies it first unless it is aligned to 128 bytes.
    """
    out = sycl.on_queue(out, course.queue)
    limit = settings.chunk()
    stage = sycl.new_memory("host", min(source.nbytes, max(limit, source.itemsize)), {"queue": course.queue})
    for key in _pieces(out.shape, _packed_steps(out), out.itemsize, limit):
        piece = out[key]
        packed = on_memory(piece, stage, "C")
        host.assign(source[key], packed, progress=course.progress)  # waits for the kernel that reads the previous piece
        _pack(packed, piece, course.queue)
    sycl.wait(course.queue)


def _send_staged(source: Any, out: Any, course: Course, fresh: bool) -> None:
    """Copy host memory to `out` in pieces, through two staging buffers. Only pieces of a fresh `out` contain gaps."""
    stages = [_stage(course.queue, out) for _ in range(2)]
    events: list[Any] = [[], []]
    for turn, key in enumerate(_pieces(out.shape, out.byte_strides, out.itemsize, stages[0].nbytes, gaps=fresh)):
        piece, stage = out[key], stages[turn % 2]
        for event in events[turn % 2]:
            event.wait()
        host.move(view_stage(piece, stage), source[key], course.progress)
        target, nbytes = sycl.reach(piece)
        events[turn % 2] = _submit(course.queue, target, stage.address, nbytes)
    sycl.wait(course.queue)


# ----------------------------------------------------------------------------------------------------------- the layout


def _stage(queue, array):
    """Allocate a staging buffer of the size of the array's extent, at most one chunk and at least one element."""
    chunk = min(settings.chunk(), _CACHED) if queue.sycl_device.is_cpu else settings.chunk()
    return new_stage(max(min(chunk, sycl.reach(array)[1]), array.itemsize))


def _packed_steps(array):
    """Return the byte strides that the array would have if it were C-contiguous."""
    return [array.itemsize * math.prod(array.shape[k + 1 :]) for k in range(array.ndim)]


def _pieces(shape, strides, itemsize, limit, gaps=True):
    """Yield keys that split an array into pieces with an extent of at most `limit` bytes, or into single elements.

    The array is split along the largest strides first, so that pieces of contiguous arrays are contiguous. Rows with
    gaps of more than `_GAP` bytes are separate pieces, so that the gaps are not copied. If `gaps` is false, the
    elements of each piece are contiguous.
    """

    def cut(starts, lengths):
        steps = [abs(step) if length > 1 else 0 for step, length in zip(strides, lengths, strict=True)]
        reach = itemsize + sum(step * (length - 1) for step, length in zip(steps, lengths, strict=True))
        largest = max(steps, default=0)
        axis = steps.index(largest) if largest else 0
        inner = reach - largest * (lengths[axis] - 1) if largest else reach
        apart = largest - inner > _GAP if gaps else reach != itemsize * math.prod(lengths)
        if largest == 0 or (reach <= limit and not apart):
            yield tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))
            return
        rows = 1 if inner >= limit or apart else 1 + (limit - inner) // largest
        for start in range(0, lengths[axis], rows):
            some = min(rows, lengths[axis] - start)
            yield from cut((*starts[:axis], start, *starts[axis + 1 :]), (*lengths[:axis], some, *lengths[axis + 1 :]))

    yield from cut((0,) * len(shape), tuple(shape))
