"""Element types in pickles: encoding, and decoding with validation. Errors for invalid pickles.

- A string is NumPy's type string, or a byte order and NumPy's type character.
- A tuple ``(name, code, bits, packed)`` describes a type that NumPy does not have: its name, its DLPack type code, its
  number of bits, and whether the elements are packed.
- Other types (structured dtypes, dtypes with metadata) are encoded as the dtype object, which NumPy pickles.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from arrayhub._core.dtypes import FIRST_USER_TYPENUM
from arrayhub._core.errors import PASSES_ON, show

# Type strings are validated before NumPy parses them, because a unit with a divisor of zero ends the process in some
# versions of NumPy.
_TYPE_STRING = re.compile(
    r"(?:[<>|=]?[?bBhHiIlLqQefdgFDG]|[<>|=]?(?:b1|[iu](?:1|2|4|8)|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV]\d{1,9})"
    r"|[<>=]?[mM]8(?:\[\d{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)\Z"
)
_VOID = np.dtype("V").num


_Array = TypeVar("_Array")


def state_error(part: str, value: Any, accepted: str) -> pickle.UnpicklingError:
    """Return the error for an invalid part of a state."""
    return pickle.UnpicklingError(f"arrayhub: {part} in the pickle is {show(value)}; accepted: {accepted}")


def check_version(what: str, value: Any, expected: int) -> None:
    """Raise UnpicklingError unless `value` is the version that this release reads. `what` is what has the version."""
    if type(value) is not int or value != expected:
        raise pickle.UnpicklingError(
            f"arrayhub: {what} has version {show(value)}; this release reads version {expected}. Read it with the"
            " release of arrayhub that wrote it, or with a later release"
        )


def restore_state(name: str, build: Callable[..., _Array], *parts: Any) -> _Array:
    """Return ``build(*parts)``. Other errors become an UnpicklingError that names the class `name`."""
    try:
        return build(*parts)
    except (*PASSES_ON, pickle.UnpicklingError):
        raise
    except Exception as error:
        raise pickle.UnpicklingError(f"arrayhub: the parts of a {name} are inconsistent ({error})") from error


def encode(dtype: np.dtype[Any]) -> str | np.dtype[Any]:
    """Encode a NumPy dtype for a pickle."""
    if dtype.names is None and dtype.metadata is None and _TYPE_STRING.match(dtype.str):
        # If two C types have the same size, the type string denotes one of them, and the character denotes the other.
        return dtype.str if np.dtype(dtype.str).num == dtype.num else _byte_order_of(dtype) + dtype.char
    return dtype


def _byte_order_of(dtype: np.dtype[Any]) -> str:
    return "" if dtype.isnative else dtype.byteorder


def decode(element: object) -> np.dtype[Any]:
    """Decode a NumPy dtype that `encode` has encoded.

    Raise UnpicklingError if the value is not a type string, or is a dtype of Python objects or of sub-arrays. A forged
    dtype may raise any exception, which `restore_state` converts.
    """
    if type(element) is str:
        return _parse_type_string(element)
    if isinstance(element, np.dtype) and element.subdtype is None:
        return _rebuild_dtype(element)
    raise element_error(element)


@lru_cache(maxsize=256)
def _parse_type_string(text: str) -> np.dtype[Any]:
    if _TYPE_STRING.match(text) is None:
        raise element_error(text)
    return np.dtype(text)


def _rebuild_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Rebuild an unpickled dtype through NumPy's constructor, which validates its parts.

    NumPy restores a pickled dtype without validation, and accepts fields outside of the element, hidden object fields,
    and sizes or alignments of zero or less.

    The result has the same scalar type, such as ``np.record`` or a user's subclass of ``np.void``. The pickle contains
    the class by name, so the unpickler's ``find_class`` has already accepted the class, as in NumPy's pickles.
    """
    fresh: np.dtype[Any]
    if dtype.names is not None:
        fields: list[Any] = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
        parts: Any = {
            "names": list(dtype.names),
            "formats": [_rebuild_dtype(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
        }
        fresh = np.dtype(parts, align=dtype.isalignedstruct)
        if dtype.num != _VOID:  # a number or a string with fields that overlap its bytes
            fresh = np.dtype((_decode_builtin(dtype), fresh))
        elif dtype.type is not np.void and issubclass(dtype.type, np.void):
            fresh = np.dtype((dtype.type, fresh))
    elif dtype.subdtype is not None:
        base, shape = dtype.subdtype
        fresh = np.dtype((_rebuild_dtype(base), shape))
    elif dtype.num >= FIRST_USER_TYPENUM:
        fresh = np.dtype(dtype.type)
        fresh = fresh if dtype.isnative else fresh.newbyteorder()
    else:
        fresh = _decode_builtin(dtype)
    if fresh.hasobject or (fresh.num, fresh.itemsize) != (dtype.num, dtype.itemsize):
        raise ValueError("its parts are inconsistent")
    return fresh if dtype.metadata is None else np.dtype(fresh, metadata=dict(dtype.metadata))


def _decode_builtin(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a built-in NumPy dtype by its character code, without fields and metadata."""
    return decode(dtype.str if dtype.char in "SUVmM" else _byte_order_of(dtype) + dtype.char)


def element_error(element: object) -> pickle.UnpicklingError:
    """Return the error for an invalid or unsupported element type."""
    accepted = "a NumPy type string, (name, DLPack code, bits, packed) of a type that NumPy does not have"
    return state_error("the element type", element, f"{accepted}, or a numpy.dtype without Python objects")
