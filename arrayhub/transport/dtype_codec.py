"""How a pickle says the type of the elements, how that is read without trust, and which bytes of an element count.

A string is NumPy's type string. A tuple ``(name, code, bits, packed)`` is a type that NumPy does not have, by its name
and DLPack's numbers. What neither can say (records, dtypes with metadata) is the dtype object, which NumPy pickles.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from arrayhub._core.dtypes import FIRST_USER_TYPENUM
from arrayhub._core.errors import PASSES_ON, show

# Parsed here before NumPy sees it: some versions of NumPy end the process over a unit with a divisor of zero.
_TYPE_STRING = re.compile(
    r"(?:[<>|=]?[?bBhHiIlLqQefdgFDG]|[<>|=]?(?:b1|[iu](?:1|2|4|8)|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SUV]\d{1,9})"
    r"|[<>=]?[mM]8(?:\[\d{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)\Z"
)
_VOID = np.dtype("V").num
_known: dict[str, npt.DTypeLike] = {}
_REMEMBERED = 256


def said(dtype: np.dtype[Any]) -> str | np.dtype[Any]:
    """Return what stands for a NumPy dtype in a pickle."""
    if dtype.names is None and dtype.metadata is None and _TYPE_STRING.match(dtype.str):
        # Where C has two names for one size, the string stands for the usual one of them only.
        return dtype.str if np.dtype(dtype.str).num == dtype.num else _order(dtype) + dtype.char
    return dtype


def _order(dtype: np.dtype[Any]) -> str:
    return "" if dtype.isnative else dtype.byteorder


def read(element: object) -> np.dtype[Any]:
    """Return the NumPy dtype that `said` has put into a pickle.

    Raises
    ------
    pickle.UnpicklingError
        It is none, or one of Python objects or of sub-arrays.
    """
    if isinstance(element, np.dtype):
        try:
            if element.subdtype is None:
                return _made_again(element)
        except PASSES_ON:
            raise
        except Exception as error:  # forged parts may be anything
            raise refused_error(element) from error
        raise refused_error(element)
    if type(element) is not str:
        raise refused_error(element)
    dtype = _known.get(element)
    if dtype is None:
        if _TYPE_STRING.match(element) is None:
            raise refused_error(element)
        try:
            dtype = np.dtype(element)
        except (TypeError, ValueError, OverflowError) as error:
            raise refused_error(element) from error
        if len(_known) < _REMEMBERED:
            _known[element] = dtype
    return dtype  # type: ignore[return-value]


def _made_again(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that a dtype out of a pickle says, made by NumPy, which holds its parts against each other.

    NumPy reads a dtype without a look at its state: fields beyond the element, objects that nobody is told of, sizes
    and boundaries of zero or less come in.

    The class of a record's elements, ``np.record`` or a subclass of ``np.void`` of the user's, is kept: the pickle has
    it by name, so the unpickler's ``find_class`` has let it in or not before this is asked, as for NumPy's own pickles.
    """
    fresh: np.dtype[Any]
    if dtype.names is not None:
        fields: list[Any] = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
        parts: Any = {
            "names": list(dtype.names),
            "formats": [_made_again(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
        }
        fresh = np.dtype(parts, align=dtype.isalignedstruct)
        if dtype.num != _VOID:  # numbers or characters whose bytes have names besides
            fresh = np.dtype((_plain(dtype), fresh))
        elif dtype.type is not np.void and issubclass(dtype.type, np.void):
            fresh = np.dtype((dtype.type, fresh))
    elif dtype.subdtype is not None:
        base, shape = dtype.subdtype
        fresh = np.dtype((_made_again(base), shape))
    elif dtype.num >= FIRST_USER_TYPENUM:
        fresh = np.dtype(dtype.type)
        fresh = fresh if dtype.isnative else fresh.newbyteorder()
    else:
        fresh = _plain(dtype)
    if fresh.hasobject or (fresh.num, fresh.itemsize) != (dtype.num, dtype.itemsize):
        raise ValueError("its parts do not fit each other")
    return fresh if dtype.metadata is None else np.dtype(fresh, metadata=dict(dtype.metadata))


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return one of NumPy's own types by its letter, without fields and metadata."""
    return read(dtype.str if dtype.char in "SUVmM" else _order(dtype) + dtype.char)


def refused_error(element: object) -> pickle.UnpicklingError:
    """Return the error about a type that no array can have."""
    return pickle.UnpicklingError(
        f"arrayhub: the element type in the pickle is {show(element)}; accepted: a type string of NumPy, (name, DLPack"
        " code, bits, packed) of a type that NumPy does not have, or a numpy.dtype without Python objects"
    )


# ---------------------------------------------------------------------------------------------- which bytes count

# x86's long double has ten bytes in sixteen; elsewhere all of them count.
_EXTENDED = 10
# By number: types of others may have the same letters.
_PADDED = (np.dtype("g").num, np.dtype("G").num) if np.finfo(np.longdouble).nmant == 63 else ()


def counted(dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    """Return the runs of bytes (start, length) of an element that are its value; what lies between may be anything."""
    runs: list[tuple[int, int]] = []
    for start, length in sorted(_parts(dtype, 0)):
        if runs and start <= sum(runs[-1]):
            first, before = runs.pop()
            start, length = first, max(before, start + length - first)
        runs.append((start, length))
    return runs


def _parts(dtype: np.dtype[Any], at: int) -> Iterator[tuple[int, int]]:
    if dtype.names is not None:
        for name in dtype.names:
            field, offset = dtype.fields[name][:2]  # type: ignore[index]
            yield from _parts(field, at + offset)
    elif dtype.subdtype is not None:
        base, inner = dtype.subdtype[0], counted(dtype.subdtype[0])
        if inner == [(0, base.itemsize)]:
            yield at, dtype.itemsize
        else:
            for start in range(at, at + dtype.itemsize, base.itemsize):
                yield from ((start + offset, length) for offset, length in inner)
    elif dtype.num in _PADDED:
        for start in range(at, at + dtype.itemsize, np.dtype("g").itemsize):
            yield start, _EXTENDED
    else:
        yield at, dtype.itemsize


def runs_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type of the same size whose fields are the runs of `counted`."""
    runs = [(start, length) for start, length in counted(dtype) if length]
    return np.dtype(
        {
            "names": [str(k) for k in range(len(runs))],
            "formats": [f"V{length}" for _, length in runs],
            "offsets": [start for start, _ in runs],
            "itemsize": dtype.itemsize,
        }
    )


def has_padding(dtype: np.dtype[Any]) -> bool:
    """Return whether some bytes of an element are no part of its value."""
    return counted(dtype) != [(0, dtype.itemsize)]


def with_zeros_between(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of an array in which the bytes are zero that are no part of a value."""
    # As plain bytes: zeros of records leave what lies between the fields as it happens to be.
    fresh = np.zeros_like(array.view(f"V{array.itemsize}")).view(array.dtype)
    source, target = array.view(runs_of(array.dtype)), fresh.view(runs_of(array.dtype))
    for name in source.dtype.names or ():
        target[name] = source[name]
    return fresh
