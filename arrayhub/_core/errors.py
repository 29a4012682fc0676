"""Errors for people: which protocol, which key, what value, what would be accepted."""

import reprlib
import types
from typing import Any

import numpy as np

# One rule says what an exception out of somebody else's code means. Only an AttributeError says that there is no such
# attribute. Whoever reads other exceptions as an answer of the object lets these pass, which speak of the process, and
# lets pass what is no Exception at all: KeyboardInterrupt, SystemExit, GeneratorExit.
PASSES_ON = (MemoryError, RecursionError)

# What every way out but DLPack's says of elements that share bytes. No conversion here reads such elements.
PACKED_ELEMENTS = (
    "elements of less than a byte are packed; only DLPack can say that. Convert them in the library that they come"
    " from: jax's by numpy.asarray(x) or x.astype('float32')"
)


class InterfaceError(ValueError):
    """A producer described its memory in a way that its protocol does not allow.

    The message names the protocol, the key, the offending value and what would have been accepted.
    """


_CONTAINERS = (tuple, list, dict, set, frozenset)
# Types whose own representation calls nobody else's and takes no time. Subclasses are other types.
_PLAIN: tuple[type, ...] = (
    *(bool, int, float, complex, str, range, object, type, memoryview),
    *(type(None), type(...), type(NotImplemented)),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
# What a subclass is shown as, and what makes the one of the other without asking the subclass.
_BASES: dict[type, Any] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    list: lambda value: list.__getitem__(value, slice(None)),
}


_recorded_module = type.__dict__["__module__"].__get__


def module_of(cls: type) -> str:
    """The name of a type's module by the interpreter's own record, which no metaclass can redefine.

    It is "" where there is none: a type may be made in a namespace without a name, or have lost it.
    """
    try:
        module = _recorded_module(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def root_of(cls: type) -> str:
    """The library that defines a type, by the first part of its module's name."""
    return module_of(cls).partition(".")[0]


def name_of_type(cls: type) -> str:
    """Return the name of a type with its library, as in ``pandas.Series``; a built-in type's alone."""
    root, name = root_of(cls), type.__dict__["__qualname__"].__get__(cls).rpartition(".")[2]
    return name if root in ("", "builtins", "__main__") else f"{root}.{name}"


class _Words(reprlib.Repr):
    """Represents what is known to be harmless, at any depth, and names the type and the module of all else."""

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        if kind in (bytes, bytearray):
            return super().repr1(x[: self.maxother], level)
        if kind is slice:
            return f"slice({self.repr1(x.start, level)}, {self.repr1(x.stop, level)}, {self.repr1(x.step, level)})"
        if kind in _CONTAINERS or kind in _PLAIN or _is_own(kind) or _is_numpy(x):
            return super().repr1(x, level)
        for base, plain in _BASES.items():
            if issubclass(kind, base):
                return super().repr1(plain(x), level)
        return f"<{module_of(kind) or '?'}.{kind.__qualname__} object>"


def _is_own(kind: type) -> bool:
    return root_of(kind) == __name__.partition(".")[0]


def _is_numpy(x: object) -> bool:
    """Say whether `x` is a dtype, or an array or a scalar of NumPy's own type that holds no Python objects."""
    if isinstance(x, np.dtype):
        return True
    return (type(x) is np.ndarray or type(x) in np.sctypeDict.values()) and not x.dtype.hasobject


_WORDS = _Words()


def show(value: object) -> str:
    """Return a short representation of `value` on one line, whatever its ``__repr__`` does.

    A hostile producer must not turn the report of its own fault into another one, so only what is known to be harmless
    is asked for its representation. There are extension types whose own ends the process, and arrays whose own copies
    them from their device.
    """
    try:
        return " ".join(_WORDS.repr(value).splitlines())  # those of tables and arrays have many lines
    except Exception:
        return f"<{type(value).__name__} object>"


def first_line(error: object) -> str:
    """Return the first line of what an error says, for a message of ours that tells it; "" where it says nothing."""
    return (str(error).splitlines() or [""])[0]


def interface_error(protocol: str, key: str, value: object, accepted: str) -> InterfaceError:
    """Build the one form that every error about a producer has.

    Parameters
    ----------
    protocol : str
        The protocol's attribute or its usual name, such as ``__cuda_array_interface__``.
    key : str
        The key or field that is wrong.
    value : object
        What the producer gave.
    accepted : str
        What would have been accepted, and where there is one, the call to make instead.

    Returns
    -------
    InterfaceError
        To be raised by the caller.
    """
    return InterfaceError(f"{protocol}: {key} is {show(value)}; accepted: {accepted}")


# What installs each library, by its name: for errors of all layers. The table of libraries fills it in.
INSTALL: dict[str, str] = {}


def not_there_error(library: str, purpose: str, error: ImportError | None = None) -> ImportError:
    """Build the error about a library that cannot be imported.

    Parameters
    ----------
    library : str
        Its name in the table of libraries.
    purpose : str
        What it is needed for, as in "for its arrays".
    error : ImportError, optional
        What importing it raised, which is told where the library is there and broken, or lacks a module that it needs.

    Returns
    -------
    ImportError
        To be raised by the caller.
    """
    absent = error is None or (isinstance(error, ModuleNotFoundError) and error.name == library)
    why = "" if absent else f", and cannot be imported ({error})"
    return ImportError(f"{library} is needed {purpose}{why}: {INSTALL[library]}")


def needed(module: str, purpose: str) -> Any:
    """Import a module of a library that may not be there, and return the library.

    Parameters
    ----------
    module : str
        The library's name in the table of libraries, or that of a module in it such as ``dpctl.memory``.
    purpose : str
        What it is needed for, as in "for its arrays".

    Raises
    ------
    ImportError
        It cannot be imported; the message says what installs it.
    """
    try:
        return __import__(module)
    except ImportError as error:
        raise not_there_error(module.partition(".")[0], purpose, error) from error
