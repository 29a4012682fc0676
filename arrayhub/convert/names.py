"""Names of libraries: translation of common spellings, modules and array types to the names that `convert` uses."""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from arrayhub._core.descriptor import Descriptor
from arrayhub._core.errors import root_of, show
from arrayhub._core.tree import Tree
from arrayhub.adapters.type_cache import types_generation
from arrayhub.libraries import plugins
from arrayhub.libraries.known import ROWS, TARGETS, row_of_type
from arrayhub.libraries.numpy import VALUES
from arrayhub.libraries.wrappers import known

# Names for arrayhub's own types.
OWN = "arrayhub"
NESTED = "arrayhub.NestedArray"
SPARSE = "arrayhub.SparseArray"

SPELLINGS = {name: row.like for row in ROWS.values() if not row.instead for name in row.spellings}

# Libraries that `convert` does not export to, and the call that makes one of their arrays of an array `x`.
ELSEWHERE = {name.lower(): row.instead for row in ROWS.values() if row.instead for name in (row.name, *row.spellings)}


# The functions that export to libraries without a compiled exporter, by the library's name in `convert`.
EXPORT_BY = {name: row.export_by for name, row in TARGETS.items() if row.export_by is not None}
EXPORT_BY |= {NESTED: "nested.asnested:import_nested", SPARSE: "sparse.export:export_own"}


@lru_cache(maxsize=64)
def get_exporter(name: str) -> Any:
    """Return the function that exports to a library without a compiled exporter, or to a type of arrayhub, or None."""
    if name not in EXPORT_BY:
        return None
    module, _, function = EXPORT_BY[name].partition(":")
    exporter: Callable[..., Any] = getattr(import_module(f"arrayhub.{module}"), function)
    return exporter


def sparse_library(obj: Any) -> str | None:
    """Return the library of a sparse array or a sparse array type, or None for other objects."""
    cls: Any = obj if issubclass(type(obj), type) else type(obj)
    found = _sparse_library(cls, types_generation())
    if found is None and root_of(cls) == "torch" and cls is not obj:
        torch = sys.modules["torch"]
        if issubclass(cls, torch.Tensor) and str(getattr(obj, "layout", None)).startswith("torch.sparse_"):
            return "torch"
    return found


@lru_cache(maxsize=1024)
def _sparse_library(cls: Any, generation: int) -> str | None:
    found = known(cls).sparse
    return SPARSE if found == "arrayhub" else found


_BUFFERS = ("array", "bytearray", "bytes", "memoryview", "PyCapsule")


def known_names() -> tuple[str, ...]:
    """Return the names that `convert` recognizes without importing a module."""
    return (*plugins.BUILT_IN_EXPORTS, OWN, *plugins.emitting())


def library_name(to: Any, call: str = "convert", argument: str = "to") -> str:
    """Return the name of the library that `to` (a name, module or type) denotes. Errors name `call` and `argument`.

    A string is looked up in the table of libraries, and among the loaded modules. It never imports a module.

    Raises
    ------
    ValueError
        `to` does not denote a library, or names a module without ``from_dlpack``.
    """
    if isinstance(to, type):
        found = None if root_of(to) == "builtins" else sparse_library(to) or name_of_type(to) or _own_class(to)
        if found is None:
            raise ValueError(
                f"{call}: {argument} is {show(to)}, not an array type of a known library; accepted: {_accepted()}"
            )
        return found
    if isinstance(to, ModuleType):
        to = to.__name__
    name = str.__str__(to) if isinstance(to, str) else None
    if name is None:
        raise ValueError(f"{call}: {argument} is {show(to)}; accepted: {_accepted()}")
    lowered = name.lower()
    for spelling in (name, lowered):
        found = SPELLINGS.get(spelling, spelling)
        if found in known_names() or found in EXPORT_BY:
            return found
    if plugins.emitter(name) is None and from_dlpack_of(name) is None:
        instead = ELSEWHERE.get(lowered.partition(".")[0])
        advice = f". For an array of this library, use {instead}" if instead else ""
        raise ValueError(
            f"{call}: {argument} is {show(to)}{_suggestion(lowered)}; accepted: {_accepted()}."
            f" A string does not import a module: import it, and pass the module or the class itself{advice}"
        )
    return name


def name_of_type(cls: type) -> str | None:
    """Return the name that `convert` uses for the library of an array type, or None for other types."""
    return _name_of_type(cls, types_generation())


@lru_cache(maxsize=1024)
def _name_of_type(cls: type, generation: int) -> str | None:
    if issubclass(cls, Descriptor):
        return OWN
    if issubclass(cls, Tree):
        return NESTED
    if issubclass(cls, VALUES):
        return "numpy"
    registered = plugins.library_of(cls)  # first, because this loads the entry point of the library
    names = known_names()
    if registered in names:
        return registered
    for base in cls.__mro__[:-1]:  # without `object`
        row = row_of_type(base)
        if row is not None and row.like in names and (row.name != "python" or base.__name__ in _BUFFERS):
            return str(row.like)
        found = _own_module(base)
        if found is not None:
            return found
    return None


def _own_module(cls: type) -> str | None:
    """Return the innermost module that has ``from_dlpack`` and contains the definition of a type, or None."""
    if root_of(cls) == "builtins":
        return None
    name = cls.__module__
    while name:
        module = sys.modules.get(name)
        if callable(getattr(module, "from_dlpack", None)):
            return name
        name = name.rpartition(".")[0]
    return None


def _own_class(cls: type) -> str | None:
    """Return the dotted name of a class that has its own ``from_dlpack``, such as ``onnxruntime.OrtValue``, or None."""
    for module in (root_of(cls), cls.__module__):
        name = f"{module}.{cls.__qualname__}"
        if getattr(sys.modules.get(module), cls.__qualname__, None) is cls and from_dlpack_of(name) is not None:
            return name
    return None


def from_dlpack_of(name: str) -> Callable[[Any], Any] | None:
    """Return the ``from_dlpack`` of a loaded module, or of a class in a loaded module, or None."""
    module, _, attribute = name.rpartition(".")
    found = sys.modules.get(name, getattr(sys.modules.get(module), attribute, None))
    function = getattr(found, "from_dlpack", None)
    return function if callable(function) else None


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    spellings = {**dict.fromkeys(known_names()), **SPELLINGS}
    # Abbreviations such as "pl" are near to any short word.
    candidates = [spelling for spelling in spellings if len(spelling) > 3]
    near = get_close_matches(name, candidates, n=1, cutoff=0.7) or [name.partition(".")[0]][: "." in name]
    if not near or near[0] not in spellings:
        return ""
    return f" (did you mean {(spellings[near[0]] or near[0])!r}?)"


def _accepted() -> str:
    return f"{', '.join(known_names())}, one of their modules or array types, or a module or class with from_dlpack"
