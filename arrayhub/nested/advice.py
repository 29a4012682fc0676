"""advise: the verdict of a library on an object, and the call that works, from types and layouts.

`explain` shows the results of `advise`, and the field `call` of a refusal is the same call. Nothing is converted:

- The object is imported as a view. An object that `asnested` copies is represented by an empty array of its type, and
  Python values by the first values.
- ``Library.check_export`` and the functions ``check`` and ``why_copied`` of the modules in `export` raise or return the
  reason for which the export would fail or copy. The exports use the same functions.

Where a conversion depends on the values, such as on rows of equal lengths, the call works for all values.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from arrayhub import transfer
from arrayhub._core.copying import VIEW
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, requested_dtype
from arrayhub._core.errors import (
    NO_CUDA_DEVICE,
    RangeRefusal,
    Refusal,
    TypeRefusal,
    ValueRefusal,
    form_of,
    missing_library_error,
    root_of,
)
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import unread
from arrayhub.adapters.dlpack import peek
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import is_frame
from arrayhub.convert.functions import (
    CONSUMERS,
    VALUES,
    asarray,
    is_array_of,
    narrow_for_jax,
)
from arrayhub.convert.functions import as_numpy as dense_as_numpy
from arrayhub.convert.names import sparse_library
from arrayhub.inspection.explanation import CANNOT, COPY, NOT_TRIED, ZERO_COPY, Verdict
from arrayhub.inspection.texts import attempt, is_capsule, printable, reason, try_call
from arrayhub.inspection.unread import import_unread
from arrayhub.inspection.values import LOOKED_AT, dtype_of_value, first_values, sample_rows
from arrayhub.libraries import plugins, wrappers
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.libraries.known import LIBRARIES, NESTING
from arrayhub.nested import matrix
from arrayhub.nested.array import NestedArray
from arrayhub.nested.array import is_on_host as node_is_on_host
from arrayhub.nested.asnested import asnested, is_arrow_scalar, is_column, is_pandas
from arrayhub.nested.conform import is_days
from arrayhub.nested.export import get_rules
from arrayhub.nested.from_awkward import is_awkward
from arrayhub.nested.opaque import has_bitmap, is_list_view, is_run_end
from arrayhub.nested.to_device import child_nodes, offsets_on_host
from arrayhub.runtimes.cuda import has_device
from arrayhub.runtimes.host import is_host_readable
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.assparse import sparse_or_none
from arrayhub.sparse.libraries import RULES
from arrayhub.sparse.rules import check_export, why_copied
from arrayhub.sparse.validation import is_on_host

_ROWS = {row.name: row for row in LIBRARIES if row.call is not None}
_MODULES = {"arrow": "pyarrow", "pydata_sparse": "sparse"}  # libraries whose name in `convert` is not their module's


@dataclass(frozen=True, slots=True)
class Source:
    """An object as `advise` and `explain` see it.

    Attributes
    ----------
    array : USMArray, NestedArray, SparseArray or None
        A view of the object, or if `copied` is not "", an array of the same type. None if no function imports the
        object.
    copied : str
        Why the import copies the object, or "".
    refusal : Exception or None
        The error of `asarray` or `assparse`, if it rejects the object.
    length : int or None
        Number of elements of an object that `asnested` copies.
    own : bool
        Whether the object is the array.
    kind : str
        "values", "stream", "sparse" or "".
    """

    array: Any
    copied: str = ""
    refusal: BaseException | None = None
    length: int | None = None
    own: bool = False
    kind: str = ""

    @property
    def is_sparse(self) -> bool:
        return isinstance(self.array, SparseArray)

    @property
    def reason(self) -> str:
        return printable(str(self.refusal)) if isinstance(self.refusal, Refusal) else _reason(self.refusal)

    @property
    def summary(self) -> str:
        """Description of nested and sparse arrays, and of objects that are copied."""
        x = self.array
        if isinstance(x, SparseArray):
            return f"{repr(x)[len('<SparseArray: ') : -1]}, {x.access}, on {x.device}"
        if isinstance(x, NestedArray):
            if self.kind == "values":
                return "nested values, which are copied"
            if self.copied:
                return f"{self.length} * {str(x.type).partition(' * ')[2]}, which is copied"
            of_all = x.type if self.length is None else f"{self.length} * {str(x.type).partition(' * ')[2]}"
            chunks = f", in {len(x.chunks)} chunks" if kind_of(x).chunks else ""
            return f"{of_all}, {x.access}, on {x.device}{chunks}"
        return f"a value, which NumPy converts to {x.dtype}" if self.copied else "no array"

    @property
    def how(self) -> str:
        """Description of the import of a nested or sparse array."""
        if isinstance(self.array, SparseArray):
            return "it is a SparseArray" if self.own else "assparse imports it; asarray returns dense arrays only"
        through = "" if self.array.protocol == "constructed" else f" through {self.array.protocol}"
        imported = through and f", imported{through}"
        how = f"it is a NestedArray{imported}" if self.own else f"asnested imports it{through}"
        return f"{how}; asarray returns dense arrays only"

    @property
    def facts(self) -> tuple[str, ...]:
        """Properties of a sparse array that some libraries do not support."""
        x = self.array
        if not isinstance(x, SparseArray) or is_on_host(x):
            return ()
        return (f"in memory of {x.device}, which the host cannot read; x.to_host() returns a copy on the host",)

    @property
    def consumers(self) -> tuple[str, ...]:
        """The libraries that `explain` lists."""
        if isinstance(self.array, SparseArray) or self.kind == "sparse":
            return tuple(RULES)
        if isinstance(self.array, USMArray):
            return CONSUMERS if self.copied else (*CONSUMERS, *plugins.emitting())
        if self.kind == "stream":
            return (*CONSUMERS, *NESTING)
        if self.array is None:
            return CONSUMERS
        nested = ("numpy", "torch", *NESTING)
        return tuple(dict.fromkeys((*CONSUMERS, *nested))) if self.kind == "values" else nested


def complete_refusal(error: BaseException, obj: Any, consumer: str) -> BaseException:
    """Return the error of an export of `obj`, with the call that works in its field `call`."""
    refusal: BaseException = form_of(error)
    if isinstance(refusal, Refusal) and not _is_about_request(refusal):
        found = advise(obj, consumer)
        # `advise` neither reads elements nor calls the library, so the call that it expects to work may have failed.
        by_library = consumer in plugins.emitting() or (refusal.__cause__ is not None and found.verdict == ZERO_COPY)
        if found.verdict == CANNOT or not (by_library or isinstance(refusal, RangeRefusal)):
            refusal.call = found.call
    return refusal


def _is_about_request(refusal: Refusal) -> bool:
    """Return whether a refusal is about ``missing=``, whose value does not fit, or names a call for ``dtype=``."""
    argument = refusal.subject.partition(":")[0]
    if argument == "dtype":
        return bool(refusal.call)
    return argument == "missing" and isinstance(refusal, (TypeRefusal, ValueRefusal))


def advise(obj: Any, consumer: str, source: Source | None = None) -> Verdict:
    """Call `_advise`. An exception of the object or of a library becomes the reason of the verdict."""
    verdict, error = try_call(_advise, obj, consumer, source)
    return Verdict(consumer, CANNOT, _reason(error)) if verdict is None else verdict


def _advise(obj: Any, consumer: str, source: Source | None) -> Verdict:
    """Return the verdict of a library, named as in `convert`, on an object, with the call that works or "".

    `source` is the result of `import_source`, if the caller has it.
    """
    if _is_returned_unchanged(obj, consumer):
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer))
    absent = _absence(consumer)
    if absent:
        return Verdict(consumer, CANNOT, absent)
    stream = attempt(unread, obj)[0]
    if stream and (source or import_source(obj)).array is None:
        export = consumer in NESTING and consumer != "awkward"
        why = "explain does not read the data; arrayhub.asnested(x) does"
        return Verdict(consumer, NOT_TRIED, why, call_of(consumer) if export else "arrayhub.asnested(x)")
    source = import_source(obj) if source is None else source
    array = source.array
    if (array is None or consumer in NESTING) and is_frame(obj) and not obj.columns.is_unique:
        renamed = "x.set_axis(range(x.shape[1]), axis=1)"
        found = _advise(obj.set_axis(range(obj.shape[1]), axis=1), consumer, None)
        return Verdict(consumer, CANNOT, find_obstacle(asnested, obj), re.sub(r"\bx\b", renamed, found.call))
    if array is None:
        return _of_rejected(obj, consumer, source)
    if isinstance(array, SparseArray):
        return _of_sparse(obj, array, consumer)
    if consumer in NESTING:
        source = _as_nested(obj, source) if isinstance(array, USMArray) else source
        return _of_nested_consumer(obj, source, consumer)
    if consumer not in _ROWS:
        return _of_named(obj, source, consumer)
    if isinstance(array, NestedArray):
        return _of_node(obj, source, consumer)
    return _of_dense(obj, array, source.copied, consumer)


def call_of(consumer: str, x: str = "x", *arguments: str) -> str:
    """Return the call that exports `x` to a library."""
    if consumer in (*CONSUMERS, *NESTING, "scipy"):
        return f"arrayhub.as_{consumer}({', '.join((x, *arguments))})"
    return f"arrayhub.convert({', '.join((x, repr(consumer), *arguments))})"


def _absence(consumer: str) -> str:
    """Return why the arrays of a library cannot be created on this machine, or ""."""
    name = _MODULES.get(consumer, consumer)
    if name in sys.modules or consumer not in (*_ROWS, *NESTING, *RULES, "xarray") or _is_installed(name):
        return ""
    if consumer == "cupy" and not has_device():
        return NO_CUDA_DEVICE
    return str(missing_library_error(name, "to create its arrays"))


@lru_cache
def _is_installed(name: str) -> bool:
    return attempt(find_spec, name)[0] is not None


def find_obstacle(check: Callable[..., Any], *arguments: Any) -> str:
    """Return the reason for which ``check(*arguments)`` raises an exception, or "" if it does not."""
    return attempt(check, *arguments)[1]


def _reason(error: BaseException | None) -> str:
    return "" if error is None else reason(error)


# ------------------------------------------------------------------------------------------------------------- import


def import_source(obj: Any) -> Source:
    """Import an object without a copy, or an array of its type. Exceptions of the object become `Source.refusal`."""
    source, error = try_call(_import_source, obj)
    return Source(None, refusal=error) if source is None else source


def _import_source(obj: Any) -> Source:
    cls = type(obj)
    if issubclass(cls, (NestedArray, SparseArray)):
        return Source(obj, own=True)
    if issubclass(cls, USMArray):
        return Source(obj)
    if is_capsule(obj):
        array, error = try_call(peek, obj)
        return Source(array, refusal=error)
    if attempt(unread, obj)[0]:
        array = attempt(import_unread, obj)[0]
        return Source(array, kind="stream" if array is None else "")
    if issubclass(cls, VALUES):
        return _source_of_value(obj)
    sparse, error = try_call(sparse_or_none, obj)
    if sparse is not None or (error is not None and (sparse_library(obj) or root_of(cls) == "onedal")):
        return Source(sparse, refusal=error, kind="sparse")
    if issubclass(cls, dict):
        node = attempt(_first_rows, obj)[0]
        error = try_call(asarray, obj)[1]
        why = "" if node is None else "asnested makes a table of the columns of a dict"
        return Source(node, why, error, None, kind="values")
    array, error = try_call(asarray, obj)
    if array is not None:
        return Source(array)
    if is_pandas(obj) and len(obj) > 2 * LOOKED_AT:
        rows = sample_rows(obj)
        source = _import_source(rows)
        return source if isinstance(source.array, USMArray) else replace(source, length=len(obj))
    node, refused = try_call(asnested, obj, copy=VIEW)
    if node is not None:
        return Source(node, refusal=error)
    node = attempt(_first_copied, obj)[0]
    if not isinstance(node, NestedArray):
        return Source(None, refusal=error)
    length = len(node) if is_arrow_scalar(cls) else attempt(len, obj)[0]
    return Source(node, _reason(refused), error, length)


def _first_copied(obj: Any) -> Any:
    """Return a copy of the first elements of an object that `asnested` copies. Elements of ndarrays are not read."""
    if is_arrow_scalar(type(obj)):
        return asnested(obj)
    if wrappers.refuses_protocols(type(obj)) and issubclass(type(obj), np.ndarray):  # such as a Quantity
        return None
    if issubclass(type(obj), np.ndarray):
        masked = issubclass(type(obj), np.ma.MaskedArray)
        return asnested(obj[:LOOKED_AT] if obj.dtype.hasobject or masked else _sample_of(obj))
    if not is_awkward(obj) and not is_pandas(obj) and not hasattr(type(obj), "__arrow_array__"):
        return None
    return asnested(_first_of(obj))


def _first_of(obj: Any) -> Any:
    """Return the first elements or rows of an object."""
    return getattr(obj, "iloc", obj)[:LOOKED_AT]


def _first_rows(columns: dict[Any, Any]) -> Any:
    return asnested({name: column[:LOOKED_AT] for name, column in columns.items()})


def _source_of_value(obj: Any) -> Source:
    why = f"a value of type {type(obj).__name__} cannot be viewed: asarray copies it through NumPy"
    dtype, refusal = attempt(dtype_of_value, obj)
    if not refusal:
        shape = () if not isinstance(obj, (list, tuple, range)) else (0,) * _depth(obj)
        array = attempt(asarray, np.zeros(shape, dtype))[0]
        if array is not None:
            return Source(array, why)
    first = obj[:LOOKED_AT] if issubclass(type(obj), (list, tuple)) else obj
    node, refused = try_call(asnested, first) if issubclass(type(obj), (list, tuple)) else (None, None)
    error = Refusal("asarray", refusal) if refusal else try_call(asarray, first)[1]
    error = refused if getattr(refused, "call", "") else error
    if node is None:
        return Source(None, refusal=error)
    return Source(node, "values do not have memory to view, so asnested copies them", error, len(obj), kind="values")


def _as_nested(obj: Any, source: Source) -> Source:
    """Describe a dense array as the array that libraries of nested arrays receive: with its fields or Arrow type."""
    array, copied = source.array, source.copied
    has_text, has_fields = array.dtype.kind in "SUT", array.dtype.names is not None
    if not (has_text or has_fields) and (copied or array is obj or not is_column(obj)):
        return source
    empty = _sample_of(array)
    first = empty if has_text else _first_of(obj) if is_pandas(obj) else obj
    node, why = attempt(asnested, first, copy=VIEW)
    if node is None and (has_text or has_fields):
        node = attempt(asnested, empty)[0]
    return source if not isinstance(node, NestedArray) else replace(source, array=node, copied=copied or why)


def _sample_of(array: Any) -> Any:
    """Return an array of the type of `array`: empty, or two rows of records, whose fields have gaps between them."""
    rows, others = (2, 1) if array.dtype.names else (0, 0)
    return np.zeros(tuple(rows if k == 0 else others for k in range(array.ndim)), array.dtype)


def _depth(values: Any) -> int:
    if not isinstance(values, (list, tuple, range)):
        return getattr(values, "ndim", 0)
    return 1 + _depth(values[0]) if len(values) else 1


def _is_returned_unchanged(obj: Any, consumer: str) -> bool:
    if consumer == "pandas" and is_pandas(obj):
        return type(obj).__name__ != "MultiIndex"
    return is_array_of(obj, consumer) or (consumer == "scipy" and sparse_library(obj) == "scipy")


# ------------------------------------------------------------------------------------------------- dense to libraries


def _of_dense(obj: Any, array: Any, copied: str, consumer: str, x: str = "x") -> Verdict:
    """Return the verdict of a library of dense arrays on a dense array, which is a fresh copy if `copied` is given."""
    row = _ROWS[consumer]
    values = issubclass(type(obj), VALUES) and x == "x"  # values are built without copy=True
    narrow = NARROWED.get(array.dtype.name) if values and consumer == "jax" and not has_x64() else None
    if narrow is not None:
        lost = find_obstacle(narrow_for_jax, asarray(np.array(first_values(obj), array.dtype)), "as_jax")
        if lost:
            wide = "complex64" if array.dtype.kind == "c" else "float32"
            return Verdict(consumer, CANNOT, lost, call_of(consumer, x, f"dtype={wide!r}"))
        array = asarray(np.empty(array.shape, narrow))
        copied = f"{copied}; numbers that {narrow} cannot hold are refused"
    why = copied or find_obstacle(row.check_export, array, False)
    if not why:
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer, x))
    obstacle = _obstacle_to_move(array)
    if obstacle:
        return Verdict(consumer, CANNOT, obstacle)
    obstacle = _obstacle_to_copy(array, consumer)
    if not obstacle:
        way = "copy=True" if isinstance(obj, NestedArray) else _way_to_copy(array, consumer)
        return Verdict(consumer, COPY, why, call_of(consumer, x, *() if values else (way,)))
    if array.dtype.names is not None and array.ndim == 1:
        records = x if issubclass(type(obj), np.ndarray) else f"arrayhub.as_numpy({x})"
        fields = [_Facts(dtype=array.dtype[name]) for name in array.dtype.names]
        call = _call_by_field(fields, array.dtype.names, consumer, f"arrayhub.asnested({records})")
        if call:
            return Verdict(consumer, CANNOT, obstacle, call)
    call = call_with_dtype(array, consumer, x, *_mask_of_nat(array.dtype))
    if not call and array.dtype.kind in "SUTOV" and not issubclass(type(obj), USMArray):
        call = "" if find_obstacle(asnested, np.empty((0,) * array.ndim, array.dtype)) else "arrayhub.asnested(x)"
    return Verdict(consumer, CANNOT, obstacle, call)


def _way_to_copy(array: Any, consumer: str) -> str:
    """Return the argument that requests a copy: `device` if a library needs memory on another device, else `copy`."""
    row = _ROWS.get(consumer, _ROWS["numpy"])
    if array.device.type == row.device_type or (row.reads_host and _is_on_host(array)):
        return "copy=True"
    return f"device={'cpu' if row.reads_host else f'{row.device_type}:0'!r}"


def _mask_of_nat(dtype: Any) -> tuple[str, ...]:
    """Return the argument without which integers would not show which times are NaT."""
    return ("missing='mask'",) if dtype.kind in "mM" else ()


def _obstacle_to_copy(array: Any, consumer: str) -> str:
    """Return why a library also rejects a copy of an array, or ""."""
    return find_obstacle(_ROWS[consumer].check_export, _type_of_copy(array), True)


def _obstacle_to_move(array: Any) -> str:
    """Return why the elements of an array cannot be copied to the host, such as a missing driver, or ""."""
    return "" if _is_on_host(array) else find_obstacle(transfer.check_source, array)


def _is_on_host(array: Any) -> bool:
    return node_is_on_host(array) if isinstance(array, NestedArray) else is_host_readable(array)


def _type_of_copy(array: Any) -> Any:
    """Return an array with the element type of a copy of `array`, which is in native byte order."""
    if array.typenum >= FIRST_OWN_TYPENUM or array.dtype.isnative:
        return array
    return asarray(np.empty(0, array.dtype.newbyteorder("=")))


def call_with_dtype(array: Any, consumer: str, x: str, *arguments: str) -> str:
    """Return the call that casts the elements to a type that a library supports, or "" without one."""
    if find_obstacle(getattr, array, "byte_strides"):  # elements of less than a byte, which are packed
        return ""
    for name in _casts(array):
        if not _obstacle_to_copy(asarray(np.empty(0, name)), consumer):
            way = _way_to_copy(array, consumer)
            moved = (way,) if way != "copy=True" and "copy=True" not in arguments else ()
            return call_of(consumer, x, f"dtype={name!r}", *arguments, *moved)
    return ""


def _casts(array: Any) -> Iterator[str]:
    """Yield the element types to which an array can be cast: without loss if possible, and narrower ones last."""
    dtype = array.dtype
    if str(dtype).endswith("complex32"):  # NumPy does not have this type
        yield "complex64"
        return
    if dtype.kind in "mM":
        times = [f"{dtype.kind}8[{unit}]" for unit in ("s", "ms", "us", "ns")]
        yield from (name for name in times if np.can_cast(dtype, name) and dtype != np.dtype(name))
        yield "int64"
        return
    if dtype.kind not in "iufcV" or dtype.names is not None:
        return
    small = ("uint8", "int8") if dtype.name.startswith("uint") else ("int8", "uint8")
    for name in (*small, "float32", "complex64", "float64", "complex128", "int64", "uint64"):
        if np.can_cast(dtype, name) and dtype != np.dtype(name):
            yield name
    narrow = {"i": ("int32",), "u": ("uint32",), "f": ("float64", "float32"), "c": ("complex128", "complex64")}
    yield from narrow.get(dtype.kind, ())


def _call_by_field(fields: list[Any], names: tuple[str, ...], consumer: str, x: str) -> str:
    """Return the call that converts each field of the records `x`, or "" if a field cannot be converted."""
    missing = any(facts.missing for facts in fields)
    numbers = [facts.dtype.newbyteorder("=") for facts in fields if facts.leaf == "numbers" and not facts.lists]
    strings = [facts for facts in fields if facts.leaf == "strings" and not facts.lists]
    texts = strings if consumer == "numpy" and not missing else []
    if len(numbers) + len(texts) < len(fields) or any(dtype.kind not in "biufcmM" for dtype in numbers):
        return ""
    if len(set(names)) < len(names):
        return ""
    arguments = ("missing='mask'", "copy=True") if missing else ("copy=True",)
    call = call_of(consumer, "column", *arguments)
    if any(_obstacle_to_copy(asarray(np.empty(0, dtype)), consumer) for dtype in numbers):
        common = _common_type(numbers)
        call = "" if common is None else call_with_dtype(asarray(np.empty(0, common)), consumer, "column", *arguments)
    return call and f"{{key: {call} for key, column in {x}.fields.items()}}"


# ------------------------------------------------------------------------------------------------ nested to libraries


@dataclass(slots=True)
class _Facts:
    """Contents of a node, for libraries of dense arrays."""

    leaf: str = "numbers"  # or "strings", "bytes", "records", "categories", "decimals", "zoned", "other"
    dtype: Any = None  # of numbers
    array: Any = None  # the numbers
    lists: int = 0  # levels of lists of variable lengths
    rows: int = 0  # levels of rows of a fixed length
    missing: bool = False  # whether elements may be missing
    missing_rows: bool = False  # whether lists may be missing
    change: str = ""  # how a copy differs


def _facts_of(node: Any) -> _Facts:
    """Describe a node by its kinds and bitmaps, without reading its elements."""
    if isinstance(node, USMArray):
        return _Facts(dtype=node.dtype, array=node, rows=node.ndim - 1)
    kind, meaning = kind_of(node), str(node.meaning or "")
    if kind.chunks:
        each = [_facts_of(chunk) for chunk in node.chunks]
        facts = each[0]
        facts.missing = any(other.missing for other in each)
        facts.missing_rows = any(other.missing_rows for other in each)
        if len([chunk for chunk in node.chunks if len(chunk)]) > 1:
            facts.change = " and ".join(filter(None, ("concatenates its chunks", facts.change)))
        return facts
    missing = node.validity is not None and (not node_is_on_host(node) or node.null_count > 0)
    if kind.lists or is_list_view(node):
        facts = _facts_of(child_nodes(node)[0])
        if kind.width:
            facts.rows, facts.missing = facts.rows + 1, facts.missing | missing
        else:
            facts.lists, facts.missing_rows = facts.lists + 1, facts.missing_rows | missing
        facts.change = "converts its list views" if kind.opaque else facts.change
        facts.leaf = "other" if kind.lists and meaning else facts.leaf  # a map
        return facts
    if is_run_end(node):
        facts = _facts_of(node.children[1])
        facts.change = "repeats the element of each run"
        facts.leaf = facts.leaf if facts.leaf == "numbers" else "other"
        return facts
    if kind.fields:
        return _Facts("records", missing=missing or any(_facts_of(field).missing for field in node.children))
    if kind.packed:
        return _Facts(dtype=np.dtype(bool), missing=missing, change="unpacks its bits")
    if not kind.numbers:
        leaf = "strings" if kind.utf8 else "bytes" if kind.characters else "categories" if kind.indices else "other"
        missing |= kind.opaque and not has_bitmap(node)
        return _Facts("decimals" if kind.opaque and meaning.startswith("d:") else leaf, missing=missing)
    facts = _facts_of(node.content)
    facts.missing = missing
    if meaning == "tdD":
        facts.dtype, facts.array, facts.change = np.dtype("M8[D]"), None, "converts its dates"
    elif meaning and meaning != "tdm":
        facts.leaf = {"ts": "zoned", "tt": "integers"}.get(meaning[:2], "other")
    return facts


def _of_node(obj: Any, source: Source, consumer: str) -> Verdict:
    """Return the verdict of a library of dense arrays on nested data."""
    facts = _facts_of(source.array)
    found = _of_facts(obj, source, consumer, facts)
    if found.verdict == CANNOT and not found.call:
        found = Verdict(consumer, CANNOT, found.reason, _call_without_library(obj))
    device = source.array.device
    on_device = facts.leaf == "numbers" and not facts.lists and facts.array is not None  # neither bits nor dates
    if device.type == "cpu" or on_device:
        return found
    call = re.sub(r"\bx\b", "arrayhub.asnested(x, copy=True)", found.call)
    return Verdict(consumer, CANNOT, f"the memory is on {device}, and only NestedArrays are exported from there", call)


def _call_without_library(obj: Any, x: str = "x") -> str:
    """Return the call for nested data that the library cannot represent in any form."""
    return "x.to_list()" if issubclass(type(obj), NestedArray) else f"arrayhub.asnested({x})"


def _of_facts(obj: Any, source: Source, consumer: str, facts: _Facts) -> Verdict:
    node = source.array
    own = issubclass(type(obj), NestedArray)
    x = "arrayhub.asnested(x, copy=True)" if len(node.chunks) > 1 else "x" if own else "arrayhub.asnested(x)"
    if is_pandas(obj) and facts.leaf == "numbers" and node.extension is not None:  # such as periods, which are numbers
        facts.leaf = "other"
    if source.kind == "values" and (facts.leaf == "records" or (facts.dtype is not None and facts.dtype.kind in "mM")):
        if issubclass(type(obj), dict):
            found = _of_records(None, Source(node), consumer, "arrayhub.asnested(x)")
            copied = ("copy=True",) if find_obstacle(get_rules("arrow").check, node, False, None) else ()
            nested = "asnested" in found.call
            call = found.call if nested else re.sub(r"\bx\b", call_of("arrow", "x", *copied), found.call)
            return Verdict(consumer, CANNOT, source.reason, call)
        found = advise(node, consumer, Source(node, own=True))  # lists of these elements are imported by asnested only
        call = "" if "to_list" in found.call else re.sub(r"\bx\b", "arrayhub.asnested(x)", found.call)
        return Verdict(consumer, CANNOT, source.reason, call)
    if facts.leaf == "records" and not facts.lists:
        return _of_records(obj, source, consumer, x)
    if facts.leaf == "strings" and not facts.lists and not facts.rows and consumer == "numpy":
        why = "strings become NumPy's StringDType, which stores them in its own arena"
        return Verdict(consumer, COPY, why, call_of(consumer, "x", "copy=True"))
    if facts.leaf == "numbers" and not facts.lists:
        return _of_numbers(obj, source, consumer, facts)
    if facts.lists and (
        facts.leaf == "numbers" or (facts.leaf == "strings" and not facts.rows and consumer == "numpy")
    ):
        return _of_lists(obj, source, consumer, facts, x)
    why = f"elements are {_WORDS.get(facts.leaf, str(node.type).partition(' * ')[2])}"
    call = _call_for_leaf(node, consumer, facts, x) if not facts.lists and not facts.rows else ""
    return Verdict(consumer, CANNOT, why, call)


_WORDS = {
    "bytes": "byte strings",
    "categories": "categories",
    "decimals": "decimals, which NumPy cannot represent",
    "integers": "times of day, which NumPy does not have",
    "strings": "strings",
    "zoned": "times with a time zone, which NumPy does not have",
}


def _call_for_leaf(node: Any, consumer: str, facts: _Facts, x: str) -> str:
    """Return the call that converts elements that are not numbers to numbers, or ""."""
    if facts.leaf == "categories":
        if facts.missing:
            codes = "arrayhub.as_arrow(x, copy=True).indices.cast('int32')"  # the codes of polars are unsigned
            return call_of(consumer, codes, "missing=-1", "copy=True")
        return _call_on_numbers(consumer, node.chunks[0].indices, False, f"{x}.indices")
    if facts.leaf in ("decimals", "zoned", "integers"):
        casts = {"decimals": ("float64", "f8"), "zoned": ("timestamp[us]", "M8[us]")}
        size = 8 if facts.dtype is None else facts.dtype.itemsize
        target, dtype = casts.get(facts.leaf, (f"int{8 * size}", f"i{size}"))
        cast = f"arrayhub.as_arrow(x).cast({target!r})"
        return _call_on_numbers(consumer, asarray(np.empty(0, np.dtype(dtype))), facts.missing, cast)
    return ""


def _call_on_numbers(consumer: str, array: Any, missing: bool, x: str, nan: bool = True) -> str:
    """Return the call that exports a column of numbers, with a mask or NaN for missing elements, or ""."""
    arguments = []
    if missing:
        is_float = array.dtype.kind == "f" and array.dtype.itemsize >= 4
        arguments.append("missing='nan'" if is_float and nan else "missing='mask'")
    if not _obstacle_to_copy(array, consumer):
        return call_of(consumer, x, *arguments, "copy=True")
    return call_with_dtype(array, consumer, x, *arguments, *(("copy=True",) if missing else ()))


def _of_numbers(obj: Any, source: Source, consumer: str, facts: _Facts) -> Verdict:
    """Return the verdict on numbers without lists of variable lengths: missing values, bits, chunks, dates, runs."""
    proto = asarray(np.empty(0, facts.dtype)) if facts.array is None else facts.array
    if facts.missing:
        call = _call_on_numbers(consumer, proto, True, "x")
        is_view = not facts.change and not source.copied and _is_on_host(proto)
        if consumer == "numpy" and is_view and call.endswith("missing='mask', copy=True)"):
            call = call_of(consumer, "x", "missing='mask'")
        return Verdict(consumer, CANNOT, "elements are missing", call)
    days = facts.array is None and facts.dtype.kind == "M"  # of four bytes, which only NumPy's export converts
    if days and issubclass(type(obj), NestedArray) and consumer != "numpy":
        call = call_with_dtype(proto, consumer, "arrayhub.as_numpy(x, copy=True)")
        return Verdict(consumer, CANNOT, "date32 is not supported", call)
    if facts.change or source.copied:
        why = _obstacle_to_copy(proto, consumer)
        if not why:
            change = source.copied or f"a copy {facts.change}"
            return Verdict(consumer, COPY, change, call_of(consumer, "x", "copy=True"))
        return Verdict(consumer, CANNOT, why, call_with_dtype(proto, consumer, "x"))
    return _of_dense(obj, facts.array, "", consumer)


def _of_lists(obj: Any, source: Source, consumer: str, facts: _Facts, x: str) -> Verdict:
    """Return the verdict on lists of variable lengths."""
    proto = asarray(np.empty(0, facts.dtype)) if facts.array is None else facts.array
    numbers = facts.leaf == "numbers"
    equal = None if facts.missing or facts.missing_rows else _has_equal_rows(source.array)
    if numbers and equal and consumer != "torch":
        facts.rows, facts.lists = facts.rows + facts.lists, 0
        return _of_numbers(obj, source, consumer, facts)
    why = _obstacle_to_copy(proto, consumer) if numbers else ""
    jagged = consumer == "torch" and facts.lists == 1 and not facts.rows and not facts.missing and not why
    if jagged and not facts.missing_rows:
        view = "" if facts.change or source.copied else find_obstacle(_ROWS["torch"].check_export, proto, False)
        view = view or source.copied or (f"a copy {facts.change}" if facts.change else "")
        arguments = ("copy=True",) if view and not issubclass(type(obj), VALUES) else ()  # values are built
        return Verdict(consumer, COPY if view else ZERO_COPY, view, call_of(consumer, "x", *arguments))
    reason = "elements are missing" if facts.missing or facts.missing_rows else "arrays need rows of equal lengths"
    if facts.lists > 1 or (facts.array is None and proto.dtype.kind == "M"):  # rows of date32
        return Verdict(consumer, CANNOT, reason)
    x = f"{x}.fill_null([])" if facts.missing_rows else x
    if jagged:
        return Verdict(consumer, CANNOT, reason, call_of(consumer, x, "copy=True"))
    call = call_of(consumer, "row", "copy=True")
    call = _call_on_numbers(consumer, proto, facts.missing, "row") if numbers else call
    unknown = numbers and equal is None and not facts.missing and not facts.missing_rows and consumer != "torch"
    return Verdict(consumer, NOT_TRIED if unknown else CANNOT, reason, call and f"[{call} for row in {x}]")


def _has_equal_rows(node: Any) -> bool | None:
    """Return whether the rows of lists have equal lengths. Return None for many rows, which are not read."""
    if isinstance(node, USMArray) or not (kind_of(node).lists or kind_of(node).chunks or is_list_view(node)):
        return True
    if len(node) > LOOKED_AT or not node_is_on_host(node):
        return None
    kind = kind_of(node)
    if kind.chunks:
        lengths = {len(row) for row in node}
        below = [chunk.children[0] if is_list_view(chunk) else chunk.content for chunk in node.chunks]
    elif kind.width:
        lengths, below = set(), [node.content]
    elif kind.opaque:
        lengths, below = set(dense_as_numpy(node.buffers[1]).tolist()), [node.children[0]]
    else:
        lengths, below = set(np.diff(offsets_on_host(node)).tolist()), [node.content]
    found = [_has_equal_rows(content) for content in below]
    return False if len(lengths) > 1 or False in found else None if None in found else True


def _of_records(obj: Any, source: Source, consumer: str, x: str) -> Verdict:
    """Return the verdict on records and tables, whose copy is a matrix if all fields are numbers."""
    node = source.array
    names = node.field_names
    fields = [_facts_of(field) for field in node.children]
    if is_pandas(obj) and obj.ndim == 2 and len(names) == obj.shape[1]:  # NaN is a value in NumPy's columns
        for facts, dtype in zip(fields, obj.dtypes, strict=True):
            facts.missing &= not isinstance(dtype, np.dtype)
    rows = any(chunk.validity is not None and chunk.null_count for chunk in node.chunks)
    odd = next((name for name, f in zip(names, fields, strict=True) if f.leaf != "numbers" or f.lists or f.rows), None)
    common = _common_type([facts.dtype for facts in fields]) if odd is None and fields else None
    by_field = "" if rows else _call_by_field(fields, names, consumer, x)
    if common is None:
        why = "columns do not have a common type" if odd is None else f"column {odd!r} does not consist of numbers"
        return Verdict(consumer, CANNOT, why, by_field)
    proto = asarray(np.empty(0, common))
    structured = consumer == "numpy" and issubclass(type(obj), NestedArray)
    if rows or any(facts.missing for facts in fields):
        # missing='nan' converts integers to float64
        floats = np.result_type(*(f.dtype if f.dtype.kind == "f" else np.dtype("f8") for f in fields))
        nan = not _obstacle_to_copy(asarray(np.empty(0, floats)), consumer)
        call = "" if structured else _call_on_numbers(consumer, proto, True, "x", nan)
        return Verdict(consumer, CANNOT, "elements are missing", call or by_field)
    why = "" if structured else _obstacle_to_copy(proto, consumer)
    if why:
        mask = _mask_of_nat(common) if is_pandas(obj) else ()
        return Verdict(consumer, CANNOT, why, call_with_dtype(proto, consumer, "x", *mask))
    change = source.copied or "a copy stores its columns as one matrix"
    lost = [repr(name) for name, f in zip(names, fields, strict=True) if matrix.may_lose(f.dtype, common)]
    if lost and not structured:
        change += f"; OverflowError if {common} cannot represent a value of {', '.join(lost)}"
    return Verdict(consumer, COPY, change, call_of(consumer, "x", "copy=True"))


def _common_type(dtypes: list[Any]) -> Any:
    """Return NumPy's common type of the columns of a matrix, or None."""
    if any(dtype.kind not in "biufcmM" for dtype in dtypes) or len({dtype.kind in "mM" for dtype in dtypes}) > 1:
        return None
    return attempt(np.result_type, *dtypes)[0]


