"""advise: the verdict of a library on an object, and the call that works, from types and layouts.

`explain` shows the results of `advise`, and the field `call` of a refusal is the same call. Nothing is converted:

- The object is imported as a view. An object that `asnested` copies is represented by an empty array of its type, a
  pandas object by some rows, a wide table by some columns, and Python values by the first values.
- A part of the array without elements is converted, which gives the element type or the error of a conversion.
- ``Library.check_export`` and the functions ``check`` and ``why_copied`` of the modules in `export` raise or return the
  reason for which the export would fail or copy. The exports use the same functions.

The call is the first one that these functions accept: of the object itself, with the keywords that are missing, of its
rows, fields or codes, or of the object after a cast by pyarrow. Where a conversion depends on the values, such as on
rows of equal lengths, the call works for all values.
"""

import math
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from arrayhub import transfer
from arrayhub._core.copying import VIEW, Copy
from arrayhub._core.descriptor import is_host_readable
from arrayhub._core.dtypes import FIRST_OWN_TYPENUM, requested_dtype
from arrayhub._core.errors import (
    NO_CUDA_DEVICE,
    RangeRefusal,
    Refusal,
    ValueRefusal,
    form_of,
    missing_library_error,
    root_of,
)
from arrayhub._core.tree import kind_of
from arrayhub.adapters.arrow import type_name, unread
from arrayhub.adapters.dlpack import peek
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.containers import columns_of_objects, is_frame
from arrayhub.convert.functions import EXPORTERS, as_numpy, asarray, import_unadvised, is_array_of, objects_of
from arrayhub.convert.names import NESTED, OWN, SPARSE, sparse_library
from arrayhub.inspection.datashape import type_of
from arrayhub.inspection.explain import CANNOT, COPY, NOT_TRIED, ZERO_COPY, Verdict
from arrayhub.inspection.texts import attempt, is_capsule, printable, reason, try_call
from arrayhub.inspection.unread import import_unread
from arrayhub.inspection.values import LOOKED_AT, MAX_COLUMNS, array_like_value, first_values, sample_table
from arrayhub.libraries import plugins, wrappers
from arrayhub.libraries.dtypes import cast_times
from arrayhub.libraries.jax import NARROWED, has_x64
from arrayhub.libraries.known import LIBRARIES, NESTING
from arrayhub.libraries.numpy import VALUES, refuse_unit
from arrayhub.libraries.table import coo_of_columns
from arrayhub.libraries.xarray import is_data_array
from arrayhub.nested.array import NestedArray, facts_of, make, make_chunked, nested_of, part
from arrayhub.nested.asnested import as_series, correct_import, import_nested, is_arrow_scalar, is_column, is_pandas
from arrayhub.nested.conform import element_type, is_days
from arrayhub.nested.export import get_rules
from arrayhub.nested.from_awkward import is_awkward
from arrayhub.nested.logical_types import NUMPY_UNITS
from arrayhub.nested.missing import values_and_mask
from arrayhub.nested.opaque import has_bitmap, is_list_view, is_run_end
from arrayhub.nested.to_device import child_nodes, walk
from arrayhub.runtimes.cuda import has_device
from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.export import SparseKind, check_kind, sparse_kind_of, why_copied
from arrayhub.sparse.libraries import RULES, sparse_or_none

_ROWS = {row.name: row for row in LIBRARIES if row.call is not None}
_IMPORTS = {OWN: "asarray", NESTED: "asnested", SPARSE: "assparse"}  # functions, by the name of the result's class
_BY_COPY = "arrayhub.asarray(x, copy=None)"  # of an object without memory, such as an image of bits
_MAX_DENSE = 2**40  # size in bytes of dense copies that no call proposes
_advising = threading.local()  # whether the thread is looking for a call. Errors meanwhile do not need one
_MODULES = {"arrow": "pyarrow", "pydata_sparse": "sparse"}  # libraries whose name in `convert` is not their module's
_find_module = lru_cache(find_spec)


@dataclass(frozen=True)
class Source:
    """An object as `advise` and `explain` see it."""

    array: Any  # a view of the object, or if `copied`, an array of the same type. None if no function imports it
    copied: str = ""  # why the import copies the object, or ""
    refusal: BaseException | None = None  # the error of `asarray` or `assparse`, if it rejects the object
    length: int | None = None  # number of elements of an object that `array` is a part of
    columns: int | None = None  # number of columns of a table that `array` is a part of
    kind: str = ""  # "values", "sparse" or ""
    stream: str = ""  # what a stream or a query is that is not read
    needs_copy: bool = False  # whether `asnested` imports the object only with copy=None or copy=True

    @cached_property
    def column(self) -> "_Column":
        """The nested array as libraries of dense arrays receive it."""
        return _column_of(self.array)

    @property
    def call(self) -> str:
        """The call in the refusal, or ""."""
        return self.refusal.call if isinstance(self.refusal, Refusal) else ""

    @property
    def reason(self) -> str:
        """Why the import failed, or was not tried."""
        if self.stream:
            return "explain does not read the data; arrayhub.asnested(x) does"
        return reason(self.refusal)

    @property
    def summary(self) -> str:
        """Description of the array."""
        x = self.array
        if x is None:
            return self.stream or "no array"
        if self.kind == "values":
            return "nested values, which are copied"
        if isinstance(x, SparseArray):
            text = repr(x)[len("<SparseArray: ") : -1]
        elif isinstance(x, NestedArray):
            rows, _, element = str(x.type).partition(" * ")
            rows = rows if self.length is None else str(self.length)
            of_all = f"{rows} * {element}"
            text = of_all if self.columns is None else f"{rows} rows with {self.columns} columns, such as {element}"
        elif self.copied and self.refusal is None:
            return f"a value, which NumPy converts to {x.dtype}"
        else:
            text = printable(str(attempt(type_of, x)[0]))
        if self.copied:
            return f"{text}, which is copied"
        chunks = f", in {len(x.chunks)} chunks" if isinstance(x, NestedArray) and kind_of(x).chunks else ""
        return f"{text}, {x.access}, on {x.device}{chunks}"

    @property
    def consumers(self) -> tuple[str, ...]:
        """The libraries that `explain` lists."""
        if self.kind == "sparse":
            return tuple(RULES)
        if self.kind == "values" or self.stream:
            return (*EXPORTERS, *NESTING)
        if isinstance(self.array, NestedArray):
            return ("numpy", "torch", *NESTING)
        registered = () if self.array is None or self.copied else plugins.emitting()
        return (*EXPORTERS, *registered)


def complete_refusal(error: BaseException, obj: Any, consumer: str, *arguments: Any, **options: Any) -> BaseException:
    """Return the error of an export of `obj`, with the call that works in its field `call`.

    The other arguments are those of the export: copy, dtype, device and missing.
    """
    refusal: BaseException = form_of(error)
    if isinstance(refusal, Refusal) and not getattr(_advising, "now", False):
        failed = _failed_calls(obj, consumer, *arguments, **options)
        if refusal.subject == "asnested":
            failed.append(call_of(NESTED))
        if not _is_complete(refusal):
            _complete(refusal, obj, consumer, failed)
        refusal.call = "" if refusal.call in failed else refusal.call
    return refusal


