"""Conversion between sparse formats, and to dense arrays. NumPy performs the conversion in host memory.

SciPy converts neither batches nor dense dimensions nor narrow floats. All arrays therefore take the same way: the
stored values become elements with coordinates, which are sorted and added. The batch is the first coordinate.
"""

import math
from typing import Any

import numpy as np

from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.formats import CANONICAL, CHECKED, FORMATS, PADDED, Format, is_on_host, structure_of, validate

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
    narrow = max(*x.shape, batches) <= _INT32_MAX and all(array.itemsize <= 4 for array in parts)
    stored = as_numpy(x.data)
    stored = stored.reshape(batches, *stored.shape[x.batch_ndim :])
    used = np.ones(stored.shape[:2], bool) if x._state & PADDED else None

    def flatten(array: Any) -> Any:
        """Join the batches of an array, without padding."""
        return array.reshape(-1, *array.shape[2:]) if used is None else array[used]

    if x.format == "coo":
        coords = [array.reshape(stored.shape[:2]) for array in (parts[0] if x.coords_array is not None else parts)]
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
