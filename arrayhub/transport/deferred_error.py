"""Deferred pickling errors. For many errors during pickling or unpickling, dask retries the message or hangs.

A dask message therefore contains a placeholder for an array that cannot be sent. A placeholder also replaces a received
array that cannot be restored, in dask and in Python's process pools. A task that uses the placeholder as an array gets
a PicklingError with the original message, so that the client receives the error. If the reader of a message reports
errors, the error is raised on arrival instead.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from arrayhub.libraries.consumer_quirks import calling, quirk

_SENDING = quirk("dask", "a pickle that cannot be made")
_RECEIVING = quirk("dask", "a pickle that cannot be restored")
_POOLS = quirk("process pools", "a pickle that cannot be restored")
_FORWARDING = quirk("dask", "a pickle of device memory that is loaded")

_UNPICKLERS = {"distributed.protocol.pickle", "distributed.protocol.serialize"}
_MESSAGES = "distributed.comm.utils"  # reads messages for callers that report errors and for callers that lose errors
_TRANSPORTS = {"multiprocessing.queues", "multiprocessing.connection"}


def refused(error: Exception) -> tuple[Callable[[str], Any], tuple[str]]:
    """Return the pickle function and arguments of a placeholder if dask is sending the array, else raise `error`."""
    if not _is_sent_by_dask():
        raise error
    return _refused, (_message_of(error),)


def not_restored(error: Exception) -> Refused:
    """Return a placeholder for a received array if the reader loses errors, else raise `error`."""
    if not _reader_loses_errors():
        raise error
    return Refused(_message_of(error))


def _message_of(error: Exception) -> str:
    return str(error) if isinstance(error, pickle.PickleError) else f"arrayhub: {type(error).__name__}: {error}"


def is_read_by_scheduler() -> bool:
    """Return whether dask's scheduler is unpickling, which only forwards the objects of a graph to a worker."""
    return not _modules_calling().isdisjoint(_FORWARDING.callers)


def _is_sent_by_dask() -> bool:
    callers = _modules_calling()
    # dask handles or reports an error when it spills an array or pickles an array inside a task. Batched sends lose
    # errors. In a client, only errors that the serializers raise lose their message.
    if callers.isdisjoint(_SENDING.callers) or "distributed.spill" in callers or _is_tried_for_an_error():
        return False
    return _is_of_a_worker(callers) or not callers.isdisjoint({"distributed.protocol.serialize", "distributed.batched"})


def _is_tried_for_an_error() -> bool:
    """Return whether dask is testing if an exception can be pickled.

    dask sends only the message of an exception that cannot be pickled.
    """
    return ("distributed.core", "error_message") in calling()


def _reader_loses_errors() -> bool:
    """Return whether the reader is a process pool or a part of dask that loses errors.

    A lost error would have one of these effects in dask:

    - A method call on an actor would wait forever.
    - The scheduler would report that the processes have different versions.
    - A client that reads a worker's data would not send its acknowledgment, and the worker would interpret the next
      request as the acknowledgment.
    """
    if _is_read_by_pool():
        return True
    callers = _modules_calling()
    if callers.isdisjoint(_UNPICKLERS) or callers.isdisjoint(_RECEIVING.callers) or "distributed.spill" in callers:
        return False
    if callers & set(_RECEIVING.callers) != {_MESSAGES}:
        return True
    # A large message is read in a separate thread, whose stack does not contain the waiting reader.
    return "distributed.core" not in callers or _is_of_a_worker(callers)


def _is_read_by_pool() -> bool:
    """Return whether a process pool reads the pickle, and not a task that reads from a queue of its own."""
    reading = False
    for module, _ in calling():
        if reading and module not in _TRANSPORTS:
            return module in _POOLS.callers
        reading = reading or module in _TRANSPORTS
    return False


def _is_of_a_worker(callers: set[str]) -> bool:
    """Return whether this process runs a worker and the caller is not a client in the same process."""
    module = sys.modules.get("distributed.worker")
    return bool(getattr(getattr(module, "Worker", None), "_instances", ())) and "distributed.client" not in callers


def _refused(message: str) -> Any:
    """Return the placeholder for an array that was not sent, or raise PicklingError if the reader reports errors."""
    return not_restored(pickle.PicklingError(message))


_refused.__module__ = "arrayhub"  # pickles name this module, so the function can move


def _modules_calling() -> set[str]:
    return {module for module, _ in calling()}


def _using(self: Refused, *arguments: Any, **keywords: Any) -> NoReturn:
    raise pickle.PicklingError(self._message)


# Prefixes of the attributes of protocols, and of similar attributes of libraries, such as __arrow_array__.
_PREFIXES = ("__array", "__arrow", "__cuda", "__dlpack", "__sycl", "__usm")


class Refused:
    """Placeholder for an array that could not be sent or restored.

    Using the placeholder as an array raises PicklingError.
    """

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _refused, (self._message,)

    def __repr__(self) -> str:
        return f"<an array that was not sent: {self._message}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and not name.startswith(_PREFIXES):
            raise AttributeError(name)  # libraries probe every object for protocol attributes
        raise pickle.PicklingError(self._message)

    __hash__ = None  # type: ignore[assignment]  # not hashable, like arrays; dask catches the TypeError of `hash`


# Python looks up special methods in the class.
_METHODS = (
    *("array", "len", "iter", "getitem", "setitem", "delitem", "contains", "call", "buffer"),
    *("bool", "float", "int", "index", "complex", "neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"),
)
_OPERATORS = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("lshift", "rshift", "and", "xor", "or"),
)
for _name in (*_METHODS, *_OPERATORS, *(f"r{name}" for name in _OPERATORS)):
    setattr(Refused, f"__{_name}__", _using)
