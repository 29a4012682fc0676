"""adapt: a decorator that lets a function written for one library accept and return the arrays of any library."""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from copy import copy as shallow_copy
from functools import wraps
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.errors import PASSES_ON, first_line, show
from arrayhub._core.hooks import hooks
from arrayhub.convert.containers import container_of, without_index
from arrayhub.convert.functions import convert
from arrayhub.convert.names import library_name, sparse_library
from arrayhub.convert.placement import (
    NUMPY_KIND,
    NUMPY_PLACEMENT,
    DeviceConflict,
    Placement,
    array_kind,
    deciding,
    returned,
)
from arrayhub.convert.tables import is_table_type
from arrayhub.libraries import wrappers

F = TypeVar("F", bound=Callable[..., Any])


def adapt(to: Any = "numpy", *, copy: Copy = None, labels: bool = True, missing: Any = None) -> Callable[[F], F]:
    """Let a function written for one library accept arrays of any library, and return arrays of the caller's library.

    - Arguments annotated with ``Annotated[..., Request(...)]`` are converted to `to` and must meet the request. Lengths
      denoted by the same letter must be equal in all arguments. If such an argument is None, it is passed unchanged,
      and so are all arguments without this annotation.
    - If no argument has this annotation, all arrays and lists are converted. Tuples and ranges are converted only if no
      argument is an array. Numbers, strings, bytes, lists of strings, None and other objects, such as element types,
      are passed unchanged. Arrays that `asarray` refuses, such as dask arrays, are an error.
    - Arrays in the result, including those in tuples, lists and dicts, are converted to the library and the device that
      `placement` returns for the arguments. Numbers, strings, None and other objects, including dataclasses, are
      returned unchanged. NumPy returns scalars from reductions and from arithmetic with 0-d arrays, so
      ``return x.mean()`` returns a NumPy scalar to all callers, and ``return np.asarray(x.mean())`` returns a 0-d array
      of the caller's library.
    - A result gets the labels of the argument that determines the library (see `placement`), if the shapes are equal.
      Pass ``labels=False`` if elements of the result do not correspond to elements of this argument, as for quantiles,
      sorted values and transposes.
    - Names of columns in the result are kept. If the function returns data of the caller's library, such as a Series
      when the caller passed a Series, the data keeps its own labels, and a masked array of NumPy keeps its mask.
    - Functions for polars, pyarrow and awkward receive a pandas DataFrame without its index. If such a function returns
      a table with the same number of rows, the table gets the index of the DataFrame, unless `labels` is False.
    - Sparse arguments and results remain sparse. They are SciPy's sparse arrays if `to` is "numpy", or if the caller's
      library does not have sparse arrays.
    - A 0-d array in the result becomes a NumPy scalar if the caller's library has only columns, such as pandas.

    Parameters
    ----------
    to : str, module or type
        The library that the function is written for, as in `convert`. Functions for pyarrow receive tables as
        ``pyarrow.Table`` if `to` is this type, and otherwise as arrays of structs.
    copy : {False, None, True}, optional
        - None: copy if a view is impossible.
        - False: raise BufferError, with the name of the argument, if an array has to be copied. Lists are built.
        - True: copy each array.
    labels : bool, default: True
        Whether results get the labels of an argument: index, names of columns, dims and coords.
    missing : {None, "nan"} or value, optional
        Representation of missing values in the arguments, as in `convert`. Values in the result are not converted back.

    Returns
    -------
    callable
        A decorator that preserves the signature, the name and the docstring of the function.

    Raises
    ------
    TypeError
        - `to` is a function, because the decorator was used without parentheses.
        - The function is a class, a generator function, a staticmethod, a classmethod or not callable.
        - The annotation of ``*args`` or ``**kwargs`` contains a request.
        - An annotation that contains a request cannot be evaluated.
    ValueError
        - `to` is not a known library.
        - `missing` is "mask".
        - `missing` is not None, and the annotation of a parameter contains a request.

    Examples
    --------
    >>> import torch
    >>> @adapt("numpy")
    ... def blur(x, width=3):
    ...     return np.convolve(x, np.ones(width) / width, "same")
    >>> type(blur(torch.ones(4)))
    <class 'torch.Tensor'>
    """
    if inspect.isfunction(to):  # a decorator without parentheses
        raise TypeError(f'adapt: to is {show(to)}; accepted: a library. Write @arrayhub.adapt("numpy")')
    if isinstance(missing, str) and missing == "mask":
        raise ValueError("adapt: missing is 'mask', which creates two arrays; accepted: None, 'nan' or a value")
    library = library_name(to, "adapt")
    target = _Target(library, copy, to if isinstance(to, type) and is_table_type(to) else None, missing)
    check_copy(copy, "adapt")

    def decorate(function: F) -> F:
        _check_function(function)
        name = getattr(function, "__name__", "function")
        parameters = inspect.signature(function).parameters
        requests = _requests(function, name, parameters)
        if requests and missing is not None:
            raise ValueError(
                f"adapt: {name}: missing is {show(missing)}, but {requests[0].key} has a request; accepted: None."
                f" Pass arrayhub.as_numpy(x, missing={show(missing)}) to the function"
            )
        names = [key for key, parameter in parameters.items() if parameter.kind in _POSITIONAL]
        is_direct = target.library == "numpy" and not requests and copy is not True and missing is None

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Iterable[Any], dict[str, Any]]:
            if is_direct and _are_of_numpy(args, kwargs):
                return NUMPY_PLACEMENT, args, kwargs
            if requests:
                return _by_request(name, requests, target, args, kwargs)
            return _by_type(name, names, target, args, kwargs)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def adapted_coroutine(*args: Any, **kwargs: Any) -> Any:
                place, args_, kwargs_ = prepared(args, kwargs)
                return _returned(await function(*args_, **kwargs_), place, copy, name, labels)

            return typing.cast(F, adapted_coroutine)

        @wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            place, args_, kwargs_ = prepared(args, kwargs)
            return _returned(function(*args_, **kwargs_), place, copy, name, labels)

        return typing.cast(F, adapted)

    return decorate


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# Types of the errors that conversions raise. `adapt` raises errors of the same types.
_REFUSALS = (BufferError, OverflowError, TypeError, ValueError)

