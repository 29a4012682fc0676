"""An array taken apart: type, array metadata, data and the memory block behind it, as a dict and as DyND prints it."""

import sys
from collections.abc import Iterator
from typing import Any

from arrayhub._core.memory import MemoryBlock
from arrayhub.conversion import asarray
from arrayhub.inspection import not_dense
from arrayhub.inspection.datashape import Complex, Number, type_of
from arrayhub.usm_array import USMArray

# DyND's access flags, by what `USMArray.access` says.
_READ, _WRITE, _IMMUTABLE = 1, 2, 4
FLAGS = {"readwrite": _READ | _WRITE, "readonly": _READ, "immutable": _READ | _IMMUTABLE}
_FLAG_NAMES = {_READ: "read_access", _WRITE: "write_access", _IMMUTABLE: "immutable"}


def inspect(obj: Any, /) -> dict[str, Any]:
    """Return what an array is made of, as a dict that ``json`` can write.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes, and what is not dense that `asnested` takes without a copy.

    Returns
    -------
    dict
        Addresses are integers; sizes, strides and offsets are in bytes.

        ``address``, ``refcount``
            Of the array object; the references that the call itself needs are left out.
        ``type``
            ``pointer`` (the dtype object's address; a built-in element type without dimensions has its number here),
            ``symbolic`` and ``fixed`` (the datashape in both forms).
        ``arrmeta``
            ``flags`` (1 read, 2 write, 4 immutable), ``access``, ``itemsize``, ``dimensions`` (a list of ``stride``,
            None where elements share bytes, and ``size``, in elements), ``fields`` (None, or a record's ``name`` and
            ``offset`` each).
        ``data``
            ``pointer`` (to element zero), ``protocol``, ``device``, ``usm_type``, and ``memory_block``: ``address`` and
            ``refcount`` of the block object, ``kind``, ``start`` and ``nbytes`` of its bytes (None where unknown),
            ``object`` (the owner's address, None where the block itself owns them), ``release_function``,
            ``release_address``.

        Of what is not dense ``arrmeta`` has ``kind`` and ``length``, and ``data`` has such a dict for each part
        (offsets, content, the fields of a record), with its ``nbytes``.

    Raises
    ------
    TypeError, ValueError, BufferError
        As `asarray`.
    """
    obj = _taken(obj)
    refcount = shared(sys.getrefcount(obj))  # before the next call, whose arguments may be references too
    if not isinstance(obj, USMArray):
        nested: dict[str, Any] = not_dense("inspect", obj, refcount)
        return nested
    return facts_of(obj, refcount)


def debug_repr(obj: Any, /) -> str:
    """Return what an array is made of, in the form of DyND's ``debug_repr``; see `inspect` for the same as a dict.

    Parameters
    ----------
    obj : object
        Anything `asarray` takes, and what is not dense that `asnested` takes without a copy.

    Returns
    -------
    str
        Lines without a newline at the end. Strides, sizes of items and offsets are in bytes.

    Raises
    ------
    TypeError, ValueError, BufferError
        As `asarray`.
    """
    obj = _taken(obj)
    refcount = shared(sys.getrefcount(obj))  # as in `inspect`
    if not isinstance(obj, USMArray):
        return str(not_dense("debug_repr", obj, refcount))
    return "\n".join(_lines(facts_of(obj, refcount)))


def _taken(obj: Any) -> Any:
    """A dense array, or what is not dense as the layer above has it."""
    try:
        return asarray(obj)
    except (BufferError, TypeError):
        nested = not_dense("view", obj)
        if nested is None:
            raise
        return nested


def shared(counted: int) -> int:
    """How many references there are besides those that a variable and the counting need; 1 where there are no others.

    `counted` is what ``sys.getrefcount`` says of a local variable. Whether its argument is one more reference differs
    between interpreters (from CPython 3.14 on it mostly is not), so an object with one reference is counted alike.
    """
    unshared = object()
    return max(1, counted - sys.getrefcount(unshared))


def facts_of(array: USMArray, refcount: int) -> dict[str, Any]:
    """What `inspect` says of a dense array."""
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
    """A built-in type is a number; any other has an object, of which the array keeps the dtype alive."""
    if isinstance(fixed, Number | Complex):
        return array.typenum
    try:
        return id(array.dtype)
    except TypeError:  # NumPy has none
        return array.typenum


def _strides(array: USMArray) -> tuple[int | None, ...]:
    try:
        return array.byte_strides
    except ValueError:  # elements of less than a byte are packed
        return (None,) * array.ndim


def _fields(array: USMArray) -> list[dict[str, Any]] | None:
    try:
        dtype = array.dtype
    except TypeError:
        return None
    if dtype.fields is None:
        return None
    return [{"name": name, "offset": dtype.fields[name][1]} for name in dtype.names or ()]


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
    """DyND's names of access flags, a blank after each."""
    return "".join(f"{name} " for flag, name in _FLAG_NAMES.items() if flag & flags)


def hexadecimal(address: int) -> str:
    """An address as DyND writes it."""
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
    """What each part of the type needs to know besides, one more space a level."""
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


def block_lines(data: dict[str, Any]) -> Iterator[str]:
    """What `debug_repr` says of the memory block behind data."""
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
