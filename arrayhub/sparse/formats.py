"""Table of sparse formats, validation of sparse arrays, and their conversion between formats.

Shapes and types are validated on import, indices later. Results about indices are cached in the array.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from arrayhub._core.errors import interface_error, show
from arrayhub.convert.functions import as_numpy, asarray


@dataclass(frozen=True, slots=True)
class Format:
    """A sparse format."""

    compressed: int | None  # the dimension that `indptr` compresses: 0 for rows, 1 for columns, None for coordinates
    blocks: bool  # whether each index refers to a dense block
    transposed: str | None  # the format in which the same arrays represent the transposed array


FORMATS = {
    "coo": Format(None, False, "coo"),
    "csr": Format(0, False, "csc"),
    "csc": Format(1, False, "csr"),
    "bsr": Format(0, True, None),
    "bsc": Format(1, True, None),
}

DIMENSIONS = ("rows", "columns")


# --------------------------------------------------------------------------------------------- shapes and types

# NumPy type numbers of the integers that indices can have: 8 to 64 bits.
INTEGERS = frozenset(range(1, 11))
_ACCEPTED = "integers in native byte order"


def name_structure(x: Any) -> dict[str, Any]:
    """Return the indices and pointers, or the coordinates along each dimension, by their names in errors."""
    if x.format != "coo":
        return dict(zip(("indices", "indptr"), x.structure, strict=True))
    return {f"coords[{k}]": array for k, array in enumerate(x.coords)}


def check_shapes(source: str, x: Any) -> None:
    """Validate the shapes and types of the arrays of a sparse array. The elements are not read.

    Raise InterfaceError, with a message that begins with `source`, if the shapes are inconsistent or indices are not
    integers.
    """
    row, shape, of_data, batch, joined = FORMATS[x.format], x.shape, x.data.shape, x.batch_ndim, x._joined
    blocksize, inner = x.blocksize or (), batch + (3 if row.blocks else 1)  # `inner`: the first dense dimension of data
    batches, stored, dense = of_data[:batch], of_data[: batch + 1], of_data[inner:]
    if not 0 <= batch < inner <= len(of_data) or of_data[batch + 1 : inner] != blocksize or 0 in blocksize:
        accepted = f"{inner} or more dimensions, with nonempty blocks of shape {blocksize}"
        raise interface_error(source, "shape of data", of_data, accepted)
    for k, array in enumerate(x.structure):
        if array.typenum not in INTEGERS:
            raise interface_error(source, f"dtype of {[*name_structure(x)][k]}", array.dtype, _ACCEPTED)
        found = array.shape if joined is None else array.shape[1:]
        if found != stored and (k == 0 or row.compressed is None):
            raise interface_error(source, f"shape of {[*name_structure(x)][k]}", found, f"{stored}, as data requires")
    sparse = batch + (2 if row.compressed is not None else len(x.structure) if joined is None else joined.shape[0])
    if len(shape) != sparse + len(dense) or shape[:batch] != batches or shape[sparse:] != dense:
        accepted = f"{sparse - batch} sparse dimensions between the batches {batches} and the dense dimensions {dense}"
        raise interface_error(source, "shape", shape, accepted)
    if row.compressed is None:
        return
    if blocksize and (shape[batch] % blocksize[0] or shape[batch + 1] % blocksize[1]):
        raise interface_error(source, "shape", shape, f"multiples of the blocksize {blocksize}")
    _, indptr = x.structure
    pointers = shape[batch + row.compressed] // (blocksize or (1, 1))[row.compressed] + 1
    if indptr.shape != (*batches, pointers):
        accepted = f"{(*batches, pointers)}, one more than the number of {DIMENSIONS[row.compressed]}"
        raise interface_error(source, "shape of indptr", indptr.shape, accepted)


# ------------------------------------------------------------------------------------------------------ indices

# Bits of `SparseArray._state`.
CHECKED = 1  # the indices are within the shape
CANONICAL = 2  # the indices are sorted and distinct
NOT_CANONICAL = 4  # the indices are unsorted or repeated
PADDED = 8  # as in jax, elements outside the shape or after the last pointer are padding
TRUSTED = 64  # exports do not read the indices, because the caller passed validate=False
# One bit for each library that accepts the array. Whether jax accepts it depends on the setting jax_enable_x64.
ACCEPTED = {"scipy": 16, "torch": 32, "cupy": 128, "pydata_sparse": 256}
SEEN = CHECKED | CANONICAL | NOT_CANONICAL | PADDED | TRUSTED


def validate(x: Any) -> None:
    """Validate the indices of an array once. Indices that the host cannot read are not validated.

    Raise InterfaceError, which names the element, if an index or a pointer is invalid.
    """
    if not x._state & CHECKED and x._is_on_host():
        check_indices(x)
        x._state |= CHECKED


def check_indices(x: Any) -> None:
    """Validate the indices, which the host must be able to read. Raises like `validate`."""
    row, shape, used = FORMATS[x.format], x.shape, find_used(x)
    arrays = {name: as_numpy(array) for name, array in name_structure(x).items()}
    for name, array in arrays.items():
        if not array.dtype.isnative:
            raise interface_error("assparse", f"dtype of {name}", array.dtype, _ACCEPTED)
    if row.compressed is None:
        for (name, values), length in zip(arrays.items(), shape[x.batch_ndim :], strict=False):
            _check_below(name, values, used, length, f"the lengths of shape {shape}")
        return
    indices, indptr = arrays.values()
    stored, last, ends = indices.shape[-1], indptr[..., -1:], indptr.shape[-1] - 1
    major, minor = DIMENSIONS[row.compressed], DIMENSIONS[1 - row.compressed]
    _refuse_first("indptr", indptr, indptr[..., :1] != 0, "0")
    falls = indptr[..., 1:] < indptr[..., :-1]  # np.diff could overflow
    for before in indptr[..., :-1][falls][:1]:
        accepted = f"{before} or more, because pointers of {major} must not decrease"
        _refuse_first("indptr", indptr, falls, accepted, skipped=1)
    wrong, most = (last != stored, "") if used is None else (last > stored, "at most ")
    _refuse_first("indptr", indptr, wrong, f"{most}{stored}, the length of indices", skipped=ends)
    length = shape[x.batch_ndim + 1 - row.compressed] // (x.blocksize or (1, 1))[1 - row.compressed]
    blocks = "blocks of " if x.blocksize else ""
    _check_below("indices", indices, used, length, f"the {blocks}{minor} of shape {shape}")


def find_used(x: Any) -> Any:
    """Return a mask of the elements that are not padding, for each batch, or None for arrays without padding."""
    if not x._state & PADDED:
        return None
    if x.format != "coo":
        return np.arange(x.indices.shape[-1]) < as_numpy(x.indptr)[..., -1:]
    used = np.ones(x.data.shape[: x.batch_ndim + 1], bool)
    for array, length in zip(x.coords, x.shape[x.batch_ndim :], strict=False):
        used &= as_numpy(array) < length
    return used


def _check_below(name: str, values: Any, used: Any, length: int, what: str) -> None:
    """Raise InterfaceError for the first used index that is negative or not less than `length`."""
    values = values if used is None else np.where(used, values, 0)
    if values.size == 0 or not (used is None or used.any()):
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


def is_marked_canonical(x: Any) -> bool:
    """Return whether to mark an exported array as canonical. Indices on a device and trusted indices are not read."""
    is_read = not x._state & TRUSTED and x._is_on_host()
    return not x._state & PADDED and (is_canonical(x) if is_read else bool(x._state & CANONICAL))


def is_canonical(x: Any) -> bool:
    """Return whether the indices are sorted and distinct. Unless the result is cached, the host reads the indices."""
    if not x._state & (CANONICAL | NOT_CANONICAL):
        validate(x)
        found = _sorted_coords(x) if x.format == "coo" else _sorted_indices(x)
        x._state |= CANONICAL if found else NOT_CANONICAL
    return bool(x._state & CANONICAL)


def _sorted_indices(x: Any) -> bool:
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

INT32_MAX = 2**31 - 1


def elements(x: Any, keeps_blocks: bool = False) -> tuple[tuple[Any, ...], Any]:
    """Validate an array in host memory, and return the coordinates and the values of its elements.

    The first coordinate is the number of the batch. Padding is omitted. The blocks of bsr and bsc are expanded to
    elements unless `keeps_blocks` is true. The coordinates are int32 or int64.
    """
    validate(x)
    row, used, values = FORMATS[x.format], find_used(x), as_numpy(x.data)
    stored, batches = values.shape[: x.batch_ndim + 1], math.prod(values.shape[: x.batch_ndim])

    def flatten(array: Any) -> Any:
        """Join the batches of an array, without padding."""
        array = as_numpy(array)
        return array[used] if used is not None else array.reshape(math.prod(stored), *array.shape[len(stored) :])

    if row.compressed is None:
        coords = list(map(flatten, x.coords))
    else:
        counts = np.diff(as_numpy(x.indptr)).astype(np.intp)
        lines = np.tile(np.arange(counts.shape[-1]), batches)
        coords = [np.repeat(lines, counts.reshape(-1)), flatten(x.indices)][:: -1 if row.compressed else 1]
    coords = [flatten(np.arange(batches).repeat(stored[-1]).reshape(stored)), *coords]
    is_narrow = max((*x.shape, batches)) <= INT32_MAX and all(array.itemsize <= 4 for array in x.structure)
    coords = [array.astype(np.int32 if is_narrow else np.int64, copy=False) for array in coords]
    expands = x.blocksize and not keeps_blocks
    return _expand_blocks(x.blocksize, coords, flatten(values)) if expands else (tuple(coords), flatten(values))


def _expand_blocks(blocksize: tuple[int, int], coords: Any, stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the coordinates and the values of the elements of blocks."""
    batch, rows, columns = (array[:, None, None] for array in coords)
    rows = rows * blocksize[0] + np.arange(blocksize[0], dtype=rows.dtype)[:, None]
    columns = columns * blocksize[1] + np.arange(blocksize[1], dtype=columns.dtype)
    spread = np.broadcast_arrays(batch, rows, columns)
    return tuple(array.reshape(-1) for array in spread), stored.reshape(math.prod(stored.shape[:3]), *stored.shape[3:])