def _failed_calls(
    obj: Any, consumer: str, copy: Any = False, dtype: Any = None, device: Any = None, missing: Any = None
) -> list[str]:
    """Return the call with these arguments, and the calls that copy less, which fail for the same reason."""
    name = getattr(attempt(requested_dtype, dtype)[0], "name", None)
    arguments = (f"dtype={name!r}", f"missing={attempt(repr, missing)[0]}", f"device={attempt(str, device)[0]!r}")
    given = [text for text, x in zip(arguments, (dtype, missing, device), strict=True) if x is not None]
    made = 1 if copy is False else 2 if copy is None else 3
    first = made - 1 if _is_returned_unchanged(obj, consumer) else 0
    return [call_of(consumer, "x", *given, way) for way in ("", "copy=None", "copy=True")[first:made]]


def _complete(refusal: Refusal, obj: Any, consumer: str, failed: list[str]) -> None:
    source = import_source(obj)
    found = advise(obj, consumer, source)
    is_range = isinstance(refusal, RangeRefusal)
    # `advise` neither reads elements nor calls the library, so the call that it expects to work may have failed.
    by_library = hasattr(refusal, "plugin") or (refusal.__cause__ is not None and found.verdict == ZERO_COPY)
    # Values are built whatever the arguments are, and `advise` does not run queries, so that the same call fails again.
    is_same = (issubclass(type(obj), (*VALUES, dict)) or found.verdict == NOT_TRIED) and found.call == call_of(consumer)
    is_same = is_same or found.call in failed
    is_place = refusal.call == "x.to_host()"  # of the device that the argument `device` names
    is_argument = refusal.subject.partition(":")[0] in ("dtype", "missing")  # the call without this argument works
    if found.verdict == CANNOT or is_place or is_argument or not (by_library or is_same or is_range):
        is_table = isinstance(source.array, NestedArray) and kind_of(source.array.chunks[0]).fields
        # The common type of a table may round an integer whatever `missing` is, and jax would narrow elements.
        fails = is_range and (consumer == "jax" or (is_table and "missing='nan'" in found.call))
        refusal.call = "" if fails else found.call
    elif refusal.call == "x.to_list()" and not hasattr(obj, "to_list"):  # of an array that was made of `obj`
        refusal.call = ""
    if refusal.call and (attempt(unread, obj)[0] or "").startswith("a stream"):  # a query runs again
        refusal.accepted = ". ".join(filter(None, (refusal.accepted, "If the stream has been read, create it again")))


def _is_complete(refusal: Refusal) -> bool:
    """Return whether a refusal depends on values, or is about the argument `dtype`, and names its call."""
    return bool(refusal.call) and (refusal.subject.startswith("dtype") or isinstance(refusal, RangeRefusal))


def advise(obj: Any, consumer: str, source: Source | None = None) -> Verdict:
    """Call `_advise`. An exception of the object or of a library becomes the reason of the verdict."""
    verdict, error = _try_advising(_advise, obj, consumer, source)
    return Verdict(consumer, CANNOT, reason(error)) if verdict is None else verdict


def _try_advising(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """Call `try_call`. Refusals that are raised and caught in it are not completed, which could recur without end."""
    before, _advising.now = getattr(_advising, "now", False), True
    try:
        return try_call(function, *arguments)
    finally:
        _advising.now = before


def _advise(obj: Any, consumer: str, source: Source | None) -> Verdict:
    """Return the verdict of a library, named as in `convert`, on an object, with the call that works or "".

    `source` is the result of `import_source`, if the caller has it.
    """
    if _is_returned_unchanged(obj, consumer):
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer))
    absent = _absence(consumer)
    if absent:
        return Verdict(consumer, CANNOT, absent)
    source = import_source(obj) if source is None else source
    if source.stream:
        call = call_of(consumer if consumer in NESTING and consumer != "awkward" else NESTED)
        return Verdict(consumer, NOT_TRIED, source.reason, call)
    if source.needs_copy:
        found = _advise(obj, consumer, replace(source, needs_copy=False))
        return Verdict(consumer, found.verdict, found.reason, found.call.replace("(x)", "(x, copy=True)"))
    array = source.array
    if (array is None or consumer in (*NESTING, NESTED)) and is_frame(obj) and not obj.columns.is_unique:
        renamed = obj.set_axis(range(obj.shape[1]), axis=1)
        call = _call_on("x.set_axis(range(x.shape[1]), axis=1)", renamed, consumer)
        return Verdict(consumer, CANNOT, find_obstacle(import_nested, obj), call)
    if array is None and consumer == "pandas" and (columns := columns_of_objects(obj)):
        return _advise({str(k): column for k, column in enumerate(columns)}, consumer, None)
    if array is None:
        return _of_rejected(obj, consumer, source)
    if isinstance(array, SparseArray):
        return _of_sparse(obj, array, consumer)
    if isinstance(array, USMArray) and not array.ndim and consumer in (*NESTING, NESTED):
        call = _call_on("arrayhub.asarray(x).reshape(-1)", array.reshape(-1), consumer)
        return Verdict(consumer, CANNOT, "it has 0 dimensions; accepted: one or more", call)
    if consumer in (*NESTING, NESTED):
        obstacle = find_obstacle(nested_of, array) if isinstance(array, USMArray) else ""  # packed elements
        is_list = source.copied and issubclass(type(obj), (list, tuple))
        items = attempt(first_values, obj)[0] if is_list else None  # None for rows of different lengths
        obstacle = obstacle or (find_obstacle(import_nested, items[0]) if items else "")  # as integers among floats
        if obstacle:
            return Verdict(consumer, CANNOT, obstacle)
    if consumer in NESTING:
        return _of_nested_consumer(obj, _as_nested(obj, source) if isinstance(array, USMArray) else source, consumer)
    if isinstance(obj, np.ndarray) and wrappers.known(type(obj)).refuses_protocols:  # whose memory is not the values
        return Verdict(consumer, CANNOT, source.reason, _call_on("arrayhub.asnested(x)", array, consumer))
    if consumer not in _ROWS:
        return _of_named(obj, source, consumer)
    if isinstance(array, NestedArray):
        return _of_node(obj, source, consumer)
    return _of_dense(obj, array, source.copied, consumer)


def call_of(consumer: str, x: str = "x", *arguments: str) -> str:
    """Return the call that exports `x` to a library. Arguments that are "" are left out."""
    name = _IMPORTS.get(consumer) or (f"as_{consumer}" if consumer in (*EXPORTERS, *NESTING, "scipy") else "")
    library = "" if name else repr(consumer)
    return f"arrayhub.{name or 'convert'}({', '.join(filter(None, (x, library, *arguments)))})"


