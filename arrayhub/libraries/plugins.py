"""Register libraries of other projects, through `register_library` or entry points that call it.

A registration makes a row with the columns of `table`. `wrappers` looks up types in the rows, and `convert/dispatch`
imports their objects. This module validates registrations, loads entry points, and names the plug-in in every error
that a plug-in causes.
"""

import inspect
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

from arrayhub._core.errors import PASSES_ON, InterfaceError, name_of_type, root_of, show
from arrayhub.adapters.type_cache import forget_types
from arrayhub.libraries import wrappers
from arrayhub.libraries.known import LIBRARIES, TARGETS, Library
from arrayhub.libraries.table import declared_dtype
from arrayhub.libraries.wrappers import (
    BUILT_IN_TYPES,
    Entry,
    entries_of,
    message_of,
    name_source,
    raise_plugin_error,
)

GROUP = "arrayhub.libraries"  # of entry points
_EXPRESSION = "an expression such as 'x.compute()'"

BUILT_IN_ROOTS = {root for row in LIBRARIES for root in row.roots}

_HANDLED_TYPES = BUILT_IN_TYPES | {
    (root, name)
    for row in LIBRARIES
    for kind, *names in row.recognizers
    for root in row.roots
    for name in (names if kind == "own" else names[1:])
}

# The names of the libraries that `convert` supports without a registration, and the top-level modules of their arrays.
BUILT_IN_EXPORTS = tuple(name for name, row in TARGETS.items() if row.device_type is not None)
_EXPORTED = {root for row in (*LIBRARIES, *TARGETS.values()) if row.like in TARGETS for root in (row.name, *row.roots)}

# A registration replaces `wrappers.TYPES` and `REGISTERED` as a whole, because other threads may be reading them.
_registering = allocate_lock()

# The row of each registered library, by root.
REGISTERED: dict[str, Library] = {}

# Roots for which `load_library` returns at once: their entry point was loaded, does not exist or is not needed.
_settled = {"", "__main__", "arrayhub", *BUILT_IN_ROOTS, *sys.stdlib_module_names}
_loading: set[tuple[str, int]] = set()  # roots that are being loaded, and the thread that loads each
_points: dict[str, list[Any]] | None = None  # entry points by root, or None before they are read

_mro = type.__dict__["__mro__"].__get__


def register_library(
    root: str | ModuleType,
    *,
    types: Mapping[str, Any] | Iterable[str] | None = None,
    parse: Callable[[Any], Any] | None = None,
    emit: Callable[..., Any] | None = None,
    advice: Mapping[str, Any] | None = None,
) -> None:
    """Register a library that arrayhub does not support itself.

    A library whose arrays support a protocol does not need to be registered. With `types` or `parse`, objects of the
    library are accepted wherever arrays are accepted. With `emit`, ``convert(x, root)`` returns arrays of the library.
    A second call for the same library replaces the first registration.

    Parameters
    ----------
    root : str or module
        Top-level module that defines the library's types, such as ``"mylib"``.
    types : dict or iterable of str, optional
        Names of the types that hold an array, without their modules. Subclasses of these types are included. A dict
        maps each name to one of these values: the path to the array, such as ``"data"`` or ``"buffer.view()"``, a
        function that returns the array, or None, which rejects the type even if it supports a protocol. Names without a
        dict require `parse`.
    parse : callable, optional
        ``parse(obj)`` returns any object that `asarray` accepts and that shares the memory of `obj`. Without `types`,
        `parse` is called for all types of the library, and can return None, which means that the protocols of the
        object are tried. `parse` is called twice for each object, and both results must share memory.
    emit : callable, optional
        ``emit(array)`` returns an array of the library that shares the memory of a `USMArray`. `emit` must raise
        BufferError if the library does not support the array. ``emit(array, model)``, a function with two parameters,
        also receives the model of `like`, `adapt` or `placement`, or None, so that it can copy units and metadata.
    advice : dict, optional
        For each type name, the call that error messages suggest: an expression in ``x`` such as ``"x.compute()"``, or a
        function that returns such an expression for an object.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or contains a type that arrayhub already handles. Types of known libraries can be added,
        but not replaced.

    Notes
    -----
    An installed library registers itself through an entry point in the group ``arrayhub.libraries``. The name of the
    entry point is `root`. Its value refers to a function without arguments that calls `register_library`. The entry
    point is loaded when the first object of the library is imported, or when `convert` is first called for the library.

    Examples
    --------
    >>> import sys, types
    >>> import arrayhub, numpy
    >>> class Field:
    ...     def __init__(self, values):
    ...         self.values = values
    >>> Field.__module__ = "mylib"
    >>> arrayhub.register_library("mylib", types={"Field": "values"}, emit=lambda x: Field(arrayhub.as_numpy(x)))
    >>> arrayhub.asarray(Field(numpy.arange(3.0))).shape
    (3,)
    >>> type(arrayhub.convert(numpy.arange(3.0), "mylib")).__name__
    'Field'
    """
    if isinstance(root, ModuleType):
        root = root.__name__
    if not isinstance(root, str) or not root.isidentifier():
        raise TypeError(
            f"register_library: root is {show(root)}; accepted: the name of a top-level module, or the module"
        )
    for name, function in (("parse", parse), ("emit", emit)):
        if function is not None and not callable(function):
            raise TypeError(f"register_library: {name} is {show(function)}; accepted: a function")
    if types is None and parse is None and emit is None and advice is None:
        raise TypeError("register_library: types, parse, emit and advice are omitted; accepted: one or more of them")
    parsers = _parsers(root, types, parse)
    refused = {name: "" for name, parser in parsers.items() if parser is None}
    imported = {name: (parser, declared_dtype) for name, parser in parsers.items() if parser is not None}
    entries = dict(entries_of(root, types=imported, refused=refused, advice=_advice(root, advice), registered=True))
    _refuse_built_in(root, entries, emit)
    library = Library(root, emit=emit, takes_model=emit is not None and _takes_model(emit))
    global REGISTERED
    with _registering:
        kept = {key: entry for key, entry in wrappers.TYPES.items() if key[0] != root or key in BUILT_IN_TYPES}
        wrappers.TYPES = kept | entries
        REGISTERED = {**REGISTERED, root: library}
    _settled.add(root)
    forget_types()  # the type cache may contain types of the library that were imported before the registration


