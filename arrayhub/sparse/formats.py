"""Table of sparse formats, validation of sparse arrays, and their conversion between formats and to dense arrays.

Shapes and types are validated on import, indices later. Results about indices are cached in the array.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from arrayhub._core.errors import interface_error, show
from arrayhub.convert.functions import SparseParts, as_numpy, asarray
from arrayhub.runtimes.host import is_host_readable


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


def row_of(name: Any) -> Format:
    """Return the row of a format by name, or raise ValueError."""
    row = FORMATS.get(name) if isinstance(name, str) else None
    if row is None:
        raise ValueError(f"to_format: format is {show(name)}; accepted: {', '.join(map(repr, FORMATS))}")
    return row


# --------------------------------------------------------------------------------------------- shapes and types

_Array = TypeVar("_Array")


def check_shapes(source: str, x: _Array) -> _Array:
    """Validate the shapes and types of the arrays of a sparse array, and return it. The elements are not read.

    Raise InterfaceError, with a message that begins with `source`, if the shapes are inconsistent or indices are not
    integers.
    """
    row = FORMATS[x.format]  # type: ignore[attr-defined]
    if row.compressed is None:
        _check_shapes_of_coords(source, x)
    else:
        _check_shapes_of_compressed(source, row, x)
    return x


def _check_shapes_of_compressed(source: str, row: Format, x: Any) -> None:
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


def _check_shapes_of_coords(source: str, x: Any) -> None:
    shape, batch, of_data, joined = x.shape, x.batch_ndim, x.data.shape, x.coords_array
    coords = {"coords": joined} if joined is not None else {f"coords[{k}]": array for k, array in enumerate(x.coords)}
    each = [array.shape for array in x.coords] if joined is None else [joined.shape[1:]] * joined.shape[0]
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


# ------------------------------------------------------------------------------------------------------ indices

# Bits of `SparseParts._state`.
CHECKED = 1  # the indices are within the shape
CANONICAL = 2  # the indices are sorted and distinct
NOT_CANONICAL = 4  # the indices are unsorted or repeated
PADDED = 8  # as in jax, elements outside the shape or after the last pointer are padding
TRUSTED = 64  # exports do not read the indices, because the caller passed validate=False
SEEN = CHECKED | CANONICAL | NOT_CANONICAL | PADDED | TRUSTED


def is_on_host(x: SparseParts) -> bool:
    """Return whether the host can read all arrays of a sparse array."""
    return all(map(is_host_readable, (x.data, *structure_of(x))))


def structure_of(x: Any) -> tuple[Any, ...]:
    """Return the arrays of indices, pointers or coordinates."""
    if x.format != "coo":
        return x.indices, x.indptr
    return x.coords if x.coords_array is None else (x.coords_array,)


def parts_of(x: Any) -> dict[str, Any]:
    """Return the arrays by the names of the constructor's parameters. ``coords`` is a tuple of arrays."""
    if x.format != "coo":
        return {"data": x.data, "indices": x.indices, "indptr": x.indptr}
    coords = {"coords": x.coords} if x.coords_array is None else {"coords_array": x.coords_array}
    return {"data": x.data, **coords}


def validate(x: SparseParts) -> None:
    """Validate the indices of an array once. Indices that the host cannot read are not validated.

    Raise InterfaceError, which names the element, if an index or a pointer is invalid.
    """
    state = x._state
    if state & CHECKED or not is_on_host(x):
        return
    check_indices(x)
    x._state = state | CHECKED


def check_indices(x: SparseParts) -> None:
    """Validate the indices, which the host must be able to read. Raises like `validate`."""
    if x.format == "coo":
        _check_indices_of_coords(x)
    else:
        _check_indices_of_compressed(x)


