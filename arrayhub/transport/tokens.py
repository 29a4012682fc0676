"""Tokens for dask. Host-readable arrays with equal elements, layout and labels have equal tokens in all processes.

Contiguous elements are hashed in place, others by copies of at most `_CHUNK` bytes.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from arrayhub._core.errors import unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.libraries.numpy import raw
from arrayhub.runtimes.host import host_view, is_host_readable
from arrayhub.transfer.host_copies import pieces
from arrayhub.transport import codec
from arrayhub.transport.pickles import identity, without_unused_bits

_CHUNK = 1 << 20  # bytes


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
        return ("arrayhub.USMArray", str(array.device), _make_unique_token(array))
    content = hashlib.sha1(usedforsecurity=False)
    for part in _split_at_padding(without_unused_bits(host_view(array))):
        for run in _iterate_runs(pieces(part)):
            if run.nbytes:
                content.update(raw(run).reshape(-1).view("u1"))
    return ("arrayhub.USMArray", *identity(array), content.hexdigest())


def _make_unique_token(array: USMArray) -> str:
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


def _split_at_padding(array: USMArray) -> list[USMArray]:
    """Return ``[array]``. If its elements have padding, return views of the parts between the padding instead."""
    if not codec.has_padding(array.dtype):
        return [array]
    bare = np.asarray(array).view(codec.runs_of(array.dtype))
    return [asarray(bare[name]) for name in bare.dtype.names or ()]


def _iterate_runs(array: USMArray) -> Iterator[USMArray]:
    """Yield the elements of `array` in C order as contiguous arrays."""
    if array.flags.c_contiguous:
        yield array
    elif array.nbytes <= _CHUNK:
        yield array.copy()
    else:
        rows = max(_CHUNK * array.shape[0] // array.nbytes, 1)
        for start in range(0, array.shape[0], rows):
            yield from _iterate_runs(array[start] if rows == 1 else array[start : start + rows])
