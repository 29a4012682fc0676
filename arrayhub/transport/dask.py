"""Serializers for dask that send arrays as separate frames, as dask does for NumPy arrays.

The scheduler forwards frames without a copy. Sender and receiver must both register the serializers with
`register_dask`, because dask does not have an entry point for libraries. Otherwise arrays are pickled. Pickles work in
every process, but dask's scheduler requests pickle protocol 4, which lacks out-of-band buffers.
"""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import Any

from arrayhub._core.descriptor import BOUNDARY
from arrayhub._core.errors import needed
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.transport.codec import check_version, restore_state

_FORM = 1  # version of the frames, in the header; a reader rejects any other version

# A frame of unused space precedes each frame of elements, so that the elements can be moved to an aligned address in
# the receive buffer. The first byte of the space contains the number of bytes by which the elements were moved.
_SPACE = bytes(BOUNDARY)


def register_dask(client: Any = None) -> Any:
    """Let dask send arrays between client, scheduler and workers as frames, without pickling their elements.

    Call `register_dask` once with the client. Otherwise arrays are pickled, with more copies. For example,
    ``client.gather`` copies four times, because dask's scheduler then uses pickle protocol 4.

    Parameters
    ----------
    client : distributed.Client, optional
        Client whose current and future workers register the serializers. Without a client, only this process registers
        them. Omit the client in a preload module of workers, and in a second client of a registered cluster.

    Returns
    -------
    object
        Result of ``client.register_worker_callbacks``, or None without a client. Await the result if the client is
        asynchronous.

    Raises
    ------
    ImportError
        ``distributed`` is not installed.

    Notes
    -----
    The receiving process needs the deserializer, which `register_dask` registers in the client and its workers. In
    another client of the cluster, dask raises "No dispatch for" the type. Call ``register_dask()`` in such a process.
    Once `register_dask` has been called, arrayhub must be installed on every worker of the cluster, because arrays are
    no longer sent as pickles.

    The elements of a received array stay in the buffer that dask received. In a writable buffer, they are moved to a
    64-byte boundary. In a read-only buffer, elements that are not aligned are copied to such a boundary.
    docs/howto/cluster_user.md contains an example, and the number of copies.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client()  # doctest: +SKIP
    >>> arrayhub.transport.register_dask(client)  # doctest: +SKIP
    """
    needed("distributed", "to send arrays in dask")
    from distributed.protocol import dask_deserialize, dask_serialize

    dask_deserialize.register(USMArray)(deserialize)
    dask_serialize.register(USMArray)(serialize)
    return None if client is None else client.register_worker_callbacks(register_dask)


def serialize(array: USMArray) -> tuple[dict[str, Any], list[Any]]:
    """Return the header and frames of an array: the pickle, then a frame of space and a frame of data per buffer."""
    try:
        from distributed.protocol.serialize import pickle_dumps
    except ImportError as error:  # the function is undocumented; after NotImplementedError, dask pickles the array
        raise NotImplementedError(str(error)) from error
    header, (pickled, *buffers) = pickle_dumps(array, {"pickle-protocol": 5})
    return header | {"form": _FORM}, [pickled, *(frame for buffer in buffers for frame in (_SPACE, buffer))]


def deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    """Return the array of a header and its frames.

    Raise UnpicklingError if the frames are invalid, or have an unknown version.
    """
    from distributed.protocol.serialize import pickle_loads

    return restore_state("message of dask", _restore_frames, pickle_loads, header, frames)


def _restore_frames(pickle_loads: Callable[..., Any], header: dict[str, Any], frames: list[Any]) -> Any:
    check_version("dask's header", header.get("form"), _FORM)
    views = [memoryview(frame).cast("B") for frame in frames[1:]]
    moved = [_move_to_boundary(*pair) for pair in zip(views[::2], views[1::2], strict=True)]
    return pickle_loads(header, [frames[0], *moved])


def _move_to_boundary(space: memoryview, elements: memoryview) -> memoryview:
    """Return `elements`. If `space` precedes them in a writable buffer, first move them to a 64-byte boundary.

    Unaligned elements that cannot be moved are copied later, during unpickling.
    """
    if not elements.nbytes or space.nbytes != len(_SPACE) or space.obj is not elements.obj:
        return elements
    start = asarray(elements).ptr
    if asarray(space).ptr + len(_SPACE) != start:
        return elements
    if space[0] >= len(_SPACE):
        raise pickle.UnpicklingError(
            f"arrayhub: the frame before the elements specifies that they were moved by {space[0]} bytes; accepted:"
            f" fewer than {len(_SPACE)}"
        )
    if space[0] == 0 and start % len(_SPACE) and not space.readonly and not elements.readonly:
        ctypes.memmove(start - start % len(_SPACE), start, elements.nbytes)
        space[0] = start % len(_SPACE)  # record the move, because dask may deserialize a message twice
    buffer = memoryview(space.obj).cast("B")
    first = start - space[0] - asarray(buffer).ptr
    moved = buffer[first : first + elements.nbytes]
    return moved.toreadonly() if elements.readonly else moved