# Types of arguments that a NumPy function receives unchanged.
_OF_NUMPY = frozenset((np.ndarray, int, float, complex, bool, str, bytes, type(None)))


class _Target(NamedTuple):
    """The library that a function is written for, and whether copies are permitted."""

    library: str
    copy: Copy
    cls: type | None  # the table type that was passed to `adapt`, or None
    missing: Any

    def convert(self, obj: Any, name: str, key: str) -> Any:
        try:
            if sparse_library(obj) is not None:
                return hooks.sparse_like("adapt", obj, self.library, None, self.copy)
            given = without_index(obj) if self.library == "arrow" else obj
            return convert(given, self.cls or self.library, copy=self.copy, missing=self.missing)
        except _REFUSALS as error:
            hint = _copy_hint(error, self.copy, obj, self.library)
            raise _named(error, name, key, hint or self._missing_hint(obj)) from error

    def _missing_hint(self, obj: Any) -> str:
        """Return the advice to pass `missing` to `adapt`, or "" if the conversion also fails with `missing`."""
        if self.missing is not None or sparse_library(obj) is not None:
            return ""
        try:
            convert(obj, self.cls or self.library, copy=self.copy, missing="nan")
        except _REFUSALS:
            return ""
        return ". Pass missing='nan' or missing=value to arrayhub.adapt, which replaces missing values"


def _named(error: Exception, name: str, key: str, hint: str) -> Exception:
    """Return an error of the same kind with the names of the function and the argument, and with a hint."""
    kind = next(kind for kind in _REFUSALS if isinstance(error, kind))
    return kind(f"{name}: {key}: {error}{hint}")


def _copy_hint(error: Exception, copy: Copy, obj: Any, library: str) -> str:
    """Return the advice to pass `copy` to `adapt`, or "" if the conversion also fails with `copy`."""
    if copy is not False or not isinstance(error, BufferError) or not _is_possible_with_copy(obj, library):
        return ""
    return ". Pass copy=None to arrayhub.adapt to allow copies"


def _is_possible_with_copy(obj: Any, library: str) -> bool:
    """Return whether a copy of an object can be converted to an array of a library."""
    if sparse_library(obj) is not None and library in ("numpy", "numba"):
        library = "scipy"
    return all(verdict.verdict != "cannot" for verdict in hooks.explain(obj, library).verdicts)


