"""Sparse arrays: tables of producers, of consumers, and of conversions that need a copy or are rejected.

tests/sparse/test_export_matrix.py runs each cell. CuPy's cells are in tests/gpu/test_sparse.py.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from sparse_arrays import FORMATS, matrix

import arrayhub as ah


class SparseProducer(NamedTuple):
    """A producer. ``make(format)`` returns a sparse object in one of `formats`, with indices of type `indices`."""

    name: str
    make: object
    formats: tuple
    indices: str
    joined: bool = True  # whether all coordinates are stored in one array
    writeable: bool = True


def aligned(array):
    """Return a copy of an ndarray that is aligned to 64 bytes, as jax requires."""
    return ah.as_numpy(ah.asarray(array).aligned(copy=True))


def _scipy(indices, writeable=True, kind="array"):
    def make(format):
        given = getattr(scipy.sparse, f"{format}_{kind}")(matrix(format, "float32"))
        given.data = aligned(given.data)
        if format == "coo":
            given.coords = tuple(aligned(array.astype(indices)) for array in given.coords)
            parts = (given.data, *given.coords)
        else:
            given.indices, given.indptr = aligned(given.indices.astype(indices)), aligned(given.indptr.astype(indices))
            parts = (given.data, given.indices, given.indptr)
        for part in parts:
            part.flags.writeable = writeable
        return given

    return make


def _torch(indices):
    def make(format):
        import torch

        dense = torch.from_numpy(matrix().toarray().astype("float32"))
        tensor = getattr(dense, f"to_sparse_{format}")(*[(2, 2)] * (format in ("bsr", "bsc")))
        if indices == "int64":
            return tensor
        names = ("ccol_indices", "row_indices") if format in ("csc", "bsc") else ("crow_indices", "col_indices")
        parts = [getattr(tensor, name)().int() for name in names]
        return getattr(torch, f"sparse_{format}_tensor")(*parts, tensor.values(), tensor.shape)

    return make


def _jax(format):
    from jax.experimental import sparse

    make = sparse.BCOO if format == "coo" else sparse.BCSR
    return make.fromdense(matrix().toarray().astype("float32"))


def _pydata_sparse(format):
    import sparse

    dense = matrix().toarray().astype("float32")
    if format == "coo":
        made = sparse.COO.from_numpy(dense)
    else:
        made = sparse.GCXS.from_numpy(dense, compressed_axes=(0,) if format == "csr" else (1,))
    made.data = aligned(made.data)
    return made


COMPRESSED = ("csr", "csc", "bsr", "bsc")
BLOCKS = ("bsr", "bsc")
SPARSE_PRODUCERS = [
    SparseProducer("SciPy, int32", _scipy("int32"), FORMATS, "int32", joined=False),
    SparseProducer("SciPy, int64", _scipy("int64"), FORMATS, "int64", joined=False),
    SparseProducer("SciPy, read-only", _scipy("int32", False), FORMATS, "int32", joined=False, writeable=False),
    SparseProducer("SciPy's matrices", _scipy("int32", kind="matrix"), FORMATS, "int32", joined=False),
    SparseProducer("torch, int32", _torch("int32"), COMPRESSED, "int32"),
    SparseProducer("torch, int64", _torch("int64"), (*FORMATS, "bsc"), "int64"),
    SparseProducer("jax", _jax, ("coo", "csr"), "int32", writeable=False),
    SparseProducer("pydata/sparse", _pydata_sparse, ("coo", "csr", "csc"), "int64"),
]
SPARSE_CONSUMERS = ("scipy", "torch", "jax", "pydata_sparse")


class Obstacle(NamedTuple):
    """A reason why a conversion requires a copy (`copy` is true) or is rejected (`copy` is false)."""

    consumers: tuple
    applies: object
    copy: bool
    words: str  # regular expression for the error
    reason: str


OBSTACLES = [
    Obstacle(("jax",), lambda p, f: f not in ("coo", "csr"), False, "is not supported", "jax has only coo and csr"),
    Obstacle(("scipy",), lambda p, f: f == "bsc", False, "is not supported", "SciPy does not have the format bsc"),
    Obstacle(
        ("pydata_sparse",),
        lambda p, f: f in BLOCKS,
        False,
        "is not supported",
        "pydata/sparse lacks block formats",
    ),
    Obstacle(
        ("torch",),
        lambda p, f: f == "coo" and p.indices == "int32",
        True,
        "indices of int32",
        "torch stores coordinates as int64",
    ),
    Obstacle(("jax",), lambda p, f: p.indices == "int64", True, "indices of int64", "int64 requires `jax_enable_x64`"),
    Obstacle(
        ("torch", "jax", "pydata_sparse"),
        lambda p, f: f == "coo" and not p.joined,
        True,
        "separate arrays",
        "the library stores all coordinates in one array",
    ),
    Obstacle(("torch",), lambda p, f: not p.writeable, True, "read-only", "torch does not have read-only tensors"),
]


def obstacle_of(producer, format, consumer):
    """Return the first obstacle that applies to a conversion, or None if the result must share the memory."""
    found = (row for row in OBSTACLES if consumer in row.consumers and row.applies(producer, format))
    return next(found, None)


def export(x, consumer, copy=False):
    """Convert `x` to a consumer's sparse array, and import the result as a SparseArray."""
    return ah.assparse(ah.convert(x, consumer, copy=copy))


def dense(x):
    return np.asarray(ah.as_numpy(ah.assparse(x).to_dense())).tolist()
