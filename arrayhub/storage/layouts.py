"""Layouts of arrays before their memory is allocated: strides, padding, alignment, and the registry of presets.

The rules are those of GT4Py's storage proposal. Cases that the proposal does not cover follow GT4Py's allocator.

A preset ranks the dimensions I, J and K by stride, and specifies a number of elements. Rows are padded to a multiple of
this number. A layout depends on the names of the dimensions, not on their order in the shape: data dimensions have the
largest strides, in numeric order, followed by I, J and K in the order of the preset. GT4Py itself ranks dimensions by
position if they are not in the order I, J, K.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from arrayhub._core.descriptor import BOUNDARY, MAX_NDIM, integer
from arrayhub._core.errors import dimensions, show
from arrayhub.adapters.dimensions import GRID, is_known
from arrayhub.array.usm_array import element_type

if TYPE_CHECKING:
    from arrayhub.array.usm_array import _DTypeLike

__all__ = ["layout_for", "names", "register"]


def __dir__() -> list[str]:
    return __all__


LayoutRule: TypeAlias = Callable[[tuple[str, ...]], Sequence[int]]
MOST_BYTES = 2**63 - 1

LayoutLike: TypeAlias = str | Sequence[SupportsIndex]

# -------------------------------------------------------------------------------------------------------------- plans


@dataclass(frozen=True, slots=True)
class Plan:
    """Memory layout of an array that is not allocated yet. Returned by `plan`.

    Attributes
    ----------
    shape : tuple of int
        Lengths of the dimensions, in elements.
    dtype : numpy.dtype
        Element type.
    layout : tuple of int
        Rank of each dimension by stride, with 0 for the largest stride.
    strides : tuple of int
        Strides in elements.
    padded_shape : tuple of int
        Lengths in elements, including the padding of the fastest dimension.
    offset : int
        Distance in elements from an aligned address to element zero.
    nbytes : int
        Size in bytes of a buffer that can hold the aligned array, whatever the address of the buffer.
    alignment : int
        Alignment in bytes.

    Examples
    --------
    >>> layout = arrayhub.storage.plan((3, 5), "f4", alignment=32)
    >>> layout.strides, layout.padded_shape, layout.nbytes
    ((8, 1), (3, 8), 127)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: tuple[int, ...]
    strides: tuple[int, ...]
    padded_shape: tuple[int, ...]
    offset: int
    nbytes: int
    alignment: int


