"""Error messages. They name the protocol or argument, the key, the value, and the accepted values."""

import re
import reprlib
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

# Code that catches exceptions of a producer re-raises these two, because they concern the whole process.
# KeyboardInterrupt, SystemExit and GeneratorExit are not subclasses of Exception, so they propagate anyway.
PASSES_ON = (MemoryError, RecursionError)

# Error text for arrays of packed elements, which arrayhub exports only through DLPack, and does not unpack.
PACKED_ELEMENTS = (
    "elements smaller than a byte are packed, and only DLPack can represent packed elements. Convert them in their own"
    " library. For jax, call numpy.asarray(x) or x.astype('float32')"
)

# The call that exports elements of a type that only DLPack has, for messages.
DLPACK_CALL = "DLPack (USMArray.__dlpack__, asarray(x, via='dlpack'))"

# Reason why an export of booleans to Arrow, polars or pandas copies.
PACKED_BOOLEANS = "booleans have one byte each, which Arrow represents as bits"

# The reason why cupy cannot create arrays on a machine without a CUDA device.
NO_CUDA_DEVICE = "arrays of cupy need a CUDA device, which this machine lacks"

# Accepted shapes, where the strides of C order must fit 64 bits.
TOO_LARGE = "a shape whose elements occupy fewer than 2**63 bytes, where lengths of 0 count as 1"


class _Fields:
    """Fields of an error, from which its text is made: ``<subject>: <reason>; accepted: <accepted>. Call <call>``.

    Empty fields are left out. With a single argument, the argument is the reason.
    """

    subject: str
    reason: str
    accepted: str
    call: str

    def __init__(self, subject: str = "", reason: str = "", accepted: str = "", call: str = "") -> None:
        super().__init__(subject, reason, accepted, call)  # type: ignore[call-arg]  # of the exception class
        if not reason:
            subject, reason = "", subject
        self.subject, self.reason, self.accepted, self.call = subject, reason, accepted, call

    def __str__(self) -> str:
        text = f"{self.subject}: {self.reason}" if self.subject else self.reason
        text += f"; accepted: {self.accepted}" if self.accepted else ""
        return f"{text}. Call {self.call}" if self.call and self.call not in text else text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.subject, self.reason, self.accepted, self.call)


class Refusal(_Fields, BufferError):
    """Exception for a conversion that is not possible as requested.

    The TypeErrors, ValueErrors and OverflowErrors with the same cause are instances of this class, too.

    Attributes
    ----------
    subject : str
        The argument, the protocol, or the library that the error is about.
    reason : str
        Why the conversion is not possible.
    accepted : str
        What is accepted instead, or "".
    call : str
        A Python expression that works, with the names ``arrayhub`` and ``x`` (the object), or "". It is the same as
        ``arrayhub.explain(x, to=...).call``.

    Examples
    --------
    >>> import torch
    >>> try:
    ...     arrayhub.as_torch(numpy.arange(3)[::-1])
    ... except arrayhub.Refusal as error:
    ...     print(error.call)
    arrayhub.as_torch(x, copy=True)
    """

    __module__ = "arrayhub"


class TypeRefusal(Refusal, TypeError):
    """A `Refusal` because of the type of an object or of its elements."""


class ValueRefusal(Refusal, ValueError):
    """A `Refusal` because of the values of an object, such as rows of different lengths."""


class RangeRefusal(Refusal, OverflowError):
    """A `Refusal` because of a value that is out of the range of a type, or that the type would round."""


class PlaceError(Refusal):
    """A `Refusal` because of memory on another device than that of the target of a conversion."""


class InterfaceError(_Fields, ValueError):
    """Exception for a producer whose description of its memory violates the protocol.

    The message names the protocol, the key, the invalid value and the accepted values. The fields are those of
    `Refusal`.

    Examples
    --------
    >>> class Producer:
    ...     __array_interface__ = {"version": 3, "shape": (2,), "typestr": "<f8", "data": (-8, False)}
    >>> try:
    ...     arrayhub.asarray(Producer())
    ... except arrayhub.InterfaceError as error:
    ...     print(error)
    __array_interface__: data[0] is -8; accepted: an address from 0 to 2**63 - 1
    """