class _Requested(NamedTuple):
    """A parameter with a request in its annotation."""

    key: str
    position: int  # -1 for a keyword-only parameter
    request: Any
    prefix: str  # of error messages
    has_letters: bool


def _check_function(function: Any) -> None:
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(
            f"adapt: {show(function)} is not a function; accepted: functions, methods and async functions. Write"
            " @staticmethod and @classmethod above @arrayhub.adapt"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"adapt: {function.__qualname__} is a generator function; accepted: functions that return arrays"
        )


def _requests(function: Any, name: str, parameters: Mapping[str, inspect.Parameter]) -> list[_Requested]:
    """Return the parameters whose ``Annotated`` annotation contains an object with ``asarray``."""
    found = []
    hints = _hints(function, name)
    for position, (key, parameter) in enumerate(parameters.items()):
        for extra in getattr(hints.get(key), "__metadata__", ()):
            if isinstance(extra, type) or not callable(getattr(extra, "asarray", None)):
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"adapt: {name}: {parameter} has a request; accepted: requests for parameters that take one value"
                )
            found.append(
                _Requested(
                    key,
                    position if parameter.kind in _POSITIONAL else -1,
                    extra,
                    f"{name}: {key}",
                    hasattr(extra, "lengths"),
                )
            )
    return found


def _hints(function: Any, name: str) -> dict[str, Any]:
    """Return the annotations that can be evaluated.

    Raises
    ------
    TypeError
        An annotation that cannot be evaluated may contain a request.
    """
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        pass
    found = {}
    for key, hint in getattr(function, "__annotations__", {}).items():
        single = SimpleNamespace(__annotations__={key: hint})
        try:
            found.update(typing.get_type_hints(single, getattr(function, "__globals__", None), include_extras=True))
        except (NameError, TypeError, AttributeError) as error:
            if "Request" in str(hint) or "Annotated" in str(hint):
                raise TypeError(
                    f"adapt: {name}: the annotation {show(hint)} of {key} cannot be evaluated ({first_line(error)});"
                    " accepted: names defined in the function's module"
                ) from error
    return found


