"""adapt: a decorator that lets a function written for one library accept and return the arrays of any library."""

import inspect
import typing
from collections.abc import Callable, Mapping
from copy import copy as shallow_copy
from functools import wraps
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from arrayhub._core.copying import Copy, check_copy
from arrayhub._core.descriptor import CPU, Device
from arrayhub._core.errors import PASSES_ON, Refusal, first_line, name_of_type, reason_of, show
from arrayhub._core.hooks import hooks
from arrayhub.adapters.type_cache import types_generation
from arrayhub.convert.containers import maker_of, with_index_columns, with_types_of, without_index
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.convert.labels import check_labels, get_names, label_kind, rename, shape_of
from arrayhub.convert.names import OWN, library_name
from arrayhub.convert.names import name_of_type as library_of_type
from arrayhub.convert.placement import DeviceConflict, find_deciding
from arrayhub.convert.target import (
    ArrayType,
    PlaceError,
    Target,
    array_of,
    array_type,
    device_of,
    target_like,
    type_row,
)
from arrayhub.libraries.known import NESTING
from arrayhub.libraries.numpy import VALUES

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
    - If an annotation is ``Annotated[..., Request(...)]``, only the arguments with such an annotation are converted.
      They must meet the request. Lengths denoted by the same letter must be equal in all arguments.
    - Copies that were made for the function are read-only if the library has read-only arrays, unless `copy` is True.
      The parameter `out`, and parameters whose request has ``writable=True``, are views or an error.
    - Arrays in the result, including those in tuples, lists and dicts, are converted to the library and the device that
      `placement` returns for the arguments. A result that is a converted argument is returned as the caller's object.
      Other objects, such as numbers and dataclasses, are returned unchanged.
    - Callers of pandas and xarray get NumPy arrays, and DataFrames of tables, unless `labels` is True.
    - Two arguments whose index, columns, dims or coords differ along a dimension are an error.
    - Sparse arguments and results remain sparse. They are SciPy's sparse arrays if `to` is "numpy", or if the caller's
      library does not have sparse arrays.
    - A 0-d array in the result becomes a NumPy scalar if the caller's library has only columns, such as pandas.
    - jax without ``jax_enable_x64`` gets results of 32 bits instead of 64. Integers out of range raise OverflowError.

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
        - The annotation of ``*args`` or ``**kwargs`` contains a request.
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
        adapter = _Adapter(function, target, copy, labels, missing)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def adapted_coroutine(*args: Any, **kwargs: Any) -> Any:
                call, args_, kwargs_ = adapter.convert_arguments(args, kwargs)
                return call.convert_result(await function(*args_, **kwargs_))

            return typing.cast(F, adapted_coroutine)

        @wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            call, args_, kwargs_ = adapter.convert_arguments(args, kwargs)
            return call.convert_result(function(*args_, **kwargs_))

        return typing.cast(F, adapted)

    return decorate


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONTAINERS = (list, tuple, dict)

# Types of the errors that conversions raise. `adapt` raises errors of the same types.
_REFUSALS = (OverflowError, TypeError, ValueError, BufferError)

# Types of arguments that are neither arrays nor containers of arrays.
_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))

# Libraries whose copies are made read-only.
_WITH_READONLY = ("numpy", "numba", OWN, "xarray")

# Libraries with sparse arrays in the same kind of memory. For NumPy and numba, the sparse arrays are SciPy's.
_WITH_SPARSE = ("numpy", "numba", "torch", "jax", "cupy", OWN)
_BUILT = ArrayType("numpy", None, None, False, False, True)  # arrays of lists


