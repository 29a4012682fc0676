"""The way in dask that NumPy's arrays have too: as frames of their own, which the scheduler hands on without a copy.

dask asks for it on both sides and lets nobody enter it from outside, so a process sends in it when it is told. Without
it arrays are pickled, which every process understands; but dask's scheduler asks for pickle 4, which knows no frames.
"""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Iterator
from typing import Any

from arrayhub._core.errors import show
from arrayhub._core.memory import BOUNDARY
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.transport.deferred_error import not_restored

_FORM = 1  # of the frames, in their header; a reader refuses any other

# A frame goes before each frame of elements: space to move them to a boundary in the buffer that they arrived in. Its
# first byte says how far they were moved.
_SPACE = bytes(BOUNDARY)


def register_dask(client: Any = None) -> Any:
    """Let dask move arrays as it moves NumPy's: between client, scheduler and workers, their elements not pickled.

    Call it once with the client. Arrays travel without it too, as pickles: with more copies, four of them in
    ``client.gather``, for which dask's scheduler takes neither frames nor a later pickle than protocol 4.

    Parameters
    ----------
    client : distributed.Client, optional
        All its workers, those to come included, are told as well. Without one only this process is: for workers that
        start with their own module, and for another client of a cluster that was told.

    Returns
    -------
    object
        What ``client.register_worker_callbacks`` gives; of an asynchronous client it has to be awaited.

    Raises
    ------
    ImportError
        There is no ``distributed`` here.

    Notes
    -----
    A process that receives such an array has to know of the way. It does where arrayhub is imported after distributed,
    as workers do when the first array arrives. Elsewhere, for example in a second client that imported arrayhub first,
    dask says "No dispatch for" the type: call ``register_dask()`` there. Workers need arrayhub installed from then on.

    What arrives lies in the buffer that dask received it in, moved to a 64-byte boundary within it if the buffer may be
    written, else copied to one. docs/howto/cluster_user.md has a program and the count of copies.
    """
    from distributed.protocol import dask_serialize

    register_arrival()
    dask_serialize.register(USMArray)(_frames_of)
    return None if client is None else client.register_worker_callbacks(register_dask)


def register_arrival() -> None:
    """Let this process read what others send by that way; it sends nothing by it."""
    from distributed.protocol import dask_deserialize

    dask_deserialize.register(USMArray)(_array_of)


def _frames_of(array: USMArray) -> tuple[dict[str, Any], list[Any]]:
    """Return what dask sends of an array: the pickle without its buffers, then for each buffer space and the buffer."""
    try:
        from distributed.protocol.serialize import pickle_dumps
    except ImportError as error:  # it is not documented; dask pickles what raises this
        raise NotImplementedError(str(error)) from error
    header, (pickled, *buffers) = pickle_dumps(array, {"pickle-protocol": 5})
    return header | {"form": _FORM}, [pickled, *(frame for buffer in buffers for frame in (_SPACE, buffer))]


def _array_of(header: dict[str, Any], frames: list[Any]) -> Any:
    """Return the array of a header and its frames. On a worker that cannot have it, what stands for it.

    Raises
    ------
    pickle.UnpicklingError
        The form is unknown, or the frames are not of it.
    """
    from distributed.protocol.serialize import pickle_loads

    try:
        _check(header, frames)
        buffers = list(_on_boundaries(frames[1:]))
    except pickle.UnpicklingError as error:
        return not_restored(error)
    return pickle_loads(header, [frames[0], *buffers])


def _check(header: dict[str, Any], frames: list[Any]) -> None:
    form = header.get("form") if isinstance(header, dict) else None
    if type(form) is not int or form != _FORM:
        raise pickle.UnpicklingError(
            f"arrayhub: dask's frames have form {show(form)}; this release reads form {_FORM}. Install the same release"
            " of arrayhub in the client and all workers"
        )
    writeable = header.get("writeable")
    if not isinstance(writeable, (tuple, list)) or len(frames) != 1 + 2 * len(writeable):
        raise pickle.UnpicklingError(
            f"arrayhub: dask's header says {show(writeable)} of {len(frames)} frames; accepted: a pickle, and for each"
            " buffer two frames and whether it may be written"
        )


def _on_boundaries(frames: list[Any]) -> Iterator[memoryview]:
    try:
        views = [memoryview(frame).cast("B") for frame in frames]
    except TypeError as error:
        raise pickle.UnpicklingError(f"arrayhub: dask's frames are no bytes: {error}") from error
    for space, elements in zip(views[::2], views[1::2], strict=True):
        yield _on_boundary(space, elements)


def _on_boundary(space: memoryview, elements: memoryview) -> memoryview:
    """Return `elements`, moved down to a 64-byte boundary where `space` lies before them in one writable buffer.

    Where they lie otherwise, and off a boundary, unpickling copies them.
    """
    if not elements.nbytes or space.nbytes != len(_SPACE) or space.obj is not elements.obj:
        return elements
    start = _address(elements)
    if _address(space) + len(_SPACE) != start:
        return elements
    if space[0] >= len(_SPACE):
        raise pickle.UnpicklingError(
            f"arrayhub: dask's frame before the elements says that they were moved by {space[0]} bytes; accepted: fewer"
            f" than {len(_SPACE)}"
        )
    if space[0] == 0 and start % len(_SPACE) and not space.readonly and not elements.readonly:
        ctypes.memmove(start - start % len(_SPACE), start, elements.nbytes)
        space[0] = start % len(_SPACE)  # dask may read a message again
    buffer = memoryview(space.obj).cast("B")
    first = start - space[0] - _address(buffer)
    moved = buffer[first : first + elements.nbytes]
    return moved.toreadonly() if elements.readonly else moved


def _address(view: memoryview) -> int:
    return asarray(view).ptr
