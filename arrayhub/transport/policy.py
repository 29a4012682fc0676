"""Policy for pickling memory that the host cannot read, and for restoring arrays to their device."""

from __future__ import annotations

import itertools
import os
from types import TracebackType
from typing import Literal, Self

from arrayhub._core.errors import show

# One row per setting: its environment variable, and its accepted values, starting with the default.
_SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "device": ("ARRAYHUB_PICKLING", ("refuse", "host", "keep")),
    "arrive": ("ARRAYHUB_UNPICKLING", ("restore", "host")),
}


def _checked(value: object, name: str, accepted: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name} is {show(value)}; accepted: {', '.join(map(repr, accepted))}")
    return value


def _at_start(name: str) -> str:
    variable, accepted = _SETTINGS[name]
    return _checked(os.environ.get(variable) or accepted[0], variable, accepted)


_settings: dict[str, str] = {}  # of the process
# Values of `pickling` objects that may still be used in a with statement, keyed by the object's id. The last entry has
# precedence.
_pending: dict[int, dict[str, str]] = {}
# Active blocks, keyed by sequence number. Threads may end blocks in any order. The code uses operations that are atomic
# in Python instead of a lock, because finalizers may run this code at any point, and a forked child would inherit a
# held lock.
_blocks: dict[int, pickling] = {}
_numbers = itertools.count()


def setting(name: str) -> str:
    """Return the current value of ``"device"`` or ``"arrive"``. The environment variable provides the default."""
    for block in reversed(list(_blocks.values())):
        if name in block._wanted:
            return block._wanted[name]
    for values in reversed(list(_pending.values())):
        value = values.get(name)
        if value is not None:
            return value
    present = _settings.get(name)
    return _settings.setdefault(name, _at_start(name)) if present is None else present


class pickling:
    """Set how arrays in device memory are pickled, for the process or for a ``with`` block.

    The setting applies to all threads, because queues pickle in separate threads. If several blocks are active, the
    block that was entered last has precedence. Forked processes inherit the setting. Other processes read the
    environment variables ``ARRAYHUB_PICKLING`` (`device`) and ``ARRAYHUB_UNPICKLING`` (`arrive`). Memory that the host
    can read (shared and host USM, pinned and managed CUDA memory) is always pickled as host memory.

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
        self._begun: list[int] = []  # sequence numbers of its active blocks
        given = {"device": device, "arrive": arrive}
        self._wanted = {
            name: _checked(value, f"pickling: {name}", _SETTINGS[name][1])
            for name, value in given.items()
            if value is not None
        }
        if self._wanted:
            _pending[id(self)] = dict(self._wanted)

    def __del__(self, pending: dict[int, dict[str, str]] = _pending, settings: dict[str, str] = _settings) -> None:
        """Make the values permanent if the object was not used in a ``with`` statement, overriding earlier values."""
        own = pending.get(id(self))
        if own is None:
            return
        for earlier in list(pending.values()):
            if earlier is own:
                break
            for name in list(own):  # in place, so that names that another thread has removed stay removed
                earlier.pop(name, None)
        settings.update(own)
        pending.pop(id(self), None)

    def __enter__(self) -> Self:
        _pending.pop(id(self), None)
        number = next(_numbers)
        _blocks[number] = self
        self._begun.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._begun:
            raise RuntimeError("pickling: __exit__ was called without __enter__; use the object in a with statement")
        del _blocks[self._begun.pop()]

    def __repr__(self) -> str:
        return f"<arrayhub.transport.pickling: device={setting('device')!r}, arrive={setting('arrive')!r}>"