# ---------------------------------------------------------------------------------------- to libraries of nested arrays


def _of_nested_consumer(obj: Any, source: Source, consumer: str, x: str = "x") -> Verdict:
    rules, array = get_rules(consumer), source.array
    if isinstance(array, USMArray) and array.ndim == 0:
        one, instead = attempt(asarray, np.empty(0, array.dtype))[0], f"arrayhub.asarray({x}).reshape(-1)"
        works = one is not None and not find_obstacle(rules.check, _type_of_copy(one), True, None)
        call = call_of(consumer, instead, "copy=True") if works else ""
        return Verdict(consumer, CANNOT, "it has 0 dimensions; accepted: one or more", call)
    obstacle = find_obstacle(rules.check, array, False, obj)
    if not obstacle:
        why = source.copied or rules.why_copied(array, obj)
        return Verdict(consumer, COPY if why else ZERO_COPY, why, call_of(consumer, x))
    copied = array if isinstance(array, NestedArray) else _type_of_copy(array)
    why = find_obstacle(rules.check, copied, True, obj)
    why = why or _obstacle_to_move(array)
    if not why:
        days = isinstance(array, USMArray) and is_days(array) and consumer in ("arrow", "polars")
        unknown = "; OverflowError for days that date32 cannot hold" if days else ""
        change = f"{source.copied or obstacle}{unknown}"
        return Verdict(consumer, COPY, change, call_of(consumer, x, _way_to_copy(array, consumer)))
    return Verdict(consumer, CANNOT, why, _call_instead(obj, source, consumer, x))


