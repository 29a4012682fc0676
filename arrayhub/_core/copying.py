"""The argument ``copy=``: True, False, or None for a copy only if needed."""

import numpy as np

from arrayhub._core.errors import show


def wanted(copy: object, call: str) -> bool | None:
    """Return ``copy=`` as True, False or None.

    Raises
    ------
    TypeError
        Any other value. A string, for example, would count as True.
    """
    if copy is None or copy is True or copy is False:
        return copy
    if isinstance(copy, np.bool_):
        return bool(copy)
    raise TypeError(f"{call}: copy is {show(copy)}; accepted: True, False or None")


def forbidden(copy: object, call: str, why: str) -> None:
    """Raise BufferError if ``copy=False`` forbids a copy that is needed."""
    if copy is False:
        raise BufferError(f"{call}: {why}, and copy=False forbids a copy")
