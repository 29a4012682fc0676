"""The argument ``copy=``: True, False or None, as in the array API standard. docs/memory.md defines the values."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from arrayhub._core.errors import Refusal, show

Copy: TypeAlias = bool | None

T = TypeVar("T")


class _View:
    """Type of `VIEW`, which is false, so that ``if copy`` tests for a request to copy."""

    def __bool__(self) -> bool:
        return False


# Internal value of `copy` with which `explain` asks for the copies that ``copy=False`` permits, such as those of lists.
VIEW: Final[Any] = _View()


def check_copy(copy: Any, call: str) -> bool | None:
    """Return ``copy=`` as True, False or None.

    Raises
    ------
    TypeError
        `copy` has any other value. Without this check, any string would count as True.
    """
    if copy is None or copy is True or copy is False or copy is VIEW:
        return copy
    if isinstance(copy, np.bool_):
        return bool(copy)
    raise TypeError(f"{call}: copy is {show(copy)}; accepted: True, False or None")


def view_or_copy(function: Callable[..., T], *args: Any) -> T:
    """Return ``function(*args, False)``, or ``function(*args, True)`` if the first call raises BufferError.

    The last parameter of `function` is `copy`.
    """
    try:
        return function(*args, False)
    except BufferError:
        pass
    return function(*args, True)


def forbidden(copy: object, call: str, why: str) -> None:
    """Raise Refusal if `copy` is VIEW. `why` is the reason for a copy that `call` makes by default."""
    if copy is VIEW:
        raise Refusal(call, why)