def _call_instead(obj: Any, source: Source, consumer: str, x: str) -> str:
    array = source.array
    cast = _cast_for(array, consumer)
    if cast or issubclass(type(obj), USMArray):
        return cast and call_of(consumer, x, f"dtype={cast!r}")
    if isinstance(array, NestedArray) and str(array.chunks[0].meaning).startswith("d:") and consumer != "arrow":
        return call_of(consumer, f"arrayhub.as_arrow({x}).cast('float64')", "copy=True")
    if consumer != "arrow" and not find_obstacle(get_rules("arrow").check, array, True, obj):
        return call_of("arrow", x, *(("copy=True",) if source.copied or len(getattr(array, "chunks", "1")) > 1 else ()))
    return _call_without_library(obj, x)


def _cast_for(array: Any, consumer: str) -> str:
    """Return the type to which numbers can be cast if a library of nested arrays rejects only their type, or ""."""

    def is_rejected(numbers: Any) -> bool:
        return bool(find_obstacle(get_rules(consumer).check, numbers, True, None))

    if isinstance(array, NestedArray):
        facts = _facts_of(array)
        if facts.leaf != "numbers" or facts.array is None:
            return ""
        array = asarray(np.empty(0, facts.dtype))
        if not is_rejected(array):
            return ""
    cast = next((name for name in _casts(array) if not is_rejected(asarray(np.empty(0, name)))), "")
    by_type = not cast or array.ndim == 1 or is_rejected(array[:0].reshape(-1))
    return cast if by_type else ""  # otherwise the library rejects the dimensions


