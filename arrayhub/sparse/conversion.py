"""Conversion between sparse formats, and to dense arrays. NumPy does the arithmetic in host memory."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.formats import FORMATS, Format
from arrayhub.sparse.to_device import to_device, to_host
from arrayhub.sparse.validation import CANONICAL, CHECKED, PADDED, is_on_host, validate

_INT32_MAX = 2**31 - 1


def to_dense(x: Any) -> Any:
    """Return a dense copy, see `SparseArray.to_dense`."""
    if not is_on_host(x):
        return to_dense(to_host(x)).to_device(x.device)
    validate(x)
    batch, values = x.batch_ndim, as_numpy(x.data)
    sparse = len(x.shape) - batch - x.dense_ndim
    dense = np.zeros(x.shape, values.dtype)
    lead = math.prod(x.shape[:batch])
    target = dense.reshape(lead, *x.shape[batch:])
    for k, (coords, stored) in enumerate(zip(_each(x), values.reshape(lead, *values.shape[batch:]), strict=True)):
        coords, stored = _elements(x, *_used(x, coords, stored))
        _add(target[k], coords[:sparse], stored)
    return asarray(dense)


def _add(target: Any, coords: tuple[Any, ...], stored: Any) -> None:
    """Add values to `target` at coordinates, which may repeat."""
    if not coords:
        target[...] = stored.sum(axis=0, dtype=target.dtype)
    elif target.dtype.kind == "b":
        np.logical_or.at(target, coords, stored)
    else:
        np.add.at(target, coords, stored)


def _each(x: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the coordinates of the stored values (for bsr, of the blocks) of each batch."""
    batches = math.prod(x.shape[: x.batch_ndim])
    if x.format == "coo":
        flat = [as_numpy(array).reshape(batches, array.shape[-1]) for array in x.coords]
        for k in range(batches):
            yield tuple(array[k] for array in flat)
        return
    compressed = FORMATS[x.format].compressed
    all_indices, all_pointers = (as_numpy(array).reshape(batches, array.shape[-1]) for array in (x.indices, x.indptr))
    for own, starts in zip(all_indices, all_pointers, strict=True):
        major = np.repeat(np.arange(len(starts) - 1, dtype=own.dtype), np.diff(starts))
        used = own[: len(major)]  # the rest is padding
        yield (major, used) if compressed == 0 else (used, major)


def coordinates(x: Any) -> Iterator[tuple[Any, ...]]:
    """Validate an array, and yield the coordinates of the stored values of each batch."""
    validate(x)
    values = as_numpy(x.data)
    numbers = np.zeros(values.shape[: x.batch_ndim + 1 + 2 * bool(x.blocksize)], np.int8)
    lead = math.prod(x.shape[: x.batch_ndim])
    for coords, stored in zip(_each(x), numbers.reshape(lead, *numbers.shape[x.batch_ndim :]), strict=True):
        yield _elements(x, *_used(x, coords, stored))[0]


