"""Errors of pickles with invalid content."""

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from arrayhub._core.errors import PASSES_ON, show

_Array = TypeVar("_Array")


def state_error(part: str, value: Any, accepted: str) -> pickle.UnpicklingError:
    """Return the error for an invalid part of a state."""
    return pickle.UnpicklingError(f"arrayhub: {part} in the pickle is {show(value)}; accepted: {accepted}")


def restored(build: Callable[[Any], _Array], state: Any, name: str) -> _Array:
    """Return ``build(state)``. Errors other than UnpicklingError become an UnpicklingError that names the class `name`.

    Raises
    ------
    pickle.UnpicklingError
        `build` failed.
    """
    try:
        return build(state)
    except PASSES_ON:
        raise
    except pickle.UnpicklingError:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(f"arrayhub: the parts of a {name} are inconsistent ({error})") from error
