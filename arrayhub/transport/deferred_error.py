"""A refusal to pickle that has to reach somebody: much of dask sends or waits again, and tells nobody why.

So in a message of dask a stand-in is sent in place of an array, and one is made of what has arrived and cannot be had,
there and in the pools of processes that Python has.
Any use of it raises the refusal, within the task that wanted the array, and that is what the client is told. Where the
reader of a message hears of errors, the stand-in raises on arrival.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

# Callers that lose an error of a message that they read: the call of an actor's method is waited for without end, the
# scheduler says that versions differ, and who asks a worker for data leaves it waiting for thanks, so that it takes the
# next question for those.
_DEAF = {"distributed.actor", "distributed.scheduler", "distributed.worker"}

# Pools of processes: an error about a task or a result that arrives ends the thread or the process that reads it.
_POOLS = {"multiprocessing.pool", "concurrent.futures.process"}
_TRANSPORTS = {"multiprocessing.queues", "multiprocessing.connection"}


def refused(error: Exception) -> tuple[Callable[[str], Any], tuple[str]]:
    """Raise `error`, or return what is pickled in place of the array."""
    if not _is_sent_by_dask():
        raise error
    return _refused, (_words(error),)


def not_restored(error: Exception) -> Refused:
    """Raise `error`, or return what stands for an array that has arrived and cannot be had here."""
    if not _is_read_unheard():
        raise error
    return Refused(_words(error))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, pickle.PickleError) else f"arrayhub: {type(error).__name__}: {error}"


def is_read_by_scheduler() -> bool:
    """Return whether dask's scheduler is unpickling: what it reads of a graph, it sends on to a worker."""
    return "distributed.scheduler" in _modules_calling()


def _is_sent_by_dask() -> bool:
    callers = _modules_calling()
    # What spills keeps the array in memory when it is told the truth; so does who pickles in a task. Sending in batches
    # tells nobody of errors. Of what a client sends, only the serializers keep the words from the user.
    if "distributed.protocol.pickle" not in callers or "distributed.spill" in callers or _is_tried_for_an_error():
        return False
    return _is_of_a_worker(callers) or not callers.isdisjoint({"distributed.protocol.serialize", "distributed.batched"})


def _is_tried_for_an_error() -> bool:
    """Return whether dask tries if an exception can be sent: one that holds an array goes as its words if not."""
    return any(frame.f_code.co_name == "error_message" and _module(frame) == "distributed.core" for frame in _calling())


def _is_read_unheard() -> bool:
    if _is_read_by_pool():
        return True
    callers = _modules_calling()
    if callers.isdisjoint({"distributed.protocol.pickle", "distributed.protocol.serialize"}):
        return False
    if "distributed.spill" in callers:
        return False
    if not callers.isdisjoint(_DEAF):
        return True
    if "distributed.comm.utils" not in callers:
        return False
    # A large message is read in a thread of its own, where nobody can be seen who waits for it.
    return "distributed.core" not in callers or _is_of_a_worker(callers)


def _is_read_by_pool() -> bool:
    """Return whether a pool of processes reads, and not a task that has a queue of its own."""
    reading = False
    for frame in _calling():
        module = _module(frame)
        if reading and module not in _TRANSPORTS:
            return module in _POOLS
        reading = reading or module in _TRANSPORTS
    return False


def _is_of_a_worker(callers: set[str]) -> bool:
    """Return whether this process has a worker, and it is not a client beside it that asks."""
    module = sys.modules.get("distributed.worker")
    return bool(getattr(getattr(module, "Worker", None), "_instances", ())) and "distributed.client" not in callers


def _refused(message: str) -> Any:
    """Return the stand-in for an array that was not sent, or raise `message` where somebody hears it."""
    return not_restored(pickle.PicklingError(message))


_refused.__module__ = "arrayhub"  # the name in every pickle: it outlives where the function lies


def _calling() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name


def _modules_calling() -> set[str]:
    return set(map(_module, _calling()))


def _using(self: Refused, *arguments: Any, **keywords: Any) -> NoReturn:
    raise pickle.PicklingError(self._message)


class Refused:
    """Stands for an array that could not be sent or had. Whatever is done with it raises the reason."""

    __slots__ = ("_message",)

    def __init__(self, message: str) -> None:
        self._message = message

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _refused, (self._message,)

    def __repr__(self) -> str:
        return f"<an array that was not sent: {self._message}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and not name.startswith(("__array", "__dlpack", "__cuda", "__sycl", "__usm")):
            raise AttributeError(name)  # engines ask any object for their own, and mean no array by it
        raise pickle.PicklingError(self._message)

    # Python looks these up in the class.
    __array__ = __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __bool__ = __call__ = _using
    __float__ = __int__ = __index__ = __complex__ = __buffer__ = _using
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _using
    __matmul__ = __rmatmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _using