def to_format(x: Any, name: Any) -> Any:
    """Return a canonical copy in the format `name`. See `SparseArray.to_format`."""
    row = FORMATS.get(name) if isinstance(name, str) else None
    if row is None:
        raise ValueError(f"to_format: format is {show(name)}; accepted: {', '.join(map(repr, FORMATS))}")
    sparse = len(x.shape) - x.batch_ndim - x.dense_ndim
    if row.compressed is not None and sparse != 2:
        raise ValueError(f"to_format: {name} has 2 sparse dimensions, and the array has {sparse}; accepted: 'coo'")
    if row.blocks and not x.blocksize:
        raise ValueError(
            f"to_format: {name} consists of blocks, and the array does not; accepted: 'coo', 'csr', 'csc'. SciPy"
            " makes blocks: arrayhub.as_scipy(x.to_format('csr')).tobsr(blocksize)"
        )
    if not x._is_on_host():
        return to_format(x.to_host(), name).to_device(x.device)
    (number, *coords), stored = elements(x, row.blocks)
    coords, stored = _sum_repeated([number, *coords[:: -1 if row.compressed else 1]], stored)
    if row.compressed is not None:
        return _compress(x, str.__str__(name), row, coords, stored)
    number, *coords = coords
    if x.batch_ndim:
        batches = np.unravel_index(number, x.shape[: x.batch_ndim]) if len(stored) else [number] * x.batch_ndim
        coords = [*(array.astype(number.dtype) for array in batches), *coords]
    return type(x)("coo", x.shape, asarray(stored), tuple(map(asarray, coords)), state=CHECKED | CANONICAL)


