"""Export and import of CUDA memory and events between processes, with the driver's functions.

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
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from arrayhub.runtimes import CUDA_FILE
from arrayhub.runtimes.cuda import has_device, primary_context_of

HANDLE = 64  # bytes of CUipcMemHandle, CUipcEventHandle and CUmemPoolPtrExportData
UUID = 16  # bytes

_BUFFER_ID, _MEMPOOL_HANDLE = 7, 17  # CUpointer_attribute
_DISABLE_TIMING, _INTERPROCESS = 2, 4  # CUevent_flags
_NON_BLOCKING = 1  # CUstream_flags
_LAZY_PEER_ACCESS = 1  # CUipcMem_flags
_POSIX_DESCRIPTOR = 1  # CUmemAllocationHandleType


class _Bytes(ctypes.Structure):
    """Opaque bytes, which the driver receives by value."""

    _fields_ = (("value", ctypes.c_ubyte * HANDLE),)
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
    """Call a function of the driver.

    Raises
    ------
    CudaError
        The function fails, or does not exist in the driver.
    """
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
def on_device(device: int) -> Iterator[None]:
    """Make the primary context of a device current."""
    _call("cuCtxPushCurrent_v2", ctypes.c_void_p(primary_context_of(device)))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


# -------------------------------------------------------------------------------------------------------------- devices


def uuid_of(device: int) -> bytes:
    """Return the identifier of a device, which does not depend on CUDA_VISIBLE_DEVICES."""
    handle, uuid = ctypes.c_int(), ctypes.create_string_buffer(UUID)
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDeviceGetUuid_v2", uuid, handle)
    return uuid.raw


def device_of(uuid: bytes) -> int:
    """Return the ordinal of a device in this process.

    Raises
    ------
    CudaError
        The device is not visible to this process.
    """
    count = ctypes.c_int()
    _call("cuDeviceGetCount", ctypes.byref(count))
    for device in range(count.value):
        if uuid_of(device) == uuid:
            return device
    raise CudaError(
        f"CUDA: the owner's device {uuid.hex()} is not among the {count.value} devices of this process; see"
        " CUDA_VISIBLE_DEVICES"
    )


# ------------------------------------------------------------------------------------------------- the owner's side


def allocation_at(address: int, device: int) -> tuple[int, int, int]:
    """Return the address, the size in bytes and the identifier of the allocation that contains an address."""
    base, size, number = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64()
    with on_device(device):
        _call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        _call("cuPointerGetAttribute", ctypes.byref(number), _BUFFER_ID, ctypes.c_uint64(address))
    return base.value, size.value, number.value


def pool_of(address: int) -> int:
    """Return the handle of the stream-ordered pool that contains an address, or 0."""
    pool = ctypes.c_void_p()
    try:
        _call("cuPointerGetAttribute", ctypes.byref(pool), _MEMPOOL_HANDLE, ctypes.c_uint64(address))
    except CudaError:  # some versions of the driver return an error for memory outside of pools
        return 0
    return pool.value or 0


def export_memory(base: int, device: int) -> bytes:
    """Return the IPC handle of an allocation from ``cudaMalloc``."""
    handle = _Bytes()
    with on_device(device):
        _call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
    return bytes(handle.value)


def export_from_pool(base: int, pool: int, device: int) -> tuple[bytes, int]:
    """Return the IPC handle of an allocation from a pool, and a new file descriptor of the pool."""
    data, descriptor = _Bytes(), ctypes.c_int(-1)
    with on_device(device):
        _call("cuMemPoolExportPointer", ctypes.byref(data), ctypes.c_uint64(base))
        _call(
            "cuMemPoolExportToShareableHandle",
            ctypes.byref(descriptor),
            ctypes.c_void_p(pool),
            _POSIX_DESCRIPTOR,
            ctypes.c_uint64(0),
        )
    os.set_inheritable(descriptor.value, False)
    return bytes(data.value), descriptor.value


class Event:
    """Event that other processes can wait for."""

    def __init__(self, device: int) -> None:
        self._device, self._process, self._event = device, os.getpid(), ctypes.c_void_p()
        with on_device(device):
            _call("cuEventCreate", ctypes.byref(self._event), _DISABLE_TIMING | _INTERPROCESS)

    def record(self, stream: int) -> None:
        """Record the event on a stream, after the work that is now queued."""
        capturing = ctypes.c_int()
        with on_device(self._device):
            _call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(capturing))
            if capturing.value:
                raise CudaError("CUDA: the stream of the array is being captured into a graph; end the capture first")
            _call("cuEventRecord", self._event, ctypes.c_void_p(stream))

    def export(self) -> bytes:
        """Return the IPC handle of the event."""
        handle = _Bytes()
        with on_device(self._device):
            _call("cuIpcGetEventHandle", ctypes.byref(handle), self._event)
        return bytes(handle.value)

    def __del__(self) -> None:
        if self._event.value and self._process == os.getpid():
            _driver().cuEventDestroy_v2(self._event)


# ---------------------------------------------------------------------------------------------- the borrower's side


@cache
def _internal_stream(device: int) -> int:
    """Return the stream of a device that waits for other processes. Copies in this process use other streams."""
    stream = ctypes.c_void_p()
    with on_device(device):
        _call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
    return stream.value or 0


def stream_after(event: bytes, stream: int | None, device: int) -> int:
    """Make a stream wait for an event of another process, and return the stream. None selects an internal stream."""
    chosen = _internal_stream(device) if stream is None else stream
    opened = ctypes.c_void_p()
    with on_device(device):
        _call("cuIpcOpenEventHandle", ctypes.byref(opened), _Bytes.from_buffer_copy(event))
        try:
            _call("cuStreamWaitEvent", ctypes.c_void_p(chosen), opened, 0)
        finally:
            _call("cuEventDestroy_v2", opened)  # takes effect once the event is complete
    return chosen


class _Import:
    """Allocation of another process that is mapped in this process, with the number of its users."""

    def __init__(self, address: int, close: Callable[[], None]) -> None:
        self.address, self.close, self.users = address, close, 0


_imports: dict[tuple[bytes, int, int], _Import] = {}  # keyed by (handle, device, process)
_lock = threading.RLock()  # a finalizer may run while the lock is held


class ImportedMemory:
    """Memory of another process, mapped until the object is freed.

    Parameters
    ----------
    handle : bytes
        The handle of the allocation.
    device : int
    descriptor : int, optional
        File descriptor of the allocation's pool.
    """

    def __init__(self, handle: bytes, device: int, descriptor: int | None = None) -> None:
        self._key = (handle, device, os.getpid())
        with _lock:
            found = _imports.get(self._key)
            if found is None:
                found = _open(handle, device) if descriptor is None else _open_from_pool(handle, descriptor, device)
                _imports[self._key] = found
            found.users += 1
        self.address = found.address

    def __del__(self) -> None:
        if not hasattr(self, "address") or self._key[2] != os.getpid():
            return  # CUDA cannot be used in a forked process
        with _lock:
            found = _imports[self._key]
            found.users -= 1
            if found.users == 0:
                del _imports[self._key]
                found.close()


def _open(handle: bytes, device: int) -> _Import:
    address = ctypes.c_uint64()
    with on_device(device):
        _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), _Bytes.from_buffer_copy(handle), _LAZY_PEER_ACCESS)
    return _Import(address.value, lambda: _close(device, ("cuIpcCloseMemHandle", address)))


def _open_from_pool(handle: bytes, descriptor: int, device: int) -> _Import:
    pool, address = ctypes.c_void_p(), ctypes.c_uint64()
    with on_device(device):
        _call(
            "cuMemPoolImportFromShareableHandle",
            ctypes.byref(pool),
            ctypes.c_void_p(descriptor),
            _POSIX_DESCRIPTOR,
            ctypes.c_uint64(0),
        )
        try:
            access = (ctypes.c_int * 3)(1, device, 3)  # CUmemAccessDesc: a device, its ordinal, read and write
            _call("cuMemPoolSetAccess", pool, ctypes.byref(access), ctypes.c_size_t(1))
            _call("cuMemPoolImportPointer", ctypes.byref(address), pool, ctypes.byref(_Bytes.from_buffer_copy(handle)))
        except BaseException:
            _driver().cuMemPoolDestroy(pool)
            raise
    return _Import(address.value, lambda: _close(device, ("cuMemFree_v2", address), ("cuMemPoolDestroy", pool)))


def _close(device: int, *calls: tuple[str, Any]) -> None:
    """Wait for this process's work on the device, then call driver functions that close an import.

    Ignore errors, because the driver may be shutting down.
    """
    try:
        with on_device(device):
            _call("cuCtxSynchronize")
            for name, argument in calls:
                _call(name, argument)
    except BufferError:
        pass
