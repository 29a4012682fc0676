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


class Binsparse:
    """Object that has only the methods of the binsparse protocol, with the arrays of a SparseArray."""

    def __init__(self, x):
        structure = (
            dict(zip(("indices_0", "indices_1"), x.coords, strict=True))
            if x.format == "coo"
            else {"indices_1": x.indices, "pointers_to_1": x.indptr}
        )
        self.x, self.arrays = x, {"values": x.data, **structure}

    def __binsparse_descriptor__(self):
        facts = {"version": "0.1", "format": self.x.format.upper(), "shape": list(self.x.shape)}
        return {"binsparse": {**facts, "number_of_stored_values": self.x.nnz}}

    def __binsparse__(self):
        return self.arrays