def _sum_repeated(coords: list[Any], stored: Any) -> tuple[list[Any], Any]:
    """Return the distinct coordinates in lexicographic order, and the sum of the values for each of them."""
    order = np.lexsort(coords[::-1])
    coords, stored = [array[order] for array in coords], stored[order]
    new = np.zeros(len(order), bool)
    new[:1] = True
    for array in coords:
        new[1:] |= array[1:] != array[:-1]
    if not new.all():
        own, starts = stored.dtype, np.flatnonzero(new)  # the ufunc does not accept a byte order or a unit
        stored = np.add.reduceat(stored, starts, axis=0, dtype=own.type).astype(own, copy=False)
    return [array[new] for array in coords], stored


def _compress(x: Any, name: str, row: Any, coords: list[Any], stored: Any) -> Any:
    """Return an array in the format `name`, given the batches, the major and the minor coordinates of the values.

    Batches with fewer stored values than the largest batch are padded with zeros.
    """
    number, major, minor = coords
    dtype = np.int64 if len(major) > INT32_MAX else major.dtype
    batch, blocksize = x.shape[: x.batch_ndim], x.blocksize if row.blocks else None
    length = x.shape[x.batch_ndim + row.compressed] // (blocksize or (1, 1))[row.compressed]
    counts = np.bincount(number.astype(np.int64) * length + major, minlength=math.prod(batch) * length)
    indptr = np.zeros((*batch, length + 1), dtype)
    np.cumsum(counts.reshape(*batch, length), axis=-1, out=indptr[..., 1:])
    used = np.arange(indptr[..., -1].max(initial=0)) < indptr[..., -1:]
    data, indices = np.zeros((*used.shape, *stored.shape[1:]), stored.dtype), np.zeros(used.shape, dtype)
    data[used], indices[used] = stored, minor
    structure, state = (asarray(indices), asarray(indptr)), CHECKED | CANONICAL | (0 if used.all() else PADDED)
    return type(x)(name, x.shape, asarray(data), structure, blocksize, x.batch_ndim, state)
