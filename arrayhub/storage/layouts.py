"""Layouts of arrays before their memory is allocated: strides, padding, alignment, and the registry of presets.

The rules are those of GT4Py's storage proposal. Cases that the proposal does not cover follow GT4Py's allocator, except
that a layout depends on the names of the dimensions, not on their order. docs/storage.md states the rules.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np

from arrayhub._core.descriptor import BOUNDARY, MAX_NDIM, integer, integers, one_each
from arrayhub._core.errors import dimensions, show
from arrayhub.adapters.dimensions import GRID, is_known, stencil_order
from arrayhub.array.usm_array import element_type

if TYPE_CHECKING:
    from arrayhub.array.usm_array import _DTypeLike

__all__ = ["layout_for", "names", "register"]


def __dir__() -> list[str]:
    return __all__


LayoutRule: TypeAlias = Callable[[tuple[str, ...]], Sequence[int]]
LayoutLike: TypeAlias = str | Sequence[SupportsIndex]
MOST_BYTES = 2**63 - 1

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
    TypeError, ValueError
        `layout` is not a permutation, `alignment` is neither a divisor nor a multiple of the item size, `aligned_index`
        is out of bounds, another value is invalid, or the array would have 2**63 bytes or more.

    Examples
    --------
    >>> arrayhub.storage.plan((3, 5), "f4", layout="F").strides
    (1, 3)
    """
    lengths = read_lengths(shape)
    element = element_type(dtype)
    ranks = read_ranks(layout, len(lengths))
    index = (0,) * len(lengths) if aligned_index is None else integers(aligned_index, len(lengths), "aligned_index")
    if any(not 0 <= i < max(length, 1) for i, length in zip(index, lengths, strict=True)):
        raise ValueError(f"aligned_index: {show(index)} for shape {show(lengths)}; accepted: the index of an element")
    boundary, size = BOUNDARY if alignment is None else integer(alignment, "alignment"), element.itemsize
    if boundary <= 0 or (alignment is not None and math.gcd(boundary, size) not in (boundary, size)):
        raise ValueError(
            f"alignment: {boundary} bytes for elements of {size} bytes; accepted: a divisor or a multiple of the"
            " item size, in bytes"
        )
    block = 1 if alignment is None else max(boundary // size, 1)  # elements from boundary to boundary

    order = sorted(range(len(lengths)), key=ranks.__getitem__)  # from the largest stride to the smallest
    padded, offset = list(lengths), 0
    for fastest in order[-1:]:
        padded[fastest] = -(-lengths[fastest] // block) * block
        offset = -index[fastest] % block
    strides, step = [1] * len(lengths), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(padded[axis], 1)  # as in NumPy, a length of 0 does not make other strides 0
    if step * size + max(boundary, BOUNDARY) > MOST_BYTES:
        raise ValueError(f"shape: {show(lengths)} of {size}-byte elements takes 2**63 bytes or more; accepted: fewer")
    nbytes = math.prod(padded) * size + boundary - 1
    return Plan(lengths, element, ranks, tuple(strides), tuple(padded), offset, nbytes, boundary)


def read_lengths(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return `shape` as a validated tuple. An integer is the shape of a 1-d array."""
    lengths: tuple[int, ...] = integers(shape if isinstance(shape, Iterable) else (shape,), -1, "shape")
    if len(lengths) > MAX_NDIM or any(not 0 <= length <= MOST_BYTES for length in lengths):
        raise ValueError(f"shape: {show(lengths)}; accepted: at most {MAX_NDIM} lengths from 0 to 2**63 - 1")
    return lengths


def read_ranks(layout: LayoutLike | None, nd: int, argument: str = "layout") -> tuple[int, ...]:
    """Return `layout` as a validated tuple of ranks. Errors name `argument`."""
    rising = tuple(range(nd))
    named = {None: rising, "C": rising, "F": rising[::-1]}
    ranks = named.get(layout) if layout is None or isinstance(layout, str) else integers(layout, nd, argument)
    if ranks is None or sorted(ranks) != list(range(nd)):
        raise ValueError(
            f"{argument}: {show(layout)} for {dimensions(nd)}; accepted: 'C', 'F' or a permutation of the ranks"
            f" {(*range(nd),)}, where rank 0 marks the dimension with the largest stride"
        )
    return ranks


# ------------------------------------------------------------------------------------------------------------ presets

ACCEPTED_DIMENSIONS = "'I', 'J', 'K' and decimal numbers such as '0' for data dimensions, each once"


class Preset(NamedTuple):
    """Row padding of a backend in elements, and its layout rule for dimensions in the order I, J, K, numbers."""

    rule: LayoutRule
    alignment: int

    def rank(self, dims: Iterable[Any]) -> tuple[int, ...]:
        """Return the ranks of dimensions, which may be in any order."""
        names = read_dimensions(dims)
        axes = stencil_order(names)
        ranks = read_ranks(self.rule(tuple(names[axis] for axis in axes)), len(names))
        return tuple(ranks[axes.index(axis)] for axis in range(len(names)))


def _rank_by_meaning(base: Sequence[int], dimensions: tuple[str, ...]) -> tuple[int, ...]:
    """Return ranks by which data dimensions have the largest strides, followed by I, J and K in the order `base`."""
    order = sorted(dimensions, key=lambda name: (1, base[GRID.index(name)]) if name in GRID else (0, int(name)))
    return tuple(map(order.index, dimensions))


_GT4PY = "gt4py.storage.cartesian.layout_registry"
# The registry. It begins with presets copied from GT4Py 1.1, so that their names can be used without GT4Py: the ranks
# of I, J and K, the alignment of rows in elements, and the names.
_presets = {
    name: Preset(partial(_rank_by_meaning, base), alignment)
    for base, alignment, names in (
        ((0, 1, 2), 1, ("numpy", "debug", "gt:cpu_kfirst", "dace:cpu_kfirst", "dace:gpu_IJK")),
        ((2, 1, 0), 1, ("gt:cpu_ifirst", "dace:cpu_KJI", "dace:gpu")),
        ((2, 1, 0), 32, ("gt:gpu",)),
        ((1, 2, 0), 1, ("dace:cpu",)),
    )
    for name in names
}


def register(name: str, base_layout: Sequence[SupportsIndex] | LayoutRule, alignment: SupportsIndex = 1) -> None:
    """Register a preset for the argument `backend`, or replace the preset of this name.

    Parameters
    ----------
    name : str
        Name of the backend.
    base_layout : sequence of int or callable
        Ranks of I, J and K, with 0 for the largest stride, or a function from names (I, J, K, then numbers) to ranks.
    alignment : int, optional
        Rows are padded to a multiple of this number of elements, as in GT4Py.

    Raises
    ------
    TypeError, ValueError
        `name` is not a string, `base_layout` is neither a function nor a permutation of 0, 1, 2, or `alignment` is not
        a positive integer.

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
    if not callable(base_layout):
        base_layout = partial(_rank_by_meaning, read_ranks(base_layout, 3, "base_layout"))
    _presets[name] = Preset(base_layout, elements)


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
    return find_preset(backend).rank(dims)


def read_dimensions(dimensions: Iterable[Any]) -> tuple[str, ...]:
    """Return `dimensions` as a tuple of names. Raise ValueError if a name is unknown or repeated."""
    given = one_each(dimensions, -1, "dimensions", ACCEPTED_DIMENSIONS)
    names = tuple(getattr(name, "__gt_axis_name__", name) for name in given)
    if not all(isinstance(name, str) and is_known(name) for name in names) or len(set(names)) != len(names):
        raise ValueError(
            f"dimensions: {show(names)}; accepted: {ACCEPTED_DIMENSIONS}. Presets rank only these names: pass"
            " dims=('I', 'J', ...)"
        )
    return names


def find_preset(backend: str) -> Preset:
    """Return the preset of a backend, or raise ValueError. An unknown name imports GT4Py."""
    if isinstance(backend, str):
        if backend in _presets:
            return _presets[backend]
        with contextlib.suppress(ImportError):
            import_module(_GT4PY)
        if (entry := _read_gt4py().get(backend)) is not None:
            return Preset(entry["layout_map"], entry["alignment"])
    raise ValueError(
        f"backend: {show(backend)} is not registered; accepted: {', '.join(names())}. Register it with"
        " arrayhub.storage.layouts.register(name, base_layout)"
    )


def names() -> list[str]:
    """Return the sorted names that the argument `backend` accepts, including those of GT4Py if it is loaded.

    Examples
    --------
    >>> "gt:gpu" in arrayhub.storage.layouts.names()
    True
    """
    return sorted({*_presets, *_read_gt4py()})


def _read_gt4py() -> Mapping[str, Any]:
    """Return GT4Py's private registry, or an empty mapping if GT4Py is not loaded or lacks the registry."""
    return getattr(sys.modules.get(_GT4PY), "REGISTRY", {})
