"""Names of dimensions and the origin: GT4Py's ``__gt_dims__`` and ``__gt_origin__``, and ``dims`` as xarray has it.

Source of the rules: GT4Py's "Allocation and Array Interfaces", and what its cartesian stencils do with the two.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

from arrayhub._core.errors import PASSES_ON, show
from arrayhub._core.integers import is_bool
from arrayhub._core.labels import relabelled

# What an object may have for us; `dispatch` remembers of a type whether its instances are worth asking.
ATTRIBUTES = ("__gt_dims__", "__gt_origin__", "dims")
_NAMES = ("__gt_dims__", "dims")
GRID = ("I", "J", "K")


def parse(obj, array):
    """Return `array` with the labels that `obj`, which it was made from, has for it; `array` itself without any.

    Labels are no part of the memory, so one that is wrong is left out and never an error.
    """
    dims = _dims_of(obj, array.ndim)
    origin = _origin_of(obj, array.ndim)
    if origin is not None and dims is not None and not _is_next_field(obj):
        origin = _from_stencil_order(origin, dims)
    return array if dims is None and origin is None else relabelled(array, dims, origin)


def emit_dims(array):
    """Return what ``__gt_dims__`` gives; AttributeError where GT4Py could not read the names."""
    dims = array.dims
    if dims is None or not _stencils_know(dims):
        raise AttributeError(
            f"__gt_dims__: dims is {dims!r}; GT4Py knows 'I', 'J', 'K', '0', '1', ...; name them with x.with_dims(...)"
        )
    return dims


def emit_origin(array):
    """Return what ``__gt_origin__`` gives, in the order that GT4Py reads it in; AttributeError without an origin."""
    origin, dims = array.origin, array.dims
    if origin is None:
        raise AttributeError("__gt_origin__: the array has no origin; give it one with x.with_dims(dims, origin=...)")
    return origin if dims is None else tuple(origin[axis] for axis in _stencil_order(dims))


def get_dims(obj: Any, /, annotation: Any = None) -> tuple[str, ...] | None:
    """Return the names of the dimensions of `obj`, in the order of its indices.

    Parameters
    ----------
    obj : object
        Any array. Its ``__gt_dims__`` is asked first, then its ``dims``.
    annotation : object, optional
        What says the names where `obj` does not: GT4Py's ``Field[IJK, dtype]``, or a sequence of names.

    Returns
    -------
    tuple of str or None
        None where neither says them.

    Raises
    ------
    TypeError
        An annotation that is neither.
    """
    dims = _dims_of(obj, _ndim_of(obj))
    if dims is not None or annotation is None:
        return dims
    data_dims = getattr(annotation, "data_dims", None) or ()
    axes = getattr(annotation, "axes", annotation)
    if not isinstance(axes, Iterable):
        raise TypeError(
            f"get_dims: annotation is {show(annotation)}; accepted: GT4Py's Field[IJK, dtype], or a sequence of names"
        )
    return (*(str(axis) for axis in axes), *(str(k) for k in range(len(data_dims))))


def get_origin(obj: Any, /) -> tuple[int, ...] | None:
    """Return the origin of `obj` as a GT4Py stencil takes it, or None where it has none.

    Parameters
    ----------
    obj : object
        Any array; its ``__gt_origin__`` is asked.

    Returns
    -------
    tuple of int or None
        Where `obj` names its dimensions I, J, K, 0, 1, ... the entries are in this order, whatever the order of its
        indices: so GT4Py reads them. ``USMArray.origin`` is in the order of the indices.
    """
    return _origin_of(obj, _ndim_of(obj))


# --------------------------------------------------------------------------------------------- asking foreign objects


def _ask(obj: Any, name: str) -> Any:
    """An attribute of anybody's, whose getter may raise anything."""
    try:
        return getattr(obj, name, None)
    except PASSES_ON:
        raise
    except Exception:
        return None


def _ndim_of(obj: Any) -> int | None:
    ndim = _ask(obj, "ndim")
    return ndim if type(ndim) is int else None


def _dims_of(obj: Any, ndim: int | None) -> tuple[str, ...] | None:
    for attribute in _NAMES:
        dims = _ask(obj, attribute)
        if type(dims) is not tuple or (ndim is not None and len(dims) != ndim):
            continue
        if all(isinstance(name, str) for name in dims):
            names = tuple(str.__str__(name) for name in dims)  # of a subclass only the characters
            if len(set(names)) == len(names):
                return names
    return None


def _origin_of(obj: Any, ndim: int | None) -> tuple[int, ...] | None:
    given = _ask(obj, "__gt_origin__")
    if type(given) not in (tuple, list) or (ndim is not None and len(given) != ndim):
        return None
    try:
        origin = tuple(_index(value) for value in given)
    except PASSES_ON:
        raise
    except Exception:
        return None
    return origin


def _index(value: SupportsIndex) -> int:
    index = int(operator.index(value))
    if is_bool(value) or not -(2**63) <= index < 2**63:
        raise ValueError(f"__gt_origin__: {index} is no index")
    return index


# ----------------------------------------------------------------------------------------------- the order of stencils


def is_known(name: str | None) -> bool:
    """Whether `name` is that of a dimension which GT4Py's stencils have."""
    return name is not None and (name in GRID or _is_number(name))


def _stencils_know(dims: Sequence[str]) -> bool:
    return all(is_known(name) for name in dims)


def _is_number(name: str) -> bool:
    """Whether `name` is a data dimension's, in the one way that GT4Py writes it; longer than any of its numbers, no."""
    return name.isascii() and name.isdecimal() and len(name) < 10 and (name == "0" or name[0] != "0")


def _stencil_order(dims: Sequence[str]) -> list[int]:
    """The axes in the order that a stencil brings them in: I, J, K, then data dimensions by their number.

    GT4Py transposes the array by its ``__gt_dims__`` and takes ``__gt_origin__`` as the origin of what comes out.
    Of names that it does not know it is told nothing, so that it leaves the axes where they are.
    """
    axes = list(range(len(dims)))
    return sorted(axes, key=lambda axis: _rank(dims[axis])) if _stencils_know(dims) else axes


def _rank(name: str) -> tuple[int, int]:
    return (1, int(name)) if _is_number(name) else (0, GRID.index(name))


def _from_stencil_order(origin: Sequence[int], dims: Sequence[str]) -> tuple[int, ...]:
    by_axis = dict(zip(_stencil_order(dims), origin, strict=True))
    return tuple(by_axis[axis] for axis in range(len(dims)))


def _is_next_field(obj: Any) -> bool:
    """Whether `obj` is a field of gt4py.next, which gives its origin in the order of its indices."""
    return _ask(obj, "ndarray") is not None
