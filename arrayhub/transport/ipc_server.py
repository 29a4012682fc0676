"""Connections between the owner of an IPC handle and the processes that open it.

The first handle starts a thread that listens on an abstract Unix socket, which does not have a file. Each open borrow
is one connection, and one thread of the owner, which waits for its end. The kernel closes a connection when its process
ends, so each side notices when the other side is killed.

A request is the digest of the handle's description, which contains a random identifier. The owner looks up the digest
among those that it published, so a handle that was altered, closed or guessed is refused.

The owner replies with ``+`` and the data of the memory, or with ``-`` and a reason. File descriptors are attached to
the reply (unix(7): SCM_RIGHTS).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from arrayhub.runtimes import call_after_fork

IDENTIFIER = 16  # bytes
_DIGEST = 32  # bytes
_PAUSE = 0.05  # seconds to wait if the limit of open files is reached
_BACKLOG = 128
WAIT = 60  # seconds after which an owner that does not answer is assumed to have ended
_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group

_UNKNOWN = "the handle was altered or closed, or the owner has freed the memory. Keep the object of ipc_handle"

# Function that returns the data for the reply to a borrower, and new file descriptors to send with the reply.
Grant = Callable[[Any], tuple[bytes, list[int]]]


class Entry:
    """Memory that the owner passes to other processes, and its open connections.

    The handle and each connection keep the memory alive. If the handle is dropped, the entry stays until the memory is
    freed, so that a handle may be a temporary argument of a call.
    """

    def __init__(self, server: Server, memory: Any, grant: Grant, layout: str) -> None:
        self.server, self.identifier, self.grant, self.layout = server, os.urandom(IDENTIFIER), grant, layout
        self.memory = memory  # None after the handle is dropped
        self.find_memory = weakref.ref(memory, self._forget)
        self.digest = b""
        self.is_closed = False  # whether new borrowers are refused
        self.borrowers: dict[socket.socket, int] = {}  # the process id of each connection; guarded by server.changed

    def publish(self, digest: bytes) -> None:
        """Accept requests for a handle whose description has this digest."""
        self.digest = digest
        self.server.entries[digest] = self

    def drop(self) -> None:
        """Keep the entry until its memory is freed, or until a new handle of the same memory reuses the entry."""
        if not self.is_closed:
            self.server.dropped[self.layout] = self
        self.memory = None

    def _forget(self, _: object) -> None:
        self.server.entries.pop(self.digest, None)
        if self.server.dropped.get(self.layout) is self:
            self.server.dropped.pop(self.layout, None)

    def processes(self) -> list[int]:
        """Return the process id of each open borrower."""
        with self.server.changed:
            return [process for connection, process in self.borrowers.items() if not has_ended(connection)]

    def close(self, timeout: float | None) -> list[int]:
        """Refuse new borrowers, and wait for the present borrowers. Return the process ids that remain."""
        self.is_closed = True
        with self.server.changed:
            self.server.changed.wait_for(lambda: not self.processes(), timeout)
            remaining = self.processes()
        if not remaining:
            self.memory = None
            self._forget(None)
        return remaining


class Server:
    """Thread that accepts the connections of borrowers, and a thread for each open borrow. One server per process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.name = f"arrayhub-{os.urandom(16).hex()}"
        self.entries: dict[bytes, Entry] = {}  # keyed by digest
        self.dropped: dict[str, Entry] = {}  # keyed by layout, so that a new handle of an array reuses the entry
        self.changed = threading.Condition()
        self._listener = _new_socket()
        self._listener.settimeout(None)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(_BACKLOG)
        _start_thread(self._serve)

    def entry_for(self, memory: Any, grant: Grant, layout: str) -> Entry:
        """Return a new entry, or the entry of a dropped handle of the same memory and layout."""
        entry = self.dropped.pop(layout, None)
        if entry is None or entry.is_closed or entry.find_memory() is not memory:
            return Entry(self, memory, grant, layout)
        entry.memory, entry.grant = memory, grant
        return entry

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:  # the limit of open files
                time.sleep(_PAUSE)
                continue
            _sockets.add(connection)
            try:
                connection.settimeout(None)
                _start_thread(self._lend, connection)
            except Exception:  # the limit of threads, or no memory: the borrower sees that the connection ends
                self._end(connection)

    def _lend(self, connection: socket.socket) -> None:
        """Answer the request of a borrower, and keep the memory alive until the borrower ends the connection."""
        entry = None
        try:
            entry, memory = self._admit(connection)
            payload, descriptors = entry.grant(memory)
            try:
                socket.send_fds(connection, [b"+" + payload], descriptors, socket.MSG_NOSIGNAL)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            connection.recv(1)  # a borrower sends only one request, so this waits for its end
        except ConnectionRefusedError as refusal:
            _refuse(connection, str(refusal))
        except Exception as error:  # an error of a driver, or the borrower has ended
            _refuse(connection, f"the owner cannot export the memory: {error}")
        finally:
            self._end(connection, entry)

    def _admit(self, connection: socket.socket) -> tuple[Entry, Any]:
        """Read a request, and register the borrower. Return the entry and its memory.

        Raise ConnectionRefusedError with the reason if the request is refused.
        """
        request = connection.recv(_DIGEST + 1)
        process = peer_of(connection, "the borrower")
        entry = self.entries.get(request)
        with self.changed:
            memory = None if entry is None or entry.is_closed else entry.find_memory()
            if entry is None or memory is None:
                raise ConnectionRefusedError(_UNKNOWN)
            entry.borrowers[connection] = process
        return entry, memory

    def _end(self, connection: socket.socket, entry: Entry | None = None) -> None:
        with self.changed:
            if entry is not None:
                entry.borrowers.pop(connection, None)
            self.changed.notify_all()
        connection.close()


