"""Register libraries of other projects, through `register_library` or entry points that call it.

`wrappers` contains the rows of registered types and of built-in types, and `convert/dispatch` imports objects of both.
This module validates registrations, loads entry points, and names the plug-in in every error that a plug-in causes.
"""

import inspect
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, NoReturn

from arrayhub._core.errors import InterfaceError, Refusal, first_line, name_of_type, root_of, show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.type_cache import forget_types
from arrayhub.libraries import wrappers
from arrayhub.libraries.known import LIBRARIES
from arrayhub.libraries.wrappers import BUILT_IN_ROWS, Wrapper, path_getter

GROUP = "arrayhub.libraries"  # of entry points

BUILT_IN_ROOTS = {root for row in LIBRARIES for root in row.roots}

# A registration replaces `wrappers.ROWS` and `_emitters` as a whole, because other threads may be reading them.
_registering = allocate_lock()

# The function that creates the library's arrays, or None, keyed by root. Each registered library has an entry.
_emitters: dict[str, Callable[..., Any] | None] = {}

# Libraries whose function has a parameter for the model.
TAKE_MODEL: frozenset[str] = frozenset()

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
    rows = dict(_rows(root, types, parse, _advice(root, advice)))
    _refuse_built_in(root, rows, emit)
    _publish(root, rows, emit)
    _settled.add(root)
    forget_types()  # the type cache may contain types of the library that were imported before the registration


def _publish(root: str, rows: dict[Any, Wrapper], emit: Callable[..., Any] | None) -> None:
    """Replace the rows and the emitter of a library."""
    global _emitters, TAKE_MODEL
    with _registering:
        kept = {key: row for key, row in wrappers.ROWS.items() if key[0] != root or key in BUILT_IN_ROWS}
        wrappers.ROWS = kept | rows
        _emitters = {**_emitters, root: emit}
        TAKE_MODEL = TAKE_MODEL - {root} | ({root} if emit is not None and _takes_model(emit) else frozenset())


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
        raise TypeError(
            f"register_library: a key of {argument} is {show(name)}; accepted: the name of a type, such as {instead!r}"
        )
    module, _, last = name.rpartition(".")
    if module and (module == root or module.startswith(f"{root}.") or f"{root}.{module}" in sys.modules):
        raise ValueError(
            f"register_library: a key of {argument} is {name!r}; accepted: names of types without the module. Write"
            f" {last!r}"
        )


def _advice(root: str, advice: Any) -> dict[str, Any]:
    if advice is None:
        return {}
    if not isinstance(advice, Mapping):
        raise TypeError(f"register_library: advice is {show(advice)}; accepted: a dict of type names and calls")
    for name, call in advice.items():
        _check_name(root, "advice", name)
        if not (isinstance(call, str) or callable(call)):
            raise TypeError(
                f"register_library: advice[{show(name)}] is {show(call)}; accepted: an expression such as"
                " 'x.compute()', or a function that returns one"
            )
    return dict(advice)


def _rows(root: str, types: Any, parse: Any, advice: dict[str, Any]) -> Iterable[tuple[Any, Wrapper]]:
    """Yield the rows of a library, with their keys."""
    parsers = _parsers(root, types, parse)
    for name, parser in parsers.items():
        call = None if name is None else advice.pop(name, None)
        if parser is None:
            yield (root, name), Wrapper(root, advice=call)
        elif isinstance(parser, str):
            words = f"the attribute {parser!r}, registered for {root!r},"
            yield (root, name), Wrapper(root, parser, advice=call, parse=path_getter(parser), words=words)
        else:
            yield (root, name), Wrapper(root, advice=call, parse=parser, words=_words(parser, root))
    for name, call in advice.items():
        yield (root, name), Wrapper(root, advice=call, asked=True)


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
            raise TypeError(
                "register_library: types contains only names; accepted: a dict of paths, or names and a function parse"
            )
        parsers = dict.fromkeys(types, parse)
    for name, parser in parsers.items():
        _check_name(root, "types", name)
        path = isinstance(parser, str) and all(part.removesuffix("()").isidentifier() for part in parser.split("."))
        if not (parser is None or path or callable(parser)):
            raise TypeError(
                f"register_library: types[{show(name)}] is {show(parser)}; accepted: a path such as 'data' or"
                " 'buffer.view()', a function of one argument, or None"
            )
    return parsers


def _words(function: Any, root: str) -> str:
    module = getattr(function, "__module__", None) or "?"
    return f"{module}.{getattr(function, '__qualname__', type(function).__qualname__)}, registered for {root!r},"


def _refuse_built_in(root: str, rows: Mapping[Any, Wrapper], emit: Any) -> None:
    if emit is not None and root in _exported_roots():
        raise ValueError(f"register_library: arrayhub already exports to {root!r}; omit emit=")
    if (root, None) in rows and root in BUILT_IN_ROOTS:
        raise ValueError(
            f"register_library: arrayhub already handles {root!r}; parse= is accepted only with types=, the names of"
            " types that it does not handle yet"
        )
    names = sorted(name for key in rows if key in BUILT_IN_ROWS for name in key[1:])
    if names:
        raise ValueError(
            f"register_library: arrayhub already handles {', '.join(f'{root}.{name}' for name in names)}; types= and"
            " advice= accept only types that it does not handle yet"
        )