def _check_indices_of_compressed(x: SparseParts) -> None:
    row = FORMATS[x.format]
    check_integers("assparse", indices=x.indices, indptr=x.indptr)
    indptr, indices = as_numpy(x.indptr), as_numpy(x.indices)
    stored, last = indices.shape[-1], indptr[..., -1:]
    compressed = row.compressed or 0
    major, minor = DIMENSIONS[compressed], DIMENSIONS[1 - compressed]
    _refuse_first("indptr", indptr, indptr[..., :1] != 0, "0")
    falls = indptr[..., 1:] < indptr[..., :-1]  # np.diff could overflow
    for before in indptr[..., :-1][falls][:1]:
        accepted = f"{before} or more, because pointers of {major} must not decrease"
        _refuse_first("indptr", indptr, falls, accepted, skipped=1)
    ends = indptr.shape[-1] - 1
    if x._state & PADDED:
        _refuse_first("indptr", indptr, last > stored, f"at most {stored}, the length of indices", skipped=ends)
        indices = np.where(np.arange(stored) < last, indices, 0)
    else:
        _refuse_first("indptr", indptr, last != stored, f"{stored}, the length of indices", skipped=ends)
    length = x.shape[x.batch_ndim + 1 - compressed] // (x.blocksize[1 - compressed] if x.blocksize else 1)
    blocks = "blocks of " if x.blocksize else ""
    _check_below("indices", indices, length, f"the {blocks}{minor} of shape {x.shape}")


def _check_indices_of_coords(x: Any) -> None:
    for k, array in enumerate(x.coords):
        check_integers("assparse", **{f"coords[{k}]": array})
        values, length = as_numpy(array), x.shape[x.batch_ndim + k]
        if x._state & PADDED:
            values = np.where(values < length, values, 0)
        _check_below(f"coords[{k}]", values, length, f"the lengths of shape {x.shape}")


def _check_below(name: str, values: Any, length: int, what: str) -> None:
    """Raise InterfaceError for the first index that is negative or not less than `length`."""
    if values.size == 0:
        return
    # Viewed as unsigned integers, negative values exceed the signed maximum, so one comparison finds both faults.
    unsigned = values if values.dtype.kind == "u" else values.view(f"u{values.itemsize}")
    if int(unsigned.max()) >= min(length, np.iinfo(values.dtype).max + 1):
        accepted = f"0 to {length - 1}, {what}" if length else f"no index, because the length is 0 in {what}"
        _refuse_first(name, values, (values < 0) | (values >= length), accepted)


def _refuse_first(name: str, values: Any, bad: Any, accepted: str, skipped: int = 0) -> None:
    """Raise InterfaceError for the first value that is bad. The error names its place.

    `bad` does not have the first `skipped` elements of the last dimension.
    """
    if bad.any():
        *before, last = map(int, np.unravel_index(int(bad.argmax()), bad.shape))
        place = (*before, last + skipped)
        raise interface_error("assparse", f"{name}[{', '.join(map(str, place))}]", int(values[place]), accepted)


def validate_export(x: SparseParts) -> None:
    """Validate the indices before an export, unless the caller passed ``validate=False``. Raises like `validate`."""
    if not x._state & TRUSTED:
        validate(x)


def is_marked_canonical(x: SparseParts) -> bool:
    """Return whether to mark an exported array as canonical. Indices on a device and trusted indices are not read."""
    if x._state & PADDED:
        return False
    if x._state & TRUSTED or not is_on_host(x):
        return bool(x._state & CANONICAL)
    return is_canonical(x)


def is_canonical(x: SparseParts) -> bool:
    """Return whether the indices are sorted and distinct. Unless the result is cached, the host reads the indices."""
    state = x._state
    if not state & (CANONICAL | NOT_CANONICAL):
        validate(x)
        found = _sorted_coords(x) if x.format == "coo" else _sorted_indices(x)
        state = x._state | (CANONICAL if found else NOT_CANONICAL)
        x._state = state
    return bool(state & CANONICAL)


def _sorted_indices(x: SparseParts) -> bool:
    indices, indptr = as_numpy(x.indices), as_numpy(x.indptr)
    stored = indices.shape[-1]
    if stored < 2:
        return True
    rises = (indices[..., 1:] > indices[..., :-1]).reshape(-1, stored - 1)
    for flags, starts in zip(rises, indptr.reshape(-1, indptr.shape[-1]), strict=True):
        first = starts[(starts > 0) & (starts < stored)]
        flags[max(int(starts[-1]) - 1, 0) :] = True  # padding
        flags[first - 1] = True  # the first index of a row may be less than the last index of the previous row
    return bool(rises.all())


