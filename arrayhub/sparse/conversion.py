"""Conversion between sparse formats, and to dense arrays. NumPy performs the conversion in host memory."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from arrayhub._core.errors import show
from arrayhub.convert.functions import as_numpy, asarray
from arrayhub.sparse.formats import FORMATS, Format
from arrayhub.sparse.to_device import to_device, to_host
from arrayhub.sparse.validation import CANONICAL, CHECKED, PADDED, is_on_host, structure_of, validate

_INT32_MAX = 2**31 - 1


def to_dense(x: Any) -> Any:
    """Return a dense copy. See `SparseArray.to_dense`."""
    if not is_on_host(x):
        return to_dense(to_host(x)).to_device(x.device)
    dense = np.zeros(x.shape, x.dtype)
    target = dense.reshape(math.prod(x.shape[: x.batch_ndim]), *x.shape[x.batch_ndim :])
    for k, (coords, stored) in enumerate(elements(x)):
        _add(target[k], coords, stored)
    return asarray(dense)


def _add(target: Any, coords: tuple[Any, ...], stored: Any) -> None:
    """Add values to `target` at coordinates, which may repeat."""
    if not coords:
        target[...] = stored.sum(axis=0, dtype=target.dtype)
    elif target.dtype.kind == "b":
        np.logical_or.at(target, coords, stored)
    else:
        np.add.at(target, coords, stored)


# --------------------------------------------------------------------------------------------------------- elements


def elements(x: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Validate an array in host memory, and yield for each batch the coordinates and the values of its elements.

    Padding is omitted. The blocks of bsr and bsc are expanded to elements. The coordinates are int32 or int64.
    """
    validate(x)
    values = as_numpy(x.data)
    narrow = max(x.shape, default=0) <= _INT32_MAX and all(array.dtype.itemsize <= 4 for array in structure_of(x))
    dtype = np.dtype(np.int32 if narrow else np.int64)
    batches = values.reshape(math.prod(x.shape[: x.batch_ndim]), *values.shape[x.batch_ndim :])
    for coords, stored in zip(_each(x), batches, strict=True):
        coords, stored = _used(x, coords, stored)
        coords = tuple(array.astype(dtype, copy=False) for array in coords)
        yield _of_blocks(x.blocksize, coords, stored) if x.blocksize else (coords, stored)