class _Adapter:
    """A function, the target of its arguments, and the options of `adapt`."""

    def __init__(self, function: Any, target: Target, copy: Copy, labels: bool, missing: Any) -> None:
        _check_function(function)
        self.name = getattr(function, "__name__", "function")
        self.target, self.copy, self.labels, self.missing = target, copy, labels, missing
        parameters = inspect.signature(function).parameters
        self.keys = [key for key, parameter in parameters.items() if parameter.kind in _POSITIONAL]
        self.requests = {found.key: found for found in _find_requests(function, self.name, parameters)}
        if self.requests and missing is not None:
            raise ValueError(
                f"adapt: {self.name}: missing is {show(missing)}, but {next(iter(self.requests))} has a request;"
                f" accepted: None. Pass arrayhub.as_numpy(x, missing={show(missing)}) to the function"
            )

    def convert_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple["_Call", list[Any], dict[str, Any]]:
        """Convert the arrays in the arguments. Return the call, the positional and the keyword arguments."""
        call, values = _Call(self), [*args, *kwargs.values()]
        keys = self.keys[: len(args)]
        if len(keys) < len(args):
            keys += map("argument {}".format, range(len(keys) + 1, len(args) + 1))
        keys += kwargs
        if self.requests:
            self._convert_requested(call, keys, values)
            return call, values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True))
        generation, places, containers = types_generation(), [], []
        for k, value in enumerate(values):
            cls = type(value)
            if cls in _PLAIN:
                continue
            found = type_row(cls, generation)
            if found is None or found.refused:
                found = array_type(value)
            if found is not None:
                places.append(k)
                call.arrays.append((keys[k], value, found))
            elif issubclass(cls, _CONTAINERS):
                containers.append(k)
        items = self._find_items(call, keys, values, places, containers) if containers else {}
        own = self.target.library
        for _, _, found in call.arrays:
            if found.owner != own or own == OWN:
                if len(call.arrays) > 1:
                    call.check(len(places))
                else:
                    call.target = target_like(*call.arrays[0][1:])
                break
        for k, (key, value, found) in zip(places, call.arrays, strict=False):
            writes = key == "out"
            if (found.owner != own and found.sparse != "scipy") or not self.is_own(value, found, writes):
                values[k] = self.convert_argument(call, key, value, found, writes)
        for k, inside in items.items():
            if inside:
                values[k] = self._convert_items(call, keys[k], values[k], inside)
        return call, values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True)) if kwargs else kwargs

    def _find_items(
        self, call: "_Call", keys: list[str], values: list[Any], places: list[int], containers: list[int]
    ) -> dict[int, Any]:
        """Return the arrays in containers. If there are no arrays, add lists of numbers to the arguments to convert."""
        items = {k: _find_arrays(values[k]) for k in containers}
        for k, inside in items.items():
            call.arrays += [(f"{keys[k]}[{index!r}]", item, found) for index, item, found in inside]
        has_arrays = bool(call.arrays)
        for k in containers:
            if issubclass(type(values[k]), list) and (keys[k] == "out" or not has_arrays) and _are_numbers(values[k]):
                places.append(k)
                call.arrays.insert(len(places) - 1, (keys[k], values[k], _BUILT))
        return items

    def _convert_items(self, call: "_Call", key: str, container: Any, items: list[Any]) -> Any:
        made = {
            index: item
            if self.is_own(item, found, key == "out")
            else self.convert_argument(call, f"{key}[{index!r}]", item, found, key == "out")
            for index, item, found in items
        }
        if all(made[index] is item for index, item, _ in items):
            return container
        converted = _replace_items(container, made)
        call.pairs.append((converted, container))
        return converted

    def _convert_requested(self, call: "_Call", keys: list[str], values: list[Any]) -> None:
        """Convert the arguments whose annotation contains a request, except None."""
        met = []
        for k, key in enumerate(keys):
            wish = self.requests.get(key)
            if wish is None or values[k] is None:
                continue
            value = values[k]
            found = array_type(value) or _BUILT
            call.arrays.append((key, value, found))
            given = value.detach() if getattr(value, "requires_grad", False) is True else value
            array = wish.request.asarray(given, name=f"{self.name}: {key}")
            met.append((wish, array))
            source = array_of(given) if self.is_own(value, found, wish.writable) else None
            own = source is not None and source.ptr == array.ptr and source.dtype == array.dtype
            values[k] = value if own else self.convert_argument(call, key, array, found, wish.writable, value)
        call.check(len(call.arrays))
        _check_lengths(self.name, met)

    def is_own(self, value: Any, found: ArrayType, writes: bool) -> bool:
        """Return whether the function receives an array unchanged."""
        target = self.target
        if found.owner != target.library and not (found.sparse == "scipy" and target.library in ("numpy", "numba")):
            return False
        if not writes and (self.copy is True or self.missing is not None):
            return False
        if target.cls is not None and found.sparse is None and not issubclass(type(value), target.cls):
            return False
        return target.device is None or device_of(value) == target.device

    def convert_argument(
        self, call: "_Call", key: str, value: Any, found: ArrayType, writes: bool, given: Any = None
    ) -> Any:
        """Return an argument as an array of the function's library. `given` is the caller's object if it differs."""
        given = value if given is None else given
        target = self.target
        try:
            if writes:
                made = self._view(value, given)
            else:
                value = without_index(value) if target.library == "arrow" else value
                options = {"missing": self.missing, "move": target.device is not None, "advice": _MOVE}
                made = target.convert(value, target.library, self.copy, **options)
                if self.copy is not True and target.library in _WITH_READONLY and not found.sparse:
                    _protect(made, given)
        except _REFUSALS as error:
            raise self.error_at(error, key, self._hint(error, value, found, writes)) from error
        shares = (writes or (self.copy is not True and self.missing is None)) and found is not _BUILT
        if shares and (
            value is given or target.library == "arrow" or getattr(array_of(given), "dtype", None) == value.dtype
        ):
            call.pairs.append((made, given))
        return made

    def _view(self, value: Any, given: Any) -> Any:
        """Return a writable view of an argument that the function writes to."""
        if issubclass(type(given), VALUES):
            raise TypeError(f"{name_of_type(type(given))} does not have memory to write to; accepted: a writable array")
        made = self.target.convert(value, self.target.library, False, advice="an array on {}, which can be written")
        array = array_of(made)
        if array is None or not _is_view(array, given):
            raise BufferError(f"{name_of_type(type(given))} would be copied, so writes would be lost")
        if not array.flags.writeable:
            raise ValueError(
                f"{name_of_type(type(given))} is read-only as an array of {self.target.library}; accepted: writable"
                f" memory, because {self.name} writes to this argument"
            )
        return made

    def error_at(self, error: Exception, key: str, hint: str) -> Exception:
        """Return an error of the same kind whose subject begins with the names of the function and the argument.

        With a hint about an argument of `adapt`, the error does not name another call.
        """
        subject = f"{self.name}: {key}"
        if not isinstance(error, Refusal):
            kind = next(kind for kind in _REFUSALS if isinstance(error, kind))
            return kind(f"{subject}: {error}{hint}")
        subject = f"{subject}: {error.subject}" if error.subject else subject
        if hint:
            return type(error)(subject, f"{reason_of(error)}{hint}")
        made = type(error)(subject, error.reason, error.accepted, error.call)
        made.hint = error.hint
        return made

    def _hint(self, error: Exception, value: Any, found: ArrayType, writes: bool) -> str:
        """Return the advice to pass an argument to `adapt`, or "" if no argument helps."""
        if writes or found.refused:
            return ""
        if self.helps_copy(error, value, self.target.library):
            return _ALLOW_COPIES
        if self.missing is None and self.target.library not in NESTING and _lacks_values(value):
            return ". Pass missing='nan' or missing=value to arrayhub.adapt, which replaces missing values"
        return ""

    def helps_copy(self, error: Exception, obj: Any, library: str) -> bool:
        """Return whether an error is only due to ``copy=False``."""
        if self.copy is not False or not isinstance(error, BufferError) or isinstance(error, PlaceError):
            return False
        return bool(hooks.advice.advise(obj, library).verdict != "cannot")


