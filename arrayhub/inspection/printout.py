"""Describe the type, metadata, data and memory block of an array in DyND's format."""

import sys
from collections.abc import Iterator
from typing import Any

from arrayhub._core.descriptor import MemoryBlock
from arrayhub.array.usm_array import USMArray
from arrayhub.inspection.datashape import TYPENUMS, type_of
from arrayhub.inspection.unread import import_view

# DyND's access flags, keyed by the value of `USMArray.access`.
_FLAGS = {
    "readwrite": "3 (read_access write_access )",
    "readonly": "1 (read_access )",
    "immutable": "5 (read_access immutable )",
}


def debug_repr(obj: Any, /) -> str:
    """Describe an array in the format of DyND's ``debug_repr``: type, metadata, data and memory block.

    Parameters
    ----------
    obj : object
        Any object that `asarray` or `assparse` accepts, or that `asnested` accepts without a copy.

    Returns
    -------
    str
        Lines without a trailing newline. Strides, item sizes and offsets are in bytes. The flags are a sum of 1 (read
        access), 2 (write access) and 4 (immutable). References of the call itself are not counted. The text of a
        sparse or nested array has a section for each part (indices, offsets, content, the fields of a record).

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
    obj = import_view(obj, "debug_repr")
    # Before the next call, because its arguments may be references, too.
    refcount = count_references(sys.getrefcount(obj))
    return "\n".join(["------ array", *obj._describe(refcount), "------"])


def count_references(counted: int) -> int:
    """Return the reference count of an object without a local variable and the argument of ``sys.getrefcount``.

    `counted` is the result of ``sys.getrefcount`` for the local variable. The function subtracts the result for an
    object with a single reference, because interpreters differ in whether the argument adds a reference (CPython 3.14
    mostly does not). The result is at least 1.
    """
    unshared = object()
    return max(1, counted - sys.getrefcount(unshared))


def head_lines(array: Any, refcount: int, type_lines: list[str]) -> Iterator[str]:
    """Yield the first lines, up to the access flags."""
    yield f" address: {_hexadecimal(id(array))}"
    yield f" refcount: {refcount}"
    yield " type:"
    yield from type_lines
    yield " arrmeta:"
    yield f"  flags: {_FLAGS[array.access]}"


def lines_of(array: USMArray, refcount: int) -> Iterator[str]:
    """Yield the lines of `debug_repr` for a dense array, without the first and the last."""
    type_lines = [f"  pointer: {_hexadecimal(_type_pointer(array))}", f"  type: {type_of(array, symbolic=True)}"]
    yield from head_lines(array, refcount, type_lines)
    offsets = _field_offsets(array)
    if array.ndim or offsets:
        yield "  type-specific arrmeta:"
    indent = "   "  # one more space per level
    for stride, size in zip(_strides(array), array.shape, strict=True):
        yield f"{indent}strided_dim arrmeta"
        yield f"{indent} stride: {stride}"
        yield f"{indent} size: {size}"
        indent += " "
    if offsets:
        yield f"{indent}struct arrmeta"
        yield f"{indent} field offsets: {offsets}"
        yield f"{indent} size: {array.itemsize}"
    yield " data:"
    yield f"   pointer: {_hexadecimal(array.ptr)}"
    yield from _block_lines(array)


def part_lines(name: str, array: USMArray) -> Iterator[str]:
    """Yield the lines for a dense part of a sparse or nested array."""
    yield f"  {name}: {type_of(array)}"
    yield f"   pointer: {_hexadecimal(array.ptr)}"
    yield f"   size: {array.nbytes}"
    yield from _block_lines(array)


def _block_lines(array: USMArray) -> Iterator[str]:
    block: MemoryBlock = array.memory
    refcount = count_references(sys.getrefcount(block))
    owner = block.owner
    yield f"   reference: {_hexadecimal(id(block))}"
    yield f"    ------ memory_block at {_hexadecimal(id(block))}"
    yield f"     reference count: {refcount}"
    yield f"     type: {block.kind}"
    if owner is None:
        yield f"     start: {_hexadecimal(block.address)}"
        yield f"     size: {block.nbytes}"
    else:
        yield f"     object void pointer: {_hexadecimal(id(owner))}"
    yield f"     free function: {_hexadecimal(block.release_address)} ({block.release_function})"
    if array.device != "cpu":
        yield f"     device: {array.device}" + (f" ({array.usm_type} USM)" if array.usm_type else "")
    yield "    ------"


def _type_pointer(array: USMArray) -> int:
    """Return the address of the dtype, which the array keeps alive.

    Return the type number for a 0-d array of a number, and for an element type that NumPy does not have.
    """
    if type_of(array) in TYPENUMS:
        return array.typenum
    try:
        return id(array.dtype)
    except TypeError:  # NumPy does not have this type
        return array.typenum


def _strides(array: USMArray) -> tuple[int | str, ...]:
    try:
        return array.byte_strides
    except ValueError:  # packed elements of less than a byte
        return ("none (elements share bytes)",) * array.ndim


def _field_offsets(array: USMArray) -> str:
    """Return the offsets of the fields of a record, separated by commas."""
    try:
        dtype: Any = array.dtype
    except TypeError:
        return ""
    return ", ".join(str(dtype.fields[name][1]) for name in dtype.names or ())


def _hexadecimal(address: int) -> str:
    """Format an address as in DyND."""
    return f"{address:016X}"