def reason_of(error: BaseException) -> str:
    """Return the reason of an error and what is accepted instead, without the subject and the call."""
    if not isinstance(error, _Fields):
        return str(error)
    return f"{error.reason}; accepted: {error.accepted}" if error.accepted else error.reason


_FORMS: dict[type[BaseException], type[Refusal]] = {
    BufferError: Refusal,
    TypeError: TypeRefusal,
    ValueError: ValueRefusal,
    OverflowError: RangeRefusal,
}


def locate_refusal(error: BaseException, path: str) -> Any:
    """Return the refusal of a part of an object. Its subject begins with the path to the part, such as ``x[0]``.

    The call of an element of a list converts only this element, so the text names it, and the field `call` is empty.
    """
    made: Any = form_of(error)
    if not isinstance(made, _Fields):  # an error of a class that a producer derives from TypeError
        return made
    # Not a comprehension over `path`: CPython 3.11 leaks `error` if the allocation of the closure's cell fails.
    fields = list(map(partial(X_NAME.sub, path), (made.subject, made.reason, made.accepted, made.call)))
    if path.startswith("x[") and fields[3]:
        k = 2 if fields[2] else 1  # accepted, or the reason
        fields[k] += "" if fields[3] in fields[k] else f". Call {fields[3]}"
        fields[3] = ""
    located: Any = type(made)(*fields)
    has_path = fields[0] != made.subject
    return located if has_path else name_argument(located, path)


def name_argument(error: Any, name: str) -> Any:
    """Return the same error with a name before its subject. An error of a producer's class is returned unchanged."""
    if isinstance(error, _Fields):
        subject = f"{name}: {error.subject}" if error.subject else name
        return type(error)(subject, error.reason, error.accepted, error.call)
    return type(error)(f"{name}: {error}").with_traceback(error.__traceback__) if type(error) in _FORMS else error


X_NAME = re.compile(r"(?<![\w.'\"])x(?=[.,)\[]|$)")  # the name `x` in an expression


def relabel(error: BaseException, subject: str) -> BaseException:
    """Return the same error about another subject, without its call."""
    made = form_of(error)
    if not isinstance(made, _Fields):
        return type(error)(f"{subject}: {reason_of(error)}")
    labelled: BaseException = type(made)(subject, made.reason, made.accepted)  # type: ignore[assignment]
    return labelled


def form_of(error: BaseException) -> Any:
    """Return an error with the fields of a `Refusal`: the error itself if it has them, else one with its text.

    A MemoryError and other errors that are not about the object are returned unchanged.
    """
    if isinstance(error, _Fields) or type(error) not in _FORMS:
        return error
    made = _FORMS[type(error)]("", str(error))
    made.__cause__ = error.__cause__  # also suppresses the context
    return made.with_traceback(error.__traceback__)


_CONTAINERS = (tuple, list, dict, set, frozenset)
# Types whose ``repr`` is fast and does not call the ``repr`` of other objects. Subclasses are not included.
_PLAIN: tuple[type, ...] = (
    *(bool, int, float, complex, str, range, object, type, memoryview),
    *(type(None), type(...), type(NotImplemented)),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
# Instances of subclasses are shown as the base type. These functions convert them without calling code of the subclass.
_BASES: dict[type, Any] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    list: lambda value: list.__getitem__(value, slice(None)),
}


_recorded_module = type.__dict__["__module__"].__get__


