"""Describe the type, metadata, data and memory block of an array, as a dict and in DyND's format."""

import sys
from collections.abc import Iterator
from typing import Any

from arrayhub._core.descriptor import MemoryBlock
from arrayhub._core.hooks import hooks
from arrayhub.array.usm_array import USMArray
from arrayhub.convert.functions import SparseParts, asarray
from arrayhub.inspection.datashape.types import Complex, Number, type_of
from arrayhub.inspection.unread import array_besides, refuse_copies

# DyND's access flags, keyed by the value of `USMArray.access`.
_READ, _WRITE, _IMMUTABLE = 1, 2, 4
FLAGS = {"readwrite": _READ | _WRITE, "readonly": _READ, "immutable": _READ | _IMMUTABLE}
_FLAG_NAMES = {_READ: "read_access", _WRITE: "write_access", _IMMUTABLE: "immutable"}


def inspect(obj: Any, /) -> dict[str, Any]:
    """Describe an array as a dict that can be serialized to JSON.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `assparse` accepts, or that `asnested` accepts without a copy.

    Returns
    -------
    dict
        Addresses are integers. Sizes, strides and offsets are in bytes.

        ``address``, ``refcount``
            Address and reference count of the array object, without the references of the call itself.
        ``type``
            ``pointer`` (address of the dtype object, or the type number for a 0-d array of a number and for an element
            type that NumPy does not have), ``symbolic`` and ``fixed`` (the datashape in both forms).
        ``arrmeta``
            ``flags`` (1 read, 2 write, 4 immutable), ``access``, ``itemsize``, ``dimensions`` (list of dicts with
            ``stride``, None for packed elements, and ``size`` in elements), ``fields`` (None, or a list of dicts with
            ``name`` and ``offset`` of the fields of a record).
        ``data``
            ``pointer`` (address of element zero), ``protocol``, ``device``, ``usm_type``, and ``memory_block`` with the
            keys ``address`` and ``refcount`` (of the block object), ``kind``, ``start`` and ``nbytes`` (of the memory,
            None if unknown), ``object`` (address of the owner, None if the block owns the memory),
            ``release_function`` and ``release_address``.

        In the dict of a sparse or nested array, ``type`` lacks ``pointer``, and ``data`` has a dict for each part
        (indices, offsets, content, the fields of a record). The dict of a dense part has the keys above and ``nbytes``.
        For a sparse array, ``arrmeta`` has ``flags``, ``access``, ``format``, ``shape``, ``batch_ndim``,
        ``dense_ndim``, ``blocksize`` and ``stored`` (number of stored values). For a nested array, ``arrmeta`` has
        ``flags``, ``access``, ``kind``, ``length``, ``validity_offset`` and ``meaning``.

    Raises
    ------
    TypeError, ValueError, BufferError
        As in `asarray`. BufferError is also raised for a query or a stream that can be read only once, unless the
        object supports a protocol other than Arrow.

    Examples
    --------
    >>> arrayhub.inspect(numpy.zeros(2))["arrmeta"]["dimensions"]
    [{'stride': 8, 'size': 2}]
    """
    obj = _imported(obj, "inspect")
    refcount = shared(sys.getrefcount(obj))  # before the next call, because its arguments may be references too
    if issubclass(type(obj), SparseParts):
        sparse: dict[str, Any] = hooks.inspect_sparse(obj, refcount)
        return sparse
    if not issubclass(type(obj), USMArray):
        nested: dict[str, Any] = hooks.inspect_nested(obj, refcount)
        return nested
    return facts_of(obj, refcount)


def debug_repr(obj: Any, /) -> str:
    """Describe an array in the format of DyND's ``debug_repr``. `inspect` returns a dict with more details.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `assparse` accepts, or that `asnested` accepts without a copy.

    Returns
    -------
    str
        Lines without a trailing newline. Strides, item sizes and offsets are in bytes.

    Raises
    ------
    TypeError, ValueError, BufferError
        As in `asarray`. BufferError is also raised for a query or a stream that can be read only once, unless the
        object supports a protocol other than Arrow.

    Examples
    --------
    >>> arrayhub.debug_repr(numpy.zeros(2)).splitlines()[0]
    '------ array'
    """
    obj = _imported(obj, "debug_repr")
    refcount = shared(sys.getrefcount(obj))  # as in `inspect`
    if issubclass(type(obj), SparseParts):
        return str(hooks.debug_repr_of_sparse(obj, refcount))
    if not issubclass(type(obj), USMArray):
        return str(hooks.debug_repr_of_nested(obj, refcount))
    return "\n".join(_lines(facts_of(obj, refcount)))


def _imported(obj: Any, function: str) -> Any:
    """Return `obj` as a USMArray, or as a NestedArray or a SparseArray if it is not dense."""
    besides = array_besides(obj, function)
    if besides is not None:
        return besides
    try:
        return asarray(obj)
    except (BufferError, TypeError) as error:
        nested = hooks.sparse_view(obj)
        nested = hooks.nested_view(obj) if nested is None else nested
        if nested is None:
            refuse_copies(obj, function, error)
            raise
        return nested


def shared(counted: int) -> int:
    """Return the reference count of an object without a local variable and the argument of ``sys.getrefcount``.

    `counted` is the result of ``sys.getrefcount`` for the local variable. The function subtracts the result for an
    object with a single reference, because interpreters differ in whether the argument adds a reference (CPython 3.14
    mostly does not). The result is at least 1.
    """
    unshared = object()
    return max(1, counted - sys.getrefcount(unshared))