@lru_cache(maxsize=1)
def built_in_exports() -> tuple[str, ...]:
    """Return the names of the libraries that `convert` supports without a registration."""
    return (*(row.name for row in LIBRARIES if row.call is not None), *hooks.nested.NESTED_CONSUMERS, "xarray")


def _exported_roots() -> set[str]:
    """Return the top-level modules whose arrays `convert` can create, including aliases such as dpctl for dpnp."""
    names = built_in_exports()
    return {root for row in LIBRARIES if row.name in names or row.like in names for root in (row.name, *row.roots)}


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
        raise InterfaceError(
            f"arrayhub.libraries: {root!r} has several entry points: {', '.join(map(words_of, points))}; accepted: one."
            " Uninstall the others"
        )
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
    try:
        point.load()()
    except MemoryError:
        raise
    except Exception as error:
        raise InterfaceError(
            f"arrayhub.libraries: the entry point {words_of(point)} for {point.name!r} raised {_message_of(error)}"
        ) from error
    if point.name not in _emitters:
        raise InterfaceError(
            f"arrayhub.libraries: the entry point {words_of(point)} does not call register_library({point.name!r}, ...)"
        )


# -------------------------------------------------------------------------------------------------------------- export


def emitter(root: str) -> Callable[[Any], Any] | None:
    """Return the function that creates arrays of a registered library, or None."""
    if root not in _emitters:
        load_library(root)
    return emitter_like(root, None) if root in TAKE_MODEL else _emitters.get(root)


def emitter_like(root: str, model: Any) -> Callable[[Any], Any] | None:
    """Return the function that creates arrays of a registered library with the metadata of `model`.

    Return None for a library whose function does not have a parameter for the model.
    """
    emit: Any = _emitters[root] if root in TAKE_MODEL else None
    return None if emit is None else lambda array: emit(array, model)


def emitting() -> tuple[str, ...]:
    """Return the names of the registered libraries that `convert` can export to."""
    if not _emitters:
        return ()  # the usual case. An allocation here may abort the process on CPython 3.11 if memory is exhausted
    return tuple([root for root, emit in _emitters.items() if emit is not None])


def library_of(cls: type) -> str | None:
    """Return the name of the registered library that defines a type or one of its bases, or None."""
    load_libraries_of(cls)
    return next((root for root in map(root_of, _mro(cls)) if root in _emitters), None)


def emitting_library_of(cls: type) -> str | None:
    """Return the name of the registered library of a type if `convert` exports to it, else None."""
    root = library_of(cls)
    return None if root is None or _emitters[root] is None else root


# -------------------------------------------------------------------------------------------------------------- errors


def raise_parse_error(row: Wrapper, obj: Any, error: Exception) -> NoReturn:
    """Raise an error that names `parse`, which has raised `error`.

    BufferError and TypeError keep their type. Other exceptions become InterfaceError.
    """
    kind = type(error) if isinstance(error, Refusal) or type(error) in (BufferError, TypeError) else InterfaceError
    _raise(error, kind, f"{name_of_type(type(obj))}: {row.words} raised {_message_of(error)}", row.root)


def raise_result_error(row: Wrapper, obj: Any, result: Any, error: Exception) -> NoReturn:
    """Raise an error that names `parse`, whose `result` caused `error` in `asarray`."""
    kind = type(error) if type(error) in (BufferError, Refusal) else InterfaceError
    text = f"{name_of_type(type(obj))}: {row.words} returned {name_of_type(type(result))}: {_message_of(error)}"
    _raise(error, kind, text, row.root)


def _raise(error: Exception, kind: type[Exception], text: str, root: str) -> NoReturn:
    if getattr(error, "plugin", None) is not None:  # the error already names the plug-in of an inner object
        raise error
    raise _marked(kind(text), root) from error


def parse_fault(row: Wrapper, obj: Any, why: str) -> Exception:
    """Return the error about an invalid result of a plug-in's `parse` or path. `why` describes the result."""
    text = f"{name_of_type(type(obj))}: {row.words} {why}; accepted: an array that shares the memory of the object"
    return _marked(InterfaceError(text), row.root)


def raise_emit_error(root: str, error: Exception) -> NoReturn:
    """Raise an error that names `emit`, which has raised `error`.

    BufferError, TypeError and ImportError keep their type. Other exceptions become InterfaceError.
    """
    keeps = isinstance(error, Refusal) or type(error) in (BufferError, TypeError, ImportError)
    kind = type(error) if keeps else InterfaceError
    _raise(error, kind, f"{root}: {_words(_emitters.get(root), root)} raised {_message_of(error)}", root)


def emit_fault(root: str, result: Any) -> Exception:
    """Return the error for a result of `emit` that is not an array of the library."""
    words = _words(_emitters.get(root), root)
    text = (
        f"{root}: {words} returned {name_of_type(type(result))}; accepted: an array of {root} that shares the memory of"
        " the argument"
    )
    return _marked(InterfaceError(text), root)


def _marked(error: Exception, root: str) -> Exception:
    error.plugin = root
    return error


def _message_of(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "RecursionError: it calls arrayhub with its own object, or with an object that leads back to it"
    text = first_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
