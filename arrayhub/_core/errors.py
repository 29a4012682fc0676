"""Error messages: which protocol, which key, which value, and what is accepted."""

import reprlib
import types
from typing import Any

import numpy as np

# How to interpret an exception raised by a producer: only AttributeError means that an attribute does not exist. Code
# that treats other exceptions as the producer's answer re-raises these two, which concern the process. It also lets
# everything pass that is not an Exception: KeyboardInterrupt, SystemExit, GeneratorExit.
PASSES_ON = (MemoryError, RecursionError)

# Error text of every exporter but DLPack's for elements that share bytes. No conversion of this package unpacks them.
PACKED_ELEMENTS = (
    "elements smaller than a byte are packed, which only DLPack can represent. Convert them in the library that they"
    " come from: jax's by numpy.asarray(x) or x.astype('float32')"
)

# Advice for an array of which elements are missing.
MISSING_VALUES = "pass missing='mask', missing='nan' or missing=value to arrayhub.as_numpy or as_torch"


class InterfaceError(ValueError):
    """A producer described its memory in a way that its protocol does not allow.

    The message names the protocol, the key, the offending value and what would have been accepted.
    """


_CONTAINERS = (tuple, list, dict, set, frozenset)
# Types whose ``repr`` calls no other object's and is fast. Subclasses are not included.
_PLAIN: tuple[type, ...] = (
    *(bool, int, float, complex, str, range, object, type, memoryview),
    *(type(None), type(...), type(NotImplemented)),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
# How an instance of a subclass is shown: as the base type, converted without calling the subclass.
_BASES: dict[type, Any] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    list: lambda value: list.__getitem__(value, slice(None)),
}


_recorded_module = type.__dict__["__module__"].__get__


def module_of(cls: type) -> str:
    """Return the name of the module of a type from the interpreter's own slot, which a metaclass cannot redefine.

    Returns "" if the type does not have one: it was created in a namespace without ``__name__``, or it was deleted.
    """
    try:
        module = _recorded_module(cls)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def root_of(cls: type) -> str:
    """Return the library that defines a type: the first part of its module's name."""
    return module_of(cls).partition(".")[0]


def name_of_type(cls: type) -> str:
    """Return the name of a type with its library, as in ``pandas.Series``; for a built-in type, the name alone."""
    root, name = root_of(cls), type.__dict__["__qualname__"].__get__(cls).rpartition(".")[2]
    return name if root in ("", "builtins", "__main__") else f"{root}.{name}"


class _Words(reprlib.Repr):
    """Represent values that are known to be harmless, at any depth, and the type and module of all others."""

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
    """Return whether `x` is a dtype, or an array or scalar of NumPy's own types that does not hold Python objects."""
    if isinstance(x, np.dtype):
        return True
    return (type(x) is np.ndarray or type(x) in np.sctypeDict.values()) and not x.dtype.hasobject


_WORDS = _Words()


def show(value: object) -> str:
    """Return a short representation of `value` on one line, whatever its ``__repr__`` does.

    An error in the representation of a value must not hide the error to report, so only types that are known to be
    harmless are represented. The ``repr`` of some extension types ends the process, and that of some arrays copies
    them from their device.
    """
    try:
        return " ".join(_WORDS.repr(value).splitlines())  # tables and arrays have several lines
    except Exception:
        return f"<{type(value).__name__} object>"


def first_line(error: object) -> str:
    """Return the first line of an error's text, to be quoted in another message; "" if the text is empty."""
    return (str(error).splitlines() or [""])[0]


def interface_error(protocol: str, key: str, value: object, accepted: str) -> InterfaceError:
    """Build an error about a producer, in the form that all of these errors share.

    Parameters
    ----------
    protocol : str
        The protocol's attribute or its usual name, such as ``__cuda_array_interface__``.
    key : str
        The key or field that is wrong.
    value : object
        The value that the producer gave.
    accepted : str
        The values that are accepted and, if there is one, the call to make instead.

    Returns
    -------
    InterfaceError
        The caller raises it.
    """
    return InterfaceError(f"{protocol}: {key} is {show(value)}; accepted: {accepted}")


def unreadable(subject: str, device: object, reader: str = "the host", call: str = "call arrayhub.to_host(x)") -> str:
    """Return the error text about memory that cannot be read where it is.

    Parameters
    ----------
    subject : str
        The library, protocol or function that needs to read the memory.
    device : Device or str
        The device that holds the memory.
    reader : str, optional
        The library that cannot read it, if not the host.
    call : str, optional
        The call to make instead.
    """
    return f"{subject}: the memory is on {device}, which {reader} cannot read; {call}"


# Installation command of each library by name, for the errors of all layers. The table of libraries fills it.
INSTALL: dict[str, str] = {}


def missing_library_error(library: str, purpose: str, error: ImportError | None = None) -> ImportError:
    """Build the error about a library that cannot be imported.

    Parameters
    ----------
    library : str
        Name of the library in the table of libraries.
    purpose : str
        Why the library is needed, such as "for its arrays".
    error : ImportError, optional
        Exception of the import. The message quotes it if the library is installed but broken, or lacks a dependency.

    Returns
    -------
    ImportError
        The caller raises it.
    """
    absent = error is None or (isinstance(error, ModuleNotFoundError) and error.name == library)
    why = "" if absent else f", and cannot be imported ({error})"
    return ImportError(f"{library} is needed {purpose}{why}: {INSTALL[library]}")


def needed(module: str, purpose: str) -> Any:
    """Import a module of an optional library and return the library.

    Parameters
    ----------
    module : str
        Name of the library in the table of libraries, or of one of its modules, such as ``dpctl.memory``.
    purpose : str
        Why the library is needed, such as "for its arrays".

    Raises
    ------
    ImportError
        The import failed. The message says how to install the library.
    """
    try:
        return __import__(module)
    except ImportError as error:
        raise missing_library_error(module.partition(".")[0], purpose, error) from error