def plan(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: "_DTypeLike" = np.float64,
    *,
    layout: LayoutLike | None = None,
    alignment: SupportsIndex | None = None,
    aligned_index: Sequence[SupportsIndex] | None = None,
) -> Plan:
    """Compute strides, padding and offset of an array without allocating memory.

    Parameters
    ----------
    shape : int or sequence of int
        Lengths of the dimensions, in elements.
    dtype : optional
        Element type: any value that ``numpy.dtype`` accepts.
    layout : sequence of int or {"C", "F"}, optional
        Rank of each dimension by stride, with 0 for the largest stride. The default is "C".
    alignment : int, optional
        Alignment in bytes. The fastest-varying dimension is padded to a multiple of `alignment`, so that every element
        with the index `aligned_index` along that dimension is aligned. By default, no dimension is padded, and element
        zero is aligned to 64 bytes.
    aligned_index : sequence of int, optional
        Index of an element to align. The default is zeros. Ignored without `alignment`.

    Returns
    -------
    Plan
        Strides and offset in elements, size and alignment in bytes.

    Raises
    ------
    ValueError
        `layout` is not a permutation, `alignment` is neither a divisor nor a multiple of the item size,
        `aligned_index` is out of bounds, or the array would have 2**63 bytes or more.
    TypeError
        A value is not an integer, or the item size of `dtype` is zero.

    Examples
    --------
    >>> arrayhub.storage.plan((3, 5), "f4", layout="F").strides
    (1, 3)
    """
    lengths = checked_lengths(shape)
    element = element_type(dtype)
    ranks = layout_ranks(layout, len(lengths))
    index = checked_index(aligned_index, lengths)
    boundary, block = boundary_and_block(alignment, element.itemsize)

    order = sorted(range(len(lengths)), key=ranks.__getitem__)  # from the largest stride to the smallest
    padded, offset = list(lengths), 0
    for fastest in order[-1:]:
        padded[fastest] = -(-lengths[fastest] // block) * block
        offset = -index[fastest] % block
    strides, step = [1] * len(lengths), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(padded[axis], 1)  # as in NumPy, a length of 0 does not make other strides 0
    if step * element.itemsize + boundary > MOST_BYTES:
        raise ValueError(f"shape: {show(lengths)} of {element!r} takes 2**63 bytes or more; accepted: fewer bytes")
    nbytes = math.prod(padded) * element.itemsize + boundary - 1
    return Plan(lengths, element, ranks, tuple(strides), tuple(padded), offset, nbytes, boundary)


def checked_lengths(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return `shape` as a validated tuple. An integer is the shape of a 1-d array."""
    lengths = integers(shape if isinstance(shape, Iterable) else (shape,), "shape")
    if len(lengths) > MAX_NDIM or any(not 0 <= length <= MOST_BYTES for length in lengths):
        raise ValueError(f"shape: {show(lengths)}; accepted: at most {MAX_NDIM} lengths from 0 to 2**63 - 1")
    return lengths


def layout_ranks(layout: LayoutLike | None, nd: int) -> tuple[int, ...]:
    """Return `layout` as a validated tuple of ranks."""
    if layout is None or isinstance(layout, str):
        if layout not in (None, "C", "F"):
            raise ValueError(f"layout: {show(layout)}; accepted: {_accepted_layouts(nd)}")
        return tuple(reversed(range(nd)) if layout == "F" else range(nd))
    ranks = integers(layout, "layout")
    if sorted(ranks) != list(range(nd)):
        raise ValueError(f"layout: {show(ranks)} for {dimensions(nd)}; accepted: {_accepted_layouts(nd)}")
    return ranks


def _accepted_layouts(nd: int) -> str:
    if nd == 0:
        return "'C', 'F' or ()"
    return f"'C', 'F' or a permutation of {(*range(nd),)}, where rank 0 marks the dimension with the largest stride"


def checked_index(aligned_index: Sequence[SupportsIndex] | None, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return `aligned_index` as a validated tuple with one entry per dimension."""
    if aligned_index is None:
        return (0,) * len(lengths)
    index = integers(aligned_index, "aligned_index")
    if len(index) != len(lengths) or any(not 0 <= i < max(length, 1) for i, length in zip(index, lengths, strict=True)):
        raise ValueError(f"aligned_index: {show(index)} for shape {show(lengths)}; accepted: the index of an element")
    return index


def boundary_and_block(alignment: SupportsIndex | None, itemsize: int) -> tuple[int, int]:
    """Return the alignment in bytes and in elements. The alignment in elements is at least 1."""
    if alignment is None:
        return BOUNDARY, 1
    boundary = integer(alignment, "alignment")
    if not 0 < boundary < MOST_BYTES or math.gcd(boundary, itemsize) not in (boundary, itemsize):
        raise ValueError(
            f"alignment: {boundary} bytes for elements of {itemsize} bytes; accepted: a divisor or a multiple of the"
            " item size, in bytes"
        )
    return boundary, max(boundary // itemsize, 1)


def integers(values: Iterable[Any], what: str) -> tuple[int, ...]:
    """Return `values` as a tuple of Python integers."""
    if not is_ordered(values):
        raise TypeError(f"{what}: {show(values)} is not a sequence; accepted: an integer for each dimension")
    return tuple(integer(value, what) for value in values)


def is_ordered(values: Any) -> bool:
    """Return whether `values` is an iterable with a defined order, which sets do not have."""
    if not isinstance(values, Iterable) or isinstance(values, (set, frozenset)):
        return False
    return not (isinstance(values, np.ndarray) and values.ndim == 0)  # 0-d arrays are Iterable, but cannot be iterated


# ------------------------------------------------------------------------------------------------------------ presets

ACCEPTED_DIMENSIONS = "'I', 'J', 'K' and decimal numbers such as '0' for data dimensions, each once"


@dataclass(frozen=True, slots=True)
class Preset:
    """Layout rule of a backend, and its row padding in elements."""

    layout: LayoutRule
    alignment: int


def _by_meaning(base: Sequence[int]) -> LayoutRule:
    """Return a rule: data dimensions have the largest strides, followed by I, J and K in the order `base`."""

    def rule(dimensions: tuple[str, ...]) -> tuple[int, ...]:
        order = sorted(dimensions, key=lambda name: (1, base[GRID.index(name)]) if name in GRID else (0, int(name)))
        return tuple(map(order.index, dimensions))

    return rule


def _of_gt4py(theirs: LayoutRule) -> LayoutRule:
    """Return a rule of GT4Py, which requires dimensions in the order I, J, K, data dimensions, for any order."""

    def rule(dimensions: tuple[str, ...]) -> tuple[int, ...]:
        order = sorted(dimensions, key=lambda name: (0, GRID.index(name)) if name in GRID else (1, int(name)))
        ranks = theirs(tuple(order))
        return tuple(int(ranks[order.index(name)]) for name in dimensions)

    return rule


# Presets copied from GT4Py 1.1, so that their names can be used without GT4Py. Each row contains the ranks of I, J and
# K, the alignment of rows in elements, and the names.
_BUILT_IN = {
    name: Preset(_by_meaning(base), alignment)
    for base, alignment, names in (
        ((0, 1, 2), 1, ("numpy", "debug", "gt:cpu_kfirst", "dace:cpu_kfirst", "dace:gpu_IJK")),
        ((2, 1, 0), 1, ("gt:cpu_ifirst", "dace:cpu_KJI", "dace:gpu")),
        ((2, 1, 0), 32, ("gt:gpu",)),
        ((1, 2, 0), 1, ("dace:cpu",)),
    )
    for name in names
}
_registered: dict[str, Preset] = {}
_GT4PY = "gt4py.storage.cartesian.layout_registry"


def register(name: str, base_layout: Sequence[SupportsIndex] | LayoutRule, alignment: SupportsIndex = 1) -> None:
    """Register a preset for the argument `backend`, or replace the preset of this name.

    Parameters
    ----------
    name : str
        Name of the backend.
    base_layout : sequence of int or callable
        Ranks of I, J and K, with 0 for the largest stride, or a function that maps a tuple of dimension names to ranks.
    alignment : int, optional
        Rows are padded to a multiple of this number of elements, as in GT4Py.

    Raises
    ------
    TypeError
        `name` is not a string, `alignment` is not an integer, or `base_layout` is neither a function nor a sequence of
        integers.
    ValueError
        `base_layout` is not a permutation of 0, 1, 2, or `alignment` is less than 1.

    Examples
    --------
    >>> arrayhub.storage.layouts.register("mine", (2, 0, 1), alignment=8)
    >>> arrayhub.storage.layout_for("IJK", "mine")
    (2, 0, 1)
    """
    if not isinstance(name, str):
        raise TypeError(f"layouts.register: name is {show(name)}; accepted: a string")
    elements = integer(alignment, "alignment")
    if elements < 1:
        raise ValueError(f"layouts.register: alignment is {elements}; accepted: 1 or more elements")
    if callable(base_layout):
        _registered[name] = Preset(base_layout, elements)
    else:
        ranks = integers(base_layout, "base_layout")
        if sorted(ranks) != [0, 1, 2]:
            raise ValueError(
                f"layouts.register: base_layout is {show(ranks)}; accepted: the ranks 0, 1 and 2 of I, J and K in any"
                " order, such as (2, 0, 1), or a function of the dimensions"
            )
        _registered[name] = Preset(_by_meaning(ranks), elements)


def layout_for(dims: Iterable[Any], /, backend: str) -> tuple[int, ...]:
    """Return the layout of a backend, as accepted by the argument `layout`.

    Parameters
    ----------
    dims : sequence of str
        Name of each dimension: "I", "J", "K", or a decimal number such as "0" for a data dimension. A string is a
        sequence of one-letter names. GTScript axes are accepted, too.
    backend : str
        Name of a preset in this registry, or in GT4Py's registry if GT4Py is installed.

    Returns
    -------
    tuple of int
        Rank of each dimension by stride, with 0 for the largest stride.

    Raises
    ------
    ValueError
        A dimension is unknown or repeated, or the backend is not registered.

    Examples
    --------
    >>> arrayhub.storage.layout_for(("I", "J", "K", "0"), "gt:gpu")
    (3, 2, 1, 0)
    """
    return layout_by(find(backend), checked_dimensions(dims))


def layout_by(preset: Preset, dimensions: tuple[str, ...]) -> tuple[int, ...]:
    """Apply a preset to validated dimension names, and validate the resulting layout."""
    return layout_ranks(integers(preset.layout(dimensions), "layout"), len(dimensions))


def checked_dimensions(dimensions: Iterable[Any]) -> tuple[str, ...]:
    """Return `dimensions` as a tuple of names. Raise ValueError if a name is unknown or repeated.

    Raise TypeError if `dimensions` is a set or is not iterable.
    """
    if not is_ordered(dimensions):
        raise TypeError(f"dimensions: {show(dimensions)} is not a sequence; accepted: {ACCEPTED_DIMENSIONS}")
    names = tuple(getattr(name, "__gt_axis_name__", name) for name in dimensions)
    for name in names:
        if not (isinstance(name, str) and is_known(name)):
            raise ValueError(
                f"dimensions: {show(name)} in {show(names)}; accepted: {ACCEPTED_DIMENSIONS}. Presets rank only these"
                " names: pass dims=('I', 'J', ...)"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"dimensions: {show(names)} repeats a dimension; accepted: {ACCEPTED_DIMENSIONS}")
    return names


def default_dimensions(nd: int) -> tuple[str, ...]:
    """Return GT4Py's default names of `nd` dimensions: I, J, K, 0, 1, ..."""
    return (*GRID[:nd], *map(str, range(nd - 3)))


def find(backend: str) -> Preset:
    """Return the preset of a backend, or raise ValueError. GT4Py is imported only if the name is unknown without it."""
    found = source(backend) if isinstance(backend, str) else None
    if found is None and isinstance(backend, str):
        with contextlib.suppress(ImportError):
            import_module(_GT4PY)
        found = source(backend)
    if found is None:
        raise ValueError(
            f"backend: {show(backend)} is not registered; accepted: {', '.join(names())}. Register it with"
            " arrayhub.storage.layouts.register(name, base_layout)"
        )
    return found if isinstance(found, Preset) else Preset(_of_gt4py(found["layout_map"]), found["alignment"])


def source(backend: str) -> Any:
    """Return the registry entry of a backend, or None. Each registration creates a new entry.

    The lookup order is this registry, GT4Py's registry if GT4Py is loaded, and the built-in presets.
    """
    found = _registered.get(backend)
    if found is None:
        found = _gt4pys().get(backend)
    return _BUILT_IN.get(backend) if found is None else found


def names() -> list[str]:
    """Return the sorted names that the argument `backend` accepts, including those of GT4Py if it is loaded.

    Examples
    --------
    >>> "gt:gpu" in arrayhub.storage.layouts.names()
    True
    """
    return sorted({*_registered, *_gt4pys(), *_BUILT_IN})


def _gt4pys() -> Mapping[str, Any]:
    """Return GT4Py's private registry, or an empty mapping if GT4Py is not loaded or lacks the registry."""
    return getattr(sys.modules.get(_GT4PY), "REGISTRY", {})