def _sorted_coords(x: Any) -> bool:
    coords = [as_numpy(array) for array in x.coords]
    if x.data.shape[x.batch_ndim] < 2:
        return True
    if not coords:
        return False
    rises = coords[-1][..., 1:] > coords[-1][..., :-1]
    for array in coords[-2::-1]:
        after, before = array[..., 1:], array[..., :-1]
        rises = (after > before) | ((after == before) & rises)
    return bool(rises.all())


# --------------------------------------------------------------------------------------------------------- conversion

# NumPy converts in host memory. SciPy converts neither batches nor dense dimensions nor narrow floats. All arrays
# therefore take the same way: the stored values become elements with coordinates, which are sorted and added. The batch
# is the first coordinate.

_INT32_MAX = 2**31 - 1


def to_dense(x: Any) -> Any:
    """Return a dense copy. See `SparseArray.to_dense`."""
    if not is_on_host(x):
        return to_dense(x.to_host()).to_device(x.device)
    dense = np.zeros(x.shape, x.dtype)
    coords, stored = elements(x)
    add = np.logical_or if dense.dtype.kind == "b" else np.add
    add.at(dense.reshape(_count_batches(x), *x.shape[x.batch_ndim :]), coords, stored)
    return asarray(dense)


def _count_batches(x: Any) -> int:
    return math.prod(x.shape[: x.batch_ndim])


def elements(x: Any, keeps_blocks: bool = False) -> tuple[tuple[Any, ...], Any]:
    """Validate an array in host memory, and return the coordinates and the values of its elements.

    The first coordinate is the number of the batch. Padding is omitted. The blocks of bsr and bsc are expanded to
    elements unless `keeps_blocks` is true. The coordinates are int32 or int64.
    """
    validate(x)
    batches, parts = _count_batches(x), [as_numpy(array) for array in structure_of(x)]
    narrow = max((*x.shape, batches)) <= _INT32_MAX and all(array.itemsize <= 4 for array in parts)
    stored = as_numpy(x.data)
    stored = stored.reshape(batches, *stored.shape[x.batch_ndim :])
    used = np.ones(stored.shape[:2], bool) if x._state & PADDED else None

    def flatten(array: Any) -> Any:
        """Join the batches of an array, without padding."""
        return array.reshape(-1, *array.shape[2:]) if used is None else array[used]

    if x.format == "coo":
        coords: list[Any] = [as_numpy(array).reshape(stored.shape[:2]) for array in x.coords]
        for array, length in zip(coords, x.shape[x.batch_ndim :], strict=False) if used is not None else ():
            used &= array < length
        coords = [flatten(array) for array in coords]
    else:
        indices, indptr = (array.reshape(batches, array.shape[-1]) for array in parts)
        if used is not None:
            used &= np.arange(indices.shape[1]) < indptr[:, -1:]
        rows, counts = np.tile(np.arange(indptr.shape[1] - 1), batches), indptr[:, 1:] - indptr[:, :-1]
        coords = [np.repeat(rows, counts.reshape(-1).astype(np.intp)), flatten(indices)]
        coords = coords[::-1] if FORMATS[x.format].compressed else coords
    coords = [np.arange(batches).repeat(stored.shape[1]) if used is None else np.nonzero(used)[0], *coords]
    coords = [array.astype(np.int32 if narrow else np.int64, copy=False) for array in coords]
    stored = flatten(stored)
    expands = x.blocksize and not keeps_blocks
    return _expand_blocks(x.blocksize, coords, stored) if expands else (tuple(coords), stored)