def module_of(cls: type) -> str:
    """Return the name of the module of a type, without calling methods of a metaclass.

    Return "" if the type was created in a namespace without ``__name__``, or if ``__module__`` was deleted or is not a
    string.
    """
    try:
        module = _recorded_module(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def root_of(cls: type) -> str:
    """Return the name of the top-level module that defines a type, or "" if `module_of` returns ""."""
    return module_of(cls).partition(".")[0]


def name_of_type(cls: type) -> str:
    """Return the name of a type with its library, as in ``pandas.Series``.

    For a type of ``builtins`` or ``__main__``, or without a module, return only the name.
    """
    root, name = root_of(cls), type.__dict__["__qualname__"].__get__(cls).rpartition(".")[2]
    return name if root in ("", "builtins", "__main__") else f"{root}.{name}"


class _Words(reprlib.Repr):
    """Represent values without calling ``__repr__`` of unknown types.

    Objects of built-in types and of arrayhub, and NumPy dtypes, scalars and arrays without Python objects, are shown by
    value. Instances of subclasses of str, int, float, tuple and list are shown as the base type. For other objects, the
    result contains only the module and the name of the type.
    """

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        if kind in (bytes, bytearray):
            return super().repr1(x[: self.maxother], level)
        if kind is slice:
            return f"slice({self.repr1(x.start, level)}, {self.repr1(x.stop, level)}, {self.repr1(x.step, level)})"
        is_own = root_of(kind) == __name__.partition(".")[0]
        if kind in _CONTAINERS or kind in _PLAIN or is_own or _is_numpy(x):
            return super().repr1(x, level)
        for base, plain in _BASES.items():
            if issubclass(kind, base):
                return super().repr1(plain(x), level)
        return f"<{module_of(kind) or '?'}.{kind.__qualname__} object>"


def _is_numpy(x: object) -> bool:
    """Return whether `x` is a dtype, or an array or scalar of a built-in NumPy type without Python objects."""
    if isinstance(x, np.dtype):
        return True
    return (type(x) is np.ndarray or type(x) in np.sctypeDict.values()) and not x.dtype.hasobject


_WORDS = _Words()


def show(value: object) -> str:
    """Return a short representation of `value` on one line. Do not call ``__repr__`` of unknown types.

    An exception raised by ``__repr__`` could mask the error that is being reported. The ``__repr__`` of some extension
    types crashes the process, and the ``__repr__`` of some arrays copies device memory.
    """
    try:
        return " ".join(_WORDS.repr(value).splitlines())  # the representation of an array has several lines
    except Exception:
        return f"<{type(value).__name__} object>"


def first_line(error: object) -> str:
    """Return the first line of an error's text, to quote it in another message, or "" if the text is empty."""
    return next(iter(f"{error}".splitlines()), "")


def dimensions(ndim: int) -> str:
    """Return "1 dimension", or "n dimensions" for other numbers."""
    return f"{ndim} dimension" if ndim == 1 else f"{ndim} dimensions"


def interface_error(protocol: str, key: str, value: object, accepted: str) -> InterfaceError:
    """Return an InterfaceError about the value of a key or field. `protocol` is an attribute, or a protocol's name."""
    return InterfaceError(protocol, f"{key} is {show(value)}", accepted)


def unreadable(subject: str, device: object, reader: str = "the host", call: str = "call arrayhub.to_host(x)") -> str:
    """Return the text about memory on a device that `reader`, a library or a device, cannot access.

    `subject` is the library, protocol or function that needs to read the memory.
    """
    return f"{subject}: the memory is on {device}, which {reader} cannot read; {call}"


# Installation commands for the errors of all layers, keyed by library name. The table of libraries adds the commands.
INSTALL: dict[str, str] = {}

# For a library that may not run on this machine, a function that returns the reason and another call, or "".
INSTEAD: dict[str, Callable[[], str]] = {}


def missing_library_error(library: str, purpose: str, error: ImportError | None = None) -> ImportError:
    """Return the error about a library that is needed for a purpose, such as "to create its arrays".

    The message quotes the exception of the import if the library is installed but broken, or lacks a dependency. It
    suggests ``pip install`` with the library's name unless `INSTALL` has another command, or `INSTEAD` another call.
    """
    absent = error is None or (isinstance(error, ModuleNotFoundError) and error.name == library)
    why = "" if absent else f", and cannot be imported ({error})"
    instead = INSTEAD[library]() if absent and library in INSTEAD else ""
    if instead:
        return ImportError(f"{library} is needed {purpose}, and is not installed; {instead}")
    return ImportError(f"{library} is needed {purpose}{why}: {INSTALL.get(library, f'pip install {library}')}")


def needed(module: str, purpose: str) -> Any:
    """Import a module of an optional library, such as ``dpctl.memory``, and return the library's top-level module.

    If the import fails, raise `missing_library_error`.
    """
    try:
        return __import__(module)
    except ImportError as error:
        raise missing_library_error(module.partition(".")[0], purpose, error) from error
