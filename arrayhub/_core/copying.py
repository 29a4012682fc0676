"""The argument ``copy=``, read in one place: True, False, or None for only where needed."""

import numpy as np

from arrayhub._core.errors import show


def wanted(copy: object, call: str) -> bool | None:
    """Return ``copy=`` as True, False or None.

    Raises
    ------
    TypeError
        It is none of these; a string, for example, would count as True.
    """
    if copy is None or copy is True or copy is False:
        return copy
    if isinstance(copy, np.bool_):
        return bool(copy)
    raise TypeError(f"{call}: copy is {show(copy)}; accepted: True, False or None")


def forbidden(copy: object, call: str, why: str) -> None:
    """Refuse what takes a copy where ``copy=False`` forbids one."""
    if copy is False:
        raise BufferError(f"{call}: {why}, and copy=False forbids a copy")
