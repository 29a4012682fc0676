"""A refusal to pickle that has to reach somebody: dask's workers send what they cannot serialize again and again.

So a worker sends a stand-in in place of the array, and makes one of what has arrived and it cannot have. On another
worker any use of it raises the refusal, within the task that wanted the array, and that is what the client is told.
Where no worker is, it raises on arrival.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn


def refused(error: pickle.PicklingError) -> tuple[Callable[[str], Any], tuple[str]]:
    """Raise `error`, or return what is pickled in place of the array."""
    if not _in_a_message():
        raise error
    return _refused, (str(error),)


def not_restored(error: pickle.UnpicklingError) -> Refused:
    """Raise `error`, or return what stands for an array that has arrived and cannot be had on this worker: it would ask
    for it again and again."""
    if not _in_a_message():
        raise error
    return Refused(str(error))


def _in_a_message() -> bool:
    """Whether a worker of dask is writing or reading a message."""
    if not _on_worker():
        return False
    callers = _modules_calling()
    # What spills keeps the array in memory when it is told the truth; so does who pickles in a task.
    return "distributed.protocol.pickle" in callers and "distributed.spill" not in callers


def _refused(message: str) -> Any:
    """Return the stand-in for an array that was not sent, or raise `message` where no worker would swallow it."""
    if not _on_worker():
        raise pickle.PicklingError(message)
    return Refused(message)


_refused.__module__ = "arrayhub"  # the name in every pickle: it outlives where the function lies


def _on_worker() -> bool:
    module = sys.modules.get("distributed.worker")
    return bool(getattr(getattr(module, "Worker", None), "_instances", ()))


def _modules_calling() -> set[str]:
    names = set()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        names.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return names


def _using(self: Refused, *arguments: Any, **keywords: Any) -> NoReturn:
    raise pickle.PicklingError(self._message)


class Refused:
    """Stands for an array that a worker could not send. Whatever is done with it raises the reason."""

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
