"""Import and export of dimension names and origins: GT4Py's ``__gt_dims__`` and ``__gt_origin__``, xarray's ``dims``.

Sources: GT4Py's "Allocation and Array Interfaces", and the behavior of its cartesian stencils.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from arrayhub._core.descriptor import integer, relabel
from arrayhub._core.errors import PASSES_ON, show

# Attributes that contain labels. For each type, `convert/dispatch` records whether its instances may have them.
ATTRIBUTES = ("__gt_dims__", "__gt_origin__", "dims")
_NAMES = ("__gt_dims__", "dims")
GRID = ("I", "J", "K")


def parse(obj, array):
    """Return a view of `array` with the labels of `obj`, or `array` itself if `obj` does not have labels.

    `array` was imported from `obj`. Invalid labels are ignored, because they do not affect the memory.
    """
    dims = _dims_of(obj, array.ndim)
    origin = _origin_of(obj, array.ndim)
    # Fields of gt4py.next have an attribute `ndarray`, and an origin in index order.
    if origin is not None and dims is not None and _attribute(obj, "ndarray") is None:
        origin = _from_stencil_order(origin, dims)
    return array if dims is None and origin is None else relabel(array, dims, origin)


def emit_dims(array):
    """Return the value of ``__gt_dims__``. Raise AttributeError if GT4Py does not support the names."""
    dims = array.dims
    if dims is None or not _stencils_know(dims):
        raise AttributeError(
            f"__gt_dims__: dims is {dims!r}; accepted by GT4Py: 'I', 'J', 'K', '0', '1', ... Call x.with_dims(...)"
        )
    return dims


def emit_origin(array):
    """Return the value of ``__gt_origin__``, in GT4Py's order of dimensions. Raise AttributeError without an origin."""
    origin, dims = array.origin, array.dims
    if origin is None:
        raise AttributeError(
            "__gt_origin__: the array does not have an origin. Set it with x.with_dims(dims, origin=...)"
        )
    return origin if dims is None else tuple(origin[axis] for axis in stencil_order(dims))


def get_dims(obj: Any, /, annotation: Any = None) -> tuple[str, ...] | None:
    """Return the names of the dimensions of `obj`, in the order of its indices.

    Parameters
    ----------
    obj : object
        Any array. ``__gt_dims__`` takes precedence over ``dims``.
    annotation : object, optional
        Names to use if `obj` does not have names: GT4Py's ``Field[IJK, dtype]``, or a sequence of names.

    Returns
    -------
    tuple of str or None
        None if neither argument has names.

    Raises
    ------
    TypeError
        `annotation` is neither a field nor a sequence of names.

    Examples
    --------
    >>> arrayhub.storage.get_dims(arrayhub.empty((2, 3), dims=("I", "K")))
    ('I', 'K')
    >>> arrayhub.storage.get_dims(numpy.zeros((2, 3)), annotation="IJ")
    ('I', 'J')
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
    """Return the origin of `obj` in the dimension order of GT4Py's stencils, or None if `obj` does not have an origin.

    Parameters
    ----------
    obj : object
        Any array. The origin is its ``__gt_origin__``.

    Returns
    -------
    tuple of int or None
        Indices in units of elements, one per dimension. If the dimensions of `obj` are named I, J, K, 0, 1, ..., the
        entries are in this order, which GT4Py expects. ``USMArray.origin`` is in the order of the array's dimensions
        instead.

    Examples
    --------
    >>> x = arrayhub.empty((4, 5), dims=("K", "I"), origin=(0, 2))
    >>> x.origin, arrayhub.storage.get_origin(x)
    ((0, 2), (2, 0))
    """
    return _origin_of(obj, _ndim_of(obj))


# --------------------------------------------------------------------------------------------- foreign attributes


def _attribute(obj: Any, name: str) -> Any:
    """Return an attribute of a foreign object, or None if its getter raises."""
    try:
        return getattr(obj, name, None)
    except PASSES_ON:
        raise
    except Exception:
        return None


def _ndim_of(obj: Any) -> int | None:
    ndim = _attribute(obj, "ndim")
    return ndim if type(ndim) is int else None


def _dims_of(obj: Any, ndim: int | None) -> tuple[str, ...] | None:
    for attribute in _NAMES:
        dims = _attribute(obj, attribute)
        if type(dims) is not tuple or (ndim is not None and len(dims) != ndim):
            continue
        if all(isinstance(name, str) for name in dims):
            names = tuple(str.__str__(name) for name in dims)  # exact str, also for instances of subclasses
            if len(set(names)) == len(names):
                return names
    return None


def _origin_of(obj: Any, ndim: int | None) -> tuple[int, ...] | None:
    values = _attribute(obj, "__gt_origin__")
    if type(values) not in (tuple, list) or (ndim is not None and len(values) != ndim):
        return None
    try:
        origin = tuple(integer(value, "__gt_origin__") for value in values)
    except PASSES_ON:
        raise
    except Exception:
        return None
    return origin


# ----------------------------------------------------------------------------------------------- the order of stencils


def is_known(name: str | None) -> bool:
    """Return whether `name` is the name of a dimension of GT4Py's stencils."""
    return name is not None and (name in GRID or _is_number(name))


def _stencils_know(dims: Sequence[str]) -> bool:
    return all(is_known(name) for name in dims)


def _is_number(name: str) -> bool:
    """Return whether `name` is a data dimension of GT4Py: a decimal number below 10**9 without leading zeros."""
    return name.isascii() and name.isdecimal() and len(name) < 10 and (name == "0" or name[0] != "0")


def stencil_order(dims: Sequence[str]) -> list[int]:
    """Return the axes in the order of a stencil: I, J, K, then data dimensions by number.

    GT4Py transposes the array to this order according to ``__gt_dims__``, and interprets ``__gt_origin__`` as the
    origin of the transposed array. ``__gt_dims__`` does not exist if GT4Py does not support the names. GT4Py then does
    not transpose the array, so the axes keep their order.
    """
    axes = list(range(len(dims)))
    return sorted(axes, key=lambda axis: _rank(dims[axis])) if _stencils_know(dims) else axes


def _rank(name: str) -> tuple[int, int]:
    return (1, int(name)) if _is_number(name) else (0, GRID.index(name))


def _from_stencil_order(origin: Sequence[int], dims: Sequence[str]) -> tuple[int, ...]:
    by_axis = dict(zip(stencil_order(dims), origin, strict=True))
    return tuple(by_axis[axis] for axis in range(len(dims)))
