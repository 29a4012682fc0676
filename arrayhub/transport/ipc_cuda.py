"""CUDA device memory in IPC handles: the owner's reply, and the array that a borrower creates from the reply."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

from arrayhub.array.usm_array import USMArray
from arrayhub.runtimes import cuda_ipc
from arrayhub.runtimes.cuda import LEGACY_STREAM, PER_THREAD_STREAM, stream_handle, stream_of_array
from arrayhub.transport.ipc_server import Borrow

_COPY = (
    "with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc): y = arrayhub.to_device(x, x.device, copy=True)."
    " Then call arrayhub.ipc_handle(y)"
)

# The device's UUID, the handles of the event and of the allocation, and the size of the allocation in bytes.
_REPLY = struct.Struct(f"<{cuda_ipc.UUID}s{cuda_ipc.HANDLE}s{cuda_ipc.HANDLE}sQ")


class Export:
    """Allocation that contains an array, and an event after the pending work on the array's stream."""

    def __init__(self, array: USMArray, address: int) -> None:
        self._device = array.device.id
        try:
            self.base, self.size, self.number = cuda_ipc.allocation_at(address, self._device)
            self._pool = cuda_ipc.pool_of(address)
            self._memory()
        except cuda_ipc.CudaError as error:
            raise BufferError(_why(getattr(self, "_pool", 0), error)) from error
        self._event = cuda_ipc.Event(self._device)
        stream = stream_of_array(array)
        self._stream = LEGACY_STREAM if stream is None else stream
        self._event.record(self._stream)

    def _memory(self, keep: Callable[[int], None] = os.close) -> bytes:
        """Return the handle of the allocation. If a pool owns the allocation, pass the pool's descriptor to `keep`."""
        if not self._pool:
            return cuda_ipc.export_memory(self.base, self._device)
        handle, descriptor = cuda_ipc.export_from_pool(self.base, self._pool, self._device)
        keep(descriptor)
        return handle

    def grant(self, _: Any) -> tuple[bytes, list[int]]:
        """Return the reply to a borrower."""
        # This thread cannot refer to the per-thread stream of the thread that called ipc_handle.
        if self._stream != PER_THREAD_STREAM:
            self._event.record(self._stream)
        event, descriptors = self._event.export(), []  # type: tuple[bytes, list[int]]
        memory = self._memory(descriptors.append)
        return _REPLY.pack(cuda_ipc.uuid_of(self._device), event, memory, self.size), descriptors


def _why(pool: int, error: Exception) -> str:
    reason = (
        "its stream-ordered pool (cudaMallocAsync) was created without a handle type for other processes"
        if pool
        else "it was not allocated by cudaMalloc (torch's expandable segments and other virtual memory are not)"
    )
    return f"ipc_handle: the CUDA memory cannot be opened by other processes: {reason}; {error}. Copy it: {_COPY}"


class Mapped:
    """Producer for the bytes of another process's allocation, for `asarray`. The borrow ends when this object is freed.

    Work on `stream` waits for the owner's stream. Raise BufferError if the driver cannot import the memory, or if this
    process does not see the device.
    """

    def __init__(self, borrow: Borrow, stream: Any, writable: bool) -> None:
        self._borrow = borrow
        try:
            if len(borrow.payload) != _REPLY.size:
                raise BufferError("IpcHandle: the owner's reply does not describe CUDA memory")
            uuid, event, handle, size = _REPLY.unpack(borrow.payload)
            device = cuda_ipc.device_of(uuid)
            descriptor = borrow.descriptors[0] if borrow.descriptors else None
            self._memory = cuda_ipc.ImportedMemory(handle, device, descriptor)
        finally:
            for descriptor in borrow.descriptors:
                os.close(descriptor)
        number = None if stream is None else stream_handle(stream)
        after = cuda_ipc.stream_after(event, None if number == -1 else number, device)
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (self._memory.address, not writable),
            "version": 3,
            "stream": after,
        }
        self._stream = stream  # keep the object, because its finalizer destroys the stream

    def __del__(self) -> None:
        self._memory = None  # type: ignore[assignment]
        self._borrow.end()
