"""How a pickle says the type of the elements, and how that is read without trust.

A string is NumPy's type string. A tuple ``(name, code, bits, packed)`` is a type that NumPy does not have, by its name
and DLPack's numbers. What neither can say (records, dtypes with metadata) is the dtype object, which NumPy pickles.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from arrayhub._core.errors import show

# Parsed here before NumPy sees it: some versions of NumPy end the process over a unit with a divisor of zero.
_TYPE_STRING = re.compile(
    r"(?:[<>|=]?[?bBhHiIlLqQefdgFDG]|[<>|=]?(?:b1|[iu](?:1|2|4|8)|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV]\d{1,9})"
    r"|[<>=]?[mM]8(?:\[\d{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)\Z"
)
_known: dict[str, npt.DTypeLike] = {}
_REMEMBERED = 256


def said(dtype: np.dtype[Any]) -> str | np.dtype[Any]:
    """Return what stands for a NumPy dtype in a pickle."""
    if dtype.names is None and dtype.metadata is None and _TYPE_STRING.match(dtype.str):
        # Where C has two names for one size, the string stands for the usual one of them only.
        return dtype.str if np.dtype(dtype.str).num == dtype.num else dtype.char
    return dtype


def read(element: object) -> np.dtype[Any]:
    """Return the NumPy dtype that `said` has put into a pickle.

    Raises
    ------
    pickle.UnpicklingError
        It is none, or one of Python objects or of sub-arrays.
    """
    if isinstance(element, np.dtype):
        if element.hasobject or element.subdtype is not None:
            raise refused(element)
        return element
    if type(element) is not str:
        raise refused(element)
    dtype = _known.get(element)
    if dtype is None:
        if _TYPE_STRING.match(element) is None:
            raise refused(element)
        try:
            dtype = np.dtype(element)
        except (TypeError, ValueError, OverflowError) as error:
            raise refused(element) from error
        if len(_known) < _REMEMBERED:
            _known[element] = dtype
    return dtype  # type: ignore[return-value]


def refused(element: object) -> pickle.UnpicklingError:
    """Return the error about a type that no array can have."""
    return pickle.UnpicklingError(
        f"arrayhub: the element type in the pickle is {show(element)}; accepted: a type string of NumPy, (name, DLPack"
        " code, bits, packed) of a type that NumPy does not have, or a numpy.dtype without Python objects"
    )