def _each(x: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the coordinates of the stored values, or of the blocks, of each batch."""
    batches = math.prod(x.shape[: x.batch_ndim])
    if x.format == "coo":
        flat = [as_numpy(array).reshape(batches, array.shape[-1]) for array in x.coords]
        for k in range(batches):
            yield tuple(array[k] for array in flat)
        return
    compressed = FORMATS[x.format].compressed
    all_indices, all_pointers = (as_numpy(array).reshape(batches, array.shape[-1]) for array in (x.indices, x.indptr))
    for own, starts in zip(all_indices, all_pointers, strict=True):
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        used = own[: len(major)]  # further indices are padding
        yield (major, used) if compressed == 0 else (used, major)


def _used(x: Any, coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Return coordinates and values without padding."""
    if not x._state & PADDED or not coords:
        return coords, stored
    stored = stored[: len(coords[0])]
    inside = np.ones(len(stored), bool)
    for array, length in zip(coords, x.shape[x.batch_ndim :], strict=False):
        inside &= array < length
    return tuple(array[inside] for array in coords), stored[inside]


def _of_blocks(blocksize: tuple[int, int], coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Expand blocks to elements. Return the coordinates and the values of the elements."""
    height, width = blocksize
    rows = coords[0][:, None, None] * height + np.arange(height, dtype=coords[0].dtype)[:, None]
    columns = coords[1][:, None, None] * width + np.arange(width, dtype=coords[1].dtype)
    rows, columns = np.broadcast_arrays(rows, columns)
    return (rows.reshape(-1), columns.reshape(-1)), stored.reshape(-1, *stored.shape[3:])


def has_padding(x: Any) -> bool:
    """Return whether some elements of a validated array are padding."""
    if x.format != "coo":
        return bool((as_numpy(x.indptr)[..., -1] != x.indices.shape[-1]).any())
    return any(
        (as_numpy(array) >= length).any() for array, length in zip(x.coords, x.shape[x.batch_ndim :], strict=False)
    )


# ---------------------------------------------------------------------------------------------------------- formats


def to_format(x: Any, row: Format, blocksize: tuple[int, int] | None = None) -> Any:
    """Return a canonical copy in the format `row`. See `SparseArray.to_format`."""
    sparse = len(x.shape) - x.batch_ndim - x.dense_ndim
    if row.compressed is not None and sparse != 2:
        raise ValueError(f"to_format: {row.name} has 2 sparse dimensions, and the array has {sparse}; accepted: 'coo'")
    blocks = _blocksize_of(x, blocksize) if row.blocks else None
    if not is_on_host(x):
        return to_device(to_format(to_host(x), row, blocksize), x.device)
    if row.compressed is None:
        return _to_coo(x)
    lengths = x.shape[x.batch_ndim : x.batch_ndim + 2]
    parts = [_compressed(row.compressed, lengths, blocks, *batch) for batch in elements(x)]
    if x.batch_ndim:
        models = parts[0] if parts else _compressed(row.compressed, lengths, blocks, *_no_elements(x))
        data, indices, indptr = _stacked(x.shape[: x.batch_ndim], parts, models)
    else:
        data, indices, indptr = parts[0]
    state = CHECKED | CANONICAL
    if any(len(part[1]) < indices.shape[-1] for part in parts):
        state |= PADDED
    arrays = asarray(data), asarray(indices), asarray(indptr)
    return type(x)(row.name, x.shape, *arrays, blocksize=blocks, batch_ndim=x.batch_ndim, state=state)


def _blocksize_of(x: Any, blocksize: Any) -> tuple[int, int]:
    blocksize = blocksize or x.blocksize or (1, 1)
    if not isinstance(blocksize, tuple) or len(blocksize) != 2 or any(type(k) is not int or k < 1 for k in blocksize):
        raise ValueError(f"to_format: blocksize is {show(blocksize)}; accepted: two lengths of 1 or more")
    if any(length % block for length, block in zip(x.shape[x.batch_ndim :], blocksize, strict=False)):
        raise ValueError(f"to_format: blocksize is {blocksize}; accepted: divisors of the shape {x.shape}")
    return blocksize


def _to_coo(x: Any) -> Any:
    """Return a canonical copy in the format coo. Batch dimensions become sparse dimensions."""
    parts = [_sorted_elements(*batch) for batch in elements(x)]
    coords, stored = parts[0] if len(parts) == 1 else _joined(x, parts)
    if x.batch_ndim:
        numbers = np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts])
        dtype = coords[0].dtype if coords else np.dtype(np.int64)
        coords = (*(array.astype(dtype) for array in np.unravel_index(numbers, x.shape[: x.batch_ndim])), *coords)
    return type(x)("coo", x.shape, asarray(stored), coords=tuple(map(asarray, coords)), state=CHECKED | CANONICAL)


def _joined(x: Any, parts: list[Any]) -> tuple[tuple[Any, ...], Any]:
    """Concatenate the coordinates and the values of all batches."""
    coords, stored = zip(*(parts or [_no_elements(x)]), strict=True)
    return tuple(map(np.concatenate, zip(*coords, strict=True))), np.concatenate(stored)


def _no_elements(x: Any) -> tuple[tuple[Any, ...], Any]:
    """Return empty coordinates and values, for an array of 0 batches."""
    ndim = len(x.shape) - x.batch_ndim - x.dense_ndim
    return (np.empty(0, np.int32),) * ndim, np.empty((0, *x.shape[x.batch_ndim + ndim :]), x.dtype)


def _compressed(compressed: int, lengths: Any, blocksize: Any, coords: Any, stored: Any) -> tuple[Any, Any, Any]:
    """Return the values or blocks, the indices and the pointers of a matrix, given its elements."""
    if blocksize:
        coords, stored = _blocks(compressed, blocksize, coords, stored)
        lengths = [length // block for length, block in zip(lengths, blocksize, strict=True)]
    else:
        coords, stored = _sorted_elements(coords[::-1] if compressed else coords, stored)
    indptr = _pointers(coords[0], lengths[compressed])
    return stored, coords[1].astype(indptr.dtype, copy=False), indptr


def _stacked(batch: tuple[int, ...], parts: list[Any], models: Any) -> list[Any]:
    """Stack the arrays of all batches, padded with zeros to the length of the longest batch.

    `models` are the arrays of one batch. They determine the element types and the remaining dimensions of the result.
    """
    found = []
    for k, model in enumerate(models):
        length = max((len(part[k]) for part in parts), default=len(model))
        stack = np.zeros((len(parts), length, *model.shape[1:]), model.dtype)
        for own, part in zip(stack, parts, strict=True):
            own[: len(part[k])] = part[k]
        found.append(stack.reshape(*batch, *stack.shape[1:]))
    return found


def _sorted_elements(coords: tuple[Any, ...], stored: Any) -> tuple[tuple[Any, ...], Any]:
    """Sort elements by their coordinates in lexicographic order, and add the values of equal coordinates."""
    if not coords:
        return coords, stored.sum(axis=0, keepdims=True, dtype=stored.dtype)
    order, new = _order(coords)
    coords, stored = tuple(array[order] for array in coords), stored[order]
    if new.all():
        return coords, stored
    starts = np.flatnonzero(new)
    add = np.logical_or if stored.dtype.kind == "b" else np.add
    return tuple(array[starts] for array in coords), add.reduceat(stored, starts, axis=0, dtype=stored.dtype)


def _blocks(compressed: int, blocksize: tuple[int, int], coords: tuple[Any, ...], stored: Any) -> tuple[Any, Any]:
    """Return the coordinates and the values of the blocks. The compressed dimension comes first."""
    places = [array // block for array, block in zip(coords, blocksize, strict=True)]
    if compressed:
        places = places[::-1]
    order, new = _order(places)
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.cumsum(new) - 1
    blocks = np.zeros((int(new.sum()), *blocksize, *stored.shape[1:]), stored.dtype)
    inside = (array % block for array, block in zip(coords, blocksize, strict=True))
    _add(blocks, (numbers, *inside), stored)
    return [array[order][new] for array in places], blocks


def _order(coords: Any) -> tuple[Any, Any]:
    """Return the lexicographic order of coordinates, and a mask over the sorted coordinates.

    The mask is True where the coordinates differ from the previous coordinates.
    """
    order = np.lexsort(coords[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for array in coords:
        new[1:] |= array[order[1:]] != array[order[:-1]]
    return order, new


def _pointers(major: Any, length: int) -> Any:
    """Return the pointers of a compressed dimension, given the index of each element along this dimension.

    The pointers are int32 if the given indices are, and if int32 can represent the number of elements.
    """
    wide = len(major) > _INT32_MAX or major.dtype.itemsize > 4
    counts = np.bincount(major, minlength=length)
    result = np.zeros(length + 1, np.int64 if wide else np.int32)
    np.cumsum(counts, out=result[1:])
    return result
