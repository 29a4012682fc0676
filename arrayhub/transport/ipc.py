"""IPC handles: access to an array's memory from other processes of the same machine, without a copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.inspection.datashape import type_of
from arrayhub.runtimes.shared_segment import duplicate_descriptor, received_segment, segment_at
from arrayhub.transport.codec import check_version, state_error
from arrayhub.transport.ipc_server import IDENTIFIER, Borrow, Entry, Grant, digest_of, server
from arrayhub.transport.pickles import in_place, state_in_place

_VERSION = 1
_ACCESS = {0: "immutable", 1: "readonly", 2: "readwrite", 4: "immutable", 5: "readonly", 6: "readwrite"}  # in a state


class Description(NamedTuple):
    """Content of a handle. The owner refuses handles with another content."""

    version: int
    process: int
    server: str  # contains a random number, so that the name does not exist on another machine or after a restart
    identifier: bytes
    device: str
    allocation: str
    type: str  # datashape
    state: tuple[Any, ...]  # see transport/pickles.pyx; its offset counts from the start of the allocation


class IpcHandle:
    """Handle to an array's memory, for other processes on the same machine. Created by `ipc_handle`.

    A handle is a small object that can be pickled. It contains neither elements nor addresses. The owner is the process
    that called `ipc_handle`. A borrow begins with the ``with`` block of `open`, which documents when the borrow ends.
    In the owner, the handle keeps the memory alive and counts the open borrows of all copies of the handle.

    Examples
    --------
    The owner usually passes the handle to another process, which opens it.

    >>> x = arrayhub.from_array(numpy.arange(3.0), memory="shared_memory")
    >>> handle = arrayhub.ipc_handle(x)
    >>> handle.type, handle.borrowers
    ('3 * float64', 0)
    >>> with handle.open() as y:
    ...     y[0] = 7
    >>> x.tolist()
    [7.0, 1.0, 2.0]
    """

    __slots__ = ("__weakref__", "_description", "_entry")

    def __init__(self, description: Description, entry: Entry | None = None) -> None:
        self._description, self._entry = description, entry

    @property
    def process(self) -> int:
        """Process id of the owner."""
        return self._description.process

    @property
    def device(self) -> str:
        """Device of the memory, such as ``"cpu"`` or ``"cuda:0"``."""
        return self._description.device

    @property
    def allocation(self) -> str:
        """Identifier of the allocation that contains the elements. Views of one allocation have the same identifier."""
        return self._description.allocation

    @property
    def offset(self) -> int:
        """Bytes from the start of the allocation to element zero."""
        return self._description.state[3]

    @property
    def type(self) -> str:
        """Shape and element type, as in `datashape.of`."""
        return self._description.type

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions, in elements."""
        return self._description.state[1]

    @property
    def byte_strides(self) -> tuple[int, ...] | None:
        """Strides in bytes, or None for C order."""
        return self._description.state[2]

    @property
    def access(self) -> str:
        """Access of a borrower: ``"readwrite"``, ``"readonly"`` or ``"immutable"``."""
        return _ACCESS[self._description.state[5]]

    @property
    def borrowers(self) -> int:
        """Number of open borrows, without the borrows of killed processes. Only the owner can read this number."""
        return len(self._require_owner("borrowers").processes())

    @contextmanager
    def open(self, *, stream: Any = None) -> Iterator[USMArray]:
        """Return a context manager for an array that shares the owner's memory.

        The borrow lasts until the end of the ``with`` block, or of the process. Do not use the array or its views after
        the block, because the owner may write other data to the memory. An access after the block does not crash the
        process.

        CUDA device memory stays borrowed until the array and its views are freed, because CUDA forbids freeing memory
        that another process has mapped. The end of the borrow waits for the work of this process on the device.

        Parameters
        ----------
        stream : optional
            CUDA stream that waits for the owner's work on the array. By default, each consumer of the array waits.
            Unused for host memory.

        Returns
        -------
        context manager of USMArray

        Raises
        ------
        ConnectionRefusedError
            The owner has ended, has closed the handle or runs as a different user. Also raised if the handle was
            altered, or is from another machine or from before a restart of this machine.
        BufferError
            The CUDA driver cannot import the memory, or this process does not see the device.

        Examples
        --------
        >>> import arrayhub
        >>> x = arrayhub.zeros(3, memory="shared_memory")
        >>> handle = arrayhub.ipc_handle(x)
        >>> with handle.open() as y:  # usually in another process
        ...     y[0] = 7
        >>> handle.close()
        >>> x.tolist()
        [7.0, 0.0, 0.0]
        """
        try:
            borrow = Borrow(self._description.server, digest_of(self._description))
        except ConnectionRefusedError as error:
            raise self._refusal(str(error)) from error
        is_lasting = self.device != "cpu" and not borrow.is_local  # the borrow ends when the memory is freed
        try:
            array = self._on_host(borrow) if self.device == "cpu" else self._on_device(borrow, stream)
        except BaseException:
            borrow.end()
            raise
        try:
            yield array
        finally:
            del array
            if not is_lasting:
                borrow.end()

    def close(self, timeout: float | None = None) -> None:
        """Refuse new borrows, and wait until all open borrows have ended.

        Parameters
        ----------
        timeout : float, optional
            Limit in seconds. By default the wait is unlimited.

        Raises
        ------
        TimeoutError
            Borrows are still open. The message names their process ids. The memory stays valid for these processes, and
            the method can be called again.
        """
        remaining = self._require_owner("close").close(timeout)
        if remaining:
            raise TimeoutError(
                f"IpcHandle: {len(remaining)} borrows are open after {timeout} s, in process"
                f" {', '.join(map(str, remaining))}; each ends with its with block. Call close(timeout) again"
            )

    def _require_owner(self, name: str) -> Entry:
        if self._entry is None or self._entry.server.process != os.getpid():  # a copy, or a forked process
            raise ValueError(f"IpcHandle: only the owner, process {self.process}, may use {name}; call open() here")
        return self._entry

    def _refusal(self, reason: str) -> ConnectionRefusedError:
        return ConnectionRefusedError(
            f"IpcHandle: process {self.process}: {reason}. Let a running process of this machine call"
            " arrayhub.ipc_handle(x), or send arrayhub.to_host(x)"
        )

    def _on_device(self, borrow: Borrow, stream: Any) -> USMArray:
        from arrayhub.transport.ipc_cuda import Mapped

        if borrow.is_local:  # CUDA cannot import memory of the same process
            for descriptor in borrow.descriptors:
                os.close(descriptor)
            return asarray(borrow.local_memory(), stream=stream)
        memory = asarray(Mapped(borrow, stream, self.access == "readwrite"))
        array: USMArray = in_place(self._description.state, memory)
        return array

    def _on_host(self, borrow: Borrow) -> USMArray:
        try:
            segment = received_segment(borrow.descriptors, self.access == "readwrite")
        except (OSError, ValueError) as error:
            raise self._refusal(f"it did not send shared memory ({error})") from error
        array: USMArray = in_place(self._description.state, asarray(segment))
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        return _ipc_handle, (tuple(self._description),)

    def __del__(self) -> None:
        entry = getattr(self, "_entry", None)
        if entry is not None:
            entry.drop()

    def __repr__(self) -> str:
        return f"<IpcHandle of process {self.process}: {self.type}, {self.access}, on {self.device}>"


