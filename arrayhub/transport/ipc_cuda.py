"""CUDA device memory in IPC handles: the owner's reply, and the array that a borrower creates from the reply.

Memory of ``cudaMalloc`` has a 64-byte handle for the complete allocation. Memory of a stream-ordered pool
(``cudaMallocAsync``) can be exported only if the pool was created for export. The pool is then exported as a file
descriptor, and the allocation as 64 bytes. ``cuIpcGetMemHandle`` does not support managed, pinned or virtual memory
(such as torch's expandable segments).

Some driver versions allow a process to import the same allocation several times, and others refuse the second import.
This module therefore imports each allocation once, and counts its users.

Source: the CUDA driver API reference (unified addressing, event management, stream-ordered memory allocator).
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from arrayhub.array.usm_array import USMArray
from arrayhub.runtimes import CUDA_FILE
from arrayhub.runtimes.cuda import (
    LEGACY_STREAM,
    PER_THREAD_STREAM,
    has_device,
    primary_context_of,
    safe_stream,
    stream_handle,
)
from arrayhub.transport.ipc_server import Borrow

_HANDLE = 64  # bytes of CUipcMemHandle, CUipcEventHandle and CUmemPoolPtrExportData
_UUID = 16  # bytes
_BUFFER_ID, _MEMPOOL_HANDLE = 7, 17  # CUpointer_attribute
_DISABLE_TIMING, _INTERPROCESS = 2, 4  # CUevent_flags
_NON_BLOCKING = 1  # CUstream_flags
_LAZY_PEER_ACCESS = 1  # CUipcMem_flags
_POSIX_DESCRIPTOR = 1  # CUmemAllocationHandleType

_COPY = (
    "with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc): y = arrayhub.to_device(x, x.device, copy=True)."
    " Then call arrayhub.ipc_handle(y)"
)

# The device's UUID, the handles of the event and of the allocation, and the size of the allocation in bytes.
_REPLY = struct.Struct(f"<{_UUID}s{_HANDLE}s{_HANDLE}sQ")


# ----------------------------------------------------------------------------------------------------------- the driver


class _Bytes(ctypes.Structure):
    """Opaque bytes, which the driver receives by value."""

    _fields_ = (("value", ctypes.c_ubyte * _HANDLE),)
    value: ctypes.Array[ctypes.c_ubyte]


class CudaError(BufferError):
    """Exception for a failed call of the CUDA driver."""


@cache
def _driver() -> ctypes.CDLL:
    """Return the driver's library, which `has_device` has initialized."""
    if not has_device():
        raise CudaError("CUDA: this process does not see a driver with a device; see CUDA_VISIBLE_DEVICES")
    return ctypes.CDLL(CUDA_FILE)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver. Raise CudaError if it fails, or does not exist in the driver."""
    driver = _driver()
    try:
        function = getattr(driver, name)
    except AttributeError as error:
        raise CudaError(f"CUDA: the driver does not have {name}") from error
    code = function(*arguments)
    if code != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(code, ctypes.byref(text))
        raise CudaError(f"CUDA: {name} failed with {(text.value or b'an unknown error').decode()} ({code})")


@contextmanager
def _on_device(device: int) -> Iterator[None]:
    """Make the primary context of a device current."""
    _call("cuCtxPushCurrent_v2", ctypes.c_void_p(primary_context_of(device)))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def _uuid_of(device: int) -> bytes:
    """Return the identifier of a device, which does not depend on CUDA_VISIBLE_DEVICES."""
    handle, uuid = ctypes.c_int(), ctypes.create_string_buffer(_UUID)
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDeviceGetUuid_v2", uuid, handle)
    return uuid.raw


def _device_of(uuid: bytes) -> int:
    """Return the ordinal of a device in this process. Raise CudaError if this process does not see the device."""
    count = ctypes.c_int()
    _call("cuDeviceGetCount", ctypes.byref(count))
    for device in range(count.value):
        if _uuid_of(device) == uuid:
            return device
    raise CudaError(
        f"CUDA: the owner's device {uuid.hex()} is not among the {count.value} devices of this process; see"
        " CUDA_VISIBLE_DEVICES"
    )


# ------------------------------------------------------------------------------------------------- the owner's side


class Export:
    """Allocation that contains an array, and an event after the pending work on the array's stream.

    Attributes
    ----------
    base, size, number : int
        Address, size in bytes and identifier of the allocation.
    """

    def __init__(self, array: USMArray, address: int) -> None:
        self._device, self._process, self._event = array.device.id, os.getpid(), ctypes.c_void_p()
        base, size, number = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64()
        pool = 0
        try:
            with _on_device(self._device):
                _call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
                _call("cuPointerGetAttribute", ctypes.byref(number), _BUFFER_ID, ctypes.c_uint64(address))
            self._pool = pool = _pool_of(address)
            self.base, self.size, self.number = base.value, size.value, number.value
            self._export_memory()
        except CudaError as error:
            reason = (
                "its stream-ordered pool (cudaMallocAsync) was created without a handle type for other processes"
                if pool
                else "it was not allocated by cudaMalloc (torch's expandable segments and other virtual memory are not)"
            )
            raise BufferError(
                f"ipc_handle: the CUDA memory cannot be opened by other processes: {reason}; {error}. Copy it: {_COPY}"
            ) from error
        with _on_device(self._device):
            _call("cuEventCreate", ctypes.byref(self._event), _DISABLE_TIMING | _INTERPROCESS)
        self._stream = safe_stream(array) or LEGACY_STREAM
        self._record()

    def _record(self) -> None:
        """Record the event on the array's stream, after the work that is now queued."""
        stream, capturing = ctypes.c_void_p(self._stream), ctypes.c_int()
        with _on_device(self._device):
            _call("cuStreamIsCapturing", stream, ctypes.byref(capturing))
            if capturing.value:
                raise CudaError("CUDA: the stream of the array is being captured into a graph; end the capture first")
            _call("cuEventRecord", self._event, stream)

    def _export_memory(self, keep: Callable[[int], None] = os.close) -> bytes:
        """Return the handle of the allocation. If a pool owns the allocation, pass the pool's descriptor to `keep`."""
        handle, descriptor, base = _Bytes(), ctypes.c_int(-1), ctypes.c_uint64(self.base)
        with _on_device(self._device):
            if not self._pool:
                _call("cuIpcGetMemHandle", ctypes.byref(handle), base)
                return bytes(handle.value)
            _call("cuMemPoolExportPointer", ctypes.byref(handle), base)
            _call(
                "cuMemPoolExportToShareableHandle",
                ctypes.byref(descriptor),
                ctypes.c_void_p(self._pool),
                _POSIX_DESCRIPTOR,
                ctypes.c_uint64(0),
            )
        os.set_inheritable(descriptor.value, False)
        keep(descriptor.value)
        return bytes(handle.value)

    def grant(self, _: Any) -> tuple[bytes, list[int]]:
        """Return the reply to a borrower."""
        # This thread cannot refer to the per-thread stream of the thread that called ipc_handle.
        if self._stream != PER_THREAD_STREAM:
            self._record()
        event, descriptors = _Bytes(), []  # type: tuple[_Bytes, list[int]]
        with _on_device(self._device):
            _call("cuIpcGetEventHandle", ctypes.byref(event), self._event)
        memory = self._export_memory(descriptors.append)
        return _REPLY.pack(_uuid_of(self._device), bytes(event.value), memory, self.size), descriptors

    def __del__(self) -> None:
        if self._event.value and self._process == os.getpid():
            _driver().cuEventDestroy_v2(self._event)