class _Call:
    """The arrays of one call, and the target of its results."""

    __slots__ = ("_source", "adapter", "arrays", "pairs", "target")

    def __init__(self, adapter: _Adapter) -> None:
        self.adapter = adapter
        self.arrays: list[tuple[str, Any, ArrayType]] = []  # names, arrays and their types
        self.pairs: list[tuple[Any, Any]] = []  # converted arguments, and the caller's objects
        self.target: Target | None = None

    def check(self, top: int) -> None:
        """Check the labels and the devices of the arguments. The first `top` arrays are arguments."""
        adapter, own = self.adapter, self.adapter.target.library
        if top > 1:
            labelled = [(key, value) for key, value, found in self.arrays[:top] if found.owner != own]
            check_labels(adapter.name, labelled, own not in NESTING)
        self.target = self._find_target(adapter.target.device is None)

    def _find_target(self, one_device: bool) -> Target | None:
        values = [value for _, value, _ in self.arrays]
        targets = [target_like(value, found) for _, value, found in self.arrays]
        try:
            return find_deciding(values, targets, one_device)[0]
        except DeviceConflict as error:
            (first, device), (second, other) = error.args
            raise ValueError(
                f"{self.adapter.name}: {self.arrays[first][0]} is on {device}, and {self.arrays[second][0]} on {other};"
                " accepted: one device. Move one of them with arrayhub.to_device"
            ) from None

    def convert_result(self, result: Any) -> Any:
        """Convert the arrays in a function's result to the caller's library and device. Return the result."""
        if not self.arrays or type(result) in _PLAIN:
            return result
        for made, given in self.pairs:
            if result is made:
                return given
        if issubclass(type(result), _CONTAINERS) and array_type(result) is None:
            return self._convert_items(result)
        found = type_row(type(result), types_generation()) or array_type(result)
        if found is None or found.refused:
            return result
        function = self.adapter.target
        moves = function.device is not None
        if self.target is None:
            if found.owner == function.library and not moves:  # all arguments were passed unchanged, too
                return result
            self.target = self._find_target(False)
        target: Any = self.target
        if target.library == "numpy" and issubclass(type(result), np.ndarray):
            return result
        if found.owner == target.library and _is_owned(target) and (not moves or device_of(result) == target.device):
            return result  # with the labels that the function has set
        options = {"move": moves, "advice": _MOVE.format("cpu")}
        try:
            without_maker = target.model is not None and maker_of(type(target.model)) is None
            if without_maker and not found.sparse and target.library not in NESTING:
                return target.convert(result, target.library, self.adapter.copy, labels=self.adapter.labels, **options)
            return self._convert_array(result, target, found, options)
        except _REFUSALS as error:
            name = self.adapter.name
            hint = f". In this message, x is the value that {name} returns. Convert this value inside {name}"
            hint = _ALLOW_COPIES if self.adapter.helps_copy(error, result, target.library) else hint
            raise self.adapter.error_at(error, "the result", "" if isinstance(error, PlaceError) else hint) from error

    def _convert_items(self, result: Any) -> Any:
        items = list(result.items()) if issubclass(type(result), dict) else list(enumerate(result))
        changed = {}
        for index, item in items:
            made = self.convert_result(item)
            if made is not item:
                changed[index] = made
        return _replace_items(result, changed) if changed else result

    def _convert_array(self, result: Any, target: Target, found: ArrayType, options: dict[str, Any]) -> Any:
        """Convert an array to the library of a target.

        - Names of columns in the result take precedence over names in the array that determines the target.
        - If the library lacks 0-d arrays, a 0-d result becomes a NumPy scalar.
        - If the library lacks sparse arrays, a sparse result becomes a SciPy array.
        """
        copy, labels, model = self.adapter.copy, self.adapter.labels, target.model
        if found.sparse:
            kind = target if target.library in _WITH_SPARSE else _NUMPY
            return kind.convert(result, kind.library, copy, **options)
        if target.library in NESTING and getattr(result, "ndim", None) == 0:
            return as_numpy(result)[()]
        names = get_names(result)
        has_columns = isinstance(names, list)
        if target.library in ("pandas", "xarray"):
            same = labels and shape_of(result) == shape_of(model)
            named = target.library == "pandas" and (
                has_columns
                or (labels and names is not None)
                or (found.library in NESTING and not hooks.nested.has_numbers(hooks.nested.asnested(result)))
            )
            if not same and not named:
                inner = library_of_type(type(model.data)) if label_kind(type(model)) in ("coords", "dims") else None
                target = Target(inner or "numpy", None, target.device)
                return target.convert(result, target.library, copy, **options)
        elif target.library in ("arrow", "polars", "awkward"):
            result = with_index_columns(result)
            names = get_names(result)
        made = target.convert(result, target.library, copy, labels=labels, **options)
        if target.library == "pandas":
            made = with_types_of(made, model)
            if labels and len(made) == len(model) and hasattr(model, "index"):
                made.index = model.index
        return made if names is None else rename(made, names, model)


