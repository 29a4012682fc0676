"""The way in dask that NumPy's arrays have too: as frames of their own, which the scheduler hands on without a copy.

dask asks for it on both sides and lets nobody enter it from outside, so a process does so when it is told. Without it
arrays are pickled, which every process understands; but dask's scheduler asks for pickle 4, which knows no frames.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from arrayhub._core.memory import BOUNDARY
from arrayhub.conversion import asarray
from arrayhub.usm_array import USMArray

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
    A process that receives such an array has to know of the way, or dask says "No dispatch for" the type: call
    ``register_dask()`` there. Workers need arrayhub installed from then on.

    What arrives lies in the buffer that dask received it in, moved to a 64-byte boundary within it if the buffer may be
    written, else copied to one. docs/howto/cluster_user.md has a program and the count of copies.
    """
    from distributed.protocol import dask_deserialize, dask_serialize

    dask_serialize.register(USMArray)(_frames_of)
    dask_deserialize.register(USMArray)(_array_of)
    return None if client is None else client.register_worker_callbacks(register_dask)


def _frames_of(array: USMArray) -> tuple[dict[str, Any], list[Any]]:
    """Return what dask sends of an array: the pickle without its buffers, then for each buffer space and the buffer."""
    from distributed.protocol.serialize import pickle_dumps

    header, (pickled, *buffers) = pickle_dumps(array, {"pickle-protocol": 5})
    return header, [pickled, *(frame for buffer in buffers for frame in (_SPACE, buffer))]


def _array_of(header: dict[str, Any], frames: list[Any]) -> Any:
    from distributed.protocol.serialize import pickle_loads

    return pickle_loads(header, [frames[0], *_on_boundaries(frames[1:])])


def _on_boundaries(frames: list[Any]) -> Iterator[memoryview]:
    for space, elements in zip(frames[::2], frames[1::2], strict=True):
        yield _on_boundary(memoryview(space).cast("B"), memoryview(elements).cast("B"))


def _on_boundary(space: memoryview, elements: memoryview) -> memoryview:
    """Return `elements`, moved down to a 64-byte boundary where `space` lies before them in one writable buffer.

    Where they lie otherwise, and off a boundary, unpickling copies them.
    """
    if not elements.nbytes or space.nbytes != len(_SPACE) or space.obj is not elements.obj:
        return elements
    start = _address(elements)
    if _address(space) + len(_SPACE) != start:
        return elements
    if space[0] == 0 and start % len(_SPACE) and not space.readonly and not elements.readonly:
        ctypes.memmove(start - start % len(_SPACE), start, elements.nbytes)
        space[0] = start % len(_SPACE)  # dask may read a message again
    buffer = memoryview(space.obj).cast("B")
    first = start - space[0] - _address(buffer)
    return buffer[first : first + elements.nbytes]


def _address(view: memoryview) -> int:
    return asarray(view).ptr