def _call_on(expression: str, other: Any, consumer: str) -> str:
    """Return the call that exports the result of an expression of ``x`` to a library.

    `other` is the result, or an array of its type. The call is "" if `other` is None.
    """
    call = "" if other is None else _advise(other, consumer, None).call
    if call == call_of("jax"):  # the address of the result is unknown
        call = call_of("jax", "x", "copy=True")
    return _replace_x(call, expression)


def _replace_x(call: str, expression: str) -> str:
    return re.sub(r"\bx\b", expression, call)


def _absence(consumer: str) -> str:
    """Return why the arrays of a library cannot be created on this machine, or ""."""
    name = _MODULES.get(consumer, consumer)
    if name in sys.modules or consumer not in (*_ROWS, *NESTING, *RULES, "xarray") or attempt(_find_module, name)[0]:
        return ""
    if consumer == "cupy" and not has_device():
        return NO_CUDA_DEVICE
    return str(missing_library_error(name, "to create its arrays"))


def find_obstacle(check: Callable[..., Any], *arguments: Any) -> str:
    """Return the reason for which ``check(*arguments)`` raises an exception, or "" if it does not."""
    return attempt(check, *arguments)[1]


# ------------------------------------------------------------------------------------------------------------- import


def import_source(obj: Any) -> Source:
    """Import an object without a copy, or an array of its type. Exceptions of the object become `Source.refusal`."""
    source, error = _try_advising(_import_source, obj)
    return Source(None, refusal=error) if source is None else source


def _import_source(obj: Any) -> Source:
    cls = type(obj)
    if issubclass(cls, (NestedArray, SparseArray)):
        return Source(obj, kind="sparse" if issubclass(cls, SparseArray) else "")
    if issubclass(cls, USMArray):
        return Source(obj)
    if is_capsule(obj):
        array, error = try_call(peek, obj)
        return Source(array, refusal=error)
    stream = attempt(unread, obj)[0]
    if stream:
        array = attempt(import_unread, obj)[0]
        return Source(array, stream=stream if array is None else "")
    sparse, error = try_call(sparse_or_none, obj)
    if sparse is not None or (error is not None and (sparse_library(obj) or root_of(cls) == "onedal")):
        return Source(sparse, refusal=error, kind="sparse")
    like = _like_resolved(obj)
    if like is not None:
        why = "lazy conjugate and negative bits are resolved by a copy"
        return Source(like, why, Refusal("torch", why, call=_BY_COPY))
    values = issubclass(cls, (*VALUES, dict))
    array, error = try_call(array_like_value if issubclass(cls, VALUES) else import_unadvised, obj)
    if array is not None:
        why = f"a value of type {cls.__name__} cannot be viewed: asarray copies it through NumPy"
        return Source(array, why if values else "")
    if is_pandas(obj):
        return _import_pandas(obj, error)
    node, refused = (None, None) if issubclass(cls, VALUES) else try_call(import_nested, obj, copy=VIEW)
    if node is not None:
        part = _without_similar_columns(node)
        return Source(part, refusal=error, columns=None if part is node else len(node.chunks[0].children))
    node, failed = try_call(_copy_first, obj)
    needs_copy = node is None and issubclass(cls, dict)
    node = try_call(_copy_first, obj, None)[0] if needs_copy else node
    if values and isinstance(failed, Refusal) and failed.call:
        error = failed
    if not isinstance(node, NestedArray):
        is_copied = isinstance(error, Refusal) and error.call == _BY_COPY
        is_image = is_copied and getattr(error, "subject", "") == "PIL.Image"
        array = _like_image(obj) if is_image else attempt(import_unadvised, obj, copy=None)[0] if is_copied else None
        return Source(array, "" if array is None else reason(error), error)
    if values:
        return Source(node, "asnested copies the values", error, len(obj), kind="values", needs_copy=needs_copy)
    length = len(node) if is_arrow_scalar(cls) else attempt(len, obj)[0]
    return Source(node, reason(refused), error, length, needs_copy=needs_copy)


def _without_similar_columns(node: Any) -> Any:
    """Return a wide table without the columns that are stored as another column of the same type."""
    tables = node.chunks
    names = tables[0].field_names if kind_of(tables[0]).fields else ()
    if len(names) <= MAX_COLUMNS or len(set(names)) < len(names):
        return node
    stored: dict[Any, int] = {}
    for k, chunks in enumerate(zip(*(table.children for table in tables), strict=True)):
        stored.setdefault(tuple(map(_storage_of, chunks)), k)
    return make_chunked(_with_columns(table, stored.values()) for table in tables)


def _with_columns(table: Any, kept: Iterable[int]) -> Any:
    """Return the records with the columns at the positions `kept`."""
    facts = facts_of(table)
    chosen = {key: tuple(facts[key][k] for k in kept) for key in ("names", "parts", "child_fields") if key in facts}
    return make("record", len(table), **facts | chosen)


def _storage_of(column: Any) -> tuple[Any, ...]:
    is_node = isinstance(column, NestedArray)
    return (str(column.type), *_find_missing(column)) if is_node else (column.dtype, column.flags.num)


def _import_pandas(obj: Any, refusal: BaseException | None) -> Source:
    """Import the part of a pandas object that `sample_table` returns. pyarrow exports it once, for speed."""
    sample = sample_table(obj)
    node, failed = try_call(import_nested, sample)
    needs_copy = node is None
    node = try_call(import_nested, sample, copy=None)[0] if needs_copy else node
    if node is None:
        return Source(None, refusal=refusal)
    why = reason(failed) or find_obstacle(correct_import, as_series(sample), node, VIEW)
    columns = obj.shape[1] if obj.shape[1:] != sample.shape[1:] else None
    return Source(node, why, refusal, len(obj), columns, needs_copy=needs_copy)


def _copy_first(obj: Any, copy: Copy = False) -> Any:
    """Return a copy of the first elements of an object that `asnested` copies. Elements of ndarrays are not read."""
    cls = type(obj)
    if issubclass(cls, dict):
        columns = {name: _first_of_column(column) for name, column in obj.items()}
        return import_nested({name: x if copy is False else x[:LOOKED_AT] for name, x in columns.items()}, copy=copy)
    if issubclass(cls, np.ndarray):
        if wrappers.known(cls).refuses_protocols or attempt(refuse_unit, obj)[1]:  # such as a Quantity
            return None
        is_read = obj.ndim > 0 and (obj.dtype.hasobject or hasattr(cls, "mask"))
        return import_nested(obj[:LOOKED_AT] if is_read else _sample_ndarray(obj.dtype, obj.ndim))
    if is_arrow_scalar(cls):
        return import_nested(obj)
    is_sliced = issubclass(cls, (list, tuple)) or is_awkward(obj) or hasattr(cls, "__arrow_array__")
    if is_sliced or objects_of(obj) is not None:  # Python objects in an array of xarray
        return import_nested(obj[:LOOKED_AT])
    return None


