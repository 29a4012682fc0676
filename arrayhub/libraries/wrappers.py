"""Import of wrappers (types that hold or resemble an array), and advice for wrappers that are not imported.

A wrapper is imported if its array views the wrapper's memory and has the wrapper's shape and element type. These
conditions are checked for each object. Importing other wrappers would lose information (a mask, a unit, a time zone,
implicit values), or would lose writes because each access makes a copy. The error for such a wrapper names a call that
returns an array. Types are recognized by the names of their library and class, including base classes, without
importing the library.

The entries come from the rows of `table`, and from the rows that `plugins` registers.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from arrayhub._core.errors import (
    PASSES_ON,
    InterfaceError,
    Refusal,
    TypeRefusal,
    first_line,
    name_of_type,
    root_of,
    show,
)
from arrayhub._core.hooks import hooks
from arrayhub.libraries.table import TABLE

LOOKED_AT = 1000  # number of elements examined to find the common type of Python objects


class Entry(NamedTuple):
    """What the row of a library says about one of its types."""

    root: str = ""  # top-level module of the library
    attribute: str | None = None  # path to the array, such as "data", "a.b" or "get()"; None if not imported
    dtype: Callable[[Any], Any] = lambda obj: None  # the object's element type; None skips the comparison
    advice: Any = ""  # the column `advice` of the table
    asked: bool = True  # the type's protocols are tried first, and `advice` applies only if all fail
    parse: Callable[[Any], Any] | None = None  # a plug-in's function that returns the array
    sparse: str | None = None  # module of sparse/ that imports the objects; "arrayhub" for a SparseArray

    @property
    def words(self) -> str:
        """Name of the plug-in's path or function, for error messages."""
        return name_source(self.attribute or self.parse, self.root)

    @property
    def refuses_protocols(self) -> bool:
        """True if the protocols of the type would lose information that the wrapper adds to the memory.

        The result is False for a plug-in's function, which may merely be faster than the protocols.
        """
        return not self.asked and (self.parse is None or self.attribute is not None)


def path_getter(path: str) -> Callable[[Any], Any]:
    """Return a function that evaluates a path, such as "data", "a.b" or "get()", on an object."""
    if "()" not in path:
        return operator.attrgetter(path)

    def follow(obj: Any) -> Any:
        for name in path.split("."):
            obj = getattr(obj, name.removesuffix("()"))
            if name.endswith("()"):
                obj = obj()
        return obj

    return follow


def entries_of(
    library: str,
    roots: Iterable[str] = (),
    types: Mapping[Any, Any] = {},
    refused: Mapping[Any, Any] = {},
    advice: Mapping[Any, Any] = {},
    sparse: Mapping[Any, str] = {},
    registered: bool = False,
    **columns: Any,
) -> Iterator[tuple[tuple[str, str | None], Entry]]:
    """Yield the entries of a row, with their keys. `registered` is true for a row of `register_library`."""
    for name in {**types, **refused, **advice, **sparse}:
        path = types.get(name)
        path, dtype = path if isinstance(path, tuple) else (path, Entry._field_defaults["dtype"])
        call = {**refused, **advice}.get(name, f"x.{path}" if path and not registered else "")
        asked = name not in types and name not in refused
        parse = path_getter(path) if registered and isinstance(path, str) else None
        if callable(path):
            path, parse = None, path
        for root in roots or (library,):
            yield (root, name), Entry(root, path, dtype, call, asked, parse, sparse.get(name))


def name_source(source: Any, root: str) -> str:
    """Return the words of errors for a path or a function that is registered for a library."""
    if isinstance(source, str):
        return f"the attribute {source!r}, registered for {root!r},"
    module = getattr(source, "__module__", None) or "?"
    return f"{module}.{getattr(source, '__qualname__', type(source).__qualname__)}, registered for {root!r},"


# Entries, keyed by root and class name. The class name None stands for all types of the library. `plugins` adds entries
# by replacing the dict.
TYPES: dict[tuple[str, str | None], Entry] = {}
for _library, _columns in TABLE.items():
    TYPES.update(entries_of(_library, **_columns))
BUILT_IN_TYPES = frozenset(TYPES)

_mro = type.__dict__["__mro__"].__get__
_qualname = type.__dict__["__qualname__"].__get__


def known(cls):
    """Return the entry of a type or of its first base class that has one. Other types have an entry without facts."""
    rows = TYPES
    for base in _mro(cls):
        root = root_of(base)
        row = rows.get((root, _qualname(base))) or rows.get((root, None))
        if row is not None:
            return row
    return _UNKNOWN


_UNKNOWN = Entry()


def inside(obj, row=None):
    """Return the object that holds the memory of a wrapper. `row` is the row of its type, if it is known.

    Raises
    ------
    TypeError
        The type is not imported as an array, or a dense array cannot represent the elements of the object.
    BufferError
        The memory was released.
    """
    row = row or known(type(obj))
    if row.parse is not None:
        return row.parse(obj)
    if row.attribute is None:
        raise wrapper_error(obj, "is not imported as an array")
    dtype = row.dtype(obj)
    if dtype is not None and not isinstance(dtype, np.dtype):
        raise wrapper_error(obj, f"has elements of {dtype}, and x.{row.attribute} is not a NumPy array of this type")
    inner = path_getter(row.attribute)(obj)
    if inner is None:  # such as a closed SharedMemory
        raise Refusal(name_of_type(type(obj)), f"{row.attribute} is None, so the memory was released")
    return inner


