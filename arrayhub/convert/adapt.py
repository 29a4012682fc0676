"""adapt: a decorator that lets a function written for one library accept and return the arrays of any library."""

import inspect
import typing
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from arrayhub._core.copying import Copy, wanted
from arrayhub._core.errors import show
from arrayhub.convert.functions import convert
from arrayhub.convert.names import library_name
from arrayhub.convert.placement import NUMPY_PLACEMENT, is_array, placement

F = TypeVar("F", bound=Callable[..., Any])


def adapt(to: Any = "numpy", *, copy: Copy = None) -> Callable[[F], F]:
    """Let a function of one library accept the arrays of every library, and return the caller's kind.

    Array arguments are converted to `to`. An argument annotated with ``Annotated[..., Request(...)]`` has to meet
    the request; lengths of the same letter have to be equal in all arguments. Without such an annotation, every
    argument that is an array is converted. Arrays in the result, also in tuples, lists and dicts, are returned in
    the `placement` of the arguments. Numbers, strings and None pass through.

    Parameters
    ----------
    to : str, module or type
        The library that the function is written for, as in `convert`.
    copy : {None, "if_needed"}, optional
        None: raise BufferError, with the name of the argument, if a copy is needed. "if_needed": copy if a view is
        impossible, to another device too.

    Returns
    -------
    callable
        The decorator. Signature, name and docstring of the function are kept.

    Raises
    ------
    TypeError
        The function is a class, a generator function or not callable.
    ValueError
        `to` is not a known library.

    Examples
    --------
    >>> import torch
    >>> @adapt("numpy", copy="if_needed")
    ... def blur(x, width=3):
    ...     return np.convolve(x, np.ones(width) / width, "same")
    >>> type(blur(torch.ones(4)))
    <class 'torch.Tensor'>
    """
    library = library_name(to)
    wanted(copy, "adapt")

    def decorate(function: F) -> F:
        _check_function(function)
        name = getattr(function, "__name__", "function")
        requests = _requests(function)
        signature = inspect.signature(function)
        names = [*signature.parameters]
        # One NumPy array without keywords needs neither a placement nor a search for arrays.
        direct = library == "numpy" and not requests and copy is not True

        def convert_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
            if requests:
                bound = signature.bind(*args, **kwargs)
                arrays = _requested(name, bound.arguments, requests)
                given = [bound.arguments[key] for key in arrays]
                place = placement(*given) if given else None
                for key, array in arrays.items():
                    bound.arguments[key] = _converted(array, library, copy, name, key)
                return place, list(bound.args), bound.kwargs
            keys = [*(names[min(k, len(names) - 1)] if names else str(k) for k in range(len(args))), *kwargs]
            values = [*args, *kwargs.values()]
            flags = [is_array(value) for value in values]
            found = [value for value, flag in zip(values, flags, strict=True) if flag]
            if not found:
                found = [value for value in values if isinstance(value, (list, tuple))]
            place = placement(*found) if found else None
            converted = [
                _converted(value, library, copy, name, key) if flag or _is_sequence(value) else value
                for value, flag, key in zip(values, flags, keys, strict=True)
            ]
            return place, converted[: len(args)], dict(zip(kwargs, converted[len(args) :], strict=True))

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def adapted_coroutine(*args: Any, **kwargs: Any) -> Any:
                place, args_, kwargs_ = convert_arguments(args, kwargs)
                return _returned(await function(*args_, **kwargs_), place, copy)

            return typing.cast(F, adapted_coroutine)

        @wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            if direct and len(args) == 1 and not kwargs and type(args[0]) is np.ndarray:
                return _returned(function(args[0]), NUMPY_PLACEMENT, copy)
            place, args_, kwargs_ = convert_arguments(args, kwargs)
            return _returned(function(*args_, **kwargs_), place, copy)

        return typing.cast(F, adapted)

    return decorate


def _check_function(function: Any) -> None:
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"adapt: {show(function)} is not a function; accepted: functions, methods and async functions")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"adapt: {function.__qualname__} is a generator function; accepted: functions that return arrays"
        )


def _requests(function: Any) -> dict[str, Any]:
    """Return the objects with ``asarray`` in the ``Annotated`` annotations, by parameter."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        hints = getattr(function, "__annotations__", {})
    found = {}
    for name, hint in hints.items():
        for extra in getattr(hint, "__metadata__", ()):
            if name != "return" and callable(getattr(extra, "asarray", None)) and not isinstance(extra, type):
                found[name] = extra
    return found


def _requested(name: str, arguments: dict[str, Any], requests: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a request, as arrays that meet the request; None passes through."""
    arrays: dict[str, Any] = {}
    lengths: dict[str, tuple[int, str]] = {}
    for key, request in requests.items():
        if arguments.get(key) is None:
            continue
        array = arrays[key] = request.asarray(arguments[key], name=f"{name}: {key}")
        for letter, length in request.lengths(array).items() if hasattr(request, "lengths") else ():
            other, first = lengths.setdefault(letter, (length, key))
            if other != length:
                raise ValueError(
                    f"{name}: {letter} is {other} in {first}, and {length} in {key}; accepted: equal lengths"
                )
    return arrays


def _is_sequence(arg: Any) -> bool:
    """Return whether an argument is a list or tuple of values, neither empty nor of strings."""
    return isinstance(arg, (list, tuple)) and len(arg) > 0 and not isinstance(arg[0], str)


def _converted(arg: Any, library: str, copy: Copy, name: str, key: str) -> Any:
    try:
        return convert(arg, library, copy=copy)
    except (BufferError, TypeError, ValueError) as error:
        kind = next(kind for kind in (BufferError, TypeError, ValueError) if isinstance(error, kind))
        hint = "" if copy else ". Pass copy='if_needed' to arrayhub.adapt to allow copies"
        raise kind(f"{name}: {key}: {error}{hint if kind is BufferError else ''}") from error


def _returned(result: Any, place: Any, copy: Copy) -> Any:
    """Return a result with its arrays in a placement."""
    if place is None or (place is NUMPY_PLACEMENT and type(result) is np.ndarray):
        return result
    if isinstance(result, tuple):
        parts = [_returned(part, place, copy) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [_returned(part, place, copy) for part in result]
    if isinstance(result, dict):
        return {key: _returned(value, place, copy) for key, value in result.items()}
    return place.convert(result, copy=copy) if is_array(result) else result
