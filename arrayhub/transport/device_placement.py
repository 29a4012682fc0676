"""The device of a pickled array: `pickling`, the record in the pickle, and the copy to the device on arrival."""

from __future__ import annotations

import os
import pickle
import threading
import weakref
from typing import Literal, Self

from arrayhub import transfer
from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.errors import PASSES_ON, show, unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.runtimes import call_after_fork
from arrayhub.storage import empty
from arrayhub.transfer.host_copies import gather, host_view
from arrayhub.transport.codec import state_error

# One row per setting: its environment variable, the error for an invalid variable, and the accepted values, starting
# with the default.
_SETTINGS: dict[str, tuple[str, type[pickle.PickleError], tuple[str, ...]]] = {
    "device": ("ARRAYHUB_PICKLING", pickle.PicklingError, ("refuse", "host", "keep")),
    "arrive": ("ARRAYHUB_UNPICKLING", pickle.UnpicklingError, ("restore", "host")),
}
_lasting: dict[str, str] = {}  # settings that no block can end
# Values of later calls, the latest last. The first entry whose `pickling` object was freed cannot end any more.
_applied: list[tuple[weakref.ref[pickling], dict[str, str]]] = []
_lock = threading.RLock()  # reentrant, because a finalizer may call `pickling` at any point


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


call_after_fork(_renew_lock)


def _read_setting(name: str) -> str:
    """Return the current value of ``"device"`` or ``"arrive"``. The environment variable provides the default."""
    for _, values in reversed(_applied.copy()):
        if name in values:
            return values[name]
    if name not in _lasting:
        variable, failure, accepted = _SETTINGS[name]
        try:
            _lasting[name] = _check_value(os.environ.get(variable) or accepted[0], variable, accepted)
        except ValueError as error:
            raise failure(f"arrayhub: {error}") from error
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
            name: _check_value(value, f"pickling: {name}", _SETTINGS[name][-1])
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

    def __exit__(self, *_: object) -> None:
        self._entered -= 1
        self._remove()

    def __repr__(self) -> str:
        return f"<arrayhub.transport.pickling: device={_read_setting('device')!r}, arrive={_read_setting('arrive')!r}>"


# ------------------------------------------------------------------------------------------------- pickled arrays

# Kinds of memory whose device is recorded. The names are values of the argument `memory` of `empty`.
_KINDS = ("usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed")

# Errors that runtimes and drivers raise, for example for missing devices.
_FAILURES = (ImportError, OSError, RuntimeError, ValueError, BufferError)


def copy_to_host(array: USMArray) -> tuple[USMArray, tuple[str, int] | None]:
    """Return an array in device memory as a host view, or as a host copy if the host cannot read the memory.

    Also return the device to record, or None. Raise PicklingError if the policy forbids the copy, or if it fails.
    """
    policy = _read_setting("device")
    readable = is_host_readable(array)
    if policy == "refuse" and not readable:
        raise pickle.PicklingError(
            unreadable(
                "pickle",
                array.device,
                call="call arrayhub.to_host(x), or permit the copy with arrayhub.transport.pickling(device='host') or"
                " pickling(device='keep') (for workers: the environment variable ARRAYHUB_PICKLING)",
            )
        )
    kind = f"usm_{array.usm_type}" if array.usm_type else array.device.type
    place = (kind, array.device.id) if policy == "keep" and kind in _KINDS else None
    if readable:
        return host_view(array), place
    try:
        return gather(array, transfer.to_host), place
    except PASSES_ON:
        raise
    except _FAILURES as error:
        raise pickle.PicklingError(
            f"arrayhub: the array is on {array.device} and cannot be copied to the host: {error}"
        ) from error


def restore(array: USMArray, place: object) -> USMArray:
    """Return a received host array, or a copy on the recorded device if the policy restores devices.

    Raise UnpicklingError if the recorded device is invalid or does not exist here, or if the environment variable is
    invalid.
    """
    kind, number = _check_place(place)
    if _read_setting("arrive") == "host":
        return array
    device = f"{'cuda' if kind.startswith('cuda') else 'oneapi'}:{number}"

    def there(run: USMArray) -> USMArray:
        fresh = empty(run.shape, run.dtype, memory=kind, device=device)  # type: ignore[arg-type]
        transfer.write(fresh, run)
        return fresh

    try:
        copy: USMArray = gather(array, there, True)  # as bytes, because `empty` does not support each element type
    except PASSES_ON:
        raise
    except _FAILURES as error:
        raise pickle.UnpicklingError(
            f"arrayhub: the array was pickled in {kind!r} memory on {device}, which is not available here:"
            f" {error}."
            " Set arrayhub.transport.pickling(arrive='host'), or the environment variable ARRAYHUB_UNPICKLING=host, for"
            " a host array"
        ) from error
    return copy


def _check_place(place: object) -> tuple[str, int]:
    if type(place) is tuple and len(place) == 2:
        kind, number = place
        if kind in _KINDS and type(number) is int and 0 <= number < 1 << 16:
            return kind, number
    raise state_error("the device", place, f"a kind of memory ({', '.join(_KINDS)}) and a device number")