def raise_fault(row, obj, did, error=None, *kept):
    """Raise an error about the array in a wrapper. `did` says what the path or the plug-in's function did."""
    if row.parse is None:
        raise wrapper_error(obj, f"is not imported, because x.{row.attribute} {did}")
    accepted = "an array that shares the memory of the object"
    raise_plugin_error(row.root, f"{name_of_type(type(obj))}: {row.words} {did}", accepted, error, *kept)


def raise_plugin_error(root: str, did: str, accepted: str, error: Exception | None, *kept: type[Exception]) -> NoReturn:
    """Raise an error that names a plug-in. Buffer errors and the classes `kept` stay, others become InterfaceError.

    `did` says what the plug-in did. `error` is the exception that it raised, or None.
    """
    if error is not None and hasattr(error, "plugin"):  # the error already names the plug-in of an inner object
        raise error
    keeps = type(error) in (BufferError, Refusal, *kept) or (TypeError in kept and isinstance(error, Refusal))
    kind: Any = type(error) if keeps else InterfaceError
    fault = kind(f"{did}; accepted: {accepted}" if error is None else f"{did} {message_of(error)}")
    fault.plugin = root
    raise fault from error


def message_of(error: BaseException) -> str:
    """Return the type and the first line of an exception of a plug-in."""
    if isinstance(error, RecursionError):
        return "RecursionError: it calls arrayhub with its own object, or with an object that leads back to it"
    text = first_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def wrapper_error(obj, why):
    """Return a TypeError that explains why a wrapper cannot be imported."""
    cls = type(obj)
    name = f"{root_of(cls)}.{_qualname(cls).rpartition('.')[2]}"
    call, remark = advise(obj)
    return TypeRefusal("asarray", f"{name} {why}{remark and f'; {remark}'}", call=call)


def advise(obj):
    """Return the call that the table names for an object of a known type, or "", and a remark, or ""."""
    advice = known(type(obj)).advice
    advice = advice(obj) if callable(advice) else advice
    return (advice, "") if isinstance(advice, str) else advice


# The remedy for missing values in a list or in an array of Python objects.
_PASS_MISSING = "pass missing=value, and for strings copy=None"
_NONE_IS_MISSING = f"None is a missing value: {_PASS_MISSING}"


def elements_error(array):
    """Return the TypeError for an ndarray of Python objects, or of a dtype that no protocol can represent."""
    dtype = array.dtype
    call = "arrayhub.asnested(x)" if dtype.kind == "T" or (dtype.hasobject and _is_nestable(array)) else ""
    if not dtype.hasobject:
        remedy = "Convert other dtypes with a function of the library that defines them"
    elif dtype.names is not None:
        remedy = "Pass one field, as in x['name']"
    elif call:
        remedy = f"Numbers and strings can be copied, as in arrayhub.asarray(x.tolist()). {_NONE_IS_MISSING}"
    else:
        remedy = "Use x.astype(str) for the text of the elements"
    accepted = f"every NumPy dtype without Python objects, and those of ml_dtypes. {remedy}"
    return TypeRefusal(name_of_type(type(array)), f"dtype is {dtype!r}", accepted, call)


def values_error(obj, values):
    """Return the TypeError for an object whose `values` NumPy represents as Python objects."""
    remedy = "Pass dtype='M8[us]' for dates and times. For other numbers, numpy.asarray(x, dtype=float) rounds"
    if any(value is None for value in values):
        remedy = _NONE_IS_MISSING
    elif all(isinstance(value, int) for value in values):
        remedy = "Integers have at most 64 bits, and numpy.asarray(x, dtype=float) rounds them"
    accepted = f"numbers of one type. {remedy}"
    return TypeRefusal("asarray", f"{show(obj)} would become an array of Python objects", accepted, nested_call(values))


def _is_nestable(array):
    """Return whether `asnested` supports an array of Python objects. Only its first elements are examined."""
    if array.ndim == 0:
        return False
    if array.dtype.names is not None:
        return all(_is_nestable(field) for field in map(array.__getitem__, array.dtype.names) if field.dtype.hasobject)
    return bool(nested_call(array.ravel()))


def nested_call(values):
    """Return the call that imports values that NumPy does not represent as numbers, or "" if `asnested` refuses them.

    Only the first values are imported.
    """
    try:
        hooks.nested.from_python([*values[:LOOKED_AT]])
    except PASSES_ON:
        raise
    except Exception:
        return ""
    return "arrayhub.asnested(x)"


def refuse_missing(obj):
    """Reject ``pandas.NA`` and ``pandas.NaT`` in a list of values."""
    name = type(obj).__name__.removesuffix("Type")
    if root_of(type(obj)) == "pandas":
        advice = f"{_PASS_MISSING}, or pass all values to arrayhub.asnested"
        raise TypeRefusal("asarray", f"pandas.{name} is a missing value", f"numbers of one type. For a list, {advice}")


def hint(obj, failed=False):
    """Return a remark about an object that no protocol can import, or "". The caller appends the remark to its reason.

    `failed` is true if the object supports a protocol, which has failed. A library's methods are named only for
    known types, because methods of the same name differ between libraries. `advise` returns the call.
    """
    cls = type(obj)
    call, remark = advise(obj)
    if call or remark:
        return remark and f"; {remark}"
    if hasattr(cls, "__array__"):
        return "; numpy.asarray(x) calls its __array__, which may copy"
    root = root_of(cls)
    if failed or root == "builtins":
        return ""
    registered = sorted(name for own, name in TYPES.keys() - BUILT_IN_TYPES if own == root and name is not None)
    if registered:
        return f"; registered types of {root!r}: {', '.join(registered)}. Add the type to arrayhub.register_library"
    return "; if its library has a method that returns a NumPy array, pass the method's result"