def _pool_of(address: int) -> int:
    """Return the handle of the stream-ordered pool that contains an address, or 0."""
    pool = ctypes.c_void_p()
    try:
        _call("cuPointerGetAttribute", ctypes.byref(pool), _MEMPOOL_HANDLE, ctypes.c_uint64(address))
    except CudaError:  # some versions of the driver return an error for memory outside of pools
        return 0
    return pool.value or 0


# ---------------------------------------------------------------------------------------------- the borrower's side


class Mapped:
    """Producer for the bytes of another process's allocation, for `asarray`. The borrow ends when this object is freed.

    Work on `stream` waits for the owner's stream. Raise BufferError if the driver cannot import the memory, or if this
    process does not see the device.
    """

    _import: _Import | None = None

    def __init__(self, borrow: Borrow, stream: Any, writable: bool) -> None:
        self._borrow = borrow
        try:
            if len(borrow.payload) != _REPLY.size:
                raise BufferError("IpcHandle: the owner's reply does not describe CUDA memory")
            uuid, event, handle, size = _REPLY.unpack(borrow.payload)
            device = _device_of(uuid)
            self._import = _import_memory(handle, device, borrow.descriptors[0] if borrow.descriptors else None)
        finally:
            for descriptor in borrow.descriptors:
                os.close(descriptor)
        number = None if stream is None else stream_handle(stream)
        after = _stream_after(event, None if number == -1 else number, device)
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (self._import.address, not writable),
            "version": 3,
            "stream": after,
        }
        self._stream = stream  # keep the object, because its finalizer destroys the stream

    def __del__(self) -> None:
        if self._import is not None:
            self._import.drop_user()
        self._borrow.end()


