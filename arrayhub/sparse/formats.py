"""Table of sparse formats, and validation of the shapes and types of their arrays."""

from dataclasses import dataclass
from typing import Any, TypeVar

from arrayhub._core.errors import interface_error, show


@dataclass(frozen=True, slots=True)
class Format:
    """A sparse format."""

    name: str
    compressed: int | None  # the dimension that `indptr` compresses: 0 for rows, 1 for columns, None for coordinates
    blocks: bool  # whether each index refers to a dense block
    transposed: str | None  # the format in which the same arrays represent the transposed array


FORMATS = {
    row.name: row
    for row in (
        Format("coo", None, False, "coo"),
        Format("csr", 0, False, "csc"),
        Format("csc", 1, False, "csr"),
        Format("bsr", 0, True, None),
        Format("bsc", 1, True, None),
    )
}

DIMENSIONS = ("rows", "columns")


_Array = TypeVar("_Array")


def check_shapes(source: str, x: _Array) -> _Array:
    """Validate the shapes and types of the arrays of a sparse array, and return it. The elements are not read.

    Raise InterfaceError, with a message that begins with `source`, if the shapes are inconsistent or indices are not
    integers.
    """
    row = FORMATS[x.format]  # type: ignore[attr-defined]
    if row.compressed is None:
        _check_coords(source, x)
    else:
        _check_compressed(source, row, x)
    return x


def _check_compressed(source: str, row: Format, x: Any) -> None:
    shape, batch, blocksize, indptr = x.shape, x.batch_ndim, x.blocksize, x.indptr
    stored = x.indices.shape
    of_data = x.data.shape
    blocks = 2 if row.blocks else 0
    lead = batch + 1
    dense = len(of_data) - lead - blocks
    if dense < 0 or len(stored) != lead or of_data[:lead] != stored:
        accepted = f"{stored}, the shape of indices, and further dimensions"
        raise interface_error(source, "shape of data", of_data, accepted)
    if len(shape) != batch + 2 + dense:
        raise interface_error(source, "shape", shape, f"{batch + 2 + dense} dimensions, as the arrays require")
    compressed = shape[batch + row.compressed]
    if row.blocks:
        if of_data[lead : lead + 2] != blocksize or min(blocksize) < 1:
            raise interface_error(source, "shape of data", of_data, f"nonempty blocks of shape {blocksize}")
        if any(length % block for length, block in zip(shape[batch : batch + 2], blocksize, strict=True)):
            raise interface_error(source, "shape", shape, f"multiples of the blocksize {blocksize}")
        compressed //= blocksize[row.compressed]
    if indptr.shape != (*stored[:-1], compressed + 1):
        accepted = f"{(*stored[:-1], compressed + 1)}, one more than the number of {DIMENSIONS[row.compressed or 0]}"
        raise interface_error(source, "shape of indptr", indptr.shape, accepted)
    if shape[:batch] != stored[:-1] or shape[batch + 2 :] != of_data[lead + blocks :]:
        raise interface_error(source, "shape", shape, f"the lengths of the arrays, {stored[:-1]} and {of_data}")
    if x.indices.typenum not in INTEGERS or indptr.typenum not in INTEGERS:
        check_integers(source, indices=x.indices, indptr=indptr)


def _check_coords(source: str, x: Any) -> None:
    shape, batch, joined = x.shape, x.batch_ndim, x.coords_array
    coords = {"coords": joined} if joined is not None else {f"coords[{k}]": array for k, array in enumerate(x._coords)}
    each = [array.shape for array in coords.values()] if joined is None else [joined.shape[1:]] * joined.shape[0]
    of_data = x.data.shape
    lead = batch + 1
    dense = len(of_data) - lead
    if dense < 0 or any(stored != of_data[:lead] for stored in each):
        raise interface_error(source, "shapes of coordinates", each, f"{of_data[:lead]}, as the shape of data requires")
    if len(shape) != batch + len(each) + dense:
        raise interface_error(source, "shape", shape, f"{batch + len(each) + dense} dimensions, as the arrays require")
    if shape[:batch] != of_data[:batch] or shape[batch + len(each) :] != of_data[lead:]:
        raise interface_error(source, "shape", shape, f"the lengths of data, {of_data}")
    check_integers(source, **coords)


# NumPy type numbers of the integers that indices can have: 8 to 64 bits.
INTEGERS = frozenset(range(1, 11))


def check_integers(source: str, **arrays: Any) -> None:
    """Raise InterfaceError unless the arrays have integer elements in native byte order."""
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" or not array.dtype.isnative:
            raise interface_error(source, f"dtype of {name}", array.dtype, "integers in native byte order")


def row_of(name: Any) -> Format:
    """Return the row of a format by name, or raise ValueError."""
    row = FORMATS.get(name) if isinstance(name, str) else None
    if row is None:
        raise ValueError(f"to_format: format is {show(name)}; accepted: {', '.join(map(repr, FORMATS))}")
    return row
