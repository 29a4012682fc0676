"""Tokens for dask. Host-readable arrays with equal elements, layout and labels have equal tokens in all processes.

Contiguous elements are hashed in place. Elements with gaps between them are copied first, as for a pickle.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from arrayhub._core.errors import unreadable
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import asarray
from arrayhub.libraries.numpy import raw
from arrayhub.runtimes.host import host_view, is_host_readable
from arrayhub.transfer.host_copies import pieces
from arrayhub.transport.pickles import identity, without_unused_bits

# The long double of x86 uses ten of its sixteen bytes. On other machines all bytes are used. The keys are type numbers,
# because user-defined types may have the same characters. Each value is a dtype whose fields are the used bytes.
_SIZE = np.dtype("g").itemsize
_USED_BYTES = {
    np.dtype(char).num: np.dtype(
        {"names": names, "formats": ["V10"] * len(names), "offsets": offsets, "itemsize": _SIZE * len(names)}
    )
    for char, names, offsets in (("g", ["real"], [0]), ("G", ["real", "imag"], [0, _SIZE]))
    if np.finfo(np.longdouble).nmant == 63
}


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
    parts = _split_at_padding(without_unused_bits(host_view(array)))
    return ("arrayhub.USMArray", *identity(array), *map(_hash_elements, parts))


def _hash_elements(array: USMArray) -> str:
    """Return a hash of the bytes of the elements, by dask's function, which may be several times faster than sha1."""
    run = pieces(array)
    run = run if run.flags.c_contiguous else run.copy()
    data = raw(run).reshape(-1).view("u1") if run.nbytes else b""
    quick = getattr(sys.modules.get("dask.hashing"), "hash_buffer_hex", None)
    return str(quick(data)) if quick is not None else hashlib.sha1(data, usedforsecurity=False).hexdigest()


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


def _split_at_padding(array: USMArray) -> Iterator[USMArray]:
    """Yield views of the parts of each element that are not padding: `array` itself, or its fields."""
    dtype = array.dtype
    if dtype.names is None and dtype.num not in _USED_BYTES:
        yield array
    else:
        yield from map(asarray, _iterate_fields(np.asarray(array)))


def _iterate_fields(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    used = _USED_BYTES.get(values.dtype.num)
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from _iterate_fields(values[name])
    elif used is not None:
        yield from _iterate_fields(values.view(used))
    else:
        yield values
