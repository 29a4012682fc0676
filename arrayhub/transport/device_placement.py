"""The device of a pickled array: its record in the pickle, and the copy to the device on arrival."""

from __future__ import annotations

import pickle

import numpy as np

from arrayhub import transfer
from arrayhub._core.errors import PASSES_ON, show, unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.runtimes.host import host_view, is_host_readable
from arrayhub.storage import empty
from arrayhub.transfer.host_copies import emit_reach, gather
from arrayhub.transport.policy import setting

# Kinds of memory whose device is recorded. The names are values of the argument `memory` of `empty`.
_KINDS = ("usm_host", "usm_shared", "usm_device", "cuda", "cuda_host", "cuda_managed")

# Errors that runtimes and drivers raise, for example for missing devices.
_FAILURES = (ImportError, OSError, RuntimeError, ValueError, BufferError)


def copied_to_host(array: USMArray) -> tuple[USMArray, tuple[str, int] | None]:
    """Return an array in device memory as a host view, or as a host copy if the host cannot read the memory.

    Also return the device to record, or None.

    Raises
    ------
    pickle.PicklingError
        The policy forbids the copy, or the memory cannot be copied.
    """
    policy = _setting("device", pickle.PicklingError)
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


def restored(array: USMArray, place: object) -> USMArray:
    """Return a received host array, or a copy on the recorded device if the policy restores devices.

    Raises
    ------
    pickle.UnpicklingError
        The recorded device is invalid or does not exist here, or the environment variable of the policy is invalid.
    """
    kind, number = _checked(place)
    if _setting("arrive", pickle.UnpicklingError) == "host":
        return array
    device = f"{'cuda' if kind.startswith('cuda') else 'oneapi'}:{number}"

    def there(pieces: USMArray) -> USMArray:
        # Copy as bytes, because arrays in device memory may have element types that a buffer cannot describe.
        run = emit_reach(pieces if pieces.flags.c_contiguous else pieces.copy())
        fresh = empty(run.size, np.uint8, memory=kind, device=device)  # type: ignore[arg-type]
        transfer.write(fresh, asarray(run))
        return fresh

    try:
        copy: USMArray = gather(array, there)
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


def _setting(name: str, kind: type[pickle.PickleError]) -> str:
    """Return a setting. Raise an error of type `kind` if the environment variable is invalid."""
    try:
        return setting(name)
    except ValueError as error:
        raise kind(f"arrayhub: {error}") from error


def _checked(place: object) -> tuple[str, int]:
    if type(place) is tuple and len(place) == 2:
        kind, number = place
        if kind in _KINDS and type(number) is int and 0 <= number < 1 << 16:
            return kind, number
    raise pickle.UnpicklingError(
        f"arrayhub: the device in the pickle is {show(place)}; accepted: a kind of memory ({', '.join(_KINDS)}) and a"
        " device number"
    )