def _are_of_numpy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the arguments contain a NumPy array, and nothing else that has to be converted."""
    found = False
    for values in (args, kwargs.values()) if kwargs else (args,):
        for value in values:
            cls = type(value)
            if cls is np.ndarray:
                found = True
            elif cls not in _OF_NUMPY:
                return False
    return found


def _by_request(
    name: str, requests: list[_Requested], target: _Target, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Iterable[Any], dict[str, Any]]:
    """Convert the arguments whose annotation contains a request, except None.

    Return the placement of the converted arguments (None if no argument was converted), all positional arguments, and
    all keyword arguments.
    """
    arguments = list(args)
    given, met = [], []
    are_of_numpy = True
    for parameter in requests:
        key, position, request, prefix, _ = parameter
        is_positional = 0 <= position < len(args)
        value = args[position] if is_positional else kwargs.get(key)
        if value is None:
            continue
        array = request.asarray(value, name=prefix)
        given.append(value)
        met.append((parameter, array))
        if type(value) is not np.ndarray:
            are_of_numpy = False
        converted = target.convert(array, name, key)
        if is_positional:
            arguments[position] = converted
        else:
            kwargs[key] = converted
    if len(met) > 1:
        _check_lengths(name, met)
    if are_of_numpy:
        return NUMPY_PLACEMENT if given else None, arguments, kwargs
    kinds = [array_kind(value) or NUMPY_KIND for value in given]
    return _place(name, given, kinds, [parameter.key for parameter, _ in met]), arguments, kwargs


def _check_lengths(name: str, arrays: list[tuple[_Requested, Any]]) -> None:
    """Raise ValueError if a letter denotes different lengths in two arrays."""
    lengths: dict[str, tuple[int, str]] = {}
    for parameter, array in arrays:
        for letter, length in parameter.request.lengths(array).items() if parameter.has_letters else ():
            other, first = lengths.setdefault(letter, (length, parameter.key))
            if other != length:
                raise ValueError(
                    f"{name}: {letter} is {other} in {first}, and {length} in {parameter.key}; accepted: equal lengths"
                )


def _by_type(
    name: str, names: list[str], target: _Target, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Iterable[Any], dict[str, Any]]:
    """Convert all arguments that are arrays or lists.

    Tuples and ranges, which are usually shapes or axes, are converted only if no argument is an array. Return the
    placement of the converted arguments (None if no argument was converted), all positional arguments, and all keyword
    arguments.
    """
    values = [*args, *kwargs.values()]
    kinds = [array_kind(value) for value in values]
    sequences: Any = list if any(kind is not None for kind in kinds) else (list, tuple, range)
    for k, value in enumerate(values):
        if kinds[k] is None and (_is_sequence(value, sequences) or _is_refused_array(value)):
            kinds[k] = NUMPY_KIND
    keys = [*(names[k] if k < len(names) else f"argument {k + 1}" for k in range(len(args))), *kwargs]
    place = _place(name, values, kinds, keys)
    for k, kind in enumerate(kinds):
        if kind is not None:
            values[k] = target.convert(values[k], name, keys[k])
    return place, values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True))


def _place(name: str, objs: list[Any], kinds: list[Any], keys: list[str]) -> Any:
    """Return the placement for arguments with the given kinds, or None if no argument is an array."""
    if kinds.count(None) == len(kinds):
        return None
    if kinds.count(NUMPY_KIND) == len(kinds):
        return NUMPY_PLACEMENT
    try:
        kind, source = deciding(objs, kinds, True)
    except DeviceConflict as error:
        (first, device), (second, other) = error.args
        raise ValueError(
            f"{name}: {keys[first]} is on {device}, and {keys[second]} on {other}; accepted: one device."
            " Move one of them with arrayhub.to_device"
        ) from None
    return NUMPY_PLACEMENT if kind is NUMPY_KIND else Placement(kind, source)


def _is_sequence(arg: Any, sequences: Any) -> bool:
    """Return whether an argument is a sequence of the given types whose first item is not a string."""
    return issubclass(type(arg), sequences) and not (len(arg) and isinstance(arg[0], str))


def _is_refused_array(arg: Any) -> bool:
    """Return whether an argument is an array with dimensions whose type `asarray` refuses, such as a dask array.

    The conversion of such an argument raises an error that names the call to make. Otherwise, the function would
    receive an array of a library that it is not written for.
    """
    cls: Any = type(arg)
    return hasattr(cls, "shape") and hasattr(cls, "dtype") and wrappers.unwraps(cls) and getattr(arg, "shape", ()) != ()


def _with_values(result: Any, changed: dict[Any, Any], values: dict[Any, Any]) -> Any:
    """Return a copy of a mapping with the values in `changed`, or `values` if it cannot be copied or changed."""
    try:
        made = shallow_copy(result)
        for key, value in changed.items():
            made[key] = value
    except PASSES_ON:
        raise
    except Exception:
        return values
    return made


def _returned(result: Any, place: Any, copy: Copy, name: str, labels: bool) -> Any:
    """Convert the arrays in a function's result to the library and the device of a placement. Return the result."""
    cls: Any = type(result)
    if place is None or (issubclass(cls, np.ndarray) and place.library == "numpy"):
        return result
    if issubclass(cls, tuple):
        parts = [_returned(part, place, copy, name, labels) for part in result]
        if all(part is own for part, own in zip(parts, result, strict=True)):
            return result
        if hasattr(cls, "_fields"):
            return cls(*parts)
        return cls(parts) if hasattr(cls, "n_sequence_fields") else tuple(parts)  # such as torch.return_types.sort
    if issubclass(cls, list):
        return [_returned(part, place, copy, name, labels) for part in result]
    if issubclass(cls, dict):
        values = {key: _returned(value, place, copy, name, labels) for key, value in result.items()}
        if cls is dict:
            return values
        changed = {key: value for key, value in values.items() if value is not result[key]}
        return _with_values(result, changed, values) if changed else result
    kind = array_kind(result)
    if kind is None:
        return result
    if (kind.library, kind.device) == (place.library, place.device) and container_of(cls) is not None:
        return result  # the result keeps the labels that the function has set
    try:
        return returned(result, place, copy, labels)
    except _REFUSALS as error:
        hint = _copy_hint(error, copy, result, place.library)
        own = f". In this message, x is the value that {name} returns. Convert this value inside {name}"
        raise _named(error, name, "the result", hint or own) from error
