"""Sparse arrays for the tests."""

import numpy as np
import scipy.sparse

FORMATS = ("coo", "csr", "csc", "bsr")


def matrix(format="csr", dtype="float64", shape=(6, 8)):
    """Return a sparse array of SciPy in canonical format, in which about 30% of the elements are nonzero."""
    rng = np.random.default_rng(7)
    dense = np.where(rng.random(shape) < 0.3, rng.integers(1, 100, shape), 0).astype(dtype)
    return scipy.sparse.coo_array(dense).asformat(format)


def addresses(x):
    """Return the addresses of the arrays that a SparseArray consists of."""
    parts = (x.data, *x.coords) if x.format == "coo" else (x.data, x.indices, x.indptr)
    return [part.ptr for part in parts]