_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # of the owner's and the borrower's side


def _new_socket() -> socket.socket:
    if sys.platform != "linux":
        raise OSError("ipc_handle: requires Linux (abstract Unix sockets, which pass file descriptors)")
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _sockets.add(made)
    return made


def _start_thread(function: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, name="arrayhub IPC", daemon=True).start()


def _refuse(connection: socket.socket, reason: str) -> None:
    with contextlib.suppress(OSError):  # the borrower has ended
        connection.send(b"-" + reason.encode(), socket.MSG_NOSIGNAL)


def peer_of(connection: socket.socket, name: str) -> int:
    """Return the process id of the other side, or raise ConnectionRefusedError if it runs as another user."""
    size = _CREDENTIALS.size
    process, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if user != os.geteuid():
        raise ConnectionRefusedError(f"{name} runs as user {user}; accepted: user {os.geteuid()}, as this process")
    own_process: int = process
    return own_process


def has_ended(connection: socket.socket) -> bool:
    """Return whether the other side has closed its end, without reading from the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def digest_of(description: tuple[Any, ...]) -> bytes:
    """Return the digest of a handle's description."""
    return hashlib.sha256(repr(tuple(description)).encode()).digest()


# ------------------------------------------------------------------------------------------------- the borrower's side


class Borrow:
    """Connection to the owner, which is closed at the end of the borrow."""

    def __init__(self, name: str, digest: bytes) -> None:
        """Connect to a server and send a request. Raise ConnectionRefusedError with the reason if that fails."""
        self._digest, self._connection = digest, _new_socket()
        try:
            self.payload, self.descriptors = self._reply(name)
        except BaseException:
            self.end()
            raise

    def _reply(self, name: str) -> tuple[bytes, list[int]]:
        self._connection.settimeout(WAIT)
        try:
            self._connection.connect(f"\0{name}")
        except OSError as error:
            raise ConnectionRefusedError(
                "it has ended, or runs on another machine or in another network namespace such as another container"
                f" ({error.strerror or error})"
            ) from error
        self.process = peer_of(self._connection, "it")
        try:
            self._connection.send(self._digest, socket.MSG_NOSIGNAL)
            message, descriptors, _, _ = socket.recv_fds(self._connection, 4096, 4, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError as error:
            raise ConnectionRefusedError(f"it has not answered for {WAIT} seconds") from error
        except OSError as error:
            raise ConnectionRefusedError(f"it has ended ({error.strerror or error})") from error
        if message[:1] != b"+":
            for descriptor in descriptors:
                os.close(descriptor)
            raise ConnectionRefusedError(message[1:].decode() or "it has ended")
        return message[1:], list(descriptors)

    @property
    def is_local(self) -> bool:
        """True if the owner is this process."""
        return self.process == os.getpid()

    def local_memory(self) -> Any:
        """Return the memory if this process is the owner. The borrow keeps the memory alive."""
        return server().entries[self._digest].find_memory()

    def end(self) -> None:
        """Tell the owner that the borrow has ended, even if a forked child has inherited the connection."""
        with contextlib.suppress(OSError):  # the owner has ended
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


# ------------------------------------------------------------------------------------------------- state of the process

_server: Server | None = None
_lock = threading.Lock()
_inherited: list[Server] = []  # the parent's servers, never freed, because they hold the parent's memory


def server() -> Server:
    """Return the server of this process, and start it on the first call."""
    global _server
    with _lock:
        if _server is None:
            _server = Server()
        return _server


def _after_fork() -> None:
    """Close the inherited descriptors, which would keep the parent's connections open. Its borrows remain active."""
    global _server, _lock
    _lock = threading.Lock()
    for connection in list(_sockets):
        with contextlib.suppress(OSError):
            connection.close()
    if _server is not None:
        _inherited.append(_server)
        _server = None


call_after_fork(_after_fork)
