"""Tokens for dask. Host-readable arrays with equal elements, layout and labels have equal tokens in all processes.

Elements are hashed in place, one chunk at a time. Non-contiguous arrays are copied chunk by chunk, so a large array is
never copied in full at once.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from arrayhub._core.errors import unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.libraries.numpy import raw
from arrayhub.runtimes.host import host_view, is_host_readable
from arrayhub.transfer.host_copies import pieces
from arrayhub.transport import dtype_codec
from arrayhub.transport.pickles import identity, without_unused_bits

# Bytes per hash update. Must be the same for every layout, because dask's hash function is applied to each chunk, so
# another chunk size would change the token.
_CHUNK = 1 << 20


def token(array: USMArray) -> tuple[Any, ...]:
    """Return the token for ``USMArray.__dask_tokenize__``.

    Elements that the host cannot read are not copied to the host. Each call then returns a new token, so that dask
    never reuses a result computed from other elements.

    Raises
    ------
    dask.tokenize.TokenizationError
        The host cannot read the elements, and dask is configured to ensure deterministic tokens.
    """
    if not is_host_readable(array):
        return ("arrayhub.USMArray", str(array.device), _unique(array))
    content = hashlib.sha1(usedforsecurity=False)
    quick = _hash_of_dask()
    for part in _without_padding(without_unused_bits(host_view(array))):
        for chunk in _cut(_runs(pieces(part))):
            content.update(chunk if quick is None else quick(chunk).encode())
    return ("arrayhub.USMArray", *identity(array), content.hexdigest())


def _hash_of_dask() -> Callable[[Any], str] | None:
    """Return dask's hash function for NumPy arrays (the fastest that is installed), or None if dask is not loaded."""
    return getattr(sys.modules.get("dask.hashing"), "hash_buffer_hex", None)


def _unique(array: USMArray) -> str:
    """Return a new token on each call, or raise if dask requires deterministic tokens.

    dask's configuration or ``dask.tokenize.tokenize(ensure_deterministic=True)`` may require deterministic tokens. The
    requirement is tested by requesting a token for an ``object()``, which does not have a deterministic token.
    """
    if "dask" not in sys.modules:
        return uuid.uuid4().hex
    from dask.tokenize import TokenizationError, normalize_token

    try:
        return str(normalize_token(object()))
    except TokenizationError:
        raise TokenizationError(
            unreadable("dask", array.device, call="call arrayhub.to_host(x), or give the task a name")
        ) from None


def _without_padding(array: USMArray) -> list[USMArray]:
    """Return ``[array]``. If its elements have padding, return views of the parts between the padding instead."""
    if not dtype_codec.has_padding(array.dtype):
        return [array]
    bare = np.asarray(array).view(dtype_codec.runs_of(array.dtype))
    return [asarray(bare[name]) for name in bare.dtype.names or ()]


def _runs(array: USMArray) -> Iterator[USMArray]:
    """Yield the elements of `array` in C order as contiguous arrays."""
    if array.flags.c_contiguous:
        yield array
    elif array.nbytes <= _CHUNK:
        yield array.copy()
    else:
        rows = max(_CHUNK * array.shape[0] // array.nbytes, 1)
        for start in range(0, array.shape[0], rows):
            yield from _runs(array[start] if rows == 1 else array[start : start + rows])


def _cut(runs: Iterator[USMArray]) -> Iterator[Any]:
    """Yield the bytes of consecutive contiguous arrays in chunks of equal size. Only the last chunk may be shorter."""
    held = bytearray()
    for run in runs:
        data = raw(run).reshape(-1).view("u1") if run.nbytes else np.empty(0, "u1")
        start = min(_CHUNK - len(held), data.size) if held else 0
        held += data[:start].data
        if len(held) == _CHUNK:
            yield held
            held = bytearray()
        if not held:
            end = start + (data.size - start) // _CHUNK * _CHUNK
            yield from (data[at : at + _CHUNK] for at in range(start, end, _CHUNK))
            held += data[end:].data
    if held:
        yield held
