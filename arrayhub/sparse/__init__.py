"""Sparse arrays in the formats coo, csr, csc, bsr and bsc, stored as flat arrays. See docs/sparse.md."""

from arrayhub.sparse.array import SparseArray
from arrayhub.sparse.export import as_scipy
from arrayhub.sparse.libraries import assparse

__all__ = ["SparseArray", "as_scipy", "assparse"]