# --------------------------------------------------------------------------------------------------- other objects


def _of_sparse(obj: Any, x: Any, consumer: str) -> Verdict:
    if consumer == "arrayhub.SparseArray":
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer))
    if consumer in RULES:
        error = try_call(check_export, x, consumer)[1]
        if error is not None:
            return Verdict(consumer, CANNOT, _reason(error), getattr(error, "call", ""))
        why = why_copied(x, consumer)
        way = "device='cpu'" if RULES[consumer].host and not is_on_host(x) else "copy=True"
        return Verdict(consumer, COPY if why else ZERO_COPY, why, call_of(consumer, "x", *((way,) if why else ())))
    why = f"it is sparse, and {consumer} does not have sparse arrays; to_dense() makes a dense copy"
    dense = asarray(np.empty((0,) * len(x.shape), x.dtype))
    instead = f"{'x' if x is obj else 'arrayhub.assparse(x)'}.to_dense()"
    return Verdict(consumer, CANNOT, why, _call_on(instead, dense, consumer))


def _call_on(x: str, array: Any, consumer: str) -> str:
    """Return the call that exports the result of an expression, a fresh array like `array`."""
    if consumer in NESTING:
        found = _of_nested_consumer(None, Source(array), consumer, x)
    elif consumer in _ROWS:
        found = _of_dense(None, array, "", consumer, x)
    else:
        return call_of(consumer, x)
    if consumer == "jax" and found.verdict == ZERO_COPY:  # the address of the result is unknown
        return call_of(consumer, x, "copy=True")
    return found.call


