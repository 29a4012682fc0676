"""The argument ``copy=``: True, False, None or "if_needed"."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from arrayhub._core.errors import show

Copy: TypeAlias = bool | Literal["if_needed"] | None

T = TypeVar("T")


class CopyForbidden(BufferError):
    """Error of `forbidden`. `why` is the reason for the copy, without the name of the call."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why


def wanted(copy: object, call: str) -> bool | None:
    """Validate ``copy=``, and return it as True, False or None. "if_needed" becomes None.

    A function whose ``copy=None`` forbids a copy must test `if_needed` first, to distinguish None from "if_needed".

    Raises
    ------
    TypeError
        `copy` has any other value. Without this check, a misspelled string would count as True.
    """
    if copy is None or copy is True or copy is False:
        return copy
    if isinstance(copy, np.bool_):
        return bool(copy)
    if if_needed(copy):
        return None
    raise TypeError(f"{call}: copy is {show(copy)}; accepted: True, False, None or 'if_needed'")


def if_needed(copy: object) -> bool:
    """Return whether ``copy=`` is "if_needed", which requests a view if possible, and otherwise a copy."""
    return isinstance(copy, str) and str.__eq__(copy, "if_needed")


def view_or_copy(function: Callable[..., T], *args: Any) -> T:
    """Return ``function(*args, None)``, or ``function(*args, True)`` if the first call raises BufferError.

    The last parameter of `function` is `copy`.
    """
    try:
        return function(*args, None)
    except BufferError:
        pass
    return function(*args, True)


def forbidden(copy: object, call: str, why: str) -> None:
    """Raise CopyForbidden if ``copy=False`` forbids a copy that `call` makes by default. `why` is the reason for it."""
    if copy is False:
        raise CopyForbidden(f"{call}: {why}, and copy=False forbids a copy. Omit copy= to permit this copy", why)
