"""What engines ask of an array that leaves its process: pickle, dask, MPI. No engine is imported here."""

from typing import Any

from arrayhub.usm_array import USMArray, register_engines


def enter_engines() -> None:
    """Give ``USMArray`` what it answers engines. The modules are imported when one of them asks."""
    register_engines(_reduce, _token)


def _reduce(array: USMArray, protocol: int) -> Any:
    from arrayhub.engines.pickling import reduce

    register_engines(reduce, _token)
    return reduce(array, protocol)


def _token(array: USMArray) -> Any:
    from arrayhub.engines.tokens import token

    return token(array)