def _takes_model(emit: Callable[..., Any]) -> bool:
    """Return whether a function has two parameters without a default, or a second parameter named ``model``."""
    try:
        parameters = list(inspect.signature(emit).parameters.values())
    except (TypeError, ValueError):  # some functions of extension modules do not have a signature
        return False
    given = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len(given) > 1 and (given[1].name == "model" or given[1].default is given[1].empty)


def _check_name(root: str, argument: str, name: Any) -> None:
    """Raise an error for a key that cannot be the name of a type of the library."""
    if not isinstance(name, str):
        instead = name.__qualname__ if isinstance(name, type) else "Array"
        fault = f"register_library: a key of {argument} is {show(name)}"
        raise TypeError(f"{fault}; accepted: the name of a type, such as {instead!r}")
    module, _, last = name.rpartition(".")
    if module and (module == root or module.startswith(f"{root}.") or f"{root}.{module}" in sys.modules):
        fault = f"register_library: a key of {argument} is {name!r}"
        raise ValueError(f"{fault}; accepted: names of types without the module. Write {last!r}")


def _advice(root: str, advice: Any) -> dict[str, Any]:
    if advice is None:
        return {}
    if not isinstance(advice, Mapping):
        raise TypeError(f"register_library: advice is {show(advice)}; accepted: a dict of type names and calls")
    for name, call in advice.items():
        _check_name(root, "advice", name)
        if not (isinstance(call, str) or callable(call)):
            fault = f"register_library: advice[{show(name)}] is {show(call)}"
            raise TypeError(f"{fault}; accepted: {_EXPRESSION}, or a function that returns one")
    return {name: call if isinstance(call, str) else partial(_advise, root, call) for name, call in advice.items()}


def _advise(root: str, function: Callable[[Any], Any], obj: Any) -> str:
    """Return the call that a plug-in's function suggests for an object."""
    error = call = None
    try:
        call = function(obj)
    except PASSES_ON:
        raise
    except Exception as raised:
        error = raised
    if not isinstance(call, str):
        did = f"{name_source(function, root)} {'raised' if error else f'returned {show(call)}'}"
        raise_plugin_error(root, f"{name_of_type(type(obj))}: {did}", _EXPRESSION, error)
    return call


def _parsers(root: str, types: Any, parse: Any) -> dict[str | None, Any]:
    """Return the path or function of each type name. The name None denotes all types."""
    if types is None:
        return {} if parse is None else {None: parse}
    if isinstance(types, str) or not isinstance(types, Iterable):
        raise TypeError(f"register_library: types is {show(types)}; accepted: names of types, or a dict by name")
    if isinstance(types, Mapping):
        if parse is not None:
            raise TypeError("register_library: types is a dict, which has a path or function for each type; omit parse")
        parsers = dict(types)
    else:
        if parse is None:
            raise TypeError("register_library: types contains only names; accepted: a dict, or names and parse")
        parsers = dict.fromkeys(types, parse)
    for name, parser in parsers.items():
        _check_name(root, "types", name)
        path = isinstance(parser, str) and all(part.removesuffix("()").isidentifier() for part in parser.split("."))
        if not (parser is None or path or callable(parser)):
            fault = f"register_library: types[{show(name)}] is {show(parser)}; accepted: a path such as 'data' or"
            raise TypeError(f"{fault} 'buffer.view()', a function of one argument, or None")
    return parsers


