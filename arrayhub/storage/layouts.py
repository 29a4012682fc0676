"""Registry of layout presets. A preset defines the order of dimensions in memory and the row padding of a backend.

A preset ranks the dimensions I, J and K by stride, and specifies a number of elements. Rows are padded to a multiple of
this number. A layout depends on the names of the dimensions, not on their order in the shape: data dimensions have the
largest strides, in numeric order, followed by I, J and K in the order of the preset. This is the rule of GT4Py's
storage proposal. GT4Py itself ranks dimensions by position if they are not in the order I, J, K.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, SupportsIndex, TypeAlias

from arrayhub._core.descriptor import integer
from arrayhub._core.errors import show
from arrayhub.adapters.dimensions import GRID, is_known
from arrayhub.storage.planning import integers, is_ordered, layout_ranks

__all__ = ["layout_for", "names", "register"]


def __dir__() -> list[str]:
    return __all__


ACCEPTED_DIMENSIONS = "'I', 'J', 'K' and decimal numbers such as '0' for data dimensions, each once"

LayoutRule: TypeAlias = Callable[[tuple[str, ...]], Sequence[int]]


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
