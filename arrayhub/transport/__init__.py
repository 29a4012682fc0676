"""Arrays that leave their process: pickle, dask, MPI. None of these libraries is imported here."""

import sys
from typing import Any

from arrayhub.array.usm_array import USMArray, register_engines


def enter_engines() -> None:
    """Register the methods of ``USMArray`` for pickle, dask and copy. Their modules are imported on first use."""
    register_engines(_reduce, _token, _padded_copy)
    if "distributed.protocol" in sys.modules:  # which may be about to read an array that was sent as frames
        from arrayhub.transport.dask import register_arrival

        register_arrival()


def _reduce(array: USMArray, protocol: int) -> Any:
    from arrayhub.transport.pickling import reduce

    register_engines(reduce, _token, _padded_copy)
    return reduce(array, protocol)


def _token(array: USMArray) -> Any:
    from arrayhub.transport.tokens import token

    return token(array)


def _padded_copy(array: USMArray, boundary: int) -> USMArray:
    from arrayhub.transport.padding import padded_copy

    return padded_copy(array, boundary)