def _of_named(obj: Any, source: Source, consumer: str) -> Verdict:
    """Return the verdict of arrayhub's own classes, xarray, registered libraries, and modules with ``from_dlpack``."""
    array = source.array
    if consumer == "arrayhub.NestedArray":
        if isinstance(array, USMArray) and array.ndim == 0:
            call = call_of(consumer, "arrayhub.asarray(x).reshape(-1)")
            return Verdict(consumer, CANNOT, "it has 0 dimensions; accepted: one or more", call)
        return Verdict(consumer, COPY if source.copied else ZERO_COPY, source.copied, call_of(consumer))
    if consumer in ("arrayhub.SparseArray", *RULES):
        return Verdict(consumer, CANNOT, "it is not a sparse array")
    dense = _of_node(obj, source, "numpy") if isinstance(array, NestedArray) else None
    is_module = consumer not in ("arrayhub", "xarray", *plugins.emitting())
    if is_module and (dense is None or dense.verdict in (COPY, ZERO_COPY)):
        return Verdict(consumer, NOT_TRIED, f"{consumer}.from_dlpack decides, and explain does not call it")
    if dense is not None:
        numbers = _facts_of(array).leaf in ("numbers", "records")
        if dense.verdict in (COPY, ZERO_COPY) and numbers:
            own = issubclass(type(obj), NestedArray)
            lists = not own and _facts_of(array).lists > 0  # `asarray` refuses lists without copy=True
            verdict, why = (COPY, "its lists become rows") if lists else (dense.verdict, dense.reason)
            arguments = ("copy=True",) if verdict == COPY else ()
            return Verdict(consumer, verdict, why, call_of(consumer, "x", *arguments))
        verdict = NOT_TRIED if dense.verdict == NOT_TRIED else CANNOT
        return Verdict(consumer, verdict, _reason(source.refusal) or dense.reason, "arrayhub.asnested(x)")
    if consumer == "xarray":
        obstacle = find_obstacle(_ROWS["numpy"].check_export, array, False)
        if obstacle:
            return Verdict(consumer, COPY, obstacle, call_of(consumer, "x", _way_to_copy(array, consumer)))
    if source.copied:
        return Verdict(consumer, COPY, source.copied, call_of(consumer))
    return Verdict(consumer, ZERO_COPY, "", call_of(consumer))