_NUMPY = Target("numpy", None, CPU)
_ALLOW_COPIES = ". Pass copy=None to arrayhub.adapt to allow copies"
_MOVE = "device='{}' to arrayhub.adapt, which moves arrays and results"


def _is_owned(target: Target) -> bool:
    """Return whether the arrays of a target's model are arrays of the target's library itself."""
    found = None if target.model is None else array_type(target.model)
    return found is not None and found.owner == target.library


def _is_view(array: Any, given: Any) -> bool:
    """Return whether an array has the memory of the object that it was converted from."""
    source = array_of(given)
    return source is not None and (not source.size or source.ptr == asarray(array).ptr)


def _protect(made: Any, given: Any) -> None:
    """Make a copy of an argument read-only, so that no write to it is lost."""
    memory = made.data if hasattr(made, "dims") and hasattr(made, "data") and not hasattr(made, "flags") else made
    flags = getattr(memory, "flags", None)
    if made is given or flags is None or not flags.writeable:
        return
    source = array_of(given)
    if source is None or (source.size and source.ptr != asarray(memory).ptr):
        flags.writeable = False


def _lacks_values(obj: Any) -> Any:
    """Return whether numbers are missing in an object."""
    try:
        x = hooks.nested.asnested(obj)
        return hooks.nested.has_numbers(x) and hooks.nested.has_missing(x)
    except PASSES_ON:
        raise
    except Exception:
        return False


