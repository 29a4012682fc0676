"""layouts: which dimension is the fastest for which backend. The registry is this module itself.

A preset says how the dimensions I, J and K are ranked, and how many elements rows are padded to. Dimensions are ranked
by what they mean, whatever their order is: data dimensions have the largest strides, in numeric order, then follow I, J
and K as the preset ranks them. This is the rule of GT4Py's storage proposal; GT4Py itself goes by position where the
order is another one.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, SupportsIndex, TypeAlias

from arrayhub._core.errors import show
from arrayhub._core.integers import integer
from arrayhub.adapters.dimensions import GRID, is_known
from arrayhub.storage.planning import integers, is_ordered, layout_ranks

__all__ = ["layout_for", "names", "register"]


def __dir__() -> list[str]:
    return __all__


ACCEPTED_DIMENSIONS = "'I', 'J', 'K' and decimal numbers such as '0' for data dimensions, each once"

LayoutRule: TypeAlias = Callable[[tuple[str, ...]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a backend wants: a layout for dimensions, and rows padded to a number of elements."""

    layout: LayoutRule
    alignment: int


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """The rule of a base layout: the ranks of I, J and K among each other, behind all data dimensions."""

    base: tuple[int, ...]

    def __call__(self, dimensions: tuple[str, ...]) -> tuple[int, ...]:
        def place(name: str) -> tuple[int, int]:
            return (1, self.base[GRID.index(name)]) if name in GRID else (0, int(name))

        order = sorted(dimensions, key=place)
        return tuple(order.index(name) for name in dimensions)


@dataclass(frozen=True, slots=True)
class OfGT4Py:
    """GT4Py's own rule, asked with the dimensions in the order that it counts on."""

    rule: LayoutRule

    def __call__(self, dimensions: tuple[str, ...]) -> tuple[int, ...]:
        def place(name: str) -> tuple[int, int]:
            return (0, GRID.index(name)) if name in GRID else (1, int(name))

        in_order = sorted(dimensions, key=place)
        ranks = self.rule(tuple(in_order))
        return tuple(int(ranks[in_order.index(name)]) for name in dimensions)


# One row per base layout of I, J, K, as GT4Py 1.1 has them; so the names are there without GT4Py.
_BUILT_IN = {
    name: Preset(ByMeaning(base), alignment)
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
    """Enter a preset, which ``backend=`` then takes; one with the same name is replaced.

    Parameters
    ----------
    name : str
        The backend.
    base_layout : sequence of int or callable
        The ranks of I, J and K: 0 for the largest stride. Or a function that gives the layout of a tuple of dimensions.
    alignment : int, optional
        How many elements rows are padded to a multiple of, as GT4Py counts.

    Raises
    ------
    ValueError
        A base layout that is no permutation of 0, 1, 2; an alignment below 1.
    """
    if not isinstance(name, str):
        raise TypeError(f"layouts.register: name is {show(name)}; accepted: a string")
    elements = integer(alignment, "alignment")
    if elements < 1:
        raise ValueError(f"layouts.register: alignment is {elements}; accepted: one element or more")
    if callable(base_layout):
        _registered[name] = Preset(base_layout, elements)
    else:
        ranks = integers(base_layout, "base_layout")
        if sorted(ranks) != [0, 1, 2]:
            raise ValueError(
                f"layouts.register: base_layout is {show(ranks)}; accepted: a permutation of 0, 1, 2, the ranks of I, J"
                " and K, or a function of the dimensions"
            )
        _registered[name] = Preset(ByMeaning(ranks), elements)


def layout_for(dims: Iterable[Any], /, backend: str) -> tuple[int, ...]:
    """Return what ``layout=`` takes for a backend: the order of dimensions in memory.

    Parameters
    ----------
    dims : sequence of str
        What each dimension means: "I", "J", "K", or a decimal number for a data dimension. A string is the sequence of
        its letters; GTScript's axes serve as well.
    backend : str
        A preset's name: of this registry, or of GT4Py's own where that is installed.

    Returns
    -------
    tuple of int
        The rank of each dimension when they are sorted from the largest stride to the smallest.

    Raises
    ------
    ValueError
        An unknown or repeated dimension; a backend that is not registered.
    """
    return layout_by(find(backend), checked_dimensions(dims))


def layout_by(preset: Preset, dimensions: tuple[str, ...]) -> tuple[int, ...]:
    """Return the layout that a preset gives for checked dimensions, itself checked."""
    return layout_ranks(integers(preset.layout(dimensions), "layout"), len(dimensions))


def checked_dimensions(dimensions: Iterable[Any]) -> tuple[str, ...]:
    """Return dimensions as a tuple of their names, each known and given once."""
    if not is_ordered(dimensions):
        raise TypeError(f"dimensions: {show(dimensions)} is no sequence; accepted: {ACCEPTED_DIMENSIONS}")
    names = tuple(getattr(name, "__gt_axis_name__", name) for name in dimensions)
    for name in names:
        if not (isinstance(name, str) and is_known(name)):
            raise ValueError(
                f"dimensions: {show(name)} in {show(names)}; accepted: {ACCEPTED_DIMENSIONS}. A preset ranks these"
                " alone: say with dims=('I', 'J', ...) which of them the array's dimensions are"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"dimensions: {show(names)} has a dimension twice; accepted: {ACCEPTED_DIMENSIONS}")
    return names


def default_dimensions(nd: int) -> tuple[str, ...]:
    """Return what GT4Py takes dimensions for that nobody has named."""
    return (*GRID[:nd], *map(str, range(nd - 3)))


def find(backend: str) -> Preset:
    """Return the preset of a backend. GT4Py is imported only for a name that is not known without it.

    Raises
    ------
    ValueError
        Nobody has registered it.
    """
    found = None
    if isinstance(backend, str):
        found = source(backend)
        if found is None and _import_gt4py():
            found = source(backend)
    if found is None:
        raise ValueError(
            f"backend: {show(backend)} is not registered; accepted: {', '.join(names())}, and what"
            " arrayhub.layouts.register enters"
        )
    return found if isinstance(found, Preset) else Preset(OfGT4Py(found["layout_map"]), found["alignment"])


def source(backend: str) -> Any:
    """Return the object that says what a backend wants, another one after each registration; None where there is none.

    What is registered here goes first, then what GT4Py says, if it is loaded.
    """
    found = _registered.get(backend)
    if found is None:
        found = _gt4pys().get(backend)
    return _BUILT_IN.get(backend) if found is None else found


def names() -> list[str]:
    """Return the names that ``backend=`` takes, sorted; GT4Py's own among them where it is loaded."""
    return sorted({*_registered, *_gt4pys(), *_BUILT_IN})


def _gt4pys() -> Mapping[str, Any]:
    """Return GT4Py's registry, a private name of its; empty where it is not loaded, or has none."""
    return getattr(sys.modules.get(_GT4PY), "REGISTRY", {})


def _import_gt4py() -> bool:
    """Whether GT4Py is installed; afterwards it is loaded."""
    try:
        import_module(_GT4PY)
    except ImportError:
        return False
    return True