def _first_of_column(column: Any) -> Any:
    """Return the first elements of a column of a dict, or the column itself if it has several chunks."""
    cls = type(column)
    if issubclass(cls, dict):
        return _copy_first(column)
    if issubclass(cls, (list, tuple, range)) or is_pandas(column) or is_awkward(column) or hasattr(cls, "__dlpack__"):
        return getattr(column, "iloc", column)[:LOOKED_AT]
    node = import_nested(column, copy=VIEW)  # a slice of other objects, such as arrays in files, may be an ndarray
    return node if len(node.chunks) > 1 else node[:LOOKED_AT]


def _first_values(record: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dict that stands for one record, with the first elements of its sequences."""
    sequences = (list, tuple, str, bytes, np.ndarray)
    return {name: value[:LOOKED_AT] if type(value) in sequences else value for name, value in record.items()}


def _as_nested(obj: Any, source: Source) -> Source:
    """Describe a dense array as the array that libraries of nested arrays receive: with its fields or Arrow type."""
    array, copied = source.array, source.copied
    has_text, has_fields = array.dtype.kind in "SUT", array.dtype.names is not None
    if not (has_text or has_fields) and (copied or array is obj or not is_column(obj)):
        return source
    empty = _sample_ndarray(array.dtype, array.ndim)
    first = empty if has_text else sample_table(obj) if is_pandas(obj) else obj
    node, why = attempt(import_nested, first, copy=VIEW)
    if node is None:
        node = attempt(import_nested, empty if has_text or has_fields else first)[0]
    return source if not isinstance(node, NestedArray) else replace(source, array=node, copied=copied or why)


def _is_returned_unchanged(obj: Any, consumer: str) -> bool:
    if consumer == "pandas" and is_pandas(obj):
        return type(obj).__name__ != "MultiIndex"
    is_xarray = consumer == "xarray" and is_data_array(type(obj)) and not obj.chunks  # dask is computed for copy=True
    return is_xarray or is_array_of(obj, consumer) or (consumer == "scipy" and sparse_library(obj) == "scipy")


# ----------------------------------------------------------------------------------------- to libraries of dense arrays


def _of_dense(obj: Any, array: Any, copied: str, consumer: str) -> Verdict:
    """Return the verdict of a library of dense arrays on a dense array, which is a fresh copy if `copied` is given."""
    values = issubclass(type(obj), VALUES)  # which are built without copy=True
    narrow = NARROWED.get(array.dtype.name) if values and consumer == "jax" and not has_x64() else None
    if narrow is not None:
        array = asarray(np.empty(array.shape, narrow))
        copied = f"{copied}; numbers that {narrow} cannot hold are refused"
    why = copied or _obstacle(array, consumer, False)
    if not why:
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer))
    obstacle = find_obstacle(transfer.check_source, array)  # such as a missing driver
    if obstacle:
        return Verdict(consumer, CANNOT, obstacle)
    obstacle = _obstacle(array, consumer)
    if not obstacle:
        way = "copy=True" if isinstance(obj, NestedArray) else _way_to_copy(array, consumer)
        return Verdict(consumer, COPY, why, call_of(consumer, "x", "" if values else way))
    if find_obstacle(getattr, array, "byte_strides"):  # elements of less than a byte, which are packed
        return Verdict(consumer, CANNOT, obstacle)
    made, call = None, ""
    if array.dtype.kind in "SUTOV":
        made = attempt(import_nested, np.empty((0,) * array.ndim, array.dtype))[0]
    if made is not None and array.dtype.names is not None and array.ndim == 1:
        records = "x" if issubclass(type(obj), np.ndarray) else "arrayhub.as_numpy(x)"
        call = _call_by_field(made, consumer, f"arrayhub.asnested({records})")
    missing = "missing='mask'" if array.dtype.kind in "mM" else ""  # integers would not show which times are NaT
    call = call or _call_on_numbers(consumer, "x", array, missing, _way_to_copy(array, consumer))
    return Verdict(consumer, CANNOT, obstacle, call or ("" if made is None else "arrayhub.asnested(x)"))


def _way_to_copy(array: Any, consumer: str) -> str:
    """Return the argument that requests a copy: `device` if a library needs memory on another device, else `copy`."""
    row = _ROWS.get(consumer, _ROWS["numpy"])
    if array.device.type == row.device_type or (row.reads_host and _is_on_host(array)):
        return "copy=True"
    return f"device={'cpu' if row.reads_host else f'{row.device_type}:0'!r}"


def _obstacle(array: Any, consumer: str, copied: bool = True, obj: Any = None) -> str:
    """Return why a library rejects an array, or its copy, or ""."""
    array = _type_of_copy(array) if copied and isinstance(array, USMArray) else array
    if consumer in NESTING:
        return find_obstacle(get_rules(consumer).check, array, copied, obj)
    return find_obstacle(_ROWS[consumer].check_export, array, copied)


def _is_on_host(array: Any) -> bool:
    return is_host_readable(array) if isinstance(array, USMArray) else array._is_on_host()


def _type_of_copy(array: Any) -> Any:
    """Return an array with the element type and the dimensions of a copy of `array`, which is native and compact."""
    if not find_obstacle(getattr, array, "strides") and (array.typenum >= FIRST_OWN_TYPENUM or array.dtype.isnative):
        return array
    made = _empty(array.dtype.newbyteorder("="), array.ndim)
    return array if made is None else made


def _empty(dtype: Any, ndim: int = 1) -> Any:
    """Return the array of `_sample_ndarray`, or None if `dtype` is not an element type."""
    found = None if dtype is None else attempt(requested_dtype, dtype)[0]
    return None if found is None else attempt(asarray, _sample_ndarray(found, ndim))[0]


def _sample_ndarray(dtype: Any, ndim: int) -> Any:
    """Return an empty array of a type, or two records, whose fields have gaps between them."""
    return np.zeros((2, *[1] * ndim)[:ndim] if dtype.names else (0,) * ndim, dtype)


def _call_on_numbers(consumer: str, x: str, array: Any, missing: str = "", way: str = "copy=True") -> str:
    """Return the call that exports a copy of an array, or casts it to a type that the library supports, or "".

    `missing` is the keyword for missing elements, or "". `way` is the keyword that requests the copy.
    """
    if not _obstacle(array, consumer):
        return call_of(consumer, x, missing, way)
    return _call_with_cast(consumer, x, [array], _casts(array.dtype), missing, way)


def _call_with_cast(consumer: str, x: str, arrays: list[Any], dtypes: Iterable[str], missing: str, way: str) -> str:
    """Return the call that casts each array to the first of several types that the library supports, or ""."""
    cast = next((name for name in dtypes if not _obstacle(_empty(name), consumer)), "")
    stays = all(_way_to_copy(array, consumer) == "copy=True" for array in arrays)
    if consumer == "jax" and cast in ("int32", "uint32") and stays:  # `dtype` would wrap integers out of range
        return f"arrayhub.like({', '.join(filter(None, (x, 'jax.numpy.zeros(0)', missing)))})"
    way = "" if stays and cast not in [str(array.dtype) for array in arrays] else way  # a cast to another type copies
    return cast and call_of(consumer, x, f"dtype={cast!r}", missing, way)


def _missing_keyword(array: Any) -> str:
    """Return the keyword that replaces missing floats by NaN, and that returns a mask for other elements."""
    return "missing='nan'" if array.dtype.kind == "f" and array.dtype.itemsize >= 4 else "missing='mask'"


# Element types for casts, by the kind of the dtype: without loss if NumPy can cast without loss, else the second row.
_LOSSLESS = ("uint8", "int8", "float32", "complex64", "float64", "complex128", "int64", "uint64")
_TIMES = {kind: [f"{kind}8[{unit}]" for unit in ("s", "ms", "us", "ns")] for kind in "mM"}
_LOSSY = {
    **dict.fromkeys("mM", ("int64",)),
    "i": ("int32",),
    "u": ("uint32",),
    "f": ("float64", "float32"),
    "c": ("complex128", "complex64"),
}


def _casts(dtype: Any) -> Iterator[str]:
    """Yield the element types to which numbers or times can be cast."""
    if str(dtype).endswith("complex32"):  # NumPy does not have this type
        yield "complex64"
    elif dtype.kind in "iufcVmM" and dtype.names is None:
        yield from (n for n in _TIMES.get(dtype.kind, _LOSSLESS) if np.can_cast(dtype, n) and dtype != np.dtype(n))
        yield from _LOSSY.get(dtype.kind, ())


# ----------------------------------------------------------------------------- nested data to libraries of dense arrays


class _Column(NamedTuple):
    """A node as libraries of dense arrays receive it."""

    array: Any  # the type of a copy of the innermost elements, a matrix for records; None if they are not numbers
    why: str  # why the innermost elements are not numbers, or ""
    leaf: Any  # the node of the innermost elements, or the node itself without lists of variable lengths
    lists: int  # levels of lists of variable lengths
    rows: bool  # whether there are also rows of a fixed length
    missing: bool  # whether elements may be missing
    missing_rows: bool  # whether lists of variable lengths may be missing

    @property
    def is_missing(self) -> bool:
        return self.missing or self.missing_rows

    def suits(self, consumer: str) -> bool:
        """Return whether the innermost elements are numbers, or for NumPy, strings."""
        return self.array is not None or (consumer == "numpy" and kind_of(self.leaf).utf8 and not self.rows)


def _column_of(node: Any) -> _Column:
    """Describe a node by its kinds and bitmaps, and by the conversion of a part without elements."""
    leaf = below = nested_of(node).chunks[0]
    lists, rows = 0, False
    while kind_of(below).lists or is_list_view(below):
        varies = not kind_of(below).width
        below = nested_of(child_nodes(below)[0]).chunks[0]
        lists, rows = lists + varies, rows or not varies
        leaf = below if varies else leaf
    array, why = attempt(lambda empty: values_and_mask(empty, None)[0], part(leaf, 0, 0))
    if lists and kind_of(leaf).fields:
        array, why = None, "the rows consist of records"
    return _Column(array, why, leaf, lists, rows, *_find_missing(node))


def _find_missing(node: Any) -> tuple[bool, bool]:
    """Return whether elements, and whether lists of variable lengths, may be missing. Elements are not read."""
    if not isinstance(node, NestedArray):
        return False, False
    kind = kind_of(node)
    nodes = child_nodes(node) if kind.chunks or kind.fields or kind.lists or kind.opaque else ()
    if kind.lists and not kind.width and _is_on_host(node):  # the content may have elements outside of the lists
        nodes = (part(nodes[0], *np.asarray(node.offsets)[[0, -1]].tolist()),)
    below = list(map(_find_missing, nodes))
    elements, rows = any(found[0] for found in below), any(found[1] for found in below)
    own = not kind.chunks and node.validity is not None and (not _is_on_host(node) or node.null_count > 0)
    own = own or (kind.opaque and len(node) > 0 and not has_bitmap(node) and not is_run_end(node))
    is_list = (kind.lists and not kind.width) or is_list_view(node)
    return elements or (own and not is_list), rows or (own and is_list)


def _of_node(obj: Any, source: Source, consumer: str) -> Verdict:
    """Return the verdict of a library of dense arrays on nested data."""
    node, column = source.array, source.column
    own = issubclass(type(obj), NestedArray)
    of_objects = objects_of(obj) is not None or (issubclass(type(obj), np.ndarray) and obj.dtype.hasobject)
    if (issubclass(type(obj), VALUES) or of_objects) and (
        kind_of(column.leaf).fields or (column.array is not None and column.array.dtype.kind in "mM")
    ):  # lists of records and of times, which only asnested imports
        call = _call_on("arrayhub.asnested(x)", node, consumer)
        return Verdict(consumer, CANNOT, source.reason, call_of(NESTED) if "to_list" in call else call)
    found = _of_column(obj, source, consumer, column)
    if found.verdict in (CANNOT, NOT_TRIED) and not found.call:
        x = "arrayhub.asnested(x, copy=True)" if len(node.chunks) > 1 else "x" if own else "arrayhub.asnested(x)"
        call = _call_on_parts(node, consumer, column, x) or _call_without_library(obj, source)
        found = Verdict(consumer, found.verdict, found.reason, call)
    shared = not column.lists and (kind_of(node).numbers or kind_of(node).width)
    if node.device.type == "cpu" or shared:
        return found
    call = _replace_x(found.call, "arrayhub.asnested(x, copy=True)")
    why = f"the memory is on {node.device}, and only NestedArrays are exported from there"
    return Verdict(consumer, CANNOT, why, call)


def _call_without_library(obj: Any, source: Source) -> str:
    """Return the call for nested data that the library cannot represent in any form."""
    if not issubclass(type(obj), NestedArray):
        return call_of(NESTED, "x", "copy=None" if source.call == _BY_COPY else "")
    return "x.to_list()" if _is_on_host(obj) else "x.to_host().to_list()"


def _of_column(obj: Any, source: Source, consumer: str, column: _Column) -> Verdict:
    """Return the verdict on nested data that is converted as a whole: to one array, or to a jagged tensor."""
    node, array, own = source.array, column.array, issubclass(type(obj), NestedArray)
    fields = kind_of(column.leaf).fields
    if not column.lists and array is None and column.suits(consumer):
        why = "strings become NumPy's StringDType, which stores them in its own arena"
        if source.kind == "values" and isinstance(source.refusal, ValueRefusal):  # text that ends in NUL
            return Verdict(consumer, CANNOT, source.reason, call_of(consumer, "arrayhub.asnested(x)", "copy=True"))
        return Verdict(consumer, COPY, why, call_of(consumer, "x", "copy=True"))
    if fields and not column.lists and own and consumer == "numpy":  # an array of records
        nodes = map(nested_of, walk(column.leaf))
        has_lists = any(kind_of(one).lists or is_list_view(one) for one in nodes)  # of equal or unequal lengths
        why = "elements are missing" if column.missing else column.why if has_lists else ""
        why = why or attempt(as_numpy, part(column.leaf, 0, 0), copy=True)[1]  # also the index of a pandas frame
        if why:
            return Verdict(consumer, CANNOT, why)
        return Verdict(consumer, COPY, "NumPy stores records side by side", call_of(consumer, "x", "copy=True"))
    parts = [nested_of(one) for one in (node, *(column.leaf.children if fields else ()))]
    # The numbers of an extension type represent other values, such as periods.
    if array is None or (is_pandas(obj) and any(kind_of(one).numbers and one.extension is not None for one in parts)):
        return Verdict(consumer, CANNOT, column.why or f"elements are {column.leaf.type}")
    equal = None if column.is_missing else _has_equal_rows(node)
    if column.lists and not (equal and consumer != "torch"):
        if consumer == "torch" and column.lists == 1 and not column.rows and not column.missing:
            return _of_jagged(obj, source, column)
        if column.is_missing:
            return Verdict(consumer, CANNOT, "elements are missing")
        verdict = NOT_TRIED if equal is None and consumer != "torch" else CANNOT
        return Verdict(consumer, verdict, "arrays need rows of equal lengths")
    is_frame = fields and is_pandas(obj) and obj.ndim == 2
    if column.missing and not (is_frame and _has_only_nan(obj, column.leaf)):
        missing = _missing_keyword(array)
        if fields and _obstacle(_empty("f8"), consumer):  # missing='nan' converts integers to float64
            missing = "missing='mask'"
        call = _call_on_numbers(consumer, "x", array, missing)
        shared = consumer == "numpy" and kind_of(node).numbers and _is_on_host(node) and not source.copied
        if shared and missing == "missing='mask'":
            call = call_of(consumer, "x", missing)
        return Verdict(consumer, CANNOT, "elements are missing", call)
    leaf = column.leaf
    if own and kind_of(leaf).numbers and leaf.meaning is not None and consumer != "numpy":
        call = _call_on_numbers(consumer, "arrayhub.as_numpy(x, copy=True)", array)
        return Verdict(consumer, CANNOT, f"{type_name(leaf.meaning)} is not supported", call)
    view, change = attempt(node.to_dense)
    refused = source.refusal is not None and kind_of(node).numbers and not own  # date64, which a copy converts to times
    if view is not None and not source.copied and not refused:
        return _of_dense(obj, view, "", consumer)
    why = _obstacle(array, consumer)
    missing = "missing='mask'" if is_frame and array.dtype.kind in "mM" else ""
    call = _call_on_numbers(consumer, "x", array, missing)
    change = source.copied or change or (reason(source.refusal) if refused else "")
    if fields and len({element_type(nested_of(field)) for field in column.leaf.children}) > 1:
        change += f"; OverflowError if {array.dtype} cannot represent a value"
    return Verdict(consumer, CANNOT if why else COPY, why or change, call)


def _has_only_nan(frame: Any, table: Any) -> bool:
    """Return whether the missing elements of a pandas frame are NaN or NaT of NumPy's types, which are values.

    `table` is the imported frame. Missing elements of Python objects are not values.
    """
    missing = {name for name, field in zip(table.field_names, table.children, strict=True) if _find_missing(field)[0]}
    types = [(str(name), dtype) for name, dtype in frame.dtypes.items()]
    return all(isinstance(dtype, np.dtype) and not (dtype.hasobject and name in missing) for name, dtype in types)


def _of_jagged(obj: Any, source: Source, column: _Column) -> Verdict:
    """Return the verdict of torch on lists of numbers."""
    why = _obstacle(column.array, "torch") or ("rows are missing" if column.missing_rows else "")
    if why:
        return Verdict("torch", CANNOT, why)
    leaf, change = attempt(nested_of(column.leaf).to_dense)
    several = len(source.array.chunks) > 1 or kind_of(source.array).opaque
    why = source.copied or change or ("its lists are converted" if several else "")
    why = why or _obstacle(leaf, "torch", False)
    keyword = "copy=True" if why and not issubclass(type(obj), VALUES) else ""  # values are built
    return Verdict("torch", COPY if why else ZERO_COPY, why, call_of("torch", "x", keyword))


def _has_equal_rows(node: Any) -> bool | None:
    """Return whether the rows of lists have equal lengths. Return None if they are many or in chunks, or list views."""
    if len(node) > LOOKED_AT or not _is_on_host(node) or kind_of(node).chunks or kind_of(node).opaque:
        return None
    return not isinstance(try_call(node.to_dense)[1], ValueRefusal)


# Arrow's types that pyarrow casts to numbers or times, by the start of the format.
_ARROW_CASTS = {
    "d:": ("float64", "f8"),
    "ts": ("timestamp[{unit}]", "M8[{unit}]"),
    **dict.fromkeys(("tts", "ttm"), ("int32", "i4")),
    "tt": ("int64", "i8"),
}


def _call_on_parts(node: Any, consumer: str, column: _Column, x: str) -> str:
    """Return the call that converts the rows, the fields, the codes or the cast elements of a node, or "".

    Categories that are numbers or times are decoded, and the codes stand for others, such as strings.

    `x` is an expression for the node.
    """
    array = column.array
    if column.lists:
        if column.lists > 1 or not column.suits(consumer) or column.leaf.meaning is not None:
            return ""
        if column.missing_rows:
            x = f"{x}.fill_null([])"
            is_jagged = consumer == "torch" and not column.missing and not column.rows
            if is_jagged and not _obstacle(array, consumer):
                return call_of(consumer, x, "copy=True")
        call = call_of(consumer, "row", "copy=True")
        if array is not None:
            call = _call_on_numbers(consumer, "row", array, _missing_keyword(array) if column.missing else "")
        return call and f"[{call} for row in {x}]"
    if kind_of(column.leaf).fields:
        return _call_by_field(node, consumer, x)
    if kind_of(column.leaf).indices and isinstance(column.leaf.content, USMArray):  # numbers or times
        missing = _missing_keyword(column.leaf.content) if column.missing else ""
        values = "arrayhub.as_arrow(x, copy=True).dictionary_decode()"
        return _call_on_numbers(consumer, values, column.leaf.content, missing)
    if kind_of(column.leaf).indices and column.missing:
        codes = "arrayhub.as_arrow(x, copy=True).indices.cast('int32')"  # the codes of polars are unsigned
        return call_of(consumer, codes, "missing=-1", "copy=True")
    if kind_of(column.leaf).indices:
        return _call_on_numbers(consumer, f"{x}.indices", node.chunks[0].indices)
    target, dtype = next((cast for text, cast in _ARROW_CASTS.items() if str(node.meaning).startswith(text)), ("", ""))
    target, dtype = (text.format(unit=NUMPY_UNITS.get(str(node.meaning)[2:3])) for text in (target, dtype))
    if dtype == "i8" and _obstacle(_empty(dtype), consumer):  # the microseconds of a day exceed 32 bits
        return ""
    missing = _missing_keyword(_empty(dtype)) if dtype and column.missing else ""
    return dtype and _call_on_numbers(consumer, f"arrayhub.as_arrow(x).cast({target!r})", _empty(dtype), missing)


def _call_by_field(record: Any, consumer: str, x: str) -> str:
    """Return the call that converts each field of the records `x`, or "" if a field cannot be converted."""
    names, columns = record.field_names, list(map(_column_of, record.children))
    missing = "missing='mask'" if any(column.missing for column in columns) else ""
    library = "" if missing else consumer  # NumPy's masked arrays do not support strings
    is_flat = all(column.suits(library) and not column.lists and not column.rows for column in columns)
    if not is_flat or len(set(names)) < len(names) or any(chunk.null_count for chunk in record.chunks):
        return ""
    arrays = [column.array for column in columns if column.array is not None]
    call = call_of(consumer, "column", missing, "copy=True")
    if any(_obstacle(array, consumer) for array in arrays):
        common = attempt(np.result_type, *(array.dtype for array in arrays))[0]
        dtypes = () if common is None else (common.name, *_casts(common))
        call = _call_with_cast(consumer, "column", arrays, dtypes, missing, "copy=True")
    return call and f"{{key: {call} for key, column in {x}.fields.items()}}"


# ---------------------------------------------------------------------------------------- to libraries of nested arrays


def _of_nested_consumer(obj: Any, source: Source, consumer: str) -> Verdict:
    array = source.array
    obstacle = _obstacle(array, consumer, False, obj)
    if not obstacle:
        why = source.copied or get_rules(consumer).why_copied(array, obj)
        way = "copy=True" if source.call == _BY_COPY else ""
        return Verdict(consumer, COPY if why else ZERO_COPY, why, call_of(consumer, "x", way))
    why = _obstacle(array, consumer, True, obj) or find_obstacle(transfer.check_source, array)
    if why:
        return Verdict(consumer, CANNOT, why, _call_instead(obj, source, consumer))
    change = source.copied or obstacle
    if isinstance(array, USMArray) and is_days(array) and consumer in ("arrow", "polars"):
        change += "; OverflowError for days that date32 cannot hold"
    return Verdict(consumer, COPY, change, call_of(consumer, "x", _way_to_copy(array, consumer)))


def _call_instead(obj: Any, source: Source, consumer: str) -> str:
    """Return the call for an array that a library of nested arrays also rejects as a copy."""
    array = source.array
    numbers = array if isinstance(array, USMArray) else source.column.array
    if numbers is not None and _obstacle(_empty(numbers.dtype), consumer):  # else the library rejects the dimensions
        call = _call_on_numbers(consumer, "x", numbers, way="")
        if call:
            return call
    if consumer != "arrow":  # Arrow has the most types
        return _of_nested_consumer(obj, source, "arrow").call
    return _call_without_library(obj, source)


# --------------------------------------------------------------------------------------------------- other objects


def _of_sparse(obj: Any, x: Any, consumer: str) -> Verdict:
    if consumer == SPARSE:
        return Verdict(consumer, ZERO_COPY, "", call_of(consumer))
    own = "x" if x is obj else "arrayhub.assparse(x)"
    if consumer in RULES:
        kind = sparse_kind_of(x)
        obstacle = _obstacle_to_sparse(kind, consumer)
        if obstacle:
            return Verdict(consumer, CANNOT, obstacle, _call_on_sparse(x, kind, consumer, own))
        why = why_copied(x, consumer)
        way = "device='cpu'" if RULES[consumer].host and not _is_on_host(x) else "copy=True"
        return Verdict(consumer, COPY if why else ZERO_COPY, why, call_of(consumer, "x", way if why else ""))
    why = f"it is sparse, and {consumer} does not have sparse arrays; to_dense() makes a dense copy"
    return Verdict(consumer, CANNOT, why, _call_on_dense(x, consumer, own))


def _obstacle_to_sparse(kind: SparseKind, consumer: str) -> str:
    """Return why a library rejects sparse arrays of a kind, even as copies, or ""."""
    why = find_obstacle(check_kind, kind, consumer)
    return why or (_obstacle(_empty(kind.dtype), consumer) if consumer in _ROWS else "")


def _call_on_sparse(x: SparseArray, kind: SparseKind, consumer: str, own: str) -> str:
    """Return the call that converts the element type, the format and the dimensions to what a library supports."""
    moved = RULES[consumer].host and not _is_on_host(x)
    plain = kind._replace(is_uneven=False)
    formats = [("x", kind), (f"{own}.to_format('coo')", plain._replace(format="coo", batch_ndim=0))]
    if not (kind.batch_ndim or kind.dense_ndim) and len(kind.shape) == 2:
        formats.insert(1, (f"{own}.to_format('csr')", plain._replace(format="csr")))
    for dtype in (None, *_casts(x.dtype)):
        for given, made in formats:
            wanted = made if dtype is None else made._replace(dtype=np.dtype(dtype))
            if not _obstacle_to_sparse(wanted, consumer):
                cast = "" if dtype is None else f"dtype={dtype!r}"
                return call_of(consumer, given, cast, "device='cpu'" if moved else "" if cast else "copy=True")
    return _call_on_dense(x, consumer, own)


def _call_on_dense(x: SparseArray, consumer: str, own: str) -> str:
    """Return the call that exports a dense copy of a sparse array, or "" if the copy would exceed `_MAX_DENSE`."""
    if math.prod(x.shape) * x.dtype.itemsize > _MAX_DENSE:
        return ""
    if consumer in RULES and consumer not in _ROWS:  # a library that has only sparse arrays
        return f"{own}.to_dense()"
    return _call_on(f"{own}.to_dense()", _empty(x.dtype, len(x.shape)), consumer)


def _of_named(obj: Any, source: Source, consumer: str) -> Verdict:
    """Return the verdict of arrayhub's own classes, xarray, registered libraries, and modules with ``from_dlpack``."""
    array, copied = source.array, source.copied
    way = "copy=None" if copied and not issubclass(type(obj), (*VALUES, dict)) else ""
    if consumer in (SPARSE, *RULES):
        call = _call_on_pandas(obj, consumer) if is_pandas(obj) else ""
        return Verdict(consumer, CANNOT, "it is not a sparse array", call)
    if consumer != NESTED:
        column = source.column if isinstance(array, NestedArray) else None
        dense = Verdict("numpy", ZERO_COPY, copied) if column is None else _of_node(obj, source, "numpy")
        works = dense.verdict in (COPY, ZERO_COPY)
        if works and consumer not in ("arrayhub", "xarray", *plugins.emitting()):
            return Verdict(consumer, NOT_TRIED, f"{consumer}.from_dlpack decides, and explain does not call it")
        if not works or (column is not None and column.array is None):
            verdict = NOT_TRIED if dense.verdict == NOT_TRIED else CANNOT
            why = reason(source.refusal) or dense.reason
            return Verdict(consumer, verdict, why, _call_without_library(obj, source))
        if column is not None:
            leaf, copied = column.leaf, dense.reason or reason(source.refusal)
            if column.lists:  # which `asarray` refuses without copy=True, as dates of 8 bytes
                copied = "its lists become rows"
            elif kind_of(leaf).numbers and leaf.meaning is not None:
                copied = f"{type_name(leaf.meaning)} is converted to NumPy's times"
            way = copied and ("copy=None" if consumer == "arrayhub" else "copy=True")
        elif consumer == "xarray":
            like = attempt(np.empty, 0, array.dtype)[0]
            why = find_obstacle(cast_times, like, True, "xarray")  # times without a unit
            if why:
                return Verdict(consumer, CANNOT, why)
            obstacle = _obstacle(array, "numpy", False)
            obstacle = obstacle or find_obstacle(cast_times, like, False, "xarray")
            copied, way = obstacle or copied, _way_to_copy(array, consumer) if obstacle else way
    return Verdict(consumer, COPY if copied else ZERO_COPY, copied, call_of(consumer, "x", way))


def _of_rejected(obj: Any, consumer: str, source: Source) -> Verdict:
    """Return the verdict on an object that neither `asarray` nor `asnested` imports."""
    if root_of(type(obj)) == "onedal" and source.kind == "sparse" and consumer in (*RULES, SPARSE):
        way = "dtype='float32'" if consumer == "jax" else "copy=True"
        return Verdict(consumer, COPY, reason(source.refusal), call_of(consumer, "x", way))
    if isinstance(obj, np.ndarray) and obj.ndim != 1 and consumer in (NESTED, *NESTING):  # of strings or objects
        first = np.zeros(0, obj.dtype) if obj.dtype.kind == "T" else obj.flat[:LOOKED_AT]  # NumPy 2.4 would free T
        call = _call_on("x.reshape(-1)", first, consumer)
    elif is_pandas(obj):
        call = _call_on_pandas(obj, consumer)
    else:
        call = _call_on_rejected(obj, consumer, source)
    return Verdict(consumer, CANNOT, reason(source.refusal), call)


def _call_on_rejected(obj: Any, consumer: str, source: Source) -> str:
    """Return the call that exports the result of the call that the table of libraries, or the refusal, names."""
    call, own = source.call, "" if objects_of(obj) is not None else wrappers.advise(obj)[0]
    if issubclass(type(obj), dict) and source.kind != "sparse":  # whose refusal names a call for a column
        is_record = own == "arrayhub.asnested([x])" and not find_obstacle(import_nested, [_first_values(obj)])
        own = call = own if is_record else ""
    instead = own if call in ("", "arrayhub.asnested(x)") else call  # `asnested` failed, too
    if not instead:
        return ""
    needs_sparse = consumer in (*RULES, SPARSE) and consumer not in _ROWS
    if source.kind == "sparse" and needs_sparse and call.startswith("x."):  # such as a tensor to be coalesced
        return call_of(consumer, call)
    if "collect()" in instead:
        return call_of(consumer, instead) if consumer in NESTING else f"arrayhub.asnested({instead})"
    if instead.startswith("arrayhub.") and not (instead.startswith("arrayhub.asnested(") and consumer in NESTING):
        return instead
    if call.endswith(("x.to_list()", "x.to_dicts()")):  # Python objects, which no library stores
        return call
    is_part = instead in ("x.data", "x.magnitude")
    like = attempt(getattr, obj, instead[2:])[0] if is_part else attempt(_array_like, obj)[0]
    if like is not None or needs_sparse:
        return _call_on(instead, like, consumer)
    is_copied = consumer in _ROWS and consumer not in ("numpy", *NESTING)
    return call_of(consumer, instead, "copy=True" if is_copied else "")


def _call_on_pandas(obj: Any, consumer: str) -> str:
    """Return the call that exports the levels of a MultiIndex as columns, or sparse columns, or "" for other data."""
    if hasattr(obj, "levels"):
        names = [name for name in obj.names if name is not None]
        is_table = consumer in NESTING and len(set(names)) == len(names)
        return call_of(consumer, "x.to_frame(index=False)") if is_table else ""
    is_table = is_frame(obj)
    subtypes = [getattr(dtype, "subtype", None) for dtype in (obj.dtypes if is_table else [obj.dtype])]
    if not subtypes or any(subtype is None for subtype in subtypes):  # numpy.dtype("f8") == None
        return ""
    if consumer == SPARSE or (consumer in RULES and consumer not in _ROWS):
        matrix = coo_of_columns(obj)
        return matrix and call_of(consumer, matrix, "copy=True" if consumer == "pydata_sparse" else "")
    if is_table and consumer in NESTING:
        return call_of(consumer, "x.sparse.to_dense()")
    like = _empty(attempt(np.result_type, *subtypes)[0], 1 + is_table)  # None without a common type
    return _call_on("x.to_numpy(copy=True)" if is_table else "x.to_numpy()", like, consumer)


def _array_like(obj: Any) -> Any:
    """Return an array, or an object of pandas or polars, of the type that the table's call on `obj` returns."""
    if getattr(obj, "requires_grad", False):
        return obj.detach()
    if hasattr(obj, "divisions"):  # of dask.dataframe, which computes objects of pandas
        pandas: Any = sys.modules["pandas"]
        if obj.ndim == 1:
            return pandas.Series(dtype=obj.dtype)
        return pandas.DataFrame({name: pandas.Series(dtype=dtype) for name, dtype in obj.dtypes.items()})
    root, dtypes = root_of(type(obj)), getattr(obj, "dtypes", None)
    if root == "polars":  # the call casts a type that only polars defines to float
        return sys.modules["polars"].Series([None] * (obj.null_count() > 0), dtype=float)
    dtype: Any
    if isinstance(dtypes, Mapping):  # of an xarray.Dataset
        dtype = np.result_type(*dtypes.values())
    elif root in ("av", "cv2", "torch"):  # pictures, sound and storage without a dtype consist of bytes
        dtype = getattr(obj, "dtype", "uint8")
    else:
        dtype = obj.type if root == "pyarrow" else getattr(obj.dtype, "subtype", obj.dtype)  # of sparse elements
    return _empty(dtype, getattr(obj, "ndim", 1))


def _like_resolved(obj: Any) -> Any:
    """Return an array of the type and shape of a tensor with lazy bits on the host, or None for other objects."""
    if root_of(type(obj)) != "torch" or not isinstance(obj, sys.modules["torch"].Tensor):
        return None
    if obj.requires_grad or obj.layout is not sys.modules["torch"].strided or not obj.is_cpu:
        return None
    like = _empty(obj.dtype) if obj.is_conj() or obj.is_neg() else None
    return None if like is None else asarray(np.broadcast_to(np.zeros((), like.dtype), obj.shape))


def _like_image(image: Any) -> Any:
    """Return an array of the type and shape that a copy of an image of Pillow has."""
    mode = sys.modules["PIL.ImageMode"].getmode(image.mode)
    shape = (image.height, image.width) + (len(mode.bands),) * (len(mode.bands) > 1)
    return asarray(np.broadcast_to(np.zeros((), mode.typestr), shape))