def _used(x: Any, coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Return coordinates and values without padding."""
    if not x._state & PADDED or not coords:
        return coords, stored
    stored = stored[: len(coords[0])]
    inside = np.ones(len(stored), bool)
    for array, length in zip(coords, x.shape[x.batch_ndim :], strict=False):
        inside &= array < length
    return tuple(array[inside] for array in coords), stored[inside]


def has_padding(x: Any) -> bool:
    """Return whether some elements of an array are padding. The array must have been validated."""
    if x.format != "coo":
        return bool((as_numpy(x.indptr)[..., -1] != x.indices.shape[-1]).any())
    return any(
        (as_numpy(array) >= length).any() for array, length in zip(x.coords, x.shape[x.batch_ndim :], strict=False)
    )


def _elements(x: Any, coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the coordinates and values of single elements. The blocks of bsr are expanded to elements."""
    if not x.blocksize:
        return coords, stored
    height, width = x.blocksize
    wide = np.int64 if max(x.shape) > _INT32_MAX else coords[0].dtype
    rows = coords[0].astype(wide)[:, None, None] * height + np.arange(height, dtype=wide)[:, None]
    columns = coords[1].astype(wide)[:, None, None] * width + np.arange(width, dtype=wide)
    rows, columns = np.broadcast_arrays(rows, columns)
    return (rows.reshape(-1), columns.reshape(-1)), stored.reshape(-1, *stored.shape[3:])


def to_format(x: Any, row: Format, blocksize: tuple[int, int] | None = None) -> Any:
    """Return a canonical copy in another format, see `SparseArray.to_format`."""
    if x.batch_ndim:
        raise BufferError(
            f"to_format: {x.batch_ndim} dimensions of shape {x.shape} are batches; accepted: none. Use x.to_dense()"
        )
    sparse = len(x.shape) - x.dense_ndim
    if row.compressed is not None and sparse != 2:
        raise ValueError(f"to_format: {row.name} has 2 sparse dimensions, and the array has {sparse}; accepted: 'coo'")
    if not is_on_host(x):
        return to_device(to_format(to_host(x), row, blocksize), x.device)
    validate(x)
    coords, stored = _elements(x, *_used(x, next(iter(_each(x))), as_numpy(x.data)))
    if row.blocks:
        return _to_blocks(x, coords, stored, blocksize or x.blocksize or (1, 1))
    order = coords if row.compressed != 1 else coords[::-1]
    order, stored = canonical_elements(order, stored)
    if row.compressed is None:
        return type(x)("coo", x.shape, asarray(stored), coords=tuple(map(asarray, order)), state=CHECKED | CANONICAL)
    indptr = pointers(order[0], x.shape[row.compressed])
    indices = order[1].astype(indptr.dtype, copy=False)
    return type(x)(row.name, x.shape, asarray(stored), asarray(indices), asarray(indptr), state=CHECKED | CANONICAL)


def canonical_elements(coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Sort elements by their coordinates in lexicographic order, and add the values of equal coordinates."""
    if not coords:
        return coords, stored.sum(axis=0, keepdims=True, dtype=stored.dtype)
    order = np.lexsort(coords[::-1])
    coords = tuple(array[order] for array in coords)
    stored = stored[order]
    if len(order) == 0:
        return coords, stored
    new = np.ones(len(order), bool)
    new[1:] = False
    for array in coords:
        new[1:] |= array[1:] != array[:-1]
    if new.all():
        return coords, stored
    starts = np.flatnonzero(new)
    add = np.logical_or if stored.dtype.kind == "b" else np.add
    return tuple(array[starts] for array in coords), add.reduceat(stored, starts, axis=0, dtype=stored.dtype)


def pointers(major: Any, length: int) -> Any:
    """Return the pointers of a compressed dimension, given the sorted indices along it, as int32 if possible."""
    wide = len(major) > _INT32_MAX or major.dtype.itemsize > 4
    counts = np.bincount(major, minlength=length)
    result = np.zeros(length + 1, np.int64 if wide else np.int32)
    np.cumsum(counts, out=result[1:])
    return result


def _to_blocks(x: Any, coords: tuple[Any, ...], stored: Any, blocksize: Any) -> Any:
    if not isinstance(blocksize, tuple) or len(blocksize) != 2 or any(type(k) is not int or k < 1 for k in blocksize):
        raise ValueError(f"to_format: blocksize is {show(blocksize)}; accepted: two lengths of 1 or more")
    if any(length % block for length, block in zip(x.shape, blocksize, strict=False)):
        raise ValueError(f"to_format: blocksize is {blocksize}; accepted: divisors of the shape {x.shape}")
    height, width = blocksize
    rows, columns = coords
    (block_rows, block_columns), numbers = canonical_blocks(rows // height, columns // width)
    blocks = np.zeros((len(block_rows), height, width, *stored.shape[1:]), stored.dtype)
    _add(blocks, (numbers, rows % height, columns % width), stored)
    indptr = pointers(block_rows, x.shape[0] // height)
    indices = block_columns.astype(indptr.dtype, copy=False)
    facts = dict(blocksize=(height, width), state=CHECKED | CANONICAL)
    return type(x)("bsr", x.shape, asarray(blocks), asarray(indices), asarray(indptr), **facts)


def canonical_blocks(rows: Any, columns: Any) -> tuple[tuple[Any, Any], Any]:
    """Return the coordinates of the distinct blocks in order, and the position of each element's block among them."""
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    new = np.ones(len(order), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.cumsum(new) - 1
    return (rows[new], columns[new]), numbers
