"""Conversion between sparse formats, and to dense arrays. NumPy performs the conversion in host memory.

SciPy converts neither batches nor dense dimensions nor narrow floats. All arrays therefore take the same way: the
stored values become elements with coordinates, which are sorted and added. The batch is the first coordinate.
"""

import math
from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.formats import FORMATS, Format
from arrayhub.sparse.validation import CANONICAL, CHECKED, PADDED, is_on_host, structure_of, validate

_INT32_MAX = 2**31 - 1


def to_dense(x: Any) -> Any:
    """Return a dense copy. See `SparseArray.to_dense`."""
    if not is_on_host(x):
        return to_dense(x.to_host()).to_device(x.device)
    dense = np.zeros(x.shape, x.dtype)
    coords, stored = elements(x)
    _add(dense.reshape(_count_batches(x), *x.shape[x.batch_ndim :]), coords, stored)
    return asarray(dense)


def _add(target: Any, coords: tuple[Any, ...], stored: Any) -> None:
    """Add values to `target` at coordinates, which may repeat."""
    add = np.logical_or if target.dtype.kind == "b" else np.add
    add.at(target, coords, stored)


def _count_batches(x: Any) -> int:
    return math.prod(x.shape[: x.batch_ndim])


def elements(x: Any) -> tuple[tuple[Any, ...], Any]:
    """Validate an array in host memory, and return the coordinates and the values of its elements.

    The first coordinate is the number of the batch. Padding is omitted. The blocks of bsr and bsc are expanded to
    elements. The coordinates are int32 or int64.
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
    return _expand_blocks(x.blocksize, coords, stored) if x.blocksize else (tuple(coords), stored)


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


def to_format(x: Any, row: Format, blocksize: tuple[int, int] | None = None) -> Any:
    """Return a canonical copy in the format `row`. See `SparseArray.to_format`."""
    sparse = len(x.shape) - x.batch_ndim - x.dense_ndim
    if row.compressed is not None and sparse != 2:
        raise ValueError(f"to_format: {row.name} has 2 sparse dimensions, and the array has {sparse}; accepted: 'coo'")
    blocks = _check_blocksize(x, blocksize) if row.blocks else None
    if not is_on_host(x):
        return to_format(x.to_host(), row, blocksize).to_device(x.device)
    if row.compressed is not None:
        return _compress(x, row, blocks, *elements(x))
    (number, *coords), stored = _sum_repeated(*elements(x))
    if x.batch_ndim:
        batches = np.unravel_index(number, x.shape[: x.batch_ndim]) if len(stored) else [number] * x.batch_ndim
        coords = [*(array.astype(number.dtype) for array in batches), *coords]
    return type(x)("coo", x.shape, asarray(stored), coords=tuple(map(asarray, coords)), state=CHECKED | CANONICAL)


def _check_blocksize(x: Any, blocksize: Any) -> tuple[int, int]:
    blocksize = blocksize or x.blocksize or (1, 1)
    if not isinstance(blocksize, tuple) or len(blocksize) != 2 or any(type(k) is not int or k < 1 for k in blocksize):
        raise ValueError(f"to_format: blocksize is {show(blocksize)}; accepted: two lengths of 1 or more")
    if any(length % block for length, block in zip(x.shape[x.batch_ndim :], blocksize, strict=False)):
        raise ValueError(f"to_format: blocksize is {blocksize}; accepted: divisors of the shape {x.shape}")
    return blocksize


def _sum_repeated(coords: Any, stored: Any, inside: Any = (), blocksize: Any = ()) -> tuple[list[Any], Any]:
    """Return the distinct coordinates in lexicographic order, and the sum of the values for each of them.

    For blocks, `coords` are those of the blocks, and `inside` are the coordinates of each value within its block.
    """
    order = np.lexsort(coords[::-1])
    coords = [array[order] for array in coords]
    new = np.zeros(len(order), bool)
    new[:1] = True
    for array in coords:
        new[1:] |= array[1:] != array[:-1]
    if not blocksize:
        stored = stored[order]
        if not new.all():
            add = np.logical_or if stored.dtype.kind == "b" else np.add
            stored = add.reduceat(stored, np.flatnonzero(new), axis=0, dtype=stored.dtype)
        return [array[new] for array in coords], stored
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.cumsum(new) - 1
    sums = np.zeros((np.count_nonzero(new), *blocksize, *stored.shape[1:]), stored.dtype)
    _add(sums, (numbers, *inside), stored)
    return [array[new] for array in coords], sums


def _compress(x: Any, row: Format, blocksize: Any, coords: Any, stored: Any) -> Any:
    """Return an array in a compressed format, given its elements.

    Batches with fewer stored values than the largest batch are padded with zeros.
    """
    number, *coords = coords
    lengths, inside = list(x.shape[x.batch_ndim : x.batch_ndim + 2]), []
    if blocksize:
        inside = [array % block for array, block in zip(coords, blocksize, strict=True)]
        coords = [array // block for array, block in zip(coords, blocksize, strict=True)]
        lengths = [length // block for length, block in zip(lengths, blocksize, strict=True)]
    major, minor = coords[:: -1 if row.compressed else 1]
    (number, major, minor), stored = _sum_repeated((number, major, minor), stored, inside, blocksize or ())
    dtype = np.int64 if len(major) > _INT32_MAX else major.dtype
    batches, length = _count_batches(x), lengths[row.compressed or 0]
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
    state = CHECKED | CANONICAL | (0 if used.all() else PADDED)
    return type(x)(row.name, x.shape, *arrays, blocksize=blocksize, batch_ndim=x.batch_ndim, state=state)
