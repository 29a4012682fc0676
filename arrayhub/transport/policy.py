"""Policy for pickling memory that the host cannot read, and for restoring arrays to their device."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Literal, Self

from arrayhub._core.errors import show

# One row per setting: its environment variable, and its accepted values, starting with the default.
_SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "device": ("ARRAYHUB_PICKLING", ("refuse", "host", "keep")),
    "arrive": ("ARRAYHUB_UNPICKLING", ("restore", "host")),
}
_lasting: dict[str, str] = {}  # settings that no block can end
# Values of later calls, the latest last. The first entry whose `pickling` object was freed cannot end any more.
_applied: list[tuple[weakref.ref[pickling], dict[str, str]]] = []
_lock = threading.RLock()  # reentrant, because a finalizer may call `pickling` at any point


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def setting(name: str) -> str:
    """Return the current value of ``"device"`` or ``"arrive"``. The environment variable provides the default."""
    for _, values in reversed(_applied.copy()):
        if name in values:
            return values[name]
    if name not in _lasting:
        variable, accepted = _SETTINGS[name]
        _lasting[name] = _check_value(os.environ.get(variable) or accepted[0], variable, accepted)
    return _lasting[name]


def _check_value(value: object, name: str, accepted: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name} is {show(value)}; accepted: {', '.join(map(repr, accepted))}")
    return value


class pickling:
    """Set how arrays in device memory are pickled, for the process or for a ``with`` block.

    A call applies at once, to all threads, because queues pickle in separate threads. If the result is used in a
    ``with`` statement, the end of the block removes the setting. Of several settings, the last call has precedence.
    Forked processes inherit the settings. Other processes read the environment variables ``ARRAYHUB_PICKLING``
    (`device`) and ``ARRAYHUB_UNPICKLING`` (`arrive`). Memory that the host can read (shared and host USM, pinned and
    managed CUDA memory) is always pickled as host memory.

    Parameters
    ----------
    device : {"refuse", "host", "keep"}, optional
        Handling of memory that the host cannot read. If omitted, the setting does not change.

        - ``"refuse"``, the initial setting: raise `pickle.PicklingError`.
        - ``"host"``: pickle a host copy, which is restored as a host array.
        - ``"keep"``: pickle a host copy, and record the device and the kind of memory. Both are also
          recorded for device memory that the host can read.
    arrive : {"restore", "host"}, optional
        Handling of a recorded device on arrival. If omitted, the setting does not change.

        - ``"restore"``, the initial setting: return an array in the same kind of memory, on the receiver's device of
          the same type and number, or raise `pickle.UnpicklingError`.
        - ``"host"``: return a host array.

    Raises
    ------
    ValueError
        An argument is invalid. An invalid environment variable raises PicklingError or UnpicklingError later.

    Examples
    --------
    >>> import arrayhub
    >>> with arrayhub.transport.pickling(device="host"):
    ...     pass  # arrays pickled here are copied from their device to the host
    """

    def __init__(
        self,
        device: Literal["refuse", "host", "keep"] | None = None,
        arrive: Literal["restore", "host"] | None = None,
    ) -> None:
        self._values = {
            name: _check_value(value, f"pickling: {name}", _SETTINGS[name][1])
            for name, value in (("device", device), ("arrive", arrive))
            if value is not None
        }
        self._entered = 0
        if self._values:
            self._apply()

    def _apply(self) -> None:
        with _lock:
            while _applied and _applied[0][0]() is None:
                _lasting.update(_applied[0][1])
                del _applied[0]
            _applied.append((weakref.ref(self), self._values))

    def _remove(self) -> None:
        with _lock:
            for k in reversed(range(len(_applied))):
                if _applied[k][1] is self._values:
                    del _applied[k]
                    break

    def __enter__(self) -> Self:
        if not self._entered:
            self._remove()  # the block has precedence over calls since the object was made
        self._entered += 1
        self._apply()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._entered:
            raise RuntimeError("pickling: __exit__ was called without __enter__; use the object in a with statement")
        self._entered -= 1
        self._remove()

    def __repr__(self) -> str:
        return f"<arrayhub.transport.pickling: device={setting('device')!r}, arrive={setting('arrive')!r}>"