# ---------------------------------------------------------------------------------------------------------- containers


def _find_arrays(container: Any) -> list[tuple[Any, Any, ArrayType]]:
    """Return (index or key, array, type of the array) for the arrays in a list, tuple or dict."""
    items = container.items() if issubclass(type(container), dict) else enumerate(container)
    found = [(index, item, array_type(item)) for index, item in items if type(item) not in _PLAIN]
    return [(index, item, kind) for index, item, kind in found if kind is not None]


def _are_numbers(values: Any) -> bool:
    """Return whether all elements of a sequence, and of sequences in it, are numbers or None. One number must exist."""
    kinds = set(map(type, values))
    if not kinds:
        return True
    if any(issubclass(kind, (list, tuple)) for kind in kinds):
        lists = [value for value in values if value is not None]
        return all(issubclass(type(value), (list, tuple)) and _are_numbers(value) for value in lists)
    return kinds != {type(None)} and all(issubclass(kind, _NUMBERS) for kind in kinds)


_NUMBERS = (bool, int, float, complex, np.number, np.bool_, type(None))


def _replace_items(container: Any, made: Mapping[Any, Any]) -> Any:
    """Return a copy of a container with the items in `made`, or a dict if a mapping cannot be copied or changed."""
    cls: Any = type(container)
    if issubclass(cls, tuple):
        parts = [made.get(index, item) for index, item in enumerate(container)]
        return cls(parts) if hasattr(cls, "n_sequence_fields") else tuple.__new__(cls, parts)  # torch.return_types.sort
    try:
        copied = shallow_copy(container)
        for index, item in made.items():
            copied[index] = item
    except PASSES_ON:
        raise
    except Exception:
        return {**container, **made} if issubclass(cls, dict) else [made.get(k, v) for k, v in enumerate(container)]
    return copied


# ------------------------------------------------------------------------------------------------------------ requests


class _Requested(NamedTuple):
    """A parameter with a request in its annotation."""

    key: str
    request: Any
    writable: bool


def _check_function(function: Any) -> None:
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(
            f"adapt: {show(function)} is not a function; accepted: functions, methods and async functions. Write"
            " @staticmethod and @classmethod above @arrayhub.adapt"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"adapt: {function.__qualname__} is a generator function; accepted: functions that return arrays. Convert"
            " the arrays inside it, for example yield arrayhub.like(row, x)"
        )


def _find_requests(function: Any, name: str, parameters: Mapping[str, inspect.Parameter]) -> list[_Requested]:
    """Return the parameters whose ``Annotated`` annotation contains an object with ``asarray``."""
    found = []
    hints = _evaluate_hints(function, name)
    for key, parameter in parameters.items():
        for extra in getattr(hints.get(key), "__metadata__", ()):
            if isinstance(extra, type) or not callable(getattr(extra, "asarray", None)):
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"adapt: {name}: {parameter} has a request; accepted: requests for parameters that take one value"
                )
            found.append(_Requested(key, extra, bool(getattr(extra, "writable", False))))
    return found


def _evaluate_hints(function: Any, name: str) -> dict[str, Any]:
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


def _check_lengths(name: str, arrays: list[tuple[_Requested, Any]]) -> None:
    """Raise ValueError if a letter denotes different lengths in two arrays."""
    lengths: dict[str, tuple[int, str]] = {}
    for parameter, array in arrays if len(arrays) > 1 else ():
        if not hasattr(parameter.request, "lengths"):
            continue
        for letter, length in parameter.request.lengths(array).items():
            other, first = lengths.setdefault(letter, (length, parameter.key))
            if other != length:
                raise ValueError(
                    f"{name}: {letter} is {other} in {first}, and {length} in {parameter.key}; accepted: equal lengths"
                )