def _expand_blocks(blocksize: tuple[int, int], coords: Any, stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the coordinates and the values of the elements of blocks."""
    batch, rows, columns = (array[:, None, None] for array in coords)
    rows = rows * blocksize[0] + np.arange(blocksize[0], dtype=rows.dtype)[:, None]
    columns = columns * blocksize[1] + np.arange(blocksize[1], dtype=columns.dtype)
    spread = np.broadcast_arrays(batch, rows, columns)
    return tuple(array.reshape(-1) for array in spread), stored.reshape(-1, *stored.shape[3:])


def has_padding(x: Any) -> bool:
    """Return whether some elements of a validated array are padding."""
    if x.format != "coo":
        return bool((as_numpy(x.indptr)[..., -1] != x.indices.shape[-1]).any())
    return any(
        (as_numpy(array) >= length).any() for array, length in zip(x.coords, x.shape[x.batch_ndim :], strict=False)
    )


def to_format(x: Any, row: Format) -> Any:
    """Return a canonical copy in the format `row`. See `SparseArray.to_format`."""
    sparse = len(x.shape) - x.batch_ndim - x.dense_ndim
    if row.compressed is not None and sparse != 2:
        raise ValueError(f"to_format: {row.name} has 2 sparse dimensions, and the array has {sparse}; accepted: 'coo'")
    if row.blocks and not x.blocksize:
        raise ValueError(
            f"to_format: {row.name} consists of blocks, and the array does not; accepted: 'coo', 'csr', 'csc'. SciPy"
            " makes blocks: arrayhub.as_scipy(x.to_format('csr')).tobsr(blocksize)"
        )
    if not is_on_host(x):
        return to_format(x.to_host(), row).to_device(x.device)
    (number, *coords), stored = elements(x, row.blocks)
    if row.compressed is not None:
        return _compress(x, row, *_sum_repeated([number, *coords[:: -1 if row.compressed else 1]], stored))
    (number, *coords), stored = _sum_repeated([number, *coords], stored)
    if x.batch_ndim:
        batches = np.unravel_index(number, x.shape[: x.batch_ndim]) if len(stored) else [number] * x.batch_ndim
        coords = [*(array.astype(number.dtype) for array in batches), *coords]
    return type(x)("coo", x.shape, asarray(stored), coords=tuple(map(asarray, coords)), state=CHECKED | CANONICAL)


def _sum_repeated(coords: list[Any], stored: Any) -> tuple[list[Any], Any]:
    """Return the distinct coordinates in lexicographic order, and the sum of the values for each of them."""
    order = np.lexsort(coords[::-1])
    coords, stored = [array[order] for array in coords], stored[order]
    new = np.zeros(len(order), bool)
    new[:1] = True
    for array in coords:
        new[1:] |= array[1:] != array[:-1]
    if not new.all():
        add = np.logical_or if stored.dtype.kind == "b" else np.add
        stored = add.reduceat(stored, np.flatnonzero(new), axis=0, dtype=stored.dtype)
    return [array[new] for array in coords], stored


def _compress(x: Any, row: Format, coords: list[Any], stored: Any) -> Any:
    """Return an array in a compressed format, given batch, major and minor coordinate of its values in this order.

    Batches with fewer stored values than the largest batch are padded with zeros.
    """
    number, major, minor = coords
    compressed = row.compressed or 0
    dtype = np.int64 if len(major) > _INT32_MAX else major.dtype
    length = x.shape[x.batch_ndim + compressed] // (x.blocksize[compressed] if row.blocks else 1)
    batches = _count_batches(x)
    counts = np.bincount(number.astype(np.int64) * length + major, minlength=batches * length)
    indptr = np.zeros((batches, length + 1), dtype)
    np.cumsum(counts.reshape(batches, length), axis=1, out=indptr[:, 1:])
    width = int(indptr[:, -1].max(initial=0))
    used = np.arange(width) < indptr[:, -1:]
    if used.all():
        indices, data = minor.astype(dtype, copy=False), stored
    else:
        indices, data = np.zeros(used.shape, dtype), np.zeros((*used.shape, *stored.shape[1:]), stored.dtype)
        indices[used], data[used] = minor, stored
    batch = x.shape[: x.batch_ndim]
    data, indices = data.reshape(*batch, width, *stored.shape[1:]), indices.reshape(*batch, width)
    arrays = asarray(data), asarray(indices), asarray(indptr.reshape(*batch, length + 1))
    blocksize = x.blocksize if row.blocks else None
    state = CHECKED | CANONICAL | (0 if used.all() else PADDED)
    return type(x)(row.name, x.shape, *arrays, blocksize=blocksize, batch_ndim=x.batch_ndim, state=state)