def _refuse_built_in(root: str, entries: dict[tuple[str, str | None], Entry], emit: Any) -> None:
    if emit is not None and root in _EXPORTED:
        raise ValueError(f"register_library: arrayhub already exports to {root!r}; omit emit=")
    if (root, None) in entries and root in BUILT_IN_ROOTS | {own for own, _ in BUILT_IN_TYPES}:
        fault = f"register_library: arrayhub already handles {root!r}; parse= is accepted only with types="
        raise ValueError(f"{fault}, the names of types that it does not handle yet")
    known = sorted(f"{root}.{name}" for root, name in entries.keys() & _HANDLED_TYPES)
    if known:
        fault = f"register_library: arrayhub already handles {', '.join(known)}"
        raise ValueError(f"{fault}; types= and advice= accept only types that it does not handle yet")


# -------------------------------------------------------------------------------------------------------- entry points


def load_libraries_of(cls: type) -> None:
    """Load the entry points of the libraries that define a type and its bases.

    Raises
    ------
    InterfaceError
        An entry point fails. The next call tries again.
    """
    for base in _mro(cls):
        root = root_of(base)
        if root not in _settled:
            load_library(root)


def load_library(root: str) -> None:
    """Load the entry point of a library if it is not loaded yet."""
    if root in _settled or (root, get_ident()) in _loading:  # the plug-in itself may import arrays of the library
        return
    points = entry_points().get(root, [])
    if len(points) > 1:
        fault = f"arrayhub.libraries: {root!r} has several entry points: {', '.join(map(words_of, points))}"
        raise InterfaceError(f"{fault}; accepted: one. Uninstall the others")
    for point in points:
        _loading.add((root, get_ident()))
        try:
            _load(point)
        finally:
            _loading.discard((root, get_ident()))
    _settled.add(root)


def entry_points() -> dict[str, list[Any]]:
    """Return the entry points of all installed distributions, by root. The entry points are read on the first call."""
    global _points
    if _points is None:
        import importlib.metadata

        points: dict[str, list[Any]] = {}
        for point in importlib.metadata.entry_points(group=GROUP):
            points.setdefault(point.name, []).append(point)
        _points = points
    return _points


def words_of(point: Any) -> str:
    """Return an entry point and its distribution, for messages."""
    dist = point.dist
    return f"{point.value!r}" + ("" if dist is None else f" of {dist.name} {dist.version}")


def _load(point: Any) -> None:
    words = f"arrayhub.libraries: the entry point {words_of(point)}"
    try:
        point.load()()
    except Exception as error:
        raise InterfaceError(f"{words} for {point.name!r} raised {message_of(error)}") from error
    if point.name not in REGISTERED:
        raise InterfaceError(f"{words} does not call register_library({point.name!r}, ...)")


# -------------------------------------------------------------------------------------------------------------- export


def emitter(root: str, model: Any = None) -> Callable[[Any], Any] | None:
    """Return the function that creates arrays of a registered library, or None.

    A function with a parameter for the model receives `model`.
    """
    if root not in REGISTERED:
        load_library(root)
    library = REGISTERED.get(root)
    if library is None or not library.takes_model:
        return None if library is None else library.emit
    return lambda array: library.emit(array, model)


def emitting() -> tuple[str, ...]:
    """Return the names of the registered libraries that `convert` can export to."""
    if not REGISTERED:
        return ()  # the usual case. An allocation here may abort the process on CPython 3.11 if memory is exhausted
    return tuple([root for root, library in REGISTERED.items() if library.emit is not None])


def library_of(cls: type) -> str | None:
    """Return the name of the registered library that defines a type or one of its bases, or None."""
    load_libraries_of(cls)
    return next((root for root in map(root_of, _mro(cls)) if root in REGISTERED), None)


# -------------------------------------------------------------------------------------------------------------- errors


def raise_emit_error(root: str, did: str, error: Exception | None = None) -> NoReturn:
    """Raise an error about a plug-in's `emit`. `did` says what it did; `error` is the exception or None."""
    accepted = f"an array of {root} that shares the memory of the argument"
    words = name_source(REGISTERED[root].emit, root)
    raise_plugin_error(root, f"{root}: {words} {did}", accepted, error, TypeError, ImportError)