IpcHandle.__module__ = "arrayhub"


def _ipc_handle(description: object) -> IpcHandle:
    """Restore a handle from its pickled state. The owner validates the handle when a process opens it.

    Raise UnpicklingError if the values do not describe a handle of this version.
    """
    forms = (int, int, str, bytes, str, str, str, tuple)
    if type(description) is not tuple or tuple(map(type, description)) != forms or len(description[3]) != IDENTIFIER:
        raise state_error("the IPC handle", description, "the state of a handle")
    check_version("the IPC handle", description[0], _VERSION)
    made = Description(*description)
    if len(made.state) != 8 or made.state[5] not in [*_ACCESS]:
        raise state_error("the layout of the IPC handle", made.state, "the state of an array")
    return IpcHandle(made)


_ipc_handle.__module__ = "arrayhub"  # pickles name this module, so the function can move


def ipc_handle(x: Any, /) -> IpcHandle:
    """Return a handle with which other processes of this machine open the memory of an array, without a copy.

    Pass the handle to the other process as an argument or a message. There, ``with handle.open() as y`` gives a
    `USMArray` of the same memory. Read-only memory stays read-only.

    The handle keeps the memory alive, and can be opened until `IpcHandle.close`, which waits for the other processes.

    If the handle is deleted in this process, the kind of memory determines how long its copies can be opened:

    - shared memory: until the memory is freed
    - CUDA memory of a `USMArray`: until the array is freed
    - CUDA memory of another library's array: no longer

    Parameters
    ----------
    x : object
        Array of any layout and any library, in memory of ``arrayhub.empty(..., memory="shared_memory")`` or in CUDA
        device memory.

    Returns
    -------
    IpcHandle

    Raises
    ------
    BufferError
        The memory cannot be opened by other processes. The message names a call that works.

    Examples
    --------
    >>> import pickle
    >>> import arrayhub
    >>> x = arrayhub.zeros((2, 3), memory="shared_memory")
    >>> handle = arrayhub.ipc_handle(x)
    >>> received = pickle.loads(pickle.dumps(handle))  # in another process
    >>> with received.open() as y:
    ...     y[0, 0] = 1
    ...     handle.borrowers
    1
    >>> handle.close()
    >>> x[0, 0].item()
    1.0
    """
    array = asarray(x)
    state, address, nbytes = state_in_place(array)
    memory: Any
    grant: Grant
    if array.device.type == "cuda" and array.size:
        from arrayhub.transport.ipc_cuda import Export

        export = Export(array, address)
        memory, grant = array, export.grant
        allocation, start = f"cuda {export.number}", export.base
    else:
        segment = segment_at(address, nbytes) if array.device == "cpu" else None
        if segment is None:
            empty = "" if array.size else " but is empty"
            raise BufferError(
                f"ipc_handle: the array is in private memory on {array.device}{empty}; accepted: memory of"
                " arrayhub.empty(..., memory='shared_memory'), and CUDA device memory. Use"
                " arrayhub.ipc_handle(arrayhub.from_array(x, memory='shared_memory')), which copies"
            )
        writable = array.access == "readwrite"
        memory, grant = segment, lambda segment: (b"", [duplicate_descriptor(segment, writable)])
        allocation, start = f"memfd {os.fstat(segment.descriptor).st_ino}", segment.address
    state = (*state[:3], state[3] + address - start, *state[4:])
    own = server()
    entry = own.entry_for(memory, grant, f"{allocation} {state}")
    description = Description(
        _VERSION,
        own.process,
        own.name,
        entry.identifier,
        str(array.device),
        allocation,
        str(type_of(array)),
        state,
    )
    entry.publish(digest_of(description))
    return IpcHandle(description, entry)