def facts_of(array: USMArray, refcount: int) -> dict[str, Any]:
    """Return the dict of `inspect` for a dense array."""
    fixed, symbolic = type_of(array), type_of(array, symbolic=True)
    return {
        "address": id(array),
        "refcount": refcount,
        "type": {"pointer": _type_pointer(array, fixed), "symbolic": str(symbolic), "fixed": str(fixed)},
        "arrmeta": {
            "flags": FLAGS[array.access],
            "access": array.access,
            "itemsize": array.itemsize,
            "dimensions": [
                {"stride": stride, "size": size} for stride, size in zip(_strides(array), array.shape, strict=True)
            ],
            "fields": _fields(array),
        },
        "data": {
            "pointer": array.ptr,
            "protocol": array.protocol,
            "device": str(array.device),
            "usm_type": array.usm_type,
            "memory_block": _block_facts(array.memory),
        },
    }


def _type_pointer(array: USMArray, fixed: Any) -> int:
    """Return the address of the dtype, which the array keeps alive.

    Return the type number for a 0-d array of a number, and for an element type that NumPy does not have.
    """
    if isinstance(fixed, Number | Complex):
        return array.typenum
    try:
        return id(array.dtype)
    except TypeError:  # NumPy does not have this type
        return array.typenum


def _strides(array: USMArray) -> tuple[int | None, ...]:
    try:
        return array.byte_strides
    except ValueError:  # packed elements of less than a byte
        return (None,) * array.ndim


def _fields(array: USMArray) -> list[dict[str, Any]] | None:
    try:
        dtype = array.dtype
    except TypeError:
        return None
    if dtype.fields is None:
        return None
    names = dtype.names or ()
    fields = map(dtype.fields.__getitem__, names)
    return [{"name": name, "offset": field[1]} for name, field in zip(names, fields, strict=True)]


def _block_facts(block: MemoryBlock) -> dict[str, Any]:
    unshared = object()
    owner = block.owner
    return {
        "address": id(block),
        "refcount": sys.getrefcount(block) - sys.getrefcount(unshared),
        "kind": block.kind,
        "start": block.address,
        "nbytes": block.nbytes,
        "object": None if owner is None else id(owner),
        "release_function": block.release_function,
        "release_address": block.release_address,
    }


# ------------------------------------------------------------------------------------------------------ DyND's form


def flag_names(flags: int) -> str:
    """Return DyND's names of access flags, each followed by a space."""
    return "".join(f"{name} " for flag, name in _FLAG_NAMES.items() if flag & flags)


def hexadecimal(address: int) -> str:
    """Format an address as in DyND."""
    return f"{address:016X}"


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    arrmeta, data = facts["arrmeta"], facts["data"]
    flags = flag_names(arrmeta["flags"])
    yield "------ array"
    yield f" address: {hexadecimal(facts['address'])}"
    yield f" refcount: {facts['refcount']}"
    yield " type:"
    yield f"  pointer: {hexadecimal(facts['type']['pointer'])}"
    yield f"  type: {facts['type']['symbolic']}"
    yield " arrmeta:"
    yield f"  flags: {arrmeta['flags']} ({flags})"
    if arrmeta["dimensions"] or arrmeta["fields"]:
        yield "  type-specific arrmeta:"
        yield from _type_specific(arrmeta)
    yield " data:"
    yield f"   pointer: {hexadecimal(data['pointer'])}"
    yield f"   reference: {hexadecimal(data['memory_block']['address'])}"
    yield from (f"    {line}" for line in block_lines(data))
    yield "------"


def _type_specific(arrmeta: dict[str, Any]) -> Iterator[str]:
    """Yield the metadata of each dimension and of the fields, indented by one more space per level."""
    indent = "   "
    for dimension in arrmeta["dimensions"]:
        stride = "none (elements share bytes)" if dimension["stride"] is None else dimension["stride"]
        yield f"{indent}strided_dim arrmeta"
        yield f"{indent} stride: {stride}"
        yield f"{indent} size: {dimension['size']}"
        indent += " "
    if arrmeta["fields"]:
        yield f"{indent}struct arrmeta"
        yield f"{indent} field offsets: {', '.join(str(field['offset']) for field in arrmeta['fields'])}"
        yield f"{indent} size: {arrmeta['itemsize']}"


def head_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the first lines of `debug_repr` for a sparse or nested array, up to its access flags."""
    flags = facts["arrmeta"]["flags"]
    yield f" address: {hexadecimal(facts['address'])}"
    yield f" refcount: {facts['refcount']}"
    yield " type:"
    yield f"  type: {facts['type']['fixed']}"
    yield " arrmeta:"
    yield f"  flags: {flags} ({flag_names(flags)})"


def part_lines(name: str, facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a dense part of a sparse or nested array."""
    data = facts["data"]
    yield f"  {name}: {facts['type']['fixed']}"
    yield f"   pointer: {hexadecimal(data['pointer'])}"
    yield f"   size: {facts['nbytes']}"
    yield f"   reference: {hexadecimal(data['memory_block']['address'])}"
    yield from (f"    {line}" for line in block_lines(data))


def block_lines(data: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `debug_repr` for the memory block in `data`."""
    block = data["memory_block"]
    yield f"------ memory_block at {hexadecimal(block['address'])}"
    yield f" reference count: {block['refcount']}"
    yield f" type: {block['kind']}"
    if block["object"] is None:
        yield f" start: {hexadecimal(block['start'])}"
        yield f" size: {block['nbytes']}"
    else:
        yield f" object void pointer: {hexadecimal(block['object'])}"
    yield f" free function: {hexadecimal(block['release_address'])} ({block['release_function']})"
    if data["device"] != "cpu":
        yield f" device: {data['device']}" + (f" ({data['usm_type']} USM)" if data["usm_type"] else "")
    yield "------"
