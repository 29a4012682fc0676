"""What happens to memory that the host cannot read when it is pickled, and to what stands for it when that arrives."""

from __future__ import annotations

import itertools
import os
from types import TracebackType
from typing import Literal, Self

from arrayhub._core.errors import show

# A row a setting: the environment variable that processes start with, and its values, the default first.
_SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "device": ("ARRAYHUB_PICKLING", ("refuse", "host", "keep")),
    "arrive": ("ARRAYHUB_UNPICKLING", ("restore", "host")),
}


def _checked(value: object, said: str, accepted: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{said} is {show(value)}; accepted: {', '.join(map(repr, accepted))}")
    return value


def _at_start(name: str) -> str:
    variable, accepted = _SETTINGS[name]
    return _checked(os.environ.get(variable) or accepted[0], variable, accepted)


_settings: dict[str, str] = {}  # of the process
# Of objects that may still be used for a block, by their ids; the last one counts.
_said: dict[int, dict[str, str]] = {}
# Blocks that have not ended, by the numbers that they began with; threads end them in any order. No lock: a finalizer
# may come here in the middle of anything, and a forked child would inherit it. Each step is one that Python does whole.
_blocks: dict[int, pickling] = {}
_numbers = itertools.count()


def setting(name: str) -> str:
    """Return the present value of ``"device"`` or ``"arrive"``; that of the environment until somebody sets it."""
    for block in reversed(list(_blocks.values())):
        if name in block._wanted:
            return block._wanted[name]
    for said in reversed(list(_said.values())):
        value = said.get(name)
        if value is not None:
            return value
    present = _settings.get(name)
    return _settings.setdefault(name, _at_start(name)) if present is None else present


class pickling:
    """Say what becomes of arrays in device memory that are pickled; at once, or for a ``with`` block.

    It holds for the whole process, not for a thread: queues pickle in threads of their own. Of several blocks the one
    that began last counts until it ends. Processes that are forked later inherit it; others read the environment
    variables ``ARRAYHUB_PICKLING`` (`device`) and ``ARRAYHUB_UNPICKLING`` (`arrive`). Memory that the host can read
    (shared and host USM, pinned and managed CUDA memory) leaves as host memory in any case.

    Parameters
    ----------
    device : {"refuse", "host", "keep"}, optional
        How memory leaves that the host cannot read. ``"refuse"``, the default: `pickle.PicklingError`. ``"host"``: a
        copy in host memory does, and a host array arrives. ``"keep"``: the same copy, and it is noted where it belongs;
        of memory that the host can read the kind is noted, too. Left as it is where not given.
    arrive : {"restore", "host"}, optional
        What arrives where a place is noted. ``"restore"``, the default: an array in the same kind of memory on the
        receiver's device of that type and number, or `pickle.UnpicklingError`. ``"host"``: a host array.

    Raises
    ------
    ValueError
        Another value, here or in an environment variable.

    Examples
    --------
    >>> import arrayhub
    >>> with arrayhub.pickling(device="host"):
    ...     pass  # what is pickled here leaves its device by a copy
    """

    def __init__(
        self,
        device: Literal["refuse", "host", "keep"] | None = None,
        arrive: Literal["restore", "host"] | None = None,
    ) -> None:
        self._begun: list[int] = []  # the numbers of its blocks that have not ended
        given = {"device": device, "arrive": arrive}
        self._wanted = {
            name: _checked(value, f"pickling: {name}", _SETTINGS[name][1])
            for name, value in given.items()
            if value is not None
        }
        if self._wanted:
            _said[id(self)] = dict(self._wanted)

    def __del__(self, said: dict[int, dict[str, str]] = _said, settings: dict[str, str] = _settings) -> None:
        """Leave to the process what nobody can use for a block any more; what was said before it counts no longer."""
        own = said.get(id(self))
        if own is None:
            return
        for earlier in list(said.values()):
            if earlier is own:
                break
            for name in list(own):  # in place: what another thread has just taken out must not come back
                earlier.pop(name, None)
        settings.update(own)
        said.pop(id(self), None)

    def __enter__(self) -> Self:
        _said.pop(id(self), None)
        number = next(_numbers)
        _blocks[number] = self
        self._begun.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._begun:
            raise RuntimeError("pickling: __exit__ was called without __enter__; use it in a with statement")
        del _blocks[self._begun.pop()]

    def __repr__(self) -> str:
        return f"<arrayhub.pickling: device={setting('device')!r}, arrive={setting('arrive')!r}>"