class _Import:
    """Allocation of another process that is mapped in this process, with the number of its users.

    `closing` are the driver's functions that unmap the allocation, each with its argument.
    """

    def __init__(self, key: tuple[bytes, int, int], address: ctypes.c_uint64, *closing: tuple[str, Any]) -> None:
        self.key, self.address, self.closing, self.users = key, address.value, closing, 0

    def drop_user(self) -> None:
        """Remove a user. For the last one, wait for this process's work on the device, and unmap the allocation."""
        _, device, process = self.key
        if process != os.getpid():
            return  # CUDA cannot be used in a forked process
        with _lock:
            self.users -= 1
            if self.users == 0:
                del _imports[self.key]
                with suppress(BufferError), _on_device(device):  # the driver may be shutting down
                    _call("cuCtxSynchronize")
                    for name, argument in self.closing:
                        _call(name, argument)


_imports: dict[tuple[bytes, int, int], _Import] = {}  # keyed by (handle, device, process)
_lock = threading.RLock()  # a finalizer may run while the lock is held


def _import_memory(handle: bytes, device: int, descriptor: int | None) -> _Import:
    """Return the mapping of another process's allocation, with one user more.

    `descriptor` is the file descriptor of the allocation's pool, or None.
    """
    key = (handle, device, os.getpid())
    with _lock:
        found = _imports.get(key)
        if found is None:
            with _on_device(device):
                found = _imports[key] = _open(key) if descriptor is None else _open_from_pool(key, descriptor)
        found.users += 1
        return found


def _open(key: tuple[bytes, int, int]) -> _Import:
    address = ctypes.c_uint64()
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), _Bytes.from_buffer_copy(key[0]), _LAZY_PEER_ACCESS)
    return _Import(key, address, ("cuIpcCloseMemHandle", address))


def _open_from_pool(key: tuple[bytes, int, int], descriptor: int) -> _Import:
    pool, address = ctypes.c_void_p(), ctypes.c_uint64()
    _call(
        "cuMemPoolImportFromShareableHandle",
        ctypes.byref(pool),
        ctypes.c_void_p(descriptor),
        _POSIX_DESCRIPTOR,
        ctypes.c_uint64(0),
    )
    try:
        access = (ctypes.c_int * 3)(1, key[1], 3)  # CUmemAccessDesc: a device, its ordinal, read and write
        _call("cuMemPoolSetAccess", pool, ctypes.byref(access), ctypes.c_size_t(1))
        _call("cuMemPoolImportPointer", ctypes.byref(address), pool, ctypes.byref(_Bytes.from_buffer_copy(key[0])))
    except BaseException:
        _driver().cuMemPoolDestroy(pool)
        raise
    return _Import(key, address, ("cuMemFree_v2", address), ("cuMemPoolDestroy", pool))


@cache
def _internal_stream(device: int) -> int:
    """Return the stream of a device that waits for other processes. Copies in this process use other streams."""
    stream = ctypes.c_void_p()
    with _on_device(device):
        _call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
    return stream.value or 0


def _stream_after(event: bytes, stream: int | None, device: int) -> int:
    """Make a stream wait for an event of another process, and return the stream. None selects an internal stream."""
    chosen = _internal_stream(device) if stream is None else stream
    opened = ctypes.c_void_p()
    with _on_device(device):
        _call("cuIpcOpenEventHandle", ctypes.byref(opened), _Bytes.from_buffer_copy(event))
        try:
            _call("cuStreamWaitEvent", ctypes.c_void_p(chosen), opened, 0)
        finally:
            _call("cuEventDestroy_v2", opened)  # takes effect once the event is complete
    return chosen
