"""adapt: a decorator that lets a function written for one library accept and return the arrays of any library."""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, TypeVar, get_type_hints

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import Device
from arrayhub._core.errors import first_line, show
from arrayhub.convert.adapter import Adapter
from arrayhub.convert.names import library_name
from arrayhub.convert.target import Target

F = TypeVar("F", bound=Callable[..., Any])


def adapt(
    to: Any = "numpy", *, copy: Copy = None, device: Any = None, labels: bool = False, missing: Any = None
) -> Callable[[F], F]:
    """Let a function written for one library accept arrays of any library, and return arrays of the caller's library.

    - Arrays of the library `to` are passed unchanged, including subclasses, masked arrays and arrays that the library
      traces or differentiates. Other arrays are converted by `convert`. Arrays that `asarray` refuses, such as dask
      arrays, are an error.
    - Lists, tuples and dicts that contain arrays are passed as new containers of the same type, with converted arrays.
      If a call does not have any array, lists of numbers are converted. Numbers, strings, None, other containers and
      other objects, such as element types, are passed unchanged.
    - An argument whose annotation is ``Annotated[..., Request(...)]``, or a union with it, must meet the request.
      Lengths denoted by the same letter must be equal in all arguments.
    - The first parameter is passed unchanged if its name is ``self`` or ``cls``.
    - Copies that were made for the function are read-only if the library has read-only arrays, unless `copy` is True.
      The parameter `out`, and parameters whose request has ``writable=True``, are views or an error.
    - Arrays in the result, including those in tuples, lists and dicts, are converted to the library and the device that
      `placement` returns for the arguments. Other objects, such as numbers and dataclasses, are returned unchanged.
    - A result that is a converted argument is returned as the caller's object, unless the function has changed the
      elements of a copy, the shape, or the columns.
    - For callers of pandas and xarray, arrays in the result become NumPy arrays, unless `labels` is True. Tables in
      the result become DataFrames.
    - Two arguments whose index, columns, dims or coords differ along a dimension are an error, unless both are of the
      library `to`, whose functions compare them.
      A converted array without labels has the default ones of pandas or xarray.
    - Sparse arguments and results remain sparse. They are SciPy's sparse arrays if `to` is "numpy", or if the caller's
      library does not have sparse arrays.
    - A 0-d array in the result becomes a NumPy scalar if the caller's library has only columns, such as pandas.
    - jax without ``jax_enable_x64`` gets results of 32 bits instead of 64. Numbers out of range raise OverflowError.

    Parameters
    ----------
    to : str, module or type
        The library that the function is written for, as in `convert`.
    copy : {None, True, False}, optional
        - None: share memory if possible, otherwise copy. Memory of another device is an error.
        - True: copy each array, also from another device. The function may write to the copies.
        - False: raise BufferError, with the name of the argument, instead of copying.
    device : Device, str, tuple or object, optional
        Device of the arrays that the function receives, such as "cpu". Arrays are moved there, and results are moved
        back.
    labels : bool, default: False
        Whether results get index, name, columns, dims and coords of the argument that determines the library. True
        promises that element i of each result belongs to element i of this argument. Results of another shape do not
        get labels.
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
        - The annotation of ``*args``, ``**kwargs`` or a container, such as ``list[...]``, contains a request.
        - An annotation that contains a request cannot be evaluated.
    ValueError
        - `to` is not a known library, or `device` is not the name of a device.
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
    target = Target(library, to if isinstance(to, type) else None, None if device is None else Device(device))
    copy = check_copy(copy, "adapt")

    def decorate(function: F) -> F:
        adapter = _make_adapter(function, target, copy, labels, missing)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def adapted_coroutine(*args: Any, **kwargs: Any) -> Any:
                return await adapter.call_coroutine(args, kwargs)

            return typing.cast(F, adapted_coroutine)

        @wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            return adapter.call(args, kwargs)

        return typing.cast(F, adapted)

    return decorate


def _make_adapter(function: Any, target: Target, copy: Copy, labels: bool, missing: Any) -> Adapter:
    """Check a function, and return its adapter."""
    _check_function(function)
    name = getattr(function, "__name__", "function")
    parameters: Mapping[str, inspect.Parameter] = {}
    with suppress(ValueError):  # of a built-in function, whose parameters are unknown
        parameters = inspect.signature(function).parameters
    keys = [key for key, parameter in parameters.items() if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD]
    requests = _find_requests(function, name, parameters)
    if requests and missing is not None:
        raise ValueError(
            f"adapt: {name}: missing is {show(missing)}, but {next(iter(requests))} has a request;"
            f" accepted: None. Pass arrayhub.as_numpy(x, missing={show(missing)}) to the function"
        )
    return Adapter(function, name, target, copy, labels, missing, keys, requests)


def _check_function(function: Any) -> None:
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(
            f"adapt: {show(function)} is not a function; accepted: functions, methods and async functions. Write"
            " @staticmethod and @classmethod above @arrayhub.adapt"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"adapt: {show(function)} is a generator function; accepted: functions that return arrays. Convert"
            " the arrays inside it, for example yield arrayhub.like(row, x)"
        )


def _find_requests(function: Any, name: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Return the objects with ``asarray`` in ``Annotated`` annotations, by the name of the parameter."""
    found: dict[str, Any] = {}
    hints = _evaluate_hints(function, name, parameters)
    for key, parameter in parameters.items():
        for extra, is_unusable in _requests_in(hints.get(key)):
            takes_one = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if is_unusable or not takes_one or found.get(key, extra) is not extra:
                raise TypeError(
                    f"adapt: {name}: {parameter} has a request; accepted: one request for a parameter that takes one"
                    " value, such as Annotated[Any, Request('float64')]"
                )
            found[key] = extra
    return found


def _requests_in(hint: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the requests in an annotation, and whether each is a class, or for the items of a container."""
    if hasattr(type(hint), "asarray"):  # a request without Annotated
        yield hint, False
    for extra in getattr(hint, "__metadata__", ()):
        if callable(getattr(extra, "asarray", None)):
            yield extra, isinstance(extra, type)
    is_argument = typing.get_origin(hint) in (Annotated, typing.Union, UnionType)
    for part in typing.get_args(hint):
        yield from ((extra, is_unusable or not is_argument) for extra, is_unusable in _requests_in(part))


def _evaluate_hints(function: Any, name: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Return the annotations that can be evaluated.

    Raises
    ------
    TypeError
        An annotation that cannot be evaluated may contain a request.
    """
    found = {}
    while isinstance(function, partial):
        function = function.func
    names = getattr(inspect.unwrap(function), "__globals__", None)
    for key, parameter in parameters.items():
        hint = parameter.annotation
        try:
            found.update(get_type_hints(SimpleNamespace(__annotations__={key: hint}), names, include_extras=True))
        except (NameError, TypeError, AttributeError) as error:
            if "Request" in str(hint) or "Annotated" in str(hint):
                raise TypeError(
                    f"adapt: {name}: the annotation {show(hint)} of {key} cannot be evaluated ({first_line(error)});"
                    " accepted: names defined in the function's module"
                ) from error
    return found