def _of_rejected(obj: Any, consumer: str, source: Source) -> Verdict:
    """Return the verdict on an object that neither `asarray` nor `asnested` imports."""
    why = _reason(source.refusal)
    refused = form_of(source.refusal) if source.refusal is not None else None
    call = refused.call if isinstance(refused, Refusal) else ""
    if source.kind == "sparse" and call and root_of(type(obj)) == "onedal":
        if consumer in RULES:
            argument = "dtype='float32'" if consumer == "jax" else "copy=True"
            return Verdict(consumer, COPY, why, call_of(consumer, "x", argument))
        empty = asarray(np.empty((0, 0), attempt(requested_dtype, obj.dtype)[0]))
        return Verdict(consumer, CANNOT, why, _call_on(f"{call}.to_dense()", empty, consumer))
    own = wrappers.expression(obj)
    if is_pandas(obj):
        subtype = getattr(getattr(obj, "dtype", None), "subtype", None)  # of sparse columns
        dense = attempt(asarray, np.empty(0, subtype))[0] if isinstance(subtype, np.dtype) else None
        sparse_only = consumer in RULES and consumer not in _ROWS
        call = "" if dense is None or sparse_only else _call_on("x.to_numpy()", dense, consumer)
        return Verdict(consumer, CANNOT, why, call)
    if "collect()" in own:
        export = consumer in NESTING
        return Verdict(consumer, CANNOT, why, call_of(consumer, own) if export else f"arrayhub.asnested({own})")
    nested = call.startswith("arrayhub.asnested(") and consumer not in NESTING
    if own.startswith("arrayhub.") or call.startswith("arrayhub.as_") or nested:
        return Verdict(consumer, CANNOT, why, own or call)
    if call.endswith(("x.to_list()", "x.to_dicts()")):  # Python objects, which no library stores
        return Verdict(consumer, CANNOT, why, call)
    call = own or call
    if not call or (consumer in RULES and consumer not in _ROWS):  # a library that has only sparse arrays
        return Verdict(consumer, CANNOT, why)
    array = attempt(_array_like, obj)[0]
    if array is not None or root_of(type(obj)) == "torch":
        return Verdict(consumer, CANNOT, why, "" if array is None else _call_on(call, array, consumer))
    if consumer in NESTING or consumer == "numpy" or consumer not in _ROWS:
        return Verdict(consumer, CANNOT, why, call_of(consumer, call))
    return Verdict(consumer, CANNOT, why, call_of(consumer, call, "copy=True"))


def _array_like(obj: Any) -> Any:
    """Return an empty array with the element type and the number of dimensions of an object that `asarray` rejects."""
    dtypes = getattr(obj, "dtypes", None)  # of an xarray.Dataset
    dtype = np.result_type(*dtypes.values()) if isinstance(dtypes, Mapping) else requested_dtype(obj.dtype)
    return asarray(np.empty((0,) * getattr(obj, "ndim", 1), dtype))
